"""Parameters of a network side by side in one flat buffer, their gradients in another."""

import math
import sys
import weakref
from itertools import pairwise

import numpy as np

from .optim import SGD, Adam

_BLOCK_BYTES = 2**18


class FlatParameters:
    """Moves Parameters into one buffer; their ``data`` and ``grad`` become views of flat arrays.

    Args:
        parameters: different Parameters of one dtype, in the order in which they lie in the buffer.
        states: for each parameter the dict in which the optimiser keeps its running means.

    >>> from denselayer.nn import Linear
    >>> layer = Linear(3, 2, rng=0)
    >>> flat = FlatParameters(list(layer.parameters()), [{}, {}])
    >>> flat.data.shape, layer.weight.data.base is flat.data
    ((8,), True)
    """

    def __init__(self, parameters, states):
        self.parameters, self.states = parameters, states
        self._homes = [weakref.ref(parameter.data) for parameter in parameters]
        self._ends = np.cumsum([0, *(parameter.size for parameter in parameters)]).tolist()
        self.data = self._buffer()
        self._running = {}
        self.data_blocks = self._blocks(self.data)
        scratch = np.empty((2, self.data_blocks[0].size), self.data.dtype)
        self.scratch_blocks = [scratch[:, : block.size] for block in self.data_blocks]
        self._values = self._views(self.data)
        for parameter, view in zip(parameters, self._values, strict=True):
            parameter._move(view)
        self._new_gradients()

    def _buffer(self):
        return np.zeros(self._ends[-1], self.parameters[0].dtype)

    def _views(self, buffer):
        shapes = (parameter.shape for parameter in self.parameters)
        places = zip(pairwise(self._ends), shapes, strict=True)
        return [buffer[start:end].reshape(shape) for (start, end), shape in places]

    def _blocks(self, buffer):
        """The buffer in blocks of which several fit the cache together."""
        size = _BLOCK_BYTES // buffer.itemsize
        return [buffer[start : start + size] for start in range(0, buffer.size, size)]

    def _new_gradients(self):
        self.grad = np.empty_like(self.data)
        self.grad_blocks = self._blocks(self.grad)
        self._grads = self._views(self.grad)
        self.grad_of = dict(zip(map(id, self.parameters), self._grads, strict=True))
        for parameter in self.parameters:
            parameter.zero_grad()
        self._unheld = self._references()

    def _references(self):
        return [sys.getrefcount(array) for array in (self.grad, *self._grads)]

    def clear_gradients(self):
        """Forget the gradients; if anybody still holds one, leave it to them and take new buffers."""
        for parameter in self.parameters:
            parameter.zero_grad()
        if self._references() != self._unheld:
            self._new_gradients()

    def show_gradients(self):
        """Make the views of the gradient buffer the gradients of the parameters."""
        for parameter, view in zip(self.parameters, self._grads, strict=True):
            parameter._grad = view

    def release(self):
        """Return every parameter to the array that it had before, where somebody still holds that array."""
        for parameter, view, home in zip(self.parameters, self._values, self._homes, strict=True):
            if parameter.data is view and home() is not None:
                parameter._move(home())

    def running(self, name):
        """Blocks of the optimiser's running means of this name, or None if a parameter has none."""
        if any(name not in state for state in self.states):
            return None
        if name not in self._running:
            buffer = self._buffer()
            self._running[name] = (self._blocks(buffer), self._views(buffer))
        blocks, views = self._running[name]
        for state, view in zip(self.states, views, strict=True):
            if state[name] is not view:
                view[...] = state[name]
                state[name] = view
        return blocks

    def update(self, optimizer):
        """Take the optimiser's step on the whole buffer; its numbers are those of ``optimizer.step()``."""
        here = all(one.data is view for one, view in zip(self.parameters, self._values, strict=True))
        if not (here and {SGD: _sgd, Adam: _adam}[type(optimizer)](self, optimizer)):
            optimizer.step()


def _plain_numbers(*values):
    """Whether all are floats of Python, which take the dtype of the array that they meet."""
    return all(type(value) is float for value in values)


def _decayed(grad, data, weight_decay, out):
    if not weight_decay:
        return grad
    np.multiply(data, weight_decay, out=out)
    return np.add(grad, out, out=out)


def _sgd(flat, optimizer):
    lr, momentum, decay = optimizer.lr, optimizer.momentum, optimizer.weight_decay
    if not _plain_numbers(lr, momentum, decay, optimizer.dampening):
        return False
    velocity = flat.running("momentum") if momentum else flat.grad_blocks
    if velocity is None:
        return False
    blocks = zip(flat.data_blocks, flat.grad_blocks, velocity, flat.scratch_blocks, strict=True)
    for data, grad, moving, (scratch, other) in blocks:
        step = _decayed(grad, data, decay, scratch)
        if momentum:
            step = _with_momentum(optimizer, step, moving, other)
        np.multiply(step, lr, out=scratch)
        np.subtract(data, scratch, out=data)
    return True


def _with_momentum(optimizer, grad, moving, scratch):
    moving *= optimizer.momentum
    moving += np.multiply(grad, 1 - optimizer.dampening, out=scratch)
    if not optimizer.nesterov:
        return moving
    np.multiply(moving, optimizer.momentum, out=scratch)
    return np.add(grad, scratch, out=scratch)


def _adam(flat, optimizer):
    (beta1, beta2), decay, eps = optimizer.betas, optimizer.weight_decay, optimizer.eps
    mean, square = flat.running("mean"), flat.running("square")
    steps = {state.get("step") for state in flat.states}
    if mean is None or square is None or len(steps) != 1:
        return False
    if not _plain_numbers(optimizer.lr, beta1, beta2, decay, eps):
        return False
    step = steps.pop() + 1
    for state in flat.states:
        state["step"] = step
    rate, root_scale = optimizer.lr / (1 - beta1**step), math.sqrt(1 - beta2**step)
    blocks = zip(flat.data_blocks, flat.grad_blocks, mean, square, flat.scratch_blocks, strict=True)
    for data, grad, mean_, square_, (a, b) in blocks:
        grad = _decayed(grad, data, decay, a)
        _move_between(mean_, grad, 1 - beta1, b)
        square_ *= beta2
        np.multiply(grad, grad, out=b)
        square_ += np.multiply(b, 1 - beta2, out=b)
        np.sqrt(square_, out=b)
        b /= root_scale
        b += eps
        np.divide(mean_, b, out=b)
        data -= np.multiply(b, rate, out=b)
    return True


def _move_between(mean, grad, weight, scratch):
    """``mean + weight * (grad - mean)``, reckoned from the nearer end as the optimiser does."""
    np.subtract(grad, mean, out=scratch)
    if weight < 0.5:
        mean += np.multiply(scratch, weight, out=scratch)
    else:
        np.subtract(grad, np.multiply(scratch, 1 - weight, out=scratch), out=mean)
