"""The dense layer and its activation in one call, with the epilogue run on what is still in cache.

``linear_act`` computes ``act(x @ weight.T + bias)`` and ``linear_act_backward`` the three gradients, both
into arrays that may be given. ``plan`` chooses how, from the sizes alone, and says why. Shapes are those of
``functional``: ``x`` (N, in_features), ``weight`` (out_features, in_features); ``d_out``, ``out`` and ``pre``
are (N, out_features). Numbers are without unit.
"""

import functools
import threading

import numpy as np

from . import _blas
from ._epilogue import OPTIONS, Scratch
from ._passes import backward, forward
from ._tiling import ACTIVATIONS, Plan, _plan, plan
from ._validate import FLOAT32, FLOAT64, choice, complaint, float_array, same_dtype
from .functional import LinearGradients, _check_bias, _check_linear, _rows

__all__ = ["Plan", "Workspace", "linear_act", "linear_act_backward", "plan"]


class Workspace:
    """The buffers of a plan, used again by each call: tiles of bias and zeros, scratch, a masked gradient.

    Calls without one share a few that are kept. Each thread has buffers of its own, so that several may use
    one workspace at the same time.

    Args:
        plan: the Plan whose calls it serves.

    >>> workspace = Workspace(plan(2, 3, 1, dtype="float64"))
    >>> linear_act(np.ones((2, 3)), np.ones((1, 3)), workspace=workspace)
    array([[3.],
           [3.]])
    """

    def __init__(self, plan):
        self.plan = plan
        self.shared = False
        n, i, o = plan.batch, plan.in_features, plan.out_features
        self.key = (n, i), (o, i), (o,), (n, o), *[plan.dtype] * 4, plan.activation
        """What plain arrays must be to fit, as `_ready` takes it."""
        self._local = threading.local()

    def scratch(self):
        """The buffers of the thread that asks."""
        try:
            return self._local.scratch
        except AttributeError:
            self._local.scratch = Scratch(self.plan.dtype)
            return self._local.scratch


@functools.lru_cache(maxsize=32)
def _shared_workspace(n, i, o, activation, dtype, threads, keep):
    workspace = Workspace(_plan(n, i, o, activation, dtype, threads, keep))
    workspace.shared = True
    return workspace


def _workspace(where, workspace, plan, n, weight, activation, keep):
    """The workspace of a call: the one that was given, one for the plan that was given, or a shared one."""
    o, i = weight.shape
    if workspace is None and plan is None:
        return _shared_workspace(n, i, o, activation, weight.dtype, _blas.threads(), keep)
    workspace = workspace or Workspace(plan)
    plan = plan or workspace.plan
    if (plan.batch, plan.in_features, plan.out_features) != (n, i, o) or (
        plan.dtype != weight.dtype or plan.activation != activation or workspace.plan.dtype != plan.dtype
    ):
        came = (
            f"the plan is for x ({plan.batch}, {plan.in_features}), weight ({plan.out_features}, "
            f"{plan.in_features}), {plan.dtype}, {plan.activation}"
        )
        expected = f"one for x ({n}, {i}), weight ({o}, {i}), {weight.dtype}, {activation}"
        advice = f'Make one with plan({n}, {i}, {o}, dtype="{weight.dtype}", activation="{activation}").'
        raise ValueError(complaint(where, came, expected, advice))
    if workspace.plan != plan:
        return Workspace(plan)
    return workspace


def _check_options(where, activation, options):
    """The options of the activation with their defaults; ValueError or TypeError if they are not its own."""
    choice(where, "activation", activation, ACTIVATIONS)
    check = OPTIONS.get(activation)
    known = check.__code__.co_varnames[1 : check.__code__.co_argcount] if check else ()
    for name in options:
        if name not in known:
            expected = " or ".join(known) or f"no options for {activation}"
            raise TypeError(complaint(where, f"the option {name} came", expected, f"Leave out {name}."))
    return check(where, **options) if check else options


def _check_target(where, name, array, shape, like, *inputs):
    """Check an array that is to be written: shape, dtype, and that it shares no memory with the inputs."""
    if type(array) is not np.ndarray or array.dtype is not like.dtype:
        same_dtype(where, "x", like, name, float_array(where, name, array))
    if array.shape != shape:
        advice = f"Pass np.empty({shape}, {name}.dtype)."
        raise ValueError(complaint(where, f"{name} has shape {array.shape}", f"{shape}", advice))
    if not array.flags.writeable:
        advice = f"Pass {name}.copy()."
        raise ValueError(complaint(where, f"{name} is read-only", "an array to write to", advice))
    for other_name, other in inputs:
        if other is not None and _overlap(array, other):
            came = f"{name} shares memory with {other_name}"
            advice = f"Pass another array, such as np.empty_like({name})."
            raise ValueError(complaint(where, came, "an array of its own", advice))
    return array


def _overlap(a, b):
    if a.base is None and b.base is None:
        return a is b
    try:
        return np.may_share_memory(a, b) and np.shares_memory(a, b, max_work=10_000)
    except np.exceptions.TooHardError:
        return True


@functools.lru_cache(maxsize=256)
def _ready(x, weight, bias, out, x_dtype, weight_dtype, bias_dtype, out_dtype, activation, threads):
    """The workspace for arrays of these shapes and dtypes, or None if they need a closer look.

    It remembers what fitted, so that a small layer does not spend its time on checks.
    """
    if not (len(x) == len(weight) == 2 and weight == (*bias, x[1]) and out == (x[0], *bias)):
        return None
    if x_dtype not in (FLOAT32, FLOAT64) or not x_dtype == weight_dtype == bias_dtype == out_dtype:
        return None
    if activation not in ACTIVATIONS or activation in OPTIONS:
        return None
    return _shared_workspace(*x, *bias, activation, x_dtype, threads, False)


def _ready_for(workspace, plan, *key):
    """The workspace to use where arrays of these shapes and dtypes fit the plan, or None."""
    threads = _blas.threads()
    if workspace is None:
        ready = _ready(*key, threads)
        return ready if plan is None or (ready and ready.plan == plan) else None
    own = workspace.plan
    fits = key == workspace.key and own.threads == threads and key[-1] not in OPTIONS
    return workspace if fits and (plan is None or plan is own) else None


def _owners(*arrays):
    """Whether plainly no two of the arrays share memory: each owns its own, and none comes twice."""
    for array in arrays:
        if array is not None and (type(array) is not np.ndarray or array.base is not None):
            return False
    present = [id(array) for array in arrays if array is not None]
    return len(set(present)) == len(present)


def _owns(out, x, weight, bias):
    """As `_owners`, for the output of plain arrays, in less time."""
    if out is x or out is weight or out is bias:
        return False
    return out.base is x.base is weight.base is bias.base is None


def _ready_backward(workspace, plan, activation, d_out, x, weight, z, targets):
    """The workspace to use where plain arrays fit and plainly lie apart, or None for a closer look."""
    arrays = d_out, x, weight, z, *targets
    dtype = getattr(x, "dtype", None)
    for array in arrays:
        if type(array) is not np.ndarray or array.base is not None or array.dtype is not dtype:
            return None
    d_x, d_weight, d_bias = targets
    if d_out.shape != z.shape or d_x.shape != x.shape or d_weight.shape != weight.shape:
        return None
    if len(set(map(id, arrays))) < len(arrays) or not (d_out.flags.c_contiguous and z.flags.c_contiguous):
        return None
    if not (d_x.flags.carray and d_weight.flags.carray and d_bias.flags.carray):
        return None
    shapes = x.shape, weight.shape, d_bias.shape, d_out.shape
    return _ready_for(workspace, plan, *shapes, dtype, dtype, dtype, dtype, str(activation))


def linear_act(
    x,
    weight,
    bias=None,
    activation="relu",
    *,
    out=None,
    pre=None,
    workspace=None,
    plan=None,
    **options,
):
    """Dense layer and activation in one, ``act(x @ weight.T + bias)``.

    Args:
        x: one sample (in_features,), a batch (N, in_features), or any (..., in_features); float32 or float64.
        weight: (out_features, in_features), same dtype.
        bias: (out_features,), same dtype, or None.
        activation: ``"identity"``, ``"relu"``, ``"leaky_relu"``, ``"sigmoid"``, ``"tanh"``, ``"gelu"``,
            ``"silu"`` or ``"softplus"``.
        out: (..., out_features), where the result is stored; it must not share memory with the inputs.
        pre: (..., out_features), where the pre-activation ``x @ weight.T + bias`` is stored too. The slope of
            all activations but identity, relu and leaky_relu needs it.
        workspace: a Workspace to use; by default one that is kept for the shape.
        plan: a Plan to follow; by default the one that :func:`plan` chooses.
        options: those of the activation: ``negative_slope``; ``approximate``; ``beta`` and ``threshold``.

    Returns:
        ``out``, or a new array (..., out_features) of the same dtype.

    Raises:
        ValueError: shapes do not fit, arrays overlap, or the plan is for another layer.
        TypeError: not float32 or float64, two dtypes, or an option that the activation does not have.

    Source:
        K. Goto, R. van de Geijn, "Anatomy of high-performance matrix multiplication", ACM Transactions on
        Mathematical Software 34 (2008), for what a product of matrices keeps in which cache.

    Notes:
        Equation: eq-fused-forward.
        The result has the same bits as that of ``functional`` where ``plan.bit_identical``, with a plan made
        for the number of threads in use; elsewhere each entry may be rounded in another order. NaN stays NaN,
        but its sign may differ.

    >>> weight = np.array([[0.5, -1.0, 2.0], [-0.25, 0.5, 1.0], [1.0, 0.25, -0.5]])
    >>> linear_act(np.array([[2.0, 4.0, 1.0]]), weight, np.array([3.0, -1.0, -4.0]))
    array([[2. , 1.5, 0. ]])
    """
    if pre is None and not options and type(x) is type(weight) is type(bias) is type(out) is np.ndarray:
        shapes = x.shape, weight.shape, bias.shape, out.shape
        dtypes = x.dtype, weight.dtype, bias.dtype, out.dtype
        ready = _ready_for(workspace, plan, *shapes, *dtypes, str(activation))
        if ready and out.flags.carray and _owns(out, x, weight, bias):
            forward(ready, x, weight, bias, out, out, options)
            return out
    where = "linear_act"
    x, weight = _check_linear(where, x, weight)
    if bias is not None:
        bias = _check_bias(where, bias, weight, "x", x)
    options = _check_options(where, activation, options)
    shape = (*x.shape[:-1], weight.shape[0])
    if out is not None:
        _check_target(where, "out", out, shape, x, ("x", x), ("weight", weight), ("bias", bias))
    if pre is not None:
        others = ("x", x), ("weight", weight), ("bias", bias), ("out", out)
        _check_target(where, "pre", pre, shape, x, *others)
    rows = x if x.ndim == 2 else _rows(x)
    workspace = _workspace(where, workspace, plan, rows.shape[0], weight, activation, pre is not None)
    result = _matrix(out, rows.shape[0], shape[-1], x.dtype)
    kept = result if pre is None else _matrix(pre, *result.shape, x.dtype)
    _follow(workspace, forward, rows, weight, bias, kept, result, options)
    if pre is not None and not pre.flags.c_contiguous:
        pre[...] = kept.reshape(shape)
    if out is None:
        return result if x.ndim == 2 else result.reshape(shape)
    if not out.flags.c_contiguous:
        out[...] = result.reshape(shape)
    return out


def _matrix(array, n, width, dtype):
    """The array that was given as a matrix, or a new one if none was, or if its rows are not contiguous."""
    if array is None or not array.flags.c_contiguous:
        return np.empty((n, width), dtype)
    return array if array.ndim == 2 else array.reshape(n, width)


def _follow(workspace, run, *arguments):
    """Call a pass; let the BLAS use as many threads as the plan says."""
    if workspace.shared or workspace.plan.threads == _blas.threads():
        run(workspace, *arguments)
        return
    with _blas.limit_threads(workspace.plan.threads):
        run(workspace, *arguments)


def linear_act_backward(
    d_out,
    x,
    weight,
    out_or_pre,
    activation="relu",
    *,
    input_gradient=True,
    d_x=None,
    d_weight=None,
    d_bias=None,
    workspace=None,
    plan=None,
    **options,
):
    """Gradients of :func:`linear_act` with respect to ``x``, ``weight`` and ``bias``.

    Args:
        d_out: gradient with respect to the output, (..., out_features), float32 or float64.
        x: input of the forward pass, (..., in_features), same dtype.
        weight: (out_features, in_features), same dtype.
        out_or_pre: (..., out_features), the pre-activation. For relu, and for leaky_relu whose slope is not
            negative, the output does as well; for identity it is not read, and may be None.
        activation: as in :func:`linear_act`.
        input_gradient: False saves the product for ``d_x``, which the bottom layer does not need.
        d_x, d_weight, d_bias: arrays of the shapes of ``x``, ``weight`` and (out_features,), where the
            gradients are stored (not added); they must not share memory with the inputs.
        workspace: a Workspace to use; by default one that is kept for the shape.
        plan: a Plan to follow; by default the one that :func:`plan` chooses.
        options: those of the activation, as in :func:`linear_act`.

    Returns:
        LinearGradients with the shapes of ``x``, ``weight`` and ``(out_features,)``; ``d_x`` is None without
        ``input_gradient``. Nothing is divided by N.

    Raises:
        ValueError: shapes do not fit, arrays overlap, or the plan is for another layer.
        TypeError: not float32 or float64, two dtypes, or an option that the activation does not have.

    Source:
        D. Rumelhart, G. Hinton, R. Williams, "Learning representations by back-propagating errors", Nature
        323 (1986).

    Notes:
        Equation: eq-fused-backward.
        Where the pre-activation is NaN, relu lets ``d_out`` through, as ``functional`` and PyTorch do. The
        rows are added up in another order than in ``functional``.

    >>> one = np.ones((1, 1))
    >>> linear_act_backward(one, 2 * one, 3 * one, 6 * one)
    LinearGradients(d_x=array([[3.]]), d_weight=array([[2.]]), d_bias=array([1.]))
    """
    targets = d_x, d_weight, d_bias
    if input_gradient and not options and activation != "identity":
        ready = _ready_backward(workspace, plan, activation, d_out, x, weight, out_or_pre, targets)
        if ready:
            backward(ready, d_out, x, weight, out_or_pre, targets, options)
            return LinearGradients(*targets)
    where = "linear_act_backward"
    x, weight = _check_linear(where, x, weight)
    options = _check_options(where, activation, options)
    shape = (*x.shape[:-1], weight.shape[0])
    d_out = _check_upstream(where, "d_out", d_out, shape, x)
    if activation != "identity":
        out_or_pre = _check_upstream(where, "out_or_pre", out_or_pre, shape, x)
    else:
        out_or_pre = None
    inputs = ("x", x), ("weight", weight), ("d_out", d_out), ("out_or_pre", out_or_pre)
    if _owners(x, weight, d_out, out_or_pre, d_x, d_weight, d_bias):
        inputs = ()
    d_x = _target(where, "d_x", d_x, x.shape, x, inputs) if input_gradient else None
    inputs = inputs and (*inputs, ("d_x", d_x))
    d_weight = _target(where, "d_weight", d_weight, weight.shape, x, inputs)
    inputs = inputs and (*inputs, ("d_weight", d_weight))
    d_bias = _target(where, "d_bias", d_bias, weight.shape[:1], x, inputs)
    rows = x if x.ndim == 2 else _rows(x)
    workspace = _workspace(where, workspace, plan, rows.shape[0], weight, activation, False)
    targets = d_x, d_weight, d_bias
    places = [_contiguous(target) for target in targets]
    if d_x is not None:
        places[0] = places[0].reshape(rows.shape)
    d_rows, z = (
        array if array is None else _rows(np.ascontiguousarray(array)) for array in (d_out, out_or_pre)
    )
    _follow(workspace, backward, d_rows, rows, weight, z, places, options)
    for target, place in zip(targets, places, strict=True):
        if target is not None and not target.flags.c_contiguous:
            target[...] = place.reshape(target.shape)
    return LinearGradients(d_x, d_weight, d_bias)


def _contiguous(array):
    return array if array is None or array.flags.c_contiguous else np.empty(array.shape, array.dtype)


def _check_upstream(where, name, array, shape, x):
    array = float_array(where, name, array)
    if array.shape != shape:
        expected = f"{shape}, the shape of the output for x {x.shape}"
        advice = "Pass an array with one entry for each entry of the output."
        raise ValueError(complaint(where, f"{name} has shape {array.shape}", expected, advice))
    same_dtype(where, "x", x, name, array)
    return array


def _target(where, name, array, shape, like, inputs):
    """The array that was given, checked, or a new one."""
    if array is None:
        return np.empty(shape, like.dtype)
    return _check_target(where, name, array, shape, like, *inputs)
