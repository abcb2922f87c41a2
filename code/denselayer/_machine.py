"""The machine that samples were taken on: processor, caches, BLAS, versions, and what else was running."""

import datetime
import os
import platform
import re
import subprocess
import time
from contextlib import suppress
from importlib import metadata
from pathlib import Path

import numpy as np

from . import _blas

CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
STAT = Path("/proc/stat")
UNKNOWN = "unknown"
LIBRARIES = ("numpy", "torch", "numba", "llvmlite", "jax", "jaxlib", "triton")
USUAL_CACHES = {"L1": 32 * 1024, "L2": 512 * 1024, "L3": 16 * 1024 * 1024}
"""What is assumed where the system does not tell: what most processors have at least."""


def machine():
    """Say what this process computes with, as plain values that JSON can hold.

    Returns:
        A dict: ``cpu``, ``cores`` (that this process may use), ``caches`` (bytes of L1, L2, L3 as far as
        known), ``system``, ``blas`` (NumPy's), ``kernel`` (its variant for this processor), ``threads`` (of
        the BLAS), ``versions`` and ``date`` (UTC).

    Source:
        The system's own files (Linux), ``sysctl`` (macOS), NumPy's build information.

    >>> sorted(machine())
    ['blas', 'caches', 'cores', 'cpu', 'date', 'kernel', 'system', 'threads', 'versions']
    """
    return {
        "cpu": _cpu(),
        "cores": cores(),
        "caches": caches(),
        "system": f"{platform.system()} {platform.machine()}",
        "blas": _blas_name(),
        "kernel": _blas.kernel(),
        "threads": _blas.threads(),
        "versions": {"python": platform.python_version(), **versions()},
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }


def cores():
    """Number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def caches():
    """Bytes of the data caches, such as ``{"L1": 32768, "L2": 1048576, "L3": 33554432}``; {} if unknown."""
    found = {}
    for place in sorted(CACHES.glob("index*")):
        with suppress(OSError, ValueError):
            if (place / "type").read_text().strip() != "Instruction":
                found[f"L{int((place / 'level').read_text())}"] = _bytes((place / "size").read_text())
    if not found and platform.system() == "Darwin":
        names = {"L1": "hw.l1dcachesize", "L2": "hw.l2cachesize", "L3": "hw.l3cachesize"}
        found = {level: int(size) for level, name in names.items() if (size := _sysctl(name)).isdigit()}
    return {level: size for level, size in found.items() if size > 0}


def versions():
    """Versions of the libraries that are installed."""
    found = {}
    for name in LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


class Onlooker:
    """Watches how much of the processors other programs take, from one look to the next.

    On Linux the system counts the busy time of all processors; what this measurement used itself is taken
    off. Elsewhere the answer is None: unknown.
    """

    def __init__(self):
        self.look(0.0)

    def look(self, own_seconds):
        """Share of all processors that others took since the last look, between 0 and 1, or None."""
        busy, now = _busy_seconds(), time.perf_counter()
        before, then = getattr(self, "_last", (None, now))
        self._last = busy, now
        if busy is None or before is None or now <= then:
            return None
        share = (busy - before - own_seconds) / ((now - then) * (os.cpu_count() or 1))
        return round(min(max(share, 0.0), 1.0), 3)


def _busy_seconds():
    """Seconds that all processors were not idle since the start; None where the system does not count."""
    try:
        fields = [int(field) for field in STAT.read_text().split("\n", 1)[0].split()[1:9]]
        user, nice, system, _, _, irq, softirq, steal = fields
    except (OSError, ValueError):
        return None
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _bytes(text):
    found = re.fullmatch(r"(\d+)([KMG]?)", text.strip())
    if not found:
        raise ValueError(f"{text.strip()!r} is no size")
    number, suffix = found.groups()
    return int(number) * 1024 ** " KMG".index(suffix or " ")


def _cpu():
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return " ".join(value.split())
    return _sysctl("machdep.cpu.brand_string") or platform.processor() or platform.machine() or UNKNOWN


def _sysctl(name):
    if platform.system() != "Darwin":
        return ""
    with suppress(OSError, subprocess.SubprocessError):
        command = ["/usr/sbin/sysctl", "-n", name]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    return ""


def _blas_name():
    try:
        built = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
        return f"{built['name']} {built['version']}".strip()
    except (KeyError, TypeError):
        return UNKNOWN
