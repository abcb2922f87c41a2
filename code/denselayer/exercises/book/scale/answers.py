"""The exercises of the chapter "Scaling", in the order of the text.

What is right, and which mistakes have a name, stands in the modules beside this one.
"""

from denselayer.exercises import Explain

from . import _bounds, _counts, _memory, _sending, _speeds, _splits, _structures

EXERCISES = [
    _counts.small_layer(),
    _counts.mlp(),
    _counts.adam(),
    _speeds.ridge(),
    _counts.half(),
    _speeds.leaving(),
    _speeds.update_share(),
    _counts.experts(),
    _sending.devices(),
    _sending.ring_bytes(),
    _sending.pays(),
    Explain("scale-which-sum"),
    Explain("scale-fits"),
    Explain("scale-serving"),
    Explain("scale-kink"),
    _memory.LARGEST,
    _memory.DEPTH_PRICE,
    _memory.TRACER,
    _splits.BIAS_TIMES,
    _splits.AVERAGES,
    _bounds.LOCAL_SLOPES,
    _structures.CONV_MATRIX,
    _structures.EMBEDDING_GRADIENT,
    _counts.recompute(),
    _counts.budget(),
    _bounds.FUSED_TIME,
    Explain("scale-theorems"),
    Explain("scale-structure"),
]
