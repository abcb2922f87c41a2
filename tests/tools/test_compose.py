"""What the composer makes of an executed notebook."""

import json
import re

import pytest
import sample_book
import yaml

from tools import compose
from tools.book import load_book
from tools.errors import BuildError


def code(label, outputs=(), source="x = 1", **options):
    return {
        "cell_type": "code",
        "id": label,
        "metadata": {"dense": {"options": {"label": label, **options}}},
        "source": source,
        "outputs": list(outputs),
        "execution_count": 1,
    }


def rendered(cell):
    return compose.to_markdown([cell], "one_files").text


def image(mime="image/png", data=None):
    return {"output_type": "display_data", "data": {mime: data or sample_book.IMAGE_TEXT}}


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    return load_book(sample_book.write(tmp_path_factory.mktemp("book")))


def test_a_page_without_code_is_its_own_text_below_the_header(book):
    page = book.pages[0]
    assert compose.stream(page, None)[0].startswith("# Preface")


def test_a_page_with_code_is_made_of_the_chapters_markup_and_not_of_what_jupyter_shows(book):
    page = book.pages[1]
    lines = [item for item in compose.stream(page, compose.load_notebook(page)) if isinstance(item, str)]
    assert lines[0] == "# The *first* `chapter` {#sec-first}"
    assert "$$ {#eq-first}" in lines
    assert "The answer is 1,785, and `` a `tick` b `` is code." in lines
    assert not any("This notebook is" in line for line in lines)


def test_no_line_of_the_chapter_is_lost(book):
    for page in book.pages[1:]:
        source = compose.stream(page, compose.load_notebook(page))
        kept = {item for item in source if isinstance(item, str)}
        cells = {number for cell in page.document.cells for number in range(cell.line, cell.last + 1)}
        for number, line in enumerate(page.document.lines, start=1):
            if line.strip() and number not in cells and "{python}" not in line:
                assert line in kept, f"{page.name}:{number}"


def test_a_missing_notebook_is_an_error_that_names_the_command(book, tmp_path):
    page = next(page for page in book.pages if page.notebook)
    gone = sample_book.write(tmp_path)
    (gone / "notebooks" / page.notebook.name).unlink()
    with pytest.raises(
        BuildError, match=r"chapters/01-first\.qmd: notebooks/01-first\.ipynb .* `make notebooks`"
    ):
        compose.load_notebook(load_book(gone).pages[1])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "cannot be read"),
        ("[]", "is no notebook"),
        ('{"cells": 3}', "is no notebook"),
        ("{}", "is no notebook"),
    ],
)
def test_a_file_that_is_no_notebook_is_an_error(tmp_path, content, message):
    root = sample_book.write(tmp_path)
    (root / "notebooks" / "01-first.ipynb").write_text(content, encoding="utf-8")
    with pytest.raises(BuildError, match=rf"01-first\.ipynb {message}.*`make notebooks FORCE=1`"):
        compose.load_notebook(load_book(root).pages[1])


def test_code_and_outputs_stand_in_one_cell():
    text = rendered(code("one", [sample_book.stdout("1\n")], source="print(1)"))
    assert "{#one .cell}" in text
    assert "``` {.python .cell-code}\nprint(1)\n```" in text
    assert ".cell-output-stdout}\n```\n1\n```" in text


@pytest.mark.parametrize(
    ("options", "code_shown", "output_shown"),
    [
        ({}, True, True),
        ({"echo": False}, False, True),
        ({"output": False}, True, False),
        ({"echo": False, "output": False}, False, False),
        ({"include": False}, False, False),
    ],
)
def test_options_decide_what_is_shown(options, code_shown, output_shown):
    text = rendered(code("one", [sample_book.stdout("shown\n")], source="hidden()", **options))
    assert ("hidden()" in text) is code_shown
    assert ("shown" in text) is output_shown
    assert bool(text.strip()) is (code_shown or output_shown)


def test_warnings_can_be_left_out():
    outputs = [sample_book.stderr("careful\n"), sample_book.stdout("kept\n")]
    assert "careful" in rendered(code("one", outputs))
    text = rendered(code("one", outputs, warning=False))
    assert "careful" not in text
    assert "kept" in text


@pytest.mark.parametrize(
    ("fold", "expected"), [(True, "<details class"), ("show", " open><summary>A &lt;b&gt;</summary>")]
)
def test_folded_code_is_a_disclosure(fold, expected):
    text = rendered(code("one", source="x", **{"code-fold": fold, "code-summary": "A <b>"}))
    assert expected in text
    assert "<summary>A &lt;b&gt;</summary>" in text


def test_a_fence_is_longer_than_any_in_the_text():
    text = rendered(code("one", [sample_book.stdout("a ````` b\n")], source='"""```\n```"""'))
    assert "```` {.python .cell-code}" in text
    assert "``````\na ````` b\n``````" in text


def test_pieces_of_one_stream_are_joined():
    outputs = [
        sample_book.stdout("a "),
        sample_book.stdout("b\n"),
        sample_book.stderr("c"),
        sample_book.stdout("d"),
    ]
    assert [output["text"] for output in compose.merged_streams(outputs)] == ["a b\n", "c", "d"]


def test_colour_codes_of_a_traceback_are_dropped():
    text = rendered(code("first-error", sample_book.OUTPUTS["first-error"]))
    assert "ZeroDivisionError: division by zero" in text
    assert "\x1b" not in text


def test_an_image_becomes_a_file_with_its_size_and_its_description():
    options = {"fig-cap": "A *cap*", "fig-alt": 'Say "hi"\nand \\ so on'}
    composed = compose.to_markdown([code("fig-one", [image()], **options)], "one_files/figure-html")
    assert composed.files == {"one_files/figure-html/fig-one-1.png": sample_book.IMAGE}
    assert '{fig-alt="Say \\"hi\\" and \\\\ so on" width="300" height="150"}' in composed.text
    assert "{#fig-one}" in composed.text
    assert "\nA *cap*\n" in composed.text


def test_two_images_of_a_cell_become_two_files():
    composed = compose.to_markdown([code("fig-one", [image(), image()])], "f")
    assert list(composed.files) == ["f/fig-one-1.png", "f/fig-one-2.png"]


def test_svg_is_kept_as_text():
    composed = compose.to_markdown([code("fig-one", [image("image/svg+xml", "<svg/>")])], "f")
    assert composed.files == {"f/fig-one-1.svg": b"<svg/>"}


@pytest.mark.parametrize(
    ("per_metre", "size"), [(None, (600, 300)), (7559, (300, 150)), (3780, (600, 300)), (5669, (400, 200))]
)
def test_the_size_of_a_png_follows_its_resolution(per_metre, size):
    assert compose.png_size(sample_book.png(600, 300, per_metre)) == size


def test_what_is_no_png_has_no_size():
    assert compose.png_size(b"GIF89a") is None


def test_a_table_with_a_caption_of_the_chapter_loses_its_own():
    text = rendered(code("tbl-one", sample_book.OUTPUTS["tbl-first-made"], **{"tbl-cap": "Mine"}))
    assert "own caption" not in text
    assert "\nMine\n" in text
    assert "own caption" in rendered(code("one", sample_book.OUTPUTS["tbl-first-made"]))


def test_a_table_in_markdown_is_a_table_with_the_caption_of_the_chapter():
    outputs = [image("text/markdown", "| a | b |\n|:--|:--|\n| $x^2$ | 1 |")]
    lines = rendered(code("tbl-one", outputs, **{"tbl-cap": "Mine"})).splitlines()
    start = lines.index("::::::: {#tbl-one}")
    end = lines.index(":::::::")
    assert lines[start + 1 : end] == ["", "| a | b |", "|:--|:--|", "| $x^2$ | 1 |", "", "", "Mine"]


def test_plain_text_is_shown_only_where_there_is_nothing_better():
    both = sample_book.display(text_plain="PLAIN", text_html="<b>RICH</b>")
    assert "PLAIN" not in rendered(code("one", [both]))
    assert "PLAIN" in rendered(code("one", [sample_book.display(text_plain="PLAIN")]))


def test_downloads_stand_behind_the_title():
    lines = compose.with_links(["# Title", "", "Text"], compose.Links("../n.ipynb", "../w.whl"))
    assert lines[0] == "# Title"
    assert lines.index("::: {.chapter-links}") < lines.index("Text")
    assert any('href="../n.ipynb" download' in line for line in lines)
    assert compose.with_links(["# Title"], compose.Links()) == ["# Title"]


def test_the_foot_names_the_versions():
    notebook = {"metadata": {"dense": {"executed": sample_book.VERSIONS}}}
    assert compose.facts(notebook) == (
        "Every output on this page was computed with Python 3.11.7 and NumPy 2.4.6 on Linux x86_64, openblas."
    )
    assert compose.facts(None) == ""


def test_the_foot_says_whether_the_notebook_is_fresh():
    notebook = {"metadata": {"dense": {"executed": sample_book.VERSIONS}}}
    assert compose.facts(notebook, "").endswith(
        "openblas. The notebook of this page is fresh: nothing that it depends on has changed since."
    )
    stale = compose.facts(notebook, "changed since it was executed: constraints.txt")
    assert stale.endswith(
        "The notebook of this page is stale; changed since it was executed: constraints.txt."
    )
    assert compose.facts(None, "") == ""


# ---------- the appendix on the environment ----------

ENVIRONMENT = """::: {.environment-versions}

| what | value |
|:--|:--|
| all | not filled |

: Versions {#tbl-v}

:::

| kept | table |
|:--|:--|

::: {.environment-pages}

| all | not filled |

: Pages {#tbl-p}

:::""".splitlines()


def execution(name, stale="", **executed):
    return compose.Execution(f"sec-{name}", f"{name}.ipynb", executed, stale)


def test_the_tables_of_the_environment_are_filled_and_keep_their_captions():
    pages = [execution("one", python="3.11.7", cpu="A*B|C"), execution("two", python="3.11.7", cpu="A*B|C")]
    lines = compose.with_environment(ENVIRONMENT, pages)
    assert not any("not filled" in line for line in lines)
    assert "| Python | 3.11.7 |" in lines
    assert "| processor | A\\*B\\|C |" in lines
    assert "| NumPy | not recorded |" in lines
    assert "| @sec-one | `one.ipynb` | fresh |" in lines
    assert [line for line in lines if line.startswith((": ", ":::", "| kept"))] == [
        line for line in ENVIRONMENT if line.startswith((": ", ":::", "| kept"))
    ]


def test_notebooks_from_two_places_have_a_column_each():
    pages = [execution("one", python="3.11.7"), execution("two", "changed: constraints.txt", python="3.12.1")]
    lines = compose.with_environment(ENVIRONMENT, pages)
    assert "| Python | 3.11.7 | 3.12.1 |" in lines
    assert "| @sec-one | `one.ipynb` | 1 | fresh |" in lines
    assert "| @sec-two | `two.ipynb` | 2 | stale: changed: constraints.txt |" in lines


def test_a_page_without_these_tables_stays_as_it_is():
    page = ["# Title", "", "| a |", "|--|", ":::: {.callout-note}", "| b |", "::::"]
    assert compose.with_environment(page, [execution("one")]) == page


# ---------- the instructor's edition ----------


def test_a_solution_stands_closed_behind_its_exercise_with_its_cells():
    exercise = ["before", ":::: {#exr-a-one}", "Do it.", "::: {.hint}", "H", ":::", "::::", "after"]
    cell = code("a-cell", [sample_book.stdout("12\n")])
    solution = ["x", "::: {#sol-a-one}", "$$ 1 $$ {#eq-a}", cell, ":::", "y"]
    woven = compose.with_solutions(exercise, [solution])
    start = woven.index("::::")
    assert woven[:start] == exercise[:6]
    assert woven[-1] == "after"
    inside = woven[start + 1 : -1]
    assert inside[1].endswith('{.callout-tip .solution-inline collapse="true" title="Solution"}')
    assert "$$ 1 $$" in inside
    assert [item["metadata"]["dense"]["options"]["label"] for item in inside if isinstance(item, dict)] == [
        "inline-a-cell"
    ]


def test_fences_inside_code_do_not_end_a_div():
    source = ["::: {#exr-a-one}", "```", ":::", "```", ":::", "after"]
    woven = compose.with_solutions(source, [["::: {#sol-a-one}", "S", ":::"]])
    assert woven[:5] == source[:5]
    assert woven[-1] == "after"


def test_an_exercise_without_solution_stays_as_it_is():
    source = ["::: {#exr-a-one}", "text", ":::"]
    assert compose.with_solutions(source, [["nothing"]]) == source


# ---------- Quarto's notebooks ----------


def test_quarto_gets_the_options_back_as_lines_that_mean_the_same(book):
    page = book.pages[1]
    notebook = compose.to_notebook(compose.stream(page, compose.load_notebook(page)))
    sources = {cell.label: cell for cell in page.document.cells}
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(cells) == len(sources) - 1, "the cell that is not run is text"
    for cell in cells:
        lines = "".join(cell["source"]).split("\n")
        header = [line.removeprefix("#| ") for line in lines if line.startswith("#| ")]
        options = yaml.safe_load("\n".join(header))
        assert options == sources[options["label"]].options


def test_quarto_gets_no_html_output_because_it_would_load_scripts_from_another_host(book):
    page = book.pages[1]
    notebook = compose.to_notebook(compose.stream(page, compose.load_notebook(page)))
    data = [output.get("data", {}) for cell in notebook["cells"] for output in cell.get("outputs", [])]
    assert not any("text/html" in each for each in data)
    assert any("{=html}" in each.get("text/markdown", "") for each in data)


def test_quarto_gets_images_with_the_size_that_the_other_engine_shows(book):
    page = book.pages[1]
    notebook = compose.to_notebook(compose.stream(page, compose.load_notebook(page)))
    sizes = [
        output["metadata"]["image/png"]
        for cell in notebook["cells"]
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]
    assert sizes == [{"width": 300, "height": 150}]


def test_a_cells_label_that_looks_like_a_solution_is_hidden_from_quarto():
    cell = compose.to_notebook([code("sol-neuron-cell")])["cells"][0]
    assert cell["source"][0] == '#| label: "cell-sol-neuron-cell"\n'


def test_the_notebook_for_quarto_is_json(book):
    page = book.pages[1]
    notebook = compose.to_notebook(compose.stream(page, compose.load_notebook(page)))
    assert json.loads(json.dumps(notebook)) == notebook


def test_the_list_of_works_is_not_what_quarto_takes_for_the_list_of_the_whole_book():
    lines = compose.with_references(["# One", "", "See @rumelhart1986."])
    assert not [line for line in lines if re.match(r"^:::\s*\{#refs", line)]
    assert [line for line in lines if "#refs" in line]
