"""The error function and its relatives, in NumPy alone, to a few units in the last place.

Coefficients: W. J. Cody, "Rational Chebyshev approximations for the error function", Mathematics of
Computation 23 (1969), 631-637. The three ranges are |z| <= 0.46875, up to 4, and beyond.
"""

import numpy as np

_SMALL_P = (
    1.85777706184603153e-1,
    3.16112374387056560,
    1.13864154151050156e2,
    3.77485237685302021e2,
    3.20937758913846947e3,
)
_SMALL_Q = (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3, 2.84423683343917062e3)
_MIDDLE_P = (
    2.15311535474403846e-8,
    5.64188496988670089e-1,
    8.88314979438837594,
    6.61191906371416295e1,
    2.98635138197400131e2,
    8.81952221241769090e2,
    1.71204761263407058e3,
    2.05107837782607147e3,
    1.23033935479799725e3,
)
_MIDDLE_Q = (
    1.0,
    1.57449261107098347e1,
    1.17693950891312499e2,
    5.37181101862009858e2,
    1.62138957456669019e3,
    3.29079923573345963e3,
    4.36261909014324716e3,
    3.43936767414372164e3,
    1.23033935480374942e3,
)
_LARGE_P = (
    1.63153871373020978e-2,
    3.05326634961232344e-1,
    3.60344899949804439e-1,
    1.25781726111229246e-1,
    1.60837851487422766e-2,
    6.58749161529837803e-4,
)
_LARGE_Q = (
    1.0,
    2.56852019228982242,
    1.87295284992346725,
    5.27905102951428412e-1,
    6.05183413124413191e-2,
    2.33520497626869185e-3,
)
_SQRT_HALF = 0.7071067811865476
_INV_SQRT_PI = 0.5641895835477563
_INV_SQRT_TWO_PI = 0.3989422804014327
_UNDERFLOW = 40.0


def _ratio(numerator, denominator, t):
    top = np.full_like(t, numerator[0])
    bottom = np.full_like(t, denominator[0])
    for p, q in zip(numerator[1:], denominator[1:], strict=True):
        top *= t
        top += p
        bottom *= t
        bottom += q
    top /= bottom
    return top


def _erf_small(z):
    return z * _ratio(_SMALL_P, _SMALL_Q, z * z)


def _erfcx(z):
    """exp(z^2) * erfc(z) for z > 0.46875: smooth, never tiny, so its relative error stays small."""
    result = _ratio(_MIDDLE_P, _MIDDLE_Q, np.minimum(z, 4.0))
    far = z > 4.0
    if far.any():
        w = z[far]
        t = 1.0 / (w * w)
        result[far] = (_INV_SQRT_PI - t * _ratio(_LARGE_P, _LARGE_Q, t)) / w
    return result


def _gauss(x):
    """exp(-x^2 / 2) without the rounding error of x^2, which the exponential would magnify."""
    x = np.minimum(np.abs(x), _UNDERFLOW)
    head = np.trunc(x * 16.0) / 16.0
    return np.exp(-0.5 * head * head) * np.exp(-0.5 * (x - head) * (x + head))


def normal_cdf(x):
    """P(standard normal variable <= x) of a float64 array, right in both tails."""
    x = np.asarray(x)
    z = np.minimum(np.abs(x), _UNDERFLOW) * _SQRT_HALF
    result = np.empty_like(x, subok=False)
    inner = z <= 0.46875
    result[inner] = 0.5 + 0.5 * _erf_small(x[inner] * _SQRT_HALF)
    outer = ~inner
    tail = 0.5 * _gauss(x[outer]) * _erfcx(z[outer])
    result[outer] = np.where(x[outer] > 0.0, 1.0 - tail, tail)
    return result


def normal_pdf(x):
    """Density of the standard normal distribution of a float64 array."""
    return _INV_SQRT_TWO_PI * _gauss(x)


def erf(z):
    """Error function of a float64 array."""
    z = np.asarray(z)
    magnitude = np.minimum(np.abs(z), 6.0)
    result = np.empty_like(z, subok=False)
    inner = magnitude <= 0.46875
    result[inner] = _erf_small(z[inner])
    outer = ~inner
    w = magnitude[outer]
    result[outer] = np.copysign(1.0 - np.exp(-w * w) * _erfcx(w), z[outer])
    return result
