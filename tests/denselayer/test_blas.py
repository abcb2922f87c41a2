"""What the package learns from NumPy's BLAS, and the limit to its threads."""

import threading

import numpy as np
import pytest
import threadpoolctl

from denselayer import _blas


@pytest.fixture
def no_library(monkeypatch):
    """As if NumPy came with a BLAS that is not OpenBLAS."""
    monkeypatch.setattr(_blas, "_library", lambda: None)
    for cached in (_blas._function, _blas.kernel, _blas.version):
        cached.cache_clear()
    yield
    for cached in (_blas._function, _blas.kernel, _blas.version):
        cached.cache_clear()


def openblas():
    return next(pool for pool in threadpoolctl.threadpool_info() if "numpy" in pool["filepath"])


def test_kernel_version_and_threads_are_those_that_another_library_finds():
    assert _blas.kernel() == openblas()["architecture"]
    assert openblas()["version"] in _blas.version()
    assert _blas.threads() == openblas()["num_threads"]


def test_a_limit_holds_inside_of_its_block():
    before = _blas.threads()
    with _blas.limit_threads(1):
        assert _blas.threads() == openblas()["num_threads"] == 1
        assert np.ones((3, 2)) @ np.ones((2, 3)) == pytest.approx(np.full((3, 3), 2.0))
    assert _blas.threads() == before


def test_a_limit_ends_with_an_error():
    before = _blas.threads()
    with pytest.raises(ZeroDivisionError), _blas.limit_threads(before + 1):
        assert _blas.threads() == before + 1
        raise ZeroDivisionError
    assert _blas.threads() == before


def test_the_smallest_of_overlapping_limits_holds_and_the_last_to_leave_restores():
    before = _blas.threads()
    first, second = _blas.limit_threads(3), _blas.limit_threads(2)
    first.__enter__()
    second.__enter__()
    assert _blas.threads() == 2
    first.__exit__(None, None, None)
    assert _blas.threads() == 2
    second.__exit__(None, None, None)
    assert _blas.threads() == before


def test_limits_of_many_threads_leave_the_number_as_it_was():
    before = _blas.threads()

    def run(number):
        for _ in range(200):
            with _blas.limit_threads(number):
                assert _blas.threads() <= number

    runners = [threading.Thread(target=run, args=(1 + k % 2,)) for k in range(6)]
    for runner in runners:
        runner.start()
    for runner in runners:
        runner.join()
    assert _blas.threads() == before


def test_another_blas_is_unknown_and_changes_nothing(no_library):
    assert _blas.kernel() == _blas.version() == "unknown"
    assert _blas.threads() >= 1
    assert not _blas.set_threads(1)
    with _blas.limit_threads(1):
        pass
