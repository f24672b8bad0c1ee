"""How tests start several ranks."""


def launched(ranks: int) -> list[str]:
    """The command before the program's; two workers may do so at once on two cores.

    A rank that waits leaves its core to others, and none is bound to one.
    """
    patient = ["--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
    return ["mpiexec", "--allow-run-as-root", "--oversubscribe", *patient, "-n", str(ranks)]
