"""The examples in the docstrings of the build tool are true."""

import doctest
import importlib
import pkgutil

import pytest

import tools

MODULES = [
    module.name for module in pkgutil.walk_packages(tools.__path__, "tools.") if "__main__" not in module.name
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_hold(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_there_are_examples():
    counts = [doctest.testmod(importlib.import_module(name)).attempted for name in MODULES]
    assert sum(counts) >= 10
