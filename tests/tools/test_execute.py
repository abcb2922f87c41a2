"""Execution in a kernel: what is stored, what stops it, and that a second run gives the same file."""

import asyncio
import base64
import json
import os
import signal
import struct
import subprocess
import sys
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_output

from tools.convert import convert
from tools.errors import BuildError
from tools.execute import clean_png, execute, kernel_environment, merge_streams
from tools.notebooks import refresh
from tools.references import collect

HEAD = "# One {#sec-one}\n\n"


def cell(label, code, *options):
    lines = [f"#| {option}\n" for option in (f"label: {label}", *options)]
    return f"```{{python}}\n{''.join(lines)}{code}\n```\n\n"


def run(book, **options):
    page = book.pages[1]
    return execute(convert(page, book, collect(book)), book.root, **options)


CHAPTER = (
    HEAD
    + "Before: `{python} 1 + 1`.\n\n"
    + cell("import", "import os, sys\nimport small\n\nn = small.FACTOR * 400_000")
    + 'Now `{python} f"{n:,}"` and `{python} {"a": n}["a"] // 7`.\n\n'
    + cell("streams", "print('out 1')\nprint('err', file=sys.stderr)\nprint('out 2')")
    + cell("settings", "print(sys.executable, os.path.basename(os.getcwd()), os.environ['PYTHONHASHSEED'])")
    + cell("value", "n + 1")
    + cell("raises", "1 / 0", "error: true")
    + cell("skipped", "raise SystemExit", "eval: false")
    + cell(
        "fig-a",
        "import matplotlib.pyplot as plt\n\nplt.plot([1, 3, 2])\nplt.show()",
        'fig-cap: "a"',
        'fig-alt: "b"',
    )
    + "After: `{python} n`.\n"
)


def test_a_chapter_is_executed_in_order_by_this_python(make_book):
    chapter = CHAPTER.replace("print(sys.executable,", f"print(sys.executable == {sys.executable!r},")
    seen = []
    results = run(make_book(chapter), progress=lambda done, total, label: seen.append((done, total, label)))
    assert list(results.values.values()) == ["2", "1,200,000", "171428", "1200000"]
    outputs = results.outputs
    assert [(o.name, o.text) for o in outputs["streams"]] == [
        ("stdout", "out 1\nout 2\n"),
        ("stderr", "err\n"),
    ]
    assert outputs["settings"][0].text == "True notebooks 0\n"
    assert outputs["value"][0].data == {"text/plain": "1200001"}
    assert outputs["raises"][0].traceback == ["ZeroDivisionError: division by zero"]
    assert "skipped" not in outputs
    assert set(outputs["fig-a"][0].data) == {"image/png", "text/plain"}
    pixels = struct.unpack(">I", base64.b64decode(outputs["fig-a"][0].data["image/png"])[16:20])[0]
    assert pixels == 2 * outputs["fig-a"][0].metadata["image/png"]["width"]
    assert seen[0] == (0, 6, "import") and seen[-1] == (6, 6, "")


def test_executing_again_gives_the_same_bytes(make_book):
    book = make_book(
        CHAPTER.replace(cell("settings", "print(sys.executable"), "").replace("sys.executable, ", "")
    )
    path = book.root / "notebooks" / "01-one.ipynb"
    refresh(book)
    first = path.read_bytes()
    refresh(book, force=True)
    assert path.read_bytes() == first
    stored = json.loads(first)
    counts = [c["execution_count"] for c in stored["cells"] if c["cell_type"] == "code"]
    assert counts == list(range(1, len(counts) + 1))
    assert b"Software" not in first and str(book.root).encode() not in first and b"\r" not in first
    nbformat.validate(nbformat.reads(first.decode(), as_version=4))


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            "x = 1\n\nx.nothing",
            r"one\.qmd:9: cell bad: AttributeError: 'int' object has no attribute 'nothing'$",
        ),
        ("def f():\n    boom()\n\nf()", r"one\.qmd:10: cell bad: NameError: name 'boom' is not defined$"),
        ("x = (1,\n", r"one\.qmd:\d+: cell bad: SyntaxError: "),
        ("print(object())", r"one\.qmd:5: cell bad: prints the memory address 0x"),
        (
            "import small\nprint(small.__file__)",
            r"one\.qmd:5: cell bad: prints .*, a path that exists on this",
        ),
        ("import os\nos._exit(1)", r"one\.qmd:5: cell bad: the Python process died"),
    ],
)
def test_a_cell_that_fails_stops_with_its_place_and_the_plain_error(make_book, code, message):
    book = make_book(HEAD + "text\n\n" + cell("bad", code) + cell("later", "1"))
    with pytest.raises(BuildError, match=message) as error:
        run(book)
    assert "\x1b" not in str(error.value)


def test_a_cell_that_takes_too_long_is_stopped(make_book):
    book = make_book(HEAD + cell("slow", "import time\ntime.sleep(60)"))
    started = time.monotonic()
    with pytest.raises(BuildError, match=r"01-one\.qmd:3: cell slow: not finished after 1 s"):
        run(book, timeout=1)
    assert time.monotonic() - started < 30


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("nothing", r"one\.qmd:4: inline expression `nothing`: NameError: name 'nothing' is not defined"),
        ("''", r"one\.qmd:4: inline expression `''` gives nothing"),
        ("'a\\nb'", r"one\.qmd:4: inline expression .* gives several lines"),
    ],
)
def test_an_inline_expression_that_fails_names_its_line(make_book, expression, message):
    with pytest.raises(BuildError, match=message):
        run(make_book(f"{HEAD}text\nwith `{{python}} {expression}`.\n"))


def test_expressions_may_use_the_names_of_the_chapter_and_addresses_may_be_printed_if_not_compared(make_book):
    ignored = cell("a", "str = 3\nprint(object())", "tags: [nbval-ignore-output]")
    results = run(make_book(HEAD + ignored + "`{python} str` `{python} 'a’b'` `{python} 'q\"'`\n"))
    assert list(results.values.values()) == ["3", "a’b", 'q"']
    assert "0x" in results.outputs["a"][0].text


def test_execution_leaves_no_file_of_its_own(make_book, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    run(make_book(HEAD + cell("one", "n = 1")))
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".json"] == []


def test_a_chapter_can_be_executed_where_an_event_loop_runs(make_book):
    async def inside_a_loop():
        return run(make_book(HEAD + cell("one", "n = 1") + "Now `{python} n + 1`.\n"))

    with ThreadPoolExecutor(1) as pool:
        results = pool.submit(asyncio.run, inside_a_loop()).result()
    assert list(results.values.values()) == ["2"]


def test_a_failing_chapter_leaves_every_notebook_as_it_was(make_book):
    good, bad = cell("good", "1"), cell("bad", "1 / 0")
    book = make_book(HEAD + good, "# Two {#sec-two}\n\n" + bad)
    folder = book.root / "notebooks"
    folder.mkdir()
    (folder / "91-more.ipynb").write_text("{}")
    with pytest.raises(BuildError, match=r"chapters/91-more\.qmd:5: cell bad: ZeroDivisionError"):
        refresh(book)
    assert (folder / "91-more.ipynb").read_text() == "{}"
    assert len(json.loads((folder / "01-one.ipynb").read_text())["cells"]) == 3
    assert sorted(path.name for path in folder.iterdir()) == ["01-one.ipynb", "91-more.ipynb"]


SCRIPT = """
import sys
from tools.book import load_book
from tools.notebooks import refresh
refresh(load_book(sys.argv[1]), report=lambda page, done, total, label: print("at", label, flush=True))
"""


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
def test_ctrl_c_stops_the_kernel_and_leaves_the_notebook(make_book):
    code = "import os, pathlib, time\npathlib.Path('pid').write_text(str(os.getpid()))\ntime.sleep(60)"
    book = make_book(HEAD + cell("slow", code))
    folder = book.root / "notebooks"
    folder.mkdir()
    (folder / "01-one.ipynb").write_text("{}")
    root = Path(__file__).resolve().parents[2]
    environ = {**os.environ, "PYTHONPATH": str(root)}
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(book.root)], env=environ, stderr=subprocess.PIPE
    )
    wait_until(lambda: (folder / "pid").is_file() and (folder / "pid").read_text())
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert b"KeyboardInterrupt" in errors
    wait_until(lambda: not alive(int((folder / "pid").read_text())))
    assert (folder / "01-one.ipynb").read_text() == "{}"


def wait_until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.1)


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return not Path(f"/proc/{pid}/stat").is_file() or Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"


def test_the_users_settings_do_not_reach_the_kernel(tmp_path, monkeypatch):
    for name in ("PYTHONSTARTUP", "PYTHONPATH", "IPYTHONDIR", "MPLBACKEND", "DENSELAYER_PARAMETERS"):
        monkeypatch.setenv(name, "mine")
    environ = kernel_environment(tmp_path, tmp_path / "scratch")
    assert "mine" not in environ.values()
    assert environ["PYTHONPATH"].split(os.pathsep) == [str(tmp_path / "code"), str(tmp_path / "figures")]
    assert environ["PYTHONNOUSERSITE"] == "1" and environ["PYTHONHASHSEED"] == "0"
    assert environ["OMP_NUM_THREADS"] == environ["OPENBLAS_NUM_THREADS"] == "1"


def stream(name, text):
    return new_output("stream", name=name, text=text)


def test_streams_are_joined_up_to_the_next_other_output():
    shown = new_output("display_data", data={"text/plain": "x"})
    merged = merge_streams(
        [stream("stderr", "e"), stream("stdout", "a"), stream("stderr", "f"), shown, stream("stdout", "b")]
    )
    assert [output.get("text", "shown") for output in merged] == ["a", "ef", "shown", "b"]


def chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def test_png_loses_its_notes_and_keeps_its_picture():
    start, header, end = b"\x89PNG\r\n\x1a\n", chunk(b"IHDR", b"h" * 13), chunk(b"IEND", b"")
    picture = chunk(b"pHYs", b"p" * 9) + chunk(b"IDAT", b"data")
    notes = chunk(b"tEXt", b"Software\0x") + chunk(b"tIME", b"1234567") + chunk(b"iTXt", b"Date")
    dirty = base64.b64encode(start + header + notes + picture + end).decode()
    assert base64.b64decode(clean_png(dirty)) == start + header + picture + end
    assert clean_png(clean_png(dirty)) == clean_png(dirty)
