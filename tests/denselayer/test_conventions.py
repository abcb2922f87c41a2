"""Every formula of every convention has the value of its TeX, of its NumPy, of ours and of PyTorch's."""

import doctest
import re
from itertools import product

import numpy as np
import pytest

from denselayer import _formulas, conventions, cost, functional, layouts
from denselayer.conventions import BATCHES, FORMULAS, LABELS, LAYOUTS, REDUCTIONS, SYMBOLS, find

N, IN, HIDDEN, OUT = 5, 4, 2, 3
CONVENTIONS = list(product(LAYOUTS, BATCHES, REDUCTIONS))
LAYOUTS_AND_BATCHES = list(product(LAYOUTS, BATCHES))
PARTS = {"forward", "d_weight", "d_bias", "d_x"}


def numbers(*shape):
    return np.random.default_rng(shape).normal(size=shape)


X, WEIGHT, BIAS, D_OUT = numbers(N, IN), numbers(OUT, IN), numbers(OUT), numbers(N, OUT)
WEIGHT1, BIAS1, WEIGHT2 = numbers(HIDDEN, IN), numbers(HIDDEN), numbers(OUT, HIDDEN)
CLASSES = np.array([2, 0, 1, 1, 2])


def turned(array, batch):
    """A batch of rows as this convention has it, or the other way round."""
    return array if batch == "rows" else array.T


def arrays_of(layout, batch):
    """The arrays that formulas of this convention may name."""
    weight, bias = layouts.convert(WEIGHT, BIAS, "out_in", layout)
    weight1, bias1 = layouts.convert(WEIGHT1, BIAS1, "out_in", layout)
    weight2, bias2 = layouts.convert(WEIGHT2, BIAS, "out_in", layout)
    arrays = {
        "x": turned(X, batch),
        "weight": weight,
        "bias": bias,
        "d_out": turned(D_OUT, batch),
        "output": turned(functional.linear(X, WEIGHT, BIAS), batch),
        "target": turned(np.eye(OUT)[CLASSES], batch),
        "weight1": weight1,
        "bias1": bias1,
        "weight2": weight2,
        "bias2": bias2,
        "N": N,
    }
    return arrays | {"d_weight": find("d_weight", layout, batch)(**arrays)}


def ours():
    """The arrays of the book, which the formulas of the storage start from."""
    return {"x": X, "weight": WEIGHT, "bias": BIAS, "output": functional.linear(X, WEIGHT, BIAS)}


def entries():
    """(convention, entry) for all conventions: an entry as often as it holds."""
    return [
        pytest.param(convention, entry, id="-".join((entry.name, *convention)))
        for convention in CONVENTIONS
        for entry in FORMULAS
        if entry.holds(*convention)
    ]


def assert_close(actual, expected):
    assert np.shape(actual) == np.shape(expected)
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)


# ---------- TeX as a program ----------


class TeX:
    """The value of a formula: sums, products by juxtaposition, transposes, fractions, squared norms."""

    def __init__(self, layout, batch, arrays):
        self.values = {"N": N, r"n_\text{in}": IN, r"n_\text{out}": OUT}
        for symbol in SYMBOLS:
            if symbol.holds(layout, batch, None):
                self.values[symbol.tex] = symbol, arrays
        names = sorted(self.values, key=len, reverse=True)
        self.token = re.compile("|".join([*map(re.escape, names), r"\\[A-Za-z]+|\^\\top|\^2|\d+|\S"]))

    def __call__(self, tex):
        indexed = re.fullmatch(r"(.*?)\\sum_\{n,i\} T_\{(\w\w)\} \\log P_\{(\w\w)\}", tex)
        if indexed:
            scale = indexed[1] + "1" if indexed[1] else "1"
            target, p = self.lookup(r"\mathbf{T}"), self.lookup(r"\mathbf{P}")
            for letters in indexed.groups()[1:]:
                sizes = dict(zip(letters, target.shape, strict=True))
                assert sizes == {"n": N, "i": OUT}
            return self(scale) * np.einsum(f"{indexed[2]},{indexed[3]}", target, np.log(p))
        self.tokens = self.token.findall(tex.replace(r"\,", ""))
        value = self.sum()
        assert not self.tokens
        return value

    def lookup(self, name):
        value = self.values[name]
        if isinstance(value, tuple):
            symbol, arrays = value
            return symbol(**arrays)
        return value

    def take(self, wanted=None):
        token = self.tokens.pop(0)
        assert wanted in (None, token)
        return token

    def sum(self):
        negative = self.next("-") and self.take("-")
        value = self.product()
        value = -value if negative else value
        while self.next("+") or self.next("-"):
            value = value + self.product() if self.take() == "+" else value - self.product()
        return value

    def next(self, token):
        return bool(self.tokens) and self.tokens[0] == token

    def product(self):
        value = self.power()
        while self.tokens and self.tokens[0] not in ("+", "-", ")", "}", r"\rVert", "&", r"\end"):
            factor = self.power()
            both = np.ndim(value) == 2 and np.ndim(factor) == 2
            value = value @ factor if both else value * factor
        return value

    def power(self):
        value = self.atom()
        while self.next(r"^\top"):
            self.take()
            value = value.T
        return value

    def atom(self):
        token = self.take()
        if token in self.values:
            return self.lookup(token)
        if token == "(":
            value = self.sum()
            self.take(")")
            return value
        if token == r"\frac":
            return self.braced() / self.braced()
        if token == r"\lVert":
            value = self.sum()
            self.take(r"\rVert")
            self.take("^2")
            return np.sum(value**2)
        if token == r"\begin":
            return self.matrix()
        return int(token)

    def braced(self):
        self.take("{")
        value = self.sum()
        self.take("}")
        return value

    def matrix(self):
        opening = [self.take() for _ in "{bmatrix}"]
        assert "".join(opening) == "{bmatrix}"
        columns = [self.sum()]
        while self.next("&"):
            self.take("&")
            columns.append(self.sum())
        assert "".join(self.tokens) == r"\end{bmatrix}"
        self.tokens.clear()
        return np.hstack(columns)


@pytest.mark.parametrize(("convention", "entry"), entries())
def test_the_tex_has_the_value_of_the_numpy(convention, entry):
    layout, batch, _ = convention
    stored = entry.name in conventions.STORAGE
    arrays = ours() if stored else arrays_of(layout, batch)
    tex = TeX(*(("out_in", "rows") if stored else (layout, batch)), arrays)(entry.tex)
    value = entry(**arrays)
    if np.ndim(value) == 1:
        tex = tex.ravel()
    assert_close(tex, value)


def test_the_reader_of_tex_tells_a_product_from_its_reverse_and_a_matrix_from_its_transpose():
    read = TeX("out_in", "rows", arrays_of("out_in", "rows"))
    assert_close(read(r"\mathrm{d}\mathbf{Y} \mathbf{W}"), D_OUT @ WEIGHT)
    assert_close(
        read(r"2 \mathbf{X}^\top \mathrm{d}\mathbf{Y} - \mathbf{W}^\top"), 2 * X.T @ D_OUT - WEIGHT.T
    )
    for wrong in (r"\mathbf{W} \mathrm{d}\mathbf{Y}", r"\mathrm{d}\mathbf{Y} \mathbf{W}^\top"):
        with pytest.raises(ValueError):
            read(wrong)


# ---------- shapes ----------


@pytest.mark.parametrize(("convention", "entry"), entries())
def test_the_shapes_are_those_of_the_result_and_chain_up_to_it(convention, entry):
    sizes = {"N": N, "in": IN, "hidden": HIDDEN, "out": OUT, "1 + in": 1 + IN, "1 + hidden": 1 + HIDDEN}
    layout, batch, _ = convention
    arrays = ours() if entry.name in conventions.STORAGE else arrays_of(layout, batch)
    factors, arrow, result = entry.note.rpartition(" → ")
    widths = [size for size in result.strip("(),").split(", ") if size]
    assert np.shape(entry(**arrays)) == tuple(sizes[size] for size in widths)
    if arrow:
        left, right = (factor.strip("()").split(", ") for factor in factors.split(") ("))
        assert left[1] == right[0]
        assert [left[0], right[1]][: len(widths)] == widths
        assert len(widths) == 2 or right[1] == "1"


# ---------- values ----------


@pytest.mark.parametrize(("layout", "batch"), LAYOUTS_AND_BATCHES)
def test_the_storage_formulas_make_the_arrays_of_the_layout_from_ours(layout, batch):
    arrays = arrays_of(layout, batch)
    for name, argument in (("input", "x"), ("weight", "weight"), ("output", "output")):
        np.testing.assert_array_equal(find(name, layout, batch)(**ours()), arrays[argument])
    if layout != "augmented":
        np.testing.assert_array_equal(find("bias", layout, batch)(**ours()), arrays["bias"])


@pytest.mark.parametrize(("layout", "batch"), LAYOUTS_AND_BATCHES)
def test_the_layer_is_ours(layout, batch):
    arrays = arrays_of(layout, batch)
    values = {name: find(name, layout, batch)(**arrays) for name in PARTS}
    expected = functional.linear_backward(D_OUT, X, WEIGHT)
    d_weight, d_bias = layouts.convert(expected.d_weight, expected.d_bias, "out_in", layout)
    assert_close(values["forward"], turned(functional.linear(X, WEIGHT, BIAS), batch))
    assert_close(values["d_weight"], d_weight)
    assert_close(values["d_bias"], expected.d_bias if d_bias is None else d_bias)
    assert_close(values["d_x"], turned(expected.d_x, batch))


@pytest.mark.parametrize(
    ("layout", "batch"), [("out_in", "rows"), ("in_out", "rows"), ("augmented", "columns")]
)
def test_the_layer_is_the_one_of_layouts(layout, batch):
    arrays = arrays_of(layout, batch)
    layer = [arrays[name] for name in ("x", "weight", "bias")]
    assert_close(find("forward", layout, batch)(**arrays), layouts.forward(*layer, layout))
    gradients = layouts.backward(arrays["d_out"], *layer, layout)
    for name in ("d_x", "d_weight", "d_bias"):
        if getattr(gradients, name) is not None:
            assert_close(find(name, layout, batch)(**arrays), getattr(gradients, name))


@pytest.mark.parametrize(("layout", "batch"), LAYOUTS_AND_BATCHES)
def test_the_layer_is_the_one_of_pytorch(layout, batch):
    torch = pytest.importorskip("torch")
    x, weight, bias = (torch.tensor(array, requires_grad=True) for array in (X, WEIGHT, BIAS))
    out = torch.nn.functional.linear(x, weight, bias)
    out.backward(torch.tensor(D_OUT))
    d_weight, d_bias = layouts.convert(weight.grad.numpy(), bias.grad.numpy(), "out_in", layout)
    arrays = arrays_of(layout, batch)
    assert_close(find("forward", layout, batch)(**arrays), turned(out.detach().numpy(), batch))
    assert_close(find("d_weight", layout, batch)(**arrays), d_weight)
    assert_close(find("d_bias", layout, batch)(**arrays), bias.grad.numpy() if d_bias is None else d_bias)
    assert_close(find("d_x", layout, batch)(**arrays), turned(x.grad.numpy(), batch))


@pytest.mark.parametrize(("layout", "batch"), LAYOUTS_AND_BATCHES)
def test_one_layer_does_what_two_did(layout, batch):
    arrays = arrays_of(layout, batch)
    forward = find("forward", layout, batch)
    below = forward(x=arrays["x"], weight=arrays["weight1"], bias=arrays["bias1"])
    two = forward(x=below, weight=arrays["weight2"], bias=arrays["bias2"])
    bias = None if layout == "augmented" else find("collapse_bias", layout, batch)(**arrays)
    one = forward(x=arrays["x"], weight=find("collapse_weight", layout, batch)(**arrays), bias=bias)
    assert_close(one, two)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_number_of_parameters_depends_on_no_convention(layout):
    arrays = arrays_of(layout, "rows")
    assert find("parameters", layout)(**arrays) == cost.linear_parameters(IN, OUT)


@pytest.mark.parametrize(("batch", "reduction"), list(product(BATCHES, REDUCTIONS)))
def test_the_losses_and_their_gradients_are_those_of_functional_and_of_pytorch(batch, reduction):
    torch = pytest.importorskip("torch")
    arrays = arrays_of("out_in", batch)
    output, target = (turned(arrays[name], batch) for name in ("output", "target"))
    theirs = {"mse": (torch.nn.functional.mse_loss, torch.tensor(target))}
    theirs["cross_entropy"] = torch.nn.functional.cross_entropy, torch.tensor(CLASSES)
    for name, against in (("mse", target), ("cross_entropy", CLASSES)):
        own = getattr(functional, "mse_loss" if name == "mse" else name)
        own_backward = getattr(functional, "mse_loss_backward" if name == "mse" else f"{name}_backward")
        loss = find(name, batch=batch, reduction=reduction)(**arrays)
        gradient = find(f"d_{name}", batch=batch, reduction=reduction)(**arrays)
        assert_close(loss, own(output, against, reduction))
        assert_close(gradient, turned(own_backward(output, against, reduction), batch))

        tensor = torch.tensor(output, requires_grad=True)
        function, torch_target = theirs[name]
        expected = function(tensor, torch_target, reduction=reduction)
        expected.backward()
        assert_close(loss, expected.item())
        assert_close(gradient, turned(tensor.grad.numpy(), batch))


@pytest.mark.equation("eq-conventions-rows")
def test_the_bias_of_a_batch_of_rows_is_a_product_with_ones():
    product_with_ones = X @ WEIGHT.T + np.ones((N, 1)) @ BIAS[None, :]
    assert_close(find("forward")(x=X, weight=WEIGHT, bias=BIAS), product_with_ones)
    for n, i in product(range(N), range(OUT)):
        loop = BIAS[i] + sum(X[n, j] * WEIGHT[i, j] for j in range(IN))
        assert product_with_ones[n, i] == pytest.approx(loop, rel=1e-12)


@pytest.mark.equation("eq-conventions-columns")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_columns_are_the_transpose_of_rows(layout):
    rows, columns = arrays_of(layout, "rows"), arrays_of(layout, "columns")
    for name in ("forward", "d_x"):
        assert_close(find(name, layout, "columns")(**columns), find(name, layout, "rows")(**rows).T)
    for name in ("d_weight", "d_bias"):
        assert_close(find(name, layout, "columns")(**columns), find(name, layout, "rows")(**rows))
    assert_close(WEIGHT @ X.T + BIAS[:, None] @ np.ones((1, N)), functional.linear(X, WEIGHT, BIAS).T)


# ---------- tables ----------


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_a_convention_has_each_formula_once(convention):
    names = [entry.name for entry in FORMULAS if entry.holds(*convention)]
    missing = {"bias", "collapse_bias"} if convention[0] == "augmented" else set()
    assert len(names) == len(set(names))
    assert set(names) == set(LABELS) - missing


def test_the_parts_of_the_tables_are_all_the_quantities():
    assert (*conventions.STORAGE, *conventions.LAYER, *conventions.LOSSES) == tuple(LABELS)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("batch", BATCHES)
def test_the_letters_of_the_formulas_are_in_the_notation(layout, batch):
    letters = [row[1] for row in conventions.notation(layout, batch).rows]
    assert len(letters) == len(set(letters))
    for entry in FORMULAS:
        if entry.holds(layout, batch, "mean") and entry.name not in conventions.STORAGE:
            tex = re.sub("|".join(map(re.escape, sorted(letters, key=len, reverse=True))), "", entry.tex)
            assert r"\mathbf" not in tex


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_a_table_prints_the_entries(convention):
    shown = conventions.table(*convention)
    chosen = [entry for entry in FORMULAS if entry.holds(*convention)]
    lines = shown._repr_markdown_().splitlines()
    assert len(lines) == 2 + len(chosen) and len({line.count("|") for line in lines}) == 1
    for entry in chosen:
        assert f"| ${entry.tex}$ | `{entry.code}` | {entry.note} |" in shown._repr_markdown_()
        assert entry.code in str(shown) and entry.tex not in str(shown)


def test_a_comparison_has_one_row_for_each_layout_and_kind_of_batch():
    assert [row[0] for row in conventions.compare("d_x").rows] == [
        f"{layout}, {batch}" for layout, batch in LAYOUTS_AND_BATCHES
    ]
    assert len(conventions.compare("bias").rows) == 4


# ---------- recognising ----------


@pytest.mark.parametrize(("layout", "batch"), LAYOUTS_AND_BATCHES)
@pytest.mark.parametrize("square", [False, True])
def test_the_convention_is_recognised_from_the_values(layout, batch, square):
    width = 4
    x, weight, bias = (
        (numbers(width, width), numbers(width, width, 1)[..., 0], numbers(width))
        if square
        else (X, WEIGHT, BIAS)
    )
    output = turned(functional.linear(x, weight, bias), batch)
    stored, stored_bias = layouts.convert(weight, bias, "out_in", layout)
    assert conventions.recognise(turned(x, batch), stored, stored_bias, output) == [(layout, batch)]


def test_a_layer_without_bias_is_recognised():
    assert conventions.recognise(X, WEIGHT.T, None, X @ WEIGHT.T) == [("in_out", "rows")]


def test_a_symmetric_weight_leaves_two_layouts_and_a_foreign_output_none():
    symmetric = numbers(4, 4) + numbers(4, 4).T
    found = conventions.recognise(X, symmetric, None, X @ symmetric)
    assert found == [("out_in", "rows"), ("in_out", "rows")]
    assert conventions.recognise(X, WEIGHT, BIAS, X @ WEIGHT.T) == []


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("factor", [1.0, 0.5])
def test_the_reduction_is_recognised_whatever_the_factor(batch, reduction, factor):
    arrays = arrays_of("out_in", batch)

    def loss(output, target):
        entry = find("cross_entropy", batch=batch, reduction=reduction)
        return factor * entry(output=output, target=target)

    assert conventions.reduction_of(loss, arrays["output"], arrays["target"], batch) == reduction


@pytest.mark.parametrize("value", [0.0, 1.5])
def test_a_loss_that_is_neither_mean_nor_sum_is_refused(value):
    def loss(output, target):
        return value * len(output) ** 2

    with pytest.raises(ValueError, match="every sample twice"):
        conventions.reduction_of(loss, D_OUT, D_OUT)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: find("d_w"), "quantity is 'd_w'"),
        (lambda: find("d_x", layout="pytorch"), "layout is 'pytorch'"),
        (lambda: find("d_x", batch="row"), "batch is 'row'"),
        (lambda: find("mse", reduction="none"), "reduction is 'none'"),
        (lambda: find("bias", layout="augmented"), "Column 0"),
        (lambda: conventions.table(quantities=["loss"]), "quantity is 'loss'"),
        (lambda: conventions.compare("loss"), "quantity is 'loss'"),
        (lambda: conventions.notation(batch="row"), "batch is 'row'"),
        (lambda: conventions.reduction_of(np.dot, X, X, "row"), "batch is 'row'"),
    ],
)
def test_an_unknown_word_is_an_error_that_says_what_is_known(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("module", [conventions, _formulas])
def test_doctests(module):
    assert doctest.testmod(module).failed == 0
