"""A dense layer with ReLU in NumPy: the ways that the package itself measures, beside the other libraries."""

from denselayer._ways import (
    backward_products,
    fused_backward,
    fused_forward,
    in_place,
    in_place_backward,
    plain,
    plain_backward,
    product,
)

__all__ = [
    "backward_products",
    "fused_backward",
    "fused_forward",
    "in_place",
    "in_place_backward",
    "plain",
    "plain_backward",
    "product",
]
