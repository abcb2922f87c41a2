"""``python -m denselayer doctor``: what is found in a file, whatever the file does, and the exit code."""

import json

import pytest

from denselayer.__main__ import main
from denselayer.doctor import DEFECTS

LAYER = """
import numpy as np

class Dense:
    def __init__(self, inputs, outputs):
        self.W = np.random.default_rng(0).normal(size=(inputs, outputs))
        self.b = np.zeros(outputs)

    def forward(self, x):
        self.x = x
        return x @ self.W + self.b

    def backward(self, d_out):
        self.dW = self.x.T @ d_out
        self.db = d_out.sum(axis=0)
        return d_out @ self.W.T
"""
SICK = LAYER.replace("d_out.sum(axis=0)", "-d_out.sum(axis=0)").replace("Dense", "Flipped")
PAIR = """
def forward(x, weight, bias):
    return x @ weight.T + bias

def backward(d_out, x, weight):
    return d_out @ weight, d_out.T @ x, d_out.sum(axis=0)

limit = 3
"""


@pytest.fixture
def doctor(tmp_path, capsys, monkeypatch):
    """Write a file, run the command on it; the exit code, the output and the error output."""
    monkeypatch.chdir(tmp_path)

    def run(text, target="layer.py", *options):
        (tmp_path / "layer.py").write_text(text)
        try:
            code = main(["doctor", target, *options])
        except SystemExit as error:
            code = error.code
        return code, *capsys.readouterr()

    return run


def test_a_healthy_layer_has_the_exit_code_0(doctor):
    code, out, err = doctor(LAYER, "layer.py:Dense")
    assert code == 0 and err == ""
    assert out.startswith("layer.py:Dense\nHEALTHY")


def test_a_sick_one_has_1_and_the_defect_is_named(doctor):
    code, out, _ = doctor(SICK, "layer.py:Flipped")
    assert code == 1 and "[sign-flipped]" in out


def test_a_pair_of_functions_is_examined(doctor):
    code, out, _ = doctor(PAIR, "layer.py:forward,backward")
    assert code == 0 and out.startswith("layer.py:forward,backward\nHEALTHY")


def test_what_cannot_be_examined_has_2(doctor):
    code, out, _ = doctor("class A:\n    def forward(self): pass\n    backward = forward\n", "layer.py:A")
    assert code == 2 and "CANNOT TELL" in out


def test_without_a_name_all_that_can_be_examined_is_and_it_is_said_what(doctor):
    code, out, err = doctor(f"{LAYER}{SICK}{PAIR}", "layer.py")
    assert err == "found in layer.py: Dense; Flipped; forward,backward\n"
    assert code == 1
    assert [line for line in out.splitlines() if line.startswith("layer.py:")] == [
        "layer.py:Dense",
        "layer.py:Flipped",
        "layer.py:forward,backward",
    ]


def test_of_several_a_sick_one_decides_then_one_that_cannot_be_told(doctor):
    odd = "class Odd:\n    def forward(self): pass\n    backward = forward\n"
    assert doctor(f"{SICK}{odd}", "layer.py")[0] == 1
    assert doctor(f"{odd}{LAYER}", "layer.py")[0] == 2


def test_parents_of_what_can_be_examined_are_not_and_pairs_go_by_their_names(doctor):
    text = (
        f"{LAYER}class Better(Dense): pass\ndef relu(z): return z * (z > 0)\n"
        "def relu_backward(d_out, z): return d_out * (z > 0)\n"
    )
    assert doctor(text)[2] == "found in layer.py: Better; relu,relu_backward\n"


def test_json_has_the_reports_and_nothing_else_stands_on_the_output(doctor):
    text = f"print('noise')\n{LAYER}"
    _, out, _ = doctor(text, "layer.py:Dense", "--json")
    report = json.loads(out)
    assert report["examined"] == "layer.py:Dense" and report["status"] == "healthy"
    _, out, _ = doctor(text, "layer.py", "--json")
    assert [each["examined"] for each in json.loads(out)] == ["layer.py:Dense"]


ACCIDENTS = {
    "crash": ("import numpy as np\n1 / 0\n", "ZeroDivisionError: division by zero in line 2"),
    "exits": ("import sys\nsys.exit(2)\n", "sys.exit(2) in line 2"),
    "endless-loop": ("while True:\n    pass\n", "within 0.5 s; it was in line"),
    "memory": ("import numpy as np\nx = np.ones((10**5, 10**5))\n", "It was in line 2 then"),
}


@pytest.mark.parametrize("defect", ACCIDENTS)
def test_a_file_that_does_not_come_to_its_end_is_a_finding(doctor, defect):
    text, words = ACCIDENTS[defect]
    limit = ["--time", "0.5"] if "while" in text else []
    for target in ("layer.py", "layer.py:Dense"):
        code, out, _ = doctor(text, target, *limit)
        assert code == 1 and f"[{defect}]" in out
        assert words in " ".join(out.split())


@pytest.mark.parametrize("place", ["forward", "backward"])
def test_an_end_in_the_middle_of_the_examination_is_told_with_its_line(doctor, place):
    lines = LAYER.splitlines()
    line = next(number for number, each in enumerate(lines, 1) if f"def {place}" in each)
    text = "\n".join([*lines[:line], "        raise SystemExit(4)", *lines[line:]])
    code, out, _ = doctor(text, "layer.py:Dense")
    assert code == 1 and "[exits]" in out and f"line {line + 1}" in out


def test_a_storm_of_prints_is_a_finding_beside_the_others(doctor):
    code, out, _ = doctor(f"print('x' * 2_000_000)\n{SICK}", "layer.py:Flipped")
    assert code == 1 and "[print-storm]" in out and "[sign-flipped]" in out
    assert "only the first 64 KB are kept" in out


def test_an_array_that_is_too_large_is_a_finding_of_its_own(doctor):
    text = LAYER.replace("return d_out @ self.W.T", "return np.ones((10**5, 10**5))")
    code, out, _ = doctor(text, "layer.py:Dense", "--memory", "512MiB")
    assert code == 1 and "[memory]" in out and "512 MiB" in out


def test_what_the_file_printed_before_it_stopped_is_shown(doctor):
    _, out, _ = doctor("for i in range(50): print('line', i)\n1 / 0\n")
    assert "what it printed:\n  ...\n" in out and "  line 49" in out and "  line 3\n" not in out


BAD_CALLS = {
    "layr.py": "There is no file layr.py. Did you mean layer.py?",
    "layer": "There is no file layer. Did you mean layer.py?",
    "nowhere/layer.py": "There is no folder nowhere either.",
    ".": ". is a folder",
    "layer.py:": "is no name of a class and no pair of functions",
    "layer.py:a,b,c": "is no name of a class and no pair of functions",
    "layer.py:Dens": "There is no Dens in layer.py: it has Dense, forward, backward, limit. Did you mean",
    "layer.py:limit": "limit is an int: name a class, or two functions.",
    "layer.py:forward": "forward is a function: name its backward pass too",
    "layer.py:forward,limit": "limit is an int, not a function",
    "notes.ipynb": "Save the cell with your layer as a file.",
}


@pytest.mark.parametrize("target", BAD_CALLS)
def test_a_bad_call_has_3_and_says_what_to_do(doctor, tmp_path, target):
    (tmp_path / "notes.ipynb").write_text("{}")
    code, out, err = doctor(f"{LAYER}{PAIR}", target)
    assert code == 3 and out == ""
    assert err.startswith("error: ") and BAD_CALLS[target] in err


def test_a_class_without_a_backward_pass_and_a_file_without_layers_are_bad_calls(doctor):
    code, _, err = doctor("class A:\n    def forward(self, x): pass\n", "layer.py:A")
    assert code == 3 and "The class A has no method backward." in err
    code, _, err = doctor("import numpy as np\nx = 3\ndef f(): pass\n")
    assert code == 3 and "holds nothing to examine" in err and "It defines f, x." in err


@pytest.mark.parametrize(
    "options", [("--time", "0"), ("--time", "x"), ("--memory", "much"), ("--memory", "0"), ("--shout",)]
)
def test_bad_options_have_3_too(doctor, options):
    code, _, err = doctor(LAYER, "layer.py:Dense", *options)
    assert code == 3 and "error: " in err


def test_every_accident_is_in_the_table_of_defects():
    assert {*ACCIDENTS, "print-storm"} <= {each.id for each in DEFECTS.values() if each.group == "files"}
