"""Scenario files of a git revision: `REV:path`."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Final

from whatif.errors import InvalidFileError, UsageError
from whatif.limits import MAXIMUM_ARCHIVE_SIZE

_SECONDS: Final = 60


def names_a_revision(text: str) -> bool:
    """Whether a text is `REV:path`, and not a file whose name has a colon."""
    revision, colon, path = text.partition(":")
    return bool(colon and revision and path) and not Path(text).exists()


@contextmanager
def checked_out(text: str) -> Iterator[Path]:
    """Path of the file `REV:path` in a temporary folder, with the other TOML files of its folder.

    The path is relative to the present folder, as in `git show REV:./path`. The repository is not changed.
    Raise `UsageError` without such a repository, revision or file.
    """
    revision, _, path = text.partition(":")
    commit = _git(["rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"], text,
                  f"`{revision}` is not a revision of this repository").decode().strip()  # fmt: skip
    wanted = PurePosixPath(path)
    if wanted.is_absolute() or ".." in wanted.parts:
        raise UsageError(f"{text}: the path must be below this folder")
    pattern = f":(glob){wanted.parent / '**' / '*.toml'}"
    packed = _git(["archive", "--format=tar", commit, "--", pattern], text, f"no `{path}` in {revision}")
    if len(packed) > MAXIMUM_ARCHIVE_SIZE:
        raise UsageError(f"{text}: the TOML files of its folder are larger than {MAXIMUM_ARCHIVE_SIZE // 10**6} MB")
    with TemporaryDirectory(prefix="whatif-") as folder:
        _unpack(packed, Path(folder))
        if not (Path(folder) / wanted).is_file():
            raise UsageError(f"{text}: no `{path}` in {revision}")
        try:
            yield Path(folder) / wanted
        except InvalidFileError as error:
            problems = [replace(one, file=one.file.replace(f"{folder}/", f"{revision}:")) for one in error.problems]
            raise InvalidFileError(problems) from None


def _unpack(packed: bytes, folder: Path) -> None:
    """Write the regular files of an archive into a folder; links are left out."""
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isfile() else None
            target = (folder / member.name).resolve()
            if content is not None and target.is_relative_to(folder.resolve()):
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content.read())


def _git(arguments: list[str], text: str, otherwise: str) -> bytes:
    try:
        run = subprocess.run(  # noqa: S603
            ["git", *arguments],  # noqa: S607
            capture_output=True, timeout=_SECONDS, check=False,
        )  # fmt: skip
    except FileNotFoundError:
        raise UsageError(f"{text}: git is not installed") from None
    except subprocess.TimeoutExpired:
        raise UsageError(f"{text}: git took more than {_SECONDS} s") from None
    if run.returncode != 0:
        message = run.stderr.decode(errors="replace").strip().removeprefix("fatal: ")
        raise UsageError(f"{text}: {otherwise}{f' ({message})' if message else ''}")
    return run.stdout
