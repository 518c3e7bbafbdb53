"""Equations in LaTeX, from the plain notation of `@model`.

In that notation a space or `·` multiplies, and `/` divides the factors before it by the one factor after it. `_` and
`^` begin a subscript and an exponent. Square brackets around a condition are 1 where it is true, else 0. One letter, or
a name with a capital or a subscript, is a symbol; other words are text.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from whatif.visible_text import visible

_GREEK: Final = {
    "α": r"\alpha", "β": r"\beta", "γ": r"\gamma", "δ": r"\delta", "ε": r"\varepsilon", "ζ": r"\zeta", "η": r"\eta",
    "θ": r"\theta", "κ": r"\kappa", "λ": r"\lambda", "μ": r"\mu", "ν": r"\nu", "ξ": r"\xi", "π": r"\pi", "ρ": r"\rho",
    "σ": r"\sigma", "τ": r"\tau", "φ": r"\varphi", "χ": r"\chi", "ψ": r"\psi", "ω": r"\omega", "Δ": r"\Delta",
    "Λ": r"\Lambda", "Φ": r"\Phi", "Ψ": r"\Psi", "Ω": r"\Omega",
}  # fmt: skip
_FUNCTIONS: Final = {
    "max": r"\max", "min": r"\min", "argmin": r"\operatorname{argmin}", "log": r"\log", "log2": r"\log_2", "ln": r"\ln",
    "lg": r"\operatorname{lg}", "exp": r"\exp", "mod": r"\bmod", "Σ": r"\sum", "Π": r"\prod",
}  # fmt: skip
_CLOSING: Final = r"\)"
_BRACKETS: Final = {
    "(": ("(", ")", _CLOSING), "[": ("[", "]", r"\]"), "⌈": (r"\lceil ", r"\rceil", "⌉"),
    "⌊": (r"\lfloor ", r"\rfloor", "⌋"), "floor(": (r"\lfloor ", r"\rfloor", _CLOSING),
}  # fmt: skip
_SIGNS: Final = {
    "−": "-", "≤": r"\le", "≥": r"\ge", "≠": r"\ne", "…": r"\dots", "∉": r"\notin", "~": r"\sim", ":": r":\ ",
    ",": r",\ ", "·": r"\cdot", ";": r";\quad", "*": r"\cdot",
    "%": r"\%", "&": r"\&", "#": r"\#", "$": r"\$", "_": r"\_",
    "\\": r"\backslash", "{": r"\{", "}": r"\}", "^": r"\hat{}",
}  # fmt: skip
_ESCAPED: Final = {
    **{char: f"\\{char}" for char in "%&#$_{}"},
    "\\": r"\textbackslash{}", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", "–": "--", "µ": r"\(\mu\)",
}  # fmt: skip
_FORMULAS: Final = {
    "×": r"\times",
    "±": r"\pm",
    "→": r"\to",
    "²": "^2",
    "³": "^3",
    "Σ": r"\sum",
    "√": r"\surd",
    "∞": r"\infty",
}
"""Signs in text, besides those of equations."""
_OPEN: Final = re.compile(r"floor\(|[(\[⌈⌊]")
_NAME: Final = re.compile("[^\\W\\d_][^\\W_²³]*\u0302?'*")
_TEXT: Final = re.compile(
    r"(?!(?:max|min|argmin|log2?|ln|lg|exp|mod)\b(?!-))(?:[a-z][a-z-]+|a(?= (?!mod)[a-z]{2}))(?![\w^'(])"
)
_INDEX: Final = re.compile(r"\|\w\||-?[^\W_]+")
_SUM: Final = re.compile(r"[ΣΠ]")


@lru_cache(maxsize=1024)
def latex(equation: str) -> str:
    r"""LaTeX of an equation, for mathematics mode: that of `T = α + n / R` is `T = \alpha + \frac{n}{R}`."""
    return _Reader(equation).expression()


def latex_text(text: str) -> str:
    r"""LaTeX of plain text, outside mathematics: `50 %` is `50 \%`, and a Greek letter or sign is a formula."""
    return "".join(map(_letter, visible(text, "")))


def _letter(char: str) -> str:
    if char in _ESCAPED:
        return _ESCAPED[char]
    formula = _GREEK.get(char) or _SIGNS.get(char) or _FORMULAS.get(char) if char > "~" else None
    return rf"\({formula}\)" if formula else char


class _Reader:
    """Recursive descent through the text of one equation."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def take(self, pattern: str | re.Pattern[str]) -> str:
        """Text at the present place that matches, which is passed; empty if it does not match."""
        found = re.compile(pattern).match(self.text, self.at)
        self.at = found.end() if found else self.at
        return found[0] if found else ""

    def expression(self, closing: str = r"\Z") -> str:
        """Products and signs up to a closing bracket, which is passed."""
        pieces: list[str] = []
        while True:
            self.take(r"\s*")
            if self.take(closing) or self.at >= len(self.text):
                return " ".join(pieces)
            pieces.append(self.product() or self.sign())

    def sign(self) -> str:
        sign = self.take(".")
        return r",\quad" if sign == "," and self.take("  ") else _SIGNS.get(sign, sign)

    def product(self) -> str:
        """Factors, and quotients of them: a sum or product extends over all that follows, text ends a numerator."""
        done, factors, dot = "", "", ""
        while factor := self.factor():
            beside_text = factor.startswith(r"\text") or factors.startswith(r"\text")
            if beside_text and not dot:
                done, factors = f"{done} {factors}", factor
            else:
                factors = (rf"{factors} \cdot {factor}" if beside_text else f"{factors} {factor}").strip()
            while self.take(r"\s*/\s*"):
                below = self.product() if _SUM.match(self.text, self.at) else self.factor()
                factors = rf"\frac{{{_bare(factors)}}}{{{_bare(below)}}}"
            dot = self.take(r"\s*·(?!\s*…)")
        return f"{done} {factors}".strip()

    def factor(self) -> str:
        """A bracket, number, text or symbol with its marks; empty if nothing matches."""
        self.take(r"\s*")
        if words := self.words():
            return rf"\text{{{words}}}"
        if bracket := self.take(_OPEN):
            left, right, closing = _BRACKETS[bracket]
            return rf"\left{left}{self.expression(closing)}\right{right}" + self.marks()
        if number := self.take(r"\d+(?:\.\d+)?"):
            return number + self.marks()
        if self.take("√"):
            return rf"\sqrt{{{_bare(self.factor())}}}"
        name = self.take(_SUM) or self.take(_NAME)
        return _symbol(name) + self.marks(long=bool(_SUM.fullmatch(name))) + self.arguments() if name else ""

    def arguments(self) -> str:
        """Arguments of a function, whose bracket follows its name without a space."""
        return rf"\left({self.expression(_CLOSING)}\right)" if self.take(r"\(") else ""

    def words(self) -> str:
        """Consecutive words of text, with the spaces around them."""
        start, first = self.at, self.take(_TEXT)
        while first and self.take(r" (?=\S)") and self.take(_TEXT):
            pass
        return f" {self.text[start : self.at].strip()} " if first else ""

    def marks(self, *, long: bool = False) -> str:
        """Subscripts and exponents."""
        written = ""
        while mark := self.take(r"[_^²³]"):
            written += {"²": "^2", "³": "^3"}.get(mark) or f"{mark}{{{self.index(long=long)}}}"
        return written

    def index(self, *, long: bool) -> str:
        if bracket := self.take(r"[({]"):
            return (
                self.expression(_CLOSING)
                if bracket == "("
                else self.take(r"rdm\}").rstrip("}") or self.expression(r"\}")
            )
        if long:
            return latex(self.take(r"\S+"))
        found = self.take(_INDEX)
        return found if len(found) < 2 or found in ("dk", "rdm") or not found.isalnum() else rf"\mathrm{{{found}}}"


def _bare(factor: str) -> str:
    """A numerator or denominator without the brackets around all of it."""
    depth = 0
    for bracket in re.finditer(r"\\left(\W)|\\right\W", factor):
        depth += 1 if bracket[1] else -1
        if depth == 0:
            return factor[6:-7] if factor.startswith(r"\left(") and bracket.end() == len(factor) else factor
    return factor


def _symbol(name: str) -> str:
    """A function, or a letter or longer name with its hat and primes."""
    plain = name.rstrip("'").rstrip("\u0302")
    written = _FUNCTIONS.get(plain) or _GREEK.get(plain) or (plain if len(plain) == 1 else rf"\mathrm{{{plain}}}")
    return (rf"\hat{{{written}}}" if "\u0302" in name else written) + "'" * name.count("'")
