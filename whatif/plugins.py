"""Plug-ins: self-contained packages that add applications, verbs and pages, registered as plain data.

A plug-in is a package with a `PLUGIN`, listed in `PLUGINS`. It names everything by text (`module:name`), so that
nothing behind it is imported before it is used, and the packages below need not know of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final, NamedTuple

PLUGINS: Final = ("whatif.linpack", "whatif.profiles", "whatif.transformers", "whatif.files")
_NONE: Final[Mapping[str, Any]] = MappingProxyType({})


class ApplicationKind(NamedTuple):
    """Application that is not a list of phases, by the references of its parts."""

    schema: str
    """Subclass of `whatif.schema.application.Application` with this `kind`."""
    wirer: str
    """Function from a `whatif.core.context.Context` to the terms of the application."""
    remarks: str
    """Function from a program and the values of its swept parameters to remarks on the result."""
    results: str = ""
    """Function from a `Context` and the terms of the columns to terms of further columns, by name; empty for none."""


class Verb(NamedTuple):
    """Verb of the command line; `module` has a click command of the name `command`."""

    module: str
    help: str
    section: str = ""
    """Heading of the list of verbs that it is under; empty for that of its group."""


class PluginPage(NamedTuple):
    """Page of the explorer in place of the page of another screen, for one kind of application."""

    page: str
    """Reference of the class."""
    screen: str
    application: str


class FileKind(NamedTuple):
    """Files of another program from which a scenario is made, by the references of their functions."""

    recognise: str
    """Whether a path is such a file."""
    read: str
    """Content of a file; raises `InvalidFileError`."""
    scenario: str
    """Text of a scenario, from a path, the name of a platform and its `PlatformSpec`."""


class PhaseFile(NamedTuple):
    """Files of another program from which phases are made, by the references of their functions."""

    recognise: str
    """Whether a path is such a file."""
    text: str
    """TOML with the phases, from a path, the `PlatformSpec` of the scenario, and the folder of its file or None."""
    words: str
    """Description of such a file."""


class Plugin(NamedTuple):
    """Everything that one package adds."""

    applications: Mapping[str, ApplicationKind] = _NONE
    """By `application.kind`."""
    verbs: Mapping[str, Verb] = _NONE
    """By the words of the command line: `hpl`, `tune hpl`."""
    pages: Mapping[str, PluginPage] = _NONE
    """By the page's name."""
    files: Mapping[str, FileKind] = _NONE
    """By the name of the kind."""
    phases: Mapping[str, PhaseFile] = _NONE
    """By the name of the kind."""


@cache
def _plugins() -> tuple[Plugin, ...]:
    return tuple(import_module(name).PLUGIN for name in PLUGINS)


def resolve(reference: str) -> Any:
    """Object behind a reference `module:name`."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)


def registered_applications() -> dict[str, ApplicationKind]:
    """Applications of all plug-ins by their kind."""
    return {kind: item for plugin in _plugins() for kind, item in plugin.applications.items()}


def application_kind(application: object) -> ApplicationKind | None:
    """Registration of an application by its plug-in; None for an application of phases."""
    return registered_applications().get(getattr(application, "kind", ""))


def registered_verbs(group: str = "") -> dict[str, Verb]:
    """Verbs of all plug-ins in a group such as `tune`, by their last word; without a group, the verbs in none."""
    verbs = {tuple(words.rpartition(" ")[::2]): verb for plugin in _plugins() for words, verb in plugin.verbs.items()}
    return {name: verb for (owner, name), verb in verbs.items() if owner == group}


def registered_pages() -> dict[str, PluginPage]:
    """Pages of all plug-ins by their name."""
    return {name: page for plugin in _plugins() for name, page in plugin.pages.items()}


def registered_files() -> dict[str, FileKind]:
    """Kinds of files of all plug-ins by their name."""
    return {name: kind for plugin in _plugins() for name, kind in plugin.files.items()}


def registered_phase_files() -> dict[str, PhaseFile]:
    """Kinds of files that phases are made from, of all plug-ins, by their name."""
    return {name: kind for plugin in _plugins() for name, kind in plugin.phases.items()}


def page_of(screen: str, application: object) -> str:
    """Name of the page that shows a screen for an application: its plug-in's, or else that of the screen."""
    key = screen, getattr(application, "kind", "")
    return next((name for name, page in registered_pages().items() if (page.screen, page.application) == key), screen)
