"""A thousand healthy layers, activations, networks, losses and steps, and not one false alarm."""

import pytest

from denselayer.doctor import zoo
from tests.denselayer import doctor_cases as cases

PARTS = 20
ALL = 1000


@pytest.mark.parametrize("part", range(PARTS))
def test_what_is_healthy_is_called_healthy(part):
    examined, wrong = cases.misses(
        (zoo.healthy(seed) for seed in range(part, ALL, PARTS)), accepted=lambda specimen: [{"healthy"}]
    )
    assert examined == ALL // PARTS
    assert not wrong, f"{len(wrong)} of {examined} not found healthy:\n" + "\n".join(wrong)
