"""What outputs were made with is told without anything that changes by itself or names the machine."""

import os
import platform
import re
import socket

import numpy

from tools import machine


def test_the_versions_are_those_of_this_process():
    found = machine.executed_with()
    assert found["python"] == platform.python_version()
    assert found["numpy"] == numpy.__version__
    assert re.fullmatch(r"\S+ \S+", found["platform"])


def test_nothing_changes_from_call_to_call():
    assert machine.executed_with() == machine.executed_with()


def test_what_is_told_has_a_name_in_the_book():
    from tools.compose import ENVIRONMENT

    assert set(machine.executed_with()) <= set(ENVIRONMENT)
    assert all(machine.executed_with().values())


def test_no_name_and_no_path_of_the_machine_is_told():
    words = set(" ".join(machine.executed_with().values()).split())
    assert not words & {socket.gethostname(), os.getcwd()}
    assert not any(word.startswith(("/", "\\")) or ":\\" in word for word in words)


def test_openblas_names_its_kernel():
    if "openblas" in machine.blas():
        assert re.fullmatch(r"[A-Za-z][\w-]*", machine.kernel())
