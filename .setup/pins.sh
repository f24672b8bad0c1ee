# The one place where versions are pinned. Sourced by .setup/base.sh.
PETSC_VERSION=3.26.0
FIREDRAKE_VERSION=2026.10.0
MPI4PY_VERSION=4.1.2
H5PY_VERSION=3.16.0

DEBIAN_PACKAGES="build-essential flex bison gfortran pkg-config libopenblas-dev
  libopenmpi-dev openmpi-bin libhdf5-mpi-dev libmumps-dev libptscotch-dev libscotch-dev
  libscalapack-openmpi-dev libsuitesparse-dev libmetis-dev libhypre-dev libspatialindex-dev
  zlib1g-dev libhwloc-dev libxrender1 libgl1"

# What h5py and Firedrake are built with (they are compiled without pip's build isolation).
BUILD_REQUIREMENTS="cython>=3.1 numpy pkgconfig pybind11 petsctools firedrake-rtree>=2026.3
  libsupermesh>=2026.1 scikit-build-core hatchling setuptools_scm rtree"
