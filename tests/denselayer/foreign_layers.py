"""Layers and networks as people write them, healthy and wrong, in styles that the zoo does not have."""

import functools
from collections import namedtuple
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

FOREIGN = {}
"""``{name: (subject, defects)}``: a class, an object or a pair of functions, and what is wrong with it."""
UNSURE = "cannot tell"
"""Among the defects of a subject: that the doctor need not name them."""


def foreign(*defects):
    """Put a class, or what a function returns, among the subjects."""

    def keep(thing):
        FOREIGN[thing.__name__] = (thing if isinstance(thing, type) else thing(), defects)
        return thing

    return keep


# --- classes, healthy


@foreign()
class CapaVetorial:
    """Portuguese names, gradients in a dict."""

    def __init__(self, entradas, saidas):
        gerador = np.random.default_rng(1)
        self.pesos = gerador.normal(0, 0.3, (entradas, saidas))
        self.vies = np.zeros((1, saidas))
        self.gradientes = {}

    def forward(self, entrada):
        self.entrada = entrada
        return entrada @ self.pesos + self.vies

    def backward(self, gradiente):
        self.gradientes = {"pesos": self.entrada.T @ gradiente, "vies": gradiente.sum(0, keepdims=True)}
        return gradiente @ self.pesos.T


@foreign()
class Schicht:
    """German names, gradients stored under words."""

    def __init__(self, eingaben, ausgaben):
        self.gewichte = np.random.default_rng(2).normal(size=(ausgaben, eingaben)) * 0.1
        self.verschiebung = np.zeros(ausgaben)

    def vorwaerts(self, x):
        self.x = x
        return x @ self.gewichte.T + self.verschiebung

    forward = vorwaerts

    def backward(self, delta):
        self.d_gewichte = delta.T @ self.x
        self.d_verschiebung = delta.sum(axis=0)
        return delta @ self.gewichte


@foreign()
class LayerWithRate:
    """Updates inside the backward pass, with its own rate as an argument."""

    def __init__(self, n_inputs, n_neurons):
        self.weights = 0.1 * np.random.default_rng(3).standard_normal((n_inputs, n_neurons))
        self.biases = np.zeros((1, n_neurons))

    def forward(self, inputs):
        self.inputs = inputs
        self.output = np.dot(inputs, self.weights) + self.biases

    def backward(self, dvalues):
        self.dweights = np.dot(self.inputs.T, dvalues)
        self.dbiases = np.sum(dvalues, axis=0, keepdims=True)
        self.dinputs = np.dot(dvalues, self.weights.T)


@foreign()
class Slotted:
    __slots__ = ("W", "_x", "b", "gW", "gb")

    def __init__(self, n_in, n_out):
        self.W = np.random.default_rng(4).uniform(-1, 1, (n_in, n_out))
        self.b = np.zeros(n_out)

    def __call__(self, x):
        self._x = x
        return x.dot(self.W) + self.b

    def backward(self, g):
        self.gW = self._x.T.dot(g)
        self.gb = g.sum(0)
        return g.dot(self.W.T)


@foreign()
@dataclass
class DataLayer:
    in_dim: int = 6
    out_dim: int = 4
    W: np.ndarray = field(default=None)
    b: np.ndarray = field(default=None)

    def __post_init__(self):
        rng = np.random.default_rng(5)
        self.W = rng.normal(size=(self.in_dim, self.out_dim))
        self.b = rng.normal(size=self.out_dim)

    def forward(self, x):
        self.x = x
        return np.tanh(x @ self.W + self.b)

    def backward(self, dy):
        y = np.tanh(self.x @ self.W + self.b)
        dz = dy * (1 - y * y)
        return dz @ self.W.T, self.x.T @ dz, dz.sum(0)


class Tensor:
    def __init__(self, value):
        self.value = value
        self.grad = np.zeros_like(value)


@foreign()
class WithTensors:
    def __init__(self, fan_in, fan_out):
        rng = np.random.default_rng(6)
        self.kernel = Tensor(rng.normal(size=(fan_in, fan_out)))
        self.offset = Tensor(np.zeros(fan_out))

    def parameters(self):
        return [self.kernel, self.offset]

    def zero_grad(self):
        for p in self.parameters():
            p.grad = np.zeros_like(p.value)

    def forward(self, x):
        self._cache = x
        return x @ self.kernel.value + self.offset.value

    def backward(self, dout):
        self.kernel.grad += self._cache.T @ dout
        self.offset.grad += dout.sum(axis=0)
        return dout @ self.kernel.value.T


@foreign()
class ColumnNoBias:
    def __init__(self, in_size, out_size):
        self.W = np.random.default_rng(7).standard_normal((out_size, in_size))

    def forward(self, a):
        self.a = a
        return self.W @ a

    def backward(self, delta):
        self.dW = delta @ self.a.T
        return self.W.T @ delta


@foreign()
class ColumnBias:
    def __init__(self, in_size, out_size):
        rng = np.random.default_rng(8)
        self.W, self.b = rng.standard_normal((out_size, in_size)), rng.standard_normal((out_size, 1))

    def forward(self, A):
        self.A = A
        self.Z = self.W @ A + self.b
        return 1 / (1 + np.exp(-self.Z))

    def backward(self, dA):
        s = 1 / (1 + np.exp(-self.Z))
        dZ = dA * s * (1 - s)
        self.dW = dZ @ self.A.T
        self.db = np.sum(dZ, axis=1, keepdims=True)
        return self.W.T @ dZ


@foreign()
class Residual:
    """x + W2 relu(W1 x)."""

    def __init__(self, width=5):
        rng = np.random.default_rng(9)
        self.W1 = rng.normal(size=(width, width))
        self.W2 = rng.normal(size=(width, width))

    def forward(self, x):
        self.x, self.h = x, np.maximum(x @ self.W1, 0)
        return x + self.h @ self.W2

    def backward(self, dout):
        self.dW2 = self.h.T @ dout
        dh = dout @ self.W2.T * (self.h > 0)
        self.dW1 = self.x.T @ dh
        return dout + dh @ self.W1.T


@foreign("batch-mixed")
class BatchNorm1d:
    """Healthy; that it mixes rows is said, unless it is meant."""

    def __init__(self, num_features=4, eps=1e-5, momentum=0.9):
        self.gamma, self.beta = np.ones(num_features), np.zeros(num_features)
        self.eps, self.momentum = eps, momentum
        self.running_mean, self.running_var = np.zeros(num_features), np.ones(num_features)

    def forward(self, x, train=True):
        if not train:
            return self.gamma * (x - self.running_mean) / np.sqrt(self.running_var + self.eps) + self.beta
        mu, var = x.mean(0), x.var(0)
        self.std = np.sqrt(var + self.eps)
        self.xhat = (x - mu) / self.std
        self.running_mean = self.momentum * self.running_mean + (1 - self.momentum) * mu
        self.running_var = self.momentum * self.running_var + (1 - self.momentum) * var
        return self.gamma * self.xhat + self.beta

    def backward(self, dy):
        self.dgamma, self.dbeta = (dy * self.xhat).sum(0), dy.sum(0)
        d = dy * self.gamma
        return (d - d.mean(0) - self.xhat * (d * self.xhat).mean(0)) / self.std


@foreign()
class LayerNorm:
    def __init__(self, dim=6):
        self.gamma, self.beta, self.eps = np.ones(dim), np.zeros(dim), 1e-5

    def forward(self, x):
        self.mu = x.mean(-1, keepdims=True)
        self.sd = np.sqrt(x.var(-1, keepdims=True) + self.eps)
        self.xh = (x - self.mu) / self.sd
        return self.xh * self.gamma + self.beta

    def backward(self, dout):
        self.dgamma = (dout * self.xh).sum(0)
        self.dbeta = dout.sum(0)
        d = dout * self.gamma
        return (d - d.mean(-1, keepdims=True) - self.xh * (d * self.xh).mean(-1, keepdims=True)) / self.sd


@foreign()
class SoftmaxHead:
    def __init__(self, n_in, n_out):
        self.W, self.b = np.random.default_rng(10).normal(size=(n_in, n_out)), np.zeros(n_out)

    def forward(self, x):
        self.x = x
        z = x @ self.W + self.b
        e = np.exp(z - z.max(1, keepdims=True))
        self.p = e / e.sum(1, keepdims=True)
        return self.p

    def backward(self, dp):
        dz = self.p * (dp - (dp * self.p).sum(1, keepdims=True))
        self.dW, self.db = self.x.T @ dz, dz.sum(0)
        return dz @ self.W.T


@foreign()
class PropertyLayer:
    """The weight behind a property that checks."""

    def __init__(self, n_in, n_out):
        self._w = np.random.default_rng(11).normal(size=(n_in, n_out))
        self._b = np.zeros(n_out)
        self._gw = self._gb = None

    @property
    def weight(self):
        return self._w

    @weight.setter
    def weight(self, value):
        if value.shape != self._w.shape:
            raise ValueError("shape")
        self._w = value

    @property
    def grad_weight(self):
        return self._gw

    @property
    def grad_bias(self):
        return self._gb

    def forward(self, x):
        self._x = x
        return x @ self._w + self._b

    def backward(self, grad_output):
        self._gw, self._gb = self._x.T @ grad_output, grad_output.sum(0)
        return grad_output @ self._w.T


@foreign()
class Lazy:
    """Makes its weights when it sees the first input."""

    def __init__(self, units=3):
        self.units = units
        self.W = None

    def forward(self, x):
        if self.W is None:
            self.W = np.random.default_rng(12).normal(size=(x.shape[1], self.units))
            self.b = np.zeros(self.units)
        self.x = x
        return x @ self.W + self.b

    def backward(self, d):
        self.dW, self.db = self.x.T @ d, d.sum(0)
        return d @ self.W.T


@foreign()
class Chatty:
    def __init__(self, n_in, n_out):
        print("made a layer of", n_in, "x", n_out)
        self.W, self.b = np.random.default_rng(13).normal(size=(n_in, n_out)), np.ones(n_out)

    def forward(self, x):
        print("forward", x.shape)
        self.x = x
        return x @ self.W + self.b

    def backward(self, d):
        print("backward", d.shape)
        self.dW, self.db = self.x.T @ d, d.sum(0)
        return d @ self.W.T


@foreign()
class Symmetric:
    """A weight that is made symmetric: x @ (A + A.T)."""

    def __init__(self, n=4):
        self.A = np.random.default_rng(14).normal(size=(n, n))

    def forward(self, x):
        self.x = x
        return x @ (self.A + self.A.T)

    def backward(self, d):
        g = self.x.T @ d
        self.dA = g + g.T
        return d @ (self.A + self.A.T)


@foreign()
class Gated:
    """GLU: two weights, one a gate."""

    def __init__(self, n_in, n_out):
        rng = np.random.default_rng(15)
        self.Wv, self.Wg = rng.normal(size=(n_in, n_out)), rng.normal(size=(n_in, n_out))

    def forward(self, x):
        self.x, self.v, self.s = x, x @ self.Wv, 1 / (1 + np.exp(-(x @ self.Wg)))
        return self.v * self.s

    def backward(self, d):
        dv, dg = d * self.s, d * self.v * self.s * (1 - self.s)
        self.dWv, self.dWg = self.x.T @ dv, self.x.T @ dg
        return dv @ self.Wv.T + dg @ self.Wg.T


@foreign()
class MLPDict:
    """A two-layer net with everything in dicts, and names with indices."""

    def __init__(self, input_size, hidden_size, output_size):
        rng = np.random.default_rng(16)
        self.params = {
            "W1": rng.normal(size=(input_size, hidden_size)),
            "b1": np.zeros(hidden_size),
            "W2": rng.normal(size=(hidden_size, output_size)),
            "b2": np.zeros(output_size),
        }
        self.grads = {}

    def forward(self, X):
        p = self.params
        self.X = X
        self.a1 = np.maximum(0, X.dot(p["W1"]) + p["b1"])
        return self.a1.dot(p["W2"]) + p["b2"]

    def backward(self, dscores):
        p = self.params
        self.grads["W2"] = self.a1.T.dot(dscores)
        self.grads["b2"] = dscores.sum(axis=0)
        da = dscores.dot(p["W2"].T)
        da[self.a1 <= 0] = 0
        self.grads["W1"] = self.X.T.dot(da)
        self.grads["b1"] = da.sum(axis=0)


@foreign()
class NetworkLists:
    """Nielsen's style: lists of weights and of biases, batch as columns."""

    def __init__(self, sizes):
        rng = np.random.default_rng(17)
        self.weights = [rng.normal(size=(o, i)) for i, o in pairwise(sizes)]
        self.biases = [rng.normal(size=(o, 1)) for o in sizes[1:]]

    def feedforward(self, a):
        self.acts = [a]
        for w, b in zip(self.weights, self.biases, strict=True):
            a = 1 / (1 + np.exp(-(w @ a + b)))
            self.acts.append(a)
        return a

    def backprop(self, delta):
        nabla_w, nabla_b = [], []
        for w, a, before in zip(self.weights[::-1], self.acts[:0:-1], self.acts[-2::-1], strict=True):
            delta = delta * a * (1 - a)
            nabla_w.insert(0, delta @ before.T)
            nabla_b.insert(0, delta.sum(1, keepdims=True))
            delta = w.T @ delta
        self.grad_weights, self.grad_biases = nabla_w, nabla_b
        return delta


@foreign()
class ConvAsMatmul:
    """A 1-d convolution of width 3 by a matrix of windows."""

    def __init__(self):
        rng = np.random.default_rng(18)
        self.kernel, self.bias = rng.normal(size=3), np.array(0.5)

    def forward(self, x):
        self.windows = np.stack([x[:, k : x.shape[1] - 2 + k] for k in range(3)], axis=2)
        self.shape = x.shape
        return self.windows @ self.kernel + self.bias

    def backward(self, d):
        self.d_kernel = np.einsum("nt,ntk->k", d, self.windows)
        self.d_bias = d.sum()
        dx = np.zeros(self.shape)
        for k in range(3):
            dx[:, k : dx.shape[1] - 2 + k] += d * self.kernel[k]
        return dx


@foreign()
class EyeWeight:
    """Starts as the identity."""

    def __init__(self, n=4, out=None):
        self.W, self.b = np.eye(n), np.zeros(n)

    def forward(self, x):
        self.x = x
        return x @ self.W + self.b

    def backward(self, d):
        self.dW, self.db = self.x.T @ d, d.sum(0)
        return d @ self.W.T


@foreign()
class Perceptron:
    """One unit, the weight a vector, the bias a float."""

    def __init__(self, n_features=5):
        self.w = np.zeros(n_features)
        self.b = 0.0

    def forward(self, X):
        self.X = X
        return 1 / (1 + np.exp(-(X @ self.w + self.b)))

    def backward(self, d):
        p = 1 / (1 + np.exp(-(self.X @ self.w + self.b)))
        dz = d * p * (1 - p)
        self.dw = self.X.T @ dz
        self.db = dz.sum()
        return np.outer(dz, self.w)


@foreign(UNSURE)
class Half:
    """float16 all over."""

    def __init__(self, n_in, n_out):
        self.W = np.random.default_rng(19).normal(size=(n_in, n_out)).astype(np.float16)
        self.b = np.zeros(n_out, np.float16)

    def forward(self, x):
        self.x = x.astype(np.float16)
        return self.x @ self.W + self.b

    def backward(self, d):
        d = d.astype(np.float16)
        self.dW, self.db = self.x.T @ d, d.sum(0)
        return d @ self.W.T


@foreign("float32-arithmetic")
class Casts32:
    """float64 weights, the product in float32."""

    def __init__(self, n_in, n_out):
        self.W, self.b = np.random.default_rng(20).normal(size=(n_in, n_out)), np.zeros(n_out)

    def forward(self, x):
        self.x = x.astype(np.float32)
        return self.x @ self.W.astype(np.float32) + self.b.astype(np.float32)

    def backward(self, d):
        d = d.astype(np.float32)
        self.dW, self.db = self.x.T @ d, d.sum(0)
        return d @ self.W.T.astype(np.float32)


@foreign("random")
class DropoutLayer:
    def __init__(self, n_in, n_out, p=0.5):
        self.W, self.p = np.random.default_rng(21).normal(size=(n_in, n_out)), p

    def forward(self, x, train=True):
        self.x = x
        z = x @ self.W
        self.mask = (np.random.rand(*z.shape) > self.p) / (1 - self.p) if train else 1
        return z * self.mask

    def backward(self, d):
        d = d * self.mask
        self.dW = self.x.T @ d
        return d @ self.W.T


@foreign()
class DropoutOff:
    """Off unless it is asked for."""

    def __init__(self, n_in, n_out, p=0.5):
        self.W, self.p = np.random.default_rng(22).normal(size=(n_in, n_out)), p

    def forward(self, x, train=False):
        self.x = x
        self.mask = (np.random.rand(x.shape[0], self.W.shape[1]) > self.p) / (1 - self.p) if train else 1.0
        return x @ self.W * self.mask

    def backward(self, d):
        d = d * self.mask
        self.dW = self.x.T @ d
        return d @ self.W.T


@foreign()
class Counting:
    """Counts calls and keeps a history; healthy."""

    calls = 0

    def __init__(self, n_in, n_out):
        self.W, self.b = np.random.default_rng(23).normal(size=(n_in, n_out)), np.zeros(n_out)
        self.history = []

    def forward(self, x):
        self.calls += 1
        self.history.append(float(np.mean(x)))
        self.x = x
        return x @ self.W + self.b

    def backward(self, d):
        self.dW, self.db = self.x.T @ d, d.sum(0)
        return d @ self.W.T


@foreign()
class StackOfCaches:
    """Every forward pass pushes, every backward pass pops."""

    def __init__(self, n_in, n_out):
        self.W, self.b = np.random.default_rng(24).normal(size=(n_in, n_out)), np.zeros(n_out)
        self.stack = []

    def forward(self, x):
        self.stack.append(x)
        return x @ self.W + self.b

    def backward(self, d):
        x = self.stack.pop()
        self.dW, self.db = x.T @ d, d.sum(0)
        return d @ self.W.T


@foreign()
class AsLists:
    """Gradients as lists of lists, with loops."""

    def __init__(self, n_in, n_out):
        self.W, self.b = np.random.default_rng(25).normal(size=(n_in, n_out)), np.zeros(n_out)

    def forward(self, x):
        self.x = x
        return x @ self.W + self.b

    def backward(self, d):
        self.dW = [
            [sum(self.x[n, i] * d[n, j] for n in range(len(d))) for j in range(d.shape[1])]
            for i in range(self.x.shape[1])
        ]
        self.db = [sum(d[n, j] for n in range(len(d))) for j in range(d.shape[1])]
        return (d @ self.W.T).tolist()


@foreign()
class Masked:
    """Pruned: a fixed mask on the weight."""

    def __init__(self, n_in, n_out):
        rng = np.random.default_rng(26)
        self.W, self.b = rng.normal(size=(n_in, n_out)), np.zeros(n_out)
        self.mask = (rng.random((n_in, n_out)) > 0.4).astype(float)

    def forward(self, x):
        self.x = x
        return x @ (self.W * self.mask) + self.b

    def backward(self, d):
        self.dW, self.db = (self.x.T @ d) * self.mask, d.sum(0)
        return d @ (self.W * self.mask).T


@foreign()
class Scaled:
    """He scaling in the forward pass (equalised learning rate)."""

    def __init__(self, n_in, n_out):
        self.W, self.b = np.random.default_rng(27).normal(size=(n_in, n_out)), np.zeros(n_out)
        self.gain = np.sqrt(2 / n_in)

    def forward(self, x):
        self.x = x
        return x @ (self.W * self.gain) + self.b

    def backward(self, d):
        self.dW, self.db = self.x.T @ d * self.gain, d.sum(0)
        return d @ (self.W * self.gain).T


@foreign()
class TiedAutoencoder:
    """The weight used twice, both shares added."""

    def __init__(self, n_in, n_hidden):
        self.W = np.random.default_rng(28).normal(size=(n_in, n_hidden))

    def forward(self, x):
        self.x, self.h = x, np.tanh(x @ self.W)
        return self.h @ self.W.T

    def backward(self, d):
        dh = d @ self.W * (1 - self.h**2)
        self.dW = d.T @ self.h + self.x.T @ dh
        return dh @ self.W.T


@foreign()
class Attention:
    """One head over the features as single-number tokens is too odd; here: bilinear pooling x W x."""

    def __init__(self, n=4):
        self.W = np.random.default_rng(29).normal(size=(n, n))

    def forward(self, x):
        self.x = x
        return np.einsum("ni,ij,nj->n", x, self.W, x)[:, None]

    def backward(self, d):
        self.dW = np.einsum("n,ni,nj->ij", d[:, 0], self.x, self.x)
        return d * (self.x @ (self.W + self.W.T))


@foreign()
class WithFrozen:
    """The first weight is frozen: its gradient is not kept."""

    def __init__(self, n_in, n_out):
        rng = np.random.default_rng(30)
        self.frozen_projection = rng.normal(size=(n_in, 6))
        self.W, self.b = rng.normal(size=(6, n_out)), np.zeros(n_out)

    def forward(self, x):
        self.h = x @ self.frozen_projection
        return self.h @ self.W + self.b

    def backward(self, d):
        self.dW, self.db = self.h.T @ d, d.sum(0)
        return d @ self.W.T @ self.frozen_projection.T


Grads = namedtuple("Grads", "dx dW db")


@foreign()
class NamedTuples:
    def __init__(self, n_in, n_out):
        self.W, self.b = np.random.default_rng(31).normal(size=(n_in, n_out)), np.zeros(n_out)

    def forward(self, x):
        self.x = x
        z = x @ self.W + self.b
        self.z = z
        return np.where(z > 0, z, 0.2 * z)

    def backward(self, d):
        dz = d * np.where(self.z > 0, 1.0, 0.2)
        return Grads(dz @ self.W.T, self.x.T @ dz, dz.sum(0))


@foreign()
class PReLU:
    """A learned slope."""

    def __init__(self, n=4):
        self.alpha = np.full(n, 0.25)

    def forward(self, x):
        self.x = x
        return np.where(x > 0, x, self.alpha * x)

    def backward(self, d):
        self.dalpha = (d * np.minimum(self.x, 0)).sum(0)
        return d * np.where(self.x > 0, 1, self.alpha)


@foreign()
class Swish:
    def forward(self, x):
        self.x = x
        return x / (1 + np.exp(-x))

    def backward(self, d):
        s = 1 / (1 + np.exp(-self.x))
        return d * (s + self.x * s * (1 - s))


@foreign()
class Backwards3d:
    """Written for (batch, time, features)."""

    def __init__(self, n_in, n_out):
        self.W, self.b = np.random.default_rng(32).normal(size=(n_in, n_out)), np.zeros(n_out)

    def forward(self, x):
        self.x = x
        return x @ self.W + self.b

    def backward(self, d):
        self.dW = self.x.reshape(-1, self.x.shape[-1]).T @ d.reshape(-1, d.shape[-1])
        self.db = d.reshape(-1, d.shape[-1]).sum(0)
        return d @ self.W.T


@foreign()
class LowRank:
    """W = U V (LoRA without a base)."""

    def __init__(self, n_in, n_out, r=2):
        rng = np.random.default_rng(33)
        self.U, self.V = rng.normal(size=(n_in, r)), rng.normal(size=(r, n_out))

    def forward(self, x):
        self.x, self.h = x, x @ self.U
        return self.h @ self.V

    def backward(self, d):
        self.dV = self.h.T @ d
        dh = d @ self.V.T
        self.dU = self.x.T @ dh
        return dh @ self.U.T


# --- pairs of functions, healthy


@foreign()
def closures():
    store = {}

    def forward(x, w, b):
        store["x"] = x
        return x @ w + b

    def backward(grad, w):
        return {"dw": store["x"].T @ grad, "db": grad.sum(0), "dx": grad @ w.T}

    return forward, backward


@foreign()
def partials():
    def affine(act, x, w, b):
        z = x @ w + b
        return (np.maximum(z, 0) if act == "relu" else z), (x, w, z)

    def affine_back(act, dout, cache):
        x, w, z = cache
        dz = dout * (z > 0) if act == "relu" else dout
        return dz @ w.T, x.T @ dz, dz.sum(0)

    return functools.partial(affine, "relu"), functools.partial(affine_back, "relu")


@foreign()
def lambdas():
    return (lambda x, w, b: x @ w + b), (lambda d, x, w: (d @ w.T, x.T @ d, d.sum(0)))


@foreign()
def generator_of_gradients():
    def forward(x, w, b):
        return x @ w + b, (x, w)

    def backward(dout, cache):
        x, w = cache
        yield dout @ w.T
        yield x.T @ dout
        yield dout.sum(0)

    return forward, backward


@foreign(UNSURE)
def keyword_only():
    def forward(x, *, w, b):
        return x @ w + b

    def backward(dout, *, x, w):
        return dout @ w.T, x.T @ dout, dout.sum(0)

    return forward, backward


@foreign()
def list_of_gradients():
    def forward(X, W, b):
        return X @ W.T + b

    def backward(dZ, X, W, b):
        return [dZ.T @ X, dZ.sum(axis=0), dZ @ W]

    return forward, backward


@foreign()
def softmax_alone():
    def softmax(z):
        e = np.exp(z - z.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    def softmax_backward(d, z):
        p = softmax(z)
        return np.stack([(np.diag(row) - np.outer(row, row)) @ up for row, up in zip(p, d, strict=True)])

    return softmax, softmax_backward


@foreign()
def mish():
    def forward(x):
        return x * np.tanh(np.log1p(np.exp(x)))

    def backward(d, x):
        sp = np.log1p(np.exp(x))
        t = np.tanh(sp)
        return d * (t + x * (1 - t * t) / (1 + np.exp(-x)))

    return forward, backward


@foreign()
def sigmoid_from_output():
    def sig(z):
        return 1 / (1 + np.exp(-z))

    def sig_prime(grad, a):
        return grad * a * (1 - a)

    return sig, sig_prime


# --- more healthy ones


@foreign(UNSURE)
class CachedEverything:
    """Keeps the gradients in one flat vector, with views into it."""

    def __init__(self, n_in, n_out):
        self.shape = (n_in, n_out)
        self.theta = np.random.default_rng(34).normal(size=n_in * n_out + n_out)
        self.grad = np.zeros_like(self.theta)

    def _split(self, vector):
        cut = self.shape[0] * self.shape[1]
        return vector[:cut].reshape(self.shape), vector[cut:]

    def forward(self, x):
        self.x = x
        w, b = self._split(self.theta)
        return x @ w + b

    def backward(self, d):
        w, _ = self._split(self.theta)
        gw, gb = self._split(self.grad)
        gw[...], gb[...] = self.x.T @ d, d.sum(0)
        return d @ w.T


@foreign()
class ListOfPairs:
    """Parameters and gradients as pairs, as an optimiser wants them."""

    def __init__(self, n_in, n_out):
        rng = np.random.default_rng(35)
        w, b = rng.normal(size=(n_in, n_out)), np.zeros(n_out)
        self.pairs = [[w, np.zeros_like(w)], [b, np.zeros_like(b)]]

    def forward(self, x):
        self.x = x
        return x @ self.pairs[0][0] + self.pairs[1][0]

    def backward(self, d):
        self.pairs[0][1] = self.x.T @ d
        self.pairs[1][1] = d.sum(axis=0)
        return d @ self.pairs[0][0].T


@foreign()
class Hidden:
    """Private names (mangled)."""

    def __init__(self, n_in, n_out):
        self.__w = np.random.default_rng(36).normal(size=(n_in, n_out))
        self.__b = np.zeros(n_out)

    def forward(self, x):
        self.__x = x
        return x @ self.__w + self.__b

    def backward(self, d):
        self.__dw = self.__x.T @ d
        self.__db = d.sum(0)
        return d @ self.__w.T


@foreign()
class Russian:
    def __init__(self, вход, выход):
        self.веса = np.random.default_rng(37).normal(size=(вход, выход))
        self.сдвиг = np.zeros(выход)

    def forward(self, x):
        self.x = x
        return x @ self.веса + self.сдвиг

    def backward(self, d):
        self.d_веса, self.d_сдвиг = self.x.T @ d, d.sum(0)
        return d @ self.веса.T


@foreign()
class NumpyMatrix:
    """np.matrix, as old courses have it."""

    def __init__(self, n_in, n_out):
        self.W = np.matrix(np.random.default_rng(38).normal(size=(n_out, n_in)))
        self.b = np.matrix(np.zeros((n_out, 1)))

    def forward(self, x):
        self.x = np.asmatrix(x)
        return self.W * self.x + self.b

    def backward(self, d):
        self.dW, self.db = np.asmatrix(d) * self.x.T, np.asmatrix(d).sum(axis=1)
        return self.W.T * np.asmatrix(d)


@foreign()
class OneUnit:
    def __init__(self):
        self.w, self.b = np.array([[0.7]]), np.array([0.1])

    def forward(self, x):
        self.x = x
        return x * self.w + self.b

    def backward(self, d):
        self.dw, self.db = (d * self.x).sum(0, keepdims=True), d.sum(0)
        return d * self.w


@foreign()
class MaxPoolDense:
    """Maxout of two pieces."""

    def __init__(self, n_in, n_out):
        rng = np.random.default_rng(39)
        self.W, self.b = rng.normal(size=(2, n_in, n_out)), rng.normal(size=(2, n_out))

    def forward(self, x):
        self.x = x
        z = np.einsum("ni,kio->nko", x, self.W) + self.b
        self.best = z.argmax(axis=1)
        return z.max(axis=1)

    def backward(self, d):
        route = np.stack([d * (self.best == k) for k in (0, 1)], axis=1)
        self.dW, self.db = np.einsum("ni,nko->kio", self.x, route), route.sum(0)
        return np.einsum("nko,kio->ni", route, self.W)


@foreign()
class RecurrentStep:
    """h = tanh(x Wx + h Wh + b), three steps with the same input."""

    def __init__(self, n_in, n_out):
        rng = np.random.default_rng(40)
        self.Wx, self.Wh = rng.normal(size=(n_in, n_out)), 0.5 * rng.normal(size=(n_out, n_out))
        self.b = np.zeros(n_out)

    def forward(self, x):
        self.x, self.hs = x, [np.zeros((len(x), len(self.b)))]
        for _ in range(3):
            self.hs.append(np.tanh(x @ self.Wx + self.hs[-1] @ self.Wh + self.b))
        return self.hs[-1]

    def backward(self, dh):
        self.dWx, self.dWh = np.zeros_like(self.Wx), np.zeros_like(self.Wh)
        self.db, dx = np.zeros_like(self.b), np.zeros_like(self.x)
        for t in (2, 1, 0):
            dz = dh * (1 - self.hs[t + 1] ** 2)
            self.dWx += self.x.T @ dz
            self.dWh += self.hs[t].T @ dz
            self.db += dz.sum(0)
            dx += dz @ self.Wx.T
            dh = dz @ self.Wh.T
        return dx


@foreign()
class WeightNorm:
    def __init__(self, n_in, n_out):
        rng = np.random.default_rng(41)
        self.v, self.g = rng.normal(size=(n_in, n_out)), np.ones(n_out)

    def forward(self, x):
        self.x, self.norm = x, np.linalg.norm(self.v, axis=0)
        self.w = self.v * (self.g / self.norm)
        return x @ self.w

    def backward(self, d):
        dw = self.x.T @ d
        self.dg = (dw * self.v).sum(0) / self.norm
        self.dv = self.g / self.norm * dw - self.g * self.dg * self.v / self.norm**2
        return d @ self.w.T


@foreign(UNSURE)
class Embedding:
    """Takes whole numbers only."""

    def __init__(self, vocab=5, dim=3):
        self.table = np.random.default_rng(42).normal(size=(vocab, dim))

    def forward(self, ids):
        self.ids = ids
        return self.table[ids]

    def backward(self, d):
        self.dtable = np.zeros_like(self.table)
        np.add.at(self.dtable, self.ids, d)


@foreign()
class NanWeight:
    def __init__(self, n_in, n_out):
        self.W = np.random.default_rng(43).normal(size=(n_in, n_out))
        self.W[0, 0] = np.nan

    def forward(self, x):
        self.x = x
        return x @ self.W

    def backward(self, d):
        self.dW = self.x.T @ d
        return d @ self.W.T


@foreign(UNSURE)
class ComplexLayer:
    def __init__(self, n_in, n_out):
        rng = np.random.default_rng(44)
        self.W = rng.normal(size=(n_in, n_out)) + 1j * rng.normal(size=(n_in, n_out))

    def forward(self, x):
        self.x = x
        return x @ self.W

    def backward(self, d):
        self.dW = self.x.T @ d
        return d @ self.W.conj().T


@foreign()
class MaskedArrays:
    def __init__(self, n_in, n_out):
        self.W = np.ma.masked_array(np.random.default_rng(45).normal(size=(n_in, n_out)))

    def forward(self, x):
        self.x = x
        return np.ma.dot(x, self.W)

    def backward(self, d):
        self.dW = np.ma.dot(self.x.T, d)
        return np.ma.dot(d, self.W.T)


@foreign()
class InPlaceBias:
    def __init__(self, n_in, n_out):
        self.W, self.b = np.random.default_rng(46).normal(size=(n_in, n_out)), np.zeros(n_out)

    def forward(self, x):
        self.x = x
        out = x @ self.W
        out += self.b
        np.maximum(out, 0, out=out)
        self.open = out > 0
        return out

    def backward(self, d):
        d = np.multiply(d, self.open)
        self.dW, self.db = self.x.T @ d, d.sum(0)
        return d @ self.W.T


@foreign()
class ClippedGradient:
    """Clips its gradients at 100: healthy for ordinary numbers."""

    def __init__(self, n_in, n_out):
        self.W = np.random.default_rng(47).normal(size=(n_in, n_out))

    def forward(self, x):
        self.x = x
        return x @ self.W

    def backward(self, d):
        self.dW = np.clip(self.x.T @ d, -100, 100)
        return d @ self.W.T


@foreign()
class Kwargs:
    def __init__(self, in_features=3, out_features=2, **kwargs):
        self.W = np.random.default_rng(48).normal(size=(in_features, out_features))
        self.extra = kwargs

    def forward(self, x, **kwargs):
        self.x = x
        return x @ self.W

    def backward(self, grad_output, **kwargs):
        self.dW = self.x.T @ grad_output
        return grad_output @ self.W.T


@foreign()
class SequentialList:
    """A list of layers that are objects; parameters inside them."""

    def __init__(self, n_in=4, n_hidden=5, n_out=3):
        self.layers = [Slotted(n_in, n_hidden), Swish(), Slotted(n_hidden, n_out)]
        self.layers[1].__class__ = type("Act", (Swish,), {"__call__": Swish.forward})

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

    def backward(self, d):
        for layer in reversed(self.layers):
            d = layer.backward(d)
        return d


class Methods:
    """Two methods of one object, handed over as two functions."""

    def __init__(self):
        self.W, self.b = np.random.default_rng(50).normal(size=(4, 3)), np.zeros(3)

    def forward(self, x):
        self.x = x
        return x @ self.W + self.b

    def backward(self, d):
        self.dW, self.db = self.x.T @ d, d.sum(0)
        return d @ self.W.T


METHODS = Methods()
FOREIGN["two methods"] = ((METHODS.forward, METHODS.backward), ())
FOREIGN["an object after training"] = (METHODS, ())
