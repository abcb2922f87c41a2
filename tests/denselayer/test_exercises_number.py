"""Answers that are numbers: how they may be written, when they are right, and what a wrong one is told."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from denselayer.exercises import Number, Part

COUNT = Number(
    "count",
    Part("parameters", 784_000, {785_000: "785,000 counts the 1,000 biases too."}),
)
TWO = Number("two", Part("half", Fraction(1, 2)), Part("third", Fraction(1, 3)))
SHAPE = Number("shape", Part("weight", (6, 4), {(4, 6): "That is (in, out)."}))
WORD = Number("word", Part("answer", "no", {"yes": "It is not."}, options=("yes", "no")))
FLOAT = Number("float", Part("loss", 0.6931471805599453, unit="nat"))


@pytest.mark.parametrize(
    "answer",
    [784000, 784000.0, "784000", "784,000", "784_000", "784 000", "7.84e5", [784000], (784000,)],
)
def test_a_whole_number_may_be_written_in_many_ways(answer):
    assert COUNT.check(answer).passed


@pytest.mark.parametrize("kind", [np.int64, np.float32, np.array, Fraction, Decimal])
def test_a_whole_number_may_have_any_type(kind):
    assert COUNT.check(kind(784000)).passed
    assert COUNT.check({"parameters": kind(784000)}).passed


def test_the_right_number_of_the_wrong_thing_is_told_so():
    feedback = COUNT.check("785,000")
    assert feedback.status == "values"
    assert feedback.headline == "785,000 counts the 1,000 biases too."


@pytest.mark.parametrize("answer", [783_999, 784_001, 784_000.5])
def test_a_whole_number_has_no_tolerance(answer):
    assert COUNT.check(answer).status == "values"


@pytest.mark.parametrize("third", ["1/3", 1 / 3, 0.333, "33.33 %", "2/6", Fraction(1, 3), np.float32(1 / 3)])
def test_a_fraction_may_be_rounded_to_three_digits(third):
    assert TWO.check({"half": "1/2", "third": third}).passed


def test_a_number_that_is_rounded_too_much_is_told_so():
    feedback = TWO.check(0.5, 0.33)
    assert feedback.finding == "rounded"
    assert "more digits" in feedback.headline


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        (2**0.5 / 10, 0.141),
        (Fraction(1, 44), 0.0227),
        (Fraction(4, 3), 1.33),
        (1e-7 / 3, 3.33e-8),
        (999.5, 1000),
    ],
)
def test_three_digits_are_enough_wherever_the_point_stands(value, answer):
    assert Number("digits", Part("p", value)).check(answer).passed
    assert Number("digits", Part("p", -value)).check(-answer).passed


@pytest.mark.parametrize(
    ("value", "answer", "says"),
    [
        (8_192_000, 8_200_000, "8,200,000 is `p` with too few digits. The exact number is asked."),
        (Fraction(1, 44), 0.02, "0.02 is `p` with too few digits. Give more digits, or the fraction."),
        (Fraction(1, 44), 0.022, "0.022 is `p` with too few digits. Give more digits, or the fraction."),
        (Fraction(1, 44), "1/40", "`p` is not 0.025."),
        (784, 800, "800 is `p` with too few digits. The exact number is asked."),
        (784, 783, "`p` is not 783."),
    ],
)
def test_rounded_is_said_only_of_what_is_rounded(value, answer, says):
    assert Number("digits", Part("p", value)).check(answer).headline == says


@pytest.mark.parametrize("answer", [{1, 3}, frozenset({3, 1}), [1, 3], (1.0, 3.0), np.array([1, 3])])
def test_several_entries_may_come_in_any_container(answer):
    assert Number("places", Part("p", (1, 3))).check(answer).passed


def test_findings_and_floats_are_written_as_a_person_would():
    from_slip = Number("t", Part("v", (1, 2), {(Fraction(1, 3), -1): "No."}))
    assert from_slip.check(("1/3", -1)).finding == "(1/3, −1)"
    shown = Number("t", Part("v", 16_400_388)).check(16016.00390625).headline
    assert shown == "16016 is 1,024 times smaller than `v`."
    assert SHAPE.check((7, 5, 3)).headline == "`weight` has 2 entries, and (7, 5, 3) has 3."
    assert SHAPE.check("6 × 4").passed
    assert (
        Number("t", Part("v", (1, 2, 3, 4)))
        .check((1, 5, 6, 7))
        .headline.endswith("entries 2, 3 and 4 again.")
    )


def test_blanks_are_named_and_what_is_filled_in_is_looked_at():
    feedback = TWO.check({"half": 0.25, "third": ...})
    assert feedback.status == "not attempted"
    assert "`third` is still blank" in feedback.headline
    assert "`half`" in feedback.details[0]


@pytest.mark.parametrize("answer", [..., None, "", "...", {}, {"half": ..., "third": None}])
def test_nothing_is_not_attempted(answer):
    assert TWO.check(answer).status == "not attempted"


def test_answers_that_are_exchanged_are_told_so():
    assert TWO.check("1/3", "1/2").headline == "That is `third`, not `half`."


@pytest.mark.parametrize(
    ("answer", "finding"),
    [(-0.5, "sign"), (2, "reciprocal"), (1, "factor 2"), (50, "factor 100"), (500, "factor 1000")],
)
def test_common_slips_have_names(answer, finding):
    assert TWO.check(answer, "1/3").finding == finding


@pytest.mark.parametrize("answer", ["abc", "1/0", "1,5", object(), True, [1, 2, 3], 1j, "nan%"])
def test_what_is_no_number_gets_a_plain_sentence(answer):
    feedback = COUNT.check(answer)
    assert feedback.status in ("values", "error")
    assert "`parameters`" in feedback.headline or "blanks" in feedback.headline


@pytest.mark.parametrize("answer", [math.nan, math.inf, "1e400", "1e999999999", 10**400, "-inf", "9" * 5000])
def test_a_number_that_is_not_finite_is_wrong(answer):
    assert not COUNT.check(answer).passed


def test_an_unknown_name_lists_the_known_ones():
    feedback = TWO.check({"halve": 0.5})
    assert feedback.status == "error"
    assert '"half", "third"' in feedback.details[0]


@pytest.mark.parametrize(
    "answer", [(6, 4), [6, 4], "(6, 4)", "6, 4", np.array([6, 4]), np.zeros((6, 4)).shape]
)
def test_a_shape_may_be_written_in_many_ways(answer):
    assert SHAPE.check(answer).passed


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ((4, 6), "That is (in, out)."),
        ((6,), "`weight` has 2 entries, and (6,) has 1."),
        ((6, 5), "`weight` is not (6, 5): look at entry 2 again."),
        ((7, 5), "`weight` is not (7, 5)."),
    ],
)
def test_a_wrong_shape_is_told_where(answer, sentence):
    assert SHAPE.check(answer).headline == sentence


def test_entries_in_the_wrong_order_are_told_so():
    order = Number("order", Part("v", (1, 2, 3)))
    assert order.check((3, 2, 1)).finding == "order"
    assert order.check((-1, -2, -3)).finding == "sign"


@pytest.mark.parametrize("answer", ["no", "No", " no ", False])
def test_a_word_is_read_without_regard_to_case(answer):
    assert WORD.check(answer).passed


def test_a_wrong_word_and_no_word():
    assert WORD.check("yes").headline == "It is not."
    assert '"yes", "no"' in WORD.check("perhaps").headline


@pytest.mark.parametrize("answer", ["0.693 nat", 0.6931, np.log(2), "ln 2"])
def test_a_unit_may_stand_behind_the_number(answer):
    assert FLOAT.check(answer).passed == (answer != "ln 2")


def test_too_many_values_are_told_so():
    assert FLOAT.check(1, 2).headline == "2 values came for 1 blank."
    assert TWO.check(0.5).headline == "1 value came for 2 blanks."


@pytest.mark.parametrize("exercise", [COUNT, TWO, SHAPE, WORD, FLOAT])
def test_starter_and_solution_are_python(exercise):
    for cell, status in [(exercise.starter, "not attempted"), (exercise.solved, "correct")]:
        space = {}
        exec(cell, space)
        assert exercise.check(space[exercise.entry]).status == status
