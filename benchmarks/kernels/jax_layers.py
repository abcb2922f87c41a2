"""A dense layer with ReLU in JAX, compiled by XLA.

XLA takes its number of threads from the processors that the process may run on, once, when the library
starts. So `limit_threads` binds the process to so many processors before that; a process keeps its number.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from benchmarks import inputs

Closure = Callable[[], object]


def limit_threads(threads: int) -> None:
    """Bind this process to its first processors. Does nothing where the system has no such call."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def jitted(shape: dict, dtype: str, threads: int) -> Closure:
    """The compiled forward pass."""
    limit_threads(threads)
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    x, weight, bias = map(jnp.asarray, inputs.layer(shape, dtype))
    layer = jax.jit(lambda x, weight, bias: jnp.maximum(x @ weight.T + bias, 0))
    return lambda: layer(x, weight, bias).block_until_ready()
