"""The report of the doctor: what it says, in a terminal, in a notebook and as JSON."""

import json
import re

import numpy as np
import pytest
from bs4 import BeautifulSoup

from denselayer.doctor import DEFECTS, ArrayVerdict, Entry, Finding, Report
from denselayer.doctor._report import worst_entries

WRONG = ArrayVerdict("W", "wrong", (Entry((0, 1), 2.0, -2.0), Entry((1, 1), 1.0, 1.0)), 4, 4)
RIGHT = ArrayVerdict("b", "healthy", (Entry((0,), 1.0, 1.0),), 2, 2)
OPEN = ArrayVerdict("x", "cannot tell", (Entry((0, 0), np.nan, 1.0),), 1, 1)
UNSEEN = ArrayVerdict("x", "not checked", note="backward gave no gradient for it.")
FLIPPED = Finding("sign-flipped", ("W",))


@pytest.mark.parametrize(
    ("arrays", "findings", "failed", "status"),
    [
        ((RIGHT,), (), False, "healthy"),
        ((RIGHT, UNSEEN), (), False, "healthy"),
        ((WRONG, RIGHT), (FLIPPED,), False, "sick"),
        ((RIGHT,), (FLIPPED,), False, "sick"),
        ((RIGHT, OPEN), (), False, "cannot tell"),
        ((RIGHT, WRONG), (), False, "cannot tell"),
        ((UNSEEN,), (), False, "cannot tell"),
        ((), (), False, "cannot tell"),
        ((RIGHT,), (), True, "cannot tell"),
    ],
)
def test_a_report_is_healthy_only_if_something_was_seen_and_all_of_it_is_right(
    arrays, findings, failed, status
):
    report = Report("a layer", arrays, findings, failed=failed)
    assert report.status == status
    assert report.healthy == (status == "healthy")


def test_the_text_begins_with_the_verdict_and_holds_all_that_was_found():
    text = str(Report("a layer", (WRONG, RIGHT, UNSEEN), (FLIPPED,), ("It was small.",)))
    first = text.splitlines()[0]
    assert first == "SICK: a layer: sign flipped"
    for part in ("[0, 1]", "2.0e+00", FLIPPED.evidence[:40], "1. sign flipped [sign-flipped]"):
        assert part in text
    assert "note: It was small." in text
    assert "note: x: backward gave no gradient for it." in text
    assert max(map(len, text.splitlines())) <= 110


def test_what_is_only_rounding_is_not_printed():
    rounded = ArrayVerdict("W", "healthy", (Entry((0,), 1.0, 1.0 + 1e-15),), 1, 1)
    assert "e-" not in str(Report("a layer", (rounded,)))
    zero = ArrayVerdict("W", "wrong", (Entry((0,), 2.0, 3e-11),), 1, 1)
    assert str(Report("a layer", (zero,))).splitlines()[-1].split()[-3:] == ["2", "0", "1.0e+00"]


def test_defects_are_listed_once_each():
    report = Report("a layer", (WRONG,), (FLIPPED, Finding("sign-flipped", ("b",))))
    assert report.defects == ("sign-flipped",)


def test_the_html_is_a_table_without_style_or_script_and_escapes_what_people_wrote():
    report = Report("a <layer>", (WRONG, RIGHT), (Finding("crash", ("backward",), {"other": "Error: <b>"}),))
    page = BeautifulSoup(report.to_html(), "html5lib")
    assert report._repr_markdown_() == report.to_html()
    assert not page.find_all(["style", "script", "b"])
    assert "a <layer>" in page.find("caption").text
    assert page.find("dt").text == "seen"
    assert "Error: <b>" in page.find("dd").text
    assert not hasattr(report, "_repr_html_")


def test_the_json_holds_plain_values_and_the_sentences():
    report = Report("a layer", (WRONG, OPEN), (Finding("factor", ("W",), {"factor": np.float64(0.3)}),))
    content = json.loads(report.to_json())
    assert content["status"] == "sick"
    assert [array["verdict"] for array in content["arrays"]] == ["wrong", "cannot tell"]
    assert content["arrays"][0]["entries"][0] == {
        "index": [0, 1],
        "theirs": 2.0,
        "numeric": -2.0,
        "relative_error": 2.0,
    }
    assert content["arrays"][1]["entries"][0]["theirs"] == "nan"
    assert content["findings"][0]["facts"] == {"factor": 0.3}
    assert "0.3 times" in content["findings"][0]["evidence"]


def test_a_finding_takes_its_words_from_the_table():
    finding = Finding("bias-not-summed", ("b",), {"shape": (5, 3), "expected": (3,)})
    defect = DEFECTS["bias-not-summed"]
    assert (finding.name, finding.computed, finding.right) == (defect.name, defect.wrong, defect.right)
    assert "(5, 3)" in finding.evidence
    assert "(3,)" in finding.change


def test_formulas_of_the_layer_itself_come_before_those_of_the_table():
    finding = Finding("sign-flipped", ("W",), formulas=("d_W = -x.T @ d_out", "d_W = x.T @ d_out"))
    assert finding.computed == "d_W = -x.T @ d_out"
    assert "computed: d_W = -x.T @ d_out" in str(finding)
    assert "such as:" in str(FLIPPED)


def test_sentences_begin_with_a_capital():
    finding = Finding("view-kept", ("the gradient of W",), {"other": "d_out"})
    assert finding.evidence.startswith("The gradient of W")


def test_a_finding_that_is_not_in_the_table_is_refused():
    with pytest.raises(ValueError, match="no-such-defect"):
        Finding("no-such-defect", ("W",))


def test_the_worst_entries_come_first_and_what_is_no_number_before_all():
    theirs = np.array([[1.0, 5.0], [np.nan, 2.0]])
    entries = worst_entries(theirs, np.array([[1.0, 2.0], [3.0, 1.0]]))
    assert [entry.index for entry in entries] == [(1, 0), (0, 1), (1, 1)]


@pytest.mark.parametrize("defect", DEFECTS)
def test_every_defect_prints(defect):
    facts = {name: 0.5 for name in DEFECTS[defect].fields - {"where"}}
    text = str(Finding(defect, ("W", "b"), facts))
    assert not re.search(r"[{}]", text.replace(DEFECTS[defect].wrong, "").replace(DEFECTS[defect].right, ""))
