"""Faulty and healthy layers, losses and training steps, made to order: what the doctor is tested on.

Every specimen is put together from the pieces of one right program, and a defect replaces a piece. `faulty`
makes a layer with the defects that you name, `faulty_loss` a loss, `faulty_step` a training step; `healthy`
draws something without a defect, and `pairs` says which defects can occur together.

>>> specimen = faulty(["bias-averaged"], storage="in_out", activation="identity", spelling="book")
>>> layer = specimen.subject()
>>> out = layer.forward(np.ones((5, 3)))
>>> d_x = layer.backward(np.ones((5, 4)))
>>> layer.d_weight.shape, layer.d_bias
((3, 4), array([1., 1., 1., 1.]))
"""

from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from .. import functional, nn
from . import _zoo_losses, _zoo_networks, _zoo_steps
from ._zoo_layers import SPELLINGS, Plan, layer_class, layer_functions
from ._zoo_pieces import ACTIVATIONS, FAULTS, OTHERS, STORAGE, Pieces

__all__ = [
    "Specimen",
    "can_have",
    "faulty",
    "faulty_activation",
    "faulty_loss",
    "faulty_step",
    "faulty_tied",
    "healthy",
    "pairs",
]

FORMS = ("class", "instance", "functions", "loss")
TOGETHER_ALONE = {
    frozenset({"weight-averaged", "bias-averaged"}): "the same arithmetic as all-averaged",
    frozenset({"gradient-zero", "stale-cache"}): "without an activation only the weight shows the cache",
    frozenset({"input-changed", "integer-arithmetic"}): "whole numbers refuse to be changed by fractions",
}
"""Pairs whose pieces differ, and which cannot both be seen, with the reason."""


@dataclass(frozen=True)
class Specimen:
    """Something to examine, and what is known about it.

    ``defects`` are the ids that were put in, ``kind`` is ``"layer"``, ``"arrays"``, ``"loss"`` or ``"step"``.
    ``given`` and ``options`` are the arguments for `diagnose_layer`, `diagnose`, `diagnose_loss` or
    `diagnose_step`. ``words`` describe it.
    """

    defects: tuple[str, ...]
    kind: str
    given: tuple
    options: dict = field(default_factory=dict)
    words: str = ""

    @property
    def subject(self):
        """The first thing that is given: the class, the forward pass, the loss or the step."""
        return self.given[0]

    def diagnose(self):
        """Have the doctor examine it."""
        from denselayer import doctor

        names = {"layer": "diagnose_layer", "arrays": "diagnose", "loss": "diagnose_loss"}
        return getattr(doctor, names.get(self.kind, "diagnose_step"))(*self.given, **self.options)

    def __repr__(self):
        return f"<Specimen: {', '.join(self.defects) or 'healthy'}: {self.words}>"


def can_have(defect, *, form="class", storage="out_in", dtype=np.float64, in_features=3, out_features=4):
    """Whether a layer can have this defect in this form, so that it shows.

    Args:
        defect: an id of the table.
        form, storage, dtype, in_features, out_features: as in `faulty`.

    >>> can_have("bias-not-summed", storage="out_in"), can_have("bias-not-summed", storage="augmented")
    (True, False)
    """
    if defect == "shared-weight-overwritten":
        return form in ("class", "instance") and storage == "out_in"
    if defect not in FAULTS:
        return False
    fault = FAULTS[defect]
    fits = in_features == out_features or not fault.square or form == "class"
    dtypes = [np.dtype(known) for known in fault.dtypes]
    return form in fault.forms and storage in fault.storage and np.dtype(dtype) in dtypes and fits


def faulty(
    defects,
    *,
    form="class",
    storage="out_in",
    dtype=np.float64,
    in_features=3,
    out_features=4,
    activation=None,
    spelling=None,
    seed=0,
):
    """Make a dense layer with the defects that are named, and no others.

    Args:
        defects: ids of the table, such as ``["weight-transposed", "bias-averaged"]``.
        form: ``"class"``, ``"instance"``, ``"functions"`` (forward, backward) or ``"loss"`` (a loss, its
            parameters and gradients).
        storage: ``"out_in"``, ``"in_out"`` or ``"augmented"`` (bias in column 0, batch as columns).
        dtype: of the parameters.
        in_features, out_features: the sizes.
        activation: one of `ACTIVATIONS` or `OTHERS`; None for one in which the defects show.
        spelling: how the attributes of a class are called, one of ``"book"``, ``"short"``, ``"long"``,
            ``"dict"``, ``"parameters"`` and ``"returned"``; for functions, how they pass on what they keep,
            one of ``"cache"``, ``"dict"`` and ``"given"``. None to draw one.
        seed: for the parameters, and for what a defect leaves open.

    Returns:
        A `Specimen`.

    Raises:
        ValueError: these defects cannot occur together, or not in this form.

    >>> made = faulty(["sign-flipped"], form="functions", activation="identity", spelling="cache")
    >>> forward, backward = made.given
    >>> out, cache = forward(np.ones((1, 2)), np.ones((1, 2)), np.zeros(1))
    >>> [gradient.tolist() for gradient in backward(np.ones((1, 1)), cache)]
    [[[-1.0, -1.0]], [[-1.0, -1.0]], [-1.0]]
    """
    defects, rng = tuple(defects), np.random.default_rng(seed)
    if defects == ("shared-weight-overwritten",):
        return faulty_tied(in_features, out_features, form=form, dtype=dtype)
    activation = _activation(defects, activation, rng)
    _check(defects, form, storage, dtype, in_features, out_features, activation)
    pieces = Pieces()
    for defect in defects:
        FAULTS[defect].install(pieces, rng)
    if {"weight-transposed", "wrong-shape", "bias-not-summed", "bias-wrong-axis"} & set(defects):
        pieces.starts = "none"
    if len(defects) > 1:
        pieces.mixing = min(pieces.mixing, 0.5)  # without its mean, the gradient of the bias is zero
    plan = Plan(pieces, activation, storage)
    words = f"{form}, {storage}, {np.dtype(dtype)}, {in_features} x {out_features}, {activation}, seed {seed}"
    return _layer(plan, defects, form, dtype, in_features, out_features, spelling, rng, words)


def _activation(defects, activation, rng):
    if activation is not None:
        return activation
    every = (*ACTIVATIONS, *OTHERS)
    fit = [name for name in every if all(name in FAULTS[defect].activations for defect in defects)]
    if not fit:
        raise ValueError(f"faulty: {defects} show in no common activation; take one of them away.")
    gated = any("identity" not in FAULTS[defect].activations for defect in defects)
    return fit[rng.integers(len(fit))] if gated or rng.random() < 0.3 else "identity"


def _check(defects, form, storage, dtype, in_features, out_features, activation):
    sizes = {"in_features": in_features, "out_features": out_features}
    for defect in defects:
        if not can_have(defect, form=form, storage=storage, dtype=dtype, **sizes):
            raise ValueError(f"faulty: {defect} makes no sense in {form}, {storage}, {np.dtype(dtype)}.")
        if activation not in FAULTS[defect].activations:
            raise ValueError(f"faulty: {defect} does not show with {activation}.")
    for one, other in combinations(defects, 2):
        if FAULTS[one].slots & FAULTS[other].slots or frozenset((one, other)) in TOGETHER_ALONE:
            raise ValueError(f"faulty: {one} and {other} cannot occur together.")


def _layer(plan, defects, form, dtype, in_features, out_features, spelling, rng, words, scale=1.0):
    if form in ("class", "instance"):
        spellings = [name for name in SPELLINGS if name != "returned" or not plan.pieces.adds]
        spelling = spelling or spellings[rng.integers(len(spellings))]
        returns = bool(rng.integers(2))
        made = layer_class(plan, spelling, in_features, out_features, dtype, returns, scale)
        subject = made if form == "class" else made()
        return Specimen(defects, "layer", (subject,), words=f"{words}, {spelling}")
    if form == "functions":
        keeps = plan.pieces.centres or plan.pieces.reuses_input or plan.pieces.noise or plan.pieces.mixing
        style = spelling or ("cache", "dict", "given")[rng.integers(2 if keeps else 3)]
        params = plan.draw(in_features, out_features, rng, dtype, scale)
        x = plan.draw_input(5, in_features, rng, dtype)
        pair = layer_functions(plan, style)
        found = plan.storage != "augmented" and dtype is np.float64 and rng.integers(2)
        options = {} if found else {"params": params, "x": x}
        return Specimen(defects, "layer", pair, options, f"{words}, {style}, {len(options)} given")
    return _arrays(plan, defects, dtype, in_features, out_features, rng, words)


def _arrays(plan, defects, dtype, in_features, out_features, rng, words):
    params = plan.draw(in_features, out_features, rng, dtype)
    x = plan.draw_input(5, in_features, rng, dtype)
    target = plan.rows(rng.normal(size=(5, out_features)).astype(dtype))
    right = Plan(Pieces(), plan.activation, plan.storage, plan.has_bias)

    def loss(params):
        out, _ = right.forward(params.get("x", x), params)
        return np.mean((out - target) ** 2)

    out, z = right.forward(x, params)
    d_x, grads = plan.backward(2 * (out - target) / out.size, x, z, params)
    if plan.zero_bias:  # at several kinks at once no claim for x lies between the slopes
        return Specimen(defects, "arrays", (loss, params, grads), words=words)
    return Specimen(defects, "arrays", (loss, params | {"x": x}, grads | {"x": d_x}), words=words)


def faulty_tied(in_features=3, out_features=4, *, form="class", dtype=np.float64, overwritten=True):
    """Make an autoencoder that uses one weight twice and keeps only one share of its gradient.

    Args:
        in_features: of the data; out_features: of the code between encoder and decoder.
        form: ``"class"`` or ``"instance"``.
        dtype: of the parameters.
        overwritten: False for a right one.

    >>> faulty_tied(3, 4).defects, faulty_tied(3, 4, overwritten=False).defects
    (('shared-weight-overwritten',), ())
    """
    made = _zoo_networks.tied_class(in_features, out_features, dtype, overwritten=overwritten)
    words = f"a tied autoencoder, {form}, {np.dtype(dtype)}, {in_features} x {out_features}"
    defects = ("shared-weight-overwritten",) if overwritten else ()
    return Specimen(defects, "layer", (made if form == "class" else made(),), words=words)


def faulty_activation(defect, *, form="class", activation=None, seed=0):
    """Make an activation on its own with one of the defects of a gate.

    Args:
        defect: an id of the group "gates", or ``"upstream-changed"``.
        form: ``"class"`` or ``"functions"``.
        activation: one in which the defect shows; None to draw one.
        seed: for what is left open.

    >>> forward, backward = faulty_activation("gate-missing", form="functions").given
    >>> backward(np.array([3.0]), np.array([-100.0]))
    array([3.])
    """
    rng, pieces = np.random.default_rng(seed), Pieces()
    activation = _activation((defect,), activation, rng)
    FAULTS[defect].install(pieces, rng)
    parts = (activation, pieces.gate, pieces.spoils_upstream)
    if form == "class":
        given = (_zoo_networks.activation_class(*parts),)
    else:
        given = _zoo_networks.activation_functions(*parts)
    return Specimen((defect,), "layer", given, words=f"{activation} alone, {form}")


def faulty_loss(defects, *, kind="squared", reduction=None, form="functions", seed=0):
    """Make a loss with a hand-written gradient that has these defects.

    Args:
        defects: ids of the table.
        kind: ``"squared"``, ``"half"``, ``"absolute"``, ``"labels"``, ``"one-hot"`` or ``"binary"``.
        reduction: ``"mean"``, ``"rows"`` or ``"sum"``; None for that of the kind.
        form: ``"functions"`` or ``"class"``.
        seed: for what a defect leaves open.

    Returns:
        A `Specimen`.

    Raises:
        ValueError: a loss of this kind cannot have the defect, or not these together.

    >>> loss, gradient = faulty_loss(["sign-flipped"]).given
    >>> gradient(np.array([[1.0]]), np.array([[0.0]]))
    array([[-2.]])
    """
    rng, loss = np.random.default_rng(seed), _loss(kind, reduction)
    taken = set()
    for defect in defects:
        slots, kinds, ways = _zoo_losses.LOSS_FAULTS[defect]
        if kind not in kinds or taken & set(slots.split()):
            raise ValueError(f"faulty_loss: a loss {kind} cannot have {defect}, or not with the others.")
        taken |= set(slots.split())
        loss = ways[rng.integers(len(ways))](loss, kind)
    made = (_zoo_losses.loss_class(loss),) if form == "class" else _zoo_losses.loss_functions(loss)
    return Specimen(tuple(defects), "loss", made, words=f"{kind}, {loss.reduction}, {form}, seed {seed}")


def _loss(kind, reduction):
    loss = _zoo_losses.EVERY_KIND[kind]
    return loss if reduction is None else _zoo_losses.replace(loss, reduction=reduction)


def faulty_step(defects, *, form="returning", dtype=np.float64, activation="tanh", seed=0):
    """Make one training step of a small network, with these defects.

    Args:
        defects: ids of the table.
        form: ``"returning"`` new parameters, ``"changing"`` those that it is given, or ``"object"``, with
            forward, backward and step.
        dtype: of the parameters.
        activation: one of `ACTIVATIONS`.
        seed: for the parameters and the batch.

    Returns:
        A `Specimen`; its step is called as ``step(params, x, t, lr)``, unless it is an object.

    Raises:
        ValueError: these defects cannot occur together, or not in this form.

    >>> made = faulty_step(["cleared-too-early"])
    >>> step, params = made.given
    >>> after = step(params, made.options["x"], made.options["t"], 0.1)
    >>> bool((after["W1"] == params["W1"]).all())
    True
    """
    order, taken = _zoo_steps.Order(), set()
    for defect in defects:
        slots, install = _zoo_steps.STEP_FAULTS[defect]
        if form == "object" and defect in _zoo_steps.OF_THE_LOSS:
            raise ValueError(f"faulty_step: {defect} is a defect of the loss, and an object has none.")
        if taken & set(slots.split()):
            raise ValueError(f"faulty_step: {defects} cannot occur together.")
        taken |= set(slots.split())
        install(order)
    return _step(order, tuple(defects), form, dtype, activation, seed)


def _step(order, defects, form, dtype, activation, seed):
    network = _zoo_steps.Network(order, activation)
    params, x, t = _zoo_steps.draw(seed, dtype)
    words = f"a step, {form}, {np.dtype(dtype)}, {activation}"
    if form == "object":
        model = _zoo_steps.model_class(network, params)()
        return Specimen(defects, "step", (model,), {"x": x, "t": t}, words)
    make = _zoo_steps.returning_step if form == "returning" else _zoo_steps.changing_step
    options = {"loss": network.loss, "x": x, "t": t, "predict": network.predict}
    return Specimen(defects, "step", (make(network), params), options, words)


def healthy(seed):
    """Draw something without a defect: a layer, an activation, a network, a loss or a step.

    Args:
        seed: which one; the same seed gives the same specimen.

    Returns:
        A `Specimen` without defects. Storage, spelling, form, dtype, sizes (1 x 1 too), activation, scale,
        reduction, tied weights, weight decay and clearing of gradients are drawn.

    >>> healthy(1).defects
    ()
    """
    rng = np.random.default_rng([seed, 11])
    draw = (_healthy_layer,) * 5 + (_healthy_arrays, _healthy_activation, _healthy_network, _healthy_loss)
    return (*draw, _healthy_step, _healthy_module)[seed % 11](rng, seed)


def _sizes(rng):
    return tuple(int(size) for size in rng.choice([1, 2, 3, 4, 5, 7, 9], 2))


def _choose(rng, things):
    return things[rng.integers(len(things))]


def _healthy_layer(rng, seed):
    storage, activation = _choose(rng, STORAGE), _choose(rng, (*ACTIVATIONS, *OTHERS))
    dtype, form = _choose(rng, (np.float32, np.float64)), _choose(rng, FORMS[:3])
    adds, (inputs, outputs) = bool(rng.integers(2)), _sizes(rng)
    pieces = Pieces(adds=adds, clears=adds, copies=bool(rng.integers(2)))
    has_bias, zero_bias = storage == "augmented" or rng.random() < 0.8, rng.random() < 0.3
    plan = Plan(pieces, activation, storage, has_bias, zero_bias)
    scale = _choose(rng, (1e-2, 1.0, 1.0, 1.0, 5.0))
    words = f"healthy {seed}, {form}, {storage}, {np.dtype(dtype)}, {inputs} x {outputs}, {activation}"
    words += f", bias {has_bias}, zero {zero_bias}, adds {adds}, scale {scale}"
    return _layer(plan, (), form, dtype, inputs, outputs, None, rng, words, scale)


def _healthy_arrays(rng, seed):
    zero_bias = rng.random() < 0.3
    every = (*ACTIVATIONS, *OTHERS)
    plan = Plan(Pieces(), _choose(rng, every), _choose(rng, STORAGE), zero_bias=zero_bias)
    dtype, sizes = _choose(rng, (np.float32, np.float64)), _sizes(rng)
    words = f"healthy {seed}, arrays, {plan.storage}, {np.dtype(dtype)}, {sizes}, {plan.activation}"
    words += f", zero {zero_bias}"
    return _arrays(plan, (), dtype, *sizes, rng, words)


def _healthy_activation(rng, seed):
    name = _choose(rng, (*ACTIVATIONS[1:], *OTHERS))
    functions = bool(rng.integers(2))
    make = _zoo_networks.activation_functions if functions else _zoo_networks.activation_class
    made = make(name, Pieces().gate)
    return Specimen((), "layer", made if functions else (made,), words=f"healthy {seed}, {name} alone")


def _healthy_network(rng, seed):
    dtype, (inputs, outputs) = _choose(rng, (np.float32, np.float64)), _sizes(rng)
    activation = _choose(rng, (*ACTIVATIONS, *OTHERS))
    words = f"healthy {seed}, {np.dtype(dtype)}, {inputs} x {outputs}, {activation}"
    if rng.integers(2):
        made = _zoo_networks.tied_class(inputs, outputs, dtype, activation=activation)
        return Specimen((), "layer", (made(),), words=f"{words}, tied")
    made = _zoo_networks.network_class(inputs, _sizes(rng)[0], outputs, dtype, activation)
    return Specimen((), "layer", (made(),), words=f"{words}, network")


def _healthy_module(rng, seed):
    """A layer, an activation or a network of the package itself."""
    (inputs, outputs), dtype = _sizes(rng), _choose(rng, (np.float32, np.float64))
    linear = nn.Linear(inputs, outputs, rng=seed, dtype=dtype, bias=bool(rng.integers(2)))
    activation = getattr(nn, _choose(rng, ("ReLU", "LeakyReLU", "Sigmoid", "Tanh", "GELU", "SiLU")))()
    last = nn.Linear(outputs, 3, rng=seed + 1, dtype=dtype)
    given = _choose(
        rng,
        (
            (linear,),
            (activation,),
            (nn.Sequential(linear, activation, last),),
            (nn.Linear,),
            (functional.linear, functional.linear_backward),
            (functional.tanh, functional.tanh_backward),
        ),
    )
    words = f"healthy {seed}, {np.dtype(dtype)}, {inputs} x {outputs}, {given[0]!r}"
    return Specimen((), "layer", given, words=" ".join(words.split()))


def _healthy_loss(rng, seed):
    kind, form = _choose(rng, tuple(_zoo_losses.EVERY_KIND)), _choose(rng, ("functions", "class"))
    reduction = _choose(rng, ("mean", "rows", "sum", None))
    made = faulty_loss((), kind=kind, reduction=reduction, form=form)
    return Specimen((), "loss", made.given, words=f"healthy {seed}, {made.words}")


def _healthy_step(rng, seed):
    order = _zoo_steps.Order()
    order.decay = _choose(rng, (0.0, 0.0, 0.0, 0.01, 0.1))
    order.memory = _choose(rng, ("none", "none", "none", "momentum", "adam"))
    form, dtype = _choose(rng, ("returning", "changing")), _choose(rng, (np.float32, np.float64))
    if order.memory == "none" and not order.decay and rng.integers(2):
        form = "object"
    made = _step(order, (), form, dtype, _choose(rng, (*ACTIVATIONS, *OTHERS)), seed)
    words = f"healthy {seed}, {made.words}, decay {order.decay}, {order.memory}"
    return Specimen((), "step", made.given, made.options, words)


def pairs(kind="layer"):
    """Yield the pairs of defects that can occur together, so that both can be seen.

    Args:
        kind: ``"layer"``, ``"loss"`` or ``"step"``.

    >>> ("weight-transposed", "bias-averaged") in set(pairs())
    True
    >>> ("bias-averaged", "bias-zero") in set(pairs())
    False
    """
    if kind == "layer":
        for one, other in combinations(FAULTS, 2):
            if _fit_together(one, other):
                yield one, other
        return
    table = _zoo_losses.LOSS_FAULTS if kind == "loss" else _zoo_steps.STEP_FAULTS
    for one, other in combinations(table, 2):
        shared = set(table[one][0].split()) & set(table[other][0].split())
        fits = kind == "step" or set(table[one][1]) & set(table[other][1])
        if not shared and fits:
            yield one, other


def _fit_together(one, other):
    first, second = FAULTS[one], FAULTS[other]
    common = (set(first.activations) & set(second.activations)) and set(first.forms) & set(second.forms)
    alone = frozenset((one, other)) in TOGETHER_ALONE
    return bool(common and set(first.storage) & set(second.storage)) and not (
        alone or first.slots & second.slots
    )
