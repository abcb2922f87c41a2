"""Layers as people write them, in many spellings; right unless the name says otherwise."""

from itertools import pairwise

import numpy as np


def affine_forward(x, w, b):
    return x.reshape(x.shape[0], -1).dot(w) + b, (x, w, b)


def affine_backward(dout, cache):
    x, w, _ = cache
    return dout.dot(w.T).reshape(x.shape), x.reshape(x.shape[0], -1).T.dot(dout), np.sum(dout, axis=0)


def affine_backward_over_units(dout, cache):
    x, w, _ = cache
    return dout.dot(w.T), x.T.dot(dout), np.sum(dout, axis=1)


def relu_forward(x):
    return np.maximum(0, x), x


def relu_backward(dout, cache):
    dx = dout.copy()
    dx[cache <= 0] = 0
    return dx


def relu_backward_on_upstream(dout, cache):
    dx = dout.copy()
    dx[dout <= 0] = 0
    return dx


def affine_relu_forward(x, w, b):
    a, affine_cache = affine_forward(x, w, b)
    out, relu_cache = relu_forward(a)
    return out, (affine_cache, relu_cache)


def affine_relu_backward(dout, cache):
    return affine_backward(relu_backward(dout, cache[1]), cache[0])


def affine_relu_backward_ungated(dout, cache):
    return affine_backward(dout, cache[0])


def linear_forward(A, W, b):
    return W.dot(A) + b, (A, W, b)


def linear_backward_with_mean(dZ, cache):
    A_prev, W, _ = cache
    m = A_prev.shape[1]
    return np.dot(W.T, dZ), np.dot(dZ, A_prev.T) / m, np.sum(dZ, axis=1, keepdims=True) / m


def weights_first_forward(W, b, x):
    return x @ W.T + b


def weights_first_backward(W, b, x, grad):
    return {"dW": grad.T @ x, "db": grad.sum(0), "dx": grad @ W}


def augmented_forward(x, W):
    return W @ np.vstack([np.ones(x.shape[1]), x])


def augmented_backward(d, x, W):
    return (W.T @ d)[1:], d @ np.vstack([np.ones(x.shape[1]), x]).T


def augmented_backward_without_bias(d, x, W):
    d_weight = d @ np.vstack([np.ones(x.shape[1]), x]).T
    d_weight[:, 0] = 0
    return (W.T @ d)[1:], d_weight


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def sigmoid_backward(d_out, out):
    return d_out * out * (1 - out)


def sigmoid_backward_at_input(grad, x):
    return grad * x * (1 - x)


class StoresItsOutput:
    """Forward and backward return nothing."""

    def __init__(self, n_inputs, n_neurons):
        self.weights = 0.01 * np.random.randn(n_inputs, n_neurons)
        self.biases = np.zeros((1, n_neurons))

    def forward(self, inputs):
        self.inputs = inputs
        self.output = np.dot(inputs, self.weights) + self.biases

    def backward(self, dvalues):
        self.dweights = np.dot(self.inputs.T, dvalues)
        self.dbiases = np.sum(dvalues, axis=0, keepdims=True)
        self.dinputs = np.dot(dvalues, self.weights.T)


class UnitsFirst:
    """The number of units comes first, and the layer is called."""

    def __init__(self, units, input_dim):
        self.kernel, self.bias = np.random.randn(input_dim, units), np.zeros(units)

    def __call__(self, x):
        self.x = x
        return x @ self.kernel + self.bias

    def backward(self, grad):
        self.grad_kernel, self.grad_bias = self.x.T @ grad, grad.sum(0)
        return grad @ self.kernel.T


class TakesArrays:
    """Made from its arrays."""

    def __init__(self, W, b):
        self.W, self.b = W, b
        self.x = self.dW = self.db = None

    def forward(self, x):
        self.x = x
        return np.dot(x, self.W) + self.b

    def backward(self, dout):
        self.dW, self.db = np.dot(self.x.T, dout), np.sum(dout, axis=0)
        return np.dot(dout, self.W.T)


class OutByIn:
    """Stored as in PyTorch."""

    def __init__(self, in_features, out_features):
        self.weight = np.random.randn(out_features, in_features)
        self.bias = np.random.randn(out_features)

    def forward(self, input):
        self.input = input
        return input @ self.weight.T + self.bias

    def backward(self, grad_output):
        self.weight_grad = grad_output.T @ self.input
        self.bias_grad = grad_output.sum(axis=0)
        return grad_output @ self.weight


class Columns:
    """A batch in columns, the gradients under their mathematical names."""

    def __init__(self, n_in, n_out):
        self.w, self.b = np.random.randn(n_out, n_in), np.random.randn(n_out, 1)

    def forward(self, a):
        self.a = a
        return self.w @ a + self.b

    def backward(self, delta):
        self.nabla_w, self.nabla_b = delta @ self.a.T, delta.sum(axis=1, keepdims=True)
        return self.w.T @ delta


class Neuron:
    """One neuron, its bias a float."""

    def __init__(self, n_inputs):
        self.w, self.b = np.random.randn(n_inputs), 0.0

    def forward(self, x):
        self.x = x
        return np.dot(x, self.w) + self.b

    def backward(self, d):
        self.dw, self.db = d @ self.x, d.sum()
        return np.outer(d, self.w)


class OneSample:
    """Takes one sample at a time."""

    def __init__(self, n_in, n_out):
        self.W, self.b = np.random.randn(n_out, n_in), np.zeros(n_out)

    def forward(self, x):
        self.x = x
        return self.W @ x + self.b

    def backward(self, d):
        self.dW, self.db = np.outer(d, self.x), d
        return self.W.T @ d


class OneSampleTransposed(OneSample):
    """The outer product the wrong way round."""

    def backward(self, d):
        self.dW, self.db = np.outer(self.x, d), d
        return self.W.T @ d


class UpdatesAtOnce:
    """The backward pass updates, with a rate that it is given."""

    def __init__(self, input_size, output_size):
        self.weights = np.random.rand(input_size, output_size) - 0.5
        self.bias = np.random.rand(1, output_size) - 0.5

    def forward_propagation(self, input_data):
        self.input = input_data
        return np.dot(input_data, self.weights) + self.bias

    def backward_propagation(self, output_error, learning_rate):
        input_error = np.dot(output_error, self.weights.T)
        self.weights -= learning_rate * np.dot(self.input.T, output_error)
        self.bias -= learning_rate * output_error.sum(axis=0)
        return input_error


class TwoLayers:
    """A network with its arrays in dicts."""

    def __init__(self, input_size, hidden_size, output_size):
        shapes = {"W1": (input_size, hidden_size), "W2": (hidden_size, output_size)}
        self.params = {name: np.random.randn(*shape) for name, shape in shapes.items()}
        self.params |= {"b1": np.zeros(hidden_size), "b2": np.zeros(output_size)}

    def forward(self, X):
        self.X = X
        self.z1 = X @ self.params["W1"] + self.params["b1"]
        self.a1 = np.maximum(0, self.z1)
        return self.a1 @ self.params["W2"] + self.params["b2"]

    def gate(self, d):
        return d * (self.z1 > 0)

    def backward(self, dout):
        d = self.gate(dout @ self.params["W2"].T)
        self.grads = {"W2": self.a1.T @ dout, "b2": dout.sum(0), "W1": self.X.T @ d, "b1": d.sum(0)}
        return d @ self.params["W1"].T


class TwoLayersUngated(TwoLayers):
    """Forgets the hidden gate."""

    def gate(self, d):
        return d


class Lists:
    """A network with its arrays in lists."""

    def __init__(self, sizes):
        self.weights = [np.random.randn(a, b) for a, b in pairwise(sizes)]
        self.biases = [np.zeros(b) for b in sizes[1:]]

    def forward(self, x):
        self.acts = [x]
        for W, b in zip(self.weights, self.biases, strict=True):
            self.acts.append(np.tanh(self.acts[-1] @ W + b))
        return self.acts[-1]

    def backward(self, d):
        count = len(self.weights)
        self.dW, self.db = [None] * count, [None] * count
        for i in reversed(range(count)):
            d = d * (1 - self.acts[i + 1] ** 2)
            self.dW[i], self.db[i] = self.acts[i].T @ d, d.sum(0)
            d = d @ self.weights[i].T
        return d


class WithActivation:
    """A layer with an activation by name, and the mean over the batch inside."""

    def __init__(self, n_in, n_out, activation):
        self.W, self.b, self.act = np.random.randn(n_in, n_out), np.zeros(n_out), activation

    def forward(self, x):
        self.x = x
        self.z = x @ self.W + self.b
        return np.maximum(self.z, 0) if self.act == "relu" else np.tanh(self.z)

    def backward(self, d):
        d = d * ((self.z > 0) if self.act == "relu" else 1 - np.tanh(self.z) ** 2)
        self.dW, self.db = self.x.T @ d / len(self.x), d.mean(0)
        return d @ self.W.T


class TanhAtOutput:
    """An activation that keeps its output, and takes the tanh of it once more."""

    def __call__(self, z):
        self.a = np.tanh(z)
        return self.a

    def backward(self, g):
        return g * (1 - np.tanh(self.a) ** 2)


class Softmax:
    """The softmax of each row."""

    def forward(self, x):
        e = np.exp(x - x.max(axis=1, keepdims=True))
        self.p = e / e.sum(axis=1, keepdims=True)
        return self.p

    def backward(self, d):
        return self.p * (d - (d * self.p).sum(axis=1, keepdims=True))


class SoftmaxPassedThrough(Softmax):
    """Hands the gradient through."""

    def backward(self, d):
        return d
