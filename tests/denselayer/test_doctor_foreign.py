"""The doctor before code that it has not seen: true names or none, and everything left as it was."""

import random
import warnings

import numpy as np
import pytest

from denselayer import doctor
from tests.denselayer import foreign_mistakes  # noqa: F401
from tests.denselayer.foreign_layers import FOREIGN, UNSURE

EVERY = pytest.mark.parametrize("name", FOREIGN)


def diagnosed(name):
    """The report on a subject."""
    subject, _ = FOREIGN[name]
    return doctor.diagnose_layer(*(subject if isinstance(subject, tuple) else (subject,)))


@EVERY
def test_foreign_code_gets_its_true_name_or_none(name):
    defects = set(FOREIGN[name][1])
    report = diagnosed(name)
    if UNSURE in defects:
        assert set(report.defects) <= defects, str(report)
        assert not report.healthy
    else:
        assert set(report.defects) == defects, str(report)
        assert report.healthy == (not defects), str(report)
    assert "The doctor itself" not in str(report)


@EVERY
def test_a_diagnosis_says_the_same_twice_and_leaves_no_trace(name, capsys):
    states = repr(np.random.get_state()), random.getstate()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        texts = {str(diagnosed(name)) for _ in range(2)}
    assert len(texts) == 1
    assert (repr(np.random.get_state()), random.getstate()) == states
    assert capsys.readouterr() == ("", "")
