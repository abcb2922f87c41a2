"""The words of the exercises: taken from the stored notebooks, as Markdown and as plain text."""

import json
import zipfile

import pytest
from nbformat.v4 import new_output

from tools import exercises, notebooks, stale, texts, wheel
from tools.book import load_book
from tools.environment import ROOT
from tools.execute import Results
from tools.notebooks import refresh
from tools.references import collect

CHAPTER = """# One {#sec-one}

```{python}
#| label: one
n = 1200
```

::: {#exr-count kind="number"}
## Count the *weights* of $\\mathbf{W}_1$

How many, of `{python} f"{n:,}"`? See @sec-one and [@nielsen2015].

$$
\\frac{1}{2} \\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}
$$

::: {.hint}
First $x_k$.
:::

```python
def f(x):
    ...
```

::: hint
Then `{python} n`.
:::

After the hints.^[A note.]
:::

::: {#exr-why kind="explain"}
Why?
:::
"""
SOLUTIONS = """# Solutions {#sec-solutions-one}

::: {#sol-count}
It is

```{python}
#| label: solved-count
print(6)
6
```

as @exr-count says.

```{python}
#| label: solved-hidden
#| include: false
```

```{python}
#| label: solved-quiet
#| echo: false
```
:::

::: {#sol-why}
A full answer says

- that it is so,
  and more;
- `why`.
:::
"""
OUTPUTS = {
    "solved-count": [
        new_output("stream", name="stdout", text="6\n"),
        new_output("execute_result", data={"text/plain": "6", "text/markdown": "**6**"}, execution_count=1),
        new_output("display_data", data={"text/plain": "<Figure>", "image/png": "AAAA"}),
        new_output("stream", name="stderr", text="\x1b[31mcareful\x1b[0m\n"),
    ],
    "solved-hidden": [new_output("stream", name="stdout", text="hidden\n")],
    "solved-quiet": [new_output("stream", name="stdout", text="shown ``` \n")],
}


@pytest.fixture
def book(make_book, monkeypatch):
    """A book with two exercises whose notebooks have been made; no kernel runs."""

    def execute(draft, root, *, timeout, progress):
        numbers = [number for piece in draft.pieces for number, _, _ in piece.expressions]
        outputs = {piece.id: OUTPUTS.get(piece.id, []) for piece in draft.pieces if piece.executed}
        return Results(dict(zip(numbers, ["1,200", "1200"], strict=False)), outputs)

    monkeypatch.setattr(notebooks, "execute_draft", execute)
    package = "def ids():\n    return []\n"
    made = make_book(CHAPTER, SOLUTIONS, **{"code/small/tasks.py": package})
    settings = made.root / "_quarto.yml"
    settings.write_text(settings.read_text() + "exercises: small.tasks\n")
    return load_book(made.root)


def written(book):
    refresh(book)
    return json.loads(path_of(book).read_text(encoding="utf-8"))


def path_of(book):
    return exercises.texts_path(book.root, book.config)


def test_they_lie_beside_the_module_that_shows_them(book):
    refresh(book)
    assert path_of(book) == book.root / "code/small/tasks/book/texts.json"
    assert path_of(book).is_file()


def test_a_prompt_has_its_values_and_references_and_not_its_hints(book):
    told = written(book)["count"]
    assert told["title"] == "Count the *weights* of $\\mathbf{W}_1$"
    assert told["prompt"] == (
        "How many, of 1,200? See Chapter 1 and (Nielsen, 2015).\n\n"
        "$$\n\\frac{1}{2} \\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}\n$$\n\n"
        "``` python\ndef f(x):\n    ...\n```\n\nAfter the hints.<sup>1</sup>\n\n<sup>1</sup> A note."
    )
    assert told["hints"] == ["First $x_k$.", "Then 1200."]


def test_the_plain_form_has_no_marks(book):
    told = written(book)["count"]["plain"]
    assert told["title"] == "Count the weights of W₁"
    assert told["prompt"] == (
        "How many, of 1,200? See Chapter 1 and (Nielsen, 2015).\n\n1/2 [[1, 2], [3, 4]]\n\n"
        "    def f(x):\n        ...\n\nAfter the hints.[1]\n\n[1] A note."
    )
    assert told["hints"] == ["First x_k.", "Then 1200."]


def test_a_solution_shows_its_code_and_the_text_that_it_printed(book):
    told = written(book)["count"]
    assert told["solution"] == (
        "It is\n\n``` python\nprint(6)\n6\n```\n\n    6\n\n    6\n\n    careful\n\n"
        "as Exercise 1.1 says.\n\n    shown ```"
    )
    assert told["plain"]["solution"] == (
        "It is\n\n    print(6)\n    6\n\n    6\n\n    6\n\n    careful\n\n"
        "as Exercise 1.1 says.\n\n    shown ```"
    )


def test_a_rubric_stays_a_list(book):
    told = written(book)["why"]
    assert told["title"] == told["plain"]["title"] == "" and told["hints"] == []
    for solution in (told["solution"], told["plain"]["solution"]):
        assert solution.startswith("A full answer says\n\n- that it is so, and more;\n- ")


def test_the_file_is_sorted_and_the_same_every_time(book):
    refresh(book)
    first = path_of(book).read_bytes()
    assert first.endswith(b"}\n") and b"\\u" not in first
    found = json.loads(first)
    assert list(found) == sorted(found) == ["count", "why"]
    path_of(book).unlink()
    refresh(book)
    assert path_of(book).read_bytes() == first
    refresh(book, force=True)
    assert path_of(book).read_bytes() == first


def test_writing_it_makes_no_notebook_stale(book):
    refresh(book)
    path_of(book).write_text("{}")
    again = load_book(book.root)
    assert stale.find_stale(again, collect(again)) == []


@pytest.mark.parametrize("damage", ["", "[]", "{", '{"count": 3}', "\xff"])
def test_a_damaged_file_is_made_again(book, damage):
    before = written(book)
    path_of(book).write_bytes(damage.encode("latin-1"))
    assert written(book) == before


def test_a_page_that_is_stale_keeps_the_words_it_had(book):
    before = written(book)
    chapter = book.root / "chapters/01-one.qmd"
    chapter.write_text(CHAPTER.replace("After the hints", "Behind the hints").replace("sec-one", "sec-uno"))
    solutions = book.root / "chapters/91-more.qmd"
    solutions.write_text(SOLUTIONS.replace("that it is so", "that it is not"))
    again = load_book(book.root)
    refresh(again, only=["chapters/91-more.qmd"])
    told = json.loads(path_of(again).read_text(encoding="utf-8"))
    assert told["count"] == before["count"]
    assert "that it is not" in told["why"]["solution"]
    assert told["why"]["prompt"] == before["why"]["prompt"] == "Why?"


def test_an_exercise_that_is_gone_leaves_no_words(book):
    refresh(book)
    for name, text in (("01-one", CHAPTER), ("91-more", SOLUTIONS)):
        changed = text.replace("-why", "-whence")
        (book.root / f"chapters/{name}.qmd").write_text(changed)
    assert list(written(load_book(book.root))) == ["count", "whence"]


def test_a_book_without_exercises_of_a_package_writes_nothing(make_book):
    book = make_book('# One {#sec-one}\n\n::: {#exr-a kind="code"}\nx\n:::\n')
    refresh(book)
    assert not list((book.root / "code").rglob("texts.json"))


def test_a_dict_of_texts_is_written_with_one_line_for_each():
    assert texts.dumps({"b": {}, "a": {"title": "é"}}) == '{\n "a": {\n  "title": "é"\n },\n "b": {}\n}\n'


def test_the_wheel_holds_the_words_and_not_the_markup_that_they_are_made_from(tmp_path):
    with zipfile.ZipFile(wheel.build(ROOT, tmp_path)) as archive:
        names = archive.namelist()
    path = exercises.texts_path(ROOT, load_book(ROOT).config).relative_to(ROOT / "code")
    assert path.as_posix() in names
    assert not [name for name in names if name.endswith(".qmd")]


def test_an_exercise_without_a_word_has_an_empty_prompt():
    [words] = texts.words_of(['::: {#exr-a kind="code"}', ":::"]).values()
    assert (words.title, words.prompt, words.hints) == ("", "", [])
