"""The checks of a built site find what is wrong, and say nothing about what is right."""

import re
from pathlib import Path

import pytest

from tools import dom, site

EXTENSION = Path(site.__file__).resolve().parents[1] / "_extensions" / "dense"
PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>T</title>{head}</head>
<body><main><h1 id="top">Title</h1>{body}</main></body></html>
"""


def problems(folder, body="", head="", **files):
    (folder / "index.html").write_text(PAGE.format(body=body, head=head), encoding="utf-8")
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="utf-8")
    return site.check(folder)


def test_a_sound_page_has_no_problem(tmp_path):
    body = """<section id="sec-a"><h2>A</h2><p>See <a href="#sec-a">A</a>, <a href="other.html#x">x</a>,
    <a href="https://example.org/">elsewhere</a>, <a href="mailto:a@example.org">mail</a>,
    <code>@fig-a ??</code>.</p><figure id="fig-a"><img src="p.png" alt="A line that rises">
    <figcaption>Figure 1: A line.</figcaption></figure>
    </section>"""
    files = {"p__png": "x", "other__html": PAGE.format(body='<p id="x">x</p>', head="")}
    assert problems(tmp_path, body, **files) == []


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("<p>See ?@fig-a</p>", "unresolved markup"),
        ("<p>See @sec-b.</p>", "unresolved markup"),
        ("<p>Text {#eq-a}</p>", "unresolved markup"),
        ("<p>::: note</p>", "unresolved markup"),
        ("<figure id='fig-a'><figcaption>Figure 1: A</figcaption></figure>", "an empty figure: fig-a"),
        ("<figure><table></table><figcaption>Figure 1.2: </figcaption></figure>", "an empty caption"),
        ("<img src='p.png'>", "no text for the image p.png"),
        ("<img src='p.png' alt='plot'>", "no text for the image p.png"),
        ("<h3>Deep</h3>", "level 3 after level 1"),
        ("<h1>Again</h1>", "2 headings of level 1"),
        ("<h2></h2>", "an empty heading"),
        ("<p id='a'></p><p id='a'></p>", "the id a is used 2 times"),
        ("<a href='#nowhere'>x</a>", "an anchor that is not there: #nowhere"),
        ("<a href='gone.html'>x</a>", "a link to nothing: gone.html"),
        ("<a href='n.ipynb' download>x</a>", "a link to nothing: n.ipynb"),
        ("<a href='../outside.html'>x</a>", "leaves the site"),
        ("<script src='gone.js'></script>", "a link to nothing: gone.js"),
        (
            "<script src='https://cdn.example.org/x.js'></script>",
            "<script> loads https://cdn.example.org/x.js",
        ),
        ("<img src='//example.org/p.png' alt='two words'>", "<img> loads //example.org/p.png"),
        (
            "<img src='p.png' srcset='p.png 1x, http://e.org/q.png 2x' alt='two words'>",
            "loads http://e.org/q.png",
        ),
        ("<iframe src='https://example.org'></iframe>", "<iframe> loads"),
        ("<object data='https://example.org/x.svg'></object>", "<object> loads"),
        ("<span class='math inline'>\\frac</span>", "a formula that could not be set"),
        ("<math><merror><mtext>x</mtext></merror></math>", "a formula that could not be set"),
        ("<main></main>", "2 <main> elements"),
    ],
)
def test_each_defect_is_found(tmp_path, body, message):
    found = problems(tmp_path, body, p__png="x")
    assert any(message in problem for problem in found), found
    assert all(re.match(r"index\.html:\d+: ", problem) for problem in found)


@pytest.mark.parametrize(
    "head",
    [
        "<link rel='stylesheet' href='https://fonts.example.org/css'>",
        "<link rel='preconnect' href='https://fonts.example.org'>",
        "<style>@import 'https://example.org/x.css';</style>",
        "<style>p { background: url(https://example.org/x.png) }</style>",
    ],
)
def test_the_head_loads_from_no_other_host(tmp_path, head):
    assert any("example.org" in problem for problem in problems(tmp_path, head=head))


def test_a_link_in_the_head_that_loads_nothing_may_lead_anywhere(tmp_path):
    assert problems(tmp_path, head="<link rel='canonical' href='https://example.org/'>") == []


def test_a_page_without_language_is_found(tmp_path):
    (tmp_path / "index.html").write_text(
        "<html><title>t</title><main><h1>x</h1></main></html>", encoding="utf-8"
    )
    assert site.check(tmp_path) == ["index.html:1: no language on <html>"]


def test_style_sheets_are_read_too(tmp_path):
    sheet = '@import "https://example.org/a.css"; p { background: url(gone.png) } q { mask: url("data:x") }'
    found = problems(tmp_path, a__css=sheet)
    assert found == [
        "a.css: loads https://example.org/a.css",
        "a.css: loads gone.png, which is not there",
    ]


def test_the_index_of_the_search_is_compared_with_the_pages(tmp_path):
    (tmp_path / "assets").mkdir()
    index = 'globalThis.denseSearchIndex=[["T","x","index.html#gone","text"],["T","","away.html","text"]];'
    (tmp_path / "assets" / "search-index.js").write_text(index, encoding="utf-8")
    assert problems(tmp_path) == [
        "search-index.js: leads to index.html#gone, which is not there",
        "search-index.js: leads to away.html, which is not there",
    ]


def test_numbers_are_read_as_a_reader_sees_them(tmp_path):
    body = """<section id="sec-a" data-number="1.2"><h2>1.2 A</h2></section>
    <figure id="fig-a"><img src="p.png" alt="two words">
    <figcaption>Figure 1.3: See Figure 2.9.</figcaption></figure>
    <div id="eq-a"><a class="equation-number" href="#eq-a">(1.4)</a></div>
    <div id="exr-a"><span class="theorem-title">Exercise B.5 (Name)</span></div>"""
    problems(tmp_path, body, p__png="x")
    assert site.numbers(site.Site(tmp_path)) == {
        "sec-a": "1.2",
        "fig-a": "1.3",
        "eq-a": "1.4",
        "exr-a": "B.5",
    }


def test_the_tree_survives_tags_that_are_not_closed():
    page = dom.parse("<ul><li>one<li>two</ul><p>three<br>four")
    assert [item.text() for item in page.all("p")] == ["three four"]
    assert page.first("ul").text() == "onetwo"


# ---------- the colours of the style sheet ----------


def colours():
    sheet = (EXTENSION / "dense.css").read_text(encoding="utf-8")
    found = re.findall(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)", sheet)
    return {name: (light, dark) for name, light, dark in found}


def luminance(colour):
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    bright, dim = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def test_contrast_is_measured_as_the_guidelines_define_it():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


CODE = [name for name in colours() if name.startswith("code-")]
TONES = ["note", "tip", "warning", "important", "caution", "exercise"]
PAIRS = [
    *[(name, "paper") for name in ("ink", "ink-soft", "accent", "exercise", "tip")],
    *[(name, "surface") for name in ("ink", "ink-soft", *CODE)],
    *[("code-error", "paper"), ("code-ink", "surface-strong"), ("ink-soft", "surface-strong")],
    *[("accent", "accent-soft"), ("ink", "accent-soft"), ("ink", "mark"), ("paper", "accent")],
    *[(tone, f"{tone}-soft") for tone in TONES],
    *[("ink", f"{tone}-soft") for tone in TONES],
    *[("accent", f"{tone}-soft") for tone in TONES],
]


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize(("text", "ground"), PAIRS)
def test_text_has_enough_contrast(text, ground, scheme):
    known = colours()
    assert contrast(known[text][scheme], known[ground][scheme]) >= 4.5


def test_quartos_dark_page_has_the_same_colours():
    dark = (EXTENSION / "dark.scss").read_text(encoding="utf-8")
    known = colours()
    for variable, name in (("body-bg", "paper"), ("body-color", "ink"), ("link-color", "accent")):
        assert f"${variable}: {known[name][1]};" in dark
