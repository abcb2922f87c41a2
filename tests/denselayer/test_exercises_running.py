"""Loops and calls in an answer are found by the lines that it runs, whatever they look like."""

import sys

import numpy as np
import pytest

from denselayer import functional as F
from denselayer.exercises import Case
from denselayer.exercises._running import (
    PACKAGE,
    calls_run,
    lines_run,
    loops,
    package_run,
    with_loop,
    without_loop,
    without_package,
)


def small():
    return Case(X=np.ones((2, 2)))


def large():
    return Case(X=np.ones((30, 20)))


def by_product(X):
    return X @ X.T


def by_letters(X):
    return np.einsum("ni,mi->nm", X, X)


def by_branch(X):
    if len(X) > 2:
        X = X + 1.0
        X = X * 2.0
    return X


def by_rows(X):
    total = 0.0
    for row in X:
        total = total + row.sum()
    return total


def by_comprehension(X):
    return [row.sum() for row in X]


def by_generator(X):
    return sum(row.sum() for row in X)


def by_map(X):
    return list(map(lambda row: row.sum(), X))


def by_vectorize(X):
    return np.vectorize(lambda value: value + 1.0)(X)


def by_recursion(X):
    return X[0].sum() + by_recursion(X[1:]) if len(X) else 0.0


class Callable:
    def __call__(self, X):
        return [row.sum() for row in X]


@pytest.mark.parametrize("function", [by_product, by_letters, by_branch])
def test_numpy_and_branches_are_no_loops(function):
    assert not loops(function, small(), large())


@pytest.mark.parametrize(
    "function",
    [by_rows, by_comprehension, by_generator, by_map, by_vectorize, by_recursion, Callable()],
)
def test_every_kind_of_loop_is_found(function):
    assert loops(function, small(), large())


def test_the_tracer_of_a_debugger_is_put_back():
    before = sys.gettrace()
    lines_run(by_rows, small().fresh())
    assert sys.gettrace() is before
    with pytest.raises(TypeError):
        lines_run(by_rows, [])
    assert sys.gettrace() is before


def test_the_feedback_names_the_function_and_the_loop():
    test = without_loop(small, large, "second", at=1)
    assert test(by_rows, by_product) is None
    fault = test(by_product, by_rows)
    assert fault.finding == "loop"
    assert fault.headline.startswith("`second` loops")


def test_calls_are_counted_by_name_through_helpers_too():
    assert calls_run(by_recursion, large().fresh(), "by_recursion") == (600.0, 31)
    assert calls_run(by_rows, large().fresh(), "by_recursion")[1] == 0


def test_a_loop_that_is_asked_for_must_be_there():
    test = with_loop(small, large, "first")
    assert test(by_rows, by_product) is None
    assert test(by_product, by_rows).finding == "no loop"


def by_package(X):
    return F.linear(X, X)


def test_a_call_of_the_package_is_found_where_it_is_forbidden():
    assert package_run(by_package, small().fresh()) == "linear"
    assert package_run(by_rows, small().fresh()) == ""
    fault = without_package(small, "first")(by_package)
    assert fault.headline == "`first` calls `linear` of the package; here it is to be written without."
    assert without_package(small, "second", at=1)(by_package, by_rows) is None


def test_a_folder_of_the_student_beside_the_package_is_not_the_package():
    mine = compile("def double(X):\n    return 2 * X\n", f"{PACKAGE[:-1]}-exercises/mine.py", "exec")
    space = {}
    exec(mine, space)
    assert package_run(space["double"], small().fresh()) == ""
