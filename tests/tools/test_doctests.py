"""The examples in the docstrings of the build tool are true."""

import doctest
import importlib

import pytest

MODULES = [
    "book",
    "chapter_code",
    "citations",
    "convert",
    "execute",
    "markup",
    "qmd",
    "reading",
    "references",
    "stale",
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_hold(name):
    assert doctest.testmod(importlib.import_module(f"tools.{name}")).failed == 0


def test_there_are_examples():
    counts = [doctest.testmod(importlib.import_module(f"tools.{name}")).attempted for name in MODULES]
    assert sum(counts) >= 10
