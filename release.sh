#!/bin/sh
# Wheel and sdist in build/release: built twice and compared, installed without a compiler in empty environments (this
# Python, others at hand or in PYTHONS, lowest versions), audited, with a bill of materials.
# PYTHON is a Python with the extra `release`; AUDIT=optional goes on where the audit cannot reach its database.
set -eu
cd "$(dirname "$0")"
PYTHON=$(cd "$(dirname "${PYTHON:-.venv/bin/python}")" && pwd)/$(basename "${PYTHON:-python}")
out=$PWD/build/release
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
step() { printf '== %s\n' "$*"; }

SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
rm -rf "$out"
step "build, twice"
"$PYTHON" -m build --quiet --outdir "$out" .
"$PYTHON" -m build --quiet --outdir "$work/again" .
for file in "$out"/*; do cmp "$file" "$work/again/$(basename "$file")"; done

# Answers of an installed program, from another folder: all scenarios, a band, a simulation, measured runs, a study.
answers() {
  for words in "--version" "run minimd --samples 64 --spread assumed=20%" "validate minife --by result" \
    "run jacobi2d --set application.communication=simulated --set application.rank_count=24" "study successor"; do
    # shellcheck disable=SC2086 # words are several arguments
    answer "$1" $words
  done
  for scenario in $("$1/bin/whatif" list scenarios | cut -f1); do answer "$1" run "$scenario"; done
}

answer() { # environment, words of a command
  program=$1/bin/whatif
  shift
  (cd "$work" && "$program" "$@" >answer.txt 2>&1) || { cat "$work/answer.txt"; exit 1; }
}

install_in() { # environment, Python, arguments of pip
  environment=$1 python=$2
  shift 2
  "$python" -m venv "$environment"
  CC=false CXX=false "$environment/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: "$@"
}

wheel=$(ls "$out"/*.whl)
for python in "$PYTHON" ${PYTHONS:-python3.11 python3.12 python3.13 python3.14}; do
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue
  name=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  [ -d "$work/$name" ] && continue
  step "wheel on Python $name"
  install_in "$work/$name" "$python" "$wheel"
  answers "$work/$name"
  du -sm "$work/$name/lib" | sed 's/\t.*/ MB installed/'
done

step "sdist"
"$PYTHON" -m venv "$work/sdist"
CC=false "$work/sdist/bin/python" -m pip install --quiet --disable-pip-version-check "$(ls "$out"/*.tar.gz)"
answers "$work/sdist"

step "lowest versions"
"$PYTHON" -c '
import re, sys, tomllib
for wanted in tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"]:
    print(re.sub(r">=([\d.]+).*", r"==\1", wanted))
' >"$work/lowest.txt"
install_in "$work/lowest" "$PYTHON" -r "$work/lowest.txt" "$wheel"
answers "$work/lowest"

step "vulnerabilities"
"$work/$("$PYTHON" -c 'import sys; print("%d.%d" % sys.version_info[:2])')/bin/python" -m pip freeze --exclude whatif |
  grep -v ' @ ' >"$work/frozen.txt"
"$PYTHON" -m pip_audit --strict --requirement "$work/frozen.txt" --no-deps --disable-pip ||
  { [ "${AUDIT:-required}" = optional ] && echo "not audited"; }

step "bill of materials"
"$PYTHON" -m cyclonedx_py requirements --pyproject pyproject.toml --output-reproducible -o "$out/sbom.cdx.json" \
  "$work/frozen.txt"
(cd "$out" && sha256sum ./* >SHA256SUMS)
ls -l "$out"
