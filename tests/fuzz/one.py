"""One target of `tests.fuzz`, in a process of its own: `python -m tests.fuzz.one TARGET [OPTIONS OF LIBFUZZER]`."""

from __future__ import annotations

import sys
import tempfile
import warnings
from pathlib import Path

import atheris

_WATCHED = ["whatif.importers", "whatif.profiles", "whatif.schema", "whatif.linpack.input_reader", "whatif.units"]
_WATCHED += ["whatif.linpack.output_reader", "whatif.fitting.formula"]

with atheris.instrument_imports(include=_WATCHED):
    from tests.fuzz.targets import TARGETS
    from whatif.errors import WhatifError


WORDS = (
    "0", "-1", "-0.0", "1e999", "nan", "inf", "99999999999999999999", "4294967296", "2147483648", "1e-320", "1" * 60,
    "null", "true", "[]", "{}", "''", ",", ";", "|", "\\x09", "\\x0d", "\\x1b", "\\x00", "\\xe2\\x80\\xae", "\\xff",
)  # fmt: skip
"""What readers stumble over, for libFuzzer to put in."""


def main() -> None:
    """Feed the target until time is over."""
    target = TARGETS[sys.argv.pop(1)]
    folder = Path(tempfile.mkdtemp())
    seeds, path = folder / "seeds", folder / "input" / target.name
    for part in (seeds, path.parent):
        part.mkdir()
    (folder / "words").write_text("".join(f'"{word}"\n' for word in WORDS))
    for number, content in enumerate(target.contents()):
        (seeds / str(number)).write_bytes(content)

    def read(content: bytes) -> None:
        path.write_bytes(content)
        try:
            target.read(path)
        except WhatifError as error:
            # What `reading` made an error of the file is one that its reader should have told of.
            if error.__cause__ is not None and not isinstance(error.__cause__, WhatifError | OSError):
                raise error.__cause__ from None

    warnings.simplefilter("ignore")
    atheris.Setup([*sys.argv, f"-dict={folder / 'words'}", str(seeds)], read)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
