"""Make the fixtures of `denselayer.agreement`: inputs, and PyTorch's outputs and gradients of them.

Every case is written here in PyTorch alone, with `torch.nn.functional` and autograd. Nothing of ours takes
part, so that a defect of ours cannot get into what we compare with.

    python -m tools fixtures
"""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch.autograd.graph import saved_tensors_hooks
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

FOLDER = Path(__file__).resolve().parents[2] / "code" / "denselayer" / "fixtures"

X = [2.0, 4.0, 1.0]
WEIGHT = [[0.5, -1.0, 2.0], [-0.25, 0.5, 1.0], [1.0, 0.25, -0.5]]
BIAS = [3.0, -1.0, -4.0]


def neuron(x, weight, bias, d_out):
    out = x @ weight + bias
    return {"out": out} | gradients(out, d_out, {"d_x": x, "d_weight": weight, "d_bias": bias})


def dense(x, weight, bias, d_out):
    out = F.linear(x, weight, bias)
    return {"out": out} | gradients(out, d_out, {"d_x": x, "d_weight": weight, "d_bias": bias})


def dense_no_bias(x, weight, d_out):
    out = F.linear(x, weight)
    return {"out": out} | gradients(out, d_out, {"d_x": x, "d_weight": weight})


def dense_relu(x, weight, bias, d_out):
    z = F.linear(x, weight, bias)
    out = F.relu(z)
    wanted = {"d_z": z, "d_x": x, "d_weight": weight, "d_bias": bias}
    return {"z": z, "out": out} | gradients(out, d_out, wanted)


def fused_layer(x, weight, bias, d_out):
    results = {}
    for name, act in (("relu", F.relu), ("gelu", F.gelu)):
        out = act(F.linear(x, weight, bias))
        wanted = {f"{name}, d_x": x, f"{name}, d_weight": weight, f"{name}, d_bias": bias}
        results |= {f"{name}, out": out} | gradients(out, d_out, wanted)
    return results


def two_layer(x, target, **state):
    return train_step(F.mse_loss, x, target, state)


def mlp(x, target, **state):
    return train_step(F.cross_entropy, x, target, state)


def train_step(criterion, x, target, state):
    hidden = F.relu(F.linear(x, state["0.weight"], state["0.bias"]))
    out = F.linear(hidden, state["2.weight"], state["2.bias"])
    loss = criterion(out, target)
    wanted = {"d_out": out, "d_x": x} | {f"d_{key}": value for key, value in state.items()}
    return {"out": out, "loss": loss} | gradients(loss, None, wanted)


def activations(z, d_out):
    functions = {
        "relu": F.relu,
        "leaky_relu": lambda z: F.leaky_relu(z, negative_slope=0.1),
        "sigmoid": torch.sigmoid,
        "tanh": torch.tanh,
        "gelu": F.gelu,
        "gelu (tanh)": lambda z: F.gelu(z, approximate="tanh"),
        "silu": F.silu,
        "softplus": F.softplus,
    }
    result = {}
    for name, function in functions.items():
        out = function(z)
        result |= {name: out} | gradients(out, d_out, {f"{name}, d_z": z})
    return result


OPTIMISERS = {
    "sgd": (torch.optim.SGD, {"lr": 0.07}),
    "momentum": (torch.optim.SGD, {"lr": 0.02, "momentum": 0.8}),
    "nesterov": (torch.optim.SGD, {"lr": 0.02, "momentum": 0.8, "nesterov": True}),
    "weight decay": (torch.optim.SGD, {"lr": 0.07, "weight_decay": 0.5}),
    "adam": (torch.optim.Adam, {"lr": 0.3}),
}


def optimisers(start, curvature):
    """Forty steps of each down half the sum of ``curvature * parameter**2``, the start included."""
    paths = {}
    for name, (optimiser, options) in OPTIMISERS.items():
        place = start.detach().clone().requires_grad_()
        steps, path = optimiser([place], **options), [start.detach()]
        for _ in range(40):
            steps.zero_grad()
            (curvature * place**2 / 2).sum().backward()
            steps.step()
            path.append(place.detach().clone())
        paths[name] = torch.stack(path)
    return paths


class Bytes(TorchDispatchMode):
    """Add up the bytes of the operands and results of every operation that is not a mere view."""

    def __init__(self):
        super().__init__()
        self.total = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        if str(function).split(".")[1] not in ("t", "view", "detach"):
            tensors = [leaf for leaf in tree_leaves((args, out)) if isinstance(leaf, torch.Tensor)]
            self.total += sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        return out


def costs(like, widths, batch):
    counted = [
        cost([int(width) for width in row if width], int(rows), like.dtype)
        for row, rows in zip(widths, batch, strict=True)
    ]
    return {key: torch.tensor([each[key] for each in counted], dtype=like.dtype) for key in counted[0]}


def cost(widths, rows, dtype):
    """Let PyTorch count one training step of a network with ReLU between its layers, and Adam."""
    modules = [
        module
        for ins, outs in pairwise(widths)
        for module in (torch.nn.Linear(ins, outs, dtype=dtype), torch.nn.ReLU())
    ]
    network, saved = torch.nn.Sequential(*modules[:-1]), {}
    own = {parameter.untyped_storage().data_ptr() for parameter in network.parameters()}

    def pack(tensor):
        if tensor.untyped_storage().data_ptr() not in own:
            saved[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    x, d_out = torch.ones(rows, widths[0], dtype=dtype), torch.ones(rows, widths[-1], dtype=dtype)
    optimizer = torch.optim.Adam(network.parameters())
    with saved_tensors_hooks(pack, lambda tensor: tensor):
        with FlopCounterMode(display=False) as forward, Bytes() as forward_bytes:
            out = network(x)
        kept = sum(tensor.numel() for tensor in saved.values())
        with FlopCounterMode(display=False) as backward, Bytes() as backward_bytes:
            out.backward(d_out)
    optimizer.step()
    state = [tensor for values in optimizer.state.values() for tensor in values.values()]
    return {
        "parameters": sum(parameter.numel() for parameter in network.parameters()),
        "operations forward": forward.get_total_flops(),
        "operations backward": backward.get_total_flops(),
        "values kept": kept,
        "bytes forward": forward_bytes.total,
        "bytes backward": backward_bytes.total,
        "Adam state": sum(tensor.numel() for tensor in state if tensor.dim()),
    }


def gradients(out, d_out, of):
    return dict(zip(of, torch.autograd.grad(out, of.values(), d_out, retain_graph=True), strict=True))


def draw():
    """Yield (name, case, inputs). Real numbers are float32, so float64 holds the very same ones."""
    rng = np.random.default_rng(2024)

    def normal(*shape, scale=1.0):
        return (scale * rng.standard_normal(shape)).astype(np.float32)

    yield "neuron", neuron, real(x=X, weight=WEIGHT[0], bias=BIAS[0], d_out=2.0)
    yield "dense-running-example", dense, real(x=X, weight=WEIGHT, bias=BIAS, d_out=[1.0, -2.0, 0.5])
    yield (
        "backprop-running-example",
        dense_relu,
        real(x=[X, [6.0, -2.0, 1.0]], weight=WEIGHT, bias=BIAS, d_out=[[1.0, -2.0, 4.0], [-0.5, 1.0, 2.0]]),
    )
    first = {"0.weight": [[1.0, -1.0], [0.5, 1.0]], "0.bias": [0.5, -0.5]}
    second = {"2.weight": [[1.0, -1.0]], "2.bias": [0.5]}
    batch = {"x": [[2.0, 1.5], [-1.0, 2.0]], "target": [[-3.5], [1.5]]}
    yield "backprop-two-layer", two_layer, real(**batch, **first, **second)
    yield (
        "dense-random",
        dense,
        {
            "x": normal(8, 784),
            "weight": normal(16, 784, scale=784**-0.5),
            "bias": normal(16),
            "d_out": normal(8, 16),
        },
    )
    yield "dense-no-bias", dense_no_bias, {"x": normal(5, 7), "weight": normal(3, 7), "d_out": normal(5, 3)}
    yield (
        "mlp",
        mlp,
        {
            "x": normal(16, 64),
            "target": rng.integers(0, 10, 16),
            "0.weight": normal(32, 64, scale=(2 / 64) ** 0.5),
            "0.bias": normal(32, scale=0.1),
            "2.weight": normal(10, 32, scale=(2 / 32) ** 0.5),
            "2.bias": normal(10, scale=0.1),
        },
    )
    yield (
        "costs",
        costs,
        {
            "like": np.ones((), np.float32),
            "widths": np.array(
                [
                    [3, 3, 0, 0, 0],
                    [3, 3, 0, 0, 0],
                    [784, 1000, 0, 0, 0],
                    [512, 2048, 512, 0, 0],
                    [10, 20, 5, 1, 0],
                    [64, 32, 10, 0, 0],
                    [64, 64, 64, 64, 64],
                ]
            ),
            "batch": np.array([1, 1000, 8, 1, 32, 64, 256]),
        },
    )
    yield "activations", activations, {"z": np.linspace(-6, 6, 97, dtype=np.float32), "d_out": normal(97)}
    yield "optimisers", optimisers, real(start=[4.0, 1.0], curvature=[1.0, 25.0])
    yield (
        "fused-layer",
        fused_layer,
        {
            "x": normal(6, 32),
            "weight": normal(8, 32, scale=32**-0.5),
            "bias": normal(8),
            "d_out": normal(6, 8),
        },
    )


def real(**values):
    return {key: np.array(value, dtype=np.float32) for key, value in values.items()}


def run(case, inputs, dtype):
    """Run a case in PyTorch and return its arrays."""

    def tensor(array):
        real_number = array.dtype.kind == "f"
        return torch.from_numpy(array.astype(dtype) if real_number else array).requires_grad_(real_number)

    tensors = {key: tensor(array) for key, array in inputs.items()}
    return {key: value.detach().numpy() for key, value in case(**tensors).items()}


def digits_run(dtype):
    """Train 64 -> 64 -> 10 on four fifths of the digits for 1,000 steps, as the chapter on training does.

    The split and the start are drawn with seed 0; the batches of 36 come from the Generator of the start.
    One thread, since in float32 another order of additions can open a gate that was shut.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    train = order[round(0.2 * len(order)) :]
    x = torch.from_numpy((digits.data / 16)[train].astype(dtype))
    target = torch.from_numpy(digits.target[train].astype(np.int64))
    rng = np.random.default_rng(0)

    def he(outputs, inputs):
        return torch.from_numpy(rng.normal(0, (2 / inputs) ** 0.5, (outputs, inputs)).astype(dtype))

    network = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    network.to(x.dtype)
    with torch.no_grad():
        for at in (0, 2):
            network[at].weight.copy_(he(*network[at].weight.shape))
            network[at].bias.zero_()
    sgd = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for _ in range(25):
        for rows in torch.from_numpy(rng.permutation(len(x))).split(36):
            sgd.zero_grad()
            loss = F.cross_entropy(network(x[rows]), target[rows])
            loss.backward()
            sgd.step()
            losses.append(loss.item())
    torch.set_num_threads(threads)
    parameters = {name: value.detach().numpy() for name, value in network.named_parameters()}
    return {"losses": np.array(losses, dtype=dtype)} | parameters


def make():
    """Yield (name, content of the file) for every case, and last for the training run."""
    versions = json.dumps({"torch": torch.__version__.split("+")[0], "numpy": np.__version__})
    for name, case, inputs in draw():
        content = {"versions": np.array(versions)} | {f"input/{key}": array for key, array in inputs.items()}
        for dtype in ("float32", "float64"):
            content |= {f"{dtype}/{key}": array for key, array in run(case, inputs, dtype).items()}
        yield name, content
    content = {"versions": np.array(versions)}
    for dtype in ("float32", "float64"):
        content |= {f"{dtype}/{key}": array for key, array in digits_run(dtype).items()}
    yield "digits-run", content


def main(folder=FOLDER):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in make():
        path = folder / f"{name}.npz"
        np.savez_compressed(path, **content)
        print(f"{path.name:32} {path.stat().st_size / 1024:7.1f} KiB")
