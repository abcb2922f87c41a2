"""The script that measures on a GPU, tried with a device that only counts time."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.kernels import gpu_layers, measure_gpu
from denselayer import bench

ROOT = Path(__file__).parents[2]


class Device:
    """A clock that stands still unless it is told that work was done."""

    def __init__(self):
        self.now, self.prepared, self.order = 0.0, 0, []

    def work(self, name, seconds):
        def function():
            self.order.append(name)
            self.now += seconds
            return name

        return function

    def stopwatch(self):
        device = self

        class Event:
            def record(self):
                self.at = device.now

            def elapsed_time(self, other):
                return 1e3 * (other.at - self.at)

        def prepare():
            device.prepared += 1
            device.now += 10.0

        return measure_gpu.Stopwatch(Event, prepare, lambda: None)


def started(*arguments, **environment):
    path = os.pathsep.join(str(ROOT / folder) for folder in ("code", "."))
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("TRITON")}
    return subprocess.run(
        [sys.executable, "-m", "benchmarks.kernels.measure_gpu", *arguments],
        env={**inherited, "PYTHONPATH": path, "CUDA_VISIBLE_DEVICES": "", **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({}, "There is no CUDA device here: nothing was measured or written."),
        (
            {"TRITON_INTERPRET": "1"},
            "TRITON_INTERPRET is set, and the interpreter is no device: nothing was measured or written.",
        ),
    ],
)
def test_without_a_device_it_says_so_and_writes_nothing(environment, sentence, tmp_path):
    result = started("--output", str(tmp_path / "gpu.json"), **environment)
    assert (result.returncode, result.stdout, result.stderr) == (0, sentence + "\n", "")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(measure_gpu.importlib.util, "find_spec", lambda name: None)
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    assert measure_gpu.obstacle() == "The package torch is not installed: nothing was measured or written."


def test_a_sample_is_the_mean_of_calls_that_each_find_a_cold_cache():
    device = Device()
    assert device.stopwatch().seconds(device.work("a", 0.25), calls=3) == pytest.approx(0.25)
    assert device.prepared == 3


def test_variants_take_turns_in_random_order_and_every_sample_is_kept():
    device = Device()
    times = {"a": 1.0, "b": 2.0, "c": 4.0}
    makers = {name: lambda name=name: device.work(name, times[name]) for name in times}
    case = measure_gpu.measure("demo", makers, device.stopwatch(), rounds=12, dtype="tf32", operations=8)
    assert {name: len(times) for name, times in case.seconds.items()} == {"a": 12, "b": 12, "c": 12}
    turns = [tuple(device.order[6 + 3 * k : 9 + 3 * k]) for k in range(12)]
    assert all(sorted(turn) == ["a", "b", "c"] for turn in turns) and len(set(turns)) > 2
    assert case.ratio("c", "a").median == pytest.approx(4) and case.rate("b") == pytest.approx(4)
    assert (case.clock, case.dtype, case.missing, case.notes) == ("device", "tf32", {}, {})


def test_short_calls_are_repeated_within_a_sample():
    device = Device()
    measure_gpu.measure("demo", {"a": lambda: device.work("a", 30e-6)}, device.stopwatch(), rounds=3)
    assert len(device.order) == 2 + 3 * 4


def test_a_variant_that_cannot_be_made_or_is_wrong_is_left_out_with_the_reason():
    device = Device()

    def broken():
        raise RuntimeError("no kernel\nand more")

    def verdict(variant, function):
        if variant == "wrong":
            raise ValueError("wrong by 99 units")
        return "fine"

    makers = {"good": lambda: device.work("good", 1.0), "broken": broken}
    makers["wrong"] = lambda: device.work("wrong", 0.1)
    case = measure_gpu.measure("demo", makers, device.stopwatch(), rounds=4, verdict=verdict)
    assert case.variants == ("good",) and case.notes == {"good": "fine"}
    assert case.failed == {
        "broken": "failed: RuntimeError: no kernel",
        "wrong": "failed: ValueError: wrong by 99 units",
    }


@pytest.fixture
def interpreted(monkeypatch):
    """Compiled variants run as they are written; Triton has no device, so it is missing."""
    compiled = []
    monkeypatch.setattr(torch, "compile", lambda function, **options: compiled.append(options) or function)
    before = torch.get_float32_matmul_precision()
    yield compiled
    torch.set_float32_matmul_precision(before)


@pytest.mark.parametrize("precision", measure_gpu.PRECISIONS)
def test_every_way_of_pytorch_is_held_against_float64(interpreted, precision):
    watch = Device().stopwatch()
    watch.seconds = lambda function, calls=1: function() is None or 1.0
    forward, backward = measure_gpu.layer_cases(precision, "33,20,17", watch, rounds=2, device="cpu")
    assert forward.variants == ("gemm only", "eager", "addmm out", "cublasLt epilogue", "compile")
    assert backward.variants == ("gemm only", "autograd", "by hand", "compile")
    assert set(forward.missing) == set(backward.missing) == {"triton"}
    assert set(forward.notes) == {"eager", "addmm out", "cublasLt epilogue", "compile"}
    assert all(note.endswith("; NaN stays") for note in forward.notes.values())
    assert forward.shape == {"batch": 33, "in_features": 20, "out_features": 17}
    width = 2 if precision == "bfloat16" else 4
    assert forward.traffic == width * (33 * 20 + 17 * 20 + 17 + 33 * 17)
    assert backward.traffic == width * (2 * 33 * 17 + 2 * (33 * 20 + 17 * 20) + 17)
    assert [options["mode"] for options in interpreted] == [None, None]


def test_a_wrong_layer_is_not_timed(interpreted, monkeypatch):
    plain = gpu_layers._plain_forward
    monkeypatch.setattr(gpu_layers, "_plain_forward", lambda x, weight, bias: plain(x, weight, bias) + 1e-3)
    watch = Device().stopwatch()
    watch.seconds = lambda function, calls=1: function() is None or 1.0
    forward, _ = measure_gpu.layer_cases("float32", "8,5,6", watch, rounds=2, device="cpu")
    assert "the result is wrong by" in forward.failed["eager"]
    assert "addmm out" in forward.variants


def test_a_layer_that_loses_nan_is_timed_and_says_so(interpreted, monkeypatch):
    def lossy(x, weight, bias):
        z = torch.nn.functional.linear(x, weight, bias)
        return torch.where(z > 0, z, 0)

    monkeypatch.setattr(gpu_layers, "_plain_forward", lossy)
    watch = Device().stopwatch()
    watch.seconds = lambda function, calls=1: function() is None or 1.0
    forward, _ = measure_gpu.layer_cases("float32", "8,5,6", watch, rounds=2, device="cpu")
    assert forward.notes["eager"].endswith("; NaN is lost") and "eager" in forward.variants
    assert forward.notes["addmm out"].endswith("; NaN stays")


def test_nan_counts_as_wrong():
    one = torch.ones(2, 2)
    with pytest.raises(ValueError, match="wrong by nan units"):
        measure_gpu.noted([(one * float("nan"), one.double(), one.double())], 1.0)


def test_max_autotune_is_tried_where_it_is_wanted():
    makers = dict.fromkeys(("eager", "compile", "compile max-autotune"))
    assert "compile max-autotune" in measure_gpu.wanted(makers, "65536,64,64")
    assert list(measure_gpu.wanted(makers, "1,784,1000")) == ["eager", "compile"]


@pytest.fixture
def small(monkeypatch, interpreted):
    monkeypatch.setattr(measure_gpu, "SHAPES", {"4,3,2": (4, 3, 2), "5,3,2": (5, 3, 2)})
    monkeypatch.setattr(measure_gpu, "LARGE", ())
    monkeypatch.setattr(measure_gpu, "SIDE", 16)
    monkeypatch.setattr(measure_gpu, "COPIED", 2**10)
    watch = Device().stopwatch()
    watch.seconds = lambda function, calls=1: function() is None or 0.5
    return watch


def test_limits_come_first_and_give_every_variant_its_share_of_the_bound(small):
    cases = tuple(measure_gpu.all_cases(small, rounds=2, minutes=9, progress=lambda line: None, device="cpu"))
    names = [(case.name, case.dtype) for case in cases]
    assert names[:5] == [("peak", name) for name in measure_gpu.PEAKS] + [("DRAM", "float32")]
    assert len(cases) == 5 + 2 * 2 * 3 and names[5] == ("forward 4,3,2", "float32")
    shares = measure_gpu.roofline(bench.Samples("gpu", {}, cases))
    operations, traffic = 2 * 4 * 3 * 2, 4 * (4 * 3 + 3 * 2 + 2 + 4 * 2)
    least = max(operations / (2 * 16**3 / 0.5), traffic / (2**10 / 0.5))
    assert shares["forward 4,3,2, float32"]["eager"] == pytest.approx(least / 0.5, rel=0.1)


def test_when_the_time_is_over_the_rest_is_left_out_and_counted(small):
    said = []
    cases = list(measure_gpu.all_cases(small, rounds=2, minutes=0, progress=said.append, device="cpu"))
    assert [case.name for case in cases] == ["peak"] * 4 + ["DRAM"]
    assert said == ["0 minutes are over: 6 of 6 layers were left out."]


def test_a_layer_that_does_not_fit_into_the_memory_is_left_out(small, monkeypatch):
    def full(*arguments, **options):
        raise torch.OutOfMemoryError("out of memory")

    monkeypatch.setattr(measure_gpu, "layer_cases", full)
    said = []
    cases = list(measure_gpu.all_cases(small, rounds=2, minutes=9, progress=said.append, device="cpu"))
    assert len(cases) == 5
    assert said.count("  left out: the memory of the device is too small") == 6


def test_the_file_is_one_of_samples_with_the_device_in_it(monkeypatch, tmp_path, capsys):
    case = bench.Case("DRAM", {"copy": [0.5, 0.25]}, clock="device", dtype="tf32")
    for name, value in {
        "obstacle": lambda: None,
        "device": lambda: {"name": "Imaginary 1"},
        "cuda_stopwatch": lambda: None,
        "all_cases": lambda stopwatch, **options: iter([case]),
    }.items():
        monkeypatch.setattr(measure_gpu, name, value)
    assert measure_gpu.main(["--output", str(tmp_path / "gpu.json")]) == 0
    samples = bench.load(tmp_path / "gpu.json")
    assert samples.suite == "gpu" and samples.cases[0].seconds == {"copy": [0.5, 0.25]}
    assert samples.machine["device"] == samples.machine["device after"] == {"name": "Imaginary 1"}
    assert "DRAM" in capsys.readouterr().out


def test_clocks_are_read_where_the_driver_has_a_tool(monkeypatch, tmp_path):
    tool = tmp_path / "nvidia-smi"
    tool.write_text('#!/bin/sh\necho "580.1, 1980 MHz, 1980 MHz, 3201 MHz, 700.00 W"\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert measure_gpu.smi("GPU-1")["driver"] == "580.1"
    assert measure_gpu.smi("GPU-1")["SM clock"] == "1980 MHz"


@pytest.mark.parametrize("script", [None, "exit 9"])
def test_without_that_tool_they_are_left_out(script, monkeypatch, tmp_path):
    if script:
        tool = tmp_path / "nvidia-smi"
        tool.write_text(f"#!/bin/sh\n{script}\n")
        tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert measure_gpu.smi("GPU-1") == {}


def test_the_layer_has_outputs_on_both_sides_of_zero():
    shape = {"batch": 50, "in_features": 30, "out_features": 40}
    x, weight, bias, d_out = gpu_layers.layer(shape, torch.bfloat16, "cpu")
    assert {t.dtype for t in (x, weight, bias, d_out)} == {torch.bfloat16} and d_out.shape == (50, 40)
    positive = np.mean(gpu_layers._plain_forward(x, weight, bias).float().numpy() > 0)
    assert 0.4 < positive < 0.6
