"""Activations, elementwise and of any shape, each with its backward pass.

Every function takes the pre-activation ``z`` and returns an array of its shape and dtype (a NumPy scalar for
shape ``()``). Every ``<name>_backward(d_out, z)`` returns ``d_out * f'(z)``, the gradient with respect to
``z``. Numbers are without unit. All raise TypeError for anything but float32 or float64 arrays, and
ValueError where ``d_out`` and ``z`` differ in shape. NaN passes through, and no input is changed.

Equation: eq-activation-backward.
"""

import numpy as np

from ._special import normal_cdf, normal_pdf
from ._validate import FLOAT64, choice, float_array, number, quiet, upstream

_SQRT_TWO_OVER_PI = 0.7978845608028654
_GELU_CUBIC = 0.044715
_GELU_KINDS = ("none", "tanh")


def _pair(where, d_out, z):
    z = float_array(where, "z", z)
    return upstream(where, "z", z, d_out), z


def identity(z):
    """Return a copy of ``z``: the activation that is none.

    Args:
        z: array of any shape, float32 or float64.

    Source:
        Definition.

    >>> identity(np.array([-1.0, 2.0]))
    array([-1.,  2.])
    """
    return float_array("identity", "z", z).copy()[()]


def identity_backward(d_out, z):
    """Gradient of the identity: a copy of ``d_out``.

    Args:
        d_out: gradient with respect to the output, same shape and dtype as ``z``.
        z: array of any shape, float32 or float64.

    >>> identity_backward(np.array([3.0]), np.array([-1.0]))
    array([3.])
    """
    d_out, _ = _pair("identity_backward", d_out, z)
    return d_out.copy()[()]


@quiet
def relu(z):
    """Rectified linear unit, the larger of ``z`` and 0.

    Args:
        z: array of any shape, float32 or float64.

    Source:
        X. Glorot, A. Bordes, Y. Bengio, "Deep sparse rectifier neural networks", AISTATS 2011.

    Notes:
        Equation: eq-relu.
        NaN stays NaN, as in PyTorch.

    >>> relu(np.array([2.0, 1.5, -1.5]))
    array([2. , 1.5, 0. ])
    """
    return np.maximum(float_array("relu", "z", z), 0)


def relu_backward(d_out, z):
    """Gradient of ReLU: ``d_out`` where ``z > 0``, else 0.

    Args:
        d_out: gradient with respect to the output, same shape and dtype as ``z``.
        z: pre-activation, any shape, float32 or float64.

    Source:
        PyTorch takes the slope 0 at ``z == 0`` and lets ``d_out`` through where ``z`` is NaN; so does this.

    Notes:
        Equation: eq-relu-backward.

    >>> relu_backward(np.array([1.0, 1.0, 1.0]), np.array([2.0, 0.0, -1.5]))
    array([1., 0., 0.])
    """
    d_out, z = _pair("relu_backward", d_out, z)
    return np.where(z <= 0, z.dtype.type(0), d_out)[()]


@quiet
def leaky_relu(z, negative_slope=0.01):
    """ReLU that keeps a small slope on the negative side.

    Args:
        z: array of any shape, float32 or float64.
        negative_slope: factor for ``z <= 0``.

    Source:
        A. Maas, A. Hannun, A. Ng, "Rectifier nonlinearities improve neural network acoustic models", ICML
        2013.

    Notes:
        Equation: eq-leaky-relu.

    >>> leaky_relu(np.array([2.0, -3.0]))
    array([ 2.  , -0.03])
    """
    z = float_array("leaky_relu", "z", z)
    slope = number("leaky_relu", "negative_slope", negative_slope)
    return np.where(z > 0, z, z * slope)[()]


@quiet
def leaky_relu_backward(d_out, z, negative_slope=0.01):
    """Gradient of leaky ReLU: ``d_out`` where ``z > 0``, else ``negative_slope * d_out``.

    Args:
        d_out: gradient with respect to the output, same shape and dtype as ``z``.
        z: pre-activation, any shape, float32 or float64.
        negative_slope: factor for ``z <= 0``.

    >>> leaky_relu_backward(np.array([1.0, 1.0]), np.array([2.0, -3.0]))
    array([1.  , 0.01])
    """
    d_out, z = _pair("leaky_relu_backward", d_out, z)
    slope = number("leaky_relu_backward", "negative_slope", negative_slope)
    return np.where(z > 0, d_out, d_out * slope)[()]


def _sigmoid(z):
    e = np.exp(-np.abs(z))
    return np.where(z < 0, e, z.dtype.type(1)) / (1 + e)


def _sigmoid_slope(z):
    e = np.exp(-np.abs(z))
    return e / ((1 + e) * (1 + e))


@quiet
def sigmoid(z):
    """Logistic function ``1 / (1 + exp(-z))``, right in both tails.

    Args:
        z: array of any shape, float32 or float64.

    Source:
        Logistic function; only ``exp`` of a number that is not positive is taken, so nothing overflows.

    Notes:
        Equation: eq-sigmoid.

    >>> sigmoid(np.array([0.0, -800.0]))
    array([0.5, 0. ])
    """
    return _sigmoid(float_array("sigmoid", "z", z))[()]


@quiet
def sigmoid_backward(d_out, z):
    """Gradient of the sigmoid, ``d_out * s(z) * s(-z)``.

    Args:
        d_out: gradient with respect to the output, same shape and dtype as ``z``.
        z: pre-activation, any shape, float32 or float64.

    Notes:
        Equation: eq-sigmoid-slope.
        ``s * (1 - s)`` would lose its digits where ``s`` is near 1; the form used here does not.

    >>> sigmoid_backward(np.array([1.0]), np.array([0.0]))
    array([0.25])
    """
    d_out, z = _pair("sigmoid_backward", d_out, z)
    return (d_out * _sigmoid_slope(z))[()]


@quiet
def tanh(z):
    """Hyperbolic tangent.

    Args:
        z: array of any shape, float32 or float64.

    Source:
        ``numpy.tanh``.

    Notes:
        Equation: eq-tanh.

    >>> tanh(np.array([0.0, 100.0]))
    array([0., 1.])
    """
    return np.tanh(float_array("tanh", "z", z))[()]


@quiet
def tanh_backward(d_out, z):
    """Gradient of tanh, ``d_out / cosh(z)**2``.

    Args:
        d_out: gradient with respect to the output, same shape and dtype as ``z``.
        z: pre-activation, any shape, float32 or float64.

    Notes:
        Equation: eq-tanh-slope.
        Computed as ``4 e / (1 + e)**2`` with ``e = exp(-2 |z|)``, since ``1 - tanh(z)**2`` loses its digits
        in the tails.

    >>> tanh_backward(np.array([2.0]), np.array([0.0]))
    array([2.])
    """
    d_out, z = _pair("tanh_backward", d_out, z)
    return (d_out * (4 * _sigmoid_slope(2 * z)))[()]


@quiet
def silu(z):
    """Sigmoid linear unit ``z * sigmoid(z)``, also called swish.

    Args:
        z: array of any shape, float32 or float64.

    Source:
        S. Elfwing, E. Uchibe, K. Doya, "Sigmoid-weighted linear units", Neural Networks 107 (2018), 3-11.

    Notes:
        Equation: eq-silu.

    >>> silu(np.array([0.0, 50.0]))
    array([ 0., 50.])
    """
    z = float_array("silu", "z", z)
    return (z * _sigmoid(z))[()]


@quiet
def silu_backward(d_out, z):
    """Gradient of SiLU, ``d_out * (s + z * s * (1 - s))`` with ``s = sigmoid(z)``.

    Args:
        d_out: gradient with respect to the output, same shape and dtype as ``z``.
        z: pre-activation, any shape, float32 or float64.

    Notes:
        Equation: eq-silu-slope.

    >>> silu_backward(np.array([1.0]), np.array([0.0]))
    array([0.5])
    """
    d_out, z = _pair("silu_backward", d_out, z)
    return (d_out * (_sigmoid(z) + z * _sigmoid_slope(z)))[()]


def _softplus_arguments(where, beta, threshold):
    return number(where, "beta", beta, above=0), number(where, "threshold", threshold)


@quiet
def softplus(z, beta=1.0, threshold=20.0):
    """Smooth ReLU, ``log(1 + exp(beta * z)) / beta``.

    Args:
        z: array of any shape, float32 or float64.
        beta: sharpness, greater than 0.
        threshold: where ``beta * z`` is larger, ``z`` itself is returned, as in PyTorch.

    Source:
        C. Dugas et al., "Incorporating second-order functional knowledge for better option pricing", NIPS
        2000.

    Notes:
        Equation: eq-softplus.

    >>> np.round(softplus(np.array([0.0, 100.0])), 4)
    array([  0.6931, 100.    ])
    """
    z = float_array("softplus", "z", z)
    beta, threshold = _softplus_arguments("softplus", beta, threshold)
    scaled = beta * z
    smooth = (np.maximum(scaled, 0) + np.log1p(np.exp(-np.abs(scaled)))) / beta
    return np.where(scaled > threshold, z, smooth)[()]


@quiet
def softplus_backward(d_out, z, beta=1.0, threshold=20.0):
    """Gradient of softplus, ``d_out * sigmoid(beta * z)``; ``d_out`` itself beyond the threshold.

    Args:
        d_out: gradient with respect to the output, same shape and dtype as ``z``.
        z: pre-activation, any shape, float32 or float64.
        beta, threshold: as in :func:`softplus`.

    Notes:
        Equation: eq-softplus-slope.

    >>> softplus_backward(np.array([1.0]), np.array([0.0]))
    array([0.5])
    """
    d_out, z = _pair("softplus_backward", d_out, z)
    beta, threshold = _softplus_arguments("softplus_backward", beta, threshold)
    scaled = beta * z
    return np.where(scaled > threshold, d_out, d_out * _sigmoid(scaled))[()]


@quiet
def gelu(z, approximate="none"):
    """Gaussian error linear unit, ``z * P(standard normal <= z)``.

    Args:
        z: array of any shape, float32 or float64.
        approximate: ``"none"`` for the exact function, ``"tanh"`` for the approximation that many models use.

    Source:
        D. Hendrycks, K. Gimpel, "Gaussian error linear units (GELUs)", 2016, arXiv:1606.08415.

    Notes:
        Equation: eq-gelu.
        Equation: eq-gelu-tanh.
        The exact function is right in the lower tail too, where ``1 + erf`` would cancel. float32 is computed
        in float64 and rounded once.

    >>> np.round(gelu(np.array([-1.0, 0.0, 1.0])), 4)
    array([-0.1587,  0.    ,  0.8413])
    >>> np.round(gelu(np.array([-1.0, 0.0, 1.0]), approximate="tanh"), 4)
    array([-0.1588,  0.    ,  0.8412])
    """
    z = float_array("gelu", "z", z)
    if choice("gelu", "approximate", approximate, _GELU_KINDS) == "tanh":
        inner, _ = _gelu_tanh_argument(z)
        return (z * _sigmoid(inner))[()]
    wide = z.astype(FLOAT64, copy=False)
    return (wide * normal_cdf(wide)).astype(z.dtype, copy=False)[()]


def _gelu_tanh_argument(z):
    """Argument of the sigmoid, and its derivative: ``(1 + tanh(u)) / 2`` is ``sigmoid(2 u)``."""
    bounded = np.clip(z, -100, 100)
    square = bounded * bounded
    inner = (2 * _SQRT_TWO_OVER_PI) * (bounded + _GELU_CUBIC * (square * bounded))
    return inner, (2 * _SQRT_TWO_OVER_PI) * (1 + (3 * _GELU_CUBIC) * square)


@quiet
def gelu_backward(d_out, z, approximate="none"):
    """Gradient of GELU, ``d_out * (cdf(z) + z * pdf(z))`` for the exact function.

    Args:
        d_out: gradient with respect to the output, same shape and dtype as ``z``.
        z: pre-activation, any shape, float32 or float64.
        approximate: as in :func:`gelu`.

    Notes:
        Equation: eq-gelu-slope.
        Equation: eq-gelu-tanh-slope.

    >>> gelu_backward(np.array([1.0]), np.array([0.0]))
    array([0.5])
    """
    d_out, z = _pair("gelu_backward", d_out, z)
    if choice("gelu_backward", "approximate", approximate, _GELU_KINDS) == "tanh":
        inner, slope = _gelu_tanh_argument(z)
        return (d_out * (_sigmoid(inner) + z * (_sigmoid_slope(inner) * slope)))[()]
    wide = z.astype(FLOAT64, copy=False)
    return (d_out * (normal_cdf(wide) + wide * normal_pdf(wide))).astype(z.dtype, copy=False)[()]
