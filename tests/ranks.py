"""How tests start several ranks."""


def launched(ranks: int) -> list[str]:
    """The command before the program's."""
    return ["mpiexec", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks)]
