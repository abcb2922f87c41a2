"""Activations: values and slopes against PyTorch, exact arithmetic, and at the ends of the number line."""

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from denselayer import functional as F
from denselayer._special import erf, normal_cdf, normal_pdf
from tests.denselayer.oracle import FLOATS, dtypes, error, laid_out, layouts, seeds, sizes, slopes, tensor

T = torch.nn.functional
NAN, INF = float("nan"), float("inf")


class Case:
    """One activation with its options: ours, PyTorch's, and the exact function and slope in mpmath."""

    def __init__(self, name, torch_function, exact, exact_slope, **options):
        self.name, self.options = name, options
        self.torch_function, self.exact, self.exact_slope = torch_function, exact, exact_slope

    def __repr__(self):
        return "-".join([self.name, *map(str, self.options.values())])

    def forward(self, z):
        return getattr(F, self.name)(z, **self.options)

    def rounded_by_pytorch(self, z):
        """Size of the numbers whose rounding errors are in PyTorch's result; None for the result itself."""
        return np.abs(z) if self.name == "gelu" else None

    def backward(self, d_out, z):
        return getattr(F, self.name + "_backward")(d_out, z, **self.options)

    def torch_values(self, z, d_out):
        leaf = tensor(z, gradient=True)
        out = self.torch_function(leaf, **self.options)
        out.backward(tensor(d_out))
        return out.detach().numpy(), leaf.grad.numpy()


def s(x):
    return 1 / (1 + mpmath.exp(-x))


def cdf(x):
    return mpmath.erfc(-x / mpmath.sqrt(2)) / 2


def gelu_inner(x):
    return mpmath.sqrt(2 / mpmath.pi) * (x + mpmath.mpf("0.044715") * x**3)


def gelu_tanh_slope(x):
    inner_slope = mpmath.sqrt(2 / mpmath.pi) * (1 + 3 * mpmath.mpf("0.044715") * x**2)
    return s(2 * gelu_inner(x)) + x / 2 * mpmath.sech(gelu_inner(x)) ** 2 * inner_slope


CASES = [
    Case("identity", lambda z: z * 1, lambda x: x, lambda x: 1),
    Case("relu", T.relu, lambda x: max(x, 0), lambda x: x > 0),
    Case("leaky_relu", T.leaky_relu, lambda x: x if x > 0 else 0.01 * x, lambda x: 1 if x > 0 else 0.01),
    Case(
        "leaky_relu",
        T.leaky_relu,
        lambda x: x if x > 0 else x / 4,
        lambda x: 1 if x > 0 else 0.25,
        negative_slope=0.25,
    ),
    Case("sigmoid", torch.sigmoid, s, lambda x: s(x) * s(-x)),
    Case("tanh", torch.tanh, mpmath.tanh, lambda x: mpmath.sech(x) ** 2),
    Case("silu", T.silu, lambda x: x * s(x), lambda x: s(x) + x * s(x) * s(-x)),
    Case(
        "softplus",
        T.softplus,
        lambda x: x if x > 20 else mpmath.log1p(mpmath.exp(x)),
        lambda x: 1 if x > 20 else s(x),
    ),
    Case(
        "softplus",
        T.softplus,
        lambda x: x if x > 2.5 else mpmath.log1p(mpmath.exp(2 * x)) / 2,
        lambda x: 1 if x > 2.5 else s(2 * x),
        beta=2.0,
        threshold=5.0,
    ),
    Case("gelu", T.gelu, lambda x: x * cdf(x), lambda x: cdf(x) + x * mpmath.npdf(x), approximate="none"),
    Case("gelu", T.gelu, lambda x: x * s(2 * gelu_inner(x)), gelu_tanh_slope, approximate="tanh"),
]
every_case = pytest.mark.parametrize("case", CASES, ids=repr)
every_dtype = pytest.mark.parametrize("dtype", FLOATS, ids=["float32", "float64"])


@every_case
@every_dtype
def test_forward_is_within_three_ulp_of_pytorch(case, dtype):
    """Measured: at most 2.0 (float32 GELU, where PyTorch rounds more often), else 1.6."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        z = (rng.standard_normal(300) * rng.choice([0.1, 1, 3, 10])).astype(dtype)
        expected, _ = case.torch_values(z, np.ones_like(z))
        assert error(case.forward(z), expected) <= 3


@every_case
@every_dtype
def test_backward_is_within_three_ulp_of_pytorch(case, dtype):
    """Measured: at most 1.8 ulp of the largest d_out for every function but two.

    SiLU and tanh-GELU reach 11 and 12 at |z| near 30, and the error is PyTorch's: it forms 1 - s, whose
    rounding error z then multiplies. There the unit is (1 + |z|) ulp; the test against exact arithmetic
    knows no exception.
    """
    for seed in range(20):
        rng = np.random.default_rng(seed)
        z = (rng.standard_normal(300) * rng.choice([0.1, 1, 3, 10])).astype(dtype)
        d_out = rng.standard_normal(300).astype(dtype)
        _, expected = case.torch_values(z, d_out)
        scale = np.max(np.abs(d_out))
        if case.name == "silu" or case.options.get("approximate") == "tanh":
            scale = scale * (1 + np.abs(z))
        assert error(case.backward(d_out, z), expected, scale) <= 3


HARD = np.array(
    [
        *[0.0, -0.0, 5e-324, -5e-324, 1e-300, 1e-16, -1e-16, 0.46875 * 2**0.5, 0.663, -0.663, 1.0, -1.0],
        *[
            5.65685,
            -5.65685,
            5.6569,
            -5.6569,
            8.3,
            -8.3,
            19.99,
            20.0,
            20.01,
            -20.0,
            36.7,
            -36.7,
            100.0,
            700.0,
        ],
        *np.linspace(-37, 38, 400),
    ]
)


@every_case
@every_dtype
def test_forward_is_right_in_both_tails(case, dtype):
    """Every entry to a few of its own ulp, where PyTorch's exact GELU gives -0 below -8.3.

    tanh-GELU takes the exponential of a number u with one rounding error or two: u ulp are lost.
    """
    z = HARD.astype(dtype)
    with mpmath.workdps(50):
        exact = [case.exact(mpmath.mpf(float(x))) for x in z]
        inner = [float(abs(gelu_inner(mpmath.mpf(float(x))))) for x in z]
    allowed = 4 + 4 * np.array(inner) * (case.options.get("approximate") == "tanh")
    assert_exact(case.forward(z), exact, allowed)


@every_case
@every_dtype
def test_backward_is_within_four_ulp_of_the_exact_slope(case, dtype):
    """In units of the largest slope, 1: next to the zero of GELU's slope no rounding error is small."""
    z = HARD.astype(dtype)
    with mpmath.workdps(50):
        exact = np.array([float(case.exact_slope(mpmath.mpf(float(x)))) for x in z])
    assert error(case.backward(np.ones_like(z), z), exact.astype(dtype), scale=1.0) <= 4


@pytest.mark.parametrize("name", ["sigmoid", "tanh"])
@every_dtype
def test_slope_is_right_where_the_activation_saturates(name, dtype):
    """s (1 - s) and 1 - tanh^2 are 0 in the tail when computed as written; the slope is not."""
    case = next(case for case in CASES if case.name == name)
    z = HARD.astype(dtype)
    with mpmath.workdps(50):
        exact = [case.exact_slope(mpmath.mpf(float(x))) for x in z]
    assert_exact(case.backward(np.ones_like(z), z), exact, 4)


def assert_exact(actual, exact, allowed_ulp):
    """Every entry within so many of its own ulp of the exact number (of the smallest normal one below it)."""
    info = np.finfo(actual.dtype)
    allowed_ulp = np.broadcast_to(allowed_ulp, actual.shape)
    with mpmath.workdps(50):
        for value, wanted, allowed in zip(actual.tolist(), exact, allowed_ulp.tolist(), strict=True):
            unit = mpmath.mpf(float(info.eps)) * max(abs(wanted), mpmath.mpf(float(info.tiny)))
            assert abs(mpmath.mpf(value) - wanted) <= allowed * unit, (value, wanted)


def test_error_function_and_normal_distribution_are_right_to_four_ulp():
    """Measured on 3,000 points: erf 1.7, distribution 3.6, density 2.1."""
    with mpmath.workdps(50):
        points = [mpmath.mpf(float(x)) for x in HARD]
        assert_exact(erf(HARD), [mpmath.erf(x) for x in points], 4)
        assert_exact(normal_cdf(HARD), [cdf(x) for x in points], 4)
        assert_exact(normal_pdf(HARD), [mpmath.npdf(x) for x in points], 4)


def test_error_function_ends_at_one_and_keeps_nan_and_signed_zero():
    ends = np.array([INF, -INF, 1e300, -1e300, NAN, -0.0])
    np.testing.assert_array_equal(erf(ends), [1, -1, 1, -1, NAN, -0.0])
    assert np.signbit(erf(ends)[-1])
    np.testing.assert_array_equal(normal_cdf(ends[:-1]), [1, 0, 1, 0, NAN])


@every_case
@settings(max_examples=25, deadline=None)
@given(
    shape=st.lists(sizes, max_size=2), dtype=dtypes, seed=seeds, layout=layouts, exponent=st.floats(-38, 37)
)
def test_any_shape_layout_and_size_of_number(case, shape, dtype, seed, layout, exponent):
    rng = np.random.default_rng(seed)
    z = laid_out((rng.standard_normal(shape) * 10.0**exponent).astype(dtype), layout)
    d_out = laid_out(rng.standard_normal(shape).astype(dtype), layout)
    kept = z.copy(), d_out.copy()
    out, d_z = case.forward(z), case.backward(d_out, z)
    expected, expected_d_z = case.torch_values(z, d_out)
    assert error(out, expected, case.rounded_by_pytorch(z)) <= 4
    assert np.shape(d_z) == z.shape
    limit = np.sqrt(np.finfo(dtype).max) / 100
    if case.options.get("approximate") != "tanh" or np.abs(z).max(initial=0) < limit:
        scale = np.abs(d_out).max(initial=0) * (1 + np.abs(z))
        assert error(d_z, expected_d_z, scale) <= 4
    np.testing.assert_array_equal(z, kept[0])
    np.testing.assert_array_equal(d_out, kept[1])
    assert not np.shares_memory(out, z)
    assert not np.shares_memory(d_z, d_out)


@every_case
@every_dtype
def test_nan_and_infinities_pass_through_as_in_pytorch(case, dtype):
    """One by one: for the float32 GELU of inf, PyTorch's vector code gives NaN, its scalar code the limit."""
    for z in [NAN, INF, -INF]:
        z = np.array([z], dtype)
        expected, expected_slope = case.torch_values(z, np.ones_like(z))
        np.testing.assert_array_equal(case.forward(z), expected)
        np.testing.assert_array_equal(case.backward(np.ones_like(z), z), expected_slope)


@every_case
@pytest.mark.filterwarnings("error")
def test_huge_numbers_have_the_limit_as_slope_and_warn_of_nothing(case):
    """PyTorch's tanh-GELU squares 1e200 and has the slope NaN there; the limits are 1 and 0."""
    z = np.array([1e200, -1e200, 1e308, -1e308])
    with mpmath.workdps(50):
        low = float(case.exact_slope(mpmath.mpf(-1000)))
    upper = 0.0 if case.name in ("sigmoid", "tanh") else 1.0
    np.testing.assert_allclose(case.backward(np.ones(4), z), [upper, low, upper, low], atol=1e-12)
    assert not np.isnan(case.forward(z)).any()


@every_case
@every_dtype
def test_scalars_come_back_as_scalars_of_their_dtype(case, dtype):
    for z in [dtype(0.75), np.array(0.75, dtype)]:
        for result in [case.forward(z), case.backward(dtype(2), z)]:
            assert result.shape == ()
            assert type(result) is dtype
    assert case.forward(dtype(0.75)) == case.forward(np.array([0.75], dtype))[0]


@every_case
def test_backward_is_the_slope_of_forward(case):
    z = np.random.default_rng(0).standard_normal(50) * 3
    d_out = np.random.default_rng(1).standard_normal(50)
    numeric = slopes(lambda a: np.sum(case.forward(a) * d_out), z)
    np.testing.assert_allclose(case.backward(d_out, z), numeric, rtol=1e-8, atol=1e-8)


@pytest.mark.equation("eq-relu")
@every_dtype
def test_relu_is_the_larger_of_z_and_zero(dtype):
    z = np.array([2.0, 1.5, -1.5, 0.0, 1e-45, -1e-45, INF, -INF], dtype)
    np.testing.assert_array_equal(F.relu(z), [max(value, 0.0) for value in z.tolist()])
    assert np.isnan(F.relu(np.array([NAN], dtype))).all()


@pytest.mark.equation("eq-relu-backward")
@every_dtype
def test_relu_lets_the_gradient_through_where_z_is_positive(dtype):
    z = np.array([2.0, 1e-45, 0.0, -0.0, -1e-45, -1.5], dtype)
    d_out = np.array([-3, 5, 7, 7, 7, 7], dtype)
    np.testing.assert_array_equal(F.relu_backward(d_out, z), [-3, 5, 0, 0, 0, 0])
    assert F.relu_backward(np.array([7], dtype), np.array([NAN], dtype)) == 7
