"""The source of an answer from a notebook, with what it needs from other cells, so that it runs elsewhere."""

import ast
import builtins
import inspect
import linecache
import sysconfig
import types
from pathlib import Path

import numpy as np

from ._blanks import filenames_of, source_of


def whole_source(objects, names) -> str:
    """The source of functions or classes: their file, or their definitions and what these use.

    A cell of a notebook may hold more than the answer, such as the call of the check itself, and may use
    functions, modules and numbers of other cells. Definitions are taken one by one, and every name that they
    use is brought along: a module or a part of one as an import, a function or class of another cell as its
    definition, plain data as they are now.

    Args:
        objects: the answer.
        names: what the exercise calls them; where they have another name, the source ends with a line that
            gives them this one.
    """
    things = [inspect.unwrap(thing) for thing in objects]
    try:
        source = _defined(things)
    except LookupError:
        source = source_of(objects)
    aliases = [
        f"{name} = {thing.__name__}"
        for name, thing in zip(names, things, strict=True)
        if getattr(thing, "__name__", name) != name
    ]
    return "\n".join([source.rstrip("\n"), *aliases, ""]) if source else ""


def _defined(things):
    """Raises LookupError where a definition cannot be found."""
    imports, others, seen = [], [], set()
    for thing in things:
        if _installed(thing):
            imports.append(f"from {thing.__module__} import {thing.__name__}")
        elif any(Path(name).is_file() for name in filenames_of([thing])):
            others.append(source_of([thing]))
        else:
            _carry(thing, others, seen)
    imports += [part for part in others if part.startswith(("import ", "from "))]
    others = [part for part in others if part not in imports]
    return "\n".join([*sorted({*imports}), "", *dict.fromkeys(others)]).strip()


def _installed(thing):
    """Whether a function or class belongs to an installed package, this one included."""
    folders = [Path(place) for place in {*sysconfig.get_paths().values(), str(Path(__file__).parents[1])}]
    files = [Path(name) for name in filenames_of([thing])]
    return any(file.is_relative_to(folder) for file in files for folder in folders)


def _carry(thing, parts, seen):
    """Append the definition of a function or class, behind everything that it uses."""
    if id(thing) in seen:
        return
    seen.add(id(thing))
    node, lines, space = _definition(thing)
    own = {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)}
    names = [each.id for each in ast.walk(node) if isinstance(each, ast.Name)]
    for name in dict.fromkeys(names):
        if name in space and name not in own and not hasattr(builtins, name) and space[name] is not thing:
            _carry_name(name, space[name], parts, seen)
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    parts.append("\n".join(lines[first - 1 : node.end_lineno]) + "\n")


def _carry_name(name, value, parts, seen):
    module = getattr(value, "__module__", None)
    if isinstance(value, types.ModuleType):
        line = f"import {value.__name__}" + (f" as {name}" if value.__name__ != name else "")
    elif isinstance(value, types.FunctionType | type) and module == "__main__":
        if value.__name__ == name:
            _carry(value, parts, seen)
            return
        _carry(value, parts, seen)
        line = f"{name} = {value.__name__}"
    elif callable(value) and module and hasattr(value, "__name__"):
        line = f"from {module} import {value.__name__}" + (f" as {name}" if value.__name__ != name else "")
    elif isinstance(value, np.ndarray):
        line = f"{name} = np.array({value.tolist()!r}, dtype={value.dtype.str!r})"
        parts.append("import numpy as np")
    else:
        line = f"{name} = {value!r}"
        try:
            ast.literal_eval(repr(value))
        except (ValueError, SyntaxError):
            return  # nothing that can be written down; the definition stands alone
    if line not in parts:
        parts.append(line)


def _definition(thing):
    """The syntax tree of a definition, the lines of its cell, and the names that it sees.

    Raises:
        LookupError: the definition cannot be found.
    """
    for file in sorted(filenames_of([thing])):
        lines = "".join(linecache.getlines(file)).splitlines()
        try:
            body = ast.parse("\n".join(lines)).body
        except SyntaxError as error:
            raise LookupError(file) from error
        kinds = ast.ClassDef if inspect.isclass(thing) else ast.FunctionDef
        found = [node for node in body if isinstance(node, kinds) and node.name == thing.__name__]
        if found:
            return found[-1], lines, _space(thing)
    raise LookupError(getattr(thing, "__name__", repr(thing)))


def _space(thing):
    functions = vars(thing).values() if inspect.isclass(thing) else [thing]
    return next(f.__globals__ for f in functions if hasattr(f, "__globals__"))
