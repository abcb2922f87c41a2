"""Files of samples: JSON that says what machine they come from; the book's own samples lie in some."""

import json
import math
import os
from pathlib import Path

from ._samples import Case, Samples
from ._validate import complaint

FORMAT = "denselayer samples 1"


def save(samples, path, overwrite=True):
    """Write samples as JSON: a line for each case, times in whole nanoseconds.

    Args:
        samples: a Samples.
        path: the file to write; it appears in one step or not at all.
        overwrite: whether a file that is there may be replaced.

    Raises:
        FileExistsError: there is such a file and ``overwrite`` is False.

    Source:
        RFC 8259, "The JavaScript Object Notation (JSON) data interchange format".

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(Samples("demo", {}, ()), f"{folder}/demo.json")
    ...     load(f"{folder}/demo.json").suite
    'demo'
    """
    path = Path(path)
    if not overwrite and path.exists():
        raise FileExistsError(f"{path} is there already: name another file, or remove it first")
    head = {"format": FORMAT, "suite": samples.suite, "machine": samples.machine}
    lines = [json.dumps(head, indent=1)[:-2] + ',\n "cases": [']
    lines += [",\n".join("  " + json.dumps(_packed(case)) for case in samples.cases), " ]\n}\n"]
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text("\n".join(lines), encoding="utf-8")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def load(path):
    """Read samples that `save` has written.

    Args:
        path: the file.

    Returns:
        A Samples.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is damaged, or it is something else.

    Source:
        The counterpart of `save`.

    >>> load("x.json")
    Traceback (most recent call last):
    FileNotFoundError: there is no file x.json: make one with `python -m denselayer bench --output x.json`
    """
    path = Path(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(
            f"there is no file {path}: make one with `python -m denselayer bench --output {path}`"
        ) from None
    except (OSError, ValueError) as error:
        raise ValueError(_damaged(path, f"{type(error).__name__}: {error}")) from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        came = content.get("format") if isinstance(content, dict) else None
        advice = "Pass a file that denselayer.bench.save has written."
        raise ValueError(complaint("load", f"{path} has the format {came!r}", repr(FORMAT), advice))
    try:
        cases = tuple(_unpacked(case) for case in content["cases"])
        return Samples(str(content["suite"]), dict(content["machine"]), cases)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(_damaged(path, f"{type(error).__name__}: {error}")) from None


def _damaged(path, what):
    return complaint("load", f"{path} is damaged ({what})", "samples in JSON", "Measure again.")


def _packed(case):
    plain = {key: getattr(case, key) for key in ("name", "shape", "dtype", "threads", "clock")}
    plain |= {"operations": case.operations, "traffic": case.traffic}
    plain["ns"] = {name: [round(1e9 * each) for each in times] for name, times in case.seconds.items()}
    plain |= {"missing": case.missing, "notes": case.notes}
    return plain | {"others": None if case.others is None else list(case.others)}


def _unpacked(plain):
    plain = dict(plain)
    times = {name: [_time(each) for each in samples] for name, samples in plain.pop("ns").items()}
    others = plain.pop("others")
    return Case(seconds=times, others=None if others is None else tuple(map(float, others)), **plain)


def _time(nanoseconds):
    if isinstance(nanoseconds, bool) or not isinstance(nanoseconds, int | float):
        raise TypeError(f"{nanoseconds!r} is no time")
    if not (nanoseconds > 0 and math.isfinite(nanoseconds)):
        raise ValueError(f"{nanoseconds!r} is no time")
    return nanoseconds / 1e9


def places(name):
    """Where the book's own samples of a suite may lie: in the repository, or inside the package."""
    here = Path(__file__).resolve().parent
    return [here.parents[1] / "benchmarks" / "results" / f"{name}.json", here / "results" / f"{name}.json"]


def stored(name):
    """Read the book's own samples of a suite.

    Args:
        name: the suite, such as ``"forward"``.

    Returns:
        A Samples.

    Raises:
        ValueError: there is no such suite, or its file is damaged.

    Source:
        ``make bench``, which measures them.

    >>> stored("limits").select(name="peak", dtype="float64", threads=1)
    [<Case 'peak': gemm 256, gemm 512, gemm 1024, fma, 15 rounds>]
    """
    for path in places(name):
        if path.is_file():
            return load(path)
    known = sorted({path.stem for place in places(name) for path in place.parent.glob("*.json")})
    came = f"there are no stored samples called {name!r}"
    expected = f"one of {', '.join(known)}" if known else "a file in benchmarks/results"
    raise ValueError(complaint("stored", came, expected, "Choose one of these, or run `make bench`."))
