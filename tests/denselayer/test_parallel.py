"""Layers on several devices: equal to the layer on one, and exactly the bytes that the formulas say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from denselayer import functional as F
from denselayer import parallel
from denselayer.parallel import ColumnParallelLinear, DataParallelMLP, Devices, ParallelMLP, RowParallelLinear

COUNTS = [1, 2, 3, 4, 7, 1024]
WIDTHS = [(8, 12), (7, 5), (1, 9), (6, 1), (0, 4), (5, 0)]
every_count = pytest.mark.parametrize("count", COUNTS)
every_width = pytest.mark.parametrize(("in_features", "out_features"), WIDTHS)


def whole_numbers(*shape, seed=0, dtype=float):
    """Small whole numbers: all sums of their products are exact, in any order."""
    return np.random.default_rng([seed, *shape]).integers(-4, 5, size=shape).astype(dtype)


def layer(in_features, out_features, rows=6):
    sizes = (rows, in_features), (out_features, in_features), (out_features,), (rows, out_features)
    return [whole_numbers(*size, seed=at) for at, size in enumerate(sizes)]


def everywhere(arrays, expected):
    """Whether all devices have an array, to the last bit."""
    return all(np.array_equal(array, expected, equal_nan=True) for array in arrays)


def mlp(x, up, down, d_out, activation="relu"):
    """Output and all gradients of linear, activation, linear on one device."""
    act, slope = getattr(F, activation), getattr(F, f"{activation}_backward")
    z = F.linear(x, *up)
    hidden = act(z)
    second = F.linear_backward(d_out, hidden, down[0])
    first = F.linear_backward(slope(second.d_x, z), x, up[0])
    return F.linear(hidden, *down), first, second


@pytest.mark.equation("eq-scale-column-parallel")
@every_count
@every_width
@pytest.mark.parametrize("gather", [False, True])
def test_split_outputs_give_the_layer(count, in_features, out_features, gather):
    x, weight, bias, d_out = layer(in_features, out_features)
    devices = Devices(count)
    split = ColumnParallelLinear(devices, weight, bias, gather_output=gather)
    out = split.forward(devices.replicate(x))
    expected = F.linear(x, weight, bias)
    assert everywhere(out, expected) if gather else np.array_equal(devices.join(out, 1), expected)
    assert [call.name for call in devices.calls] == ["all_gather"] * gather

    given = devices.replicate(d_out) if gather else devices.split(d_out, 1)
    found, true = split.backward(given), F.linear_backward(d_out, x, weight)
    assert everywhere(found.d_x, true.d_x)
    assert np.array_equal(devices.join(found.d_weight, 0), true.d_weight)
    assert np.array_equal(devices.join(found.d_bias, 0), true.d_bias)
    assert [call.name for call in devices.calls] == ["all_gather"] * gather + ["all_reduce"]


@pytest.mark.equation("eq-scale-row-parallel")
@every_count
@every_width
@pytest.mark.parametrize("parallel_input", [True, False])
def test_split_inputs_give_the_layer(count, in_features, out_features, parallel_input):
    x, weight, bias, d_out = layer(in_features, out_features)
    devices = Devices(count)
    split = RowParallelLinear(devices, weight, bias, input_is_parallel=parallel_input)
    out = split.forward(devices.split(x, 1) if parallel_input else devices.replicate(x))
    assert everywhere(out, F.linear(x, weight, bias))
    assert [call.name for call in devices.calls] == ["all_reduce"]

    found, true = split.backward(devices.replicate(d_out)), F.linear_backward(d_out, x, weight)
    if parallel_input:
        assert np.array_equal(devices.join(found.d_x, 1), true.d_x)
    else:
        assert everywhere(found.d_x, true.d_x)
    assert np.array_equal(devices.join(found.d_weight, 1), true.d_weight)
    assert everywhere(found.d_bias, true.d_bias)
    assert [call.name for call in devices.calls[1:]] == ["all_gather"] * (not parallel_input)


def block_data(sizes=(5, 8, 4), rows=6, biases=True, dtype=float):
    ins, hidden, outs = sizes
    up = whole_numbers(hidden, ins, seed=1, dtype=dtype), whole_numbers(hidden, seed=2, dtype=dtype)
    down = whole_numbers(outs, hidden, seed=3, dtype=dtype), whole_numbers(outs, seed=4, dtype=dtype)
    if not biases:
        up, down = (up[0], None), (down[0], None)
    return (
        whole_numbers(rows, ins, seed=5, dtype=dtype),
        up,
        down,
        whole_numbers(rows, outs, seed=6, dtype=dtype),
    )


@pytest.mark.equation("eq-scale-tensor-parallel")
@every_count
@pytest.mark.parametrize("sizes", [(5, 8, 4), (4, 16, 4), (1, 3, 1)])
@pytest.mark.parametrize("biases", [True, False])
def test_a_block_needs_one_all_reduce_each_way_and_sends_what_the_formula_says(count, sizes, biases):
    x, up, down, d_out = block_data(sizes, biases=biases)
    devices = Devices(count)
    block = ParallelMLP(devices, up, down)
    out, first, second = mlp(x, up, down, d_out)
    assert everywhere(block.forward(devices.replicate(x)), out)
    assert [call.name for call in devices.calls] == ["all_reduce"]
    found = block.backward(devices.replicate(d_out))
    assert [call.name for call in devices.calls] == ["all_reduce"] * 2
    assert everywhere(found.d_x, first.d_x)
    assert np.array_equal(devices.join(found.up.d_weight, 0), first.d_weight)
    assert np.array_equal(devices.join(found.down.d_weight, 1), second.d_weight)
    if biases:
        assert np.array_equal(devices.join(found.up.d_bias, 0), first.d_bias)
        assert everywhere(found.down.d_bias, second.d_bias)
    else:
        assert found.up.d_bias is found.down.d_bias is None
    assert devices.sent == parallel.tensor_parallel_bytes(len(x), sizes[0], sizes[2], count, float)


@pytest.mark.equation("eq-scale-data-parallel")
@every_count
@pytest.mark.parametrize("biases", [True, False])
def test_data_parallel_sums_the_gradients_and_sends_what_the_formula_says(count, biases):
    x, up, down, d_out = block_data(biases=biases)
    devices = Devices(count)
    block = DataParallelMLP(devices, up, down)
    out, first, second = mlp(x, up, down, d_out)
    assert np.array_equal(devices.join(block.forward(devices.split(x, 0)), 0), out)
    assert devices.calls == []
    found = block.backward(devices.split(d_out, 0))
    assert np.array_equal(devices.join(found.d_x, 0), first.d_x)
    for mine, true in ((found.up, first), (found.down, second)):
        assert everywhere(mine.d_weight, true.d_weight)
        assert everywhere(mine.d_bias, true.d_bias) if biases else mine.d_bias is None
    parameters = sum(array.size for array in (*up, *down) if array is not None)
    assert devices.sent == parallel.data_parallel_bytes(parameters, count, float)


@pytest.mark.parametrize("activation", parallel.ACTIVATIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [3, 16])
def test_real_numbers_agree_within_the_rounding_of_their_sums(activation, dtype, count):
    rng = np.random.default_rng(count)
    x, d_out = (rng.normal(size=(9, 8)).astype(dtype) for _ in range(2))
    up = rng.normal(size=(20, 8)).astype(dtype), rng.normal(size=20).astype(dtype)
    down = rng.normal(size=(8, 20)).astype(dtype), rng.normal(size=8).astype(dtype)
    exact = [[np.asarray(part, np.float64) for part in pair] for pair in (up, down)]
    out, first, second = mlp(x.astype(float), *exact, d_out.astype(float), activation)
    devices = Devices(count)
    block = ParallelMLP(devices, up, down, activation)
    forward = block.forward(devices.replicate(x))
    found = block.backward(devices.replicate(d_out))
    unit = np.finfo(dtype).eps / 2
    size = max(np.abs(array).max() for array in (out, *first, *second)) * 60
    for mine, true in [
        (forward[0], out),
        (found.d_x[-1], first.d_x),
        (devices.join(found.up.d_weight, 0), first.d_weight),
        (devices.join(found.down.d_weight, 1), second.d_weight),
        (found.down.d_bias[0], second.d_bias),
    ]:
        assert mine.dtype == dtype
        assert np.abs(mine - true).max() <= (20 + count) * unit * size


@pytest.mark.parametrize("count", [1, 5, 64, 1024])
def test_split_sums_stay_within_the_bound_of_any_order_of_summation(count):
    """|error| <= gamma * sum |x||w|, with gamma for as many roundings as an entry has at most."""
    rng = np.random.default_rng(count)
    x, d_out = (rng.normal(size=(6, width)).astype(np.float32) for width in (300, 40))
    weight, bias = (rng.normal(size=size).astype(np.float32) for size in ((40, 300), 40))
    devices = Devices(count)
    by_inputs = RowParallelLinear(devices, weight, bias)
    by_outputs = ColumnParallelLinear(devices, weight, bias)
    out = by_inputs.forward(devices.split(x, 1))[0]
    by_outputs.forward(devices.replicate(x))
    d_x = by_outputs.backward(devices.split(d_out, 1)).d_x[0]
    x, d_out, weight, bias = (array.astype(float) for array in (x, d_out, weight, bias))
    for found, true, size, terms in (
        (out, x @ weight.T + bias, np.abs(x) @ np.abs(weight.T) + np.abs(bias), 300),
        (d_x, d_out @ weight, np.abs(d_out) @ np.abs(weight), 40),
    ):
        roundings = (terms + min(count, terms) + 1) * np.finfo(np.float32).eps / 2
        assert (np.abs(found - true) <= roundings / (1 - roundings) * size).all()


def test_all_devices_have_the_same_bits_although_each_adds_in_its_own_order():
    devices = Devices(7)
    arrays = list(np.random.default_rng(0).normal(size=(7, 31)).astype(np.float32))
    first, *others = devices.all_reduce(arrays)
    assert first.tobytes() == others[-1].tobytes() and everywhere(others, first)
    assert not np.array_equal(first, np.sum(arrays, axis=0))


@pytest.mark.equation("eq-scale-all-reduce")
@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 1023])
@pytest.mark.parametrize("numbers", [0, 1, 24, 1025])
def test_the_bytes_of_the_collectives_are_those_of_the_formulas(count, numbers):
    devices, size = Devices(count), 4
    arrays = [np.full(numbers, p, np.float32) for p in range(count)]
    total = devices.all_reduce(arrays)
    assert everywhere(total, np.full(numbers, count * (count - 1) // 2, np.float32))
    assert devices.sent == parallel.all_reduce_bytes(numbers, count)
    assert sum(devices.sent) == 2 * (count - 1) * numbers * size
    assert devices.steps == 2 * (count - 1)
    if numbers % count == 0:
        assert set(devices.sent) == {2 * (count - 1) * numbers // count * size}

    devices.clear()
    pieces = devices.reduce_scatter(arrays)
    assert np.array_equal(devices.join(pieces, 0), total[0])
    assert devices.sent == parallel.reduce_scatter_bytes(numbers, count)
    devices.clear()
    assert everywhere(devices.all_gather(pieces), total[0])
    assert devices.sent == parallel.all_gather_bytes(numbers, count)


@pytest.mark.parametrize("count", [1, 2, 5, 33])
@pytest.mark.parametrize("root", [0, 3])
@pytest.mark.parametrize("shape", [(7, 3), (2,), (), (0, 4)])
def test_broadcast_leaves_out_nothing_but_the_last_device(count, root, shape):
    root %= count
    x = whole_numbers(*shape)
    devices = Devices(count)
    received = devices.broadcast(x, root)
    assert everywhere(received, x) and all(array.shape == shape for array in received)
    sent = [x.nbytes] * count
    sent[root - 1] = 0
    assert devices.sent == tuple(sent)
    assert devices.steps == 2 * (count - 1)


@pytest.mark.parametrize("count", [1, 3, 8])
def test_columns_are_gathered_and_scattered_in_order(count):
    devices = Devices(count)
    x = whole_numbers(4, 7)
    assert everywhere(devices.all_gather(devices.split(x, 1), axis=1), x)
    assert devices.sent == parallel.all_gather_bytes(7, count, float, rows=4)
    pieces = devices.reduce_scatter(devices.replicate(x), axis=1)
    assert np.array_equal(devices.join(pieces, 1), count * x)


def ring_by_hand(arrays, numbers):
    """An all-reduce with a list of pieces for each device and a loop over messages: total, bytes sent."""
    count = len(arrays)
    cuts = np.array_split(np.arange(numbers), count)
    have = [[array[cut].copy() for cut in cuts] for array in arrays]
    sent = [0] * count
    for first, add in ((-1, True), (0, False)):
        for step in range(count - 1):
            messages = [(p, (p + first - step) % count) for p in range(count)]
            letters = [have[p][piece].copy() for p, piece in messages]
            for (p, piece), letter in zip(messages, letters, strict=True):
                target = have[(p + 1) % count]
                target[piece] = target[piece] + letter if add else letter
                sent[p] += letter.nbytes
    return [np.concatenate(pieces) for pieces in have], tuple(sent)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 9), st.integers(0, 30), st.integers(0, 10))
def test_the_ring_is_the_one_that_passes_messages_one_by_one(count, numbers, seed):
    arrays = list(np.random.default_rng(seed).normal(size=(count, numbers)))
    totals, sent = ring_by_hand(arrays, numbers)
    devices = Devices(count)
    for mine, theirs in zip(devices.all_reduce(arrays), totals, strict=True):
        assert np.array_equal(mine, theirs)
    assert devices.sent == sent


@pytest.mark.parametrize("kind", [ColumnParallelLinear, RowParallelLinear])
def test_every_device_has_weights_of_its_own(kind):
    weight, bias = np.ones((4, 6)), np.ones(4)
    layer = kind(Devices(2), weight, bias)
    for part in (*layer.weight, *layer.bias):
        part -= 0.5
    np.testing.assert_array_equal([weight.min(), bias.min()], 1)
    np.testing.assert_array_equal(layer.devices.join(layer.bias, 0), 0.5)


def test_what_comes_in_is_not_changed_and_what_goes_out_is_not_shared():
    devices = Devices(3)
    arrays = [whole_numbers(5, seed=p) for p in range(3)]
    before = [array.copy() for array in arrays]
    results = devices.all_reduce(arrays)
    results[0][:] = np.nan
    assert all(map(np.array_equal, arrays, before))
    assert not any(np.isnan(result).any() for result in results[1:])


def test_nan_reaches_all_devices():
    devices = Devices(4)
    arrays = [np.ones(6) for _ in range(4)]
    arrays[2][3] = np.nan
    for result in devices.all_reduce(arrays):
        np.testing.assert_array_equal(np.isnan(result), [False, False, False, True, False, False])


def test_the_bias_of_split_inputs_is_added_once():
    devices = Devices(5)
    split = RowParallelLinear(devices, np.zeros((3, 10)), np.array([1.0, 2.0, 3.0]))
    assert everywhere(split.forward(devices.split(np.ones((1, 10)), 1)), [[1.0, 2.0, 3.0]])


@pytest.mark.parametrize(
    ("action", "error", "message"),
    [
        (lambda d: Devices(0), ValueError, "1 or more"),
        (lambda d: Devices(2.0), TypeError, "whole number"),
        (lambda d: d.all_reduce([np.ones(2)]), ValueError, "1 arrays came; expected 3"),
        (lambda d: d.all_reduce(np.ones((3, 2))), TypeError, "list of 3 arrays"),
        (lambda d: d.all_reduce([np.ones(2), np.ones(2), np.ones(3)]), ValueError, r"arrays\[2\]"),
        (lambda d: d.all_reduce([np.ones(2), np.ones(2), np.ones(2, "f4")]), TypeError, "float32"),
        (lambda d: d.all_reduce([np.ones(2, int)] * 3), TypeError, "float32 or float64"),
        (lambda d: d.split(np.float64(1.0), 0), ValueError, "axes"),
        (lambda d: d.split(np.ones(3), 5), ValueError, r"axis is 5 and the shape \(3,\); expected -1 to 0"),
        (lambda d: d.split(np.ones(3), 0.5), TypeError, "whole number"),
        (lambda d: d.take([np.ones(3)] * 3, 1), ValueError, "take: axis is 1"),
        (lambda d: d.take([np.ones(3), np.ones(3), np.ones(4)], 0), ValueError, r"arrays\[2\]"),
        (lambda d: d.reduce_scatter([np.ones(3)] * 3, -2), ValueError, "axis is -2"),
        (lambda d: d.all_gather([np.ones(3)] * 3, 1), ValueError, "all_gather: axis is 1"),
        (lambda d: d.all_gather([np.ones((2, 3))] * 2 + [np.ones((3, 2))]), ValueError, "axis 0 alone"),
        (lambda d: d.all_gather([np.ones((2, 3))] * 2 + [np.ones(2)], -1), ValueError, "axis 1 alone"),
        (lambda d: d.join([np.ones((2, 3))] * 2 + [np.ones((3, 2))], 0), ValueError, "join: .*axis 0 alone"),
        (lambda d: d.broadcast(np.ones(2), root=3), ValueError, "0 to 2"),
        (
            lambda d: RowParallelLinear(d, np.ones((2, 3))).backward([np.ones((1, 2))] * 3),
            RuntimeError,
            "first",
        ),
        (lambda d: ColumnParallelLinear(d, np.ones((2, 3))).forward(np.ones((1, 3))), TypeError, "replicate"),
        (lambda d: ParallelMLP(d, np.ones((2, 3)), (np.ones((3, 2)), None)), TypeError, "pair"),
        (
            lambda d: ParallelMLP(d, (np.ones((2, 3)), None), (np.ones((3, 2)), None), "sin"),
            ValueError,
            "relu",
        ),
        (lambda d: RowParallelLinear(d, np.ones((2, 3)), np.ones(1)), ValueError, r"expected \(2,\)"),
        (lambda d: RowParallelLinear(d, np.ones((2, 3)), np.ones(2, "f4")), TypeError, "one dtype"),
        (lambda d: ColumnParallelLinear(d, np.ones(3)), ValueError, "matrix"),
        (lambda d: parallel.all_reduce_bytes(3, 0), ValueError, "1 or more"),
        (lambda d: parallel.all_reduce_bytes(-1, 2), ValueError, "0 or more"),
    ],
)
def test_bad_input_is_refused_with_advice(action, error, message):
    with pytest.raises(error, match=message):
        action(Devices(3))


@pytest.mark.equation("eq-scale-alpha-beta")
@pytest.mark.parametrize("count", [2, 4, 9])
def test_the_model_adds_up_the_steps_of_the_ring(count):
    alpha, beta, numbers = 2e-5, 3e-9, 360
    devices = Devices(count)
    devices.all_reduce([np.zeros(numbers, np.float32)] * count)
    longest = max(devices.sent) / devices.steps
    expected = devices.steps * (alpha + beta * longest)
    assert parallel.all_reduce_seconds(4 * numbers, count, alpha, beta) == pytest.approx(expected)
    assert parallel.all_reduce_seconds(4 * numbers, 1, alpha, beta) == 0


def measured(sizes, devices, alpha=2e-5, beta=5e-10, noise=0.05, rounds=15, seed=0):
    rng = np.random.default_rng(seed)
    true = np.array([parallel.all_reduce_seconds(size, devices, alpha, beta) for size in sizes])
    return list(true[:, None] * rng.lognormal(0, noise, size=(len(sizes), rounds)))


@pytest.mark.parametrize("devices", [2, 8])
def test_the_fit_finds_the_machine_and_its_interval_holds_it(devices):
    sizes = 8 * 2 ** np.arange(0, 24)
    for seed in range(5):
        found = parallel.fit_alpha_beta(sizes, measured(sizes, devices, seed=seed), devices, resamples=200)
        assert found.alpha == pytest.approx(2e-5, rel=0.05)
        assert found.beta == pytest.approx(5e-10, rel=0.05)
        assert found.alpha_interval[0] <= found.alpha <= found.alpha_interval[1]
        assert found.beta_interval[0] <= found.beta <= found.beta_interval[1]
        assert found.alpha_interval[1] - found.alpha_interval[0] < 0.2 * found.alpha


def test_the_intervals_hold_the_truth_about_as_often_as_they_promise():
    sizes = 8 * 2 ** np.arange(0, 24)
    found = [
        parallel.fit_alpha_beta(sizes, measured(sizes, 2, seed=seed), resamples=200) for seed in range(40)
    ]
    for true, interval in ((2e-5, "alpha_interval"), (5e-10, "beta_interval")):
        hits = sum(low <= true <= high for low, high in (getattr(model, interval) for model in found))
        assert hits >= 32


def test_two_bad_sizes_do_not_decide_the_fit():
    sizes = 8 * 2 ** np.arange(0, 24)
    times = measured(sizes, 2)
    times[4], times[20] = 8 * times[4], 5 * times[20]
    found = parallel.fit_alpha_beta(sizes, times, resamples=50)
    assert found.alpha == pytest.approx(2e-5, rel=0.1)
    assert found.beta == pytest.approx(5e-10, rel=0.1)


@pytest.mark.parametrize(("alpha", "beta"), [(0.0, 1e-9), (1e-5, 0.0)])
def test_a_part_that_costs_nothing_is_never_negative(alpha, beta):
    sizes = [8, 64, 512, 4096, 32768]
    times = measured([size + 1 for size in sizes], 2, alpha, beta, noise=0.3)
    found = parallel.fit_alpha_beta(sizes, times, resamples=100)
    assert min(found.alpha, found.beta, *found.alpha_interval, *found.beta_interval) >= 0


@pytest.mark.equation("eq-scale-paying-width")
@pytest.mark.parametrize("rows", [1, 64, 4096])
@pytest.mark.parametrize("devices", [2, 8])
def test_at_the_paying_width_split_and_unsplit_take_equally_long(rows, devices):
    rate, alpha, beta = 2e11, 3e-5, 4e-10

    def seconds(width, count):
        operations = 3 * 2 * rows * (2 * 4 * width**2)
        exchange = parallel.all_reduce_seconds(4 * rows * width, count, alpha, beta)
        return operations / rate / count + 2 * exchange

    width = parallel.paying_width(rows, devices, rate, alpha, beta)
    assert seconds(width, devices) == pytest.approx(seconds(width, 1))
    assert seconds(1.1 * width, devices) < seconds(1.1 * width, 1)
    assert seconds(0.9 * width, devices) > seconds(0.9 * width, 1)


@pytest.mark.parametrize("kind", [ParallelMLP, DataParallelMLP])
@pytest.mark.parametrize(
    ("up", "down", "error", "message"),
    [
        ((np.ones((4, 3)), None), (np.ones((3, 5)), None), ValueError, r"\(3, 5\); expected \(out_f.*, 4\)"),
        (("weight", None), (np.ones((3, 4)), None), TypeError, "up: weight is a str"),
        ((np.ones((4, 3)), None), (np.ones((3, 4)), "bias"), TypeError, "down: bias is a str"),
        ((np.ones((4, 3)), None), (np.ones((3, 4), "f4"), None), TypeError, "one dtype"),
        ((np.ones((4, 3)), None), np.ones((3, 4)), TypeError, "down is an array.*pair"),
    ],
)
def test_layers_that_make_no_block_are_refused_when_it_is_made(kind, up, down, error, message):
    with pytest.raises(error, match=f"{kind.__name__}.*{message}"):
        kind(Devices(2), up, down)


@pytest.mark.parametrize(
    ("nbytes", "seconds"), [(8, [1.0]), ([8, 16], 1.0), (np.array(8.0), [1.0]), ("88", [1.0])]
)
def test_what_is_no_list_of_measurements_is_refused(nbytes, seconds):
    with pytest.raises(TypeError, match="fit_alpha_beta: .* expected a list"):
        parallel.fit_alpha_beta(nbytes, seconds)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda: parallel.fit_alpha_beta([8, 16], [1.0, 2.0], resamples=0), "none of 0 resamples"),
        (lambda: parallel.fit_alpha_beta([8, 8], [[1.0], [1.0]]), "different sizes"),
        (lambda: parallel.fit_alpha_beta([8, 16], [[1.0]]), "times for each size"),
        (lambda: parallel.fit_alpha_beta([8, 16], [[1.0], []]), "empty"),
        (lambda: parallel.fit_alpha_beta([8, 16], [[1.0], [0.0]]), "positive"),
        (lambda: parallel.fit_alpha_beta([8, 16], [[1.0], [np.nan]]), "positive"),
        (lambda: parallel.fit_alpha_beta([8, 16], [1.0, 2.0], devices=1), "sends nothing"),
        (lambda: parallel.paying_width(0, 2, 1e9, 0, 0), "Nothing is split"),
        (lambda: parallel.paying_width(4, 1, 1e9, 0, 0), "Nothing is split"),
        (lambda: parallel.all_reduce_seconds(8, 0, 0, 0), "1 or more"),
    ],
)
def test_what_cannot_be_fitted_is_refused(action, message):
    with pytest.raises(ValueError, match=message):
        action()
