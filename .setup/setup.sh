#!/usr/bin/env bash
# Sets up .venv for this checkout: fdgeom and its light dependencies, on top of Firedrake, which
# comes from an active environment that has it or else from .setup/base.sh (built once, shared).
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
top=$(dirname "$here")
cd "$top"
PYTHON=${PYTHON:-python3}
log=$here/log/setup.log
mkdir -p "$here/log"

say() { printf '%s\n' "$*" >&2; }
die() { say "fdgeom set-up: $*"; exit 1; }

# A Python that can import Firedrake, without fdgeom's own .venv in the way.
has_firedrake() { "$1" -c 'import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, ("firedrake", "petsc4py"))))' 2>/dev/null; }

active=
if [ -n "${VIRTUAL_ENV:-}${CONDA_PREFIX:-}" ] && [ "${VIRTUAL_ENV:-}" != "$top/.venv" ] && command -v python >/dev/null && has_firedrake python; then
  active=$(python -c 'import sys; print(sys.executable)')
elif command -v "$PYTHON" >/dev/null && has_firedrake "$PYTHON" && [ "$("$PYTHON" -c 'import sys; print(sys.prefix)')" != "$top/.venv" ]; then
  active=$("$PYTHON" -c 'import sys; print(sys.executable)')
fi

if [ -n "$active" ]; then
  say "Using the Firedrake of $active"
  base=$active
else
  folder=$(PYTHON=$PYTHON bash "$here/base.sh")
  base=$folder/venv/bin/python
fi

stamp=.venv/.fdgeom-$( { cat pyproject.toml "$here/setup.sh"; echo "$base"; } | sha256sum | cut -c1-12)
if [ -e "$stamp" ]; then
  say "Set-up is complete (.venv on $base)"
  exit 0
fi

say "Setting up .venv with fdgeom and its light dependencies (1 minute); log: $log"
start=$SECONDS
if ! {
  rm -rf .venv
  "$base" -m venv .venv
  # Firedrake's packages are seen from .venv, after its own.
  "$base" -c 'import sysconfig; print("import site; site.addsitedir(%r)" % sysconfig.get_path("purelib"))' \
    > "$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/firedrake-base.pth"
  # Compiled kernels are kept beside the Firedrake that made them: all checkouts on it share them.
  prefix=$("$base" -c 'import sys; print(sys.prefix)')
  if [ -w "$prefix" ]; then
    mkdir -p "$prefix/.cache"
    ln -s "$prefix/.cache" .venv/.cache
  fi
  .venv/bin/python -m pip install --disable-pip-version-check -e '.[tests]'
  OMP_NUM_THREADS=1 .venv/bin/python -c 'import firedrake, fdgeom; print(fdgeom.__file__)'
} >"$log" 2>&1 </dev/null; then
  tail -n 15 "$log" >&2
  die "installing into .venv failed; the whole log is $log. Run the same command again."
fi
touch "$stamp"
say "  done in $((SECONDS - start)) s"
