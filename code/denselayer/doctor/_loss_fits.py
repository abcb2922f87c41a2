"""Explains an array as a known one times powers of the batch size and of the width, exactly or not at all."""

from dataclasses import dataclass
from itertools import product

import numpy as np

EXPONENTS = sorted(product(range(-2, 3), repeat=2), key=lambda pair: abs(pair[0]) + abs(pair[1]))
ROUGH = 20
"""How much looser than the comparison of two numbers the comparison of two fits is."""


@dataclass(frozen=True)
class Fit:
    """``constant * N**samples * C**width``: what stands in front of a known gradient."""

    constant: float
    samples: int = 0
    width: int = 0

    def relative_to(self, other):
        """This factor in units of another one."""
        constant = self.constant / other.constant
        return Fit(constant, self.samples - other.samples, self.width - other.width)

    def at(self, n, classes):
        """The factor for a batch of n and a width."""
        return self.constant * n**self.samples * classes**self.width

    def is_one(self, rtol):
        return not self.samples and not self.width and abs(self.constant - 1) <= rtol


def fit(arrays, patterns, tolerances, sizes):
    """Find a Fit with ``array = fit * pattern`` in all probes, or None. NaN entries are not compared."""
    factors, kept, rtol = [], [], 0.0
    for array, pattern, tolerance, size in zip(arrays, patterns, tolerances, sizes, strict=True):
        keep = np.isfinite(array) & np.isfinite(pattern)
        a, p = array[keep], pattern[keep]
        if not a.any() and not p.any():
            continue
        factor = float(a @ p / (p @ p)) if p.any() else 0.0
        if not factor or np.abs(a - factor * p).max() > tolerance:
            return None
        factors.append(factor)
        kept.append(size)
        rtol = max(rtol, ROUGH * tolerance / np.abs(a).max())
    return _powers(np.array(factors), kept, min(rtol, 0.05)) if factors else None


def _powers(factors, sizes, rtol):
    n, width = np.array(sizes, dtype=float).T
    for samples, wide in EXPONENTS:
        constants = factors / (n**samples * width**wide)
        if np.ptp(constants) <= rtol * np.abs(constants).max():
            return Fit(_round(float(constants.mean()), rtol), samples, wide)
    return None


def _round(number, rtol):
    """Take the plain number that lies within the tolerance, if there is one."""
    for decimals in range(5):
        plain = round(number, decimals)
        if plain and abs(number - plain) <= rtol * abs(number):
            return plain
    return number
