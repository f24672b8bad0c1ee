"""One page of the site, set by Sphinx alone and read in a browser: the quick part of `test_browser`."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from website.browser import Browser, need_browser

SITE = Path(__file__).parents[2] / "demos" / "site"
_BUILD = """
import shutil, sys
from pathlib import Path
site, folder = map(Path, sys.argv[1:])
sys.path[:0] = [str(site.parents[1]), str(site)]
import build, tables
from fdgeom import citations
source = folder / "source"
(source / "_extra").mkdir(parents=True)
shutil.copytree(site / "static", source / "_static")
shutil.copy(site / "conf.py", source)
for page in ("theory.rst", "citing.rst"):
    shutil.copy(site / "pages" / page, source)
(source / "index.rst").write_text("fdgeom\\n======\\n\\n.. toctree::\\n\\n   theory\\n   citing\\n")
(source / "cited.inc.rst").write_text(tables.cited())
(source / "references.bib").write_text(citations.bibliography())
build.put_mathjax(source / "_static" / "mathjax")
from sphinx.cmd.build import build_main
sys.exit(build_main(["-q", "-b", "html", str(source), str(folder / "pages")]))
"""


@pytest.fixture
def page(tmp_path):
    """The theory: prose, formulas, citations, lists."""
    for package in ("sphinx", "pydata_sphinx_theme", "numpydoc"):
        pytest.importorskip(package, reason=f"no {package}: pip install -e '.[docs]'")
    done = subprocess.run(
        [sys.executable, "-c", _BUILD, SITE, tmp_path],
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return tmp_path / "pages" / "theory.html"


def test_theory_in_a_browser(page):
    """No error in the console, all formulas set, nothing wider than the window, ink on the page."""
    need_browser()
    browser = Browser(width=400)
    try:
        browser.open(page)
        browser.wait("return document.readyState === 'complete' && Boolean(window.MathJax)")
        browser.run("MathJax.startup.promise.then(() => { window.allIsSet = true; })")
        browser.wait("return window.allIsSet")
        count = "return document.querySelectorAll('{}').length"
        assert browser.run(count.format("mjx-container svg")) >= page.read_text().count(
            'class="math'
        )
        assert browser.run(count.format("mjx-merror")) == 0
        assert browser.run("return document.documentElement.scrollWidth - window.innerWidth") <= 0
        assert browser.run(count.format('main a[href*="citing.html"]')) > 5
        assert not browser.errors()
        pixels = browser.pixels()
        assert (np.abs(pixels - pixels[-1, 0]).sum(axis=2) > 60).mean() > 0.01
    finally:
        browser.close()
