#!/usr/bin/env bash
# Builds PETSc, petsc4py, parallel h5py and Firedrake once per user and per set of pins, in a
# folder that all clones share. Each step leaves a stamp, so an interrupted build goes on where
# it stopped. The last line printed on stdout is the folder; everything else goes to stderr.
#
#   FDGEOM_CACHE   where to build (default: ${XDG_CACHE_HOME:-~/.cache}/fdgeom)
#   PYTHON         the interpreter to build for (default: python3)
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/pins.sh"
PYTHON=${PYTHON:-python3}

say() { printf '%s\n' "$*" >&2; }
die() { say "fdgeom set-up: $*"; exit 1; }

# --- what must be there before anything is started -------------------------------------------
command -v "$PYTHON" >/dev/null || die "no '$PYTHON' on this machine: install Python 3.11 or newer, or name one with PYTHON=..."
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
  || die "$("$PYTHON" -V) is too old: Python 3.11 or newer is needed (name one with PYTHON=...)."

key=$( { cat "$here/pins.sh" "$here/base.sh"; "$PYTHON" -c 'import sys, platform; print(sys.version_info[:2], sys.base_prefix, platform.machine())'; } | sha256sum | cut -c1-12)
root=${FDGEOM_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/fdgeom}
base=$root/firedrake-$key
mkdir -p "$base/log" 2>/dev/null || die "cannot write to $root: set FDGEOM_CACHE to a folder that can be written."

missing_packages() {
  local p
  for p in $packages; do
    dpkg-query -W -f='${Status}' "$p" 2>/dev/null | grep -q 'ok installed' || printf '%s ' "$p"
  done
}

packages=$DEBIAN_PACKAGES
if [ "$("$PYTHON" -c 'import sys; print(sys.base_prefix)')" = /usr ]; then
  packages="$packages python3-venv python3-dev"    # Debian's own Python comes without these
fi
as_root=
if command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; then
  missing=$(missing_packages)
  if [ -n "$missing" ] && [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || die "these Debian packages are missing and there are no root rights to install them; ask for: apt-get install $missing"
    as_root=sudo
  fi
elif command -v mpicc >/dev/null && command -v gfortran >/dev/null; then
  missing=
else
  die "this machine has no apt-get and no mpicc/gfortran: use Debian 12 or Ubuntu, or activate an environment that has Firedrake."
fi

if [ ! -e "$base/done-firedrake" ]; then
  free=$(df -Pm "$base" | awk 'NR==2 {print $4}')
  [ "$free" -ge 3000 ] || die "3 GB of disk are needed under $base and $free MB are free: set FDGEOM_CACHE to a roomier place."
fi

# --- steps -----------------------------------------------------------------------------------
lock() { command -v flock >/dev/null || return 0; exec 9>"$base/lock"; flock -n 9 || { say "another set-up is building $base: waiting for it"; flock 9; }; }

# step NAME "what it does (how long)" command...
step() {
  local name=$1 what=$2; shift 2
  [ -e "$base/done-$name" ] && return 0
  local log=$base/log/$name.log start=$SECONDS
  say "  $what"
  if ! ( set -e; "$@" ) >"$log" 2>&1 </dev/null 9>&-; then
    tail -n 15 "$log" >&2
    die "step '$name' failed; the whole log is $log. Run the same command again to go on from here."
  fi
  touch "$base/done-$name"
  say "    done in $((SECONDS - start)) s"
}

apt_install() {
  $as_root apt-get update
  DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y --no-install-recommends $missing
}

pip_() { "$base/venv/bin/python" -m pip install --no-cache-dir --disable-pip-version-check "$@"; }

create_venv() {
  rm -rf "$base/venv"
  "$PYTHON" -m venv "$base/venv"
  pip_ --upgrade pip 'setuptools>=77' wheel
}

libdir=/usr/lib/$(gcc -print-multiarch 2>/dev/null || true)

petsc() {
  export PETSC_CONFIGURE_OPTIONS="--with-debugging=0 --with-fortran-bindings=0 --with-shared-libraries=1 --with-c2html=0 \
--COPTFLAGS=-O3 --CXXOPTFLAGS=-O3 --FOPTFLAGS=-O3 --with-hdf5-include=/usr/include/hdf5/openmpi \
--with-hdf5-lib=[$libdir/hdf5/openmpi/libhdf5.so,$libdir/hdf5/openmpi/libhdf5_hl.so] \
--with-mumps=1 --with-scalapack-lib=-lscalapack-openmpi --with-metis=1 --with-ptscotch=1 \
--with-ptscotch-include=/usr/include/scotch --with-ptscotch-lib=[-lptesmumps,-lptscotch,-lptscotcherr,-lesmumps,-lscotch,-lscotcherr]"
  unset PETSC_DIR PETSC_ARCH
  pip_ --no-binary petsc "petsc==$PETSC_VERSION"
}

with_petsc() {
  PETSC_DIR=$("$base/venv/bin/python" -c 'import petsc; print(petsc.get_petsc_dir())')
  export PETSC_DIR CC=mpicc HDF5_MPI=ON HDF5_DIR=$libdir/hdf5/openmpi
  unset PETSC_ARCH
  "$@"
}

h5py_() {
  # In pip's isolated build mpi4py would be compiled anew, which takes more memory than most machines have.
  pip_ $BUILD_REQUIREMENTS
  export CFLAGS="-O2 -g0"
  pip_ --no-build-isolation --no-binary h5py "h5py==$H5PY_VERSION"
}

check() { cd "$base" && OMP_NUM_THREADS=1 "$base/venv/bin/python" -c 'import firedrake, h5py; assert h5py.get_config().mpi; print(firedrake.__file__)'; }

lock
if [ -n "$missing" ]; then
  rm -f "$base/done-debian"
  step debian "Debian packages (1 minute)" apt_install
fi
libdir=/usr/lib/$(gcc -print-multiarch 2>/dev/null || true)
[ -e "$base/done-check" ] || say "Building Firedrake $FIREDRAKE_VERSION with PETSc $PETSC_VERSION once, in $base (about 12 minutes):"
step venv      "virtual environment (20 seconds)"      create_venv
step petsc     "PETSc $PETSC_VERSION, compiled (6 minutes)"    petsc
step mpi4py    "mpi4py $MPI4PY_VERSION (5 seconds)"             with_petsc pip_ "mpi4py==$MPI4PY_VERSION"
step petsc4py  "petsc4py $PETSC_VERSION, compiled (3 minutes)" with_petsc pip_ "petsc4py==$PETSC_VERSION"
step h5py      "h5py $H5PY_VERSION with MPI, compiled (2 minutes)" with_petsc h5py_
step firedrake "Firedrake $FIREDRAKE_VERSION (2 minutes)"      with_petsc pip_ --no-build-isolation "firedrake==$FIREDRAKE_VERSION"
step check     "first import (20 seconds)"             check
printf '%s\n' "$base"
