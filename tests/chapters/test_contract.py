"""Every chapter has its parts in order, its exercises with solutions, and figures that can be read aloud."""

import re
from collections import Counter

from tools import qmd
from tools.markup import KINDS
from tools.references import find_references

PARTS = [
    "Intuition",
    "Mechanics",
    "Mathematics and code",
    "Research and systems",
    "Agreement with PyTorch",
    "Common misconceptions",
    "Exercises",
    "Summary",
    "Further reading",
]
TYPED_NUMBER = re.compile(r"\b(?:[Cc]hapters?|[Ss]ections?|[Ff]igures?|[Tt]ables?|[Ee]quations?)[  ]\d")


def sections(page):
    """The `##` sections of a page: title -> its source text."""
    document = page.document
    heads = [head for head in document.headings if head.level == 2 and head.depth == 0]
    ends = [head.line - 1 for head in heads[1:]] + [len(document.lines)]
    return {head.text: document.source(head.line, end) for head, end in zip(heads, ends, strict=True)}


def exercises(page):
    """Name -> kind of every exercise of a page, in order."""
    divs = [node for node in page.document.nodes if isinstance(node, qmd.DivOpen)]
    return {
        div.attributes.id.removeprefix("exr-"): div.attributes.pairs.get("kind")
        for div in divs
        if div.attributes.id.startswith("exr-")
    }


def solutions(page):
    """Name -> text of every solution of a page, in order."""
    found = {}
    for number, node in enumerate(page.document.nodes):
        if isinstance(node, qmd.DivOpen) and node.attributes.id.startswith("sol-"):
            end = next(
                later
                for later in page.document.nodes[number:]
                if isinstance(later, qmd.DivClose) and later.depth == node.depth
            )
            name = node.attributes.id.removeprefix("sol-")
            found[name] = page.document.source(node.line + 1, end.line - 1)
    return found


def test_the_parts_stand_in_order(chapters):
    for page in chapters:
        titles = list(sections(page))
        assert [title for title in titles if title in PARTS] == PARTS, page.name
        assert titles[-2:] == PARTS[-2:], page.name


def test_a_chapter_begins_with_what_the_reader_will_be_able_to_do(chapters):
    for page in chapters:
        first = page.document.headings[1]
        opening = page.document.source(1, first.line)
        assert re.search(r"After this chapter you can\b.*\n\n(?:[-*] .+(?:\n {2}.+)*\n){3,}", opening), (
            page.name
        )


def test_the_running_example_comes_before_the_parts(chapters):
    for page in chapters:
        before = "\n".join(
            text for text in list(sections(page).values())[: list(sections(page)).index(PARTS[0])]
        )
        assert re.search(r"\(?2(?:\.0)?, 4(?:\.0)?, 1(?:\.0)?[\])]", before), f"{page.name}: no (2, 4, 1)"


def test_no_part_is_empty(chapters):
    for page in chapters:
        for title in PARTS:
            words = sections(page)[title].split()
            assert len(words) > 60, f"{page.name}: {title} has {len(words)} words"


def test_the_agreement_table_is_computed_and_asserted(chapters):
    for page in chapters:
        text = sections(page)["Agreement with PyTorch"]
        assert "agreement" in text and "```{python}" in text and re.search(r"assert .*\.ok", text), page.name


def test_further_reading_cites(chapters, registry):
    for page in chapters:
        keys = [key for key, _ in find_references(sections(page)["Further reading"])]
        assert len(set(keys) - set(registry)) >= 4, page.name


def test_every_chapter_has_twelve_exercises_of_all_three_kinds(chapters):
    for page in chapters:
        kinds = Counter(exercises(page).values())
        assert kinds.total() >= 12, f"{page.name}: {kinds.total()} exercises"
        assert set(kinds) == set(KINDS), f"{page.name}: {kinds}"
        assert min(kinds.values()) >= 2, f"{page.name}: {kinds}"


def test_exercises_stand_in_the_section_of_that_name(chapters):
    for page in chapters:
        text = sections(page)["Exercises"]
        assert all(f"#exr-{name} " in text for name in exercises(page)), page.name


def test_every_exercise_has_a_solution_and_every_solution_an_exercise(chapters, solution_pages):
    assert len(chapters) == len(solution_pages)
    for chapter, answers in zip(chapters, solution_pages, strict=True):
        assert answers.id == chapter.id.replace("sec-", "sec-solutions-", 1)
        assert list(solutions(answers)) == list(exercises(chapter)), answers.name


def test_a_solution_says_something(solution_pages):
    for page in solution_pages:
        for name, text in solutions(page).items():
            assert len(text.split()) >= 15, f"{page.name}: sol-{name}"


def test_an_explanation_is_marked_by_a_rubric(chapters, solution_pages):
    for chapter, answers in zip(chapters, solution_pages, strict=True):
        found = solutions(answers)
        for name, kind in exercises(chapter).items():
            if kind == "explain":
                rubric = re.search(r"A full answer\b[^\n]*\n\n[-*] .+", found[name])
                assert rubric, f"{answers.name}: sol-{name} has no list after `A full answer ...`"


def test_the_solution_of_a_programming_exercise_shows_code(chapters, solution_pages):
    for chapter, answers in zip(chapters, solution_pages, strict=True):
        found = solutions(answers)
        for name, kind in exercises(chapter).items():
            if kind == "code":
                assert "```" in found[name], f"{answers.name}: sol-{name}"


def test_figures_have_a_caption_and_a_description_of_their_own(book):
    seen = {}
    for page in book.pages:
        for cell in page.document.cells:
            if qmd.kind_of(cell.label) != "fig":
                continue
            caption, alt = cell.options["fig-cap"], cell.options["fig-alt"]
            place = f"{page.name}:{cell.line}: {cell.label}"
            assert len(caption) >= 30, f"{place}: the caption is too short"
            assert len(alt) >= 80 and len(alt.split()) >= 15, f"{place}: the description is too short"
            assert alt.strip() != caption.strip(), f"{place}: the description repeats the caption"
            assert alt not in seen, f"{place}: the same description as {seen[alt]}"
            seen[alt] = place


def test_every_figure_and_table_is_mentioned_in_the_text(book, registry):
    used = {ref.key for ref in registry.references}
    for target in registry.values():
        if target.kind in ("fig", "tbl"):
            assert target.id in used, f"{target.page.name}:{target.line}: nothing refers to {target.id}"


def test_labels_start_with_the_name_of_their_page(chapters, solution_pages):
    prefixes = {
        "sec-neuron": "neuron",
        "sec-dense-layer": "dense",
        "sec-between-layers": "between",
        "sec-backpropagation": "backprop",
        "sec-gradient-checking": "check",
        "sec-training": "train",
        "sec-scaling": "scale",
        "sec-fused": "fused",
    }
    for page in [*chapters, *solution_pages]:
        chapter = page.id.replace("sec-solutions-", "sec-")
        name = prefixes[chapter] if page in chapters else f"solved-{prefixes[chapter]}"
        for cell in page.document.cells:
            assert re.match(rf"(?:fig-|tbl-)?{name}-", cell.label), f"{page.name}:{cell.line}: {cell.label}"


def test_numbers_of_chapters_figures_and_equations_are_never_typed(book):
    for page in book.pages:
        for span in page.document.spans():
            match = TYPED_NUMBER.search(span.text) if span.kind == "text" else None
            assert not match, f"{page.name}:{span.line}: {match[0]}; refer with @sec-, @fig-, @tbl- or @eq-"
