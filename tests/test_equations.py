"""Equations in LaTeX: the notation, and every equation of a model."""

from __future__ import annotations

import importlib
import pkgutil
import re

import pytest
from latex2mathml.converter import convert

import whatif.models
from whatif.equations import latex
from whatif.models.quantities import Citation

WRITTEN = {
    "α + k n / (R_Cb + (k − 1) R_Ci)": r"\alpha + \frac{k n}{R_{\mathrm{Cb}} + \left(k - 1\right) R_{\mathrm{Ci}}}",
    "T = α + k n / min(R_N, k R_b)": r"T = \alpha + \frac{k n}{\min\left(R_{N} ,\  k R_{b}\right)}",
    "k = K_inter / K_total · k'": r"k = \frac{K_{\mathrm{inter}}}{K_{\mathrm{total}}} k'",
    "a = o / E K_l − (b − q) n_l": r"a = \frac{o}{E} K_{l} - \left(b - q\right) n_{l}",
    "((a + b) c) / ((a) + (b))": r"\frac{\left(a + b\right) c}{\left(a\right) + \left(b\right)}",
    "(a) b (c) / d": r"\frac{\left(a\right) b \left(c\right)}{d}",
    "c_r = 2 [r ≤ ⌊lg P⌋]": r"c_{r} = 2 \left[r \le \left\lfloor \operatorname{lg} P\right\rfloor\right]",
    "Σ_d Π_{e≠d} N_e / Σ_d Π_{e≠d} M_e": r"\frac{\sum_{d} \prod_{e \ne d} N_{e}}{\sum_{d} \prod_{e \ne d} M_{e}}",
    "f · (1 + v²) / n̂": r"\frac{f \left(1 + v^2\right)}{\hat{n}}",
    "T = T_in if D = 1, else T_out": r"T = T_{\mathrm{in}} \text{ if } D = 1 ,\  \text{ else } T_{\mathrm{out}}",
    "N T · price / (life · use)": r"\frac{N T \cdot \text{ price }}{\text{ life } \cdot \text{ use }}",
    "d_1·…·d_D = P": r"d_{1} \cdot \dots \cdot d_{D} = P",
    "price of the machine / its nodes": r"\frac{\text{ price of the machine }}{\text{ its nodes }}",
    "P mod √(a + b) + φ^(1/a)": r"P \bmod \sqrt{a + b} + \varphi^{\frac{1}{a}}",
}


def equations() -> list[str]:
    """Equations of all functions of `whatif.models`, each once."""
    modules = [
        importlib.import_module(f"whatif.models.{found.name}") for found in pkgutil.iter_modules(whatif.models.__path__)
    ]
    cited = [getattr(function, "citation", None) for module in modules for function in vars(module).values()]
    return sorted({citation.equation for citation in cited if isinstance(citation, Citation)})


@pytest.mark.parametrize(("plain", "written"), WRITTEN.items())
def test_notation(plain, written):
    assert latex(plain) == written


def test_every_equation_of_a_model_is_mathematics():
    for equation in equations():
        written = latex(equation)
        assert convert(written).startswith("<math"), equation
        assert written.count(r"\left") == written.count(r"\right"), equation
        assert written.count("{") == written.count("}"), equation
        symbols = set(re.findall(r"(?<![\w.])[A-Za-z](?![\w-])", equation))
        assert symbols <= set(re.findall(r"[A-Za-z]+", written)) | set(written), equation


def test_foreign_characters_are_no_commands():
    assert latex(r"\input{x} #1 $y$ %") == r"\backslash \text{ input } \{ x \} \# 1 \$ y \$ \%"
