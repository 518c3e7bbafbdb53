"""Study files: read by path or shipped name, merged with overrides, and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from whatif.errors import InvalidFileError, Problem
from whatif.paths import is_file
from whatif.schema.load import open_document, override_layers
from whatif.schema.not_found import other_kind
from whatif.schema.removal import without_removed
from whatif.schema.shipped import kind_of
from whatif.schema.study_spec import StudySpec
from whatif.schema.toml import Document, Layer, Layers, key_path
from whatif.schema.validated import validate

FOLDER: Final = "studies"


@dataclass(frozen=True, eq=False)
class StudyFile:
    """A checked study, with the layers that its values come from."""

    spec: StudySpec
    layers: Layers
    document: Document

    @property
    def folder(self) -> Path:
        """Folder of the file, next to which its other files are."""
        return self.document.folder or Path()

    def source(self, name: str) -> str:
        """Path of NAME or NAME.toml next to the study if there is one, else the name itself."""
        paths = (self.folder / (name if Path(name).suffix else f"{name}.toml"), self.folder / name)
        return next((str(path) for path in paths if is_file(path)), name)

    def problem(self, path: str, message: str) -> Problem:
        """Problem at a value of the study."""
        return self.layers.problem(key_path(path), message)

    def refused(self, path: str, message: str) -> InvalidFileError:
        """Error about a value of the study."""
        return InvalidFileError([self.problem(path, message)])


def open_study(source: str | Path | Document, overrides: Mapping[str, Any] | None = None) -> StudyFile:
    """Study of a path, a shipped name or a document, with overrides by path.

    Raise `InvalidFileError` with every problem of the file, each with line, column and key.
    """
    document = source if isinstance(source, Document) else open_document(source, FOLDER)
    kind = kind_of(document.data)
    if kind not in ("study", None):
        raise InvalidFileError([document.problem((), other_kind(kind, "study", document.name))])
    layers = Layers.of([Layer(document), *override_layers(overrides or {})])
    layers = without_removed(StudySpec, layers)
    return StudyFile(validate(StudySpec, layers), layers, document)
