"""The parser of .qmd files: fences, options, divs, equations, inline pieces, and where errors are."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools import qmd
from tools.errors import BuildError


def kinds(text):
    return [type(node).__name__ for node in qmd.parse(text).nodes]


def spans(text):
    return [(span.kind, span.text) for span in qmd.inline_spans(text)]


def test_a_cell_in_a_longer_fence_is_text():
    page = qmd.parse("````markdown\n```{python}\n#| label: no\n1\n```\n````\n")
    (block,) = [node for node in page.nodes if isinstance(node, qmd.CodeBlock)]
    assert page.cells == []
    assert (block.info, block.marker) == ("markdown", "````")
    assert block.code == "```{python}\n#| label: no\n1\n```"


def test_a_cell_in_a_long_fence_keeps_shorter_fences_inside():
    page = qmd.parse('````{python}\n#| label: a\ntext = """\n```\n"""\n````\n')
    assert page.cells[0].code == 'text = """\n```\n"""'


def test_a_longer_fence_closes_a_shorter_one():
    assert qmd.parse("```{python}\n1\n`````\n").cells[0].code == "1"


def test_a_tilde_fence_is_never_executed_and_hides_backticks():
    page = qmd.parse("~~~{python}\n```{python}\n1\n```\n~~~\n")
    assert page.cells == []
    assert page.nodes[0].code == "```{python}\n1\n```"


def test_backticks_do_not_close_a_tilde_fence():
    with pytest.raises(BuildError, match=r"page\.qmd:1: this code fence \(~~~\) is never closed"):
        qmd.parse("~~~\nx\n```\n")


@pytest.mark.parametrize("info", ["{{python}}", "python", "{.python}", "", "{=html}"])
def test_only_a_language_in_single_braces_is_executed(info):
    assert kinds(f"```{info}\n1\n```") == ["CodeBlock"]


def test_other_languages_are_cells_of_that_language():
    assert qmd.parse("```{julia}\n1\n```").cells[0].language == "julia"


def test_options_are_yaml_and_know_their_lines():
    options = "#| label: fig-a\n#| fig-alt: >-\n#|   two\n#|   lines\n#| tags: [a, b]\n#| echo: false\n"
    (cell,) = qmd.parse("x\n\n```{python}\n" + options + "\nf()\n```\n").cells
    assert cell.options == {"label": "fig-a", "fig-alt": "two lines", "tags": ["a", "b"], "echo": False}
    assert cell.option_lines == {"label": 4, "fig-alt": 5, "tags": 8, "echo": 9}
    assert (cell.line, cell.code_line, cell.last) == (3, 10, 12)
    assert cell.code == "\nf()"


def test_option_lines_after_code_are_comments():
    (cell,) = qmd.parse("```{python}\n#| label: a\nx = 1\n#| echo: false\n```").cells
    assert cell.options == {"label": "a"}
    assert cell.code == "x = 1\n#| echo: false"


def test_a_cell_may_be_empty():
    (cell,) = qmd.parse("```{python}\n#| label: a\n```").cells
    assert cell.code == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\n\n```{python}\n1\n", r"page\.qmd:3: this code fence \(```\) is never closed"),
        ("````\n```\n", r"page\.qmd:1: this code fence \(````\) is never closed"),
        ("a\n\n::: {.hint}\nb\n\n::: {.hint}\n:::\n", r"page\.qmd:3: this div \(:::\) is never closed"),
        ("a\n:::\n", r"page\.qmd:2: this `:::` closes no open div"),
        ("$$\nx\n", r"page\.qmd:1: this equation \(\$\$\) is never closed"),
        ("$$\nx\n\ny\n$$\n", r"page\.qmd:3: a blank line inside the equation of line 1"),
        ("$$\nx\n$$ and more\n", r"page\.qmd:3: only `\{#eq-name\}` may follow"),
        ("---\ntitle: x\n", r"page\.qmd:1: the YAML header is never closed"),
        ("---\ntitle: [x\n---\n", r"page\.qmd:[23]: the YAML header is not valid YAML"),
        ("---\n- x\n---\n", r"page\.qmd:2: the YAML header must be lines"),
        (
            "\n```{python}\n#| label: a\n#| tags: [a\n1\n```\n",
            r"page\.qmd:[45]: the block of `#\|` lines is not valid",
        ),
        (
            "```{python}\n#| label: a\n#| echo: : x\n```\n",
            r"page\.qmd:3: the block of `#\|` lines is not valid",
        ),
        ("```{python}\n#| just words\n```\n", r"page\.qmd:2: the block of `#\|` lines must be lines"),
    ],
)
def test_what_cannot_be_read_names_file_and_line(text, message):
    with pytest.raises(BuildError, match=message):
        qmd.parse(text)


def test_a_file_that_is_not_utf8_names_the_line(tmp_path):
    path = tmp_path / "a.qmd"
    path.write_bytes("# Caf\u00e9\n".encode() + "na\u00efve\n".encode("latin-1"))
    with pytest.raises(BuildError, match=r"^a\.qmd:2: not UTF-8"):
        qmd.read(path, tmp_path)


def test_windows_and_old_mac_line_endings_and_a_byte_order_mark_change_nothing(tmp_path):
    text = "---\ntitle: T\n---\n\n# A\n\n```{python}\n#| label: a\n\tx = 'é'\n```\n\n$$\nx\n$$ {#eq-a}\n"
    plain = qmd.parse(text)
    for number, variant in enumerate([text.replace("\n", "\r\n"), text.replace("\n", "\r"), "\ufeff" + text]):
        path = tmp_path / f"{number}.qmd"
        path.write_bytes(variant.encode())
        page = qmd.read(path)
        assert (page.text, page.nodes, page.meta) == (plain.text, plain.nodes, plain.meta)


def test_divs_know_their_depth_and_attributes():
    page = qmd.parse(':::: {#exr-a kind="code"}\nx\n\n::: hint\ny\n:::\n::::\n')
    opened = [node for node in page.nodes if isinstance(node, qmd.DivOpen)]
    assert [(node.depth, node.attributes.id, node.attributes.classes) for node in opened] == [
        (0, "exr-a", ()),
        (1, "", ("hint",)),
    ]
    assert opened[0].attributes.pairs == {"kind": "code"}
    assert [node.depth for node in page.nodes if isinstance(node, qmd.DivClose)] == [1, 0]


def test_a_div_fence_inside_code_opens_nothing():
    assert kinds("```\n::: {.hint}\n```") == ["CodeBlock"]


def test_headings_inside_code_are_code():
    assert qmd.parse("```{python}\n# not a heading\n```").headings == []


@pytest.mark.parametrize(
    ("braces", "expected"),
    [
        ("{#a .b .c k=v}", qmd.Attributes("a", ("b", "c"), {"k": "v"})),
        ('{k="two words" l=\'it "is"\'}', qmd.Attributes("", (), {"k": "two words", "l": 'it "is"'})),
        (r'{k="a \"b\""}', qmd.Attributes("", (), {"k": 'a "b"'})),
        ("{-}", qmd.Attributes("", ("unnumbered",), {})),
        ("{#é-x}", qmd.Attributes("é-x")),
    ],
)
def test_attributes(braces, expected):
    assert qmd.parse_attributes(braces) == expected


def test_attributes_that_cannot_be_read_say_what_is_left():
    assert qmd.parse_attributes("{#a what ever}").bad == "what ever"


def test_equations_carry_their_id_and_their_lines():
    page = qmd.parse("a\n\n$$\nx\n= y\n$$ {#eq-a}\n\n$$ z $$\n")
    equations = [node for node in page.nodes if isinstance(node, qmd.Math)]
    assert [(node.id, node.line, node.last, node.tex) for node in equations] == [
        ("eq-a", 3, 6, "x\n= y"),
        ("", 8, 8, " z "),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('`{python} f"{n:,}"`', [("expression", 'f"{n:,}"')]),
        ("`{python} {'a': 1}['a']`", [("expression", "{'a': 1}['a']")]),
        ("`` `{python} n` ``", [("code", "`{python} n`")]),
        ("``{python} n``", [("code", "{python} n")]),
        ("`{{python}} n`", [("code", "{{python}} n")]),
        ("`{python}`", [("code", "{python}")]),
        ("`{python}n`", [("code", "{python}n")]),
        (r"\`{python} n\`", [("escape", "`"), ("text", "{python} n"), ("escape", "`")]),
        (r"\{python} `x`", [("escape", "{"), ("text", "python} "), ("code", "x")]),
        ("a $x_1$ b", [("text", "a "), ("math", "x_1"), ("text", " b")]),
        ("$5 and $6", [("text", "$5 and $6")]),
        (r"\$x$", [("escape", "$"), ("text", "x$")]),
        ("$`{python} n`$", [("math", "`{python} n`")]),
        ("a <!-- `{python} n` --> b", [("text", "a "), ("comment", "<!-- `{python} n` -->"), ("text", " b")]),
        ("`a\n\nb`", [("escape", "`"), ("text", "a\n\nb"), ("escape", "`")]),
        ("`{python} a\n+ b`", [("expression", "a + b")]),
        ("x `{python} é` y", [("text", "x "), ("expression", "é"), ("text", " y")]),
    ],
)
def test_inline_pieces(text, expected):
    assert spans(text) == expected


def test_expressions_know_their_line():
    page = qmd.parse("# A\n\nx\ny `{python} 1`\n\n- z `{python} 2`\n")
    assert [(span.text, span.line) for span in page.expressions()] == [("1", 4), ("2", 6)]


def test_the_title_comes_from_the_header_or_the_first_heading():
    assert qmd.parse("---\ntitle: A {#sec-a}\n---\n").title.attributes.id == "sec-a"
    assert qmd.parse("# B {.unnumbered}\n").title.attributes.unnumbered
    with pytest.raises(BuildError, match="no title"):
        _ = qmd.parse("text\n").title


FENCES = ["```{python}", "```", "````", "~~~", "::: {.hint}", ":::", "$$", "$$ {#eq-a}"]
OTHER = [
    "# A",
    "## B {#sec-b}",
    "",
    "text `{python} 1` $x$",
    "- item",
    "#| label: a",
    "x = 1",
    "\tindented",
    "é",
]
LINE = st.sampled_from(FENCES + OTHER)


@settings(max_examples=100, deadline=None)
@given(st.lists(LINE, max_size=14))
def test_nodes_cover_every_line_once_or_the_file_is_refused(lines):
    text = "\n".join(lines)
    try:
        page = qmd.parse(text)
    except BuildError as error:
        assert str(error).startswith("page.qmd:")
        return
    covered = [line for node in page.nodes for line in range(node.line, node.last + 1)]
    assert covered == list(range(1, len(page.lines) + 1))
    assert "\n".join(page.source(node.line, node.last) for node in page.nodes) == text


@settings(max_examples=100, deadline=None)
@given(st.text("`{}python $\\<!->\n\nab1", max_size=40))
def test_inline_pieces_cover_the_text_in_order(text):
    position = 0
    for span in qmd.inline_spans(text):
        assert span.start == position
        assert span.line == 1 + text.count("\n", 0, span.start)
        position = span.end
    assert position == len(text)
