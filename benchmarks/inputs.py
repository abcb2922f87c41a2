"""The numbers that every variant of a job computes with: the same for all, from a fixed seed."""

from __future__ import annotations

from denselayer._ways import layer, layer_shape, upstream

__all__ = ["SHAPES", "layer", "layer_shape", "upstream"]

SHAPES = {
    "1,784,1000": (1, 784, 1000),
    "64,784,256": (64, 784, 256),
    "512,784,1000": (512, 784, 1000),
    "4096,512,512": (4096, 512, 512),
    "4096,1024,4096": (4096, 1024, 4096),
    "8192,64,64": (8192, 64, 64),
    "65536,64,64": (65536, 64, 64),
    "65536,256,16": (65536, 256, 16),
}
"""The shapes of the table of targets by name: N, in, out."""
