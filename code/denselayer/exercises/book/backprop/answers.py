"""The exercises of the chapter "Backpropagation through a dense layer": what is right, and which mistakes have a name."""

EXERCISES = []
