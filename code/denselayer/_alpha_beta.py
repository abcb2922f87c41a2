"""The alpha-beta model of messages: fitted to measured all-reduces, and what it predicts."""

import math
from dataclasses import dataclass

import numpy as np

from ._validate import complaint, count, describe, float_dtype, number

_HUBER = 1.345
_ROUNDS = 30


@dataclass(frozen=True)
class AlphaBeta:
    """Start-up time of a message and time for each byte, with intervals that hold 95% of the resamples.

    >>> model = AlphaBeta(alpha=1e-5, beta=1e-9, alpha_interval=(9e-6, 2e-5), beta_interval=(9e-10, 2e-9))
    >>> print(model)
    alpha 10.0 µs a step (9.0 to 20.0), beta 1.00 ns a byte (0.90 to 2.00)
    >>> round(1e3 * model.all_reduce_seconds(10**6, devices=2), 3)
    1.02
    """

    alpha: float
    """Seconds that a step takes, however short its messages are."""
    beta: float
    """Seconds for each byte of the longest message of a step."""
    alpha_interval: tuple
    beta_interval: tuple

    def all_reduce_seconds(self, nbytes, devices):
        """Predicted seconds to add up arrays of ``nbytes`` bytes over so many devices."""
        return all_reduce_seconds(nbytes, devices, self.alpha, self.beta)

    def __str__(self):
        low, high = (1e6 * end for end in self.alpha_interval)
        slow, fast = (1e9 * end for end in self.beta_interval)
        return (
            f"alpha {1e6 * self.alpha:.1f} µs a step ({low:.1f} to {high:.1f}), "
            f"beta {1e9 * self.beta:.2f} ns a byte ({slow:.2f} to {fast:.2f})"
        )


def all_reduce_seconds(nbytes, devices, alpha, beta):
    """Seconds of an all-reduce in a ring, in the alpha-beta model.

    Args:
        nbytes: bytes of the array on each device.
        devices: how many devices P.
        alpha: seconds that a step takes, however short its messages are.
        beta: seconds for each byte of a message.

    Source:
        R. Hockney, "The communication challenge for MPP: Intel Paragon and Meiko CS-2", Parallel Computing
        20 (1994); R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations
        in MPICH", International Journal of High Performance Computing Applications 19 (2005).

    Notes:
        Equation: eq-scale-alpha-beta.

    >>> all_reduce_seconds(10**6, devices=2, alpha=0.0, beta=1e-9)
    0.001
    """
    where = "all_reduce_seconds"
    nbytes, devices = number(where, "nbytes", nbytes, low=0), _devices(where, devices)
    steps = 2 * (devices - 1)
    alpha = number(where, "alpha", alpha, low=0)
    return steps * (alpha + number(where, "beta", beta, low=0) * nbytes / devices)


def paying_width(batch, devices, rate, alpha, beta, *, expansion=4, dtype=np.float32):
    """Width d from which on splitting a block d → m d → d over the devices saves time.

    Args:
        batch: number of rows N, 1 or more.
        devices: how many devices P, 2 or more.
        rate: operations per second of one device.
        alpha: seconds that a step of an all-reduce takes, however short its messages are.
        beta: seconds for each byte of a message.
        expansion: how many times wider the block is in the middle, m.
        dtype: of the arrays.

    Returns:
        A float. Narrower blocks lose more with the two all-reduces than they gain.

    Source:
        A forward and a backward pass of ``12 m N d**2`` operations on one device, against a P-th of them and
        two all-reduces of N d numbers.

    Notes:
        Equation: eq-scale-paying-width.

    >>> round(paying_width(64, devices=2, rate=1e11, alpha=1e-5, beta=1e-9))
    70
    """
    where = "paying_width"
    batch, devices = count(where, "batch", batch), _devices(where, devices)
    if batch == 0 or devices == 1:
        came = f"batch is {batch} and devices is {devices}"
        raise ValueError(complaint(where, came, "a row or more and two devices or more", "Nothing is split."))
    rate = number(where, "rate", rate, above=0)
    alpha, beta = number(where, "alpha", alpha, low=0), number(where, "beta", beta, low=0)
    square = 3 * number(where, "expansion", expansion, above=0) * batch / rate
    linear = beta * float_dtype(where, dtype).itemsize * batch
    return (linear + math.sqrt(linear**2 + 4 * square * devices * alpha)) / (2 * square)


def fit_alpha_beta(nbytes, seconds, devices=2, *, resamples=2000, seed=0):
    """Fit the alpha-beta model to measured all-reduces.

    Args:
        nbytes: sizes of the arrays in bytes, two different ones or more.
        seconds: for each size its measured times: a list of lists, or of numbers.
        devices: how many devices took part, 2 or more.
        resamples: how often the fit is repeated for the intervals.
        seed: of the resamples.

    Returns:
        An `AlphaBeta`.

    Raises:
        ValueError: fewer than two sizes, a size without times, times that are not positive, or no resample
            with two different sizes.
        TypeError: sizes or times that are no list.

    Source:
        Weighted least squares on the median of each size. Its weights make relative errors count, so that 8
        bytes have the same say as 64 MB, and the weights of P. Huber, "Robust estimation of a location
        parameter", Annals of Mathematical Statistics 35 (1964), keep a few bad sizes from deciding. For the
        intervals both the sizes and the times of each are drawn anew, with replacement (B. Efron, "Bootstrap
        methods: another look at the jackknife", Annals of Statistics 7, 1979).

    Notes:
        Equation: eq-scale-alpha-beta.

    >>> sizes = [8, 8000, 8_000_000]
    >>> times = [[all_reduce_seconds(n, 4, 1e-5, 1e-9)] * 3 for n in sizes]
    >>> print(fit_alpha_beta(sizes, times, devices=4))
    alpha 10.0 µs a step (10.0 to 10.0), beta 1.00 ns a byte (1.00 to 1.00)
    """
    devices = _devices("fit_alpha_beta", devices)
    sizes, samples = _measured(nbytes, seconds, devices)
    medians = np.array([np.median(times) for times in samples])
    ((start, slope),) = _line(sizes[None], medians[None])
    rng = np.random.default_rng(seed)
    drawn = rng.integers(len(sizes), size=(count("fit_alpha_beta", "resamples", resamples), len(sizes)))
    drawn = drawn[sizes[drawn].min(axis=1) < sizes[drawn].max(axis=1)]
    if not len(drawn):
        came = f"none of {resamples} resamples has two different sizes"
        raise ValueError(complaint("fit_alpha_beta", came, "one or more", "Take resamples=2000."))
    redrawn = np.array([_medians(rng, times, len(drawn)) for times in samples])
    lines = _line(sizes[drawn], redrawn[drawn, np.arange(len(drawn))[:, None]])
    starts, slopes = np.quantile(lines, [0.025, 0.975], axis=0).T
    steps = 2 * (devices - 1)
    per_byte = devices / steps
    return AlphaBeta(
        float(start / steps),
        float(slope * per_byte),
        tuple(float(end / steps) for end in starts),
        tuple(float(end * per_byte) for end in slopes),
    )


def _line(sizes, times):
    """Intercept and slope of each row, both 0 or more, by robust least squares on relative errors."""
    x, weights = sizes / times, np.ones_like(times)
    one = 1 / times
    for _ in range(_ROUNDS):
        cross, ones, squares = (np.sum(weights * term, axis=-1) for term in (one * x, one * one, x * x))
        left, right = np.sum(weights * one, axis=-1), np.sum(weights * x, axis=-1)
        whole = np.maximum(ones * squares - cross**2, np.finfo(float).tiny)
        start, slope = (left * squares - right * cross) / whole, (right * ones - left * cross) / whole
        start, slope = (
            np.where(slope < 0, left / ones, np.maximum(start, 0)),
            np.where(start < 0, right / squares, np.maximum(slope, 0)),
        )
        error = np.abs(start[..., None] * one + slope[..., None] * x - 1)
        scale = 1.4826 * np.median(error, axis=-1, keepdims=True) + 1e-12
        weights = np.minimum(1, _HUBER * scale / np.maximum(error, 1e-300))
    return np.stack([start, slope], axis=-1)


def _medians(rng, times, resamples):
    return np.median(times[rng.integers(len(times), size=(resamples, len(times)))], axis=1)


def _measured(nbytes, seconds, devices):
    where = "fit_alpha_beta"
    if devices == 1:
        raise ValueError(complaint(where, "devices is 1", "2 or more", "One device sends nothing."))
    for name, values in (("nbytes", nbytes), ("seconds", seconds)):
        if not isinstance(values, list | tuple | np.ndarray) or getattr(values, "ndim", 1) == 0:
            advice = "Pass one entry for each size."
            raise TypeError(complaint(where, f"{name} is {describe(values)}", "a list", advice))
    sizes = np.array([number(where, f"nbytes[{at}]", size, low=0) for at, size in enumerate(nbytes)])
    if len(set(sizes.tolist())) < 2:
        came = f"{len(set(sizes.tolist()))} different sizes came"
        raise ValueError(complaint(where, came, "two or more", "Measure arrays of several sizes."))
    if len(seconds) != len(sizes):
        came = f"{len(sizes)} sizes and {len(seconds)} lists of times came"
        raise ValueError(complaint(where, came, "times for each size", "Pass one list for each size."))
    samples = [np.atleast_1d(np.asarray(times, dtype=float)) for times in seconds]
    for at, times in enumerate(samples):
        if times.size == 0 or not np.all((times > 0) & (times < math.inf)):
            came = f"seconds[{at}] is {describe(times)} with entries that are no times"
            came = came if times.size else f"seconds[{at}] is empty"
            raise ValueError(complaint(where, came, "positive seconds", "Leave out what was not measured."))
    return sizes, samples


def _devices(where, devices):
    devices = count(where, "devices", devices)
    if devices == 0:
        raise ValueError(complaint(where, "devices is 0", "1 or more", "Pass the number of devices."))
    return devices
