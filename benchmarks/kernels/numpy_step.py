"""One training step of an MLP with the package: the plain loop, and the step on flat parameters."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks import mlp
from denselayer import nn, optim

Closure = Callable[[], tuple]


def _network(shape: dict, dtype: str):
    weights, biases, x, y = mlp.start(shape, dtype)
    modules = []
    for position, pair in enumerate(zip(weights, biases, strict=True)):
        modules += [nn.Linear.from_arrays(*pair, input_gradient=position > 0), nn.ReLU()]
    network = nn.Sequential(*modules[:-1])
    return network, optim.SGD(network.parameters(), lr=mlp.LEARNING_RATE), x, y


def plain(shape: dict, dtype: str, threads: int) -> Closure:
    """Five lines, as one writes them."""
    network, sgd, x, y = _network(shape, dtype)
    criterion, parameters = nn.CrossEntropyLoss(), list(network.parameters())

    def call() -> tuple:
        sgd.zero_grad()
        loss = criterion(network(x), y)
        network.backward(criterion.backward())
        sgd.step()
        return loss, [parameter.data for parameter in parameters]

    return call


def fast(shape: dict, dtype: str, threads: int) -> Closure:
    """The same step through ``training_step``."""
    network, sgd, x, y = _network(shape, dtype)
    step, parameters = network.training_step(nn.CrossEntropyLoss(), sgd), list(network.parameters())

    def call() -> tuple:
        loss = step(x, y)
        return loss, [parameter.data for parameter in parameters]

    return call
