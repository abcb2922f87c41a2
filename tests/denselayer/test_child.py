"""A person's file in a child process: every way to end is told in a sentence, and nothing is left behind."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from denselayer import _child
from denselayer._child import run
from denselayer._child_side import Refused, describe, find, load, own_names

NAMES = "denselayer._child_side:own_names"
POSIX = pytest.mark.skipif(os.name == "nt", reason="signals and groups of processes")
LINUX = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")


def child(folder, text, name="layer.py", **options):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return run(options.pop("function", NAMES), path, **options)


def test_a_file_that_loads_gives_the_value_of_the_function_and_what_it_printed(tmp_path):
    ending = child(tmp_path, "import sys\nprint('hello')\nprint('beware', file=sys.stderr)\ndef f(): pass\n")
    assert ending.finished and ending.value == ["f"]
    assert ending.printed == "hello\nbeware\n"
    assert ending.sentence == ""


ENDINGS = {
    "division": ("def g():\n    return 1 / 0\ng()", "crash", 2, "with ZeroDivisionError: division by zero."),
    "syntax": ("x = 1\ndef f(:\n", "crash", 2, "cannot be read as Python: line 2 (`def f(:`): SyntaxError"),
    "indentation": ("def f():\nreturn 1", "crash", 2, "IndentationError"),
    "latin": ("# fine\nname = 'Zoë'".encode("latin-1"), "crash", 2, "save the file as UTF-8"),
    "utf-16": ("x = 1\n".encode("utf-16"), "crash", 1, "UTF-16"),
    "exit": ("import sys\nsys.exit(3)", "exits", 2, "ended the program in line 2 (`sys.exit(3)`)"),
    "raised exit": ("raise SystemExit", "exits", 1, "ended the program in line 1"),
    "os._exit": ("import os\nos._exit(0)", "exits", None, "exit code 0, without a word"),
    "recursion": ("def f(x):\n    return f(x) + 1\nf(1)", "crash", 2, "RecursionError"),
    "array": ("import numpy as np\nx = np.empty(3 * 2**27)", "memory", 2, "more than 2 GiB of memory"),
    "interrupt": ("raise KeyboardInterrupt", "crash", 1, "with KeyboardInterrupt."),
    "input": ("x = input('name? ')", "crash", 1, "with EOFError"),
    "no such module": ("\nimport torchlight", "crash", 2, "No module named 'torchlight'"),
    "bad message": ("class E(Exception):\n    __str__ = None\nraise E", "crash", 3, "with E."),
    "long message": ("raise ValueError('x' * 10**6)", "crash", 1, "x…"),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_every_end_is_one_sentence_with_the_persons_own_line(tmp_path, name):
    text, kind, line, words = ENDINGS[name]
    ending = child(tmp_path, text)
    assert (ending.kind, ending.line) == (kind, line)
    assert words in ending.sentence and ending.sentence.startswith("layer.py ")
    assert "\n" not in ending.sentence and len(ending.sentence) < 500


@POSIX
@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("import ctypes\ndef boom():\n    ctypes.string_at(0)\nboom()", 3, "with SIGSEGV"),
        ("import os, signal\nos.kill(os.getpid(), 9)", None, "most often by the system when memory is short"),
        ("import os, signal\nos.killpg(0, 15)", None, "with SIGTERM"),
    ],
)
def test_the_death_of_the_interpreter_is_a_crash(tmp_path, text, line, words):
    ending = child(tmp_path, text)
    assert (ending.kind, ending.line) == ("crash", line)
    assert words in ending.sentence


ENDLESS = {
    "a loop": ("def f():\n    while True:\n        pass\nf()", (2, 3)),
    "one long operation": ("x = 1\ny = 10 ** 10 ** 10", (2,)),
    "a lock": ("import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()", (4,)),
    "no watchdog": (
        "import faulthandler\nfaulthandler.cancel_dump_traceback_later()\nwhile 1: pass",
        (None,),
    ),
    "closed files": ("import os\nos.closerange(0, 200)\nwhile True: pass", (None,)),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_what_does_not_end_is_ended_and_its_line_told(tmp_path, name):
    text, lines = ENDLESS[name]
    begun = time.monotonic()
    ending = child(tmp_path, text, seconds=0.5)
    assert ending.kind == "endless-loop" and ending.line in lines
    assert "did not come to an end within 0.5 s" in ending.sentence
    assert time.monotonic() - begun < 30


def test_a_storm_of_prints_blocks_nobody_and_only_its_start_is_kept(tmp_path):
    ending = child(tmp_path, "print('x' * 3_000_000)\ndone = True\n")
    assert ending.finished and ending.value == ["done"]
    assert ending.size >= 3_000_000 and len(ending.printed) == _child.KEPT
    assert ending.notes == ("layer.py printed 3 MB; only the first 64 KB are kept.",)


def test_a_storm_without_end_is_stopped_early(tmp_path, monkeypatch):
    monkeypatch.setattr(_child, "FLOOD", 2**20)
    ending = child(tmp_path, "while True:\n    print('x' * 1000)", seconds=60)
    assert ending.kind == "print-storm" and ending.sentence.endswith("MB and was stopped.")


FORGED = """
import glob, json, os, sys
result = json.dumps({"kind": "finished", "value": "forged"})
for number in range(10):
    try:
        os.write(number, result.encode())
    except OSError:
        pass
for path in glob.glob("../*"):
    if os.path.isfile(path):
        open(path, "w").write(result)
os._exit(0)
"""


def test_what_a_file_prints_or_writes_is_not_taken_for_the_result(tmp_path):
    ending = child(tmp_path, FORGED)
    assert ending.kind == "exits" and ending.value is None


FORKS = """
import os, sys, time
def outlive():
    number = os.fork()
    if number == 0:
        if LEAVES: os.setsid()
        open(PLACE, "a").write(f"{os.getpid()}\\n")
        time.sleep(300)
outlive()
while not os.path.exists(PLACE): time.sleep(0.01)
"""


@LINUX
@pytest.mark.parametrize("leaves", [False, True])
def test_processes_that_a_file_started_are_ended_too(tmp_path, leaves):
    place = tmp_path / "numbers"
    ending = child(tmp_path, f"PLACE, LEAVES = {str(place)!r}, {leaves}\n{FORKS}")
    assert ending.finished
    assert all(map(_ends, place.read_text().split()))


def _ends(number):
    """Whether a process has ended, or does so in a moment: the system needs one to bury it."""
    for _ in range(200):
        if not _lives(number):
            return True
        time.sleep(0.05)
    return False


def _lives(number):
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@POSIX
def test_without_the_mark_the_group_is_ended_all_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(_child, "_marked", lambda token: [])
    place = tmp_path / "numbers"
    assert child(tmp_path, f"PLACE, LEAVES = {str(place)!r}, False\n{FORKS}").finished
    assert _ends(place.read_text().strip())


@POSIX
def test_a_forked_copy_of_the_file_gives_no_result_in_its_place(tmp_path):
    ending = child(tmp_path, "import os\nif os.fork():\n    os.wait()\n    os._exit(0)\n")
    assert ending.kind == "exits" and ending.value is None


@POSIX
def test_nothing_is_read_from_what_the_parent_reads(tmp_path):
    ours, theirs = os.pipe()
    os.write(theirs, b"a secret\n")
    before = os.dup(0)
    os.dup2(ours, 0)
    try:
        ending = child(tmp_path, "import sys\nprint(repr(sys.stdin.read()))\n")
    finally:
        os.dup2(before, 0)
        for number in (ours, theirs, before):
            os.close(number)
    assert ending.printed == "''\n"


def test_threads_and_exit_functions_hold_nobody_up(tmp_path):
    text = (
        "import atexit, threading, time\natexit.register(time.sleep, 300)\n"
        "threading.Thread(target=time.sleep, args=(300,)).start()\n"
    )
    begun = time.monotonic()
    assert child(tmp_path, text, seconds=60).finished
    assert time.monotonic() - begun < 60


def test_the_file_works_in_a_folder_of_its_own_and_finds_the_modules_beside_it(tmp_path, monkeypatch):
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    (tmp_path / "helper.py").write_text("answer = 42")
    text = "import os\nfrom helper import answer\nopen('stray.txt', 'w').close()\nprint(os.listdir())\n"
    ending = child(tmp_path, text)
    assert ending.value == ["answer"] and ending.printed == "['stray.txt']\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["helper.py", "layer.py"]


def test_a_crash_in_a_module_beside_the_file_names_the_line_of_the_file(tmp_path):
    (tmp_path / "helper.py").write_text("def f():\n    return {}['key']\n")
    ending = child(tmp_path, "import helper\n\nhelper.f()\n")
    assert ending.line == 3 and "KeyError" in ending.sentence


def test_no_folder_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    child(tmp_path, "import os\nos.mkdir('a')\nopen('a/b', 'w').close()\n1 / 0")
    assert not list((tmp_path / "temporary").iterdir())


def test_a_file_whose_name_hides_a_module_is_loaded_all_the_same(tmp_path):
    text = "import random\nimport numpy as np\nx = random.random() + np.zeros(1)[0]\n"
    for name in ("numpy.py", "random.py", "dense-no-loop.py", "two words.py", "ünï.py"):
        assert child(tmp_path, text, name=name).value == ["x"], name
        (tmp_path / name).unlink()


def test_the_main_part_does_not_run_and_byte_order_marks_do_no_harm(tmp_path):
    text = "\ufeffx = 1\r\nif __name__ == '__main__':\r\n    1 / 0\r\n"
    assert child(tmp_path, text).value == ["x"]


def test_a_result_that_json_does_not_know_is_told(tmp_path):
    ending = child(tmp_path, "", function="builtins:type")
    assert ending.kind == "failed" and "a result that cannot be told" in ending.sentence


def test_what_goes_wrong_before_the_file_is_loaded_is_not_laid_to_the_file(tmp_path):
    ending = child(tmp_path, "", function="denselayer:nothing")
    assert ending.kind == "never started" and "no attribute 'nothing'" in ending.sentence


def test_an_event_ends_the_child(tmp_path):
    stop = threading.Event()
    threading.Timer(0.5, stop.set).start()
    with pytest.raises(KeyboardInterrupt):
        child(tmp_path, "while True: pass", stop=stop, seconds=60)


PARENT = """
import sys
from denselayer._child import run
run("denselayer._child_side:own_names", sys.argv[1], seconds=60)
"""


@LINUX
def test_control_c_ends_the_child(tmp_path):
    place = tmp_path / "number"
    text = f"import os\nopen({str(place)!r}, 'w').write(str(os.getpid()))\nwhile True: pass\n"
    (tmp_path / "layer.py").write_text(text)
    environ = os.environ | {"PYTHONPATH": str(Path(_child.__file__).parents[1])}
    command = [sys.executable, "-c", PARENT, str(tmp_path / "layer.py")]
    parent = subprocess.Popen(command, env=environ, stderr=subprocess.PIPE)
    while not (place.exists() and place.read_text()):
        time.sleep(0.02)
    parent.send_signal(signal.SIGINT)
    assert b"KeyboardInterrupt" in parent.communicate(timeout=30)[1]
    assert _ends(place.read_text())


def test_without_limits_on_memory_it_is_said_so(tmp_path):
    (tmp_path / "layer.py").write_text("x = 1")
    program = (
        "import sys, json; sys.modules['resource'] = None\n"
        "from denselayer._child_side import _limit\nprint(json.dumps(_limit(10)))"
    )
    environ = os.environ | {"PYTHONPATH": str(Path(_child.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True)
    assert json.loads(done.stdout) == ["This system has no limit on memory: only the time was limited."]


@pytest.fixture
def module(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "argv", [*sys.argv])
    monkeypatch.setattr(sys, "modules", {**sys.modules})
    path = tmp_path / "my_layer.py"
    path.write_text("import os\nfrom math import sqrt\nclass Dense: pass\ndef forward(x): pass\nlimit = 3\n")
    return load(path)


def test_a_name_that_is_not_there_is_told_with_those_that_are(module):
    assert own_names(module) == ["Dense", "forward", "limit"]
    assert find(module, "Dense").__name__ == "Dense"
    with pytest.raises(Refused) as caught:
        find(module, "Densse")
    names = "it has Dense, forward, limit. Did you mean Dense?"
    assert str(caught.value) == f"There is no Densse in my_layer.py: {names}"
    with pytest.raises(Refused, match="limit.$"):
        find(module, "zzz")


def test_an_exception_is_one_line():
    assert describe(ValueError("\n first\nsecond")) == "ValueError:  first"
    assert describe(ValueError()) == "ValueError"
