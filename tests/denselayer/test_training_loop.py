"""The loop takes the steps it says, learns from the training samples alone, and counts what it measures."""

import numpy as np
import pytest

from denselayer import data, nn, optim, training
from denselayer import functional as F


def two_clouds(samples, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, samples)
    return rng.standard_normal((samples, 3)) + 2.0 * labels[:, None], labels


def network():
    rng = np.random.default_rng(5)
    return nn.Sequential(nn.Linear(3, 8, rng=rng), nn.ReLU(), nn.Linear(8, 2, rng=rng))


def fit(net, x, y, **options):
    settings = {"batch_size": 8, "epochs": 3, "rng": 1} | options
    lr = settings.pop("lr", 0.1)
    return training.fit(net, nn.CrossEntropyLoss(), optim.SGD(net.parameters(), lr=lr), x, y, **settings)


def test_the_loop_is_zero_forward_backward_step_on_shuffled_batches():
    x, y = two_clouds(21, 0)
    ours, by_hand = network(), network()
    history = fit(ours, x, y)
    rng, losses, sgd = np.random.default_rng(1), [], optim.SGD(by_hand.parameters(), lr=0.1)
    for _ in range(3):
        for rows, labels in data.minibatches(x, y, 8, rng):
            by_hand.zero_grad()
            scores = by_hand(rows)
            losses.append(F.cross_entropy(scores, labels))
            by_hand.backward(F.cross_entropy_backward(scores, labels))
            sgd.step()
    assert history.losses == losses
    assert len(losses) == 3 * 3
    for mine, other in zip(ours.parameters(), by_hand.parameters(), strict=True):
        np.testing.assert_array_equal(mine.data, other.data)


def test_the_history_has_one_entry_for_every_epoch_and_the_last_is_the_network_s():
    x, y = two_clouds(40, 0)
    held_out = two_clouds(17, 1)
    net = network()
    history = fit(net, x, y, held_out=held_out, epochs=4)
    assert len(history.train) == len(history.held_out) == 4
    assert history.train[-1] == training.evaluate(net, nn.CrossEntropyLoss(), x, y)
    assert history.held_out[-1] == training.evaluate(net, nn.CrossEntropyLoss(), *held_out)
    assert history.train[-1][0] < history.train[0][0]


def test_nothing_is_learned_from_the_held_out_samples():
    x, y = two_clouds(40, 0)
    with_them, without = network(), network()
    fit(with_them, x, y, held_out=two_clouds(17, 1))
    history = fit(without, x, y)
    assert history.held_out == []
    for mine, other in zip(with_them.parameters(), without.parameters(), strict=True):
        np.testing.assert_array_equal(mine.data, other.data)


def test_no_epoch_is_no_training():
    x, y = two_clouds(10, 0)
    net = network()
    before = net.state_dict()
    assert fit(net, x, y, epochs=0) == training.History()
    for name, values in net.state_dict().items():
        np.testing.assert_array_equal(values, before[name])


def test_a_loss_that_is_not_finite_stops_the_loop_and_names_the_step():
    x, y = two_clouds(40, 0)
    with pytest.raises(
        FloatingPointError, match=r"the loss is \w+ at step [1-9]\d*; .* smaller learning rate"
    ):
        fit(network(), x, y, lr=1e200)


def test_accuracy_counts_largest_scores_and_the_first_of_equal_ones():
    scores = np.array([[1.0, 2.0, 0.0], [5.0, 5.0, 0.0], [0.0, 0.0, 9.0]])
    assert training.accuracy(scores, np.array([1, 0, 0])) == pytest.approx(2 / 3)
    assert np.isnan(training.accuracy(np.zeros((0, 3)), np.zeros(0, dtype=int)))
    with pytest.raises(ValueError, match="scores has shape"):
        training.accuracy(scores, data.one_hot(np.array([1, 0, 0]), 3))


def test_confusion_counts_right_classes_in_rows_and_given_ones_in_columns():
    labels, given = np.array([0, 0, 1, 2, 2, 2]), np.array([0, 2, 1, 2, 2, 0])
    counts = training.confusion(given, labels, 4)
    assert counts.tolist() == [[1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 2, 0], [0, 0, 0, 0]]
    assert np.trace(counts) / counts.sum() == np.mean(labels == given)


@pytest.mark.parametrize(
    ("given", "labels", "message"),
    [
        (np.array([0, 1]), np.array([0]), "two arrays"),
        (np.array([0, 3]), np.array([0, 1]), "predicted has indices from 0 to 3"),
        (np.array([0, 1]), np.array([-1, 1]), "labels has indices from -1 to 1"),
    ],
)
def test_confusion_refuses_what_it_cannot_count(given, labels, message):
    with pytest.raises(ValueError, match=message):
        training.confusion(given, labels, 3)
