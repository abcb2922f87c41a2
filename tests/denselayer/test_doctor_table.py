"""The table of defects: complete, well formed, and in words that a student can use."""

import ast
import doctest
import re
from pathlib import Path

import pytest

from denselayer.doctor import _defects, zoo
from denselayer.doctor._defects import DEFECTS, FIELDS, GROUPS, Defect, fill
from denselayer.doctor._zoo_losses import LOSS_FAULTS
from denselayer.doctor._zoo_pieces import FAULTS
from denselayer.doctor._zoo_steps import STEP_FAULTS

CHAPTER = Path(__file__).resolve().parents[2] / "chapters" / "05-gradient-checking.qmd"
EXAMPLES = {
    "factor": 0.25,
    "n": "2, 3 and 5",
    "shape": (2, 3),
    "expected": (3, 2),
    "other": "the first batch",
}
NO_DOUBT = re.compile(r"\b(simply|just|obviously|clearly|of course|easy|basically)\b")
IN_THE_CHAPTER = {
    "dW transposed": "weight-transposed",
    "dX with W^T": "input-weight-transposed",
    "db over units": "bias-wrong-axis",
    "gate on dA": "gate-on-upstream",
    "no gate": "gate-missing",
    "db averaged": "bias-averaged",
    "db times N": "bias-times-batch",
    "1/N twice": "averaged-twice",
}
EVERY = pytest.mark.parametrize("defect", DEFECTS.values(), ids=DEFECTS)


@EVERY
def test_a_defect_has_all_its_texts(defect: Defect):
    for name, text in vars(defect).items():
        assert isinstance(text, str) and text == text.strip() and text, name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", defect.id)
    assert defect.group in GROUPS


@EVERY
def test_the_formulas_are_python(defect):
    for code in (defect.wrong, defect.right):
        ast.parse(code if not code.startswith("return ") else f"def f():\n    {code}")
    assert defect.wrong != defect.right


@EVERY
def test_the_templates_use_the_documented_fields_and_no_others(defect):
    assert "where" in defect.fields or defect.id == "random"
    assert defect.fields <= set(FIELDS)
    facts = {name: EXAMPLES[name] for name in defect.fields - {"where"}}
    evidence, change = (fill(text, ("weight",), facts) for text in (defect.evidence, defect.change))
    assert "{" not in evidence + change
    assert "weight" in evidence + change


@EVERY
def test_the_texts_are_sentences(defect):
    for text in (defect.evidence, defect.change, defect.in_training, defect.found_by):
        assert text.endswith((".", ":")) and not text.startswith(" ")
        assert text[0].isupper() or text.startswith(("{where}", "float", "np."))
        assert not NO_DOUBT.search(text)
        assert "  " not in text
    assert defect.name[0].islower() or defect.name.startswith(("Jacobian", "NaN"))


def test_names_and_ids_are_unique():
    assert all(name == defect.id for name, defect in DEFECTS.items())
    assert len({defect.name for defect in DEFECTS.values()}) == len(DEFECTS)


def test_every_mistake_of_the_chapter_on_gradient_checking_is_in_the_table():
    spelt = set(re.findall(r'mistake == "([^"]+)"', CHAPTER.read_text(encoding="utf-8")))
    assert spelt == set(IN_THE_CHAPTER)
    assert set(IN_THE_CHAPTER.values()) <= set(DEFECTS)


def test_the_zoo_can_make_every_defect_that_is_not_about_files():
    made = set(FAULTS) | set(LOSS_FAULTS) | set(STEP_FAULTS) | {"shared-weight-overwritten"}
    about_files = {name for name, defect in DEFECTS.items() if defect.group == "files"}
    assert made <= set(DEFECTS)
    assert set(DEFECTS) - made <= about_files
    for defect in FAULTS:
        assert any(zoo.can_have(defect, form=form) for form in zoo.FORMS)


@pytest.mark.parametrize("module", [zoo, _defects])
def test_examples_run_as_shown(module):
    failed, run = doctest.testmod(module)
    assert run and not failed
