"""Measure the layer on a GPU: Triton beside cuBLAS, PyTorch eager and compiled, forward and backward.

    python -m benchmarks.kernels.measure_gpu [--output FILE] [--rounds 15] [--minutes 8]

Times are the device's own, between two CUDA events around one call. Before each call the L2 cache is
overwritten, and the device is kept busy for a moment, so that the host is ahead with its launches and the
gaps between them do not count. In each round all variants run in an order drawn anew. Before it is timed,
each variant is held against float64: what is wrong is not timed.

The file has the form of all samples of the book, `denselayer.bench`. Besides the layers it holds the limits
of the device: the cases "peak" (square products, for each precision) and "DRAM" (copies). The dtype of a case
may be "tf32": its numbers are float32, and products may round them to 10 bits of mantissa.

Without a CUDA device the script says so in one sentence, writes nothing and ends with the exit code 0.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from benchmarks.inputs import SHAPES, layer_shape
from denselayer import bench, cost
from denselayer._samples import FAILED
from denselayer._timing import orders

RESULT = Path(__file__).parents[1] / "results" / "gpu.json"
LARGE = ("1048576,64,64", "262144,256,256", "8192,4096,4096", "16384,4096,16384")
"""Shapes that a GPU needs before it is busy, besides those of the book: N, in, out."""
AUTOTUNED = ("4096,512,512", "65536,64,64", "8192,4096,4096")
"""Where max-autotune is tried, forward: it takes long to compile."""
PRECISIONS = {"float32": "float32", "tf32": "float32", "bfloat16": "bfloat16"}
PEAKS = {**PRECISIONS, "float16": "float16"}
UNIT = {"float32": 2.0**-24, "tf32": 2.0**-11, "float16": 2.0**-11, "bfloat16": 2.0**-8}
TOLERATED = 8.0
"""Largest error in units of rounding times the sum of the magnitudes of the terms."""
SIDE, COPIED = 8192, 2**30
WANTED, MOST = 100e-6, 20
"""A sample is the mean of so many calls that they take WANTED seconds, but of at most MOST."""

Progress = Callable[[str], None]


class Stopwatch:
    """Time on a device, each call with a cold L2 cache.

    ``event`` makes an object with ``record()`` and ``elapsed_time(other)`` in milliseconds; ``prepare`` is
    called before each call; ``wait`` returns when the device is done.
    """

    def __init__(self, event: Callable, prepare: Callable[[], object], wait: Callable[[], object]):
        self.event, self.prepare, self.wait = event, prepare, wait

    def seconds(self, function: Callable[[], object], calls: int = 1) -> float:
        """Mean seconds of so many calls."""
        pairs = [(self.event(), self.event()) for _ in range(calls)]
        for start, end in pairs:
            self.prepare()
            start.record()
            function()
            end.record()
        self.wait()
        return statistics.fmean(start.elapsed_time(end) for start, end in pairs) / 1e3


def cuda_stopwatch() -> Stopwatch:
    """The stopwatch of the current CUDA device."""
    import torch

    size = torch.cuda.get_device_properties().L2_cache_size
    cold = torch.empty(max(4 * size, 2**28), dtype=torch.int8, device="cuda")
    head_start = getattr(torch.cuda, "_sleep", lambda cycles: None)

    def prepare() -> None:
        cold.zero_()
        head_start(500_000)

    return Stopwatch(lambda: torch.cuda.Event(enable_timing=True), prepare, torch.cuda.synchronize)


def measure(
    name: str,
    makers: dict[str, Callable[[], Callable[[], object]]],
    stopwatch: Stopwatch,
    *,
    rounds: int,
    verdict: Callable[[str, Callable], str | None] = lambda variant, function: None,
    **facts: object,
) -> bench.Case:
    """Make all variants, run each once and judge it, then time them in turn.

    ``verdict(variant, function)`` returns a note, or raises ValueError where a result is wrong. A variant
    that raises anything goes to ``Case.missing`` with the reason.
    """
    ready, calls, notes, missing = {}, {}, {}, {}
    for variant, make in makers.items():
        try:
            function = make()
            function()
            note = verdict(variant, function)
            once = stopwatch.seconds(function)
        except Exception as error:
            reason = str(error).strip().splitlines() or [""]
            missing[variant] = f"{FAILED}{type(error).__name__}: {reason[0][:200]}"
            continue
        ready[variant] = function
        calls[variant] = min(max(math.ceil(WANTED / max(once, 1e-9)), 1), MOST)
        notes |= {variant: note} if note else {}
    times = {variant: [] for variant in ready}
    for order in orders(ready, rounds, f"gpu {name} {facts.get('dtype')}"):
        for variant in order:
            times[variant].append(max(stopwatch.seconds(ready[variant], calls[variant]), 1e-9))
    return bench.Case(name, times, missing=missing, notes=notes, clock="device", **facts)


def layer_cases(
    precision: str, shape_name: str, stopwatch: Stopwatch, *, rounds: int, device: str = "cuda"
) -> list[bench.Case]:
    """Forward and backward of one shape."""
    import torch

    from benchmarks.kernels import gpu_layers

    shape = layer_shape(shape_name)
    sizes = tuple(shape.values())
    multiply_as(precision)
    x, weight, bias, d_out = gpu_layers.layer(shape, getattr(torch, PRECISIONS[precision]), device)
    kernel = "tf32" if precision == "tf32" else "ieee"
    unit, common = UNIT[precision], {"shape": shape, "dtype": precision, "rounds": rounds}
    narrow = x.element_size() / 4
    with torch.no_grad():
        forward = measure(
            f"forward {shape_name}",
            wanted(gpu_layers.forward(x, weight, bias, kernel), shape_name),
            stopwatch,
            verdict=forward_judge(x, weight, bias, unit),
            operations=cost.linear_operations(*sizes),
            traffic=round(narrow * cost.linear_traffic(*sizes)),
            **common,
        )
        backward = measure(
            f"backward {shape_name}",
            wanted(gpu_layers.backward(d_out, x, weight, bias, kernel)),
            stopwatch,
            verdict=backward_judge(d_out, x, weight, bias, unit),
            operations=cost.linear_backward_operations(*sizes),
            traffic=round(narrow * cost.fused_backward_traffic(*sizes)),
            **common,
        )
    return [forward, backward]


def multiply_as(precision: str) -> None:
    """Let PyTorch round float32 factors to TF32, or not."""
    import torch

    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")


def wanted(makers: dict, shape_name: str = "") -> dict:
    """Without max-autotune, except for the shapes where it is tried."""
    return {
        name: make
        for name, make in makers.items()
        if name != "compile max-autotune" or shape_name in AUTOTUNED
    }


def forward_judge(x, weight, bias, unit: float) -> Callable[[str, Callable], str | None]:
    """Hold an output against float64, and say what becomes of NaN."""
    expected = (x.double() @ weight.double().T + bias.double()).relu_()
    sizes = x.double().abs() @ weight.double().abs().T + bias.double().abs() + expected

    def judge(variant: str, function: Callable) -> str | None:
        if variant == "gemm only":
            return None
        note = noted([(function(), expected, sizes)], unit)
        before = x[0, 0].clone()
        x[0, 0] = float("nan")
        kept = bool(function()[0].isnan().all())
        x[0, 0] = before
        return f"{note}; NaN {'stays' if kept else 'is lost'}"

    return judge


def backward_judge(d_out, x, weight, bias, unit: float) -> Callable[[str, Callable], str | None]:
    """Hold the gradients against float64, behind the gate of this precision: the mask is not judged."""
    import torch

    gate = torch.nn.functional.linear(x, weight, bias) > 0
    d_z = (d_out * gate).double()
    pairs = [
        (d_z @ weight.double(), d_z.abs() @ weight.double().abs()),
        (d_z.T @ x.double(), d_z.abs().T @ x.double().abs()),
        (d_z.sum(0), d_z.abs().sum(0)),
    ]

    def judge(variant: str, function: Callable) -> str | None:
        if variant == "gemm only":
            return None
        return noted([(found, *pair) for found, pair in zip(function(), pairs, strict=True)], unit)

    return judge


def noted(results: list, unit: float) -> str:
    """The largest error in units; ValueError if it is more than is tolerated, or not a number."""
    worst = 0.0
    for found, expected, sizes in results:
        error = (found.double() - expected).abs() / (unit * sizes + 1e-300)
        largest = float(error.max()) if error.numel() else 0.0
        if not largest <= TOLERATED:
            raise ValueError(f"the result is wrong by {largest:.3g} units of rounding of its terms")
        worst = max(worst, largest)
    return f"largest error {worst:.2g} units of rounding of the terms"


def limit_cases(stopwatch: Stopwatch, *, rounds: int, device: str = "cuda") -> Iterator[bench.Case]:
    """The best rate of square products for each precision, and of copies in the device's memory."""
    import torch

    def square(side: int, dtype: torch.dtype) -> Callable[[], Callable[[], object]]:
        def make() -> Callable[[], object]:
            a, b = torch.randn(2, side, side, device=device).to(dtype)
            out = torch.empty_like(a)
            return lambda: [torch.mm(a, b, out=out) for _ in range((SIDE // side) ** 3)]

        return make

    def copy() -> Callable[[], object]:
        source = torch.ones(COPIED // 8, device=device)
        target = torch.empty_like(source)
        return lambda: target.copy_(source)

    for precision, dtype in PEAKS.items():
        multiply_as(precision)
        sides = {f"gemm {side}": square(side, getattr(torch, dtype)) for side in (SIDE // 2, SIDE)}
        yield measure("peak", sides, stopwatch, rounds=rounds, dtype=precision, operations=2 * SIDE**3)
    yield measure("DRAM", {"copy": copy}, stopwatch, rounds=rounds, traffic=COPIED)


def all_cases(
    stopwatch: Stopwatch, *, rounds: int, minutes: float, progress: Progress, device: str = "cuda"
) -> Iterator[bench.Case]:
    """Limits first, then the layers, as many as fit into the minutes and into the memory."""
    import torch

    end = time.monotonic() + 60 * minutes
    yield from limit_cases(stopwatch, rounds=rounds, device=device)
    todo = [(shape, precision) for shape in (*SHAPES, *LARGE) for precision in PRECISIONS]
    for done, (shape, precision) in enumerate(todo):
        if time.monotonic() > end:
            progress(f"{minutes:g} minutes are over: {len(todo) - done} of {len(todo)} layers were left out.")
            return
        progress(f"{done + 1}/{len(todo)}: {shape}, {precision}")
        try:
            yield from layer_cases(precision, shape, stopwatch, rounds=rounds, device=device)
        except torch.OutOfMemoryError:
            progress("  left out: the memory of the device is too small")


def roofline(samples: bench.Samples) -> dict[str, dict[str, float]]:
    """For each layer and variant the share of the least time that the measured limits of the device allow."""
    peaks = {case.dtype: case.operations / _fastest(case) for case in samples.select(name="peak")}
    [memory] = samples.select(name="DRAM")
    bandwidth = memory.traffic / _fastest(memory)
    return {
        f"{case.name}, {case.dtype}": {
            variant: cost.least_seconds(case.operations, case.traffic, peaks[case.dtype], bandwidth)
            / case.median(variant)
            for variant in case.variants
        }
        for case in samples.cases
        if case.name not in ("peak", "DRAM")
    }


def _fastest(case: bench.Case) -> float:
    return min(min(times) for times in case.seconds.values())


def device() -> dict[str, object]:
    """Name, memory, caches, driver and clocks of the current CUDA device, and the libraries that use it."""
    import torch

    properties = torch.cuda.get_device_properties()
    return {
        "name": properties.name,
        "capability": f"{properties.major}.{properties.minor}",
        "processors": properties.multi_processor_count,
        "memory": properties.total_memory,
        "L2": properties.L2_cache_size,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
        "cublas": _cublas(),
        **smi(f"GPU-{properties.uuid}"),
    }


SMI = {
    "driver": "driver_version",
    "SM clock": "clocks.sm",
    "highest SM clock": "clocks.max.sm",
    "memory clock": "clocks.mem",
    "power limit": "power.limit",
}


def smi(which: str) -> dict[str, str]:
    """What nvidia-smi tells of a device; nothing where it is not installed or does not answer."""
    command = ["nvidia-smi", "-i", which, f"--query-gpu={','.join(SMI.values())}", "--format=csv,noheader"]
    with suppress(OSError, subprocess.SubprocessError):
        answer = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout
        return dict(zip(SMI, (value.strip() for value in answer.strip().split(",")), strict=False))
    return {}


def _cublas() -> str:
    for name in ("nvidia-cublas", "nvidia-cublas-cu13", "nvidia-cublas-cu12"):
        with suppress(metadata.PackageNotFoundError):
            return metadata.version(name)
    return "unknown"


def obstacle() -> str | None:
    """Why nothing can be measured here, as a sentence; None if it can."""
    if os.environ.get("TRITON_INTERPRET", "0") not in ("", "0"):
        return "TRITON_INTERPRET is set, and the interpreter is no device: nothing was measured or written."
    for name in ("torch", "triton"):
        if importlib.util.find_spec(name) is None:
            return f"The package {name} is not installed: nothing was measured or written."
    import torch

    if not torch.cuda.is_available():
        return "There is no CUDA device here: nothing was measured or written."
    return None


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, default=RESULT, help="where the samples go (%(default)s)")
    parser.add_argument("--rounds", type=int, default=15, help="samples of each variant (%(default)s)")
    parser.add_argument("--minutes", type=float, default=8, help="start no layer after (%(default)s)")
    options = parser.parse_args(arguments)
    reason = obstacle()
    if reason:
        print(reason)
        return 0

    def progress(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    about, cases = {**bench.machine(), "device": device()}, []
    with suppress(KeyboardInterrupt):
        for case in all_cases(
            cuda_stopwatch(), rounds=options.rounds, minutes=options.minutes, progress=progress
        ):
            cases.append(case)
    about["device after"] = device()
    samples = bench.Samples("gpu", about, tuple(cases))
    bench.save(samples, options.output)
    print(samples)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
