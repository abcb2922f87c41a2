"""Say what outputs are made with: versions, the BLAS library and its kernel, the processor."""

from __future__ import annotations

import ctypes
import importlib.metadata
import platform
import subprocess
from contextlib import suppress
from pathlib import Path

PACKAGES = ("numpy", "matplotlib")
LIBRARIES = ("numpy.libs/*openblas*", "numpy/.dylibs/*openblas*")
CORENAMES = (
    "scipy_openblas_get_corename64_",
    "scipy_openblas_get_corename",
    "openblas_get_corename64_",
    "openblas_get_corename",
)


def executed_with() -> dict[str, str]:
    """What this process computes with; a key whose value cannot be found is left out.

    python, numpy, matplotlib   versions
    blas                        the library behind NumPy's matrix product, with its version
    kernel                      the variant of it that was chosen for this processor
    cpu                         the processor's name as the system gives it
    platform                    system and architecture
    """
    found = {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "cpu": cpu(),
        "blas": blas(),
        "kernel": kernel(),
    }
    for name in PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return {name: value for name, value in found.items() if value}


def cpu() -> str:
    """The name of the processor; empty where the system does not tell it."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return " ".join(value.split())
    if platform.system() == "Darwin":
        command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
        with suppress(OSError, subprocess.SubprocessError):
            done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
            return done.stdout.strip()
    return platform.processor()


def blas() -> str:
    """Name and version of the BLAS that NumPy was built with; empty without NumPy."""
    try:
        import numpy

        built = numpy.show_config(mode="dicts")["Build Dependencies"]["blas"]
    except (ImportError, KeyError, TypeError):
        return ""
    return f"{built.get('name', '')} {built.get('version', '')}".strip()


def kernel() -> str:
    """The processor type for which OpenBLAS computes, such as Haswell; empty with another BLAS."""
    try:
        import numpy
    except ImportError:
        return ""
    site = Path(numpy.__file__).parent.parent
    for path in (path for pattern in LIBRARIES for path in sorted(site.glob(pattern))):
        with suppress(OSError):
            library = ctypes.CDLL(str(path))
            for name in CORENAMES:
                if hasattr(library, name):
                    function = getattr(library, name)
                    function.restype = ctypes.c_char_p
                    return function().decode("ascii", "replace")
    return ""
