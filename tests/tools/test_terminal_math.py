"""Formulas in letters: what pandoc cannot spell is written as a person types it."""

import pytest

from tools import pandoc
from tools.terminal_math import lines


def spelled(tex):
    """The lines as pandoc writes them, with ordinary spaces."""
    text = "\n\n".join(f"${line}$" for line in lines(tex))
    plain = pandoc.run(["--from", "markdown", "--to", "plain", "--wrap=none"], text)
    return [" ".join(line.split()) for line in plain.split("\n") if line.strip()]


@pytest.mark.parametrize(
    ("tex", "expected"),
    [
        (r"\frac{1}{2}", "1/2"),
        (r"\frac12", "1/2"),
        (r"\tfrac{a + b}{2c} x", "(a + b)/(2c) x"),
        (r"\frac{\frac{1}{2}}{3}", "(1/2)/3"),
        (r"\frac{\partial L}{\partial w_2}", "∂L/∂w₂"),
        (r"\sqrt{x + 1}", "√(x + 1)"),
        (r"\sqrt 2", "√2"),
        (r"\hat{\mathbf{Y}} - \tilde{x}", "Ŷ − x̃"),
        (r"\mathbf{W}^\top \mathbf{x}", "Wᵀx"),
        (r"n_\text{in} n_{\text{out}}", "n_in n_out"),
        (r"\sum_k T_k", "∑_k T_k"),
        (r"x_{10}^2", "x₁₀²"),
        (r"x_k^2", "x_k²"),
        (r"e^{z_k}", "e^(z_k)"),
        (r"f'(x)", "f′(x)"),
        (r"4{,}096 \times 3", "4,096 × 3"),
        (r"2 N d", "2 N d"),
        (r"2Nd", "2Nd"),
        (r"\alpha F", "αF"),
        (r"\left( x \right)", "(x)"),
        (r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", "[[1, 2], [3, 4]]"),
        (r"\begin{pmatrix} 1 & 2 \end{pmatrix}", "[[1, 2]]"),
        (r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}", "(1, 2)ᵀ"),
        (r"\begin{bmatrix} \frac12 & x_1 \\ 0 & 1 \end{bmatrix}", "[[1/2, x₁], [0, 1]]"),
        (r"\begin{cases} z & z > 0 \\ 0 & z \le 0 \end{cases}", "{z, z > 0; 0, z ≤ 0}"),
    ],
)
def test_a_formula_in_one_line(tex, expected):
    assert spelled(tex) == [expected]


def test_lines_of_equations_stay_lines():
    tex = r"\begin{aligned} a &= 1 \\ b &= 2, \qquad c = \begin{pmatrix} 1 & 2 \end{pmatrix} \end{aligned}"
    assert spelled(tex) == ["a = 1", "b = 2, c = [[1, 2]]"]


@pytest.mark.parametrize("tex", ["", " ", "{", r"\frac{1", "_", r"x^", r"\begin{pmatrix} 1", r"\unknown{x}"])
def test_what_is_no_formula_is_left_without_an_error(tex):
    assert isinstance(lines(tex), list)
