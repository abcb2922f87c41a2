"""Two real processes give what one gives; a rank that is lost ends the run with an error that names it."""

import ast
import os
import re
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import torch.distributed

from benchmarks.distributed import measure, notes, run, steady
from benchmarks.suites import allreduce
from denselayer import cost

WAYS = ("by hand", "library", "data parallel")
LIMIT = 30
RUNS = {
    "well": {"task": "check"},
    "dies": {"task": "exchange", "fault": "dies:1"},
    "absent": {"task": "exchange", "fault": "absent:1", "join": 2.5},
    "stuck": {"task": "exchange", "fault": "stuck:0", "answer": 2.5},
}


def outcome(settings):
    """What a run gave or how it failed, the seconds that it took, and the processes it left."""
    start = time.monotonic()
    try:
        result = run.launch(**settings, timeout=LIMIT)
    except run.RunError as error:
        result = error
    return result, time.monotonic() - start


def orphaned(folder):
    """Start a run whose ranks never end, kill what started it, and wait for them; those that are left."""
    command = [sys.executable, "-m", "benchmarks.distributed.run", "exchange"]
    command += ["--fault", "stuck:0", "--answer", "60"]
    starter = subprocess.Popen(command, cwd=run.ROOT, env=os.environ | {"TMPDIR": str(folder)})
    try:
        joined = wait_for(lambda: [each for each in read_notes(folder) if each.get("state") == "joined"], 2)
    finally:
        starter.kill()
        starter.wait()
    wait_for(lambda: [each for each in joined if not run._is_worker(each["pid"])], len(joined))
    return len(joined), [each["pid"] for each in joined if run._is_worker(each["pid"])]


def read_notes(folder):
    return [note for place in folder.glob("denselayer-*") for note in notes.read(place, 2)]


def wait_for(find, count):
    """What ``find`` finds, once there are ``count``; what there is when the time is over."""
    end = time.monotonic() + LIMIT
    while len(found := find()) < count and time.monotonic() < end:
        time.sleep(0.05)
    return found


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """All runs at the same time, since most of each is waiting for PyTorch to load."""
    with ThreadPoolExecutor(len(RUNS) + 1) as pool:
        orphans = pool.submit(orphaned, tmp_path_factory.mktemp("orphans"))
        results = dict(zip(RUNS, pool.map(outcome, RUNS.values()), strict=True))
        return results | {"orphans": orphans.result()}


@pytest.fixture(scope="module")
def reports(runs):
    result, _ = runs["well"]
    if isinstance(result, run.RunError):
        pytest.fail(f"{result}\n{result.log}")
    assert len(result) == 2
    return result


@pytest.mark.parametrize("way", WAYS)
def test_whole_numbers_give_what_one_process_gives_exactly(reports, way):
    assert [report[f"{way}, whole"]["equal"] for report in reports] == [True, True]


@pytest.mark.parametrize("way", WAYS)
def test_real_numbers_differ_by_rounding(reports, way):
    for report in reports:
        assert report[f"{way}, real"]["units"] < 4


@pytest.mark.parametrize("way", WAYS)
def test_a_split_block_exchanges_once_each_way_and_data_parallel_only_backward(reports, way):
    for report in reports:
        exchanges = report[f"{way}, whole"]["exchanges"]
        assert sum(exchanges["forward"].values()) == (way != "data parallel")
        assert sum(exchanges["backward"].values()) == 1
        assert all("reduce" in name for each in exchanges.values() for name in each)


def test_the_library_refuses_a_hidden_width_that_the_processes_do_not_divide(reports):
    assert all("11" in report["uneven library"] for report in reports)


def test_the_average_over_ranks_is_wrong_for_unequal_batches(reports):
    assert {report["uneven averages"] for report in reports} == {-1.0}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("dies", ["rank 1 of 2 died by signal 9 (SIGKILL)", "memory"]),
        ("absent", ["rank 1 of 2 did not come within 2.5 s", "was started", "--join"]),
        ("stuck", ["rank 0 of 2 did not answer rank 1 within 2.5 s", "--answer"]),
    ],
)
def test_a_lost_rank_ends_the_run_with_its_name_and_advice(runs, name, words):
    error, seconds = runs[name]
    assert isinstance(error, run.RunError)
    assert all(word in str(error) for word in words), f"{error}\n{error.log}"
    assert seconds < LIMIT


@pytest.mark.parametrize("name", ["dies", "absent", "stuck"])
def test_nothing_is_left_running(runs, name):
    error, _ = runs[name]
    assert len(error.pids) == 2
    for pid in error.pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="a parent's death is signalled on Linux alone")
def test_ranks_end_with_the_process_that_started_them(runs):
    assert runs["orphans"] == (2, [])


@pytest.fixture
def alone(tmp_path, monkeypatch):
    """A group of one process: this one."""
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", run.LOOPBACK)
    store = torch.distributed.FileStore(str(tmp_path / "store"), 1)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


def test_a_measurement_gives_a_time_for_each_round_of_everything(alone):
    blocks = [[4, 8], [2, 6]]
    report = measure.main(0, 1, sizes=[8, 64], blocks=blocks, rounds=3, min_seconds=1e-5)
    taken = {tuple(name): times for name, times in report["ns"]}
    ways = {(way, *block) for way in allreduce.WAYS for block in blocks}
    assert set(taken) == {("all-reduce", 8), ("all-reduce", 64)} | ways
    assert all(len(times) == 3 and min(times) > 0 for times in taken.values())
    assert len(report["others"]) == 3


@pytest.mark.skipif(sys.platform != "linux", reason="cores are chosen on Linux alone")
def test_a_steady_rank_has_a_core_that_is_kept_awake_and_gives_it_back():
    before = os.sched_getaffinity(0)
    with steady.steady(rank=1):
        assert len(os.sched_getaffinity(0)) == 1
        (loop,) = steady._loops
        assert os.sched_getaffinity(loop) <= before
        assert steady.loop_seconds() >= 0
    assert os.sched_getaffinity(0) == before
    with pytest.raises(ProcessLookupError):
        os.kill(loop, 0)


def test_the_suite_makes_a_case_of_each_size_and_block(monkeypatch):
    def launch(task, ranks, *, options, **limits):
        names = [["all-reduce", size] for size in options["sizes"]]
        names += [[way, *block] for way in allreduce.WAYS for block in options["blocks"]]
        return [{"ns": [[name, [1000, 2000, 4000]] for name in names], "others": [0.0, 0.1, 0.0]}] * ranks

    monkeypatch.setattr(allreduce, "launch", launch)
    samples = allreduce.run(lambda text: None)
    sizes = [case for case in samples.cases if case.name.startswith("all-reduce")]
    assert [case.shape["bytes"] for case in sizes] == allreduce.SIZES
    assert [case.shape["bytes"] for case in sizes if "asleep" in case.seconds] == allreduce.ASLEEP
    (block,) = samples.select(name="block 64,128")
    assert block.median("split") == 2e-6
    assert block.shape == {"batch": 64, "width": 128, "hidden": 512, "ranks": 2}
    widths = [128, 512, 128]
    assert block.operations == cost.network(widths, 64, bias=False, input_gradient=True).training.operations


def note(state="joined", **more):
    return {"pid": 7, "state": state, **more}


LIMITS = {"join": 1.0, "answer": 2.0, "timeout": 3.0}
LOST = {"kind": "peer", "text": "RuntimeError: Connection closed by peer"}
OWN = {"kind": "own", "text": "ValueError: no such width"}
TORCHRUN = (
    "rank : 0 (local_rank: 0)\n exitcode : -15 (pid: 1)\nRoot Cause\n rank : 1\n exitcode : -11 (pid: 2)"
)


@pytest.mark.parametrize(
    ("said", "log", "late", "words"),
    [
        ([note(error=LOST), note(error=OWN)], "", False, "rank 1 of 2 failed: ValueError: no such width"),
        ([note(error=LOST), note()], "", False, "rank 1 of 2 died without a word"),
        ([note(), note()], TORCHRUN, False, "rank 1 of 2 died by signal 11 (SIGSEGV)"),
        ([note("done"), note()], "", True, "not finished after 3 s; still at work: rank 1 of 2"),
        ([{}, {}], "no module named torch", False, "before the ranks began: no module named torch"),
        (
            [note("started", error={"kind": "missing", "missing": [1, 2]}), {}, {}],
            "",
            False,
            "ranks 1, 2 of 3 did not come within 1 s (its process was never seen)",
        ),
    ],
)
def test_the_one_to_blame_is_found_in_what_the_ranks_noted(said, log, late, words):
    assert words in run.blame(said, log, late, LIMITS)


def test_the_command_line_says_what_went_wrong(monkeypatch, capsys):
    def launch(task, ranks, **limits):
        raise run.RunError(f"rank 1 of {ranks} died", "the log\n")

    monkeypatch.setattr(run, "launch", launch)
    assert run.main(["exchange", "--ranks", "3", "--log"]) == 1
    assert capsys.readouterr().err == "the log\nerror: rank 1 of 3 died\n"


def test_the_chapter_shows_the_code_that_is_run():
    """Docstrings and types aside, the classes that the chapter prints are those of the block."""
    chapter = (run.ROOT / "chapters" / "07-scaling.qmd").read_text(encoding="utf-8")
    block = (run.ROOT / "benchmarks" / "distributed" / "block.py").read_text(encoding="utf-8")
    shown = re.findall(r"^```python\n(.*?)^```$", chapter, re.MULTILINE | re.DOTALL)
    definitions = {node.name: node for text in shown for node in plain(text)}
    own = {node.name: node for node in plain(block)}
    split = {node.name: node for node in own["SplitBlock"].body}
    assert ast.dump(definitions["ToAll"]) == ast.dump(own["ToAll"])
    assert ast.dump(definitions["Sum"]) == ast.dump(own["Sum"])
    assert ast.dump(definitions["forward"]) == ast.dump(split["forward"])


def plain(source):
    """Classes and functions of a source without docstrings and types."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            del node.body[0]
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        if isinstance(node, ast.arg):
            node.annotation = None
    return [node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
