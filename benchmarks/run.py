"""Run the suites, store their samples, and hold them against the targets."""

from __future__ import annotations

import importlib
import pkgutil
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType

from benchmarks import suites
from denselayer import bench

RESULTS = Path(__file__).parent / "results"
FIRST = ("limits", "forward", "backward")
"""These run first: the others' targets are read against them."""

Progress = Callable[[str], None]


def names() -> list[str]:
    """All suites in the order in which they run."""
    found = sorted(module.name for module in pkgutil.iter_modules(suites.__path__))
    return sorted(found, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST))


def suite(name: str) -> ModuleType:
    """The module of a suite."""
    return importlib.import_module(f"benchmarks.suites.{name}")


def jobs(name: str) -> list[bench.Job]:
    """The jobs of a suite."""
    return list(suite(name).jobs())


def measure(name: str, progress: Progress) -> bench.Samples:
    """Run one suite: its own ``run(progress)`` if it has one, else its ``jobs()`` over worker processes."""
    module = suite(name)
    return (
        module.run(progress) if hasattr(module, "run") else bench.run(name, module.jobs(), progress=progress)
    )


def measure_all(chosen: Iterable[str], results: Path, progress: Progress) -> dict[str, str]:
    """Run suites and write a file for each; return what could not be run, with the reason."""
    failed: dict[str, str] = {}
    results.mkdir(parents=True, exist_ok=True)
    for name in chosen:
        start = time.perf_counter()
        try:
            samples = measure(name, progress)
        except Exception as error:
            failed[name] = f"{type(error).__name__}: {error}"
            progress(f"{name}: {failed[name]}")
            continue
        if samples.cases:
            bench.save(samples, results / f"{name}.json")
        else:
            failed[name] = "it gave no samples"
        failed |= {
            f"{name}, {case.name} {case.dtype}, {case.threads} threads, {variant}": reason
            for case in samples.cases
            for variant, reason in case.failed.items()
        }
        progress(f"{name}: {len(samples.cases)} cases in {time.perf_counter() - start:.0f} s")
    return failed


def read(results: Path) -> dict[str, bench.Samples]:
    """The samples of all suites that a folder holds."""
    return {path.stem: bench.load(path) for path in sorted(results.glob("*.json"))}
