"""The GPU kernels: right in Triton's interpreter, and real machine code when compiled for a GPU.

Whether triton interprets or compiles is settled when it is first imported, and other tests import it too.
Each way therefore has a process of its own.
"""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def run(*command, **environment):
    paths = os.pathsep.join(str(ROOT / folder) for folder in ("code", "figures", "."))
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("TRITON", "PYTEST"))
    }
    return subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env={**inherited, **single, "PYTHONPATH": paths, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


def facts(name, **environment):
    options = ("-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore", "--tb=short")
    return run("-m", "pytest", *options, str(HERE / name), **environment)


needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="triton has no wheel for this system")


@needs_triton
@pytest.mark.parametrize(
    ("name", "interpret"),
    [("triton_interpreted.py", "1"), ("triton_compiled.py", "0")],
    ids=["run", "compiled"],
)
def test_all_facts_hold(name, interpret, tmp_path):
    result = facts(name, TRITON_INTERPRET=interpret, TRITON_CACHE_DIR=str(tmp_path))
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-1000:]
    passed = re.search(r"^(\d+) passed in", result.stdout, re.MULTILINE)
    assert passed and int(passed[1]) >= 20, result.stdout[-500:]


def test_without_triton_the_import_says_what_to_install():
    code = "import sys; sys.modules['triton'] = None; import benchmarks.kernels.triton_linear"
    result = run("-c", code)
    assert result.returncode == 1
    assert "the package triton is not installed" in result.stderr
    assert "pip install triton" in result.stderr


def test_what_the_chapter_shows_of_the_kernel_is_the_kernel():
    chapter = (ROOT / "chapters" / "08-fused-gemm.qmd").read_text(encoding="utf-8")
    kernel = (ROOT / "benchmarks" / "kernels" / "triton_linear.py").read_text(encoding="utf-8")
    shown = [
        block for block in re.findall(r"^```python\n(.*?)^```", chapter, re.M | re.S) if "tl.dot" in block
    ]
    assert len(shown) == 1 and shown[0] in kernel
