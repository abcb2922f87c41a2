"""What a notebook hands in runs elsewhere: answers bring along what they use of other cells."""

import functools
import json
import linecache
import sys
import types

import numpy as np
import pytest

from denselayer import exercises as ex
from denselayer import functional as F
from denselayer.exercises._carried import whole_source


class Notebook:
    """Cells that are run one after the other in one namespace, as IPython does."""

    def __init__(self, monkeypatch):
        module = types.ModuleType("__main__")
        monkeypatch.setitem(sys.modules, "__main__", module)
        self.space = vars(module)
        self.count = 0

    def run(self, source):
        self.count += 1
        name = f"<cell of {id(self)} {self.count}>"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        exec(compile(source, name, "exec"), self.space)

    def carried(self, *names):
        return whole_source([self.space[name] for name in names], names)


@pytest.fixture
def notebook(monkeypatch):
    return Notebook(monkeypatch)


def elsewhere(source, *names):
    space = {"__name__": "elsewhere"}
    exec(source, space)
    return [space[name] for name in names]


def test_a_function_brings_its_imports_and_the_functions_of_other_cells(notebook):
    notebook.run("import numpy as np\nfrom math import sqrt as root\nfrom denselayer import functional as F")
    notebook.run("def turned(w):\n    return w.T")
    notebook.run(
        "def dense(X, weight, bias):\n    return root(4) / 2 * X @ turned(weight) + np.asarray(bias)"
    )
    [dense] = elsewhere(notebook.carried("dense"), "dense")
    assert ex.get("dense-no-loop").check(dense).passed


def test_the_check_in_the_same_cell_is_left_out(notebook):
    notebook.run("calls = []\ndef f(x):\n    return 2 * x\n\ncalls.append(f(1))\nprint_me = f(2)")
    source = notebook.carried("f")
    assert "calls" not in source
    assert elsewhere(source, "f")[0](4) == 8


def test_plain_data_come_along_as_they_are_now(notebook):
    notebook.run("import numpy as np\nslope, table, weights = 0.1, {'a': [1, 2]}, np.float32([[1, 2]])")
    notebook.run("slope = 0.2")
    notebook.run("def f(x):\n    return slope * x + table['a'][1] + weights.sum()")
    assert elsewhere(notebook.carried("f"), "f")[0](10) == pytest.approx(7.0)


def test_a_class_brings_its_base_its_methods_and_what_these_use(notebook):
    notebook.run("import numpy as np\nclass Base:\n    def one(self):\n        return np.ones(1)")
    notebook.run("def two():\n    return 2")
    notebook.run("class Layer(Base):\n    def both(self):\n        return self.one() + two()")
    [Layer] = elsewhere(notebook.carried("Layer"), "Layer")
    assert Layer().both() == 3


def test_functions_that_call_each_other_come_once(notebook):
    notebook.run(
        "def even(n):\n    return n == 0 or odd(n - 1)\n\ndef odd(n):\n    return n != 0 and even(n - 1)"
    )
    source = notebook.carried("even", "odd")
    assert source.count("def even") == source.count("def odd") == 1
    assert elsewhere(source, "even")[0](10)


def test_decorators_and_wrapped_functions_come_along(notebook):
    notebook.run("import functools")
    notebook.run("@functools.lru_cache\ndef f(n):\n    return 2 * n")
    assert elsewhere(notebook.carried("f"), "f")[0](3) == 6


def test_the_newest_definition_in_a_cell_counts(notebook):
    notebook.run("def f(n):\n    return 1\n\ndef f(n):\n    return 2")
    assert elsewhere(notebook.carried("f"), "f")[0](0) == 2


def test_names_of_arguments_and_builtins_are_not_taken_from_other_cells(notebook):
    notebook.run("x, sum = 5, 7")
    notebook.run("def f(x):\n    return x")
    assert notebook.carried("f").strip() == "def f(x):\n    return x"


def test_what_cannot_be_written_down_is_left_to_the_definition(notebook):
    notebook.run("import numpy as np\nrng = np.random.default_rng(0)")
    notebook.run("def f():\n    return rng.normal()")
    assert "rng =" not in notebook.carried("f")


def test_a_file_is_handed_in_whole(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("SLOPE = 3\n\n\ndef f(x):\n    return SLOPE * x\n", encoding="utf-8")
    space = {}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), space)
    assert whole_source([space["f"]], ["f"]) == path.read_text(encoding="utf-8")


def test_another_name_is_given_the_name_of_the_exercise(notebook):
    notebook.run("def my_layer(X, weight, bias):\n    return X @ weight.T + bias")
    source = whole_source([notebook.space["my_layer"]], ["dense"])
    [dense] = elsewhere(source, "dense")
    assert ex.get("dense-no-loop").check(dense).passed


def test_a_function_of_a_package_is_imported():
    assert whole_source([F.linear], ["dense"]) == (
        "from denselayer.functional import linear\ndense = linear\n"
    )


def test_what_has_no_source_gives_none():
    assert whole_source([np.add], ["f"]) == ""
    assert whole_source([functools.partial(max)], ["f"]) == ""


def test_a_check_in_a_notebook_keeps_what_runs_elsewhere(notebook, tmp_path, monkeypatch):
    monkeypatch.setenv("DENSELAYER_EXERCISES", str(tmp_path))
    notebook.run("from denselayer import exercises as ex\ndef turned(w):\n    return w.T")
    notebook.space["NAME"] = "dense-no-loop"
    notebook.run(
        "def mine(X, weight, bias):\n    return X @ turned(weight) + bias\n\nanswer = ex.check(NAME, mine)"
    )
    kept = json.loads((tmp_path / "state.json").read_text(encoding="utf-8"))
    source = json.dumps(kept)
    assert "def turned" in source
    assert "ex.check" not in source
    assert notebook.space["answer"].passed
