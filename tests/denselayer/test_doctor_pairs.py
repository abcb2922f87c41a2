"""Two defects at once: both are named in at least nine of ten cases, and never a third."""

import random

import pytest

from denselayer.doctor import zoo
from tests.denselayer import doctor_cases as cases

PARTS = 12
PAIRS = random.Random(5).sample(list(zoo.pairs()), k=len(list(zoo.pairs())))


def judged(specimens):
    examined, both, third, partly = cases.confusions(specimens)
    print(f"both named in {both} of {examined}")
    print("\n".join(f"{count} x {confusion}" for confusion, count in partly.most_common()))
    assert examined
    assert not third, f"{len(third)} of {examined} named a third:\n" + "\n".join(third)
    assert both >= 0.9 * examined, f"both named in {both} of {examined}:\n" + "\n".join(partly)


@pytest.mark.parametrize("part", range(PARTS))
def test_two_defects_of_a_layer(part):
    judged(specimen for pair in PAIRS[part::PARTS] for specimen in cases.pair_specimens(*pair))


def test_two_defects_of_a_loss():
    judged(specimen for pair in zoo.pairs("loss") for specimen in cases.loss_pair_specimens(*pair))


def test_two_defects_of_a_training_step():
    judged(specimen for pair in zoo.pairs("step") for specimen in cases.step_pair_specimens(*pair))
