"""Answers that are code: what is looked at first, and what a student reads about an own mistake."""

import functools
import warnings

import numpy as np
import pytest

from denselayer import exercises as ex
from denselayer.doctor import DEFECTS, ArrayVerdict, Finding, Report
from denselayer.exercises import Case, Code, Fault, Property, Refuses, Slip, Values
from denselayer.exercises._doctored import GENERAL, NO_CAUSE
from tests.denselayer import exercise_cells as cells


def exercise(
    checks, entry="f", template="def f(x, weight):\n    <<the result>>", solution="return x @ weight.T"
):
    return Code("test-exercise", entry=entry, template=template, solution=solution, checks=checks, wrong=[])


def layers():
    return [
        Case(x=np.array([[2.0]]), weight=np.array([[3.0]])),
        Case(x=np.array([[1.0, 2.0]]), weight=np.array([[3.0, 4.0], [5.0, 6.0]])),
        Case(x=np.arange(6.0).reshape(2, 3), weight=np.arange(12.0).reshape(4, 3)),
    ]


def product(x, weight):
    return x @ weight.T


PLAIN = exercise([Values(layers, product)])


def answered(source, of=PLAIN):
    return cells.checked(of, source)


def written(body, of=PLAIN):
    return answered("def f(x, weight):\n" + "\n".join("    " + line for line in body.splitlines()), of)


def test_what_is_right_is_right():
    assert written("return x @ weight.T").passed


def test_the_same_result_by_another_way_is_right():
    assert written("return np.einsum('nj,ij->ni', x, weight)".replace("np", "__import__('numpy')")).passed


def test_blanks_that_are_left_are_named():
    two = exercise(
        [Values(layers, product)],
        template="def f(x, weight):\n    <<the transpose: `turned`>>\n    <<the product>>",
        solution=["turned = weight.T", "return x @ turned"],
    )
    assert answered(two.starter, two).headline == (
        "Not attempted yet: blank 1 (the transpose: `turned`) and blank 2 (the product) are left."
    )
    half = "def f(x, weight):\n    turned = weight.T\n    ...  # blank 2: the product"
    assert answered(half, two).headline == "Not attempted yet: blank 2 (the product) is left."
    assert answered(two.solved, two).passed


def test_blanks_of_another_exercise_in_the_same_file_do_not_count():
    other = "\n\ndef g(x):\n    ...  # blank 1: something else\n"
    assert answered("def f(x, weight):\n    return x @ weight.T" + other).passed


def test_an_ellipsis_in_an_index_is_no_blank():
    assert written("return (x @ weight.T)[..., :]").passed


@pytest.mark.parametrize("answer", [None, ...])
def test_nothing_is_not_attempted(answer):
    assert PLAIN.check(answer).status == "not attempted"


@pytest.mark.parametrize("answer", [3, np.ones((1, 1)), "f"])
def test_the_result_in_place_of_the_function_is_told_so(answer):
    feedback = PLAIN.check(answer)
    assert feedback.status == "error"
    assert feedback.details == ("Give the function itself, `f`, not what it returns.",)


def test_too_few_functions_are_told_so():
    assert PLAIN.check().headline == "This exercise takes `f`; 0 came."


def test_an_exception_is_told_at_the_students_own_line_with_a_plain_cause():
    feedback = written("y = x\nreturn y @ weight")
    assert feedback.status == "error"
    assert feedback.headline == "Line 3 raises a ValueError: the shapes do not fit."
    assert feedback.details[0].strip() == "return y @ weight"
    assert "y (2, 3), weight (4, 3)" in feedback.details[1]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("return x @ wieght.T", "misspelt"),
        ("return x.dto(weight.T)", "no such attribute"),
        ("return x[7]", "first entry has the index 0"),
        ("return x.sum(axis=5)", "fewer axes"),
        ("return f(x, weight)", "without an end"),
        ("raise SystemExit(1)", "A function returns instead"),
        ("return x + weight.reshape(5, 5)", "keeps the number of entries"),
        ("a, b = weight.shape[0], x, 3", "number of names on the left"),
        ("return x / 0 if False else 1 / 0", "divided by zero"),
        ("raise NotImplementedError", "still to be written"),
        ("import nothing_like_this", "not installed"),
        ("if not len(x):\n    y = x\nreturn y", "branch that was not taken"),
        ("return None + x", "None there"),
        ("return x @ None", "None there"),
    ],
)
def test_causes_are_plain(line, words):
    feedback = written(line)
    assert feedback.status == "error"
    assert any(words in detail for detail in feedback.details), feedback.details


def test_a_message_of_the_package_is_left_to_speak_for_itself():
    source = "from denselayer import functional as F\n\ndef f(x, weight):\n    return F.linear(x, weight.T)"
    feedback = answered(source)
    assert feedback.headline.startswith("Line 4 raises a ValueError: linear:")
    assert feedback.details == (
        "    return F.linear(x, weight.T)",
        "The shapes here: x (2, 3), weight (4, 3).",
    )


def test_an_exception_in_a_library_is_told_at_the_line_that_called_it():
    source = (
        "import numpy as np\n\ndef f(x, weight):\n    return np.apply_along_axis(lambda row: row[9], 0, x)"
    )
    assert answered(source).headline.startswith("Line 4 raises an IndexError")


def test_wrong_arguments_are_told_although_no_line_of_the_student_ran():
    feedback = answered("def f(x):\n    return x")
    assert feedback.headline.startswith("Your code raises a TypeError")
    assert "other arguments" in feedback.details[0]


def test_a_missing_return_is_told_so():
    assert written("y = x @ weight.T").headline == "`f` returns None: is the `return` missing?"


GRADIENT = exercise(
    [
        Values(
            lambda: [
                Case(d_out=np.array([[2.0]]), x=np.array([[3.0]])),
                Case(d_out=np.ones((4, 2)), x=np.arange(12.0).reshape(4, 3)),
            ],
            lambda d_out, x: (d_out.T @ x, d_out.sum(0)),
            returns=("d_weight", "d_bias"),
            gradient_of={"d_weight": "weight", "d_bias": "bias"},
        )
    ],
    template="def f(d_out, x):\n    <<the result>>",
    solution="return d_out.T @ x, d_out.sum(0)",
)


def gradient(line):
    return answered(f"def f(d_out, x):\n    {line}", GRADIENT)


def test_a_shape_is_told_with_the_reason():
    feedback = gradient("return x.T @ d_out, d_out.sum(0)")
    assert feedback.status == "shape"
    assert feedback.headline == "`d_weight` has the shape (3, 2) and should have (2, 3)."
    assert feedback.details == (
        "A gradient has the shape of what it belongs to: `weight` has (2, 3).",
        "Yours is the transpose.",
    )


def test_a_missing_sum_is_guessed_from_the_shape():
    assert "sum over the batch" in gradient("return d_out.T @ x, d_out").details[1]


def test_an_axis_of_length_one_is_told():
    feedback = gradient("return d_out.T @ x, d_out.sum(0, keepdims=True)")
    assert any("axis of length 1" in detail for detail in feedback.details)


def test_the_number_of_results_is_told():
    feedback = gradient("return d_out.T @ x")
    assert feedback.headline == "`f` returns d_weight, d_bias; yours returns an array."
    assert gradient("return 1, 2, 3").headline.endswith("yours returns a tuple, 3 values.")


def test_a_dict_by_name_is_as_good_as_a_tuple():
    assert gradient("return {'d_bias': d_out.sum(0), 'd_weight': d_out.T @ x}").passed


def test_what_is_no_number_is_told():
    assert gradient("return 'a', 'b'").headline == "`d_weight` is a str, not an array of numbers."


def test_the_results_that_are_right_are_told_beside_those_that_are_wrong():
    feedback = gradient("return d_out.T @ x, 2 * d_out.sum(0)")
    assert feedback.headline == "`d_bias` has wrong values."
    assert feedback.details == ("Right: `d_weight`.",)


def test_the_smallest_case_that_fails_is_the_example():
    assert gradient("return d_out.T @ x, 2 * d_out.sum(0)").example == (
        "d_out = [[2]], x = [[3]]\nd_bias yours [4], right [2]"
    )
    assert (
        "d_bias yours [16, 16], right [4, 4]"
        in gradient("return d_out.T @ x, len(x) ** 2 * d_out.mean(0)").example
    )


def test_a_large_example_shows_the_worst_entry():
    wide = exercise([Values(lambda: [Case(x=np.zeros((5, 3)), weight=np.zeros((7, 3)))], product)])
    feedback = written("y = x @ weight.T\ny[3, 2] = 9\nreturn y", wide)
    assert "at (3, 2): yours 9, right 0" in feedback.example


def test_integers_are_told():
    feedback = written("return (x @ weight.T).astype(int)")
    assert feedback.status == "dtype"
    assert feedback.headline == "The result has the dtype int64 and should be floating."


def test_float64_for_float32_is_told_where_the_exercise_asks_for_it():
    keeps = exercise([Values(layers, product, keeps_dtype=True)])
    source = "import numpy as np\n\ndef f(x, weight):\n    return np.zeros((1,)) + x @ weight.T"
    assert answered(source).passed
    assert answered(source, keeps).headline == "The result is float64 where the arguments are float32."


def test_nan_is_told_before_values():
    feedback = written("y = x @ weight.T\ny[0, 0] = float('nan')\nreturn y + 1")
    assert feedback.status == "nan"
    assert feedback.headline == "The result is nan where the right value is finite."


def test_a_changed_argument_is_told_before_values():
    feedback = written("x += 1\nreturn x @ weight.T")
    assert feedback.status == "changed input"
    assert feedback.headline == "Your function changes its argument `x`."


def test_an_argument_that_may_change_is_no_fault():
    in_place = exercise([Values(layers, product, may_change=("x",))])
    assert written("y = x @ weight.T\nx += 1\nreturn y", in_place).passed


def test_an_exception_counts_before_wrong_values_of_smaller_cases():
    assert written("return x @ weight + 1 / (4 - len(weight))").status == "error"


SLIPS = exercise(
    [
        Values(
            layers,
            product,
            slips=(
                Slip("not transposed", lambda x, weight: x @ weight, "The weight is not transposed."),
                Slip("doubled", lambda x, weight: 2 * x @ weight.T, "All is doubled."),
            ),
        )
    ]
)


def test_a_slip_that_explains_every_case_is_named():
    feedback = written("return x @ (weight + weight).T", SLIPS)
    assert (feedback.finding, feedback.headline) == ("doubled", "All is doubled.")


def test_a_slip_that_explains_only_some_cases_is_not_named():
    feedback = written("return x @ weight.T * (2 if len(x) == 1 else 3)", SLIPS)
    assert (feedback.finding, feedback.headline) == ("", "The values are wrong.")


FACTS = {"factor": 3.0, "shape": (1, 2), "expected": (2, 1), "n": 2, "other": "another"}


def found(*defects, where=("weight",), formulas=("", ""), **of_report):
    """A report with these findings."""
    findings = tuple(Finding(defect, where, FACTS, formulas) for defect in defects)
    return Report("a layer", of_report.pop("arrays", ()), findings, **of_report)


def seen_by(report, first=False, **of_values):
    """The feedback to doubled values, if the doctor gives this report and a slip fits."""
    slip = Slip("doubled", lambda x, weight: 2 * x @ weight.T, "All is doubled.", first=first)
    checks = [Values(layers, product, slips=(slip,), doctor=lambda f: report, **of_values)]
    return written("return 2 * x @ weight.T", exercise(checks))


def tripled(report):
    """The feedback to values that no slip explains."""
    checks = [Values(layers, product, doctor=lambda f: report)]
    return written("return 3 * x @ weight.T", exercise(checks))


def test_a_mistake_that_the_doctor_names_is_told_before_a_slip():
    feedback = seen_by(found("weight-transposed"))
    assert feedback.finding == "weight-transposed"
    assert feedback.headline.startswith("The gradient of weight is the transpose of the measured one")
    assert feedback.details[0] == "The values are wrong."
    assert feedback.details[1].startswith("Change: A gradient has the shape of its parameter, here (2, 1).")
    assert feedback.example


@pytest.mark.parametrize("defect", GENERAL)
def test_a_slip_that_fits_is_told_before_what_is_only_general(defect):
    assert seen_by(found(defect)).finding == "doubled"
    assert tripled(found(defect)).finding == defect


def test_a_slip_is_told_where_the_doctor_cannot_tell():
    assert seen_by(Report("a layer", (ArrayVerdict("weight", "cannot tell"),))).finding == "doubled"
    assert tripled(Report("a layer", (ArrayVerdict("weight", "cannot tell"),))).finding == ""


def test_a_slip_is_told_where_the_doctor_explains_only_a_part():
    arrays = ArrayVerdict("weight", "wrong"), ArrayVerdict("bias", "cannot tell")
    assert seen_by(found("weight-averaged", arrays=arrays)).finding == "doubled"
    assert seen_by(found("weight-averaged", arrays=arrays[:1])).finding == "weight-averaged"
    assert tripled(found("weight-averaged", arrays=arrays)).finding == "weight-averaged"


def test_a_slip_that_knows_more_than_the_doctor_is_told_first():
    assert seen_by(found("weight-averaged"), first=True).finding == "doubled"


def both_scaled(by_weight, by_bias, first, *defects):
    """The feedback to two scaled gradients, one of which a slip explains."""
    slip = Slip("tripled", lambda d_out, x: 3 * d_out.sum(0), "The bias.", output="d_bias", first=first)
    both = lambda d_out, x: (d_out.T @ x, d_out.sum(0))  # noqa: E731
    of_values = {"returns": ("d_weight", "d_bias"), "slips": (slip,), "doctor": lambda f: found(*defects)}
    check = Values(GRADIENT.checks[0].cases, both, **of_values)
    source = f"def f(d_out, x):\n    return {by_weight} * d_out.T @ x, {by_bias} * d_out.sum(0)"
    return answered(source, exercise([check], template="def f(d_out, x):\n    <<both>>"))


def test_a_slip_that_explains_one_of_several_wrong_results_is_told_only_if_the_doctor_names_nothing():
    assert both_scaled(1, 3, True, "gate-missing").finding == "tripled"
    assert both_scaled(2, 3, True, "gate-missing").finding == "gate-missing"
    assert both_scaled(2, 3, False, "factor").finding == "tripled"


def test_two_findings_on_one_array_show_no_formula_as_each_would_hide_the_other():
    formulas = ("d_weight = x.T @ d_out", "")
    [alone] = [
        line for line in seen_by(found("gate-missing", formulas=formulas)).details if "computed" in line
    ]
    assert alone == "It computed: d_weight = x.T @ d_out"
    both = seen_by(found("gate-missing", "weight-averaged", formulas=formulas)).details
    assert not any("computed" in line for line in both)


def test_what_names_a_mistake_is_told_before_what_is_general_in_one_feedback():
    feedback = seen_by(found("factor", "weight-averaged"))
    assert feedback.finding == "weight-averaged"
    [second] = [detail for detail in feedback.details if detail.startswith("On top of that: ")]
    assert "The gradient of weight is 3 times" in second


@pytest.mark.parametrize("defect", [*NO_CAUSE, "crash", "random", "memory"])
def test_a_finding_that_is_no_cause_of_wrong_values_is_not_told(defect):
    assert seen_by(found(defect)).finding == "doubled"
    assert tripled(found(defect)).finding == ""


def test_a_doctor_who_could_not_examine_an_answer_says_nothing():
    for report in (None, found("weight-averaged", failed=True)):
        assert tripled(report).finding == ""


def test_what_goes_wrong_with_the_arguments_of_the_doctor_is_not_told():
    checks = [Values(layers, product, doctor=lambda f: f(np.ones((1, 2)), np.ones((1, 3))))]
    assert written("return 2 * x @ weight.T", exercise(checks)).headline == "The values are wrong."


def test_what_an_answer_warns_the_doctor_of_is_not_shown():
    checks = [Values(layers, product, doctor=lambda f: f(np.ones((9, 2)), np.ones((1, 2))) and None)]
    body = "if len(x) == 9:\n    x / (x - x)\n    return None\nreturn 2 * x @ weight.T"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert written(body, exercise(checks)).headline == "The values are wrong."


def test_what_an_answer_prints_to_the_doctor_is_not_shown(capsys):
    checks = [Values(layers, product, doctor=lambda f: f(np.ones((9, 2)), np.ones((1, 2))) and None)]
    body = "if len(x) == 9:\n    print('to the doctor')\n    return None\nreturn 2 * x @ weight.T"
    written(body, exercise(checks))
    assert capsys.readouterr().out == ""


def test_a_formula_is_told_only_if_it_is_the_one_that_was_computed():
    known = seen_by(found("gate-missing", formulas=("d_z = d_out", "d_z = d_out * slope(z)")))
    assert known.details[1] == "It computed: d_z = d_out"
    assert not any("computed" in detail for detail in seen_by(found("gate-missing")).details)


def test_the_doctor_speaks_in_the_names_of_the_exercise():
    report = found("gate-missing", where=("x",), formulas=("d_z = d_out", ""))
    feedback = seen_by(report, words={"x": "z", "d_out": "d_a", "the activation": "the ELU"})
    assert feedback.headline.startswith("The gradient passes the ELU unchanged")
    assert feedback.headline.endswith("this shows in z.")
    assert feedback.details[1] == "It computed: d_z = d_a"


def examined():
    """(exercise, check) for every check of the book that asks the doctor."""
    for identifier in ex.ids():
        of = ex.get(identifier)
        for check in of.checks if of.kind == "code" else ():
            if getattr(check, "doctor", None):
                yield pytest.param(of, check, id=f"{identifier}: {check.name or of.names[0]}")


@pytest.mark.parametrize(("of", "check"), list(examined()))
def test_the_doctor_can_examine_a_right_answer_and_finds_it_healthy(of, check):
    functions = dict(zip(of.names, cells.bound(of, of.solved), strict=True))
    report = check.doctor(functions[check.name or of.names[0]])
    assert report.healthy, report


def test_what_is_general_and_what_is_no_cause_are_defects_of_the_table():
    assert set(GENERAL) | set(NO_CAUSE) <= set(DEFECTS)
    assert not set(GENERAL) & set(NO_CAUSE)


def test_a_slip_that_looks_right_in_every_case_says_nothing():
    one = exercise(
        [Values(lambda: layers()[:1], product, slips=(Slip("s", lambda x, weight: x @ weight, "?"),))]
    )
    assert written("return x @ weight", one).passed


REFUSAL = exercise(
    [Refuses(lambda: [Case(x=np.ones(3), weight=np.ones((1, 2)))], ValueError, "the shapes differ.")]
)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("raise ValueError('no')", "correct"),
        ("return x", "values"),
        ("raise TypeError('no')", "values"),
        ("assert len(x) == 2", "values"),
    ],
)
def test_a_refusal_is_the_right_exception_and_nothing_else(body, status):
    feedback = written(body, REFUSAL)
    assert feedback.status == status
    if status != "correct":
        assert feedback.headline == "`f` should raise a ValueError here: the shapes differ."


def test_another_exception_than_the_asked_one_is_told_beside_it():
    assert written("raise TypeError('no')", REFUSAL).details[0] == "Line 2 raises a TypeError: no"


def test_a_property_may_say_a_sentence_or_give_a_fault():
    says = exercise([Property(lambda f: "It is not even." if f(1, 1) % 2 else None, "odd")])
    gives = exercise([Property(lambda f: Fault("shape", "No.", finding="why"))])
    assert written("return 2", says).passed
    assert (written("return 3", says).headline, written("return 3", says).finding) == (
        "It is not even.",
        "odd",
    )
    assert written("return 3", gives).status == "shape"
    assert written("return x.shape", says).headline.startswith("Line 2 raises an AttributeError")


def test_the_earlier_kind_of_fault_is_told_whatever_check_found_it():
    both = exercise([Property(lambda f: "Wrong."), Values(layers, product)])
    assert written("return (x @ weight.T)[0]", both).status == "shape"


def test_a_class_is_an_answer_too():
    counter = exercise(
        [Property(lambda Layer: None if Layer(2).twice() == 4 else "Not twice.")],
        entry="Layer",
        template="class Layer:\n    def __init__(self, n):\n        self.n = n\n\n"
        "    def twice(self):\n        <<return twice n>>",
        solution="return 2 * self.n",
    )
    assert (
        answered(counter.starter, counter).headline == "Not attempted yet: blank 1 (return twice n) is left."
    )
    assert answered(counter.solved, counter).passed
    broken = counter.solved.replace("2 * self.n", "self.m")
    assert answered(broken, counter).headline.startswith("Line 6 raises an AttributeError")


def test_a_generator_is_read_to_its_end():
    numbers = exercise(
        [Values(lambda: [Case(n=3)], lambda n: list(range(n)))], template="def f(n):\n    <<0 to n - 1>>"
    )
    assert cells.checked(numbers, "def f(n):\n    yield from range(n)").passed


@pytest.mark.parametrize("wrap", [functools.lru_cache(maxsize=1), functools.partial])
def test_a_wrapped_function_is_an_answer(wrap):
    one = exercise([Values(lambda: [Case(n=3)], lambda n: 2 * n)], template="def f(n):\n    <<twice>>")
    [function] = cells.bound(one, "def f(n):\n    return 2 * n")
    assert one.check(wrap(function)).passed


def test_a_function_without_source_is_examined_all_the_same():
    space = {}
    exec("def f(x, weight):\n    return x @ weight", space)
    assert PLAIN.check(space["f"]).headline.startswith("Line 2 raises a ValueError")
    exec("def f(x, weight):\n    ...", space)
    assert PLAIN.check(space["f"]).headline == "`f` returns None: is the `return` missing?"


def test_lists_of_arrays_are_compared_with_their_shapes():
    two = exercise(
        [Values(lambda: [Case(n=2)], lambda n: [np.ones((n, n))])], template="def f(n):\n    <<ones>>"
    )
    source = "import numpy as np\n\ndef f(n):\n    return [np.ones({})]"
    assert cells.checked(two, source.format("(n, n)")).passed
    assert cells.checked(two, source.format("n")).status == "values"


def test_an_example_is_the_same_in_every_run():
    random = exercise(
        [Values(lambda: [Case(rng=np.random.default_rng(0), z=1 + 2j)], lambda rng, z: z)],
        template="def f(rng, z):\n    <<z>>",
    )
    assert cells.checked(random, "def f(rng, z):\n    return 2 * z").example == (
        "rng = a random generator, z = 1 + 2j\nyours 2 + 4j, right 1 + 2j"
    )


def test_only_what_is_right_in_every_case_is_called_right():
    feedback = gradient("return 2 * d_out.T @ x, d_out.mean(0)")  # the mean of one row is its sum
    assert feedback.headline == "`d_weight` has wrong values."
    assert feedback.details == ()


def test_numbers_in_a_list_that_have_changed_are_told():
    sums = exercise(
        [Values(lambda: [Case(numbers=[3.0, 1.0, 2.0])], lambda numbers: numbers[0])],
        template="def f(numbers):\n    <<the first>>",
    )
    assert (
        cells.checked(sums, "def f(numbers):\n    numbers.sort()\n    return 3.0").status == "changed input"
    )
    assert cells.checked(sums, "def f(numbers):\n    return numbers[0]").passed


def test_true_and_false_are_no_numbers():
    feedback = written("return x @ weight.T > 0")
    assert (feedback.status, feedback.details) == (
        "dtype",
        ("True and False say yes or no; numbers are asked.",),
    )


def test_a_missing_sum_is_guessed_only_for_a_gradient():
    assert not any(
        "sum over" in detail for detail in written("return (x @ weight.T)[None] + x[..., :1, None]").details
    )


def test_an_example_shows_the_digits_in_which_the_values_differ():
    close = written("return x @ weight.T * (1 + 3e-7)")
    assert "yours [[6.0000018]], right [[6]]" in close.example


def test_of_several_functions_the_one_that_is_wrong_is_named():
    two = exercise(
        [Values(layers, product, name="f"), Values(layers, product, name="g")],
        entry="f, g",
        template="def f(x, weight):\n    <<one>>\n\ndef g(x, weight):\n    <<two>>",
    )
    right, wrong = "    return x @ weight.T\n", "    return x @ weight.T + 1\n"
    source = "def f(x, weight):\n" + right + "def g(x, weight):\n" + wrong
    assert cells.checked(two, source).details == ("In `g`.",)


def test_an_exception_of_a_check_itself_is_told_only_if_there_is_nothing_else():
    strange = Property(lambda f: int(f(np.ones((1, 1)), np.ones((1, 1))) or "x"))
    both = exercise([strange, Values(layers, product)])
    assert written("return 'nothing'", both).status == "shape"
    assert written("return 'nothing'", exercise([strange])).status == "error"
    assert written("return 1 / 0", both).headline == "Line 2 raises a ZeroDivisionError: division by zero"


@pytest.mark.parametrize("use", ["turned.T", "turned + 1"])
def test_a_blank_in_use_is_not_attempted_although_its_source_cannot_be_read(use):
    space = {}
    exec(f"def f(x, weight):\n    turned = ...\n    return {use}", space)
    feedback = PLAIN.check(space["f"])
    assert feedback.status == "not attempted", str(feedback)
    assert feedback.headline.startswith("Not attempted yet: Line 3 raises")


def test_feedback_reads_well():
    assert str(written("return x @ (weight + weight).T", SLIPS)).splitlines() == [
        "✗ All is doubled.",
        "  The values are wrong.",
        "  For example:",
        "    x = [[2]], weight = [[3]]",
        "    yours [[12]], right [[6]]",
    ]


def test_feedback_is_plain_json():
    told = written("return x @ weight + 1").to_json()
    assert told["status"] == "error"
    assert told["passed"] is False
    assert set(told) == {
        "exercise",
        "status",
        "headline",
        "details",
        "example",
        "finding",
        "points",
        "passed",
    }


def test_an_unknown_id_names_near_ones():
    with pytest.raises(ValueError, match="dense-no-loop"):
        ex.get("dense-noloop")
    with pytest.raises(ValueError, match="neuron, dense"):
        ex.ids("nothing")
