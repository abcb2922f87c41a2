"""The figures of the training chapter draw the numbers they claim to draw."""

import matplotlib
import numpy as np
import pytest
from drawn import artists

matplotlib.use("Agg")


from denselayer import agreement, nn, training
from denselayer_figures import style
from denselayer_figures import training as pictures

pytest.importorskip("sklearn")
FIGURES = [name for name, member in vars(pictures).items() if getattr(member, "is_figure", False)]


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_drawn_from_the_parameters_file_alone(name, tmp_path):
    figure = getattr(pictures, name)()
    figure.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 5_000
    assert figure.get_facecolor()[3] == 0, "the background is transparent"
    assert figure.get_figwidth() <= 6
    texts = figure.findobj(lambda artist: isinstance(artist, matplotlib.text.Text) and artist.get_text())
    assert min(text.get_fontsize() for text in texts) >= 7, "ticks of a log axis have small exponents"


@pytest.mark.parametrize(("samples", "size"), [(10, 4), (6, 3), (5, 7)])
def test_every_sample_is_drawn_once_in_each_epoch_and_only_the_last_batch_is_smaller(samples, size):
    figure = pictures.batches(samples=samples, batch_size=size, seed=0)
    for level in range(3):
        drawn = artists(figure, f"sample-{level}-").values()
        assert sorted(int(text.get_text()) for text in drawn) == list(range(samples))
    cut = [gid.split("-")[2] for gid in artists(figure, "box-1-")]
    counts = [cut.count(batch) for batch in sorted(set(cut))]
    assert counts[:-1] == [size] * (len(counts) - 1)
    assert sum(counts) == samples and 0 < counts[-1] <= size


def test_the_ways_down_are_those_that_pytorch_took_to_the_last_visible_digit():
    figure = pictures.paths()
    stored = agreement.load_fixture("optimisers").expected["float64"]
    for name in ("sgd", "momentum", "nesterov", "adam"):
        drawn = artists(figure, f"path-{name}")[f"path-{name}"].get_xydata()
        np.testing.assert_allclose(drawn, stored[name], atol=1e-12)


def test_the_drawn_digits_are_the_first_of_the_data_set():
    images, labels = pictures.digits()
    assert images.shape == (1797, 64) and images.min() == 0 and images.max() == 1
    axes = pictures.samples().axes
    for at, ax in enumerate(axes):
        np.testing.assert_array_equal(ax.images[0].get_array(), images[at].reshape(8, 8))
        assert ax.get_title() == str(labels[at])


def test_a_learning_curve_is_the_history_and_mistakes_are_what_accuracy_leaves():
    history = training.History([], [(2.0, 0.5), (1.0, 0.75)], [(2.5, 0.25), (2.0, 0.5)])
    figure = pictures.learning_curves(history=history)

    def drawn(gid):
        return artists(figure, gid)[gid].get_ydata().tolist()

    assert drawn("loss-train") == [2.0, 1.0]
    assert drawn("loss-held-out") == [2.5, 2.0]
    assert drawn("mistakes-train") == [50, 25]
    assert drawn("mistakes-held-out") == [75, 50]


def test_the_three_fits_are_too_small_fitting_and_learned_by_heart():
    small, good, by_heart = pictures.three_fits().values()
    assert small.train[-1][1] < 0.6 and small.held_out[-1][1] < 0.6
    assert good.train[-1][1] > 0.99 and good.held_out[-1][1] > 0.96
    assert by_heart.train[-1][1] > 0.95
    held_out = [loss for loss, _ in by_heart.held_out]
    assert held_out[-1] > 1.4 * min(held_out)


def test_spoiled_labels_are_replaced_in_a_copy():
    x, y = np.zeros((1000, 2)), np.full(1000, 3)
    _, changed = pictures.spoiled(x, y, 800, 0.5)
    assert len(changed) == 800
    assert 0.4 < np.mean(changed != 3) < 0.5, "one in ten replacements is the label itself"
    assert np.all(y == 3)
    np.testing.assert_array_equal(pictures.spoiled(x, y, 800, 0.0)[1], y[:800])


def test_the_confusion_counts_every_sample_and_shows_those_that_are_wrong():
    labels = np.array([3, 3, 5, 9, 0])
    scores = np.eye(10)[[3, 9, 5, 9, 6]]
    figure = pictures.mistakes(images=np.zeros((5, 64)), labels=labels, scores=scores)
    counts = {gid.removeprefix("count-"): text.get_text() for gid, text in artists(figure, "count-").items()}
    assert counts == {"3-3": "1", "3-9": "1", "5-5": "1", "9-9": "1", "0-6": "1"}
    titles = {gid: ax.get_title() for gid, ax in artists(figure, "mistake-").items()}
    assert titles == {"mistake-1": "3, taken\nfor 9", "mistake-4": "0, taken\nfor 6"}


def test_units_are_drawn_before_and_after_on_one_scale():
    before, after = np.full((4, 64), -0.5), np.full((4, 64), 2.0)
    found = artists(pictures.units(before=before, after=after, shown=[1, 3]), "")
    for name, value in (("before", -0.5), ("after", 2.0)):
        for unit in (1, 3):
            image = found[f"{name}-{unit}"]
            assert np.all(image.get_array() == value)
            assert image.get_clim() == (-2.0, 2.0)


def test_our_losses_are_within_what_is_promised_of_pytorchs_in_float64_and_not_in_float32():
    drawn = artists(pictures.precision(), "difference-")
    promised = style.parameters("training")["tolerance"]
    assert len(drawn["difference-float64-each"].get_xdata()) <= 1000
    assert drawn["difference-float64"].get_ydata()[-1] < promised
    assert promised < drawn["difference-float32"].get_ydata()[-1] < 0.05


def test_the_line_over_the_differences_is_the_largest_so_far():
    values = np.array([0.0, 1e-9, 3e-9, 2e-9, 0.0])
    drawn = artists(pictures.precision(differences={"float64": values}), "difference-")
    assert drawn["difference-float64"].get_ydata().tolist() == [1e-9, 3e-9, 3e-9, 3e-9]
    assert drawn["difference-float64-each"].get_xdata().tolist() == [2, 3, 4]


def test_a_push_is_carried_along_at_the_small_learning_rate_and_takes_over_at_the_large_one():
    drawn = artists(pictures.sensitivity(), "push-")
    push = style.parameters("training")["push"]
    calm, wild = (drawn[f"push-{at}"].get_ydata() for at in (0, 1))
    for values in (calm, wild):
        assert values[0] == pytest.approx(push, rel=1e-4)
        assert len(values) == 26
    assert 0.5 * push < calm.min() and calm.max() < 2 * push
    assert wild[-1] > 1e-3


def test_a_network_of_the_figures_is_drawn_in_float64_and_rounded():
    wide, narrow = (pictures.mlp(5, np.random.default_rng(0), dtype) for dtype in (np.float64, np.float32))
    for one, other in zip(wide.parameters(), narrow.parameters(), strict=True):
        np.testing.assert_array_equal(one.data.astype(np.float32), other.data)
    assert isinstance(wide[1], nn.ReLU) and not wide[0].input_gradient
