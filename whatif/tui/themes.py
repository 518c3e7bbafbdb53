"""The explorer's own themes, and colours for the curves of a plot under any theme of Textual.

The six colours of a theme are its roles and its curves at once, in the order primary, warning, success, error,
secondary, accent. Text in any of them has a contrast (WCAG 2.2) of at least 4.5 on every ground of its theme, the
cursor's row (`$primary 20%`) included, and any two differ with every colour vision. The colour-blind palettes keep
near the hues of Okabe and Ito (Color Universal Design, 2008), and lie still farther from each other.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from textual.theme import Theme

_ROLES: Final = ("primary", "warning", "success", "error", "secondary", "accent")
# Legible on the palest dark and the darkest light ground among Textual's themes as well, and apart in everybody's eyes.
_ON_DARK: Final = ("#31beff", "#f6c143", "#3cb78a", "#ff7969", "#99dfdb", "#dc94d3")
_ON_LIGHT: Final = ("#1a52d4", "#4a3500", "#066352", "#b03000", "#1c2b3b", "#8c3990")
# Sky blue, orange, bluish green, vermillion, yellow, reddish purple.
_OKABE_ITO_ON_DARK: Final = ("#56b4e9", "#ffb100", "#00a77b", "#f26c00", "#f0e442", "#d881b1")
# Blue, orange, bluish green, vermillion, sky blue, reddish purple.
_OKABE_ITO_ON_LIGHT: Final = ("#0f47fd", "#8f4305", "#076a53", "#6b1a00", "#152e8d", "#4f3159")
# Terminals draw blue too dark on black, and yellow too pale on white.
_ANSI_ON_DARK: Final = ("ansi_bright_blue", "ansi_yellow", "ansi_green", "ansi_red", "ansi_cyan", "ansi_magenta")
_ANSI_ON_LIGHT: Final = ("ansi_blue", "ansi_bright_black", "ansi_green", "ansi_red", "ansi_cyan", "ansi_magenta")


class _Grounds(NamedTuple):
    """Neutral colours of a theme: backgrounds, and plain text from loud to faint."""

    background: str
    surface: str
    panel: str
    foreground: str
    muted: str
    disabled: str


_DARK: Final = _Grounds("#10141a", "#151a21", "#1a2029", "#dbe1ea", "#b3bdca", "#959fae")
_DARKER: Final = _Grounds("#0a0c0f", "#0d1013", "#101317", "#e6e9ee", "#b4bbc5", "#949ca8")
_LIGHT: Final = _Grounds("#fbfbf9", "#f4f5f4", "#edeff0", "#1f2630", "#424c59", "#535d6c")
_LIGHTER: Final = _Grounds("#ffffff", "#fafafa", "#f5f5f5", "#14181d", "#454c56", "#585f6a")


def _theme(name: str, grounds: _Grounds, colours: tuple[str, ...], *, dark: bool) -> Theme:
    roles: dict[str, Any] = dict(zip(_ROLES, colours, strict=True))
    variables = {
        # Textual would tint coloured text towards white or black, and so bring the colours nearer to each other.
        **{f"text-{role}": colour for role, colour in roles.items()},
        **_numbered(colours),
        "text-muted": grounds.muted,
        "text-disabled": grounds.disabled,
        "foreground-muted": grounds.muted,
        "foreground-disabled": grounds.disabled,
        "footer-background": grounds.background,
        "footer-key-foreground": roles["primary"],
        "footer-description-foreground": grounds.muted,
        "scrollbar-background": grounds.background,
    }
    return Theme(
        name,
        **roles,
        foreground=grounds.foreground,
        background=grounds.background,
        surface=grounds.surface,
        panel=grounds.panel,
        dark=dark,
        variables=variables,
    )


def _numbered(colours: tuple[str, ...]) -> dict[str, str]:
    return {f"series-{number}": colour for number, colour in enumerate(colours, 1)}


DEFAULT_THEME: Final = "whatif-dark"
THEMES: Final = (
    _theme("whatif-dark", _DARK, _ON_DARK, dark=True),
    _theme("whatif-light", _LIGHT, _ON_LIGHT, dark=False),
    _theme("whatif-colour-blind", _DARKER, _OKABE_ITO_ON_DARK, dark=True),
    _theme("whatif-colour-blind-light", _LIGHTER, _OKABE_ITO_ON_LIGHT, dark=False),
)


def series_variables(theme: Theme) -> dict[str, str]:
    """`series-1` to `series-6`, the colours of curves, for `App.get_theme_variable_defaults`.

    A theme that defines them itself keeps its own. For all others they do not come from the theme: the coloured
    texts of many, such as the warning and the error of solarized, are too near to each other for two curves.
    """
    if theme.ansi:
        return _numbered(_ANSI_ON_DARK if theme.dark else _ANSI_ON_LIGHT)
    return _numbered(_ON_DARK if theme.dark else _ON_LIGHT)
