"""The speed to reach, as data, and how stored samples are held against it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from denselayer import bench
from denselayer._table import text_table

EVERY = "every shape"
MEAN = "geometric mean"


@dataclass(frozen=True)
class Target:
    """One line of the table: what is measured against what, and how much is wanted at least.

    ``kind`` is ``"speed"`` (how many times faster than the best of ``against``), ``"overhead"`` (the share by
    which it takes longer than ``against``; less is wanted) or ``"peak"`` (its share of the FMA peak).
    """

    what: str
    variant: str
    against: tuple[str, ...]
    suite: str = "forward"
    threads: int = 1
    kind: str = "speed"
    least: Mapping[str, float] = field(default_factory=dict)
    """Case name, EVERY or MEAN to what is wanted there."""
    only: tuple[str, ...] = ()
    """Case names that count; empty for all."""


@dataclass(frozen=True)
class Line:
    """One line of the result; ``reached`` is None where there are no samples."""

    target: Target
    where: str
    value: float | None
    interval: tuple[float, float] | None
    wanted: float
    note: str = ""

    @property
    def reached(self) -> bool | None:
        if self.value is None:
            return None
        return self.value < self.wanted if self.target.kind == "overhead" else self.value >= self.wanted


SKINNY, SHORT, WIDE = "65536,64,64", "8192,64,64", "4096,512,512"
NARROW = "65536,256,16"
DEEP = ("1,784,1000", "64,784,256", "512,784,1000", WIDE, "4096,1024,4096")
"""Shapes with 512 inputs or more."""
SHALLOW = (SHORT, SKINNY, NARROW)
"""Shapes with 64 inputs or more that are not deep."""

EAGER, OUT = "eager", "addmm out"
TORCH = (EAGER, OUT, "compile", "compile freezing", "compile max-autotune", "onednn", "onednn packed")
STEPS = (EAGER, "foreach", "fused", "manual", "compile")
OTHERS = ("plain", "in place", "fused", *TORCH, "jax")
STEPS = (EAGER, "foreach", "fused", "manual", "compile")


def _forward() -> list[Target]:
    targets = [
        Target(
            "NumPy fused against plain",
            "fused",
            ("plain",),
            least={SKINNY: 1.9, SHORT: 1.3, WIDE: 1.08, EVERY: 0.97, MEAN: 1.2},
        ),
        Target("NumPy fused against plain", "fused", ("plain",), threads=2, least={SKINNY: 2.2, EVERY: 0.95}),
    ]
    for threads in (1, 2):
        count = {"threads": threads}
        targets += [
            Target(
                "NumPy fused against PyTorch eager",
                "fused",
                (EAGER,),
                **count,
                least={EVERY: 0.97, MEAN: 1.35},
            ),
            Target("NumPy fused against PyTorch with out=", "fused", (OUT,), **count, least={MEAN: 1.1}),
        ]
    return targets


def _rest() -> list[Target]:
    cost = "Epilogue over the bare product"
    backward = {"suite": "backward", "what": "NumPy fused backward against plain", "against": ("plain",)}
    autograd = {"suite": "backward", "what": "NumPy fused backward against autograd"}
    targets = [
        Target(cost, "fused", ("gemm only",), kind="overhead", least={EVERY: 0.10}, only=SHALLOW),
        Target(cost, "fused", ("gemm only",), kind="overhead", least={EVERY: 0.04}, only=DEEP),
    ]
    for threads in (1, 2):
        count = {"threads": threads}
        wanted = {SKINNY: 1.4, NARROW: 1.6, EVERY: 0.97}
        targets += [
            Target(variant="fused", **backward, **count, least=wanted),
            Target(variant="fused", against=("autograd",), **autograd, **count, least={EVERY: 1.0}),
        ]
    step = {"suite": "step", "variant": "fast"}
    for threads in (1, 2):
        count = {"threads": threads}
        against = "MLP step against"
        targets += [
            Target(f"{against} PyTorch eager", against=(EAGER,), **step, **count, least={EVERY: 1.35}),
            Target(f"{against} the best PyTorch way", against=STEPS, **step, **count, least={EVERY: 1.25}),
        ]
    targets.append(
        Target("MLP step, share of the FMA bound", against=(), **step, kind="peak", least={EVERY: 0.75})
    )
    for threads in (1, 2):
        wanted = {EVERY: 0.95, MEAN: 1.15}
        targets.append(
            Target("Numba against the best of the others", "numba", OTHERS, threads=threads, least=wanted)
        )
    peak = {SHORT: 0.85, WIDE: 0.85}
    targets.append(Target("Numba, share of the FMA peak", "numba", (), kind="peak", least=peak))
    return targets


TARGETS = (*_forward(), *_rest())


def evaluate(suites: Mapping[str, bench.Samples], targets: Iterable[Target] = TARGETS) -> list[Line]:
    """Hold the samples of the suites against the targets; a target whose suite is not there is skipped."""
    lines: list[Line] = []
    for target in targets:
        if target.suite in suites:
            lines += _lines(target, suites)
    return lines


def table(lines: Iterable[Line]) -> str:
    """The lines as text: what, where, threads, what was measured, what is wanted, and a mark."""
    header = ["what", "shape", "threads", "measured", "wanted", ""]
    rows = [
        [line.target.what, line.where, str(line.target.threads), _measured(line), _wanted(line), _mark(line)]
        for line in lines
    ]
    return text_table(header, rows, left=2)


def _lines(target: Target, suites: Mapping[str, bench.Samples]) -> list[Line]:
    cases = [
        case
        for case in suites[target.suite].select(dtype="float32", threads=target.threads)
        if not target.only or case.name in target.only
    ]
    values = {case.name: _value(target, case, suites.get("limits")) for case in cases}
    lines = []
    for where, wanted in target.least.items():
        if where == MEAN:
            known = [value for value, _, _ in values.values() if value is not None]
            value = bench.geometric_mean(known) if len(known) == len(values) and known else None
            lines.append(Line(target, MEAN, value, None, wanted))
        elif where == EVERY:
            named = set(target.least) - {EVERY, MEAN}
            lines += [
                Line(target, name, *values[name][:2], wanted, values[name][2])
                for name in values
                if name not in named
            ]
        else:
            value = values.get(where, (None, None, "not measured"))
            lines.append(Line(target, where, *value[:2], wanted, value[2]))
    return lines


def _value(target: Target, case: bench.Case, limits: bench.Samples | None):
    """What was measured for a case, its interval, and a note."""
    if target.variant not in case.seconds:
        return None, None, case.missing.get(target.variant, "not measured")
    if target.kind == "peak":
        if limits is None:
            return None, None, "the limits were not measured"
        peak = bench.Limits.of(limits, target.threads).peak[case.dtype]
        return case.rate(target.variant) / peak, None, ""
    rivals = [name for name in target.against if name in case.seconds]
    if not rivals:
        return None, None, case.missing.get(target.against[0], "nothing to compare with")
    best = min(rivals, key=case.median)
    note = best if len(target.against) > 1 else ""
    if target.kind == "overhead":
        ratio, shift = case.ratio(target.variant, best), 1
    else:
        ratio, shift = case.ratio(best, target.variant), 0
    interval = None if math.isnan(ratio.low) else (ratio.low - shift, ratio.high - shift)
    return ratio.median - shift, interval, note


def _measured(line: Line) -> str:
    if line.value is None:
        return line.note or "not measured"
    form = "{:.2f}x" if line.target.kind == "speed" else "{:.1%}"
    text = form.format(line.value)
    if line.interval:
        text += " ({} to {})".format(*(form.format(each).rstrip("x") for each in line.interval))
    return f"{text} {line.note}".rstrip()


def _wanted(line: Line) -> str:
    if line.target.kind == "speed":
        return f">= {line.wanted:.2f}x"
    return f"{'<' if line.target.kind == 'overhead' else '>='} {line.wanted:.0%}"


def _mark(line: Line) -> str:
    return {True: "pass", False: "MISSED", None: "-"}[line.reached]


def summary(lines: Iterable[Line]) -> str:
    """How many targets were reached, missed, and could not be judged."""
    marks = [line.reached for line in lines]
    counts = {
        "reached": marks.count(True),
        "missed": marks.count(False),
        "without samples": marks.count(None),
    }
    return ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "no targets here"
