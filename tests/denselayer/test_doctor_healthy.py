"""A thousand healthy layers, activations, networks, losses and steps, and not one false alarm."""

import pytest

from denselayer.doctor import zoo
from tests.denselayer import doctor_cases as cases

PARTS = 20
ALL = 1000


def accepted(specimen):
    """What may be said: an update with a memory or a decay is more than a gradient, and may be left open."""
    more = any(word in specimen.words for word in ("momentum", "adam", "decay 0.01", "decay 0.1"))
    return [{"healthy"}, {"cannot tell"}] if more else [{"healthy"}]


@pytest.mark.parametrize("part", range(PARTS))
def test_what_is_healthy_is_called_healthy(part):
    examined, wrong = cases.misses((zoo.healthy(seed) for seed in range(part, ALL, PARTS)), accepted)
    assert examined == ALL // PARTS
    assert not wrong, f"{len(wrong)} of {examined} not found healthy:\n" + "\n".join(wrong)
