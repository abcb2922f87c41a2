"""The page for the instructor: who has what, each failed answer with its feedback, texts beside rubrics."""

import ast
from html import escape

from ._feedback import MARKS
from ._registry import chapters, get, ids

GENERATOR = "denselayer grade"
MARK = f'<meta name="generator" content="{GENERATOR}">'
LONGEST = 20_000
WORDS = {"correct": "right", "written": "written", "not attempted": "not attempted"}
STYLE = """
:root { color-scheme: light dark; --text: #1b1b1b; --paper: #fff; --line: #c4c4c4; --soft: #f3f3f3;
  --right: #17692f; --wrong: #a11919; --read: #1d4f91; }
@media (prefers-color-scheme: dark) { :root { --text: #e6e6e6; --paper: #16181b; --line: #4a4d52;
  --soft: #22252a; --right: #7fd494; --wrong: #ff9c93; --read: #9cc4ff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 75rem; padding: 1rem; font: 1rem/1.5 system-ui, sans-serif;
  color: var(--text); background: var(--paper); overflow-wrap: anywhere; }
a { color: var(--read); }
.wide { overflow-x: auto; position: relative; }
table { border-collapse: collapse; font-size: 0.9rem; overflow-wrap: normal; }
caption { text-align: left; font-weight: 600; padding: 0.5rem 0; }
th, td { border: 1px solid var(--line); padding: 0.25rem 0.5rem; text-align: left; vertical-align: top; }
thead th { background: var(--soft); }
td.notes { min-width: 16rem; }
td.number { text-align: right; }
section { border-top: 2px solid var(--line); margin-top: 2rem; }
article { margin: 1rem 0; padding: 0.5rem 1rem; background: var(--soft);
  border-left: 4px solid var(--wrong); }
article.written { border-color: var(--read); }
pre { white-space: pre-wrap; margin: 0.5rem 0; font-size: 0.9rem; }
.beside { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(20rem, 100%), 1fr)); gap: 1rem; }
.correct { color: var(--right); } .wrong { color: var(--wrong); } .written { color: var(--read); }
article.written { color: inherit; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
"""


def page(graded) -> str:
    """The whole page, which needs no other file and no network.

    Args:
        graded: a list of `Graded`.
    """
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    parts = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        MARK,
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        "<title>Grades</title>",
        f"<style>{STYLE}</style>",
        "</head>",
        "<body>",
        "<main>",
        "<h1>Grades</h1>",
        f"<p>{_summary(graded)}</p>",
        _overview(graded),
        *_chapter_tables(graded),
        *(_student(number, one) for number, one in enumerate(graded, start=1)),
        "</main>",
        "</body>",
        "</html>",
    ]
    return "\n".join(parts) + "\n"


def _summary(graded):
    broken = sum(bool(one.paper.broken) for one in graded)
    said = f"{len(graded)} submissions, {len(graded) - broken} of them graded. "
    return said + "Every answer was checked again; what a submission claims was not relied on."


def _overview(graded):
    header = ["student", "right", "written", "not right", "of", "notes"]
    rows = []
    for number, one in enumerate(graded, start=1):
        counts = (one.count("correct"), one.count("written"), one.wrong, len(ids()))
        name = f'<a href="#s{number}"><bdi>{escape(one.paper.name)}</bdi></a>'
        cells = [f'<td class="number">{count}</td>' for count in counts]
        rows.append((name, [*cells, f'<td class="notes">{escape("; ".join(one.short_notes))}</td>']))
    return _table("All students", header, rows)


def _chapter_tables(graded):
    for prefix, chapter in chapters().items():
        names = [name for name in ids(prefix) if any(name in one.feedback for one in graded)]
        if names:
            header = ["student", *(name.removeprefix(f"{prefix}-") for name in names)]
            rows = [
                (f"<bdi>{escape(one.paper.name)}</bdi>", [_cell(one.feedback.get(name)) for name in names])
                for one in graded
                if one.feedback
            ]
            yield _table(chapter, header, rows)


def _cell(feedback):
    if feedback is None:
        return '<td><span class="hidden">no answer</span></td>'
    mark, word = MARKS.get(feedback.status, "✗"), WORDS.get(feedback.status, feedback.status)
    shown = f'<span aria-hidden="true">{mark}</span><span class="hidden">{escape(word)}</span>'
    return f'<td class="{_css(feedback)}" title="{escape(word)}">{shown}</td>'


def _css(feedback):
    if feedback.status == "not attempted":
        return "blank"
    return feedback.status if feedback.status in ("correct", "written") else "wrong"


def _table(caption, header, rows):
    heads = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header)
    lines = [f'<tr><th scope="row">{name}</th>{"".join(cells)}</tr>' for name, cells in rows]
    label = escape(caption, quote=True)
    return "\n".join(
        [
            f'<div class="wide" role="region" aria-label="{label}" tabindex="0">',
            f"<table>\n<caption>{escape(caption)}</caption>",
            f"<thead>\n<tr>{heads}</tr>\n</thead>\n<tbody>",
            *lines,
            "</tbody>\n</table>\n</div>",
        ]
    )


def _student(number, one):
    paper = one.paper
    lines = [f'<section id="s{number}">', f"<h2><bdi>{escape(paper.name)}</bdi></h2>"]
    lines.append(f"<p><code>{escape(paper.file)}</code></p>")
    if one.notes:
        lines.append("<ul>" + "".join(f"<li>{escape(note)}</li>" for note in one.notes) + "</ul>")
    right = [name for name, feedback in one.feedback.items() if feedback.passed]
    if right:
        lines.append(f'<p><span class="correct">Right:</span> {escape(", ".join(right))}.</p>')
    for name, feedback in one.feedback.items():
        if feedback.status == "written":
            lines.append(_explanation(get(name), paper.answers[name]))
        elif not feedback.passed:
            lines.append(_failed(get(name), paper.answers[name], feedback))
    return "\n".join([*lines, "</section>"])


def _heading(exercise):
    return f"<h3>{escape(exercise.title)} <small><code>{exercise.id}</code></small></h3>"


def _failed(exercise, source, feedback):
    return "\n".join(
        [
            "<article>",
            _heading(exercise),
            _said(feedback),
            f"<details><summary>The answer</summary><pre>{escape(_cut(source))}</pre></details>",
            "</article>",
        ]
    )


def _said(feedback):
    text = str(feedback)
    return feedback.to_html() if len(text) <= LONGEST else f"<pre>{escape(_cut(text))}</pre>"


def _explanation(exercise, source):
    points = "".join(f"<li>{escape(point)}</li>" for point in getattr(exercise, "points", ()))
    return "\n".join(
        [
            '<article class="written">',
            _heading(exercise),
            '<div class="beside">',
            f"<div><h4>The text</h4><pre>{escape(_cut(explanation(exercise, source)))}</pre></div>",
            f"<div><h4>A full answer says</h4><ol>{points}</ol></div>",
            "</div>",
            "</article>",
        ]
    )


def explanation(exercise, source) -> str:
    """The text of an explanation without the Python around it; the source if it is not that simple.

    >>> explanation(get("dense-silent-unit"), 'dense_silent_unit = "because"')
    'because'
    """
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source
    texts = [
        statement.value.value
        for statement in body
        if isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
        and [target.id for target in statement.targets if isinstance(target, ast.Name)] == [exercise.entry]
    ]
    return texts[-1].strip() if texts else source


def _cut(text):
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}\n… cut here: {len(text)} characters"
