"""PETSc's headers compiled once for all kernels of a run of the tests: most of gcc's time for a small one."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

_HEADERS = "#include <complex.h>\n#include <math.h>\n#include <petsc.h>\n#include <stdint.h>\n"


def precompiled() -> None:
    """Let kernels begin with a precompiled header, where the compiler is gcc and nobody chose flags.

    gcc takes the precompiled file only where it fits, and reads the header itself where it does not.
    """
    if "PYOP2_CFLAGS" in os.environ:
        return
    # Beside the cached kernels, whose names hold the flags.
    header = (Path(sys.prefix) / ".cache").resolve() / "headers" / "kernel.h"
    if not header.with_suffix(".h.gch").exists():
        # A process of its own: PyOP2 reads the environment when it is imported.
        subprocess.run([sys.executable, __file__, header], check=False, capture_output=True)
    if header.with_suffix(".h.gch").exists():
        os.environ["PYOP2_CFLAGS"] = shlex.join(["-include", str(header)])


def _precompile(header: Path) -> None:
    import petsctools
    from pyop2.compilation import LinuxGnuCompiler, sniff_compiler

    made = sniff_compiler(petsctools.get_petscvariables()["CC"])
    compiler = made(petsctools.get_petsc_dirs(prefix="-I", subdir="include"))
    if isinstance(compiler, LinuxGnuCompiler):
        header.parent.mkdir(parents=True, exist_ok=True)
        header.write_text(_HEADERS)
        new = header.with_suffix(f".{os.getpid()}")
        command = [compiler.cc, *compiler.cflags, "-c", "-x", "c-header", header, "-o", new]
        subprocess.run(command, check=True)
        new.replace(header.with_suffix(".h.gch"))


if __name__ == "__main__":
    _precompile(Path(sys.argv[1]))
