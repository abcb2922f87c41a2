"""The exercises of the chapter "The fused GEMM": what is right, and which mistakes have a name."""

EXERCISES = []
