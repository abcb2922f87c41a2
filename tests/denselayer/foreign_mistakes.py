"""The same code with one line or two that are wrong, as a slip makes them."""

import inspect

from tests.denselayer import foreign_layers
from tests.denselayer.foreign_layers import FOREIGN, UNSURE


def broken(base, changes, *defects, name=None):
    """Put a version of a subject with other lines among the subjects."""
    source = inspect.getsource(vars(foreign_layers)[base])
    for old, new in changes.items():
        assert old in source, (base, old)
        source = source.replace(old, new)
    space = {**vars(foreign_layers), "foreign": lambda *_: lambda made: made}
    exec(compile(source, foreign_layers.__file__, "exec"), space)
    made = space[base]
    named = name or f"{base} with {next(iter(changes.values()))}"
    FOREIGN[named] = (made if isinstance(made, type) else made(), defects)


broken("Schicht", {"delta.sum(axis=0)": "delta.mean(axis=0)"}, "bias-averaged")
broken("Schicht", {"delta.T @ self.x": "self.x.T @ delta"}, "weight-transposed")
broken("LayerWithRate", {"axis=0, keepdims=True": "axis=1, keepdims=True"}, "bias-wrong-axis")
broken("LayerWithRate", {"np.dot(self.inputs.T, dvalues)": "-np.dot(self.inputs.T, dvalues)"}, "sign-flipped")
broken("Slotted", {"g.sum(0)": "g"}, "bias-not-summed")
broken("Slotted", {"g.dot(self.W.T)": "g.dot(self.W.T) / len(g)"}, "factor")
broken("DataLayer", {"1 - y * y": "1 - np.tanh(y) ** 2"}, "derivative-at-output")
broken("DataLayer", {"dz = dy * (1 - y * y)": "dz = dy * y * (1 - y)"}, "other-derivative")
broken("DataLayer", {"dz.sum(0)": "dy.sum(0)"}, "gate-missing")
broken("WithTensors", {"p.grad = np.zeros_like(p.value)": "pass"}, "not-cleared")
broken("WithTensors", {"self.kernel.grad += ": "self.kernel.grad -= "}, "sign-flipped")
broken("ColumnNoBias", {"delta @ self.a.T": "delta @ self.a.T / delta.shape[1]"}, "all-averaged")
broken("ColumnNoBias", {"self.W.T @ delta": "self.W @ delta"}, "input-weight-transposed")
broken(
    "ColumnBias", {"np.sum(dZ, axis=1, keepdims=True)": "np.sum(dA, axis=1, keepdims=True)"}, "gate-missing"
)
broken("ColumnBias", {"s * (1 - s)": "self.Z * (1 - self.Z)"}, "derivative-at-input")
broken("ColumnBias", {"np.sum(dZ, axis=1, keepdims=True)": "np.sum(dZ, axis=1)"}, "wrong-shape")
broken(
    "ColumnBias", {"axis=1, keepdims=True": "keepdims=True"}, "wrong-shape", name="ColumnBias summed over all"
)
broken("Residual", {"return dout + dh": "return dh"}, UNSURE, name="Residual without the skip")
broken("Residual", {"(self.h > 0)": "(dout > 0)"}, "gate-on-upstream", UNSURE)
broken("Residual", {"dout @ self.W2.T * (self.h > 0)": "dout @ self.W2.T"}, "gate-missing", UNSURE)
broken(
    "LayerNorm",
    {"self.dgamma = (dout * self.xh).sum(0)": "self.dgamma = (dout * self.xh).mean(0)"},
    "weight-averaged",
    name="LayerNorm, gamma averaged",
)
broken(
    "LayerNorm",
    {" - self.xh * (d * self.xh).mean(-1, keepdims=True)": ""},
    UNSURE,
    name="LayerNorm without its second term",
)
broken(
    "SoftmaxHead",
    {"self.p * (dp - (dp * self.p).sum(1, keepdims=True))": "dp"},
    UNSURE,
    name="SoftmaxHead without the Jacobian",
)
broken(
    "SoftmaxHead",
    {"self.p * (dp - (dp * self.p).sum(1, keepdims=True))": "dp * self.p * (1 - self.p)"},
    UNSURE,
    name="SoftmaxHead, diagonal alone",
)
broken("SoftmaxHead", {"e = np.exp(z - z.max(1, keepdims=True))": "e = np.exp(z)"}, "unstable-softmax")
broken("PropertyLayer", {"grad_output.sum(0)": "grad_output.sum(0) * len(grad_output)"}, "bias-times-batch")
broken("Lazy", {"d.sum(0)": "np.zeros_like(self.b)"}, "bias-zero")
broken(
    "Gated",
    {"d * self.v * self.s * (1 - self.s)": "d * self.v * self.s"},
    UNSURE,
    name="Gated, half a derivative",
)
broken("MLPDict", {"self.a1.T.dot(dscores)": "self.a1.T.dot(dscores) / len(dscores)"}, "weight-averaged")
broken("MLPDict", {"da[self.a1 <= 0] = 0": "da[da <= 0] = 0"}, "gate-on-upstream")
broken("MLPDict", {"da[self.a1 <= 0] = 0": "pass"}, "gate-missing")
broken(
    "MLPDict",
    {'dscores.dot(p["W2"].T)': 'dscores.dot(p["W2"].T) * 3'},
    "factor",
    name="MLPDict, times 3 on the way down",
)
broken(
    "NetworkLists",
    {"delta = delta * a * (1 - a)": "delta = delta * a"},
    "activation-for-derivative",
    name="NetworkLists, half a derivative",
)
broken(
    "NetworkLists",
    {"delta = w.T @ delta": "delta = 2 * w.T @ delta"},
    "factor",
    "factor-two",
    name="NetworkLists, times 2 on the way down",
)
broken("ConvAsMatmul", {"d.sum()": "d.mean()"}, "factor", name="ConvAsMatmul, bias averaged")
broken("ConvAsMatmul", {"+= d * self": "= d * self"}, UNSURE, name="ConvAsMatmul, overwritten")
broken("EyeWeight", {"d @ self.W.T": "d @ self.W"}, "input-weight-transposed")
broken("Perceptron", {"dz.sum()": "d.sum()"}, "gate-missing")
broken("Perceptron", {"self.X.T @ dz": "self.X.T @ dz / len(dz)"}, "weight-averaged")
broken("StackOfCaches", {"self.stack.pop()": "self.stack[0]"}, "stale-cache")
broken("Counting", {"self.x = x": "Counting.x = x", "self.x.T": "Counting.x.T"}, "stale-cache")
broken("Masked", {"(self.x.T @ d) * self.mask": "self.x.T @ d"}, UNSURE, name="Masked, mask forgotten")
broken("Scaled", {"self.x.T @ d * self.gain": "self.x.T @ d"}, "factor", name="Scaled, gain forgotten")
broken("TiedAutoencoder", {"d.T @ self.h + self.x.T @ dh": "self.x.T @ dh"}, "shared-weight-overwritten")
broken(
    "TiedAutoencoder",
    {"d.T @ self.h + self.x.T @ dh": "d.T @ self.h"},
    "shared-weight-overwritten",
    name="Tied, output share alone",
)
broken("Attention", {"(self.x @ (self.W + self.W.T))": "(self.x @ self.W)"}, UNSURE, name="Attention, half")
broken("NamedTuples", {"np.where(self.z > 0, 1.0, 0.2)": "(self.z > 0)"}, "other-derivative")
broken("NamedTuples", {"dz.sum(0)": "dz.mean(0)", "self.x.T @ dz": "self.x.T @ dz / len(dz)"}, "all-averaged")
broken("PReLU", {".sum(0)": ".mean(0)"}, "weight-averaged", name="PReLU averaged")
broken("Swish", {"(s + self.x * s * (1 - s))": "s * (1 - s)"}, "other-derivative")
broken("Backwards3d", {"d @ self.W.T": "d @ self.W.T * 0.5"}, "factor-two")
broken("LowRank", {"self.dV = self.h.T @ d": "self.dV = d.T @ self.h"}, "weight-transposed")
broken("closures", {"grad.sum(0)": "grad.mean(0)"}, "bias-averaged")
broken("partials", {"dout * (z > 0) if": "dout * (dout > 0) if"}, "gate-on-upstream")
broken("lambdas", {"d.sum(0)": "d.sum(1)"}, "bias-wrong-axis")
broken("lambdas", {"x.T @ d": "x.T @ d * 0.01"}, "factor")
broken(
    "list_of_gradients",
    {"dZ.sum(axis=0)": "(dZ @ W).sum(axis=0)"},
    "wrong-shape",
    name="list_of_gradients, d_x summed",
)
broken("softmax_alone", {"(np.diag(row) - np.outer(row, row)) @ up": "up"}, "softmax-jacobian-missing")
broken(
    "softmax_alone",
    {"(np.diag(row) - np.outer(row, row)) @ up": "row * (1 - row) * up"},
    UNSURE,
    name="softmax_alone, diagonal alone",
)
broken("sigmoid_from_output", {"grad * a * (1 - a)": "grad * sig(a) * (1 - sig(a))"}, "derivative-at-output")
broken("sigmoid_from_output", {"grad * a * (1 - a)": "a * (1 - a)"}, "upstream-ignored")
broken("RecurrentStep", {"self.dWx += ": "self.dWx = "}, "shared-weight-overwritten", UNSURE)
broken(
    "RecurrentStep",
    {"dh = dz @ self.Wh.T": "dh = dz @ self.Wh"},
    UNSURE,
    name="RecurrentStep, Wh not transposed",
)
broken(
    "WeightNorm",
    {" - self.g * self.dg * self.v / self.norm**2": ""},
    UNSURE,
    name="WeightNorm, projection forgotten",
)
broken("MaxPoolDense", {"route.sum(0)": "route.mean(0)"}, "bias-averaged", name="MaxPoolDense, averaged")
broken("InPlaceBias", {"d = np.multiply(d, self.open)": "d *= self.open"}, "upstream-changed")
broken("Chatty", {"self.x = x": "self.x = x; x /= np.abs(x).max()"}, "input-changed")
broken("Hidden", {"d.sum(0)": "d.mean(0)"}, "bias-averaged")
broken("Russian", {"d.sum(0)": "d.mean(0)"}, "bias-averaged", name="Russian, bias averaged")
broken("Kwargs", {"self.x.T @ grad_output": "None"}, "gradient-zero")
broken("ClippedGradient", {"-100, 100": "-1, 1"}, UNSURE, name="Clipped at 1")
broken("NumpyMatrix", {".sum(axis=1)": ".mean(axis=1)"}, "bias-averaged")
