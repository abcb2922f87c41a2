"""The exercises of the chapter "Training": what is right, and which mistakes have a name."""

EXERCISES = []
