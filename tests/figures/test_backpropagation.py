"""The figures of the backpropagation chapter draw the numbers they claim to draw."""

import matplotlib
import numpy as np
import pytest
from drawn import artists

matplotlib.use("Agg")


from denselayer import functional as F
from denselayer_figures import backpropagation, style


def heights(figure, row: str, units: int) -> list[float]:
    bars = artists(figure, f"{row}-")
    return [bars[f"{row}-{unit}"].get_height() for unit in range(1, units + 1)]


@pytest.mark.parametrize(
    "name",
    [name for name, member in vars(backpropagation).items() if getattr(member, "is_figure", False)],
)
def test_every_figure_is_drawn_from_the_parameters_file_alone(name, tmp_path):
    figure = getattr(backpropagation, name)()
    figure.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 5_000
    assert figure.get_facecolor()[3] == 0, "the background is transparent"


def test_every_gradient_in_the_graph_has_the_shape_of_its_value():
    shapes = artists(backpropagation.computation_graph(out_features=5, in_features=2), "shape-")
    text = {gid.removeprefix("shape-"): artist.get_text() for gid, artist in shapes.items()}
    assert text["x"] == "(N, 2)"
    assert text["z"] == "(N, 5)"
    assert text["loss"] == "()"
    for name in ("x", "z", "a", "loss"):
        assert text[f"d_{name}"] == text[name]
    for name, shape in {"weight": "(5, 2)", "bias": "(5,)"}.items():
        assert text[name] == f"{name}\n{shape}"
        assert text[f"d_{name}"] == f"d_{name}\n{shape}"


def test_the_graph_has_an_arrow_back_for_every_arrow_forward():
    found = backpropagation.computation_graph().findobj(
        lambda artist: artist.get_gid() in ("forward", "backward")
    )
    directions = [artist.get_gid() for artist in found]
    assert directions.count("forward") == directions.count("backward") == 6


def test_the_picture_of_one_weight_marks_one_column_of_each_factor_and_adds_all_samples():
    x = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0], [1.0, 0.0, -1.0]])
    d_out = np.array([[1.0, -1.0], [0.5, 2.0], [0.0, 1.0], [3.0, -2.0]])
    figure = backpropagation.one_weight(x=x, d_out=d_out, unit=1, feature=2)
    marked = {gid for gid in artists(figure, "") if gid.endswith("-marked")}
    assert marked == {
        *(f"dZ-{n}-1-marked" for n in range(4)),
        *(f"X-{n}-2-marked" for n in range(4)),
        "dW-1-2-marked",
    }
    total = artists(figure, "sum")["sum"].get_text()
    assert total == "−1 · 3 + 2 · 6 + 1 · 9 + −2 · (−1) = 20"
    assert F.linear_backward(d_out, x, np.ones((2, 3))).d_weight[1, 2] == 20


def test_the_book_s_picture_of_one_weight_shows_the_batch_of_two_rows():
    assert artists(backpropagation.one_weight(), "sum")["sum"].get_text() == "0.5 · 1 + 1 · 2 = 2.5"


def test_the_right_gate_is_relu_backward_and_the_wrong_one_keeps_what_is_positive():
    z, d_a = np.array([1.0, -1.0, 2.0, -2.0]), np.array([-3.0, 4.0, 5.0, -6.0])
    figure = backpropagation.relu_gate(z=z, d_a=d_a)
    assert heights(figure, "z", 4) == z.tolist()
    assert heights(figure, "d_a", 4) == d_a.tolist()
    assert heights(figure, "right", 4) == F.relu_backward(d_a, z).tolist() == [-3, 0, 5, 0]
    assert heights(figure, "wrong", 4) == [0, 4, 5, 0]
    assert artists(figure, "shut-").keys() == {"shut-2", "shut-4"}


def test_the_book_s_gates_show_both_faults_of_the_wrong_gate():
    numbers = style.parameters("backpropagation")
    z, d_a = np.array(numbers["gate_z"]), np.array(numbers["gate_d_a"])
    assert np.any((z > 0) & (d_a < 0)), "an open unit that the wrong gate stops"
    assert np.any((z < 0) & (d_a > 0)), "a shut unit that the wrong gate lets pass"


@pytest.mark.parametrize("sizes", [(6, 4, 3), (2, 7, 5)])
def test_each_of_the_three_products_is_drawn_to_scale_and_sums_over_another_size(sizes):
    n, i, o = sizes
    figure = backpropagation.three_products(batch=n, in_features=i, out_features=o)
    expected = {
        "in": ("in-X", "in-W^T", "in-Y"),
        "N": ("N-dY^T", "N-X", "N-dW"),
        "out": ("out-dY", "out-W", "out-dX"),
    }
    for summed, names in expected.items():
        boxes = artists(figure, f"{summed}-")
        left, right, result = ((boxes[name].get_height(), boxes[name].get_width()) for name in names)
        size = {"N": n, "in": i, "out": o}[summed]
        assert left[1] == right[0] == size
        assert result == (left[0], right[1])
        assert boxes[f"{summed}-sum"].get_text() == f"sums over {summed} = {size}"


def test_the_points_lie_on_as_many_arms_as_there_are_classes():
    points, labels = backpropagation.spirals(10, 4, 3.0)
    assert points.shape == (40, 2)
    assert np.array_equal(np.bincount(labels), [10, 10, 10, 10])
    first = points[labels == 0]
    turned = points[labels == 1] @ np.array([[0.0, -1.0], [1.0, 0.0]])
    assert np.allclose(turned, first), "the second of four arms is the first, a quarter turn further"


def test_the_drawn_losses_are_those_of_the_training_and_they_fall():
    numbers = style.parameters("backpropagation")["training"]
    points, labels = backpropagation.spirals(numbers["per_class"], numbers["classes"], numbers["turn"])
    network, losses = backpropagation.train(
        points, labels, numbers["hidden"], numbers["lr"], numbers["steps"], numbers["seed"]
    )
    drawn = artists(backpropagation.training(), "losses")["losses"].get_ydata()
    assert np.array_equal(drawn, losses)
    assert losses[-1] < 0.1 * losses[0]
    assert np.mean(network(points).argmax(axis=1) == labels) > 0.98


def test_a_caller_may_bring_the_losses_of_another_run():
    points, labels = backpropagation.spirals(5, 2, 1.0)
    figure = backpropagation.training(
        losses=[3.0, 2.0, 1.0], points=points, labels=labels, classify=lambda at: (at[:, 0] > 0).astype(int)
    )
    assert artists(figure, "losses")["losses"].get_ydata().tolist() == [3.0, 2.0, 1.0]
    assert np.allclose(artists(figure, "class-1")["class-1"].get_xydata(), points[labels == 1])


def test_the_fewest_arrays_are_kept_at_the_square_root_of_the_number_of_layers():
    for layers in (16, 64, 100):
        x, y = artists(backpropagation.checkpointing(layers=layers), "kept")["kept"].get_data()
        assert x[np.argmin(y)] ** 2 == layers
        assert y[0] == y[-1] == layers


@pytest.mark.parametrize(("layers", "segment"), [(16, 4), (12, 3), (7, 1), (7, 7)])
def test_arrays_kept_is_what_a_simulated_backward_pass_keeps(layers, segment):
    checkpoints, most = list(range(0, layers, segment)), 0
    while checkpoints:
        checkpoints.pop()
        most = max(most, len(checkpoints) + segment)
    assert backpropagation.arrays_kept(layers, segment) == most
