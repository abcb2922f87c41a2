"""The zoo without the doctor: what is called healthy passes a gradient check, what is called faulty fails."""

import numpy as np
import pytest

from denselayer import gradcheck
from denselayer.doctor import zoo
from denselayer.doctor._zoo_losses import EVERY_KIND, LOSS_FAULTS
from denselayer.doctor._zoo_networks import network_class
from denselayer.doctor._zoo_pieces import FAULTS, STORAGE
from denselayer.doctor._zoo_steps import OF_THE_LOSS, STEP_FAULTS

HIDDEN_BY_ONE_ROW = {
    "weight-averaged",
    "bias-averaged",
    "all-averaged",
    "bias-times-batch",
    "batch-size-hides",
}
WRONG_ARRAYS = {
    "weight-transposed": {"weight"},
    "input-weight-transposed": {"x"},
    "weight-averaged": {"weight"},
    "bias-averaged": {"bias"},
    "all-averaged": {"weight", "bias"},
    "bias-times-batch": {"bias"},
    "learning-rate-inside": {"weight", "bias"},
    "sign-flipped": {"x", "weight", "bias"},
    "factor": {"weight"},
    "bias-not-summed": {"bias"},
    "bias-wrong-axis": {"bias"},
    "bias-times-input": {"bias"},
    "bias-zero": {"bias"},
    "gradient-zero": {"weight"},
    "wrong-shape": {"weight"},
    "gate-on-upstream": {"x", "weight", "bias"},
    "gate-missing": {"x", "weight", "bias"},
    "gate-twice": {"x", "weight", "bias"},
    "derivative-at-output": {"x", "weight", "bias"},
    "derivative-at-input": {"x", "weight", "bias"},
    "epsilon-in-derivative": {"x", "weight", "bias"},
    "upstream-ignored": {"x", "weight", "bias"},
    "activation-for-derivative": {"x", "weight", "bias"},
    "other-derivative": {"x", "weight", "bias"},
    "batch-size-hides": {"weight"},
}


class Bench:
    """One layer of the zoo with an input, an upstream gradient, and its gradients as it stores them."""

    def __init__(self, defects, n=3, in_features=3, out_features=4, seed=0, **options):
        options = {"form": "class", "spelling": "book", "in_features": in_features} | options
        self.layer = zoo.faulty(defects, out_features=out_features, seed=seed, **options).subject()
        rng = np.random.default_rng(seed + 1)
        rows = self.layer.plan.rows
        self.x = rows(rng.normal(size=(n, in_features)))
        self.d_out = rows(rng.normal(size=(n, out_features)))

    def params(self):
        augmented = self.layer.plan.storage == "augmented"
        names = ("weight",) if augmented else ("weight", "bias")
        return {name: getattr(self.layer, name).copy() for name in names}

    def backward(self):
        d_x = self.layer.backward(self.d_out.copy())
        grads = {name: getattr(self.layer, f"d_{name}") for name in self.params()}
        return grads | {"x": d_x[0] if isinstance(d_x, tuple) else d_x}

    def loss(self, params):
        for name in self.params():
            getattr(self.layer, name)[...] = params[name]
        return (self.d_out * self.layer.forward(params["x"])).sum()

    def wrong(self):
        """The names of the arrays whose gradient fails the check, one by one."""
        self.layer.forward(self.x)
        params, grads = self.params() | {"x": self.x}, self.backward()
        wrong = set()
        for name in params:
            part = {name: params[name]}
            if not gradcheck.check_gradients(
                lambda changed: self.loss(params | changed), part, {name: grads[name]}
            ).ok:
                wrong.add(name)
        return wrong


@pytest.mark.parametrize("storage", STORAGE)
@pytest.mark.parametrize("defect", WRONG_ARRAYS)
def test_a_wrong_formula_is_wrong_in_its_arrays_and_in_no_others(defect, storage):
    examined = 0
    for sizes in ((4, 4), (3, 4), (5, 3)):
        options = {"storage": storage, "in_features": sizes[0], "out_features": sizes[1]}
        if zoo.can_have(defect, **options) and not (FAULTS[defect].square and sizes[0] != sizes[1]):
            expected = WRONG_ARRAYS[defect]
            if storage == "augmented":
                expected = {"weight" if name == "bias" else name for name in expected}
            for seed in range(3):
                assert Bench([defect], seed=seed, **options).wrong() == expected
                examined += 1
    assert examined or storage == "augmented"


@pytest.mark.parametrize("defect", sorted(HIDDEN_BY_ONE_ROW))
def test_one_row_hides_what_is_about_the_batch(defect):
    assert not Bench([defect], n=1).wrong()
    assert Bench([defect], n=2).wrong()


@pytest.mark.parametrize("seed", range(40))
def test_a_layer_without_a_defect_passes(seed):
    storage, sizes = STORAGE[seed % 3], [(4, 4), (3, 5), (5, 2), (1, 1)][seed % 4]
    bench = Bench([], storage=storage, in_features=sizes[0], out_features=sizes[1], seed=seed)
    assert not bench.wrong()


def test_the_forward_pass_is_the_same_in_all_storages():
    plans = [zoo.faulty([], storage=storage, activation="tanh").subject() for storage in STORAGE]
    x = np.random.default_rng(0).normal(size=(5, 3))
    outs = [layer.plan.rows(layer.forward(layer.plan.rows(x))) for layer in plans]
    np.testing.assert_allclose(outs[1], outs[0], rtol=1e-12)
    np.testing.assert_allclose(outs[2], outs[0], rtol=1e-12)


def test_a_transposed_input_gradient_cannot_run_unless_the_layer_is_square():
    bench = Bench(["input-weight-transposed"], in_features=3, out_features=4)
    bench.layer.forward(bench.x)
    with pytest.raises(ValueError):
        bench.layer.backward(bench.d_out)


@pytest.mark.parametrize("seed", range(6))
def test_an_activation_alone_can_have_each_fault_of_a_gate(seed):
    z, d_out = np.random.default_rng(seed).normal(size=(2, 4, 3)) * 1.5
    for defect in (
        name
        for name in WRONG_ARRAYS
        if "gate" in FAULTS[name].slots and FAULTS[name].slots <= {"gate", "sign"}
    ):
        forward, backward = zoo.faulty_activation(defect, form="functions", seed=seed).given
        slopes = gradcheck.numerical_gradient(lambda z, f=forward: (d_out * f(z)).sum(), z)
        assert np.abs(backward(d_out.copy(), z) - slopes).max() > 1e-3
        as_class = zoo.faulty_activation(defect, seed=seed).subject()
        as_class.forward(z)
        np.testing.assert_array_equal(as_class.backward(d_out.copy()), backward(d_out.copy(), z))


def test_gradients_that_are_not_cleared_add_up():
    bench = Bench(["not-cleared"])
    bench.layer.forward(bench.x)
    first = bench.backward()["weight"].copy()
    np.testing.assert_allclose(bench.backward()["weight"], 2 * first)
    assert not hasattr(bench.layer, "zero_grad")


def test_a_stale_cache_holds_an_earlier_input_or_that_of_another_layer():
    kinds = set()
    for seed in range(12):
        bench = Bench(["stale-cache"], seed=seed, activation="identity")
        bench.layer.forward(bench.x)
        first = bench.backward()["weight"].copy()
        if bench.layer.plan.pieces.cache == "shared":
            type(bench.layer)(seed=1).forward(2 * bench.x)
            np.testing.assert_allclose(bench.backward()["weight"], 2 * first)
        elif bench.layer.plan.pieces.cache == "queue":
            bench.layer.forward(bench.x)
            bench.layer.forward(2 * bench.x)
            np.testing.assert_array_equal(bench.backward()["weight"], first)
        else:
            bench.layer.forward(2 * bench.x)
            np.testing.assert_array_equal(bench.backward()["weight"], first)
        kinds.add(bench.layer.plan.pieces.cache)
    assert kinds == {"first", "shared", "queue"}


@pytest.mark.parametrize("seed", range(6))
def test_an_input_or_an_upstream_gradient_or_a_weight_is_changed(seed):
    for defect in ("input-changed", "upstream-changed", "parameter-changed"):
        bench = Bench([defect], seed=seed)
        x, d_out, weight = bench.x.copy(), bench.d_out.copy(), bench.layer.weight.copy()
        bench.layer.forward(x)
        bench.layer.backward(d_out)
        same = (x == bench.x).all(), (d_out == bench.d_out).all(), (bench.layer.weight == weight).all()
        assert same == (
            defect != "input-changed",
            defect != "upstream-changed",
            defect != "parameter-changed",
        )


def test_a_kept_view_changes_with_the_next_call():
    kinds = set()
    for seed in range(8):
        bench = Bench(["view-kept"], seed=seed)
        out, d_x = bench.layer.forward(bench.x), bench.backward()["x"]
        before = out.copy(), d_x.copy()
        bench.layer.forward(bench.x + 1)
        bench.layer.backward(bench.d_out + 1)
        kinds.add((np.array_equal(out, before[0]), np.array_equal(d_x, before[1])))
    assert kinds == {(True, False), (False, True)}


def test_numbers_lose_their_fractions_or_their_digits():
    whole = Bench(["integer-arithmetic"], activation="identity")
    x = np.arange(9).reshape(3, 3)
    assert whole.layer.forward(x).dtype.kind == "i"
    np.testing.assert_array_equal(whole.layer.forward(x), np.trunc(whole.layer.forward(x.astype(float))))
    short, right = Bench(["float32-arithmetic"]), Bench([])
    lost = np.abs(short.layer.forward(short.x) - right.layer.forward(right.x)).max()
    assert 1e-9 < lost < 1e-5


def test_a_row_depends_on_another_row_though_the_gradient_is_right():
    bench = Bench(["batch-mixed"])
    bench.layer.forward(bench.x)
    params, grads = bench.params() | {"x": bench.x}, bench.backward()
    for name in params:
        slopes = gradcheck.numerical_gradient(lambda a, n=name: bench.loss(params | {n: a}), params[name])
        np.testing.assert_allclose(grads[name], slopes, atol=1e-8)
    bench.loss(params)
    before = bench.layer.forward(bench.x)[0].copy()
    bench.x[1] += 1
    assert not np.allclose(bench.layer.forward(bench.x)[0], before)


def test_a_layer_is_random_or_breaks_or_is_not_finite():
    noisy = Bench(["random"])
    assert not np.array_equal(noisy.layer.forward(noisy.x), noisy.layer.forward(noisy.x))
    broken = Bench(["crash"])
    broken.layer.forward(broken.x)
    with pytest.raises(IndexError):
        broken.backward()
    bad = Bench(["not-finite"])
    bad.layer.forward(bad.x)
    with np.errstate(invalid="ignore"):
        grads = bad.backward()
    assert not np.isfinite(grads["weight"]).all()


@pytest.mark.parametrize("sizes", [(3, 3), (3, 5), (5, 2)])
def test_the_tied_autoencoder_is_right_unless_a_share_is_overwritten(sizes):
    for made, right in ((zoo.faulty_tied(*sizes, overwritten=False), True), (zoo.faulty_tied(*sizes), False)):
        layer, rng = made.subject(), np.random.default_rng(0)
        x, d_out = rng.normal(size=(2, 4, sizes[0]))
        layer.forward(x)
        d_x, weight = layer.backward(d_out), layer.W.copy()

        def loss(params, layer=layer, x=x, d_out=d_out):
            layer.W[...] = params["W"]
            return (d_out * layer.forward(x)).sum()

        assert gradcheck.check_gradients(loss, {"W": weight}, {"W": layer.dW.copy()}).ok == right
        assert d_x.shape == x.shape


@pytest.mark.parametrize("seed", [seed for seed in range(600) if zoo.healthy(seed).kind == "arrays"])
def test_arrays_that_are_called_healthy_pass(seed):
    assert gradcheck.check_gradients(*zoo.healthy(seed).given).ok


@pytest.mark.parametrize("activation", ["relu", "tanh", "gelu"])
def test_the_network_is_right(activation):
    net, rng = network_class(3, 4, 2, activation=activation)(), np.random.default_rng(1)
    x, d_out = rng.normal(size=(5, 3)), rng.normal(size=(5, 2))
    net.forward(x)
    d_x, params = net.backward(d_out), {name: getattr(net, name).copy() for name in net.grads}

    def loss(changed):
        for name in params:
            setattr(net, name, changed[name])
        return (d_out * net.forward(changed["x"])).sum()

    assert gradcheck.check_gradients(loss, params | {"x": x}, dict(net.grads) | {"x": d_x}).ok


LOSSES = [(name, kind) for name, (_, kinds, _) in LOSS_FAULTS.items() for kind in kinds]


def predictions(kind, rng, n=4):
    targets = EVERY_KIND[kind].targets
    z = rng.normal(size=(n, 3)) * 1.5
    if targets == "labels":
        return z, rng.integers(3, size=n)
    if targets == "one-hot":
        return z, np.eye(3)[rng.integers(3, size=n)]
    return z, rng.integers(2, size=z.shape).astype(float) if targets == "binary" else rng.normal(size=z.shape)


def gradient_is_right(loss, gradient, z, target):
    return gradcheck.check_gradients(lambda p: loss(p["z"], target), {"z": z}, {"z": gradient(z, target)}).ok


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_a_loss_without_a_defect_has_its_own_gradient(kind):
    for reduction in (None, "mean", "rows", "sum"):
        loss, gradient = zoo.faulty_loss([], kind=kind, reduction=reduction).given
        assert gradient_is_right(loss, gradient, *predictions(kind, np.random.default_rng(1)))
        criterion = zoo.faulty_loss([], kind=kind, reduction=reduction, form="class").subject()
        z, target = predictions(kind, np.random.default_rng(1))
        assert criterion.forward(z, target) == loss(z, target)
        np.testing.assert_array_equal(criterion.backward(), gradient(z, target))


@pytest.mark.parametrize(("defect", "kind"), LOSSES)
def test_a_loss_with_a_defect_has_not(defect, kind):
    for seed in range(4):
        loss, gradient = zoo.faulty_loss([defect], kind=kind, seed=seed).given
        z, target = predictions(kind, np.random.default_rng(1))
        right, right_gradient = zoo.faulty_loss([], kind=kind).given
        if not defect.startswith("unstable"):
            assert not gradient_is_right(loss, gradient, z, target)
            continue
        assert gradient_is_right(loss, gradient, z, target)
        z = np.where(np.arange(3) % 2, 1000.0, -1000.0) * np.ones((4, 1))
        found = [loss(z, target), *gradient(z, target).ravel()]
        true = [right(z, target), *right_gradient(z, target).ravel()]
        assert np.isfinite(true).all() and not np.allclose(found, true)


@pytest.mark.parametrize("form", ["returning", "changing"])
@pytest.mark.parametrize("defect", [None, *STEP_FAULTS])
def test_a_step_with_a_defect_is_not_the_right_step(defect, form):
    moved = []
    for name in (None, defect):
        made = zoo.faulty_step([name] if name else [], form=form)
        step, params = made.given
        for _ in range(2):
            result = step(params, made.options["x"], made.options["t"], 0.1)
            params = result if form == "returning" else params
        moved.append(params)
    right, theirs = moved
    same = all(right[k].shape == theirs[k].shape and np.allclose(right[k], theirs[k]) for k in right)
    assert same == (defect is None)


def test_a_right_step_goes_along_the_measured_slopes():
    made = zoo.faulty_step([])
    step, params = made.given
    x, t = made.options["x"], made.options["t"]
    after = step(params, x, t, 0.1)
    grads = {name: (params[name] - after[name]) / 0.1 for name in params}
    assert gradcheck.check_gradients(lambda p: made.options["loss"](p, x, t), params, grads).ok


@pytest.mark.parametrize("defect", [None, *(name for name in STEP_FAULTS if name not in OF_THE_LOSS)])
def test_an_object_with_a_defect_does_not_step_as_the_right_one(defect):
    moved = []
    for name in (None, defect):
        made = zoo.faulty_step([name] if name else [], form="object")
        model, x, t = made.subject, made.options["x"], made.options["t"]
        for _ in range(2):
            if hasattr(model, "zero_grad"):
                model.zero_grad()
            y = model.forward(x)
            model.backward(2 * (y - t) / y.size)
            model.step()
        moved.append({name: getattr(model, name) for name in ("W1", "b1", "W2", "b2")})
    right, theirs = moved
    same = all(right[k].shape == theirs[k].shape and np.allclose(right[k], theirs[k]) for k in right)
    assert same == (defect is None)
