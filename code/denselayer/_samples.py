"""Measured samples: what a case holds, how two variants are compared, how samples are kept in a file."""

import math
import statistics
from dataclasses import dataclass, field

import numpy as np

from ._table import html_table, text_table
from ._validate import complaint

FAILED = "failed: "
"""How the reason begins where a variant was to give samples; other missing ones do not exist there."""
DRAWS = 1000
"""Resamples of the bootstrap."""
FEWEST = 5
"""Rounds that an interval needs. That of 3 rounds would hold the true median three times out of four."""


@dataclass(frozen=True)
class Ratio:
    """How many times faster one variant is than another: the median of the paired ratios, with an interval.

    >>> print(Ratio(1.9, 1.85, 1.97, 15))
    1.90 (1.85 to 1.97)
    """

    median: float
    low: float
    high: float
    """The interval from ``low`` to ``high`` holds the true median with a confidence of about 95%.

    That is so from 9 rounds on. With 5 to 8 rounds it may be 85%, and with fewer there is no interval: both
    ends are NaN, and it prints as ``?``.
    """
    rounds: int

    def __str__(self):
        if math.isnan(self.low):
            return f"{self.median:.2f} (?)"
        return f"{self.median:.2f} ({self.low:.2f} to {self.high:.2f})"


@dataclass(frozen=True)
class Case:
    """The samples of several variants that do the same piece of work, taken in the same rounds.

    ``str(case)`` is a table; in a notebook it shows as one.

    >>> Case("by hand", {"plain": [2.0, 4.0], "fused": [1.0, 2.0]}).variants
    ('plain', 'fused')
    """

    name: str
    seconds: dict
    """Variant to its samples in seconds, one for each round."""
    shape: dict = field(default_factory=dict)
    """Sizes, such as ``{"batch": 64, "in_features": 784, "out_features": 256}``."""
    dtype: str = "float32"
    threads: int = 1
    clock: str = "wall"
    operations: int | None = None
    traffic: int | None = None
    """Bytes that must be moved."""
    missing: dict = field(default_factory=dict)
    """Variants that gave no samples, each with the reason."""
    notes: dict = field(default_factory=dict)
    """What a variant says of itself, such as the plan it has chosen."""
    others: tuple | None = None
    """Share of the processors that other programs took, one for each round; None where it is unknown."""

    @property
    def variants(self) -> tuple:
        """Names of the variants with samples."""
        return tuple(self.seconds)

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        return min((len(times) for times in self.seconds.values()), default=0)

    def median(self, variant) -> float:
        """Median seconds of a variant.

        >>> Case("by hand", {"a": [3.0, 1.0, 2.0]}).median("a")
        2.0
        """
        return statistics.median(self._times(variant))

    def rate(self, variant) -> float:
        """Operations per second of a variant, at its median."""
        if self.operations is None:
            raise ValueError(
                complaint("rate", f"{self.name} counts no operations", "a case that does", "Use median.")
            )
        return self.operations / self.median(variant)

    def ratio(self, slower, faster, seed=0) -> Ratio:
        """Compare two variants round by round: how many times longer the first takes than the second.

        Args:
            slower, faster: names of variants.
            seed: of the resampling that gives the interval.

        Returns:
            A Ratio; above 1 means that ``faster`` deserves its name. Its interval holds the true median in
            about 95% of all cases, from 9 rounds on; with fewer than 5 rounds it is NaN.

        Source:
            T. Hoefler and R. Belli, "Scientific benchmarking of parallel computing systems", SC 2015;
            B. Efron, "Bootstrap methods: another look at the jackknife", Annals of Statistics 7 (1979), 1-26.

        >>> case = Case("by hand", {"plain": [2, 4, 6, 8, 9], "fused": [1, 2, 3, 4, 5]})
        >>> print(case.ratio("plain", "fused"))
        2.00 (1.80 to 2.00)
        """
        pairs = zip(self._times(slower), self._times(faster), strict=False)
        return paired_ratio([one / other for one, other in pairs], seed)

    def bound(self, limits) -> float:
        """Least seconds that this work takes on a machine with these limits; see `Limits.bound`."""
        if self.operations is None or self.traffic is None:
            came = f"{self.name} counts no operations or no traffic"
            raise ValueError(complaint("bound", came, "a case that counts both", "Pass both to compare."))
        return limits.bound(self.operations, self.traffic, self.dtype)

    def fraction(self, variant, limits) -> float:
        """How much of what the machine can do a variant reaches: the bound divided by its median."""
        return self.bound(limits) / self.median(variant)

    @property
    def failed(self) -> dict:
        """Variants that should have given samples and did not, with the reason."""
        return {name: reason for name, reason in self.missing.items() if reason.startswith(FAILED)}

    @property
    def disturbed(self) -> float | None:
        """Share of the processors that other programs took, on average; None where it is unknown."""
        return statistics.fmean(self.others) if self.others else None

    def _times(self, variant):
        if variant in self.seconds:
            return self.seconds[variant]
        known = ", ".join(repr(name) for name in self.seconds) or "none"
        reason = f" ({self.missing[variant]})" if variant in self.missing else ""
        came = f"there are no samples of {variant!r}{reason}"
        raise ValueError(complaint(self.name, came, f"one of {known}", "Choose one of these."))

    def _title(self):
        parts = [self.name, self.dtype, f"{self.threads} thread{'s' * (self.threads != 1)}"]
        parts.append(f"{self.rounds} rounds")
        if self.disturbed is not None:
            parts.append(f"others took {self.disturbed:.0%} of the processors")
        return ", ".join(parts)

    def _table(self):
        first = next(iter(self.seconds), None)
        header = ["variant", "median", "middle half", "speed", "rate"]
        rows = []
        for name, times in self.seconds.items():
            low, high = np.quantile(times, [0.25, 0.75])
            ratio = "1" if name == first else str(self.ratio(first, name))
            rate = f"{self.rate(name) / 1e9:.1f} G/s" if self.operations else "-"
            rows.append([name, duration(self.median(name)), f"{duration(low)} to {duration(high)}"])
            rows[-1] += [ratio, rate]
        rows += [[name, "-", reason, "-", "-"] for name, reason in self.missing.items()]
        return header, rows

    def __str__(self):
        return f"{self._title()}\n{text_table(*self._table())}"

    def __repr__(self):
        return f"<Case {self.name!r}: {', '.join(self.seconds)}, {self.rounds} rounds>"

    def _repr_markdown_(self):
        return html_table("measured", self._title(), *self._table())


@dataclass(frozen=True)
class Samples:
    """All samples of a suite, and the machine that they come from.

    >>> Samples("demo", {"cpu": "unknown"}, (Case("a", {}, threads=2),)).threads
    (2,)
    """

    suite: str
    machine: dict
    cases: tuple

    @property
    def threads(self) -> tuple:
        """The numbers of threads that occur."""
        return tuple(sorted({case.threads for case in self.cases}))

    def select(self, **wanted) -> list:
        """Cases whose ``name``, ``dtype``, ``threads`` or sizes are as wanted.

        >>> samples = Samples("demo", {}, (Case("a", {}, threads=1), Case("a", {}, threads=2)))
        >>> samples.select(name="a", threads=2)
        [<Case 'a': , 0 rounds>]
        """
        return [
            case
            for case in self.cases
            if all(
                (getattr(case, key) if hasattr(case, key) else case.shape.get(key)) == value
                for key, value in wanted.items()
            )
        ]

    def case(self, name, dtype="float32", threads=1) -> Case:
        """The one case of this name, dtype and number of threads."""
        found = self.select(name=name, dtype=dtype, threads=threads)
        if len(found) == 1:
            return found[0]
        known = "; ".join(f"{case.name} {case.dtype} {case.threads}" for case in self.cases) or "nothing"
        came = f"{len(found)} cases are called {name!r} with {dtype} and {threads} threads"
        raise ValueError(complaint(self.suite, came, f"one of: {known}", "Choose one of these."))

    def __str__(self):
        return "\n\n".join(str(case) for case in self.cases)

    def __repr__(self):
        return f"<Samples {self.suite!r}: {len(self.cases)} cases>"

    def _repr_markdown_(self):
        return "\n\n".join(case._repr_markdown_() for case in self.cases)


def paired_ratio(ratios, seed=0):
    """Median of paired ratios, with the percentile interval of its bootstrap from `FEWEST` rounds on.

    >>> print(paired_ratio([1.0, 2.0, 3.0, 4.0, 5.0]), paired_ratio([1.0, 2.0, 3.0]), sep=", ")
    3.00 (1.00 to 5.00), 2.00 (?)
    """
    if not ratios:
        raise ValueError(complaint("ratio", "there are no rounds", "one round or more", "Measure again."))
    values = np.asarray(ratios, dtype=float)
    if len(values) < FEWEST:
        return Ratio(float(np.median(values)), math.nan, math.nan, len(values))
    picks = np.random.default_rng(seed).integers(len(values), size=(DRAWS, len(values)))
    low, high = np.quantile(np.median(values[picks], axis=1), [0.025, 0.975])
    return Ratio(float(np.median(values)), float(low), float(high), len(values))


def geometric_mean(values):
    """The mean for ratios: the mean of 2 and 1/2 is 1.

    Args:
        values: positive numbers, one or more.

    Raises:
        ValueError: there are none, or one is 0 or less.

    Source:
        P. J. Fleming and J. J. Wallace, "How not to lie with statistics: the correct way to summarize
        benchmark results", CACM 29 (1986), 218-221.

    >>> geometric_mean([2.0, 0.5])
    1.0
    """
    values = list(values)
    if not values or min(values) <= 0:
        came = f"the least value is {min(values)}" if values else "there are no values"
        advice = "Leave out what was not measured."
        raise ValueError(complaint("geometric_mean", came, "one number above 0 or more", advice))
    return statistics.geometric_mean(values)


def duration(seconds):
    """Write a time with three digits and a fitting unit.

    >>> duration(0.0123456), duration(5.2e-6), duration(1.5)
    ('12.3 ms', '5.20 us', '1.50 s')
    """
    for size, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")):
        if seconds >= 0.9995 * size or unit == "ns":
            value = seconds / size
            digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
            return f"{value:.{digits}f} {unit}"
    raise AssertionError
