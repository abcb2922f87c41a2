"""The appendices that are no solutions: the dictionary has every convention, each refuted claim its parts."""

import ast
import re

import pytest

from denselayer import conventions
from tools import qmd

PARTS = ("**Claim.** ", "**Why it convinces.** ", "**Right.** ")
LEAST_CLAIMS = 18


@pytest.fixture(scope="module")
def dictionary(book):
    return next(page for page in book.pages if page.id == "sec-conventions")


@pytest.fixture(scope="module")
def refutations(book):
    return next(page for page in book.pages if page.id == "sec-where-textbooks-go-wrong")


@pytest.fixture(scope="module")
def claims(refutations):
    """Id of the section -> (its text, its cells) for every claim."""
    document = refutations.document
    heads = [head for head in document.headings if head.level > 1]
    ends = [head.line - 1 for head in heads[1:]] + [len(document.lines)]
    return {
        head.attributes.id: (
            document.source(head.line, end),
            [cell for cell in document.cells if head.line < cell.line <= end],
        )
        for head, end in zip(heads, ends, strict=True)
        if head.level == 3
    }


def test_the_appendices_stand_before_the_solutions(book, solution_pages):
    appendices = [page for page in book.pages if page.is_appendix]
    assert appendices[-len(solution_pages) :] == solution_pages


def test_labels_start_with_the_name_of_the_page(dictionary, refutations):
    for page, name in ((dictionary, "conventions"), (refutations, "wrong")):
        for cell in page.document.cells:
            assert re.match(rf"(?:fig-|tbl-)?{name}-", cell.label), f"{page.name}:{cell.line}: {cell.label}"


def test_the_dictionary_shows_every_convention(dictionary):
    shown = "\n".join(cell.code for cell in dictionary.document.cells)
    for layout in conventions.LAYOUTS:
        for batch in conventions.BATCHES:
            assert f'conventions.table("{layout}", "{batch}", quantities=layer)' in shown
    for batch in conventions.BATCHES:
        for reduction in conventions.REDUCTIONS:
            assert f'table(batch="{batch}", reduction="{reduction}", quantities=losses)' in shown


def test_there_are_enough_claims(claims):
    assert len(claims) >= LEAST_CLAIMS


def test_a_claim_says_why_it_convinces_and_what_holds(claims):
    for name, (text, _) in claims.items():
        places = [text.find(part) for part in PARTS]
        assert -1 not in places and places == sorted(places), name


def test_a_claim_is_refuted_by_a_cell_that_asserts(claims):
    for name, (_, cells) in claims.items():
        statements = [node for cell in cells for node in ast.walk(ast.parse(cell.code))]
        assert any(isinstance(node, ast.Assert) for node in statements), name


def test_what_holds_is_referred_to(claims, registry, refutations):
    for name, (text, _) in claims.items():
        right = text[text.index(PARTS[2]) :]
        keys = re.findall(r"@((?:sec|eq|tbl|exr)-[a-z0-9-]*[a-z0-9])", right)
        assert any(registry[key].page != refutations for key in keys), name


def test_every_claim_is_in_the_table(claims, refutations):
    [table] = [
        node.text
        for node in refutations.document.nodes
        if isinstance(node, qmd.Prose) and "{#tbl-wrong-all}" in node.text
    ]
    rows = [line for line in table.splitlines() if "@sec-wrong-" in line]
    assert [re.search(r"@(sec-wrong-[a-z-]*[a-z])", row)[1] for row in rows] == list(claims)
