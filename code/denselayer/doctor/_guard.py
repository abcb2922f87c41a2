"""Leave the person's world as it was: random states, prints and warnings around a diagnosis."""

import contextlib
import functools
import io
import os
import random
import sys
import warnings

import numpy as np

from ._report import Report

OWN_FAULT = "The doctor itself stopped with {}: {}. That is its mistake, and says nothing about your code."


@contextlib.contextmanager
def undisturbed():
    """Restore the global random states afterwards; keep prints and warnings of a person's code back.

    In a child process the prints are captured, and counted, outside.
    """
    state, plain_state = np.random.get_state(), random.getstate()
    place = sys.stdout if "DENSELAYER_CHILD" in os.environ else io.StringIO()
    try:
        with contextlib.redirect_stdout(place), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        np.random.set_state(state)
        random.setstate(plain_state)


def guarded(function):
    """A diagnosis that leaves nothing behind, and says so if the doctor itself stops."""

    @functools.wraps(function)
    def diagnosis(*args, **kwargs):
        with undisturbed():
            try:
                return function(*args, **kwargs)
            except Exception as error:
                if str(error).startswith(f"{function.__name__}:"):
                    raise
                note = OWN_FAULT.format(type(error).__name__, error)
                return Report("not examined", notes=(note,), failed=True)

    return diagnosis
