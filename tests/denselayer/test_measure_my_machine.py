"""``python -m denselayer bench``: its arguments, its file, its table beside the book's numbers."""

import errno
from dataclasses import replace

import pytest

from denselayer import _bench_command, bench
from denselayer.__main__ import COMMANDS, main
from denselayer._runner import Stopped

FORWARD = bench.Case(
    "64,784,256",
    {"plain": [4e-3] * 5, "fused": [2e-3] * 5},
    {},
    operations=8_000_000,
    traffic=1000,
    others=(0.5,) * 5,
    missing={"in place": "failed: died"},
)
LIMITS = (
    bench.Case("peak", {"gemm 256": [1e-3]}, {}, operations=8_000_000),
    bench.Case("DRAM", {"read": [1.0]}, {"nbytes": 10**9, "passes": 1, "capacity": None}, traffic=10**9),
)
MINE = bench.Samples("machine", {"cpu": "My processor", "date": "today"}, (*LIMITS, FORWARD))


@pytest.fixture
def measured(monkeypatch):
    """Replaces the measurement; the list of jobs that it was asked for."""
    asked = []

    def run(suite, jobs, progress):
        asked.extend(jobs)
        progress("at work")
        return MINE

    monkeypatch.setattr(_bench_command, "run_jobs", run)
    return asked


@pytest.fixture
def book(monkeypatch):
    """The book's own samples: twice as fast."""
    theirs = bench.Case(
        "64,784,256", {"plain": [3e-3], "fused": [1e-3]}, {}, operations=8_000_000, traffic=1000
    )
    stored = {"forward": bench.Samples("forward", {}, (theirs,)), "limits": bench.Samples("l", {}, LIMITS)}

    def read(name):
        if name not in stored:
            raise ValueError(name)
        return stored[name]

    monkeypatch.setattr(_bench_command, "stored", read)


def test_the_table_shows_this_machine_and_the_books_in_one_line(measured, book, capsys):
    assert main(["bench", "--threads", "1"]) == 0
    shown = capsys.readouterr()
    assert "at work" in shown.err and "at work" not in shown.out
    [line] = [line.split() for line in shown.out.splitlines() if " fused " in line]
    assert line == [
        "64,784,256",
        "1",
        "fused",
        "2.00",
        "ms",
        "4.0",
        "G/s",
        "50%",
        "2.00x",
        "8.0",
        "G/s",
        "100%",
        "3.00x",
    ]
    assert "My processor" in shown.out and "peak float32 (gemm)" in shown.out
    assert "Other programs took up to 50% of the processors" in shown.out
    assert "without samples, 1 times: failed: died" in shown.out


def test_without_the_books_samples_its_columns_are_empty(measured, monkeypatch, capsys):
    def nothing(name):
        raise ValueError("there are none")

    monkeypatch.setattr(_bench_command, "stored", nothing)
    assert main(["bench"]) == 0
    [line] = [line.split() for line in capsys.readouterr().out.splitlines() if " fused " in line]
    assert line[-3:] == ["-", "-", "-"]


@pytest.mark.parametrize("name", ["operations", "traffic"])
def test_what_a_case_of_the_book_does_not_count_is_an_empty_column(name, measured, monkeypatch, capsys):
    theirs = replace(FORWARD, **{name: None})
    samples = bench.Samples("s", {}, (*LIMITS, theirs))
    monkeypatch.setattr(_bench_command, "stored", lambda name: samples)
    assert main(["bench"]) == 0
    [line] = [line.split() for line in capsys.readouterr().out.splitlines() if " fused " in line]
    assert line[-2:] == ["-", "2.00x"]


def test_the_file_can_be_read_and_is_not_replaced_silently(measured, book, tmp_path, capsys):
    path = tmp_path / "my.json"
    assert main(["bench", "--output", str(path)]) == 0
    assert bench.load(path) == MINE
    path.write_text("precious")
    measured.clear()
    assert main(["bench", "--output", str(path)]) == 1
    assert "is there already" in capsys.readouterr().err
    assert path.read_text() == "precious" and measured == []
    assert main(["bench", "--output", str(path), "--force"]) == 0
    assert bench.load(path) == MINE


def test_a_folder_that_is_not_there_is_noticed_before_anything_is_measured(measured, tmp_path, capsys):
    assert main(["bench", "--output", str(tmp_path / "no" / "my.json")]) == 1
    assert "there is no folder" in capsys.readouterr().err and measured == []


def test_a_folder_without_the_right_to_write_is_noticed_before_anything_is_measured(
    measured, tmp_path, capsys, monkeypatch
):
    def refuse(dir):
        raise OSError(errno.EROFS, f"Read-only: {dir}")

    monkeypatch.setattr(_bench_command, "TemporaryFile", refuse)
    assert main(["bench", "--output", str(tmp_path / "my.json")]) == 1
    assert f"written in {tmp_path} (Read-only: {tmp_path})" in capsys.readouterr().err and measured == []


def test_a_folder_in_the_place_of_the_file_is_never_replaced(measured, tmp_path, capsys):
    assert main(["bench", "--output", str(tmp_path), "--force"]) == 1
    assert "is a folder" in capsys.readouterr().err and measured == []


def test_what_was_measured_is_shown_even_if_it_cannot_be_kept(measured, book, tmp_path, capsys, monkeypatch):
    def refuse(samples, path):
        raise PermissionError(f"no right to write {path}")

    monkeypatch.setattr(_bench_command, "save", refuse)
    assert main(["bench", "--output", str(tmp_path / "my.json")]) == 1
    shown = capsys.readouterr()
    assert " fused " in shown.out and "no right to write" in shown.err


def test_control_c_writes_and_shows_what_was_measured(monkeypatch, book, tmp_path, capsys):
    def run(suite, jobs, progress):
        raise Stopped(MINE)

    monkeypatch.setattr(_bench_command, "run_jobs", run)
    assert main(["bench", "--output", str(tmp_path / "my.json")]) == 130
    shown = capsys.readouterr()
    assert "stopped: 3 of" in shown.err and " fused " in shown.out
    assert bench.load(tmp_path / "my.json") == MINE


def test_shapes_threads_and_time_decide_the_jobs(measured, book):
    main(["bench", "--threads", "2,1", "--shapes", "8,4,2", "--seconds", "10"])
    layers = [(job.name, job.threads) for job in measured if job.operations and job.name != "peak"]
    names = ("8,4,2", "backward 8,4,2", "784-512-256-10, batch 128")
    assert layers == [(name, threads) for threads in (1, 2) for name in names]
    assert 0 < sum(job.limit for job in measured) <= 10
    assert {job.clock for job in measured if job.threads == 1} == {"cpu"}
    assert {job.clock for job in measured if job.threads == 2} == {"wall"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "COMMAND"),
        (["bake"], "invalid choice: 'bake'"),
        (["bench", "--shapes", "3,a,2"], "'3,a,2' is no shape: say N,IN,OUT"),
        (["bench", "--shapes", "3,0,2"], "is no shape"),
        (["bench", "--threads", "two"], "'two' is no list of thread counts"),
        (["bench", "--threads", "0"], "is no list of thread counts"),
        (["bench", "--threads", "1,,2"], "'1,,2' is no list of thread counts"),
        (["bench", "--threads", "²"], "'²' is no list of thread counts"),
        (["bench", "--shapes", "²,2,2"], "'²,2,2' is no shape"),
        (["bench", "--seconds", "-3"], "is no time in seconds"),
        (["bench", "--seconds", "nan"], "is no time in seconds"),
    ],
)
def test_arguments_that_make_no_sense_are_answered(arguments, words, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(name, capsys):
    with pytest.raises(SystemExit) as caught:
        main([name, "--help"])
    assert caught.value.code == 0
    assert COMMANDS[name][1][1:] in capsys.readouterr().out.replace("\n", " ")


def test_a_small_machine_is_measured_for_real(tmp_path, capsys):
    path = tmp_path / "my.json"
    jobs = _bench_command.within(_bench_command.layer_jobs([1], ["4,8,4"]), 0.001)
    bench.save(bench.run("machine", jobs), path)
    samples = bench.load(path)
    assert [case.missing for case in samples.cases] == [{}, {}, {}]
    assert samples.case("4,8,4").variants == ("plain", "in place", "gemm only", "fused")
    assert "4,8,4" in _bench_command.report(samples)
