"""``python -m denselayer grade``: answers are checked again, and no submission stops the others."""

import csv
import json
import os
import threading

import pytest
from bs4 import BeautifulSoup

from denselayer.__main__ import main
from denselayer.exercises import _grade, _grade_files, _grade_page, _registry, get, ids

RIGHT = "def dense(X, weight, bias):\n    return X @ weight.T + bias\n"
NO_BIAS = "def dense(X, weight, bias):\n    return X @ weight.T\n"
HOSTILE = "<img src=x onerror=alert(1)>"


def submission(name, answers, status="correct"):
    exercises = {each: {"answer": answer, "status": status} for each, answer in answers.items()}
    return json.dumps({"format": "denselayer submission 1", "name": name, "exercises": exercises})


CLASS = {
    "ada.json": submission("Ada", {"dense-no-loop": RIGHT, "dense-count": get("dense-count").solved}),
    "bob.json": submission(
        "Bob",
        {"dense-no-loop": NO_BIAS, "dense-silent-unit": 'dense_silent_unit = """ReLU <b>cuts</b>"""'},
    ),
    "deep/cy.json": submission("cy", {"dense-count": "dense_count = ..."}, status="not attempted"),
    "evil.json": submission(
        HOSTILE,
        {
            "dense-no-loop": "import os\nos._exit(0)",
            "dense-count": "while True: pass",
            "dense-shapes": "</pre><script>alert(2)</script>",
            "<script>": "x",
        },
    ),
    "formula.json": submission('=HYPERLINK("http://evil.example")', {"dense-count": "+1"}),
    "twice.json": submission(" BOB ", {"dense-no-loop": RIGHT}),
    "copy.json": submission("Dan", {"dense-no-loop": RIGHT, "dense-count": get("dense-count").solved}),
    "nobody.json": submission("", {}),
}
BROKEN = {
    "broken.json": (b'{"format": "denselayer', "it is no JSON"),
    "empty.json": (b"", "it is empty"),
    "list.json": (b"[1]", "it is something else"),
    "foreign.json": (b'{"cells": []}', "it is something else"),
    "bytes.json": (bytes(range(256)), "it is no JSON"),
    "nested.json": (b"[" * 100_000, "it is no JSON"),
    "newer.json": (b'{"format": "denselayer submission 9", "exercises": {}}', "its format is"),
    "state.json": (b'{"format": "denselayer exercises 1", "exercises": {}}', "ask for the file"),
    "hollow.json": (b'{"format": "denselayer submission 1", "exercises": 3}', "it has no exercises"),
    "big.json": (b'"' + b"x" * (_grade.LARGEST + 1) + b'"', "it is enormous (5.24 MB)"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("class")
    (place / "deep").mkdir()
    for name, text in CLASS.items():
        (place / name).write_text(text, encoding="utf-8")
    for name, (content, _) in BROKEN.items():
        (place / name).write_bytes(content)
    (place / "folder.json").mkdir()
    (place / "._ada.json").write_text("left by a file manager")
    (place / "notes.txt").write_text("no submission")
    return place


@pytest.fixture(autouse=True)
def one_chapter(monkeypatch):
    monkeypatch.setattr(_registry, "CHAPTERS", {"dense": "The dense layer"})


@pytest.fixture(scope="module")
def graded(folder, tmp_path_factory):
    """The rows of the table by file, the page, and the folder in which they are."""
    out = tmp_path_factory.mktemp("out")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_registry, "CHAPTERS", {"dense": "The dense layer"})
        assert main(["grade", str(folder), "--out", str(out), "--jobs", "2", "--time", "3"]) == 0
    with (out / "grades.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = {row["file"]: row for row in csv.DictReader(file)}
    return rows, (out / "grades.html").read_text(encoding="utf-8"), out


def test_there_is_one_row_for_each_file_and_one_column_for_each_exercise(graded):
    rows, _, _ = graded
    assert set(rows) == {*CLASS, *BROKEN, "folder.json"}
    assert list(rows["ada.json"]) == [*_grade_files.COLUMNS, *ids()]


def test_answers_are_checked_again_and_counted(graded):
    rows, _, _ = graded
    ada, bob = rows["ada.json"], rows["bob.json"]
    assert (ada["student"], ada["right"], ada["written"], ada["not right"]) == ("Ada", "2", "0", "0")
    assert (bob["right"], bob["written"], bob["not right"]) == ("0", "1", "1")
    assert bob["dense-no-loop"] == "values" and bob["dense-silent-unit"] == "written"
    assert bob["dense-count"] == "" and bob["of"] == str(len(ids()))
    assert rows["deep/cy.json"]["dense-count"] == "not attempted"


def test_claims_are_not_believed_and_a_difference_is_shown(graded):
    rows, html, _ = graded
    difference = "dense-no-loop: claims 'correct', found 'values'"
    assert difference in rows["bob.json"]["notes"] and "claims" not in rows["ada.json"]["notes"]
    assert difference in BeautifulSoup(html, "html5lib").text


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_submission_has_a_row_that_says_so(graded, name):
    row = graded[0][name]
    assert row["notes"].startswith("not graded: ") and BROKEN[name][1] in row["notes"]
    assert row["student"] == name.removesuffix(".json") and row["right"] == "0"


def test_answers_that_crash_or_hang_are_not_right_and_the_rest_is_graded(graded):
    evil = graded[0]["evil.json"]
    assert [evil[name] for name in ("dense-no-loop", "dense-count", "dense-shapes")] == ["error"] * 3
    assert "unknown exercises: <script>" in evil["notes"]


def test_doubles_are_said(graded):
    rows, _, _ = graded
    assert "the same name as twice.json" in rows["bob.json"]["notes"]
    assert "the same name as bob.json" in rows["twice.json"]["notes"]
    assert "the same answers as copy.json" in rows["ada.json"]["notes"]
    assert rows["copy.json"]["right"] == "2"
    assert "without a name; no answers" in rows["nobody.json"]["notes"]


def test_no_cell_is_a_formula(graded):
    rows, _, out = graded
    assert rows["formula.json"]["student"] == '\'=HYPERLINK("http://evil.example")'
    with (out / "grades.csv").open(encoding="utf-8-sig", newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@x", "\t=1", "\r\n=1", " =1", "\u200b=1", "＝1"])
def test_a_formula_is_made_harmless(text):
    assert _grade_files.harmless(text)[0] == "'"


def test_the_page_runs_nothing_and_asks_nobody(graded):
    page = BeautifulSoup(graded[1], "html5lib")
    assert not page.find_all(["script", "img", "link", "iframe", "object", "b"])
    assert not [tag for tag in page.find_all(True) for name in tag.attrs if name.startswith("on")]
    assert {link["href"][0] for link in page.find_all("a")} == {"#"}
    assert "url(" not in graded[1] and "@import" not in graded[1]
    assert HOSTILE in page.text and "</pre><script>alert(2)</script>" in page.text


def test_the_tables_of_the_page_have_captions_and_scoped_headers(graded):
    page = BeautifulSoup(graded[1], "html5lib")
    assert page.html["lang"] == "en" and page.title.text
    tables = page.find_all("table")
    assert [table.caption.text for table in tables] == ["All students", "The dense layer"]
    for table in tables:
        assert {cell["scope"] for cell in table.thead.find_all("th")} == {"col"}
        assert {row.th["scope"] for row in table.tbody.find_all("tr")} == {"row"}
        assert table.parent["tabindex"] == "0" and table.parent["aria-label"] == table.caption.text
    hidden = [cell.text for cell in tables[1].find_all(class_="hidden")]
    assert {"right", "written", "values", "no answer"} <= set(hidden)


def test_a_failed_answer_has_its_feedback_and_a_text_stands_beside_the_rubric(graded):
    page = BeautifulSoup(graded[1], "html5lib")
    [bob] = [section for section in page.find_all("section") if section.h2.text == "Bob"]
    written, failed = bob.find_all("article")
    assert (
        "The bias is left out." in failed.find(class_="feedback").text
        and NO_BIAS.strip() in failed.details.text
    )
    text, rubric = written.find(class_="beside").find_all("div", recursive=False)
    assert text.pre.text == "ReLU <b>cuts</b>"
    assert [point.text for point in rubric.find_all("li")] == list(get("dense-silent-unit").points)


def test_the_page_is_for_dark_screens_and_phones_too(graded):
    assert "prefers-color-scheme: dark" in graded[1] and "width=device-width" in graded[1]


def test_rows_are_in_the_order_of_names_and_the_same_each_time(graded, folder):
    assert [row["student"] for row in graded[0].values()][2:4] == ["Ada", "big"]
    found = _grade.papers(folder)
    assert found == _grade.papers(folder)
    assert [paper.name for paper in found] == sorted((paper.name for paper in found), key=str.casefold)


@pytest.fixture
def small(tmp_path):
    (tmp_path / "class").mkdir()
    (tmp_path / "class" / "cy.json").write_text(submission("cy", {}))
    return tmp_path / "class"


def test_the_files_stand_beside_the_submissions_and_are_replaced_by_the_next_run(small, capsys):
    for _ in range(2):
        assert main(["grade", str(small)]) == 0
    assert sorted(path.name for path in small.iterdir()) == ["cy.json", "grades.csv", "grades.html"]
    assert "1 of 1 submissions graded" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["grades.csv", "grades.html"])
def test_files_of_others_are_not_replaced(small, capsys, name):
    (small / name).write_text("student,mark\nAda,5\n")
    assert main(["grade", str(small)]) == 1
    assert "grading has not made it" in capsys.readouterr().err
    assert (small / name).read_text() == "student,mark\nAda,5\n"
    assert len(list(small.iterdir())) == 2


def test_a_folder_that_is_not_there_or_empty_is_said(tmp_path, capsys):
    assert main(["grade", str(tmp_path / "nowhere")]) == 1
    assert "there is no folder" in capsys.readouterr().err
    assert main(["grade", str(tmp_path)]) == 1
    assert "there is no submission in" in capsys.readouterr().err


@pytest.mark.parametrize("options", [("--jobs", "0"), ("--jobs", "x"), ("--time", "-1")])
def test_bad_options_are_refused(small, options, capsys):
    with pytest.raises(SystemExit):
        main(["grade", str(small), *options])
    assert "error: argument" in capsys.readouterr().err


def test_control_c_ends_the_children_and_writes_nothing(small, monkeypatch, capsys):
    (small / "dan.json").write_text(submission("Dan", {"dense-count": "while True: pass"}))

    def interrupt(graded):
        raise KeyboardInterrupt

    monkeypatch.setattr("denselayer._grade_command._say", interrupt)
    assert main(["grade", str(small), "--time", "300"]) == 130
    assert "nothing was written" in capsys.readouterr().err
    assert not list(small.glob("grades.*"))
    assert not [thread for thread in threading.enumerate() if "ThreadPool" in thread.name]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_and_a_dangling_link_are_no_files(small):
    os.mkfifo(small / "pipe.json")
    (small / "link.json").symlink_to(small / "nowhere")
    broken = {paper.file: paper.broken for paper in _grade.papers(small)}
    assert broken["pipe.json"] == broken["link.json"] == "not graded: it is no file"


def test_names_and_entries_of_any_kind_are_read(tmp_path):
    whole = {
        "format": "denselayer submission 1",
        "name": ["a"],
        "exercises": {"dense-count": 3, "dense-no-loop": {"answer": 3}, "dense-shapes": {"answer": "x"}},
    }
    (tmp_path / "odd.json").write_text("\ufeff" + json.dumps(whole), encoding="utf-8")
    [paper] = _grade.papers(tmp_path)
    assert paper.name == "odd" and paper.claims == {"dense-shapes": "nothing"}
    assert paper.notes == ("without a name", "no answer that can be read: dense-count, dense-no-loop")


def test_long_and_manifold_names_become_one_line():
    assert _grade._line("a\n\x1b[31mb\x00" + "c" * 500).startswith("a [31mb c")
    assert len(_grade._line("x" * 500)) == _grade.LONGEST_NAME


def test_a_text_that_is_computed_is_shown_as_source():
    why = get("dense-silent-unit")
    source = "dense_silent_unit = 'a' + 'b'"
    assert _grade_page.explanation(why, source) == source
    assert _grade_page.explanation(why, "(") == "("
