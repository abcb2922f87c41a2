"""The exercises of the chapter "The neuron": what is right, and which mistakes have a name."""

EXERCISES = []
