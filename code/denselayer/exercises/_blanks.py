"""Blanks of a starter: where they stand, how they are filled, and which a student has left."""

import ast
import inspect
import itertools
import linecache
import re
import textwrap

BLANK = re.compile(r"^(?P<indent>[ \t]*)<<(?P<text>.+)>>[ \t]*$", re.MULTILINE)
LEFT = re.compile(r"\.\.\.\s*# blank (\d+): (.*)")


def described(template) -> list[str]:
    """What is to be written in each blank of a template.

    >>> described("def f(x):\\n    <<twice x>>\\n")
    ['twice x']
    """
    return [match["text"] for match in BLANK.finditer(template)]


def starter(template) -> str:
    """The template with an ellipsis for every blank.

    >>> print(starter("def f(x):\\n    <<twice x>>"))
    def f(x):
        ...  # blank 1: twice x
    """
    numbers = itertools.count(1)
    return BLANK.sub(
        lambda blank: f"{blank['indent']}...  # blank {next(numbers)}: {blank['text']}", template
    )


def filled(template, snippets) -> str:
    """The template with code for every blank.

    Raises:
        ValueError: there are more or fewer snippets than blanks.

    >>> print(filled("def f(x):\\n    <<twice x>>", ["return 2 * x"]))
    def f(x):
        return 2 * x
    """
    blanks = len(described(template))
    if blanks != len(snippets):
        raise ValueError(f"{blanks} blanks and {len(snippets)} snippets")
    rest = iter(snippets)

    def fill(match):
        return textwrap.indent(textwrap.dedent(next(rest)).strip("\n"), match["indent"])

    return BLANK.sub(fill, template)


def filenames_of(objects) -> set[str]:
    """The files or notebook cells in which functions, or the methods of classes, were written."""
    names = set()
    for thing in map(inspect.unwrap, objects):
        functions = [*vars(thing).values()] if inspect.isclass(thing) else [thing]
        names |= {f.__code__.co_filename for f in functions if hasattr(f, "__code__")}
    return names


def source_of(objects) -> str:
    """The whole source in which functions or classes were written: files or notebook cells.

    Empty if there is none, as for a function typed into the interactive interpreter.
    """
    return "\n".join("".join(linecache.getlines(name)) for name in sorted(filenames_of(objects)))


def left(source) -> list[str]:
    """The descriptions of the blanks that are still in a source.

    >>> left("def f(x):\\n    ...  # blank 1: twice x\\n")
    ['twice x']
    >>> left("def f(x):\\n    return x[..., None]\\n")
    []
    """
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return [match[2] for match in LEFT.finditer(source)]
    lines = source.splitlines()
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr | ast.Assign | ast.Return) and _is_ellipsis(node.value):
            match = LEFT.search(lines[node.lineno - 1])
            if match:
                found.append((int(match[1]), match[2].strip()))
    return [text for _, text in sorted(found)]


def _is_ellipsis(node):
    return isinstance(node, ast.Constant) and node.value is ...
