"""What is on the list of markup passes; anything else is found, with its line."""

import pytest

from tools import qmd
from tools.errors import BuildError
from tools.markup import check_book, check_document

ALLOWED = r"""---
description: What it is
---

# One {#sec-one}

Text with *emphasis*, **weight**, `code`, ``a `b` c``, $x_1 < y$, a [link](https://example.org),
<https://example.org>, a footnote[^1], "quotes", H~2~O, x^2^, `{python} f"{n:,}"`, @sec-one, [@eq-a; -@fig-a],
[see @key, p. 3]. 3 < 4 > 2.
Costs \$5 and \*stars\*, and a \
break.

[^1]: The note has $z$.

> A statement that stands out.

## Lists {#sec-lists covers="A1 B2"}

1. one
2. two

   ```python
   print("in a list")
   ```

- a

  $$
  y
  $$

Term
:   Definition

| a | b |
|---|--:|
| 1 | `x` |

: Caption with $x$ {#tbl-a}

$$
\begin{aligned}
a &= \begin{pmatrix} 1 & 2 \end{pmatrix} \\
b &= 2
\end{aligned}
$$ {#eq-a}

### Cells {#sec-cells}

```{python}
#| label: fig-a
#| echo: false
#| fig-cap: "A caption"
#| fig-alt: "What there is to be seen"
#| code-fold: true
#| code-summary: "Show it"
#| tags: [nbval-ignore-output]
f()
```

```{python}
#| label: tbl-b
#| tbl-cap: "A table"
f()
```

~~~text
::: {.not-a-div}
<b>not HTML</b>
~~~

````markdown
```{python}
shown
```
````

:::: {.callout-note collapse="true" title="A `title`"}
text

::: {.panel-tabset}
#### Tab one

```{python}
#| label: one-tab
1
```

#### Tab two

text
:::
::::

::: {.callout-tip}
## Title inside

text
:::

::: {.content-visible when-profile="instructor"}
For teachers.
:::

:::: {#exr-a kind="number"}
## Short

text

::: {.hint}
Think.
:::
::::

::: {#sol-a}
Seven.

```{python}
#| label: solved-cell
7
```
:::
"""


def findings(text):
    return [(found.line, found.message) for found in check_document(qmd.parse(text))]


def test_everything_on_the_list_passes():
    assert findings(ALLOWED) == []


HEAD = "# One {#sec-one}\n\n"
CELL = "```{{python}}\n#| label: a\n{}\n1\n```"
FIGURE = '```{python}\n#| label: fig-a\n#| fig-cap: "a"\n#| fig-alt: "b"\n'


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("a <b>c</b>", 3, "raw HTML: <b>"),
        ("<div>\n\nx\n\n</div>", 3, "raw HTML: <div>"),
        ("a <?php b?>", 3, "raw HTML or LaTeX"),
        ("a <br/> b", 3, "raw HTML: <br/>"),
        ("a\n\n<!-- no -->", 5, "an HTML comment"),
        ("{{< include a.qmd >}}", 3, "a shortcode"),
        ("a {{< video x >}} b", 3, "a shortcode"),
        (r"a \alpha b", 3, r"LaTeX outside math: \a"),
        ("\\begin{align}\nx\n\\end{align}", 3, "LaTeX outside math"),
        ("$$\n\\begin{align}\nx\n\\end{align}\n$$", 4, "the environment align is not on the list"),
        ("$$\nx \\tag{1}\n$$", 4, r"\tag in math"),
        ("a\n`x`{=html}", 4, "attributes or a raw format after inline code"),
        ("`x`{.python}", 3, "attributes or a raw format after inline code"),
        ("```{=html}\n<b>\n```", 3, "raw html is not on the list"),
        ("![a](b.png)", 3, "an image"),
        ("[a]{.b}", 3, "a span with attributes"),
        ("[a](02-two.qmd)", 3, "a link to 02-two.qmd"),
        ("[a](#sec-one)", 3, "a link to #sec-one"),
        ("~~gone~~", 3, "struck-out text"),
        ("text\n\n***\n\ntext", 5, "a line of dashes"),
        ("Heading\n-------", 4, "a line of dashes"),
        ("Heading\n=======", 4, "a line of dashes"),
        ("| a line\n| block", 3, "a line block"),
        ("+---+\n| a |\n+---+", 3, "a grid table"),
        ("text $$ x $$ {#eq-a} more", 3, "{#eq-a} must follow the closing `$$`"),
        ("$`{python} 1`$", 3, "an inline expression cannot stand inside math"),
        ("$$\n`{python} 1`\n$$", 3, "an inline expression cannot stand inside math"),
        ("$$ x $$ {#foo}", 3, "the id of an equation is eq-"),
        ("See @sec-one [@key].", 3, "a citation straight after a reference is lost"),
        # headings
        ("### Too deep {#sec-x}", 3, "a level-3 heading cannot follow level 1"),
        ("## A {#sec-a}\n\n#### B", 5, "headings have the levels 1 to 3"),
        ("# Again {#sec-again}", 3, "a page has one level-1 heading"),
        ("## No id", 3, "this heading needs an id"),
        ("## A {#Sec-A}", 3, "the id of a section is sec- and lower-case"),
        ("## A {#sec-a .big}", 3, "a heading may be .unnumbered, not .big"),
        ("## A {#sec-a cover=1}", 3, "a heading may say covers=..., not cover=..."),
        ("## A {#sec-a what ever}", 3, "the braces after this heading cannot be read"),
        ("text\n## A {#sec-a}", 4, "a heading needs a blank line before it"),
        ("::: {.hint}\n### A {#sec-a}\n:::", 4, "a section cannot start inside a div"),
        ("::: {.panel-tabset}\n### A\n\nx\n:::", 4, "a tab of this section is a level-2 heading"),
        # divs
        ("::: {.fancy}\nx\n:::", 3, "the div .fancy is not on the list"),
        ("::: fancy\nx\n:::", 3, "the div .fancy is not on the list"),
        ("::: {.live}\nx\n:::", 3, "the div .live is planned, but neither engine can render it yet"),
        ("::: {.widget}\nx\n:::", 3, "the div .widget is planned"),
        ('::: {.callout-note icon="false"}\nx\n:::', 3, "this div may not say icon="),
        ('::: {.callout-note collapse="yes"}\nx\n:::', 3, 'collapse is "true" or "false"'),
        ("::: {.callout-danger}\nx\n:::", 3, "the div .callout-danger is not on the list"),
        ("::: {#exr-a}\nx\n:::", 3, 'an exercise says kind="..."'),
        ('::: {#exr-a kind="essay"}\nx\n:::', 3, 'an exercise says kind="..."'),
        ("::: {#thm-a}\nx\n:::", 3, "the id of a div is exr- or sol-"),
        ("::: {}\nx\n:::", 3, "this div says nothing"),
        ("::: {.content-visible}\nx\n:::", 3, "conditional content says when"),
        ("::: {.hint what}\nx\n:::", 3, "the braces of this div cannot be read: what"),
        ("text\n::: {.hint}\nx\n:::", 4, "a div needs a blank line before it"),
        ("::: {.hint} text", 3, "this div fence cannot be read"),
        # cells
        ("```{r}\n1\n```", 3, "only Python cells are executed, not r"),
        ("```{python}\n1\n```", 3, "this cell has no label"),
        ("```{python}\n#| label: sol-one\n1\n```", 4, "Quarto takes a label that starts with sol-"),
        ("```{python}\n#| label: thm-one\n1\n```", 4, "Quarto takes a label that starts with thm-"),
        ("```{python}\n#| label: Not_Right\n1\n```", 4, "a label is lower-case words"),
        ("```{python}\n#| label: " + "a" * 61 + "\n1\n```", 4, "a label is lower-case words"),
        ("```{python, echo=FALSE}\n#| label: a\n1\n```", 3, "options stand on `#|` lines"),
        (CELL.format("#| results: asis"), 5, "the cell option results is not on the list"),
        (CELL.format("#| output: asis"), 5, "output is true or false, not 'asis'"),
        (CELL.format("#| echo: fenced"), 5, "echo is true or false"),
        (CELL.format("#| code-fold: maybe"), 5, "code-fold is true, false or show"),
        (CELL.format("#| tags: one"), 5, "tags is a list of words"),
        (CELL.format("#| code-summary: 3"), 5, "code-summary is text"),
        (
            CELL.format("#| code-summary: '`{python} n`'"),
            5,
            "an inline expression is not evaluated in code-summary",
        ),
        (CELL.format("#| fig-cap: x"), 5, "fig-cap needs a label that starts with fig-"),
        ('```{python}\n#| label: fig-a\n#| fig-cap: "a"\n1\n```', 3, "the cell fig-a needs fig-alt"),
        ("```{python}\n#| label: tbl-a\n1\n```", 3, "the cell tbl-a needs tbl-cap"),
        (FIGURE + "#| eval: false\n1\n```", 3, "the cell fig-a shows nothing"),
        ("- a\n\n  ```{python}\n  #| label: a\n  1\n  ```", 5, "a code cell starts at the left margin"),
        ("text\n```{python}\n#| label: a\n1\n```", 4, "a code cell needs a blank line before it"),
        ("~~~{python}\n1\n~~~", 3, "a cell that is executed has a fence of backticks"),
        ("```{{python}}\n1\n```", 3, "to show a cell, put it in a longer plain fence"),
        ("```{.python filename='a'}\n1\n```", 3, "a code block names its language and nothing else"),
        (
            '::: {#exr-a kind="code"}\n```{python}\n#| label: a\n1\n```\n:::',
            4,
            "an exercise holds no code cell",
        ),
        (
            '::: {.content-hidden when-profile="a"}\n```{python}\n#| label: a\n1\n```\n:::',
            4,
            "conditional content holds no code cell",
        ),
    ],
)
def test_what_is_not_on_the_list_is_found_with_its_line(text, line, message):
    found = findings(HEAD + text + "\n")
    assert any(at == line and message in said for at, said in found), found


def test_the_header_holds_no_settings():
    assert findings("---\nformat: html\n---\n\n# One {#sec-one}\n") == [
        (1, "the header may say title and description, not format; settings belong to _quarto.yml")
    ]


def test_a_div_that_pandoc_does_not_see_is_found():
    text = HEAD + "Term\n:   Definition\n::: {.hint}\nx\n:::\n"
    assert findings(text)[0][0] == 5


def test_a_label_may_stand_on_one_page_only(make_book):
    cell = "```{python}\n#| label: same\n1\n```\n"
    book = make_book(HEAD + cell, "# Two {#sec-two}\n\n" + cell)
    with pytest.raises(
        BuildError, match=r"chapters/91-more\.qmd:4: the label same is already used at chapters/01-one\.qmd:3"
    ):
        check_book(book)


def test_all_findings_of_all_pages_are_listed(make_book):
    book = make_book(HEAD + "<b>\n\n~~a~~\n", "# Two {#sec-two}\n\n@x [a]{.b}\n")
    with pytest.raises(BuildError) as error:
        check_book(book)
    lines = str(error.value).split("\n")
    assert [line.split(": ")[0] for line in lines] == [
        "chapters/01-one.qmd:3",
        "chapters/01-one.qmd:5",
        "chapters/91-more.qmd:3",
    ]
