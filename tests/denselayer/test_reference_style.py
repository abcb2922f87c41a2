"""Docstrings: every public thing says what it takes, where it comes from, and shows an example that runs."""

import doctest
import inspect
import os
import pkgutil
import subprocess
import sys
from importlib import import_module, resources

import pytest

import denselayer
from denselayer import (
    bench,
    checkpoint,
    cost,
    data,
    doctor,
    exercises,
    functional,
    growth,
    nn,
    optim,
    parallel,
    training,
)

MODULES = [
    import_module(info.name)
    for info in pkgutil.walk_packages(denselayer.__path__, "denselayer.")
    if not info.name.endswith("__main__")
]
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
INHERITING = {"MSELoss", "CrossEntropyLoss", "BCEWithLogitsLoss"}


def public(module):
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    ]
    return [(name, getattr(module, name)) for name in names]


REFERENCE = [
    pytest.param(thing, id=f"{module.__name__.partition('.')[2]}.{name}")
    for module in (
        *(bench, functional, nn, optim, checkpoint, cost, data, growth, parallel, training),
        *(doctor, exercises),
    )
    for name, thing in public(module)
    if callable(thing)
]
FUNCTIONS = [parameters for parameters in REFERENCE if inspect.isfunction(parameters.values[0])]


@pytest.mark.parametrize("module", [denselayer, *MODULES], ids=lambda module: module.__name__)
def test_examples_run_as_shown(module):
    failed, _ = doctest.testmod(module)
    assert failed == 0


@pytest.mark.parametrize("module", [denselayer, *MODULES], ids=lambda module: module.__name__)
def test_first_line_says_the_one_thing_that_a_module_does(module):
    first = module.__doc__.splitlines()[0]
    assert 20 < len(first) <= 120
    assert first[0].isupper() or first.startswith("float")
    assert first.endswith((".", ";", ","))


@pytest.mark.parametrize("thing", REFERENCE)
def test_every_public_thing_has_an_example(thing):
    if thing.__doc__.startswith(("Gradients of a loss", "Names that")):
        assert issubclass(thing, tuple)
    else:
        assert doctest.DocTestFinder(recurse=False).find(thing)[0].examples


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_argument_is_named_in_the_docstring(function):
    module = inspect.getmodule(function).__doc__
    for name in inspect.signature(function).parameters:
        assert name in function.__doc__ or f"``{name}``" in module, name


@pytest.mark.parametrize(
    "function",
    [p for p in FUNCTIONS if not p.id.endswith("_backward") and not p.id.startswith("exercises.")],
)
def test_every_function_names_its_source(function):
    assert "Source:" in function.__doc__


@pytest.mark.parametrize("thing", REFERENCE)
def test_every_public_method_has_a_docstring(thing):
    if inspect.isclass(thing) and not issubclass(thing, tuple):
        for name, member in inspect.getmembers(thing):
            if not name.startswith("_") and callable(member):
                assert inspect.getdoc(member), f"{thing.__name__}.{name}"


def test_package_tells_type_checkers_that_it_is_meant_to_be_read():
    assert resources.files("denselayer").joinpath("py.typed").is_file()


def test_package_exports_its_modules_and_its_version():
    assert denselayer.__all__ == sorted(
        [
            "functional",
            "fused",
            "nn",
            "optim",
            "parallel",
            "gradcheck",
            "layouts",
            "agreement",
            "bench",
            "cost",
            "data",
            "doctor",
            "exercises",
            "training",
        ]
    )
    assert all(inspect.ismodule(getattr(denselayer, name)) for name in denselayer.__all__)
    assert denselayer.__version__.count(".") == 2


def test_the_doctor_and_the_exercises_are_imported_only_when_they_are_wanted():
    wanted = (
        "import sys, denselayer; print(*(f'denselayer.{m}' in sys.modules for m in ('doctor', 'exercises')))"
    )
    asked = "; print(denselayer.doctor.diagnose.__name__, denselayer.exercises.get('dense-count').id)"
    printed = subprocess.run(
        [sys.executable, "-c", wanted + asked], capture_output=True, text=True, check=True, env=ENVIRONMENT
    ).stdout
    assert printed.split() == ["False", "False", "diagnose", "dense-count"]
    assert {"doctor", "exercises", "nn"} <= set(dir(denselayer))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        denselayer.nothing  # noqa: B018
