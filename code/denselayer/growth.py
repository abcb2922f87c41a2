"""How measured times grow with a size: the slope on logarithmic axes, and the knee, with intervals."""

from typing import NamedTuple

import numpy as np

from ._validate import complaint, count, number
from .init import generator


class Estimate(NamedTuple):
    """A number drawn from measurements, and the interval that resampling the rounds gives for it.

    An interval for a level of 0.95 holds the true number in about 95% of all cases, from 5 rounds on.

    >>> print(Estimate(1.5, 1.25, 1.75))
    1.50 [1.25, 1.75]
    """

    value: float
    low: float
    high: float

    def __str__(self):
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def loglog_slope(sizes, seconds, *, level=0.95, resamples=2000, rng=0):
    """Exponent b of ``seconds ~ size ** b``: the slope of the line through the median times, both in logs.

    Args:
        sizes: (K,) numbers above 0, two different ones or more.
        seconds: (K, R) times above 0 s: for each size the time in each of R rounds.
        level: coverage of the interval, between 0 and 1.
        resamples: how often the rounds are drawn again.
        rng: None, an int seed, or a ``numpy.random.Generator``.

    Returns:
        An Estimate. The interval is about noise from round to round. It does not say that the points lie on
        a line: look at them, or compare the slopes of two halves. Its coverage is about ``level`` from 5
        rounds on, and less with fewer.

    Raises:
        ValueError: shapes that do not fit, or a number that is not above 0.

    Source:
        Least squares on the logarithms; the interval is the percentile bootstrap over rounds, see B. Efron,
        R. Tibshirani, "An introduction to the bootstrap", 1993. Rounds are drawn whole, so what slows down
        all sizes of a round alike cancels.

    Notes:
        Equation: eq-scale-slope.

    >>> sizes = np.array([64, 128, 256])
    >>> loglog_slope(sizes, 1e-9 * sizes[:, None] ** 2 * np.array([1.0, 1.1, 1.3]))[0].__round__(6)
    2.0
    """
    sizes, seconds = _checked("loglog_slope", sizes, seconds)
    logs = np.log(sizes) - np.log(sizes).mean()
    if not logs.any():
        came = f"all sizes are {sizes[0]:g}"
        raise ValueError(complaint("loglog_slope", came, "different sizes", "Measure another size."))
    weights = logs / (logs @ logs)
    return _estimate(lambda medians: np.log(medians) @ weights, seconds, level, resamples, rng)


def knee(sizes, seconds, *, level=0.95, resamples=2000, rng=0):
    """Size at which a time that begins flat and ends proportional to the size has its knee.

    Args:
        sizes: (K,) numbers above 0, the smallest first, two or more. The first should lie on the flat part,
            the last on the part that is proportional to the size; those between are not looked at.
        seconds: (K, R) times above 0 s: for each size the time in each of R rounds.
        level: coverage of the interval, between 0 and 1.
        resamples: how often the rounds are drawn again.
        rng: None, an int seed, or a ``numpy.random.Generator``.

    Returns:
        An Estimate of the size at which the two lines meet: time of the first size, divided by time per unit
        of the last. The coverage of its interval is about ``level`` from 5 rounds on, and less with fewer.

    Raises:
        ValueError: shapes that do not fit, sizes that do not grow, or a number that is not above 0.

    Source:
        The two asymptotes of ``max(time of the first, size * time per unit)``; percentile bootstrap over
        rounds as in `loglog_slope`.

    Notes:
        Equation: eq-scale-knee.

    >>> knee([1, 1000], [[2.0, 2.0], [100.0, 100.0]])
    Estimate(value=20.0, low=20.0, high=20.0)
    """
    sizes, seconds = _checked("knee", sizes, seconds)
    if (np.diff(sizes) <= 0).any():
        came = "sizes do not grow"
        raise ValueError(complaint("knee", came, "the smallest first, each once", "Sort both by size."))
    return _estimate(lambda m: m[..., 0] / m[..., -1] * sizes[-1], seconds, level, resamples, rng)


def _estimate(function, seconds, level, resamples, rng):
    """``function`` of the medians, and its percentiles when whole rounds are drawn again."""
    level = number("growth", "level", level, above=0, below=1)
    rounds, resamples = seconds.shape[1], count("growth", "resamples", resamples)
    if resamples == 0:
        raise ValueError(complaint("growth", "resamples is 0", "1 or more", "Take 2000."))
    drawn = generator("growth", rng).integers(rounds, size=(resamples, rounds))
    again = function(np.median(seconds[:, drawn], axis=2).T)
    low, high = np.quantile(again, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(float(function(np.median(seconds, axis=1))), float(low), float(high))


def _checked(where, sizes, seconds):
    advice = "Pass one row of times for each size, with one time for each round."
    try:
        sizes, seconds = np.asarray(sizes, dtype=float), np.asarray(seconds, dtype=float)
    except (TypeError, ValueError):
        came = "sizes or seconds cannot be made an array of floats"
        raise ValueError(complaint(where, came, "numbers, in rows of equal length", advice)) from None
    if sizes.ndim != 1 or len(sizes) < 2 or seconds.ndim != 2 or len(seconds) != len(sizes):
        came = f"sizes has shape {sizes.shape} and seconds {seconds.shape}"
        raise ValueError(complaint(where, came, "(K,) and (K, R) with K of 2 or more", advice))
    usable = [(values > 0) & np.isfinite(values) for values in (sizes, seconds)]
    if seconds.shape[1] == 0 or not all(good.all() for good in usable):
        came = "a size or a time is missing, NaN, infinite or not above 0"
        advice = "A logarithm and a ratio need positive numbers: repeat the run until the clock moves."
        raise ValueError(complaint(where, came, "numbers above 0", advice))
    return sizes, seconds
