"""Peak memory of training steps of the package's networks, each measured in a process of its own."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np

from benchmarks.kernels import package_layers
from denselayer import optim
from denselayer.checkpoint import checkpointed

OPTIMIZERS = {"sgd": optim.SGD, "adam": optim.Adam}


def training(task: dict) -> dict[str, int]:
    """Bytes that NumPy holds in a training step: after its backward pass, and at its peak.

    ``task`` has ``batch``, ``width``, ``depth``, ``optimizer``, and ``every`` (layers between checkpoints, 0
    for none). The input is counted. The gradient of the loss is not: it was there before.
    """
    batch, width, depth = task["batch"], task["width"], task["depth"]
    d_out = package_layers.rows(batch, width, "float32", seed=32)
    step(
        package_layers.network(2, 1, "float32"), np.ones((1, 2), "float32"), np.ones((1, 2), "float32"), task
    )
    tracemalloc.start()
    x = package_layers.rows(batch, width, "float32")
    model = package_layers.network(width, depth, "float32")
    model = checkpointed(model, task["every"]) if task["every"] else model
    held, peak = step(model, x, d_out, task)
    tracemalloc.stop()
    return {"held": held, "peak": peak}


def step(model, x: np.ndarray, d_out: np.ndarray, task: dict) -> tuple[int, int]:
    """Two training steps; the second, which finds the optimiser's state, is looked at."""
    optimizer = OPTIMIZERS[task["optimizer"]](model.parameters(), lr=1e-9)
    held = 0
    for _ in range(2):
        optimizer.zero_grad()
        if tracemalloc.is_tracing():
            tracemalloc.reset_peak()
        model(x)
        model.backward(d_out)
        held = tracemalloc.get_traced_memory()[0]
        optimizer.step()
    return held, tracemalloc.get_traced_memory()[1]


def measure(tasks: Iterable[dict]) -> list[dict[str, int]]:
    """`training` of each task, in a fresh process each."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        return list(pool.map(training, tasks))
