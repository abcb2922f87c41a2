"""Initial values for parameters, filled in place.

``rng`` is None (fresh entropy), an int seed, or a ``numpy.random.Generator``; two layers seeded with the same
int get the same numbers, so pass one Generator to both. A weight has shape (out_features, in_features);
TypeError for anything else than a Parameter. With no inputs there is nothing to scale by: the values are 0.

Independent weights of mean 0 and variance v make the mean square of a pre-activation ``in_features * v``
times that of the inputs, and the mean square of an input's gradient ``out_features * v`` times that of the
upstream gradient. The variances here keep one of the two, or a compromise.

Equation: eq-init-forward.
Equation: eq-init-backward.
"""

import math

import numpy as np

from ._validate import complaint, count, describe
from .parameter import require_parameter


def generator(where, rng):
    """Return a ``numpy.random.Generator`` made from ``rng``."""
    if isinstance(rng, np.random.Generator):
        return rng
    if rng is None or (isinstance(rng, int | np.integer) and not isinstance(rng, bool) and rng >= 0):
        return np.random.default_rng(rng)
    expected = "None, a seed (an int, 0 or more) or a numpy.random.Generator"
    raise TypeError(
        complaint(where, f"rng is {describe(rng)}", expected, "Pass np.random.default_rng(seed).")
    )


def _weight(where, param):
    require_parameter(where, "param", param)
    if len(param.shape) != 2:
        came = f"param has shape {param.shape}"
        raise ValueError(complaint(where, came, "(out_features, in_features)", "Pass layer.weight."))
    return param


def he_(param, rng=None):
    """Fill a weight from a normal distribution with standard deviation ``sqrt(2 / in_features)``.

    Source:
        K. He, X. Zhang, S. Ren, J. Sun, "Delving deep into rectifiers", ICCV 2015.

    Notes:
        Equation: eq-init-he.

    >>> from denselayer.nn import Parameter
    >>> param = Parameter(np.zeros((400, 50)))
    >>> he_(param, 0)
    >>> round(float(param.data.std()), 2)
    0.2
    """
    _, fan_in = _weight("he_", param).shape
    deviation = math.sqrt(2 / fan_in) if fan_in else 0.0
    param.data[...] = generator("he_", rng).normal(0.0, deviation, param.shape)


def xavier_(param, rng=None):
    """Fill a weight uniformly within ``sqrt(6 / (in_features + out_features))`` of 0.

    Source:
        X. Glorot, Y. Bengio, "Understanding the difficulty of training deep feedforward neural networks",
        AISTATS 2010.

    Notes:
        Equation: eq-init-xavier.

    >>> from denselayer.nn import Parameter
    >>> param = Parameter(np.zeros((3, 3)))
    >>> xavier_(param, 0)
    >>> bool(np.all(np.abs(param.data) <= 1))
    True
    """
    fan_out, fan_in = _weight("xavier_", param).shape
    bound = math.sqrt(6 / (fan_in + fan_out)) if fan_in + fan_out else 0.0
    param.data[...] = generator("xavier_", rng).uniform(-bound, bound, param.shape)


def pytorch_default_(param, rng=None, *, in_features=None):
    """Fill a weight or bias uniformly within ``1 / sqrt(in_features)`` of 0, as ``torch.nn.Linear`` does.

    Args:
        param: a weight (out_features, in_features), or a bias (out_features,).
        rng: see the module.
        in_features: needed for a bias, whose shape does not tell it.

    Source:
        PyTorch's ``kaiming_uniform_(a=sqrt(5))``, whose bound is ``sqrt(6 / ((1 + 5) * in_features))``.

    >>> from denselayer.nn import Parameter
    >>> param = Parameter(np.zeros((3, 16)))
    >>> pytorch_default_(param, 0)
    >>> bool(np.all(np.abs(param.data) <= 0.25))
    True
    """
    if in_features is None:
        fan_in = _weight("pytorch_default_", param).shape[1]
    else:
        require_parameter("pytorch_default_", "param", param)
        fan_in = count("pytorch_default_", "in_features", in_features)
    bound = 1 / math.sqrt(fan_in) if fan_in else 0.0
    param.data[...] = generator("pytorch_default_", rng).uniform(-bound, bound, param.shape)
