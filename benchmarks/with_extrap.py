"""Models and times of Extra-P: run by the Python of an environment with Extra-P (numpy < 2), not of this project.

`with_extrap.py models FOLDER` writes the models of all sample files in a folder as CSV; `with_extrap.py seconds FILE`
prints the median time to model a text file, without reading it, after one warm-up run. Factors of a term are written
`name power logarithm`.
"""

from __future__ import annotations

import csv
import statistics
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

REPEATS = 5
COLUMNS = ("file", "region", "metric", "terms", "coefficients", "smape", "rss", "model")


def _read(path: Path) -> Any:
    from extrap.fileio.file_reader.jsonlines_file_reader import read_jsonlines_file
    from extrap.fileio.file_reader.text_file_reader import TextFileReader

    return read_jsonlines_file(path) if path.suffix == ".jsonl" else TextFileReader().read_experiment(path)


def _models(experiment: Any) -> dict[Any, Any]:
    from extrap.modelers.model_generator import ModelGenerator

    generator = ModelGenerator(experiment)
    generator.model_all()
    return dict(generator.models)


def _factors(names: list[str], term: Any) -> str:
    """Text of a product of one or several parameters."""
    pairs = getattr(term, "parameter_term_pairs", [(0, term)])
    words = []
    for parameter, compound in pairs:
        exponents = {simple.term_type: simple.exponent for simple in compound.simple_terms}
        words.append(f"{names[parameter]} {exponents.get('polynomial', 0)} {exponents.get('logarithm', 0)}")
    return " * ".join(words)


def _rows(folder: Path) -> Iterator[tuple[Any, ...]]:
    for path in sorted((*folder.rglob("*.txt"), *folder.rglob("*.jsonl"))):
        experiment = _read(path)
        names = [parameter.name for parameter in experiment.parameters]
        for (region, metric), model in _models(experiment).items():
            function = model.hypothesis.function
            terms = list(function.compound_terms)
            numbers = [float(function.constant_coefficient), *(float(term.coefficient) for term in terms)]
            yield (
                path.relative_to(folder).as_posix(),
                region.name,
                metric.name,
                " + ".join(_factors(names, term) for term in terms),
                " ".join(map(repr, numbers)),
                repr(float(model.hypothesis.SMAPE)),
                repr(float(model.hypothesis.RSS)),
                function.to_string(*experiment.parameters),
            )


def _seconds(path: Path) -> float:
    experiment = _read(path)
    _models(experiment)
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        _models(experiment)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    verb, place = sys.argv[1:]
    if verb == "models":
        csv.writer(sys.stdout, lineterminator="\n").writerows((COLUMNS, *_rows(Path(place))))
    else:
        print(_seconds(Path(place)))
