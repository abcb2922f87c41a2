"""Distances in ulp are right, wrong results are out of bounds, and every layer agrees with PyTorch."""

import doctest
import math
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from denselayer import agreement, functional, nn
from denselayer.agreement import Table, against_torch, bound, cases, compare, load_fixture, ulp_difference

DTYPES = (np.float32, np.float64)
EXACT = ("neuron", "dense-running-example", "backprop-running-example", "backprop-two-layer")


def test_doctests():
    assert doctest.testmod(agreement).failed == 0


# Units in the last place


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", [1.0, -1.0, 0.1, 2.0**-126, 1e30, 0.0, 3.5])
@pytest.mark.parametrize("steps", [0, 1, 2, 7, 100])
def test_entries_that_are_n_numbers_apart_are_n_ulp_apart(dtype, value, steps):
    start = end = np.array(dtype(value))
    for _ in range(steps):
        end = np.nextafter(end, dtype(np.inf))
    assert ulp_difference(end, start) == steps
    assert ulp_difference(start, end) == steps


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_count_goes_through_zero_and_powers_of_two(dtype):
    tiny = np.finfo(dtype).smallest_subnormal
    apart = ulp_difference(
        np.array([tiny, -0.0, 0.0, 3 * tiny], dtype), np.array([-tiny, 0.0, tiny, -2 * tiny], dtype)
    )
    np.testing.assert_array_equal(apart, [2, 0, 1, 5])
    below, above = np.nextafter(dtype(1), dtype(0)), np.nextafter(dtype(1), dtype(2))
    assert ulp_difference(np.array(below), np.array(above)) == 2  # the gap below 1 is half of that above


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", ["entry", "max"])
def test_nan_and_infinities(dtype, scale):
    nan, inf, largest = np.nan, np.inf, np.finfo(dtype).max
    actual = np.array([nan, inf, -inf, nan, inf, inf, 1.0, largest, 1.0], dtype)
    expected = np.array([nan, inf, -inf, 1.0, -inf, largest, nan, inf, 1.0], dtype)
    np.testing.assert_array_equal(
        ulp_difference(actual, expected, scale), [0, 0, 0, inf, inf, inf, inf, inf, 0]
    )


@given(
    a=st.floats(width=32, allow_nan=False, allow_infinity=False),
    b=st.floats(width=32, allow_nan=False, allow_infinity=False),
)
@settings(max_examples=100, deadline=None)
def test_the_count_is_that_of_the_positions_on_the_number_line(a, b):
    def position(value):
        bits = int(np.abs(np.float32(value)).view(np.uint32))
        return -bits if np.signbit(np.float32(value)) else bits

    distance = ulp_difference(np.array([a], np.float32), np.array([b], np.float32))
    np.testing.assert_array_equal(distance, [abs(position(a) - position(b))])


def test_the_largest_distance_does_not_overflow():
    largest = np.finfo(np.float64).max
    apart = ulp_difference(np.array([largest]), np.array([-largest]))
    assert apart == pytest.approx(2.0 * int(np.array(largest).view(np.int64)))


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_scale_of_the_largest_entry(dtype):
    eps = np.finfo(dtype).eps
    expected = np.array([1.5, 1e-6, -1.0], dtype)
    actual = expected + np.array([3 * eps, eps, 0], dtype)
    np.testing.assert_allclose(ulp_difference(actual, expected, scale="max"), [3, 1, 0], rtol=1e-3)
    assert ulp_difference(actual, expected)[1] > 1000


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_ulp_of_zero_subnormal_and_huge_arrays(dtype):
    limits = np.finfo(dtype)
    zeros, tiny = np.zeros(2, dtype), np.full(2, limits.smallest_subnormal)
    np.testing.assert_array_equal(ulp_difference(zeros, zeros, scale="max"), [0, 0])
    np.testing.assert_array_equal(ulp_difference(tiny, zeros, scale="max"), [1, 1])
    np.testing.assert_array_equal(ulp_difference(3 * tiny, tiny, scale="max"), [2, 2])
    smallest, largest = np.array([limits.tiny]), np.array([limits.max])
    assert ulp_difference(np.nextafter(smallest, dtype(1)), smallest, scale="max") == 1
    assert ulp_difference(np.nextafter(largest, dtype(0)), largest, scale="max") == 1


def test_empty_arrays_have_no_distance():
    for scale in ("entry", "max"):
        assert ulp_difference(np.zeros((0, 3)), np.zeros((0, 3)), scale).shape == (0, 3)
    [row] = compare("empty", {"out": np.zeros((0, 3))}, {"out": np.zeros((0, 3))})
    assert row.within
    assert (row.max_abs, row.max_rel, row.max_ulp) == (0, 0, 0)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: ulp_difference(np.ones((2, 3)), np.ones((3, 2))), ValueError, "that is its transpose"),
        (lambda: ulp_difference(np.ones(2), np.ones(3)), ValueError, "has shape (2,), expected (3,)"),
        (
            lambda: ulp_difference(np.ones(2), np.ones(2, np.float32)),
            TypeError,
            "float64 and is compared with float32",
        ),
        (lambda: ulp_difference(np.ones(2, int), np.ones(2, int)), TypeError, "int64"),
        (lambda: ulp_difference(np.ones(2), np.ones(2), scale="mean"), ValueError, "'entry' or 'max'"),
        (lambda: compare("c", {"out": np.ones(1)}, {}), ValueError, "['out'], expected []"),
        (lambda: compare("c", {}, {"d_x": np.ones(1)}), ValueError, "[], expected ['d_x']"),
        (
            lambda: compare("c", {"d_x": np.ones((1, 2))}, {"d_x": np.ones((2, 1))}),
            ValueError,
            "c: d_x has shape",
        ),
        (lambda: agreement.agreement("dense"), ValueError, "choose one of neuron, dense-running-example"),
        (lambda: bound("float16"), TypeError, "float16"),
    ],
)
def test_wrong_calls_are_told_why(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)


# Tables


def test_the_bounds_are_8_ulp_and_more_for_long_sums():
    assert [bound("float64", n) for n in (0, 1, 64, 65, 785)] == [8, 8, 8, 9, 29]
    assert [bound("float32", n) for n in (0, 1, 8, 9, 785)] == [8, 8, 8, 9, 785]


def test_the_row_holds_the_largest_differences():
    expected = np.array([1.0, -2.0, 0.25])
    actual = expected + np.array([0.0, 1e-3, -1e-3])
    [row] = compare("case", {"out": actual}, {"out": expected})
    assert row.max_abs == pytest.approx(1e-3)
    assert row.max_rel == pytest.approx(4e-3)
    assert row.max_ulp == pytest.approx(1e-3 / 2.0**-51)
    assert not row.within


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ulps", [8, 9])
def test_the_bound_is_exact(dtype, ulps):
    expected = np.array([1.5, 1e-3], dtype)
    actual = expected + np.array([ulps * np.finfo(dtype).eps, 0], dtype)
    [row] = compare("case", {"out": actual}, {"out": expected})
    assert row.within == (ulps == 8)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_out_of_bounds_unless_pytorch_has_it_too(wrong):
    [row] = compare("case", {"out": np.array([1.0, wrong])}, {"out": np.array([1.0, 2.0])})
    assert not row.within
    [row] = compare("case", {"out": np.array([1.0, wrong])}, {"out": np.array([1.0, wrong])})
    assert row.within
    assert (row.max_abs, row.max_rel, row.max_ulp) == (0, 0, 0)


def test_a_table_is_not_ok_with_one_row_out_of_bounds_or_without_rows():
    good = compare("case", {"out": np.ones(2)}, {"out": np.ones(2)})
    bad = compare("case", {"d_x": np.ones(2)}, {"d_x": np.full(2, 1.0001)})
    assert Table("good", good).ok
    assert not Table("bad", good + bad).ok
    assert not Table("empty", []).ok


def test_a_table_prints_aligned_and_shows_as_html():
    rows = compare(
        "case", {"out": np.ones(2), "a <b>": np.ones(1)}, {"out": np.ones(2), "a <b>": np.full(1, 1.5)}
    )
    table = Table("Ours & theirs", rows)
    title, header, rule, first, second = str(table).splitlines()
    assert title == "Ours & theirs"
    assert header == "what   dtype    max abs  max rel   max ulp  bound (ulp)  within"
    assert rule == "-----  -------  -------  -------  --------  -----------  ------"
    assert first == "out    float64        0        0         0            8     yes"
    assert second == "a <b>  float64  5.0e-01  3.3e-01  2.25e+15            8      NO"
    html = table._repr_markdown_()
    assert '<table class="agreement">\n<caption>Ours &amp; theirs</caption>' in html
    assert '<th scope="col">max ulp</th>' in html
    assert '<th scope="row">a &lt;b&gt;</th>' in html
    assert "style=" not in html
    assert "color" not in html
    assert not hasattr(table, "_repr_html_"), "Quarto answers an HTML output with scripts from another host"


def test_the_summary_shows_nothing_that_was_measured():
    def table(error):
        rows = compare("case", {"out": np.ones(2) + error}, {"out": np.ones(2)})
        return Table(f"with {error}", rows)

    eps = np.finfo(np.float64).eps
    assert table(0.0).summary() == table(2 * eps).summary()
    assert table(0.0).summary() != table(1e-3).summary()
    assert str(table(0.0)) != str(table(2 * eps))


# The stored cases


@pytest.mark.parametrize("name", cases())
def test_every_stored_case_agrees(name):
    table = agreement.agreement(name)
    assert table.ok, table
    assert {row.dtype for row in table.rows} == {"float32", "float64"}
    assert "PyTorch 2.13.0" in str(table)


@pytest.mark.parametrize("name", EXACT)
def test_cases_that_floating_point_holds_exactly_agree_to_the_bit(name):
    for row in agreement.agreement(name).rows:
        assert (row.max_abs, row.max_rel, row.max_ulp) == (0, 0, 0), row


def test_the_running_example_is_that_of_the_book():
    stored = load_fixture("dense-running-example")
    np.testing.assert_array_equal(stored.inputs("float64")["x"], [2.0, 4.0, 1.0])
    np.testing.assert_array_equal(stored.expected["float64"]["out"], [2.0, 1.5, -1.5])
    stored = load_fixture("backprop-running-example")
    np.testing.assert_array_equal(stored.expected["float32"]["out"][0], [2.0, 1.5, 0.0])
    stored = load_fixture("backprop-two-layer")
    assert stored.expected["float64"]["d_out"][0] == 3.0
    np.testing.assert_array_equal(stored.expected["float64"]["d_2.weight"] + [[0.0, 2.0]], [[3.0, 6.0]])


@pytest.mark.parametrize(
    ("function", "broken", "name"),
    [
        ("linear", lambda x, weight, bias=None: x @ weight.T, "dense-running-example"),
        ("linear", lambda x, weight, bias=None: x @ weight + bias, "dense-running-example"),
        (
            "linear_backward",
            lambda d_out, x, weight: functional.LinearGradients(
                (d_out[None] @ weight.T)[0], np.outer(d_out, x), d_out
            ),
            "dense-running-example",
        ),
        ("neuron", lambda x, weight, bias=None: x @ weight - bias, "neuron"),
        ("relu_backward", lambda d_out, z: d_out, "backprop-running-example"),
        ("relu_backward", lambda d_out, z: d_out * (z > 0) / 2, "activations"),
        ("gelu", lambda z, approximate="none": z / (1 + np.exp(-1.702 * z)), "activations"),
    ],
)
def test_a_broken_function_is_out_of_bounds(monkeypatch, function, broken, name):
    monkeypatch.setattr(functional, function, broken)
    assert not agreement.agreement(name).ok


def test_the_long_sum_of_pytorch_is_further_from_the_exact_one_than_ours():
    """What `bound` says about 785 terms: products of float32 values are exact, so the sum can be known."""
    stored = load_fixture("dense-random")
    inputs, theirs = stored.inputs("float64"), stored.expected["float64"]["out"]
    ours = functional.linear(inputs["x"], inputs["weight"], inputs["bias"])
    exact = np.array(
        [
            [math.fsum([*(x * w), b]) for w, b in zip(inputs["weight"], inputs["bias"], strict=True)]
            for x in inputs["x"]
        ]
    )
    assert ulp_difference(theirs, exact, scale="max").max() == 12
    assert ulp_difference(ours, exact, scale="max").max() <= 29


# Live against PyTorch


def networks():
    tied = nn.Sequential(nn.Linear(6, 6, rng=1), nn.Tanh(), nn.Linear(6, 6, rng=2))
    tied[2].weight = tied[0].weight
    return {
        "Linear": nn.Linear(6, 4, rng=0),
        "Linear without bias": nn.Linear(6, 4, bias=False, rng=0),
        "bottom Linear": nn.Linear(6, 4, rng=0, input_gradient=False),
        "ReLU": nn.ReLU(),
        "LeakyReLU": nn.LeakyReLU(0.3),
        "Sigmoid": nn.Sigmoid(),
        "Tanh": nn.Tanh(),
        "GELU": nn.GELU(),
        "GELU (tanh)": nn.GELU("tanh"),
        "SiLU": nn.SiLU(),
        "Softplus": nn.Softplus(2.0, 3.0),
        "Identity": nn.Identity(),
        "tied": tied,
        "nested": nn.Sequential(
            nn.Linear(6, 32, rng=3),
            nn.GELU(),
            nn.Sequential(nn.Linear(32, 8, rng=4), nn.SiLU()),
            nn.Linear(8, 3, rng=5),
        ),
        "float32": nn.Sequential(nn.Linear(6, 5, rng=6, dtype=np.float32), nn.ReLU()),
    }


@pytest.mark.parametrize("name", networks())
@pytest.mark.parametrize("batch", [0, 1, 7])
def test_every_module_agrees_with_pytorch(name, batch):
    pytest.importorskip("torch")
    module = networks()[name]
    rng = np.random.default_rng(0)
    x = rng.normal(size=(batch, 6))
    d_out = rng.normal(size=np.shape(module(x.astype(np.float32) if name == "float32" else x)))
    before = module.state_dict()
    table = against_torch(module, x, d_out)
    assert table.ok, table
    names = {row.quantity for row in table.rows}
    assert names == {"out", "d_x"} - ({"d_x"} if name == "bottom Linear" else set()) | {
        f"d_{key}" for key, _ in module.named_parameters()
    }
    for key, value in module.state_dict().items():
        np.testing.assert_array_equal(value, before[key])
    assert all(parameter.grad is None for parameter in module.parameters())


class Scaled(nn.Linear):
    """A class that PyTorch does not know."""

    def __init__(self, factor):
        super().__init__(6, 3, rng=0)
        self.factor = factor

    def backward(self, d_out):
        return super().backward(d_out * d_out.dtype.type(self.factor))


def test_a_module_of_ones_own_is_compared_with_the_one_given():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    x, d_out = rng.normal(size=(4, 6)), rng.normal(size=(4, 3))
    given = torch.nn.Linear(6, 3)
    before = given.weight.detach().numpy().copy()
    assert against_torch(Scaled(1.0), x, d_out, torch_module=given).ok
    wrong = against_torch(Scaled(1.001), x, d_out, torch_module=given)
    assert not wrong.ok
    assert {row.quantity for row in wrong.rows if not row.within} == {"d_x", "d_weight", "d_bias"}
    np.testing.assert_array_equal(given.weight.detach().numpy(), before)
    with pytest.raises(TypeError, match="Scaled"):
        against_torch(Scaled(1.0), x, d_out)


def test_without_pytorch_the_message_says_what_works(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModuleNotFoundError, match=r"agreement\(\) compares with stored values"):
        against_torch(nn.Linear(2, 1, rng=0), np.ones((1, 2)), np.ones((1, 1)))
    assert agreement.agreement("neuron").ok
