"""Calls one training step, however it is written: a function of the parameters, or an object that trains."""

import warnings

import numpy as np

from ._objects import quietly
from ._spellings import plain, positional
from ._trees import leaves, rebuild, same_form

PARAMS_NAMES = {"params", "parameters", "p", "ps", "theta", "weights", "model", "net", "state", "w"}
RATE_NAMES = {"lr", "learningrate", "eta", "alpha", "rate", "stepsize", "lrate"}
TRAINING = ("train_step", "training_step", "train_on_batch", "train_batch", "fit_batch", "train")
UPDATING = ("step", "update", "update_params", "update_parameters", "apply_gradients", "update_weights")


class StepError(Exception):
    """What the person's code raised."""

    def __init__(self, error):
        super().__init__(f"{type(error).__name__}: {error}")


def silently(function, *args):
    """Call without prints and warnings; what it raises becomes a StepError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return quietly(function, *args)
    except Exception as error:
        raise StepError(error) from error


class FunctionStep:
    """``step(params, x, t, lr)`` that returns new parameters or changes those that it gets.

    A step of ``(x, t)`` or ``(x, t, lr)`` changes the very ``params`` that were handed over, and gets its
    values through them.
    """

    def __init__(self, step, params, loss):
        self._step, self._live = step, params
        self._roles = _roles(step)
        self._loss = loss
        self.takes_rate = "lr" in self._roles
        self.names = tuple(leaves(params))
        self.start = {name: np.array(value) for name, value in leaves(params).items()}

    def loss(self, params, x, t):
        """The loss, of the parameters in the form in which the person holds them."""
        return self._loss(rebuild(self._live, params), x, t)

    def run(self, params, x, t, lr):
        """Take a step from copies of these parameters; return the new ones."""
        is_live = "params" not in self._roles
        held = self._live if is_live else rebuild(self._live, params)
        if is_live:
            _fill(held, params)
        arguments = {"params": held, "x": x, "t": t, "lr": lr}
        returned = silently(self._step, *(arguments[role] for role in self._roles))
        new = _read(returned, held)
        arrays = {name: np.array(value) for name, value in leaves(held if new is None else new).items()}
        if is_live:
            _fill(held, self.start)
        return arrays


def writes(step, place, rate):
    """Whether a step writes to the parameters, or returns them; an object's is taken to do so."""
    if not isinstance(step, FunctionStep) or "params" not in step._roles:
        return True
    held = rebuild(step._live, place.params)
    before = leaves(held)
    for array in before.values():
        array.flags.writeable = False
    arguments = {"params": held, "x": place.x.copy(), "t": place.t.copy(), "lr": rate}
    try:
        returned = silently(step._step, *(arguments[role] for role in step._roles))
    except StepError:
        return True
    after = leaves(held)
    return _read(returned, held) is not None or any(after[name] is not before[name] for name in before)


def _fill(tree, values):
    """Write values into the arrays of a tree; one that has grown is left as it is."""
    for name, array in leaves(tree).items():
        if np.shape(array) == values[name].shape:
            array[...] = values[name]


def _roles(step):
    """What each argument of a step is, by its name and else by its place."""
    names = [plain(argument.name) for argument in positional(step) or ()] or ["params", "x", "t", "lr"]
    roles = ["lr" if name in RATE_NAMES else "params" if name in PARAMS_NAMES else "" for name in names]
    if len(names) >= 3 and "params" not in roles and not ("lr" in roles and len(names) == 3):
        roles[0] = "params"
    if len(names) == 4 and "lr" not in roles:
        roles[3] = "lr"
    left = iter(("x", "t"))
    return tuple(role or next(left, "t") for role in roles)


def _read(returned, params):
    """The new parameters in what a step returned, or None if it changed them in place."""
    if same_form(params, returned):
        return returned
    parts = returned if isinstance(returned, tuple | list) else ()
    return next((part for part in parts if same_form(params, part)), None)


class ObjectStep:
    """An object that trains: with a method for a whole step, or with forward, backward and step."""

    def __init__(self, subject, loss):
        self._subject = subject.clone()
        self._fixed = subject.clone()
        self._loss = loss
        self._thing = self._subject._object
        self._training = _method(self._thing, TRAINING) or _two_argument_step(self._thing)
        self._update = _method(self._thing, UPDATING)
        self.names = subject.names
        self.start = subject.params()
        self._rate = next((name for name in _attributes(self._thing) if plain(name) in RATE_NAMES), None)
        method = getattr(self._thing, self._training or self._update or "", None)
        self._rate_is_given = any(plain(item.name) in RATE_NAMES for item in positional(method) or ())
        self.takes_rate = self._rate is not None or self._rate_is_given

    @property
    def can_train(self):
        """Whether there is anything that updates parameters."""
        return bool(self._training or self._update)

    def loss(self, params, x, t):
        """The loss of the object's own forward pass."""
        self._fixed.load(params)
        return self._loss(self._fixed.forward(x), t)

    def predict(self, params, x):
        """The outputs of the object."""
        self._fixed.load(params)
        return np.asarray(self._fixed.forward(x))

    def run(self, params, x, t, lr):
        """Take a step from these parameters; return the new ones."""
        self._subject.load(params)
        if self._rate:
            setattr(self._thing, self._rate, lr)
        rate = (lr,) if self._rate_is_given else ()
        if self._training:
            silently(getattr(self._thing, self._training), x, t, *rate)
        else:
            silently(self._whole, x, t, rate)
        return self._subject.params()

    def _whole(self, x, t, rate):
        """Clear, forward, backward, update, in the order of every training loop."""
        self._subject.zero_grad()
        out = np.asarray(self._subject.forward(x))
        self._subject.backward(_slope_by_output(self._loss, out, t))
        getattr(self._thing, self._update)(*rate)


def _slope_by_output(loss, out, t):
    """The gradient of a loss with respect to its predictions, measured."""
    from ..gradcheck import numerical_gradient

    return numerical_gradient(lambda moved: loss(moved, t), out.copy()).astype(out.dtype)


def _method(thing, names):
    return next((name for name in names if callable(getattr(thing, name, None))), None)


def _two_argument_step(thing):
    """The name of a method ``step(x, t)``, or None."""
    arguments = positional(getattr(thing, "step", None)) if callable(getattr(thing, "step", None)) else ()
    names = [item.name for item in arguments or () if plain(item.name) not in RATE_NAMES]
    return "step" if len(names) == 2 else None


def _attributes(thing):
    own = list(vars(thing)) if hasattr(thing, "__dict__") else []
    return own + [name for kind in type(thing).__mro__ for name in vars(kind)]


def mean_squared_error(pred, target):
    """The loss that an object is examined with where none is given."""
    return np.mean((np.asarray(pred) - target) ** 2)
