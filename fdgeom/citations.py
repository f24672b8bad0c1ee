"""Papers of the methods, for PETSc's option ``-citations`` and for the site."""

from pathlib import Path

import petsctools

_TEXT = Path(__file__).with_name("citations.bib").read_text(encoding="utf-8")
#: BibTeX entries by key.
BIBTEX: dict[str, str] = {
    entry[entry.index("{") + 1 : entry.index(",")]: f"@{entry.rstrip()}\n"
    for entry in _TEXT.split("@")[1:]
}


def keys_of(cls: type) -> tuple[str, ...]:
    """Keys in ``cites`` of a class and of its base classes, the most special first."""
    found = [key for base in cls.__mro__ for key in vars(base).get("cites", ())]
    return tuple(dict.fromkeys(found))


def cite(cls: type) -> None:
    """Tell PETSc what to print for a class that is used, if it is asked to by ``-citations``."""
    for key in keys_of(cls):
        petsctools.cite(key)


def bibliography() -> str:
    """All entries, as a .bib file."""
    return "\n".join(BIBTEX.values())


for _key, _entry in BIBTEX.items():
    petsctools.add_citation(_key, _entry)
