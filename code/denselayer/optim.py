"""Optimisers: the only place where parameters change, in place and step for step as in PyTorch."""

import math
from collections.abc import Iterable

import numpy as np

from ._validate import complaint, describe, number
from .parameter import require_parameter


class _Optimizer:
    """Keeps the parameters; a step updates those that have a gradient and skips the others."""

    def __init__(self, params):
        name = type(self).__name__
        advice = "Pass module.parameters(), and a single Parameter as [parameter]."
        if not isinstance(params, Iterable) or isinstance(params, np.ndarray | dict | str):
            raise TypeError(complaint(name, f"params is {describe(params)}", "a list of Parameters", advice))
        self.params = list(params)
        for position, parameter in enumerate(self.params):
            require_parameter(name, f"params[{position}]", parameter)
        if not self.params:
            raise ValueError(complaint(name, "params is empty", "at least one Parameter", advice))
        if len({id(parameter) for parameter in self.params}) != len(self.params):
            expected = "each once, or it would be updated twice"
            raise ValueError(complaint(name, "a Parameter stands twice in params", expected, advice))
        self._state = [{} for _ in self.params]

    def zero_grad(self):
        """Forget the gradients of all parameters."""
        for parameter in self.params:
            parameter.zero_grad()

    def step(self):
        """Update every parameter that has a gradient, in place."""
        with np.errstate(all="ignore"):
            for parameter, state in zip(self.params, self._state, strict=True):
                if parameter.grad is not None:
                    self._update(parameter.data, parameter.grad, state)


class SGD(_Optimizer):
    """Gradient descent, ``data -= lr * grad``, with momentum, Nesterov's variant and weight decay.

    Args:
        params: the Parameters, such as ``module.parameters()``.
        lr: learning rate, 0 or more.
        momentum: factor of the running sum of gradients, 0 or more.
        dampening: part of the new gradient that does not enter the running sum.
        weight_decay: adds ``weight_decay * data`` to the gradient.
        nesterov: look one step ahead; needs momentum and no dampening.

    Raises:
        ValueError: a hyperparameter out of range, no parameters, or one twice.
        TypeError: something else than Parameters.

    Source:
        ``torch.optim.SGD``; B. Polyak, "Some methods of speeding up the convergence of iteration methods",
        1964; I. Sutskever et al., "On the importance of initialization and momentum in deep learning", ICML
        2013.

    Notes:
        Equation: eq-sgd.
        Equation: eq-train-momentum. Equation: eq-train-nesterov. Equation: eq-train-weight-decay.
        The first step with momentum takes the whole gradient, without dampening, as PyTorch does.

    >>> from denselayer import nn
    >>> weight = nn.Parameter(np.array([1.0, 2.0]))
    >>> weight.grad = np.array([0.5, -1.0])
    >>> SGD([weight], lr=0.1).step()
    >>> weight.data
    array([0.95, 2.1 ])
    """

    def __init__(self, params, lr, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False):
        super().__init__(params)
        self.lr = number("SGD", "lr", lr, low=0)
        self.momentum = number("SGD", "momentum", momentum, low=0)
        self.dampening = number("SGD", "dampening", dampening)
        self.weight_decay = number("SGD", "weight_decay", weight_decay, low=0)
        self.nesterov = bool(nesterov)
        if self.nesterov and (self.momentum == 0 or self.dampening != 0):
            came = f"nesterov came with momentum {self.momentum:g} and dampening {self.dampening:g}"
            advice = "Set momentum=0.9, dampening=0."
            raise ValueError(complaint("SGD", came, "momentum > 0 and dampening 0", advice))

    def _update(self, data, grad, state):
        if self.weight_decay:
            grad = grad + self.weight_decay * data
        if self.momentum:
            if "momentum" not in state:
                state["momentum"] = grad.copy()
            else:
                state["momentum"] *= self.momentum
                state["momentum"] += (1 - self.dampening) * grad
            grad = grad + self.momentum * state["momentum"] if self.nesterov else state["momentum"]
        data -= self.lr * grad


class Adam(_Optimizer):
    """Steps scaled by running means of the gradient and of its square.

    Args:
        params: the Parameters, such as ``module.parameters()``.
        lr: learning rate, 0 or more.
        betas: factors of the two running means, each in [0, 1).
        eps: added to the root of the mean square, after bias correction.
        weight_decay: adds ``weight_decay * data`` to the gradient.

    Raises:
        ValueError: a hyperparameter out of range, no parameters, or one twice.
        TypeError: something else than Parameters.

    Source:
        D. Kingma, J. Ba, "Adam: a method for stochastic optimization", ICLR 2015; ``torch.optim.Adam``.

    Notes:
        Equation: eq-train-adam.

    >>> from denselayer import nn
    >>> weight = nn.Parameter(np.array([1.0, 2.0]))
    >>> weight.grad = np.array([0.5, -1.0])
    >>> Adam([weight], lr=0.1).step()
    >>> np.round(weight.data, 6)
    array([0.9, 2.1])
    """

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
        super().__init__(params)
        self.lr = number("Adam", "lr", lr, low=0)
        if not isinstance(betas, tuple | list) or len(betas) != 2:
            raise ValueError(
                complaint("Adam", f"betas is {betas!r}", "two numbers", "Pass betas=(0.9, 0.999).")
            )
        self.betas = tuple(
            number("Adam", f"betas[{i}]", beta, low=0, below=1) for i, beta in enumerate(betas)
        )
        self.eps = number("Adam", "eps", eps, low=0)
        self.weight_decay = number("Adam", "weight_decay", weight_decay, low=0)

    def _update(self, data, grad, state):
        if not state:
            state.update(step=0, mean=np.zeros_like(data), square=np.zeros_like(data))
        state["step"] += 1
        beta1, beta2 = self.betas
        if self.weight_decay:
            grad = grad + self.weight_decay * data
        mean, square = state["mean"], state["square"]
        mean[...] = _between(mean, grad, 1 - beta1)
        square *= beta2
        square += (1 - beta2) * (grad * grad)
        root = np.sqrt(square) / math.sqrt(1 - beta2 ** state["step"]) + self.eps
        data -= (self.lr / (1 - beta1 ** state["step"])) * (mean / root)


def _between(start, end, weight):
    """Point between start and end, reckoned from the nearer one, so that weight 1 is exactly the end."""
    way = end - start
    return start + weight * way if weight < 0.5 else end - (1 - weight) * way
