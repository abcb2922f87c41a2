"""The cases that the doctor is measured on, and how its answers are counted."""

from collections import Counter
from itertools import product

import numpy as np

from denselayer.doctor import zoo
from denselayer.doctor._zoo_losses import KINDS, LOSS_FAULTS
from denselayer.doctor._zoo_pieces import FAULTS, STORAGE
from denselayer.doctor._zoo_steps import OF_THE_LOSS, STEP_FAULTS

SHAPES = ((4, 4), (5, 3), (2, 6))
DTYPES = (np.float64, np.float32)
FORMS = ("class", "instance", "functions")
LAYER_DEFECTS = (*FAULTS, "shared-weight-overwritten")
FROM_ARRAYS = {
    "weight-transposed",
    "sign-flipped",
    "factor",
    "bias-not-summed",
    "bias-zero",
    "gradient-zero",
    "wrong-shape",
}
"""What can be told from arrays alone; of the others `diagnose` may only say that they are wrong."""


def layer_specimens(defect, dtype, seed=0, forms=1):
    """A layer with this defect in every shape and storage in which it makes sense, and in turn in every form.

    ``forms`` is how many of the forms each shape and storage is made in.
    """
    turn = seed + DTYPES.index(dtype)
    for number, (sizes, storage) in enumerate(product(SHAPES, STORAGE)):
        options = {"in_features": sizes[0], "out_features": sizes[1], "storage": storage, "dtype": dtype}
        fitting = [form for form in FORMS if zoo.can_have(defect, form=form, **options)]
        for more in range(min(forms, len(fitting))):
            turn += 1
            form = fitting[(turn + number // len(STORAGE)) % len(fitting)]
            yield zoo.faulty([defect], form=form, seed=100 * seed + number + 10 * more, **options)


def array_specimens(defect, dtype, seed=0):
    """A loss with its gradients, in every shape and storage."""
    for number, (sizes, storage) in enumerate(product(SHAPES, STORAGE)):
        options = {"in_features": sizes[0], "out_features": sizes[1]}
        options |= {"storage": storage, "form": "loss", "dtype": dtype}
        if zoo.can_have(defect, **options):
            yield zoo.faulty([defect], seed=100 * seed + number, **options)


def activation_specimens(defect):
    """An activation alone with this defect."""
    for number, form in product(range(6), ("class", "functions")):
        yield zoo.faulty_activation(defect, form=form, seed=number)


def loss_specimens(defect):
    """A loss with this defect: every kind, reduction and form."""
    reductions = ("mean", "rows", "sum")
    for number, (kind, reduction, form) in enumerate(product(KINDS, reductions, ("functions", "class"))):
        about_reduction = defect in ("averaged-twice", "summed-not-averaged")
        if kind in LOSS_FAULTS[defect][1] and not (about_reduction and reduction == "sum"):
            yield zoo.faulty_loss([defect], kind=kind, reduction=reduction, form=form, seed=number)


def step_specimens(defect, dtype):
    """A training step with this defect."""
    for form, activation in product(("returning", "changing", "object"), ("tanh", "relu", "identity")):
        if form == "object" and defect in OF_THE_LOSS:
            continue
        yield zoo.faulty_step([defect], form=form, activation=activation, dtype=dtype, seed=len(activation))


def pair_specimens(one, other, count=2, seed=0):
    """Layers that have both defects, in a few of the forms, storages and dtypes in which they fit."""
    fitting = []
    for sizes, storage, form, dtype in product(SHAPES, STORAGE, FORMS, DTYPES):
        options = {"in_features": sizes[0], "out_features": sizes[1]}
        options |= {"storage": storage, "form": form, "dtype": dtype}
        if all(zoo.can_have(defect, **options) for defect in (one, other)):
            fitting.append(options)
    rng = np.random.default_rng([len(one), len(other), len(fitting), seed])
    for number in rng.choice(len(fitting), min(count, len(fitting)), replace=False):
        yield zoo.faulty([one, other], seed=100 * seed + int(number), **fitting[number])


def loss_pair_specimens(one, other):
    """Losses that have both defects."""
    common = [kind for kind in LOSS_FAULTS[one][1] if kind in LOSS_FAULTS[other][1]]
    for number, kind in enumerate(common):
        yield zoo.faulty_loss([one, other], kind=kind, seed=number)


def step_pair_specimens(one, other):
    """Steps that have both defects."""
    for form in ("returning", "changing"):
        yield zoo.faulty_step([one, other], form=form, seed=1)


def answer(specimen):
    """What the doctor says: the ids, or the status where it names nothing; an exception counts as one."""
    try:
        report = specimen.diagnose()
    except Exception as error:
        return (f"{type(error).__name__}: {error}",)
    return report.defects or (report.status,)


def misses(specimens, accepted=lambda specimen: [set(specimen.defects)]):
    """How many were examined, and the specimens whose answer is not accepted."""
    examined, wrong = 0, []
    for specimen in specimens:
        examined += 1
        said = answer(specimen)
        if set(said) not in accepted(specimen):
            wrong.append(f"{specimen!r} said {', '.join(said)}")
    return examined, wrong


def confusions(specimens):
    """For pairs: how many were examined, how many had both named, and the answers that name a third."""
    examined, both, third, partly = 0, 0, [], Counter()
    for specimen in specimens:
        examined += 1
        said, put_in = set(answer(specimen)), set(specimen.defects)
        both += said == put_in
        if said - put_in - {"cannot tell", "healthy"}:
            third.append(f"{specimen!r} said {', '.join(sorted(said))}")
        elif said != put_in:
            partly[f"{' + '.join(specimen.defects)} said {', '.join(sorted(said))}"] += 1
    return examined, both, third, partly


ALL_STEP_DEFECTS = tuple(STEP_FAULTS)
ALL_LOSS_DEFECTS = tuple(LOSS_FAULTS)
