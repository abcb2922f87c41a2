"""Layers, networks and losses as objects that keep what the backward pass needs.

Forward computes, backward computes gradients, and the optimiser alone changes parameters. Shapes, units and
errors are those of the function of the same name in ``functional``.
"""

import numpy as np

from . import functional as F
from ._validate import REDUCTIONS, choice, complaint, count, describe, float_array, float_dtype
from .init import generator, he_, pytorch_default_, xavier_
from .module import IncompatibleKeys, Module
from .parameter import Parameter

__all__ = [
    "GELU",
    "BCEWithLogitsLoss",
    "CrossEntropyLoss",
    "Identity",
    "IncompatibleKeys",
    "LeakyReLU",
    "Linear",
    "MSELoss",
    "Module",
    "Parameter",
    "ReLU",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "Softplus",
    "Tanh",
    "he_",
    "pytorch_default_",
    "xavier_",
]

_INITS = ("pytorch", "he", "xavier", "zeros")


class Linear(Module):
    """Dense layer, ``x @ weight.T + bias``.

    Args:
        in_features, out_features: widths, 0 or more.
        bias: False for a layer without one.
        init: ``"pytorch"`` (weight and bias uniform), ``"he"``, ``"xavier"`` (bias zero), or ``"zeros"``.
        rng: None, an int seed, or a ``numpy.random.Generator`` (pass one Generator to all layers).
        dtype: float32 or float64.
        input_gradient: False for the bottom layer, whose ``backward`` then returns None.

    Attributes:
        weight: Parameter (out_features, in_features).
        bias: Parameter (out_features,) or None.

    Source:
        ``torch.nn.Linear``.

    >>> layer = Linear(3, 2, rng=0)
    >>> layer.weight.shape, layer.bias.shape, layer.parameter_count()
    ((2, 3), (2,), 8)
    >>> layer(np.ones((5, 3))).shape
    (5, 2)
    >>> layer.backward(np.ones((5, 2))).shape, layer.weight.grad.shape
    ((5, 3), (2, 3))
    """

    def __init__(
        self,
        in_features,
        out_features,
        bias=True,
        *,
        init="pytorch",
        rng=None,
        dtype=np.float64,
        input_gradient=True,
    ):
        self.in_features = count("Linear", "in_features", in_features)
        self.out_features = count("Linear", "out_features", out_features)
        self.input_gradient = bool(input_gradient)
        dtype = float_dtype("Linear", dtype)
        choice("Linear", "init", init, _INITS)
        rng = generator("Linear", rng)
        self.weight = Parameter(np.zeros((self.out_features, self.in_features), dtype))
        self.bias = Parameter(np.zeros(self.out_features, dtype)) if bias else None
        if init != "zeros":
            {"pytorch": pytorch_default_, "he": he_, "xavier": xavier_}[init](self.weight, rng)
        if init == "pytorch" and bias:
            pytorch_default_(self.bias, rng, in_features=self.in_features)

    @classmethod
    def from_arrays(cls, weight, bias=None, *, input_gradient=True):
        """Make a layer with copies of weight (out_features, in_features) and bias (out_features,) or None."""
        weight = float_array("Linear.from_arrays", "weight", weight)
        F.linear(np.zeros((0, weight.shape[-1] if weight.ndim else 0), weight.dtype), weight, bias)
        layer = cls(
            weight.shape[1],
            weight.shape[0],
            bias is not None,
            init="zeros",
            dtype=weight.dtype,
            input_gradient=input_gradient,
        )
        layer.weight.data = weight
        if bias is not None:
            layer.bias.data = bias
        return layer

    def forward(self, x):
        """Return (..., out_features) for x (..., in_features)."""
        out = F.linear(x, self.weight.data, None if self.bias is None else self.bias.data)
        self._kept = x
        return out

    def backward(self, d_out):
        """Add to the gradients of weight and bias; return the gradient with respect to x, or None."""
        gradients = F.linear_backward(
            d_out, self._saved(), self.weight.data, input_gradient=self.input_gradient
        )
        self.weight.accumulate(gradients.d_weight)
        if self.bias is not None:
            self.bias.accumulate(gradients.d_bias)
        return gradients.d_x

    def __repr__(self):
        sizes = f"in_features={self.in_features}, out_features={self.out_features}"
        return f"Linear({sizes}, bias={self.bias is not None})"


class _Activation(Module):
    """An activation that is a function of ``functional`` with fixed options."""

    _forward = None
    _backward = None

    def __init__(self, **options):
        self._options = options
        self.forward(np.zeros(0))
        del self._kept

    def forward(self, z):
        """Return the activation of z, any shape."""
        out = type(self)._forward(z, **self._options)
        self._kept = z
        return out

    def backward(self, d_out):
        """Return the gradient with respect to z."""
        return type(self)._backward(d_out, self._saved(), **self._options)

    def __repr__(self):
        options = ", ".join(f"{name}={value!r}" for name, value in self._options.items())
        return f"{type(self).__name__}({options})"


class Identity(_Activation):
    """No activation. See :func:`functional.identity`.

    >>> Identity()(np.array([-1.0]))
    array([-1.])
    """

    _forward = staticmethod(F.identity)
    _backward = staticmethod(F.identity_backward)

    def __init__(self):
        super().__init__()


class ReLU(_Activation):
    """The larger of z and 0. See :func:`functional.relu`.

    >>> ReLU()(np.array([-1.0, 2.0]))
    array([0., 2.])
    """

    _forward = staticmethod(F.relu)
    _backward = staticmethod(F.relu_backward)

    def __init__(self):
        super().__init__()


class LeakyReLU(_Activation):
    """ReLU with a slope on the negative side. See :func:`functional.leaky_relu`.

    >>> LeakyReLU(0.5)(np.array([-1.0, 2.0]))
    array([-0.5,  2. ])
    """

    _forward = staticmethod(F.leaky_relu)
    _backward = staticmethod(F.leaky_relu_backward)

    def __init__(self, negative_slope=0.01):
        super().__init__(negative_slope=negative_slope)


class Sigmoid(_Activation):
    """Logistic function. See :func:`functional.sigmoid`.

    >>> Sigmoid()(np.array([0.0]))
    array([0.5])
    """

    _forward = staticmethod(F.sigmoid)
    _backward = staticmethod(F.sigmoid_backward)

    def __init__(self):
        super().__init__()


class Tanh(_Activation):
    """Hyperbolic tangent. See :func:`functional.tanh`.

    >>> Tanh()(np.array([0.0]))
    array([0.])
    """

    _forward = staticmethod(F.tanh)
    _backward = staticmethod(F.tanh_backward)

    def __init__(self):
        super().__init__()


class GELU(_Activation):
    """Gaussian error linear unit. See :func:`functional.gelu`.

    >>> np.round(GELU()(np.array([1.0])), 4)
    array([0.8413])
    """

    _forward = staticmethod(F.gelu)
    _backward = staticmethod(F.gelu_backward)

    def __init__(self, approximate="none"):
        super().__init__(approximate=approximate)


class SiLU(_Activation):
    """Sigmoid linear unit. See :func:`functional.silu`.

    >>> SiLU()(np.array([0.0]))
    array([0.])
    """

    _forward = staticmethod(F.silu)
    _backward = staticmethod(F.silu_backward)

    def __init__(self):
        super().__init__()


class Softplus(_Activation):
    """Smooth ReLU. See :func:`functional.softplus`.

    >>> np.round(Softplus()(np.array([0.0])), 4)
    array([0.6931])
    """

    _forward = staticmethod(F.softplus)
    _backward = staticmethod(F.softplus_backward)

    def __init__(self, beta=1.0, threshold=20.0):
        super().__init__(beta=beta, threshold=threshold)


class Sequential(Module):
    """Modules in a row; parameters are named by position, such as ``"0.weight"``.

    Args:
        modules: the modules, first to last. One object may stand only once, since it keeps one input; to tie
            weights, give two layers the same Parameter.

    Source:
        ``torch.nn.Sequential``.

    >>> net = Sequential(Linear(3, 4, rng=0), ReLU(), Linear(4, 2, rng=1))
    >>> net(np.ones((5, 3))).shape
    (5, 2)
    >>> [name for name, _ in net.named_parameters()]
    ['0.weight', '0.bias', '2.weight', '2.bias']
    """

    def __init__(self, *modules):
        for position, module in enumerate(modules):
            if not isinstance(module, Module):
                advice = "Pass the modules one by one: Sequential(*modules)."
                came = f"item {position} is {describe(module)}"
                raise TypeError(complaint("Sequential", came, "a Module", advice))
        self._modules = list(modules)
        every = [id(module) for module in self.modules()]
        if len(set(every)) != len(every):
            expected = "different objects, since a module keeps the input of one forward pass"
            advice = "To tie weights, make two layers and set second.weight = first.weight."
            raise ValueError(complaint("Sequential", "one module stands twice", expected, advice))

    def children(self):
        """Yield (position, Module), the position as a string."""
        for position, module in enumerate(self._modules):
            yield str(position), module

    def forward(self, x):
        """Pass x through all modules."""
        for module in self._modules:
            x = module.forward(x)
        self._kept = True
        return x

    def backward(self, d_out):
        """Pass the gradient back, last module to first; return the gradient with respect to x."""
        self._saved()
        for position in reversed(range(len(self._modules))):
            if d_out is None:
                came = f"module {position + 1} returned no input gradient"
                expected = f"one, since module {position} needs it"
                advice = "Only the first module may have input_gradient=False."
                raise RuntimeError(complaint("Sequential.backward", came, expected, advice))
            d_out = self._modules[position].backward(d_out)
        return d_out

    def training_step(self, criterion, optimizer):
        """Return a callable ``step(x, y)`` that trains on one batch and returns its loss, fast where it can.

        Args:
            criterion: a loss module such as :class:`CrossEntropyLoss`.
            optimizer: one of ``optim``, made over ``parameters()``.

        Returns:
            A :class:`denselayer.training_step.TrainingStep`; its numbers are those of the plain loop.

        >>> from denselayer import optim
        >>> net = Sequential(Linear(2, 3, rng=0), ReLU(), Linear(3, 2, rng=1))
        >>> step = net.training_step(CrossEntropyLoss(), optim.SGD(net.parameters(), lr=0.1))
        >>> first = step(np.ones((4, 2)), np.array([0, 0, 0, 1]))
        >>> bool(step(np.ones((4, 2)), np.array([0, 0, 0, 1])) < first), step.fast
        (True, True)
        """
        from .training_step import TrainingStep

        return TrainingStep(self, criterion, optimizer)

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules)

    def __getitem__(self, position):
        return self._modules[position]

    def __repr__(self):
        lines = [f"  ({name}): {module!r}".replace("\n", "\n  ") for name, module in self.children()]
        return "\n".join(["Sequential(", *lines, ")"]) if lines else "Sequential()"


class _Loss(Module):
    """A loss: ``forward(input, target)`` returns it, ``backward()`` the gradient by ``input``."""

    _forward = None
    _backward = None

    def __init__(self, reduction="mean"):
        self.reduction = choice(type(self).__name__, "reduction", reduction, REDUCTIONS)

    def forward(self, input, target):
        """Return the loss."""
        loss = type(self)._forward(input, target, self.reduction)
        self._kept = (input, target)
        return loss

    def backward(self, d_out=1.0):
        """Return the gradient with respect to ``input``, times ``d_out``."""
        return type(self)._backward(*self._saved(), self.reduction, d_out)

    def __repr__(self):
        return f"{type(self).__name__}(reduction={self.reduction!r})"


class MSELoss(_Loss):
    """Mean squared error. See :func:`functional.mse_loss`.

    >>> loss = MSELoss()
    >>> loss(np.array([1.0, 2.0]), np.array([0.0, 4.0])).item()
    2.5
    >>> loss.backward()
    array([ 1., -2.])
    """

    _forward = staticmethod(F.mse_loss)
    _backward = staticmethod(F.mse_loss_backward)


class CrossEntropyLoss(_Loss):
    """Cross-entropy from logits. See :func:`functional.cross_entropy`.

    >>> loss = CrossEntropyLoss()
    >>> round(loss(np.array([[0.0, 0.0]]), np.array([1])).item(), 4)
    0.6931
    >>> loss.backward()
    array([[ 0.5, -0.5]])
    """

    _forward = staticmethod(F.cross_entropy)
    _backward = staticmethod(F.cross_entropy_backward)


class BCEWithLogitsLoss(_Loss):
    """Binary cross-entropy from logits. See :func:`functional.bce_with_logits`.

    >>> loss = BCEWithLogitsLoss()
    >>> round(loss(np.array([0.0]), np.array([1.0])).item(), 4)
    0.6931
    >>> loss.backward()
    array([-0.5])
    """

    _forward = staticmethod(F.bce_with_logits)
    _backward = staticmethod(F.bce_with_logits_backward)
