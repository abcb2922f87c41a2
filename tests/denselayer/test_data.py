"""Splitting, shuffling and cutting lose no sample, repeat none, and keep inputs and labels together."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from denselayer import data


def pairs(samples):
    """Inputs and labels of which every row can be recognised."""
    labels = np.arange(samples)
    return np.stack([labels, 10 * labels], axis=1), labels


@given(samples=st.integers(0, 50), batch_size=st.integers(1, 60), seed=st.integers(0, 99))
def test_an_epoch_holds_every_sample_once_and_only_the_last_batch_is_smaller(samples, batch_size, seed):
    x, y = pairs(samples)
    batches = list(data.minibatches(x, y, batch_size, seed))
    assert [len(labels) for _, labels in batches[:-1]] == [batch_size] * (len(batches) - 1)
    assert sum(len(labels) for _, labels in batches) == samples
    assert all(0 < len(labels) <= batch_size for _, labels in batches)
    seen = np.concatenate([labels for _, labels in batches]) if batches else y
    np.testing.assert_array_equal(np.sort(seen), y)
    for rows, labels in batches:
        np.testing.assert_array_equal(rows, np.stack([labels, 10 * labels], axis=1))


def test_a_generator_shuffles_every_epoch_anew_and_a_seed_always_in_the_same_way():
    x, y = pairs(30)

    def order(rng):
        return np.concatenate([labels for _, labels in data.minibatches(x, y, 7, rng)]).tolist()

    rng = np.random.default_rng(0)
    assert order(rng) != order(rng)
    assert order(3) == order(3)
    assert order(np.random.default_rng(0)) == np.random.default_rng(0).permutation(30).tolist()


@given(samples=st.integers(0, 60), tenths=st.integers(0, 10), seed=st.integers(0, 99))
def test_a_split_divides_the_samples_without_overlap(samples, tenths, seed):
    x, y = pairs(samples)
    split = data.train_test_split(x, y, tenths / 10, seed)
    assert len(split.y_test) == round(tenths / 10 * samples)
    np.testing.assert_array_equal(np.sort(np.concatenate([split.y_train, split.y_test])), y)
    for rows, labels in ((split.x_train, split.y_train), (split.x_test, split.y_test)):
        np.testing.assert_array_equal(rows, np.stack([labels, 10 * labels], axis=1))


def test_what_comes_out_is_a_copy():
    x, y = pairs(6)
    for rows, labels in (*data.minibatches(x, y, 4, 0), data.train_test_split(x, y, 0.5, 0)[::2]):
        rows[...] = -1
        labels[...] = -1
    np.testing.assert_array_equal(x, pairs(6)[0])
    np.testing.assert_array_equal(y, np.arange(6))


def test_one_hot_rows_are_pytorchs():
    labels = np.array([[2, 0, 1], [3, 3, 0]])
    ours = data.one_hot(labels, 4, np.float32)
    np.testing.assert_array_equal(ours, torch.nn.functional.one_hot(torch.from_numpy(labels), 4).numpy())
    assert ours.dtype == np.float32
    assert data.one_hot(np.zeros(0, dtype=int), 3).shape == (0, 3)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: data.minibatches(np.ones(3), np.ones(4), 2), ValueError, "x has 3 rows, but y has 4"),
        (lambda: data.minibatches(np.ones(3), np.ones(3), 0), ValueError, "batch_size is 0"),
        (lambda: data.minibatches(np.ones(3), np.ones(3), 1.5), TypeError, "whole number"),
        (lambda: data.minibatches([1, 2], np.ones(2), 1), TypeError, "x is a list"),
        (lambda: data.minibatches(np.ones(2), np.float64(1), 1), TypeError, "y is"),
        (lambda: data.train_test_split(np.ones(3), np.ones(3), 3), ValueError, "a fraction from 0 to 1"),
        (lambda: data.train_test_split(np.ones(3), np.ones(3), -0.1), ValueError, "test_size is -0.1"),
        (lambda: data.train_test_split(np.ones(3), np.ones(3), 0.5, "0"), TypeError, "a seed"),
        (lambda: data.one_hot(np.array([0, 3]), 3), ValueError, "labels contains 3"),
        (lambda: data.one_hot(np.array([0.0]), 3), TypeError, "array of integers"),
        (lambda: data.one_hot([0], 3), TypeError, "labels is a list"),
    ],
)
def test_bad_input_is_refused_at_once_with_a_reason(call, error, message):
    with pytest.raises(error, match=message):
        call()
