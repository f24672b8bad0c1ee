"""The site, built once for all tests of it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def site():
    """Folder of the pages; they are built if they are missing or older than their sources."""
    for package in ("sphinx", "pydata_sphinx_theme", "numpydoc"):
        pytest.importorskip(package, reason=f"no {package}: pip install -e '.[docs]'")
    built = TOP / "build" / "site"
    done = subprocess.run(
        [sys.executable, TOP / "demos" / "site" / "build.py", "--if-older"],
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return built


@pytest.fixture(scope="session")
def pages(site):
    """All pages that a reader sees."""
    return sorted(p for p in site.rglob("*.html") if "_static" not in p.parts)
