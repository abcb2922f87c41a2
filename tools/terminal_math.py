r"""Rewrite TeX formulas so that pandoc's plain writer can spell them in letters.

Pandoc knows Greek letters, signs, sub- and superscripts.  Fractions, roots, accents, matrices and lines of
equations become what a person types: `\frac{a}{b + 1}` is `a/(b + 1)`, a matrix is a list of rows.
"""

from __future__ import annotations

import re
from unicodedata import normalize

ACCENTS = {"hat": "\u0302", "tilde": "\u0303", "bar": "\u0304", "dot": "\u0307", "vec": "\u20d7"}
MATRICES = "matrix|pmatrix|bmatrix|smallmatrix|vmatrix"
COMMAND = re.compile(r"\\(?:[A-Za-z]+|.)", re.DOTALL)
STYLED = re.compile(r"\\(?:text|math[a-z]+|boldsymbol|operatorname)(?=\{)")
ENVIRONMENT = re.compile(r"\\begin\{([a-z]+)\}(?:\{[^{}]*\})?((?:(?!\\begin\{).)*?)\\end\{\1\}", re.DOTALL)
CALL = re.compile(r"\\[A-Za-z]+$")
SIZES = re.compile(r"\\(?:left|right|bigl|bigr|Bigl|Bigr|big|Big)(?![A-Za-z])\.?")
SPACES = re.compile(r"\\(?:qquad|quad)(?![A-Za-z])")
CLOSE = (*"_^)],.;:=+-<>|/}&", "")
"""What may stand right behind a word that is a subscript."""
ROW = re.compile(r"\\\\(?:\[[^\]]*\])?")


def lines(tex: str) -> list[str]:
    r"""A formula as the lines that it is shown in, in TeX that pandoc can write as plain text.

    >>> lines(r"\frac{n + 1}{2} = \sqrt{x}")
    ['(n + 1)/2 = √x']
    >>> lines(r"\begin{aligned} a &= 1 \\ b &= \begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix} \end{aligned}")
    ['a = 1', 'b = [[1, 2], [3, 4]]']
    """
    tex = SPACES.sub(r"\\;\\;", SIZES.sub("", tex)).replace("'", "′").replace("{,}", "\\text{,}")
    while ENVIRONMENT.search(tex):
        tex = ENVIRONMENT.sub(_environment, tex)
    return [line for part in tex.split("\n") if (line := " ".join(_simple(part).split()))]


def _environment(match: re.Match[str]) -> str:
    """A matrix as a list of rows, a column as a tuple, cases between braces, other rows as lines."""
    rows = [row.strip() for row in ROW.split(" ".join(match[2].split())) if row.strip()]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)&", row)] for row in rows]
    if re.fullmatch(MATRICES, match[1]):
        if all(len(row) == 1 for row in cells) and len(cells) > 1:
            return "(" + ", ".join(row[0] for row in cells) + ")ᵀ"
        return "[" + ", ".join("[" + ", ".join(row) + "]" for row in cells) + "]"
    if match[1] == "cases":
        return "\\{ " + "; ".join(", ".join(cell.rstrip(",") for cell in row) for row in cells) + " \\}"
    return "\n".join(" ".join(row) for row in cells)


def _simple(tex: str) -> str:
    """The same without fractions, roots and accents."""
    out, position = "", 0
    while position < len(tex):
        match = COMMAND.match(tex, position)
        name = match[0][1:] if match else ""
        if name in ("frac", "tfrac", "dfrac"):
            over, position = _argument(tex, match.end())
            under, position = _argument(tex, position)
            out += f"{_grouped(over)}/{_grouped(under)}"
            if tex[position:].strip()[:1].isalnum() or tex[position:].strip()[:1] in ("\\", "(", "["):
                out += "\\,"
        elif name == "sqrt":
            inside, position = _argument(tex, match.end())
            out += f"√{_grouped(inside)}"
        elif not match and tex[position] in "_^":
            inside, after = _argument(tex, position + 1)
            script = _script(tex[position], inside)
            apart = script.startswith("\\text") and tex[after:].lstrip()[:1] not in CLOSE
            out += script + ("\\," if apart else "")
            position = after
        elif name in ACCENTS:
            inside, position = _argument(tex, match.end())
            out += _accented(inside, ACCENTS[name])
        else:
            apart = not match and out[-1:].isalnum() and re.match(r"\s+[^\W_]", tex[position:])
            out += match[0] if match else "\\," if apart and not CALL.search(out) else tex[position]
            position = match.end() if match else position + 1
    return out


def _argument(tex: str, position: int) -> tuple[str, int]:
    """The argument that begins here, a group in braces or one sign, made simple, and where it ends."""
    while tex[position : position + 1].isspace():
        position += 1
    if tex[position : position + 1] != "{":
        match = STYLED.match(tex, position) or COMMAND.match(tex, position)
        end = match.end() if match else position + 1
        if match and match.re is STYLED:
            end = _closing(tex, end) + 1
        return _simple(tex[position:end]), end
    end = _closing(tex, position)
    return _simple(tex[position + 1 : end].strip()), end + 1


def _closing(tex: str, position: int) -> int:
    """Where the brace that opens here is closed."""
    depth = 0
    for end in range(position, len(tex)):
        depth += {"{": 1, "}": -1}.get(tex[end], 0)
        if not depth:
            return end
    return len(tex)


def _grouped(tex: str) -> str:
    """In parentheses, unless it is one name, one number or in parentheses already."""
    alone = re.fullmatch(
        r"[\d.]+|(?:\\partial\s*)?\\?[A-Za-z]+(?:\{[^{}]*\})?(?:[_^](?:\w|\\[A-Za-z]+|\{[^{}]*\}))*", tex
    )
    letters = re.fullmatch(r"[a-z]{2,}", tex)
    return tex if alone and not letters else f"({tex})"


def _script(sign: str, inside: str) -> str:
    """A subscript or superscript; a word keeps its sign, `x_k`, and the sign of the transpose is a letter."""
    word = re.fullmatch(r"(?:\\text\{)?([A-Za-z]+)\}?", inside)
    if sign == "^" and inside == "\\top":
        return "ᵀ"
    if word and (sign == "_" or len(word[1]) == 1):
        return f"\\text{{{sign}{word[1]}}}"
    return f"{sign}{{{inside}}}"


def _accented(tex: str, accent: str) -> str:
    """The accent behind the letter, inside of \\mathbf{...} and the like."""
    return re.sub(r"(\w)(?=\}*$)", lambda found: normalize("NFC", found[1] + accent), tex)
