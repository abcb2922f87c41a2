"""Every defect is named, and nothing else, in every shape, dtype, storage and form that makes sense."""

import numpy as np
import pytest

from denselayer.doctor import diagnose, diagnose_layer, zoo
from denselayer.doctor._zoo_pieces import FAULTS
from tests.denselayer import doctor_cases as cases

BOTH = pytest.mark.parametrize("dtype", cases.DTYPES, ids=["float64", "float32"])
OF_GATES = [name for name, fault in FAULTS.items() if "gate" in fault.slots and len(fault.slots) <= 2]
IN_ARRAYS = [name for name, fault in FAULTS.items() if "loss" in fault.forms]


def assert_none(examined, wrong):
    assert not wrong, f"{len(wrong)} of {examined} not named:\n" + "\n".join(wrong)


@BOTH
@pytest.mark.parametrize("defect", cases.LAYER_DEFECTS)
def test_a_defect_of_a_layer_is_named_and_nothing_else(defect, dtype):
    examined, wrong = cases.misses(cases.layer_specimens(defect, dtype))
    only_float64 = defect == "float32-arithmetic" and dtype is np.float32
    assert only_float64 or examined >= 3
    assert_none(examined, wrong)


@pytest.mark.parametrize("defect", OF_GATES)
def test_a_defect_of_an_activation_alone_is_named(defect):
    examined, wrong = cases.misses(cases.activation_specimens(defect))
    assert examined == 12
    assert_none(examined, wrong)


@BOTH
@pytest.mark.parametrize("defect", IN_ARRAYS)
def test_from_arrays_alone_a_defect_is_named_or_at_least_not_called_another(defect, dtype):
    def accepted(specimen):
        if defect in cases.FROM_ARRAYS:
            return [{defect}]
        return [{defect}, {"cannot tell"}]

    examined, wrong = cases.misses(cases.array_specimens(defect, dtype), accepted)
    assert examined >= 3
    assert_none(examined, wrong)


@pytest.mark.parametrize("defect", cases.ALL_LOSS_DEFECTS)
def test_a_defect_of_a_loss_is_named(defect):
    examined, wrong = cases.misses(cases.loss_specimens(defect))
    assert examined >= 12
    assert_none(examined, wrong)


@BOTH
@pytest.mark.parametrize("defect", cases.ALL_STEP_DEFECTS)
def test_a_defect_of_a_training_step_is_named(defect, dtype):
    examined, wrong = cases.misses(cases.step_specimens(defect, dtype))
    assert examined >= 6
    assert_none(examined, wrong)


@pytest.mark.parametrize("defects", [(), ("bias-averaged",), ("weight-transposed",)])
def test_a_large_layer_takes_a_bounded_number_of_forward_passes(defects):
    made = zoo.faulty(defects, form="instance", in_features=256, out_features=256, activation="relu")
    layer, rows = made.subject, []
    forward = type(layer).forward

    def counted(self, x):
        rows.append(len(x))
        return forward(self, x)

    type(layer).forward = counted
    report = diagnose_layer(layer)
    assert set(report.defects) == set(defects)
    assert 0 < len(rows) <= 200
    assert sum(rows) <= 20_000


@pytest.mark.parametrize("activation", ["relu", "leaky_relu"])
def test_the_activation_of_one_unit_is_seen_though_few_inputs_shut_it(activation):
    for seed in range(20):
        options = {"in_features": 1 + seed % 2, "out_features": 1, "storage": zoo.STORAGE[seed % 3]}
        report = zoo.faulty([], form="instance", activation=activation, seed=seed, **options).diagnose()
        assert report.healthy and activation.replace("_", " ") in report.subject, report


@pytest.mark.parametrize("place", [(0, 0), (7, 3), (11, 11)])
def test_one_wrong_entry_of_many_is_not_called_healthy(place):
    weight = np.random.default_rng(0).normal(size=(12, 12))
    grads = {"weight": 2 * weight}
    grads["weight"][place] += 1.0
    assert diagnose(lambda params: (params["weight"] ** 2).sum(), {"weight": weight}, grads).defects == ()
    assert not diagnose(lambda params: (params["weight"] ** 2).sum(), {"weight": weight}, grads).healthy
