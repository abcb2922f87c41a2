"""Slopes and knees of measured times: exact on exact data, and intervals that cover what they promise."""

import numpy as np
import pytest

from denselayer.growth import Estimate, knee, loglog_slope

SIZES = np.array([16, 32, 64, 128, 256])


def power_law(exponent, rounds=15, noise=0.0, seed=0, sizes=SIZES):
    """Times of ``sizes ** exponent`` nanoseconds, each with log-normal noise of its own."""
    rng = np.random.default_rng(seed)
    return 1e-9 * sizes[:, None] ** float(exponent) * np.exp(noise * rng.normal(size=(len(sizes), rounds)))


@pytest.mark.equation("eq-scale-slope")
@pytest.mark.parametrize("exponent", [0, 0.5, 1, 2, 3, -1])
def test_the_slope_of_a_power_is_the_exponent(exponent):
    value, low, high = loglog_slope(SIZES, power_law(exponent))
    assert value == pytest.approx(exponent, abs=1e-12)
    assert low == pytest.approx(exponent, abs=1e-12)
    assert high == pytest.approx(exponent, abs=1e-12)


@pytest.mark.equation("eq-scale-slope")
def test_the_slope_is_that_of_least_squares_through_the_medians():
    seconds = power_law(1.5, noise=0.3)
    fitted = np.polyfit(np.log(SIZES), np.log(np.median(seconds, axis=1)), 1)[0]
    assert loglog_slope(SIZES, seconds).value == pytest.approx(fitted)
    assert loglog_slope(SIZES, 7 * seconds).value == pytest.approx(fitted)
    assert loglog_slope(1024 * SIZES, seconds).value == pytest.approx(fitted)
    back = loglog_slope(SIZES[::-1], seconds[::-1])
    assert back.value == pytest.approx(fitted)


def covered(estimate, truth, trials=300):
    """Share of trials whose interval holds the truth."""
    return np.mean([low <= truth <= high for _, low, high in map(estimate, range(trials))])


@pytest.mark.parametrize(("level", "rounds"), [(0.95, 15), (0.95, 5), (0.5, 15)])
def test_intervals_of_the_slope_cover_the_exponent_as_often_as_they_promise(level, rounds):
    def estimate(trial):
        seconds = power_law(2, rounds, noise=0.1, seed=trial)
        found = loglog_slope(SIZES, seconds, level=level, resamples=400)
        assert found.low < found.high
        return found

    assert covered(estimate, 2) == pytest.approx(level, abs=0.05 if level > 0.9 else 0.12)


@pytest.mark.parametrize("rounds", [5, 15])
def test_intervals_of_the_knee_cover_it_as_often_as_they_promise(rounds):
    def estimate(trial):
        noise = np.exp(0.1 * np.random.default_rng(trial).normal(size=(2, rounds)))
        return knee([1, 1000], [[3.0], [100.0]] * noise, resamples=400)

    assert covered(estimate, 30) == pytest.approx(0.95, abs=0.05)


def test_what_slows_down_all_sizes_of_a_round_alike_cancels():
    seconds = power_law(2)
    drift = np.exp(np.random.default_rng(1).normal(size=15))
    value, low, high = loglog_slope(SIZES, seconds * drift)
    assert (value, low, high) == pytest.approx((2, 2, 2))
    alone = loglog_slope(SIZES, power_law(2, noise=1))
    assert alone.high - alone.low > 0.2


def test_one_wild_round_hardly_moves_the_slope():
    seconds = power_law(2, noise=0.01)
    seconds[-1, 3] *= 100
    assert loglog_slope(SIZES, seconds).value == pytest.approx(2, abs=0.01)


def test_more_rounds_make_the_interval_shorter():
    short, long = (loglog_slope(SIZES, power_law(1, rounds=r, noise=0.2)) for r in (9, 225))
    assert (long.high - long.low) < 0.4 * (short.high - short.low)


@pytest.mark.equation("eq-scale-knee")
@pytest.mark.parametrize("corner", [5, 20, 60.5])
def test_the_knee_of_a_flat_and_a_rising_line_is_where_they_meet(corner):
    sizes = np.array([1, 2, 4, 512, 1024])
    seconds = 1e-6 * np.maximum(corner, sizes)[:, None] * np.ones(7)
    assert tuple(knee(sizes, seconds)) == pytest.approx((corner, corner, corner))


def test_the_same_seed_draws_the_same_interval():
    seconds = power_law(1, noise=0.2)
    assert loglog_slope(SIZES, seconds) == loglog_slope(SIZES, seconds, rng=0)
    assert loglog_slope(SIZES, seconds) != loglog_slope(SIZES, seconds, rng=1)
    assert loglog_slope(SIZES, seconds, rng=None).value == loglog_slope(SIZES, seconds).value


def test_inputs_stay_as_they_are_and_lists_will_do():
    seconds = power_law(1, noise=0.1)
    before = seconds.copy()
    from_lists = loglog_slope(SIZES.tolist(), seconds.tolist())
    assert from_lists == loglog_slope(SIZES, seconds)
    np.testing.assert_array_equal(seconds, before)
    assert str(Estimate(1.0, 0.5, 2.0)) == "1.00 [0.50, 2.00]"


@pytest.mark.parametrize("function", [loglog_slope, knee])
@pytest.mark.parametrize(
    ("sizes", "seconds", "options", "message"),
    [
        ([1], [[1.0]], {}, "K of 2 or more"),
        ([1, 2], [1.0, 2.0], {}, "one row of times for each size"),
        ([1, 2], [[1.0]], {}, r"seconds \(1, 1\)"),
        ([1, 2], [[], []], {}, "missing"),
        ([1, 2], [[1.0], [0.0]], {}, "not above 0"),
        ([1, 2], [[1.0], [np.nan]], {}, "not above 0"),
        ([0, 2], [[1.0], [1.0]], {}, "not above 0"),
        ([1, 2], [[1.0], [np.inf]], {}, "infinite"),
        ([1, np.inf], [[1.0], [1.0]], {}, "infinite"),
        ([1, 2], [[1.0], [1.0, 2.0]], {}, "one time for each round"),
        (["a", "b"], [[1.0], [1.0]], {}, "numbers"),
        ([2, 2], [[1.0], [1.0]], {}, "all sizes are 2|sizes do not grow"),
        ([1, 2], [[1.0], [1.0]], {"level": 1}, "level is 1"),
        ([1, 2], [[1.0], [1.0]], {"resamples": -1}, "resamples is -1"),
        ([1, 2], [[1.0], [1.0]], {"resamples": 0}, "resamples is 0"),
    ],
)
def test_bad_input_is_named(function, sizes, seconds, options, message):
    with pytest.raises(ValueError, match=message):
        function(sizes, seconds, **options)


def test_a_knee_needs_growing_sizes():
    with pytest.raises(ValueError, match="smallest first"):
        knee([4, 2], [[1.0], [1.0]])
