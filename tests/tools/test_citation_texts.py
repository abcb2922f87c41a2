"""Citations as plain text."""

from tools.citations import Bibliography

ENTRIES = """@book{b2015, author = {Ada One}, title = {B}, year = {2015}}
@book{a2015, author = {Ada One}, title = {A}, year = {2015}}
@book{c2015, author = {Bea Two}, title = {C}, year = {2015}}
@book{none, author = {Cy Three}, title = {D}}
"""


def test_two_works_of_one_author_and_year_are_told_apart_by_letters(tmp_path):
    path = tmp_path / "references.bib"
    path.write_text(ENTRIES, encoding="utf-8")
    bibliography = Bibliography([path])
    years = {key: bibliography.year(key) for key in ("a2015", "b2015", "c2015", "none")}
    assert years == {"a2015": "2015a", "b2015": "2015b", "c2015": "2015", "none": "n.d."}
