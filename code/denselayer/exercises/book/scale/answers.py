"""The exercises of the chapter "Scaling": what is right, and which mistakes have a name."""

EXERCISES = []
