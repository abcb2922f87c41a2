"""How far our results are from PyTorch's: in absolute terms, relatively, and in units in the last place.

The unit in the last place (ulp) of a number is the gap to the next floating-point number of its dtype. Two
correct programs that add the same terms in another order differ by a few ulp; a wrong formula differs by
millions.

PyTorch's values of the cases below are stored in small ``.npz`` files inside the package, so that
`agreement` prints the same table where PyTorch is not installed. `against_torch` compares any module with
the PyTorch that is.
"""

import copy
import functools
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from typing import Literal

import numpy as np

from . import cost, functional, fused, nn, optim
from ._table import html_table, text_table

LEAST_BOUND = 8
"""In ulp of the largest entry: what any two good programs may differ by, even for the shortest sums."""

DTYPES = ("float32", "float64")


def ulp_difference(actual, expected, scale: Literal["entry", "max"] = "entry"):
    """Measure the distance of two arrays, entry by entry, in units in the last place.

    Args:
        actual, expected: arrays of one shape and one dtype, float32 or float64.
        scale: ``"entry"`` counts the floating-point numbers from one entry to the other: 0 for equal ones,
            1 for neighbours. ``"max"`` divides every difference by the ulp of the largest finite entry of
            ``expected``: the right measure for sums, whose rounding errors do not shrink where they cancel.

    Returns:
        A float64 array of the same shape. +0 and -0 are equal, and so are two NaN and two infinities of one
        sign (distance 0). A NaN or an infinity is infinitely far from anything else.

    Raises:
        ValueError: two shapes, or an unknown scale.
        TypeError: two dtypes, or another than float32 and float64.

    Source:
        D. Goldberg, "What every computer scientist should know about floating-point arithmetic", ACM
        Computing Surveys 23 (1991), 5-48.

    Notes:
        Equation: eq-check-ulp, for the ulp of a number.

    >>> one = np.array([1.0, 0.0, np.nan])
    >>> ulp_difference(one, np.nextafter(one, 2.0))
    array([1., 1., 0.])
    >>> ulp_difference(np.array([1024.0, 0.0]), np.array([1024.0, 2.0**-43]), scale="max")
    array([0. , 0.5])
    """
    actual, expected = _check_pair("actual", actual, expected)
    if scale == "entry":
        distance = _steps(actual, expected)
    elif scale == "max":
        distance = _absolute_difference(actual, expected) / _largest_ulp(expected)
    else:
        raise ValueError(f"scale is {scale!r}: choose 'entry' or 'max'")
    finite = np.isfinite(actual) & np.isfinite(expected)
    return np.where(finite, distance, np.where(_same(actual, expected), 0.0, np.inf))


@dataclass(frozen=True)
class Row:
    """The agreement of one array with PyTorch's: the largest difference in three measures, and the bound."""

    case: str
    quantity: str
    dtype: str
    max_abs: float
    max_rel: float
    max_ulp: float
    """In ulp of the largest entry of the expected array."""
    bound: float
    """In the same unit."""

    @property
    def within(self) -> bool:
        return self.max_ulp <= self.bound


class Table:
    """Rows of a comparison; prints as aligned text, and shows as an HTML table in a notebook.

    ``ok`` is True when there is at least one row and all rows are within their bounds. ``str(table)`` and
    the notebook show what was measured, which depends on the processor; ``summary()`` shows only what is
    the same everywhere.
    """

    def __init__(self, title: str, rows):
        self.title = title
        self.rows = tuple(rows)

    @property
    def ok(self) -> bool:
        return bool(self.rows) and all(row.within for row in self.rows)

    def summary(self) -> str:
        """Return what holds on every machine: quantity, dtype, the bound in ulp, and whether it is kept."""
        header = ["what", "dtype", "bound (ulp)", "within"]
        return text_table(header, [[*cells[:2], *cells[-2:]] for cells in self._cells()], left=2)

    def __str__(self):
        return f"{self.title}\n{text_table(self._header, self._cells(), left=2)}"

    def __repr__(self):
        return f"<Table {self.title!r}: {len(self.rows)} rows, {'ok' if self.ok else 'NOT ok'}>"

    def _repr_markdown_(self):
        return html_table("agreement", self.title, self._header, self._cells())

    _header = ("what", "dtype", "max abs", "max rel", "max ulp", "bound (ulp)", "within")

    def _cells(self):
        return [
            [
                row.quantity,
                row.dtype,
                f"{row.max_abs:.1e}" if row.max_abs else "0",
                f"{row.max_rel:.1e}" if row.max_rel else "0",
                f"{row.max_ulp:.3g}",
                f"{row.bound:g}",
                "yes" if row.within else "NO",
            ]
            for row in self.rows
        ]


def bound(dtype, terms: int = 1) -> int:
    """Allowed difference in ulp of the largest entry: 8, and more for long sums.

    Args:
        dtype: float32 or float64.
        terms: how many numbers the longest sum adds, for a network those of all layers together.

    Raises:
        TypeError: another dtype.

    Source:
        N. J. Higham, "Accuracy and stability of numerical algorithms", 2nd ed., SIAM 2002, section 3.1; N.
        J. Higham and T. Mary, "A new approach to probabilistic rounding error analysis", SIAM Journal on
        Scientific Computing 41 (2019), A2815-A2835.

    Notes:
        Two programs that add the same n products in another order differ by at most about ``n * eps`` times
        the sum of the magnitudes. float32 is held to that: n ulp. Errors of either sign mostly cancel, so
        the difference grows like ``sqrt(n)``; float64 is held to that, which means 8 ulp up to 64 terms.
        For 785 terms PyTorch's own sum has been seen 12 ulp from the exact one, and ours 1.5.

    >>> bound("float64", terms=64), bound("float64", terms=785), bound("float32", terms=785)
    (8, 29, 785)
    """
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise TypeError(f"dtype is {np.dtype(dtype)}, expected float32 or float64")
    return max(LEAST_BOUND, math.ceil(math.sqrt(terms)) if np.dtype(dtype) == np.float64 else terms)


def compare(name: str, actual: dict, expected: dict, *, terms=1) -> list[Row]:
    """Compare our arrays with the expected ones, quantity by quantity.

    Args:
        name: the name of the case; kept in the rows.
        actual, expected: dicts of arrays with the same keys, shapes and dtypes.
        terms: the length of the longest sum, one int for all quantities or a dict with one for each; see
            `bound`.

    Returns:
        A list of Row in the order of ``expected``.

    Raises:
        ValueError: a quantity is missing or left over, or has another shape than expected.
        TypeError: a quantity has another dtype than expected.

    >>> [row] = compare("by hand", {"out": np.array([2.0])}, {"out": np.array([2.0])})
    >>> row.max_ulp, row.within
    (0.0, True)
    """
    if actual.keys() != expected.keys():
        raise ValueError(
            f"{name}: the quantities are {sorted(actual)}, expected {sorted(expected)}: "
            "compare the same on both sides"
        )
    lengths = terms if isinstance(terms, dict) else dict.fromkeys(expected, terms)
    return [_row(name, key, actual[key], expected[key], lengths[key]) for key in expected]


def agreement(name: str) -> Table:
    """Run a stored case now, and compare it with PyTorch's stored values in float32 and float64.

    Args:
        name: one of `cases`.

    Returns:
        A Table; ``ok`` says whether all is within the bounds.

    Raises:
        ValueError: there is no such case.

    >>> table = agreement("dense-running-example")
    >>> table.ok
    True
    >>> print(table.summary())
    what      dtype    bound (ulp)  within
    --------  -------  -----------  ------
    out       float32            8     yes
    d_x       float32            8     yes
    d_weight  float32            8     yes
    d_bias    float32            8     yes
    out       float64            8     yes
    d_x       float64            8     yes
    d_weight  float64            8     yes
    d_bias    float64            8     yes
    """
    case = _case(name)
    stored = load_fixture(name)
    rows = []
    for dtype in DTYPES:
        actual = case.run(**stored.inputs(dtype))
        rows += compare(name, actual, stored.expected[dtype], terms=case.terms)
    return Table(f"{case.title}: NumPy against PyTorch {stored.versions['torch']}", rows)


def cases() -> tuple[str, ...]:
    """Return the names of the stored cases.

    >>> "neuron" in cases()
    True
    """
    return tuple(_CASES)


def against_torch(module: nn.Module, x, d_out, *, torch_module=None, terms=None) -> Table:
    """Run a module forward and backward here and in PyTorch, in float32 and float64, and compare everything.

    Args:
        module: a layer, an activation, or a Sequential of them, nested as you like. It stays as it is.
        x: the input.
        d_out: upstream gradient, of the shape of the output.
        torch_module: PyTorch's module for a ``module`` of your own class; parameters are copied into it by
            name.
        terms: the length of the longest sum, see `bound`. By default the batch plus the inputs and outputs
            of all layers.

    Returns:
        A Table with the rows ``out``, ``d_x`` (unless the module's backward returns None) and one for the
        gradient of each parameter.

    Raises:
        ModuleNotFoundError: PyTorch is not installed. `agreement` works without it.
        TypeError: a module of your own class came without ``torch_module``.
    """
    torch = _import_torch()
    twin = copy.deepcopy(torch_module) if torch_module is not None else _torch_twin(torch, module)
    if terms is None:
        terms = len(x) + sum(sum(parameter.shape) for parameter in module.parameters())
    rows = []
    for dtype in DTYPES:
        ours = _run_module(_cast(module, dtype), x.astype(dtype), d_out.astype(dtype))
        theirs = _run_torch(torch, twin, module, x.astype(dtype), d_out.astype(dtype))
        if "d_x" not in ours:
            del theirs["d_x"]
        rows += compare(type(module).__name__, ours, theirs, terms=terms)
    return Table(f"{type(module).__name__}: NumPy against PyTorch {torch.__version__}", rows)


@dataclass(frozen=True)
class Fixture:
    """One stored case: the inputs, and what PyTorch made of them."""

    versions: dict
    arrays: dict
    """The inputs by name, float32 values that both dtypes hold exactly, or integers."""
    expected: dict
    """PyTorch's outputs and gradients: dtype to quantity to array."""

    def inputs(self, dtype) -> dict:
        """Return the inputs, those that are real numbers as ``dtype``."""
        return {
            key: array.astype(dtype) if array.dtype.kind == "f" else array.copy()
            for key, array in self.arrays.items()
        }


@functools.cache
def load_fixture(name: str) -> Fixture:
    """Read a stored case from the package; nothing in the file is unpickled.

    >>> fixture = load_fixture("dense-running-example")
    >>> fixture.inputs("float64")["x"]
    array([2., 4., 1.])
    """
    _case(name)
    return _read(name)


_RUNS = ("digits-run",)


def runs() -> tuple[str, ...]:
    """Return the names of the stored training runs.

    >>> runs()
    ('digits-run',)
    """
    return _RUNS


@functools.cache
def load_run(name: str) -> Fixture:
    """Read a training run of PyTorch: the losses of all steps, and the parameters after the last one.

    A run has no bound in ulp: every step carries the rounding errors of the steps before it. What two runs
    differ by is a thing to measure.

    Args:
        name: one of `runs`.

    Returns:
        A Fixture without inputs; ``expected[dtype]`` holds ``losses`` (steps,) and the parameters by name.

    Raises:
        ValueError: there is no such run.

    >>> load_run("digits-run").expected["float64"]["losses"].shape
    (1000,)
    """
    if name not in _RUNS:
        raise ValueError(f"there is no run {name!r}: choose one of {', '.join(_RUNS)}")
    return _read(name)


def _read(name):
    path = resources.files(__package__).joinpath("fixtures", f"{name}.npz")
    with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
        content = {key: stored[key] for key in stored.files}
    inputs = {key.removeprefix("input/"): value for key, value in content.items() if key.startswith("input/")}
    expected = {
        dtype: {
            key.removeprefix(f"{dtype}/"): value
            for key, value in content.items()
            if key.startswith(f"{dtype}/")
        }
        for dtype in DTYPES
    }
    return Fixture(json.loads(str(content["versions"])), inputs, expected)


@dataclass(frozen=True)
class _Case:
    title: str
    run: Callable[..., dict]
    terms: int | dict = 1


def _case(name):
    if name not in _CASES:
        raise ValueError(f"there is no case {name!r}: choose one of {', '.join(_CASES)}")
    return _CASES[name]


def _neuron(x, weight, bias, d_out):
    gradients = functional.neuron_backward(d_out, x, weight)
    return {"out": functional.neuron(x, weight, bias)} | _gradient_rows(gradients)


def _dense(x, weight, bias, d_out):
    gradients = functional.linear_backward(d_out, x, weight)
    return {"out": functional.linear(x, weight, bias)} | _gradient_rows(gradients)


def _dense_no_bias(x, weight, d_out):
    gradients = functional.linear_backward(d_out, x, weight)
    return {"out": functional.linear(x, weight), "d_x": gradients.d_x, "d_weight": gradients.d_weight}


def _dense_relu(x, weight, bias, d_out):
    z = functional.linear(x, weight, bias)
    d_z = functional.relu_backward(d_out, z)
    gradients = functional.linear_backward(d_z, x, weight)
    return {"z": z, "out": functional.relu(z), "d_z": d_z} | _gradient_rows(gradients)


def _fused_layer(x, weight, bias, d_out):
    results = {}
    for name in ("relu", "gelu"):
        pre = np.empty((*x.shape[:-1], len(weight)), x.dtype)
        out = fused.linear_act(x, weight, bias, name, pre=pre)
        gradients = fused.linear_act_backward(d_out, x, weight, pre, name)
        rows = {"out": out} | _gradient_rows(gradients)
        results |= {f"{name}, {key}": value for key, value in rows.items()}
    return results


def _gradient_rows(gradients):
    return {key: np.asarray(value) for key, value in gradients._asdict().items()}


def _two_layer(x, target, **state):
    return _train_step(nn.MSELoss(), x, target, state)


def _mlp(x, target, **state):
    return _train_step(nn.CrossEntropyLoss(), x, target, state)


def _train_step(criterion, x, target, state):
    """Run linear, ReLU, linear and a loss forward and backward, with the parameters in ``state``."""
    layers = [nn.Linear.from_arrays(state[f"{at}.weight"], state[f"{at}.bias"]) for at in (0, 2)]
    network = nn.Sequential(layers[0], nn.ReLU(), layers[1])
    out = network(x)
    loss = np.asarray(criterion(out, target))
    d_out = criterion.backward()
    d_x = network.backward(d_out)
    gradients = {f"d_{key}": parameter.grad for key, parameter in network.named_parameters()}
    return {"out": out, "loss": loss, "d_out": d_out, "d_x": d_x} | gradients


_ACTIVATIONS = {
    "relu": {},
    "leaky_relu": {"negative_slope": 0.1},
    "sigmoid": {},
    "tanh": {},
    "gelu": {},
    "gelu (tanh)": {"approximate": "tanh"},
    "silu": {},
    "softplus": {},
}


def _activations(z, d_out):
    result = {}
    for key, options in _ACTIVATIONS.items():
        name = key.split()[0]
        result[key] = getattr(functional, name)(z, **options)
        result[f"{key}, d_z"] = getattr(functional, f"{name}_backward")(d_out, z, **options)
    return result


_OPTIMISERS = {
    "sgd": (optim.SGD, {"lr": 0.07}),
    "momentum": (optim.SGD, {"lr": 0.02, "momentum": 0.8}),
    "nesterov": (optim.SGD, {"lr": 0.02, "momentum": 0.8, "nesterov": True}),
    "weight decay": (optim.SGD, {"lr": 0.07, "weight_decay": 0.5}),
    "adam": (optim.Adam, {"lr": 0.3}),
}
_OPTIMISER_STEPS = 40


def _optimisers(start, curvature):
    """Walk down half the sum of ``curvature * parameter**2``; return the places, one row for each step."""
    paths = {}
    for name, (optimiser, options) in _OPTIMISERS.items():
        parameter = nn.Parameter(start)
        steps, path = optimiser([parameter], **options), [start]
        for _ in range(_OPTIMISER_STEPS):
            parameter.grad = curvature * parameter.data
            steps.step()
            path.append(parameter.data.copy())
        paths[name] = np.array(path)
    return paths


def _costs(like, widths, batch):
    """Counts of the cost model, one entry for each network; a row of widths ends at the first 0."""
    models = [
        cost.network([int(width) for width in row if width], int(rows), dtype=like.dtype)
        for row, rows in zip(widths, batch, strict=True)
    ]
    counts = {
        "parameters": [model.parameters for model in models],
        "operations forward": [model.forward.operations for model in models],
        "operations backward": [model.backward.operations for model in models],
        "values kept": [model.kept for model in models],
        "bytes forward": [model.forward.traffic for model in models],
        "bytes backward": [model.backward.traffic for model in models],
        "Adam state": [model.state for model in models],
    }
    return {key: np.array(values, dtype=like.dtype) for key, values in counts.items()}


def _dense_terms(batch, inputs, outputs):
    return {"out": inputs + 1, "d_x": outputs, "d_weight": batch, "d_bias": batch}


_CASES = {
    "neuron": _Case("One neuron", _neuron, 4),
    "dense-running-example": _Case("The running example", _dense, 4),
    "dense-random": _Case("A dense layer, 784 to 16, batch of 8", _dense, _dense_terms(8, 784, 16)),
    "dense-no-bias": _Case("A dense layer without bias, 7 to 3, batch of 5", _dense_no_bias, 7),
    "backprop-running-example": _Case("The running example with ReLU, batch of 2", _dense_relu, 4),
    "backprop-two-layer": _Case("Two layers and a mean squared error", _two_layer, 8),
    "mlp": _Case("An MLP, 64 to 32 to 10, with cross-entropy", _mlp, 64 + 1 + 32 + 1 + 10 + 16),
    "activations": _Case("The activations", _activations),
    "costs": _Case("What networks cost", _costs),
    "fused-layer": _Case("A fused layer, 32 to 8, batch of 6", _fused_layer, 33),
    "optimisers": _Case("Five optimisers, 40 steps each", _optimisers, _OPTIMISER_STEPS),
}


def _row(name, quantity, actual, expected, terms):
    actual, expected = _check_pair(f"{name}: {quantity}", actual, expected)
    absolute = np.where(_same(actual, expected), 0.0, _absolute_difference(actual, expected))
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(absolute == 0, 0.0, absolute / np.abs(expected.astype(np.float64)))
    ulp = ulp_difference(actual, expected, scale="max")
    largest = (float(measure.max(initial=0.0)) for measure in (absolute, relative, ulp))
    return Row(name, quantity, str(expected.dtype), *largest, bound(expected.dtype, terms))


def _check_pair(name, actual, expected):
    actual, expected = np.asarray(actual), np.asarray(expected)
    if actual.shape != expected.shape:
        hint = "that is its transpose" if actual.T.shape == expected.shape else "make the shapes equal"
        raise ValueError(f"{name} has shape {actual.shape}, expected {expected.shape}: {hint}")
    if expected.dtype not in (np.float32, np.float64) or actual.dtype != expected.dtype:
        raise TypeError(
            f"{name} is {actual.dtype} and is compared with {expected.dtype}: an ulp is that of one dtype, "
            "so both sides must be float32, or both float64"
        )
    return actual, expected


def _same(actual, expected):
    return (actual == expected) | (np.isnan(actual) & np.isnan(expected))


def _absolute_difference(actual, expected):
    with np.errstate(invalid="ignore", over="ignore"):
        return np.abs(actual.astype(np.float64) - expected.astype(np.float64))


def _largest_ulp(expected):
    """Return the gap at the largest finite entry; np.spacing has none at the largest number of all."""
    limits = np.finfo(expected.dtype)
    magnitude = float(np.abs(expected[np.isfinite(expected)]).max(initial=0.0))
    exponent = math.frexp(magnitude)[1] - 1 if magnitude else limits.minexp
    return math.ldexp(1.0, max(exponent, int(limits.minexp)) - limits.nmant)


def _steps(actual, expected):
    """Count the floating-point numbers between the entries: their bit patterns, as integers, are in order."""
    signed, unsigned = (np.int32, np.uint32) if actual.dtype == np.float32 else (np.int64, np.uint64)

    def place(array):
        bits = np.ascontiguousarray(array).reshape(array.shape).view(signed)
        magnitude = bits & np.iinfo(signed).max
        return np.where(bits < 0, -magnitude, magnitude)

    here, there = place(actual), place(expected)
    upper, lower = np.maximum(here, there), np.minimum(here, there)
    return (upper.astype(unsigned) - lower.astype(unsigned)).astype(np.float64)


def _import_torch():
    try:
        import torch
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "against_torch needs PyTorch (pip install torch); "
            "agreement() compares with stored values without it"
        ) from error
    return torch


def _torch_twin(torch, module):
    """Build PyTorch's module of the same structure; an option of an activation has the same name there."""
    kind = type(module).__name__
    if type(module) is nn.Sequential:
        return torch.nn.Sequential(*(_torch_twin(torch, child) for child in module))
    if type(module) is nn.Linear:
        return torch.nn.Linear(module.in_features, module.out_features, bias=module.bias is not None)
    if isinstance(module, nn._Activation) and type(module) is getattr(nn, kind, None):
        return getattr(torch.nn, kind)(**module._options)
    raise TypeError(f"there is no PyTorch module known for {kind}: pass one as torch_module=")


def _load_into(torch, twin, module, dtype):
    """Copy the parameters by name, and tie those in PyTorch that are tied here."""
    state = module.state_dict()
    twin.load_state_dict({name: torch.from_numpy(value.astype(dtype)) for name, value in state.items()})
    first = {}
    for name, parameter in module._all_parameters():
        owner, _, attribute = name.rpartition(".")
        own = twin.get_submodule(owner)
        setattr(own, attribute, first.setdefault(id(parameter), getattr(own, attribute)))


def _cast(module, dtype):
    """Return a copy with parameters of another dtype; a Parameter itself never changes its dtype."""
    module = copy.deepcopy(module)
    for parameter in module.parameters():
        parameter._data = parameter.data.astype(dtype)
        parameter.zero_grad()
    return module


def _run_module(module, x, d_out):
    out = module(x)
    d_x = module.backward(d_out)
    gradients = {f"d_{name}": parameter.grad for name, parameter in module.named_parameters()}
    return {"out": out} | ({} if d_x is None else {"d_x": d_x}) | gradients


def _run_torch(torch, twin, module, x, d_out):
    twin = copy.deepcopy(twin).to(getattr(torch, str(x.dtype)))
    _load_into(torch, twin, module, x.dtype)
    x = torch.from_numpy(x.copy()).requires_grad_()
    out = twin(x)
    out.backward(torch.from_numpy(d_out.copy()))
    gradients = {f"d_{name}": parameter.grad.numpy() for name, parameter in twin.named_parameters()}
    return {"out": out.detach().numpy(), "d_x": x.grad.numpy()} | gradients
