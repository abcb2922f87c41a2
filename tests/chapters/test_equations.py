"""Every numbered equation is implemented and proved, and nothing is proved that is no equation."""

import ast
import re
from pathlib import Path

from tools import pandoc, qmd

ROOT = Path(__file__).resolve().parents[2]
EQUATION = re.compile(r"\beq-[a-z0-9]+(?:-[a-z0-9]+)*")


def in_chapters(registry):
    return {target.id for target in registry.values() if target.kind == "eq"}


def in_docstrings(folder=ROOT / "code" / "denselayer"):
    """Id -> where a docstring names it."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                for identifier in EQUATION.findall(ast.get_docstring(node) or ""):
                    found.setdefault(identifier, f"{path.name}: {getattr(node, 'name', 'module')}")
    return found


def on_tests(folder=ROOT / "tests"):
    """Id -> the test function that carries the marker, directly or on one of its parameters."""
    found = {}
    for path in sorted(folder.rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                for decorator in node.decorator_list:
                    for identifier in marked(decorator):
                        found.setdefault(identifier, f"{path.name}: {node.name}")
    return found


def marked(decorator):
    """The ids given to `pytest.mark.equation(...)` anywhere inside a decorator."""
    for call in ast.walk(decorator):
        if (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and call.func.attr == "equation"
        ):
            yield from (argument.value for argument in call.args if isinstance(argument, ast.Constant))


def test_every_equation_is_implemented(registry):
    missing = in_chapters(registry) - set(in_docstrings())
    assert not missing, f"no docstring under code/denselayer names {sorted(missing)}"


def test_every_equation_is_proved(registry):
    missing = in_chapters(registry) - set(on_tests())
    assert not missing, f"no test is marked with {sorted(missing)}"


def test_every_docstring_names_equations_that_exist(registry):
    extra = {key: place for key, place in in_docstrings().items() if key not in in_chapters(registry)}
    assert not extra


def test_every_proof_is_of_an_equation_that_exists(registry):
    extra = {key: place for key, place in on_tests().items() if key not in in_chapters(registry)}
    assert not extra


def test_markers_are_found_on_functions_and_parameters():
    source = (
        '@pytest.mark.equation("eq-a", "eq-b")\n'
        '@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.equation("eq-c"))])\n'
        "def test_x(x): ...\n"
    )
    (function,) = ast.parse(source).body
    assert [key for decorator in function.decorator_list for key in marked(decorator)] == [
        "eq-a",
        "eq-b",
        "eq-c",
    ]


def test_all_mathematics_becomes_mathml(book):
    for page in book.pages:
        found = mathematics(page.document)
        together = mathml("\n\n".join(f"$${' '.join(tex.split())}$$" for tex in found))
        if together.count("<math") < len(found):
            failed = [
                f"{page.name}:{line}" for tex, line in found.items() if "<math" not in mathml(f"$${tex}$$")
            ]
            raise AssertionError(f"pandoc cannot write this as MathML: {failed}")


def mathml(text):
    return pandoc.run(["--from", "markdown", "--to", "html", "--mathml"], text)


def mathematics(document):
    """All equations of a page with their lines; equal ones once."""
    found = {}
    for node in document.nodes:
        if isinstance(node, qmd.Math):
            found.setdefault(node.tex, node.line)
    for span in document.spans():
        if span.kind == "math":
            found.setdefault(span.text, span.line)
    return found
