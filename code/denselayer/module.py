"""The base class of layers: finds their parameters, and saves and loads them under PyTorch's names."""

from typing import NamedTuple

import numpy as np

from ._validate import complaint, describe
from .parameter import Parameter, require_parameter


class IncompatibleKeys(NamedTuple):
    """Names that :meth:`Module.load_state_dict` with ``strict=False`` did not find or did not know."""

    missing_keys: list
    unexpected_keys: list


class Module:
    """A layer or a network: parameters, a forward pass and a backward pass.

    A subclass sets Parameters and Modules as attributes, in any order and without further registration, and
    defines ``forward(x)`` and ``backward(d_out)``. ``forward`` keeps references to what ``backward`` needs,
    so change no array between the two. ``backward`` belongs to the latest ``forward``, adds to every
    parameter's ``grad`` and returns the gradient with respect to the input.

    Source:
        ``torch.nn.Module``.

    >>> from denselayer.nn import Linear
    >>> layer = Linear.from_arrays(np.array([[1.0, -1.0]]), np.array([0.5]))
    >>> layer(np.array([[3.0, 1.0]]))
    array([[2.5]])
    >>> sorted(layer.state_dict())
    ['bias', 'weight']
    """

    def __call__(self, *args, **kwargs):
        return self.forward(*args, **kwargs)

    def __setattr__(self, name, value):
        if isinstance(vars(self).get(name), Parameter) and value is not None:
            require_parameter(type(self).__name__, name, value)
        super().__setattr__(name, value)

    def forward(self, x):
        """Compute the output; a subclass defines it."""
        raise NotImplementedError(f"{type(self).__name__} defines no forward(x); a Module needs one.")

    def backward(self, d_out):
        """Add to the gradients, return that with respect to the input; a subclass defines it."""
        raise NotImplementedError(f"{type(self).__name__} defines no backward(d_out); a Module needs one.")

    def _saved(self):
        """What the latest forward pass kept; RuntimeError if there was none."""
        try:
            return self._kept
        except AttributeError:
            name = type(self).__name__
            came = "no forward pass came before it"
            expected = "one, since the gradient depends on its input"
            advice = "Call the module on its input first, then backward."
            raise RuntimeError(complaint(f"{name}.backward", came, expected, advice)) from None

    def children(self):
        """Yield (name, Module) for every Module among the attributes."""
        for name, value in vars(self).items():
            if isinstance(value, Module):
                yield name, value

    def modules(self):
        """Yield this module and all below it, a shared one as often as it occurs."""
        yield self
        for _, child in self.children():
            yield from child.modules()

    def _all_parameters(self, prefix=""):
        for name, value in vars(self).items():
            if isinstance(value, Parameter):
                yield prefix + name, value
        for name, child in self.children():
            yield from child._all_parameters(f"{prefix}{name}.")

    def named_parameters(self):
        """Yield (name, Parameter), each Parameter once, under its first name, such as ``"0.weight"``."""
        seen = set()
        for name, parameter in self._all_parameters():
            if id(parameter) not in seen:
                seen.add(id(parameter))
                yield name, parameter

    def parameters(self):
        """Yield every Parameter once, also one that several layers share."""
        for _, parameter in self.named_parameters():
            yield parameter

    def parameter_count(self):
        """Number of learned numbers; a shared Parameter counts once."""
        return sum(parameter.size for parameter in self.parameters())

    def zero_grad(self):
        """Forget all gradients."""
        for parameter in self.parameters():
            parameter.zero_grad()

    def state_dict(self):
        """Return {name: copy of the values}, with PyTorch's names and layout."""
        return {name: parameter.data.copy() for name, parameter in self._all_parameters()}

    def load_state_dict(self, state, strict=True):
        """Copy values into the parameters, each in the parameter's own dtype.

        Args:
            state: {name: array}; CPU tensors of ``torch.nn.Module.state_dict()`` are accepted too.
            strict: False lets names be missing or unknown.

        Returns:
            IncompatibleKeys(missing_keys, unexpected_keys).

        Raises:
            ValueError: missing or unknown names, or other shapes; nothing is changed then.
            TypeError: ``state`` is no mapping.
        """
        if not hasattr(state, "keys"):
            came = f"state is {describe(state)}"
            raise TypeError(
                complaint("load_state_dict", came, "a dict of arrays", "Pass module.state_dict().")
            )
        own = dict(self._all_parameters())
        missing = [name for name in own if name not in state]
        unexpected = [name for name in state if name not in own]
        values = {name: np.asarray(state[name]) for name in own if name in state}
        problems = [f"missing {name}" for name in missing if strict]
        problems += [f"unexpected {name}" for name in unexpected if strict]
        problems += [_misfit(name, own[name], value) for name, value in values.items()]
        if any(problems):
            came = f"state does not fit {type(self).__name__}: {', '.join(filter(None, problems))}"
            expected = ", ".join(f"{name} {parameter.shape}" for name, parameter in own.items()) or "no names"
            advice = "Load it into a module of the same structure, or skip names with strict=False."
            raise ValueError(complaint("load_state_dict", came, expected, advice))
        for name, value in values.items():
            own[name].data[...] = value
        return IncompatibleKeys(missing, unexpected)

    def save(self, path):
        """Write the state to an ``.npz`` file; the ending is added where it is missing."""
        np.savez(path, **self.state_dict())

    def load(self, path):
        """Read the state from an ``.npz`` file, strictly; no code in the file is ever run."""
        path = str(path)
        with np.load(path if path.endswith(".npz") else path + ".npz", allow_pickle=False) as state:
            self.load_state_dict(dict(state))


def _misfit(name, parameter, value):
    if value.shape != parameter.shape:
        return f"{name} has shape {value.shape}"
    return "" if value.dtype.kind == "f" else f"{name} has dtype {value.dtype}"
