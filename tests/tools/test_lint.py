"""Ruff over the code of the chapters: findings name chapter and line, repairs are written back."""

import pytest

from tools import chapter_code, qmd
from tools.commands import lint
from tools.environment import ROOT

CONFIG = ROOT / "pyproject.toml"

CHAPTER = """# One {#sec-one}

```{python}
#| label: imports
import os
import numpy as np

x = np.ones(3)
```

Text that stays: `{python} x`.

```{python}
#| label: shown
x  # a notebook shows the value of its last line
```

- item

```python
not   linted ( )
```
"""


@pytest.fixture
def page(tmp_path):
    def write(text, newline="\n"):
        path = tmp_path / "one.qmd"
        path.write_bytes(text.replace("\n", newline).encode())
        return qmd.read(path, tmp_path)

    return write


def found(document):
    return [str(finding) for finding in chapter_code.check(document, CONFIG)]


def test_a_finding_names_the_line_of_the_chapter(page):
    assert found(page(CHAPTER)) == [
        "one.qmd:5:1: I001 Import block is un-sorted or un-formatted",
        "one.qmd:5:8: F401 `os` imported but unused",
    ]


def test_names_cross_cells_and_undefined_ones_are_found(page):
    document = page(
        CHAPTER.replace("import os\n", "").replace("import numpy as np\n", "import numpy as np\n") + "\n"
    )
    assert found(document) == []
    late = CHAPTER.replace("x  # a", "print(x, z)  # a").replace("import os\n", "")
    assert found(page(late)) == ["one.qmd:14:10: F821 Undefined name `z`"]


def test_code_that_is_not_formatted_is_found(page):
    document = page("# A\n\n```{python}\n#| label: a\nx = ( 1,2 )\n```\n")
    assert found(document) == [
        "one.qmd:5:1: the cell a is not formatted; `python -m tools lint --fix` does it"
    ]


def test_code_that_is_not_python_is_found(page):
    document = page("# A\n\n```{python}\n#| label: a\nx = 1\n```\n\n```{python}\n#| label: b\nx = = 1\n```\n")
    (first, *_) = found(document)
    assert first.startswith("one.qmd:10:5: invalid-syntax")


def test_long_lines_are_measured_by_the_projects_rule(page):
    document = page(f"# A\n\n```{{python}}\n#| label: a\nx = '{'a' * 120}'\n```\n")
    assert any("E501" in line for line in found(document))


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_fix_rewrites_the_cells_and_nothing_else(page, newline):
    document = page(CHAPTER, newline)
    assert chapter_code.fix(document, CONFIG)
    expected = CHAPTER.replace("import os\nimport numpy", "import numpy").replace("line\n", "line\n")
    assert document.path.read_bytes() == expected.replace("\n", newline).encode()
    repaired = qmd.read(document.path, document.path.parent)
    assert found(repaired) == []
    assert not chapter_code.fix(repaired, CONFIG)


def test_fix_changes_the_number_of_lines_of_several_cells(page):
    text = "# A\n\n```{python}\n#| label: a\n%s\n```\n\nb\n\n```{python}\n#| label: b\n%s\n```\n\nc\n"
    document = page(text % ("\n\nx = {'a':1}", "y = f( x )\n\n"))
    assert chapter_code.fix(document, CONFIG)
    assert document.path.read_text() == text % ('x = {"a": 1}', "y = f(x)")


def test_fix_leaves_a_chapter_alone_that_is_not_python(page):
    text = "# A\n\n```{python}\n#| label: a\nx = ( 1 )\n```\n\n```{python}\n#| label: b\nx = = 1\n```\n"
    document = page(text)
    assert not chapter_code.fix(document, CONFIG)
    assert document.path.read_text() == text


def test_a_page_without_code_has_no_findings(page):
    assert found(page("# A\n\n```python\nx = = 1\n```\n")) == []


def test_an_empty_cell_is_no_finding(page):
    assert found(page("# A\n\n```{python}\n#| label: a\n```\n\n```{python}\n#| label: b\n1\n```\n")) == []


def test_the_repository_has_no_findings():
    assert not lint.lint_repository(ROOT)


def test_the_code_in_the_chapters_has_no_findings():
    assert lint.lint_chapters(ROOT) == []
