"""The exercises of the chapter "Is my gradient right?": what is right, and which mistakes have a name."""

EXERCISES = []
