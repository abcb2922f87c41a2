"""The exercises of the chapter "Between the layers": what is right, and which mistakes have a name."""

EXERCISES = []
