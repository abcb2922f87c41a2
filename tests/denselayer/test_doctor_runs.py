"""The training runs of the defects are real and the same each time, and the table says what they show."""

import doctest
import re

import numpy as np
import pytest

from denselayer import doctor
from denselayer.doctor import DEFECTS, TRAINABLE, _casebook, _run_programs, _runs, training_run

WORDS = {
    "stops": r"\bstops\b",
    "not finite": r"\bNaN\b|\binf\b|without limit|can grow",
    "rises": r"\brises?\b|\bgrows\b|further each time",
    "stands still": r"stands still|stays the same",
    "same": r"^Nothing, |looks the same|^Right as long",
    "as low": r"\bhardly\b|^Little\b|\bmay fall\b",
    "higher": r"\bslow|too short|half or twice|\babove\b|\bhigher\b|may still fall|may fall|stays high|swings"
    r"|jumps|moves|first values|goes wrong",
    "lower": r"^It trains|^The loss falls",
}
"""What must stand in the words of the table, for each way in which a run can end."""
SLOWER = [name for name in TRAINABLE if re.search(r"slowly|too short", DEFECTS[name].in_training)]
SLOWER = [name for name in SLOWER if training_run(name).outcome == "higher"]


def test_every_defect_has_a_run_or_is_a_program_without_an_end():
    assert set(DEFECTS) - set(TRAINABLE) == {"endless-loop", "print-storm", "exits", "memory"}
    assert set(TRAINABLE) <= set(DEFECTS)


@pytest.mark.parametrize("defect", TRAINABLE)
def test_the_right_program_learns(defect):
    right = training_run(defect).right
    assert len(right) == _runs.EPOCHS and np.isfinite(right).all()
    assert right[-1] < 0.25 * right[0]


@pytest.mark.parametrize("defect", TRAINABLE)
def test_the_table_says_what_the_run_shows(defect):
    run = training_run(defect)
    assert re.search(WORDS[run.outcome], DEFECTS[defect].in_training), (run.words, run.outcome)


@pytest.mark.parametrize("defect", TRAINABLE)
def test_what_the_table_says_without_a_may_is_seen(defect):
    text, run = DEFECTS[defect].in_training, training_run(defect)
    if text.startswith(("Nothing,", "Training looks the same")):
        assert run.outcome == "same"
    if text.startswith(("The loss falls", "It trains. ", "Nothing stops, and the loss may")):
        assert run.fell
    if "NaN from then on" in text:
        first = np.argmax(np.isnan(run.wrong))
        assert np.isnan(run.wrong[first:]).all()
    if text.startswith("It trains like the right one until"):
        assert run.epoch > 1
        np.testing.assert_allclose(run.wrong[: run.epoch - 1], run.right[: run.epoch - 1])
    if "to the last digit" in text:
        assert np.ptp(run.wrong) == 0
    if "rises from the first step on" in text:
        assert (np.diff(run.wrong[:30]) > 0).all()


@pytest.mark.parametrize("defect", SLOWER)
def test_what_is_called_slow_gets_there_in_the_end(defect):
    assert training_run(defect, epochs=25 * _runs.EPOCHS).wrong.min() < training_run(defect).right[-1]


def test_some_are_called_slow():
    assert {"averaged-twice", "learning-rate-inside", "all-averaged", "bias-averaged"} <= set(SLOWER)


def test_in_most_runs_the_loss_falls_and_in_some_nobody_can_tell_it_from_the_right_one():
    runs = [training_run(defect) for defect in TRAINABLE]
    assert sum(run.fell for run in runs) > len(runs) / 2
    assert {run.defect for run in runs if run.outcome == "same"} >= {"upstream-changed", "float32-arithmetic"}


def test_a_run_is_the_same_each_time():
    first = training_run("gate-missing")
    _runs._run.cache_clear()
    again = training_run("gate-missing")
    assert again is not first
    np.testing.assert_array_equal(again.right, first.right)
    np.testing.assert_array_equal(again.wrong, first.wrong)


def test_the_right_program_takes_the_steps_of_gradient_descent():
    """The first step of two layers lowers the loss by the learning rate times the squared slope."""
    setting = _runs.Setting(lr=1e-6, rows=_run_programs.SAMPLES)
    x, t = _run_programs.data(setting)
    lower, upper = _run_programs._two_layers(setting, ())

    def loss(arrays):
        w1, b1, w2, b2 = arrays
        return np.mean((np.tanh(x @ w1.T + b1) @ w2.T + b2 - t) ** 2)

    from denselayer import gradcheck

    arrays = [array.copy() for layer in (lower, upper) for array in (layer.weight, layer.bias)]
    squared = 0.0
    for at, array in enumerate(arrays):
        moved = list(arrays)

        def one(values, at=at, moved=moved):
            moved[at] = values
            return loss(moved)

        squared += np.sum(gradcheck.numerical_gradient(one, array) ** 2)
    step = _run_programs.program(setting, ())
    first, second = step(x, t), step(x, t)
    assert first == pytest.approx(loss(arrays), rel=1e-12)
    assert first - second == pytest.approx(1e-6 * squared, rel=1e-4)


@pytest.mark.parametrize(
    ("wrong", "outcome", "words"),
    [
        ([2.0, 1.0, 0.1], "same", "falls, looks the same"),
        ([2.0, 0.5, 0.11], "as low", "falls, ends as low"),
        ([2.0, 1.5, 0.5], "higher", "falls, ends 5 times as high"),
        ([2.0, 0.5, 0.05], "lower", "falls, ends lower"),
        ([2.0, 2.0, 2.0], "stands still", "stands still"),
        ([2.0, 1.0, 3.0], "rises", "rises"),
        ([2.0, np.inf, 0.1], "not finite", "infinite in epoch 2"),
        ([np.nan, np.nan, np.nan], "not finite", "NaN in epoch 1"),
    ],
)
def test_an_outcome_is_read_from_the_curves(wrong, outcome, words):
    run = doctor.TrainingRun("factor", np.array([2.0, 1.0, 0.1]), np.array(wrong))
    assert run.outcome == outcome and run.words == words
    assert run.fell == words.startswith("falls")


def test_a_program_that_stops_says_when_and_why():
    run = training_run("bias-not-summed")
    assert run.outcome == "stops" and run.epoch == 1 and len(run.wrong) == 0
    assert "broadcast" in run.stopped
    assert not run.fell


@pytest.mark.parametrize("given", ["no-such-defect", "endless-loop", None])
def test_what_no_training_shows_is_refused(given):
    with pytest.raises(ValueError, match="training_run: .* expected one of weight-transposed"):
        training_run(given)


def test_no_epochs_are_refused():
    with pytest.raises(ValueError, match="epochs is 0"):
        training_run("factor", epochs=0)


@pytest.mark.parametrize("module", [_runs, _casebook])
def test_the_examples_run_as_shown(module):
    failed, run = doctest.testmod(module)
    assert run > 0 and failed == 0


@pytest.mark.parametrize("group", doctor.GROUPS)
def test_the_casebook_has_every_defect_of_a_group_with_all_that_the_table_says(group):
    book = doctor.casebook(group)
    ids = [case.defect.id for case in book.cases]
    assert ids == [name for name, defect in DEFECTS.items() if defect.group == group] and ids
    for case in book.cases:
        assert case.finding.defect == case.defect.id, "the doctor names it"
        assert (case.run is not None) == (case.defect.id in TRAINABLE)
        said = {label: text for label, text, _ in case.rows}
        assert said["wrong"] == case.defect.wrong and said["right"] == case.defect.right
        assert said["in training"].startswith(case.defect.in_training)
        assert said["found by"] == case.defect.found_by
        assert "{" not in said["evidence"] + said["change"]


def test_the_casebook_is_text_in_a_terminal_and_a_table_in_a_notebook():
    book = doctor.casebook("gates")
    assert "gate missing [gate-missing]\n  wrong:       d_z = d_out\n" in str(book)
    shown = book._repr_markdown_()
    assert shown.count("<tbody") == len(book.cases) and "\n\n" not in shown
    assert "d_z = np.where(d_out &gt; 0, d_out, 0)" in shown
    assert not hasattr(book, "_repr_html_")


def test_a_group_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="group is 'gate'"):
        doctor.casebook("gate")
