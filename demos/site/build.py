"""Builds the site: python demos/site/build.py, or `make docs`.

Gathers the pages, the demos and their pictures in ``build/source``, draws the moving pictures from
the shapes that are kept beside the demos, and has Sphinx write ``build/site``. The code of the start
pages runs, so that its output stands under it; demos are not run again, and nothing is fetched.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import re
import shutil
import sys
import time
from importlib.metadata import files
from pathlib import Path

HERE = Path(__file__).parent
TOP = HERE.parents[1]
sys.path[:0] = [str(TOP), str(HERE)]

import films  # noqa: E402
import gallery  # noqa: E402
import tables  # noqa: E402
import verified  # noqa: E402

SOURCE, SITE, DOCTREES = (TOP / "build" / name for name in ("source", "site", "doctrees"))
EXTRA = SOURCE / "_extra"

#: What a page of k3d decodes its data by; it stands among the scripts that `share_k3d` takes out.
DECODER = (
    "const _base64ToArrayBuffer = "
    "(text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer;"
)


def gather() -> None:
    """All sources in one folder, made anew."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    shutil.copytree(HERE / "pages", SOURCE)
    shutil.copytree(HERE / "static", SOURCE / "_static")
    shutil.copy(HERE / "conf.py", SOURCE)
    EXTRA.mkdir()
    tables.write(SOURCE)
    verified.write(SOURCE)
    put_mathjax(SOURCE / "_static" / "mathjax")
    gallery.write(SOURCE, films.make(EXTRA))
    share_k3d(EXTRA, SOURCE / "_static" / "scenes")


def put_mathjax(folder: Path) -> None:
    """The one file of MathJax that draws without fonts, from the package that brings it."""
    import site

    for packages in [*site.getsitepackages(), *sys.path]:
        file = Path(packages) / "sphinx-mathjax-offline" / "static" / "mathjax" / "tex-svg.js"
        if file.exists():
            folder.mkdir()
            shutil.copy(file, folder)
            return
    raise SystemExit('sphinx-mathjax-offline is missing: pip install -e ".[docs]"')


def share_k3d(pages: Path, folder: Path) -> None:
    """One copy of k3d, with its licences, from the installed package, for all scenes among the pages."""
    # k3d would try to read itself, which no page on a disk may, from a folder with k3d in its name.
    folder.mkdir()
    scripts = ("require.js", "standalone.js")
    wanted = {"LICENSE.txt", *scripts, *(f"{name}.LICENSE.txt" for name in scripts)}
    for file in files("k3d") or []:
        if file.name in wanted:
            shutil.copy(file.locate(), folder)
    own = re.compile("<script id='fflatejs'>.*?<script id='requirejs'>.*?</script>", re.DOTALL)
    for page in pages.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        if 'name="generator" content="fdgeom"' in text:
            root = "../" * (len(page.relative_to(pages).parts) - 1) + f"_static/{folder.name}"
            loaded = "".join(f'<script src="{root}/{name}"></script>\n' for name in scripts)
            loaded += f"<script>{DECODER}</script>"
            text, count = own.subn(loaded, text)
            if count != 1 or "eval(k3dSource);" not in text:
                raise SystemExit(f"{page.name}: this version of k3d has other scripts in its pages")
            page.write_text(text.replace("eval(k3dSource);", ""), encoding="utf-8")


def is_newer_than_sources() -> bool:
    """Whether the site was built after its last source changed."""
    index = SITE / "index.html"
    folders = ("demos", "fdgeom", "tests/verification")
    kinds = {".py", ".rst", ".txt", ".png", ".npz", ".json", ".js", ".css", ".html", ".md"}
    sources = [
        path
        for folder in folders
        for path in (TOP / folder).rglob("*")
        if path.suffix in kinds and "output" not in path.parts
    ]
    sources += [TOP / name for name in ("CHANGELOG.md", "CITATION.cff", "README.md")]
    newest = max(path.stat().st_mtime for path in sources if path.exists())
    return index.exists() and index.stat().st_mtime > newest


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--if-older", action="store_true", help="only if a source has changed")
    parser.add_argument(
        "--intersphinx", action="store_true", help="link to other projects' pages (needs a network)"
    )
    args = parser.parse_args()
    if args.intersphinx:
        os.environ["FDGEOM_INTERSPHINX"] = "1"
    SITE.parent.mkdir(exist_ok=True)
    with open(SITE.parent / "site.lock", "w") as lock:
        # Tests of the site in several processes build it once.
        fcntl.flock(lock, fcntl.LOCK_EX)
        return 0 if args.if_older and is_newer_than_sources() else build()


def build() -> int:
    """Gather, then Sphinx; 0 if all went well."""
    start = time.perf_counter()
    gather()
    # What was read before does not know of other code in conf.py or in the package.
    for old in (SITE, DOCTREES):
        shutil.rmtree(old, ignore_errors=True)
    from sphinx.cmd.build import build_main

    options = ["-W", "--keep-going", "-q", "-b", "html"]
    failed = build_main([*options, "-d", str(DOCTREES), str(SOURCE), str(SITE)])
    if not failed:
        print(f"{SITE / 'index.html'} ({time.perf_counter() - start:.0f} s)")
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
