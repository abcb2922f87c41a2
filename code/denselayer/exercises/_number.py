"""Exercises whose answer is one number or several: how an answer is read, compared and told wrong."""

import json
import math
import re
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from numbers import Number as AnyNumber

import numpy as np

from ._feedback import Feedback
from ._show import listed
from ._texts import Exercise

MIXED = str.maketrans({"−": "-", "\N{NO-BREAK SPACE}": " ", "\N{NARROW NO-BREAK SPACE}": " ", "_": ""})


class Unreadable(ValueError):
    """What came is no number; the message says so to the student."""


@dataclass(frozen=True)
class Part:
    """One blank of a number exercise.

    Args:
        name: what is asked, a key of the answer.
        value: the right answer: a number, a tuple of numbers (a shape, a vector), or one of ``options``.
        slips: wrong answer to the sentence that it deserves: what this number is the right number of.
        rtol: relative tolerance; None takes exact equality for whole numbers, and for others half a unit of
            the third digit or 1e-3, whichever is more, since a person gives about three digits.
        atol: absolute tolerance, for answers near zero.
        unit: shown behind the blank, and allowed behind a number in a string.
        options: the words to choose from, for an answer that is a word.

    >>> Part("bytes", 120, {240: "240 is right for float64."}, unit="bytes").right(Fraction(120))
    True
    """

    name: str
    value: object
    slips: dict = field(default_factory=dict)
    rtol: float | None = None
    atol: float = 0.0
    unit: str = ""
    options: tuple[str, ...] = ()

    def read(self, answer):
        """The answer as a number, a tuple of numbers or a word.

        Raises:
            Unreadable: it is none of what was asked for.
        """
        if self.options:
            return self._word(answer)
        if isinstance(self.value, tuple):
            return self._tuple(answer)
        if isinstance(answer, np.ndarray) and answer.ndim == 0:
            answer = answer[()]
        if isinstance(answer, tuple | list | np.ndarray) and len(answer) == 1:
            answer = answer[0]
        return self._number(answer)

    def _word(self, answer):
        word = answer
        if isinstance(answer, bool | np.bool_) and set(self.options) == {"yes", "no"}:
            word = "yes" if answer else "no"
        matches = [option for option in self.options if option.lower() == str(word).strip().lower()]
        if not matches:
            choices = ", ".join(f'"{option}"' for option in self.options)
            raise Unreadable(f"`{self.name}` is one of {choices}, and {answer!r} is none of them.")
        return matches[0]

    def _tuple(self, answer):
        if isinstance(answer, str):
            answer = [entry for entry in re.split("[,x×]", answer.strip(" ()[]")) if entry.strip()]
        if isinstance(answer, set | frozenset):
            answer = sorted(answer)
        if isinstance(answer, AnyNumber):
            answer = (answer,)
        if not isinstance(answer, tuple | list | np.ndarray):
            raise Unreadable(f"`{self.name}` has several entries, like (2, 3), and {answer!r} has not.")
        return tuple(self._number(entry) for entry in np.array(answer, dtype=object).ravel())

    def _number(self, answer):
        if isinstance(answer, bool | np.bool_):
            raise Unreadable(f"`{self.name}` is a number, and {answer!r} is not.")
        if isinstance(answer, int | float | np.number | Fraction | Decimal):
            try:
                number = Fraction(answer.item() if isinstance(answer, np.generic) else answer)
                return number if abs(number) < LARGEST else math.inf
            except (ValueError, OverflowError, TypeError):
                return float(answer) if not isinstance(answer, complex | np.complexfloating) else math.nan
        if isinstance(answer, str):
            return self._text(answer)
        raise Unreadable(f"`{self.name}` is a number, and a {type(answer).__name__} came.")

    def _text(self, answer):
        text = answer.translate(MIXED).strip()
        if self.unit:
            text = text.removesuffix(self.unit).strip()
        percent = text.endswith("%") and self.unit != "%"
        text = text.removesuffix("%").strip()
        groups = text.split(",")
        if len(groups) > 1 and all(len(group.split(".")[0]) == 3 for group in groups[1:]):
            text = "".join(groups)
        text = "".join(text.split())
        try:
            size = math.inf if "/" in text else abs(float(text))
            number = Fraction(text) if "/" in text or 0 < size < LARGEST else float(text)
        except (ValueError, ZeroDivisionError, OverflowError):
            known = "785000, 0.25, 3/4 and 1.5e-3"
            raise Unreadable(
                f'`{self.name}` cannot be read from "{answer}". Numbers look like {known}.'
            ) from None
        return number / 100 if percent else number

    def right(self, answer):
        """Whether an answer that has been read is the right one."""
        return self.agrees(answer, self.value)

    def agrees(self, answer, value):
        """Whether an answer that has been read is the given value, within the tolerance."""
        if isinstance(value, str):
            return answer == value
        if isinstance(value, tuple):
            return (
                isinstance(answer, tuple)
                and len(answer) == len(value)
                and all(self.agrees(a, v) for a, v in zip(answer, value, strict=True))
            )
        if isinstance(answer, tuple):
            return False
        value = _fraction(value)
        if answer == value:
            return True
        difference = abs(float(answer) - float(value))
        return difference <= max(self._tolerance(value), 1e-12 * abs(float(value)))

    def _tolerance(self, value):
        size = abs(float(value))
        if self.rtol is not None:
            return self.rtol * size + self.atol
        if value.denominator == 1:
            return self.atol
        return max(1e-3 * size, 0.5 * 10.0 ** (math.floor(math.log10(size)) - 2)) + self.atol

    def complaint(self, answer, others):
        """The name of the mistake and what to say to a wrong answer that has been read.

        Args:
            others: the other parts of the exercise.
        """
        for slip, sentence in self.slips.items():
            if self.agrees(answer, self._as_value(slip)):
                return plain(self._as_value(slip)), sentence
        for other in others:
            if type(other.value) is type(self.value) and other.right(answer):
                return f"{other.name} for {self.name}", f"That is `{other.name}`, not `{self.name}`."
        return self._common(answer)

    def _as_value(self, slip):
        return self.read(slip) if isinstance(slip, str) and not self.options else slip

    def _common(self, answer):
        """Mistakes of form that need no knowledge of the question."""
        if isinstance(self.value, str):
            return "", f"`{self.name}` is not {answer}."
        if isinstance(self.value, tuple):
            return self._common_of_tuples(answer)
        value = _fraction(self.value)
        if not math.isfinite(answer):
            return "", f"`{self.name}` is a finite number."
        shown = plain(answer)
        if _rounded(float(answer), float(value)):
            exact = self.rtol is None and value.denominator == 1
            more = "The exact number is asked." if exact else "Give more digits, or the fraction."
            return "rounded", f"{shown} is `{self.name}` with too few digits. {more}"
        if value and self.agrees(-answer, value):
            return "sign", f"{shown} has the right size and the wrong sign."
        if value and answer and self.agrees(1 / Fraction(answer), value):
            return "reciprocal", f"{shown} is the reciprocal of `{self.name}`: what is divided by what?"
        for factor, what in FACTORS.items():
            if value and (self.agrees(answer / factor, value) or self.agrees(answer * factor, value)):
                more = "times as large as" if abs(answer) > abs(value) else "times smaller than"
                return f"factor {factor}", f"{shown} is {factor:,} {more} `{self.name}`{what}."
        return "", f"`{self.name}` is not {shown}."

    def _common_of_tuples(self, answer):
        shown = plain(answer)
        if len(answer) != len(self.value):
            count = len(self.value)
            entries = "entry" if count == 1 else "entries"
            return "length", f"`{self.name}` has {count} {entries}, and {shown} has {len(answer)}."
        if len(answer) > 1 and self.agrees(answer[::-1], self.value):
            return "order", f"{shown} has the right entries in the wrong order."
        if self.agrees(tuple(-entry for entry in answer), self.value) and any(answer):
            return "sign", f"{shown} has the wrong sign in every entry."
        wrong = [
            place
            for place, (a, v) in enumerate(zip(answer, self.value, strict=True), start=1)
            if not self.agrees(a, v)
        ]
        if len(wrong) == len(answer):
            return "", f"`{self.name}` is not {shown}."
        entries = "entry" if len(wrong) == 1 else "entries"
        places = listed([str(place) for place in wrong])
        return "", f"`{self.name}` is not {shown}: look at {entries} {places} again."


def _fraction(value):
    return Fraction(value.item() if isinstance(value, np.generic) else value)


def _rounded(answer, value):
    """Whether the answer is the value with one to three digits, rounded or cut off."""
    if not answer or not value or answer == value:
        return False
    for digits in (1, 2, 3):
        unit = 10.0 ** (math.floor(math.log10(abs(value))) + 1 - digits)
        for whole in (math.floor(value / unit), math.ceil(value / unit)):
            near = abs(whole * unit - value) <= 0.5000001 * unit or abs(whole * unit) < abs(value)
            if near and math.isclose(answer, whole * unit, rel_tol=1e-9):
                return True
    return False


LARGEST = 1e300
"""Beyond it, an answer counts as infinite."""
FACTORS = {
    2: "",
    8: ": bits and bytes",
    1024: "",
    1000: "",
    100: ": a share or a percentage",
    2**20: ": MiB and bytes",
    10**6: "",
}


def plain(value):
    """A number, a tuple of numbers or a word as a person would write it.

    >>> plain(Fraction(785000)), plain(Fraction(3, 8)), plain((6, 4)), plain(Fraction(1, 3))
    ('785,000', '0.375', '(6, 4)', '1/3')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return f"({', '.join(map(plain, value))}{',' * (len(value) == 1)})"
    if isinstance(value, Fraction) and value.denominator == 1:
        return f"{value.numerator:,}".replace("-", "−")
    short = f"{float(value):.6g}"
    written = isinstance(value, Fraction) and value.denominator < 1000
    if written and value.denominator & (value.denominator - 1) and Fraction(short) != value:
        return f"{value.numerator}/{value.denominator}".replace("-", "−")
    return short.replace("-", "−")


class Number(Exercise):
    """An exercise that asks for one number or several; each is a `Part`.

    >>> count = Number("dense-count", Part("parameters", 30, {24: "24 leaves the biases out."}))
    >>> print(count.starter)
    dense_count = ...
    >>> count.check(24).headline, count.check("60/2").status
    ('24 leaves the biases out.', 'correct')
    """

    kind = "number"

    def __init__(self, identifier, *parts):
        super().__init__(identifier)
        self.parts = parts

    @property
    def entry(self):
        return self.id.replace("-", "_")

    @property
    def starter(self):
        return self._cell({part.name: "..." for part in self.parts})

    @property
    def solved(self):
        return self._cell({part.name: literal(part.value) for part in self.parts})

    def _cell(self, values):
        notes = {
            part.name: f"  # {', '.join(part.options) or part.unit}" if part.options or part.unit else ""
            for part in self.parts
        }
        if len(self.parts) == 1:
            [(name, value)] = values.items()
            return f"{self.entry} = {value}{notes[name]}"
        lines = [f'    "{name}": {value},{notes[name]}' for name, value in values.items()]
        return "\n".join([f"{self.entry} = {{", *lines, "}"])

    @property
    def wrong(self):
        """The named wrong answers: the answer cell, and the sentence that each must get."""
        for part in self.parts:
            for slip, sentence in part.slips.items():
                values = {other.name: other.value for other in self.parts} | {part.name: slip}
                cell = self._cell({name: literal(value) for name, value in values.items()})
                yield f"{part.name} = {literal(slip)}", cell, sentence

    def check(self, *answers) -> Feedback:
        """Compare an answer: one value, several in the order of the parts, or a dict by name."""
        given = self._by_name(answers)
        if isinstance(given, Feedback):
            return given
        blank = [part.name for part in self.parts if _is_blank(given.get(part.name, ...))]
        verdicts = [self._verdict(part, given[part.name]) for part in self.parts if part.name not in blank]
        wrong = [(name, sentence) for name, sentence in verdicts if sentence]
        if blank:
            names = listed([f"`{name}`" for name in blank]) if len(self.parts) > 1 else "the answer"
            verb = "is" if len(blank) == 1 else "are"
            details = tuple(sentence for _, sentence in wrong)
            return Feedback(
                self.id, "not attempted", f"Not attempted yet: {names} {verb} still blank.", details
            )
        if wrong:
            (finding, headline), *rest = wrong
            return Feedback(
                self.id, "values", headline, tuple(sentence for _, sentence in rest), finding=finding
            )
        return Feedback(self.id, "correct", "Right.")

    def _by_name(self, answers):
        names = [part.name for part in self.parts]
        if len(answers) == 1 and isinstance(answers[0], dict):
            unknown = [name for name in answers[0] if name not in names]
            if unknown:
                expected = ", ".join(f'"{name}"' for name in names)
                return Feedback(
                    self.id,
                    "error",
                    f'There is no blank "{unknown[0]}" here.',
                    (f"The answer is a dict with the keys {expected}.",),
                )
            return answers[0]
        if len(answers) == 1 and len(names) > 1 and isinstance(answers[0], tuple | list):
            answers = tuple(answers[0])
        if len(answers) == 1 and _is_blank(answers[0]):
            return {}
        if len(answers) != len(names):
            expected = ", ".join(f'"{name}"' for name in names)
            came = "1 value came" if len(answers) == 1 else f"{len(answers)} values came"
            return Feedback(
                self.id,
                "error",
                f"{came} for {len(names)} blank{'s' * (len(names) > 1)}.",
                (f"Give a dict with the keys {expected}.",),
            )
        return dict(zip(names, answers, strict=True))

    def _verdict(self, part, answer):
        try:
            value = part.read(answer)
        except Unreadable as error:
            return "unreadable", str(error)
        if part.right(value):
            return "", ""
        return part.complaint(value, [other for other in self.parts if other is not part])


def _is_blank(answer):
    return answer is ... or answer is None or (isinstance(answer, str) and not answer.strip(" ."))


def literal(value):
    """A value as Python source that needs no import: fractions as text, arrays as lists.

    >>> literal({"a": Fraction(3, 4), "b": np.float64(0.5), "c": (4,)})
    '{"a": "3/4", "b": 0.5, "c": (4,)}'
    """
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, np.generic):
        value = value.item()
    if value is ...:
        return "..."
    if isinstance(value, Fraction):
        return str(value.numerator) if value.denominator == 1 else f'"{value}"'
    if isinstance(value, tuple):
        return f"({', '.join(map(literal, value))}{',' * (len(value) == 1)})"
    if isinstance(value, list):
        return f"[{', '.join(map(literal, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{literal(key)}: {literal(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int | float | bool | type(None)):
        return repr(value)
    return json.dumps(str(value), ensure_ascii=False)
