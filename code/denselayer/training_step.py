"""One step of training on one batch: forward, loss, backward and update, fast where it can."""

from itertools import pairwise
from operator import is_

import numpy as np

from . import nn
from ._step_flat import FlatParameters
from ._step_passes import Memory, Pass, order_of
from ._validate import complaint, describe
from .optim import SGD, Adam

_ACTIVATIONS = (nn.ReLU, nn.LeakyReLU, nn.Sigmoid, nn.Tanh, nn.GELU, nn.SiLU, nn.Softplus, nn.Identity)
_LOSSES = (nn.CrossEntropyLoss, nn.MSELoss, nn.BCEWithLogitsLoss)
_PASSES, _RULES = ("forward", "backward"), ("zero_grad", "step", "_update")
_METHODS = {kind: _PASSES for kind in (nn.Linear, nn.Sequential, *_ACTIVATIONS, *_LOSSES)}
_METHODS |= {SGD: _RULES, Adam: _RULES}
_MOST_PASSES = 16
_NEEDED = {
    "network": (("__call__", "backward"), "a Module"),
    "criterion": (("__call__", "backward"), "a loss, such as nn.MSELoss()"),
    "optimizer": (("zero_grad", "step"), "an optimiser, such as optim.SGD(network.parameters(), lr=0.1)"),
}
_ORIGINAL = {
    kind: [method for name in names for method in (getattr(kind, name), None)]
    for kind, names in _METHODS.items()
}


class TrainingStep:
    """Callable that trains a network on one batch: ``step(x, y)`` returns the loss.

    It does what these five lines do, and gives the same numbers::

        optimizer.zero_grad()
        loss = criterion(network(x), y)
        network.backward(criterion.backward())
        optimizer.step()
        return loss

    The fast path lays all parameters in one buffer and all gradients in another, keeps the arrays of a batch
    size for the next batch of that size, works in place, and updates the whole buffer at once. It is taken
    for a Linear, or a Sequential of Linear and activation modules, with CrossEntropyLoss (class indices),
    MSELoss or BCEWithLogitsLoss. Everything else takes the plain path, as does a batch that is empty or does
    not fit, so that its error is the usual one. What is changed between two steps is noticed: learning rates,
    loaded states, other layers, other methods.

    Args:
        network: a Module.
        criterion: a loss module whose ``reduction`` gives one number.
        optimizer: one of ``optim``, made over ``network.parameters()``.

    Raises:
        TypeError: one of the three lacks the methods that a step calls.

    Attributes:
        fast: whether the latest step took the fast path (before the first: whether that could).
        why: one sentence on the reason.

    Source:
        The loop of PyTorch's tutorials; views of flat buffers, as ``gradient_as_bucket_view`` of its
        DistributedDataParallel has them.

    Notes:
        On the fast path each ``parameter.data`` and ``parameter.grad`` is a view of a buffer. ``data`` is a
        new array as soon as the step is made, and one taken before is no longer the parameter's until
        :meth:`release`. Gradients that somebody still holds are never overwritten. The modules keep nothing
        for a ``backward`` of their own. The bottom layer's input gradient, which nobody would see, is not
        computed.

    >>> from denselayer import nn, optim
    >>> network = nn.Sequential(nn.Linear(2, 8, rng=0), nn.ReLU(), nn.Linear(8, 2, rng=1))
    >>> sgd = optim.SGD(network.parameters(), lr=0.5)
    >>> step = TrainingStep(network, nn.CrossEntropyLoss(), sgd)
    >>> x, y = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([0, 1])
    >>> losses = [float(step(x, y)) for _ in range(20)]
    >>> step.fast, losses[-1] < 0.1 * losses[0]
    (True, True)
    """

    def __init__(self, network, criterion, optimizer):
        _check(network=network, criterion=criterion, optimizer=optimizer)
        self.network, self.criterion, self.optimizer = network, criterion, optimizer
        self._flat = self._pass = None
        self._prepare()

    def __call__(self, x, y):
        """Train on the batch (x, y); return its loss before the update, a NumPy scalar."""
        loss = self.forward(x, y)
        self.update()
        return loss

    def forward(self, x, y):
        """First half of the step: forget the gradients, return the loss of the batch."""
        self._pass = self._find_pass(x, y)
        if self._pass is None:
            self.optimizer.zero_grad()
            return self.criterion(self.network(x), y)
        self._flat.clear_gradients()
        for module in self._modules:
            vars(module).pop("_kept", None)
        with np.errstate(all="ignore"):
            return self._pass.forward(x, y)

    def update(self):
        """Second half of the step: the gradients of the latest :meth:`forward`, and the update."""
        if self._pass is None:
            self.network.backward(self.criterion.backward())
            self.optimizer.step()
            return
        with np.errstate(all="ignore"):
            self._pass.backward()
            self._flat.show_gradients()
            self._flat.update(self.optimizer)
        self._pass = None

    def release(self):
        """Put the parameters back into the arrays that they had before, where somebody still holds these."""
        if self._flat is not None:
            self._flat.release()
        self._flat = self._pass = None
        self._marks = ()

    def __reduce__(self):
        return type(self), (self.network, self.criterion, self.optimizer)

    def __repr__(self):
        return f"TrainingStep({'fast' if self.fast else 'plain'}: {self.why})"

    def _find_pass(self, x, y):
        """The Pass for this batch, or None for the plain path."""
        marks = self._fingerprint()
        if len(marks) != len(self._marks) or not all(map(is_, marks, self._marks)):
            self._prepare()
        if self._obstacle:
            return self._plain(self._obstacle)
        if not self._fits(x):
            return self._plain("the batch is empty, or no array (N, in_features) of the parameters' dtype")
        found = self._passes.get((len(x), x.flags.c_contiguous)) or self._new_pass(x)
        if not found.accepts(y):
            return self._plain("the target is not one that the fast path takes for this loss")
        self.fast, self.why = True, _CLEAR
        return found

    def _plain(self, why):
        self.fast, self.why = False, why

    def _fits(self, x):
        if type(x) is not np.ndarray or x.ndim != 2 or not len(x):
            return False
        return x.shape[1] == self._in_features and x.dtype == self._dtype

    def _prepare(self):
        self.release()
        self._modules = _every_module(self.network, [])
        self._obstacle = _obstacle(self._modules, self.criterion, self.optimizer)
        self.fast, self.why = not self._obstacle, self._obstacle or _CLEAR
        if self.fast:
            self._flat = FlatParameters(list(self.optimizer.params), self.optimizer._state)
            self._in_features = next(filter(_is_linear, self._modules)).in_features
            self._dtype = self._flat.data.dtype
            self._memory, self._passes = Memory(0, self._dtype), {}
        self._marks = self._fingerprint()

    def _new_pass(self, x):
        if len(x) > self._memory.rows:
            self._memory, self._passes = Memory(len(x), self._dtype), {}
        if len(self._passes) == _MOST_PASSES:
            self._passes.clear()
        first, *others = (module for module in self._modules if type(module) is not nn.Sequential)
        chain = [first, *(module for module in others if type(module) is not nn.Identity)]
        by_row = x.flags.c_contiguous
        order = order_of(chain, len(x), self._dtype) if by_row else "C"
        found = Pass(chain, self.criterion, self._flat, self._memory, len(x), order)
        self._passes[len(x), by_row] = found
        return found

    def _fingerprint(self):
        """Everything that the fast path relies on, to be compared by identity."""
        optimizer, criterion = self.optimizer, self.criterion
        marks = [criterion, getattr(criterion, "reduction", None), *getattr(optimizer, "params", ())]
        marks += getattr(optimizer, "_state", ())
        marks += (*_methods(optimizer, *_RULES), *_methods(criterion, *_PASSES))
        for module in _every_module(self.network, []):
            marks.append(module)
            marks += _methods(module, *_PASSES)
            if type(module) is nn.Linear:
                weight, bias = module.weight, module.bias
                marks += (weight, weight.data, bias, bias and bias.data, module.input_gradient)
        return marks


_CLEAR = "all layers, the loss and the optimiser have a fast path"


def _check(**parts):
    for name, part in parts.items():
        methods, example = _NEEDED[name]
        if isinstance(part, type) or not all(callable(getattr(part, method, None)) for method in methods):
            came, expected = f"{name} is {describe(part)}", f"an object with {' and '.join(methods)}"
            raise TypeError(complaint("TrainingStep", came, expected, f"Pass {example}."))


def _every_module(module, found):
    """Add this module and, if it is a Sequential, all below it to the list, first to last."""
    found.append(module)
    if type(module) is nn.Sequential:
        for child in module._modules:
            _every_module(child, found)
    return found


def _is_linear(module):
    return type(module) is nn.Linear


def _has_its_sizes(layer):
    rows = (layer.out_features,)
    return layer.weight.shape == (*rows, layer.in_features) and (not layer.bias or layer.bias.shape == rows)


def _fit_together(layers):
    below, above = layers
    return below.out_features == above.in_features


def _methods(thing, *names):
    """The methods of these names, each as the class has it and as it was set on the object itself."""
    kind, own = type(thing), getattr(thing, "__dict__", {})
    return [method for name in names for method in (getattr(kind, name, None), own.get(name))]


def _is_plain(thing):
    """Whether an object has the methods that its class has in this package."""
    names = _METHODS.get(type(thing))
    return names is not None and _methods(thing, *names) == _ORIGINAL[type(thing)]


def _obstacle(modules, criterion, optimizer):
    """Why the fast path cannot be taken, in a sentence; empty if it can."""
    for thing in (*modules, criterion, optimizer):
        if not _is_plain(thing):
            return f"{type(thing).__name__} has no fast path, or methods of its own"
    if type(criterion) not in _LOSSES or type(optimizer) not in (SGD, Adam):
        return "the loss or the optimiser is none of this package"
    if criterion.reduction == "none":
        return "the reduction 'none' gives no single loss"
    dense = list(filter(_is_linear, modules))
    parameters = [one for layer in dense for one in (layer.weight, layer.bias) if one is not None]
    return _parameter_obstacle(parameters, optimizer.params) or _layer_obstacle(dense, modules)


def _parameter_obstacle(parameters, updated):
    if len(set(map(id, parameters))) != len(parameters):
        return "two layers share a Parameter"
    if set(map(id, parameters)) != set(map(id, updated)):
        return "the optimiser was made over other Parameters than those of the Linear layers"
    if len({parameter.dtype for parameter in parameters}) > 1:
        return "the parameters have two dtypes"
    return "" if all(parameter.size for parameter in parameters) else "a layer has the width 0"


def _layer_obstacle(dense, modules):
    if not (all(map(_has_its_sizes, dense)) and all(map(_fit_together, pairwise(dense)))):
        return "the sizes of the layers, their weights and biases do not fit together"
    if len(set(map(id, modules))) != len(modules):
        return "one module stands twice"
    if not all(layer.input_gradient for layer in dense[1:]):
        return "a layer above the bottom one computes no input gradient"
    return ""
