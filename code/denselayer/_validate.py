"""Checks of what comes in: every message says what came, what was expected and what to do.

A check returns its argument (as a plain ``numpy.ndarray``, without a copy) or raises. The common case, a
plain array of a supported dtype, costs a few attribute look-ups, so that small layers stay fast.
"""

import functools
import math
import operator
from numbers import Real

import numpy as np

FLOAT64 = np.dtype(np.float64)
FLOAT32 = np.dtype(np.float32)
REDUCTIONS = ("mean", "sum", "none")


def quiet(function):
    """Let NaN, overflow and underflow pass without a warning, as PyTorch does."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        with np.errstate(all="ignore"):
            return function(*args, **kwargs)

    return wrapper


def describe(value):
    """Say in a few words what a value is, for use in an error message.

    >>> describe([1, 2])
    'a list'
    >>> describe(np.zeros((2, 3)))
    'an array of shape (2, 3) and dtype float64'
    """
    if value is None:
        return "None"
    if isinstance(value, np.generic):
        return f"a NumPy scalar of dtype {value.dtype}"
    if type(value) is np.ndarray:
        return f"an array of shape {value.shape} and dtype {value.dtype}"
    kind = type(value).__name__
    module = type(value).__module__
    name = kind if module == "builtins" else f"{module}.{kind}"
    return article(name)


def article(noun):
    """A noun with its article.

    >>> article("ellipsis"), article("ValueError")
    ('an ellipsis', 'a ValueError')
    """
    return f"{'an' if noun[0] in 'aeiouAEIOU' else 'a'} {noun}"


def complaint(where, came, expected, advice):
    """Put together a message: the function, what came, what was expected, what to do."""
    return f"{where}: {came}; expected {expected}. {advice}"


def float_array(where, name, value):
    """Return ``value`` as a plain float32 or float64 array; TypeError if it is anything else."""
    if type(value) is np.ndarray:
        dtype = value.dtype
        if dtype is FLOAT64 or dtype is FLOAT32 or dtype in (FLOAT64, FLOAT32):
            return value
    elif isinstance(value, np.memmap):
        return float_array(where, name, value.view(np.ndarray))
    elif isinstance(value, np.float64 | np.float32):
        return np.asarray(value)
    advice = _dtype_advice if isinstance(value, np.generic) or type(value) is np.ndarray else _type_advice
    raise TypeError(
        complaint(
            where,
            f"{name} is {describe(value)}",
            "a NumPy array of dtype float32 or float64",
            advice(name, value),
        )
    )


def _dtype_advice(name, value):
    kind = value.dtype.kind
    if kind == "c":
        return f"Complex numbers have no order: pass {name}.real or {name}.imag."
    if kind == "f" and value.dtype.newbyteorder("=") in (FLOAT64, FLOAT32):
        return f"Its bytes are in foreign order: pass {name}.astype({name}.dtype.newbyteorder('='))."
    if kind == "f":
        return f"Convert it: {name}.astype(np.float32) or {name}.astype(np.float64)."
    return f"Convert it: np.asarray({name}, dtype=float)."


def _type_advice(name, value):
    if value is None:
        return f"It cannot be left out: pass an array as {name}."
    if isinstance(value, np.ma.MaskedArray):
        return f"A mask would be ignored without a word: fill it first, {name}.filled(0.0)."
    if hasattr(value, "detach"):
        return f"Take its values first: {name}.detach().numpy()."
    if isinstance(getattr(value, "data", None), np.ndarray):
        return f"Pass its array: {name}.data."
    return f"Make one: np.asarray({name}, dtype=float)."


def same_dtype(where, reference_name, reference, name, value):
    """TypeError unless both arrays have one dtype: a silent mix would turn float32 into float64."""
    if value.dtype != reference.dtype:
        came = f"{name} has dtype {value.dtype}, but {reference_name} has dtype {reference.dtype}"
        advice = f"Convert one of them: {name}.astype({reference_name}.dtype)."
        raise TypeError(complaint(where, came, "one dtype", advice))


def same_shape(where, reference_name, reference, name, value):
    """ValueError unless both arrays have one shape: broadcasting here would hide a mistake."""
    if value.shape != reference.shape:
        advice = f"Pass one entry of {name} for each entry of {reference_name}: nothing is broadcast here."
        if value.size == reference.size:
            advice = f"Reshape one of them: {name}.reshape({reference_name}.shape)."
        expected = f"{reference.shape}, the shape of {reference_name}"
        raise ValueError(complaint(where, f"{name} has shape {value.shape}", expected, advice))


def upstream(where, reference_name, reference, d_out):
    """Return ``d_out`` as an array with the shape and dtype of the output it belongs to."""
    d_out = float_array(where, "d_out", d_out)
    same_shape(where, reference_name, reference, "d_out", d_out)
    same_dtype(where, reference_name, reference, "d_out", d_out)
    return d_out


def is_number(value):
    """Whether ``value`` is an int or float of Python, which has no dtype of its own."""
    return isinstance(value, Real) and not isinstance(value, bool | np.generic)


def scalar(where, name, value, reference_name, reference):
    """Return a number, or an array of shape (), in the dtype of ``reference``."""
    if is_number(value):
        return reference.dtype.type(value)
    value = float_array(where, name, value)
    if value.shape != ():
        advice = f"Pass one entry, such as {name}[0]."
        raise ValueError(complaint(where, f"{name} has shape {value.shape}", "one number, shape ()", advice))
    same_dtype(where, reference_name, reference, name, value)
    return value[()]


def number(where, name, value, *, low=-math.inf, above=-math.inf, below=math.inf):
    """Return a hyperparameter as a Python float that is >= low, > above and < below."""
    if not isinstance(value, Real) or isinstance(value, bool | np.bool_):
        advice = f"Pass a float, such as {name}=0.1."
        raise TypeError(complaint(where, f"{name} is {describe(value)}", "a number", advice))
    result = float(value)
    if not (result >= low and above < result < below):
        limits = [f">= {low:g}"] if low > -math.inf else []
        limits += [f"> {above:g}"] if above > -math.inf else []
        limits += [f"< {below:g}"] if below < math.inf else []
        expected = " ".join(["a finite number", *limits])
        raise ValueError(complaint(where, f"{name} is {result:g}", expected, f"Choose another {name}."))
    return result


def count(where, name, value):
    """Return a size as a Python int; it must be whole and not negative."""
    try:
        result = operator.index(value)
    except TypeError:
        result = None
    if result is None or isinstance(value, bool | np.bool_):
        advice = f"Pass an int, such as int({name})."
        raise TypeError(complaint(where, f"{name} is {describe(value)}", "a whole number", advice))
    if result < 0:
        raise ValueError(complaint(where, f"{name} is {result}", "0 or more", "A size is never negative."))
    return result


def choice(where, name, value, choices):
    """Return ``value`` if it is one of the names in ``choices``."""
    if not isinstance(value, str) or value not in choices:
        expected = "one of " + ", ".join(repr(item) for item in choices)
        raise ValueError(complaint(where, f"{name} is {value!r}", expected, "Choose one of these names."))
    return value


def float_dtype(where, dtype):
    """Return float32 or float64 as a ``numpy.dtype``."""
    try:
        result = np.dtype(dtype)
    except TypeError:
        result = None
    if dtype is None or result is None or result not in (FLOAT32, FLOAT64):
        advice = "Pass dtype=np.float32 or dtype=np.float64."
        raise TypeError(complaint(where, f"dtype is {dtype!r}", "float32 or float64", advice))
    return result
