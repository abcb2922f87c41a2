"""The index of the search."""

from tools import dom, search, site

PAGE = """<html><body><nav>not this</nav><main><h1>The <em>neuron</em></h1><p>Above all sections.</p>
<section id="sec-bias"><h2>1.1 The bias</h2>
<p>A shift of <math><mi>b</mi><annotation>b_{tex}</annotation></math>.</p>
<pre>print(1)</pre><section id="sec-deep"><h3>Deeper</h3><ul><li>one</li><li>two</li></ul></section>
<h4>No entry</h4><p>but its text</p></section>
<nav>nor this</nav><script>nor that</script></main></body></html>"""


def test_each_section_is_an_entry_with_its_own_text():
    found = search.entries("chapters/01.html", dom.parse(PAGE))
    assert [(entry.page, entry.title, entry.href) for entry in found] == [
        ("The neuron", "", "chapters/01.html"),
        ("The neuron", "1.1 The bias", "chapters/01.html#sec-bias"),
        ("The neuron", "Deeper", "chapters/01.html#sec-deep"),
    ]
    assert [entry.text for entry in found] == [
        "Above all sections.",
        "A shift of b. print(1)",
        "one two No entry but its text",
    ]


def test_a_page_without_main_part_has_no_entries():
    assert search.entries("x.html", dom.parse("<p>text</p>")) == []


def test_the_index_is_a_script_because_a_page_from_a_folder_can_load_scripts_only(tmp_path):
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text(PAGE, encoding="utf-8")
    path = search.write(tmp_path, {"index.html": 0.5})
    assert path.read_text(encoding="utf-8").startswith("globalThis.denseSearchIndex=[[")
    assert {row[4] for row in site.read_index(path)} == {0.5}
    assert [row[2] for row in site.read_index(path)] == [
        "index.html",
        "index.html#sec-bias",
        "index.html#sec-deep",
    ]
