"""How tests start several ranks."""

import os
import subprocess
import sys


def launched(ranks: int) -> list[str]:
    """The command before the program's."""
    return ["mpiexec", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks)]


def run_on(ranks: int, *words, timeout: float = 900, **variables) -> subprocess.CompletedProcess:
    """A Python program on so many ranks, with what it printed."""
    # This process is itself an MPI process; its variables would confuse the launcher.
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMIX_"))}
    return subprocess.run(
        [*launched(ranks), sys.executable, *(str(word) for word in words)],
        capture_output=True,
        text=True,
        timeout=timeout,
        stdin=subprocess.DEVNULL,
        env=inherited | {"OMP_NUM_THREADS": "1"} | variables,
    )
