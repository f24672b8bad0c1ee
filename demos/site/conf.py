"""Sphinx: how the site looks. `build.py` gathers the sources and calls it."""

import os
import re

import fdgeom as fg

project = "fdgeom"
author = "The fdgeom developers"
copyright = author
version = release = fg.__version__
#: Address of the public repository, without a slash at its end; pages link to it if it is not empty.
repository = ""

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinxcontrib.bibtex",
]
bibtex_bibfiles = ["references.bib"]
bibtex_default_style = "plain"
suppress_warnings = ["bibtex.duplicate_citation"]
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
autodoc_member_order = "bysource"
autosummary_generate = False
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"
highlight_language = "python"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
# References into other projects ask the network for their lists, so they are made on request only.
if os.environ.get("FDGEOM_INTERSPHINX"):
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {
        "python": ("https://docs.python.org/3", None),
        "numpy": ("https://numpy.org/doc/stable", None),
        "matplotlib": ("https://matplotlib.org/stable", None),
        "firedrake": ("https://www.firedrakeproject.org", None),
        "petsc4py": ("https://petsc.org/release/petsc4py", None),
    }
exclude_patterns = ["*.inc.rst", "**/*.inc.rst"]

# Nothing is fetched: MathJax is a file of the site, and the theme brings its own icons.
mathjax_path = "mathjax/tex-svg.js"
mathjax3_config = {"options": {"enableMenu": False}}

html_theme = "pydata_sphinx_theme"
html_title = "fdgeom"
html_static_path = ["_static"]
html_favicon = "_static/logo.svg"
html_css_files = ["site.css", "gallery.css"]
html_js_files = ["site.js", "gallery.js"]
html_context = {"default_mode": "auto"}
html_extra_path = ["_extra"]
html_copy_source = False
# A page on a disk may not read others: no excerpts in the list of what a search found.
html_show_search_summary = False
html_theme_options = {
    "logo": {
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo.svg",
        "text": f"fdgeom {version}",
        "alt_text": "fdgeom, home",
    },
    "navbar_end": ["theme-switcher"],
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 7,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
if repository:
    html_theme_options["icon_links"] = [
        {"name": "Repository", "url": repository, "icon": "fa-brands fa-git-alt"}
    ]
html_sidebars = {
    page: [] for page in ("index", "start", "choose", "theory", "verification", "citing")
}


def escape_bars(app, what, name, obj, options, lines):
    """|x| is an absolute value in our docstrings, no substitution."""
    for k, line in enumerate(lines):
        pieces = re.split(r"(``.*?``)", line)
        lines[k] = "".join(p if p.startswith("``") else p.replace("|", "\\|") for p in pieces)


def drop_hooks(app, what, name, obj, options, lines):
    """The list "For authors" of a class is on the page of one's own systems and steppers."""
    text = re.sub(r"\nFor authors: .*?(\n\n|\Z)", r"\n", "\n".join(lines), flags=re.DOTALL)
    lines[:] = re.sub(r"\nNotes\n-----\n\s*\Z", "\n", text).split("\n")


def keep_lines(app, what, name, obj, options, lines):
    """Equations stand indented in our docstrings, a line each: so they shall on a page."""
    end = next((k - 1 for k, line in enumerate(lines) if re.fullmatch(r"-{3,}", line)), len(lines))
    before, equation = "", False
    for k, line in enumerate(lines[:end]):
        if not line.strip():
            equation = False
            continue
        starts = line.startswith("    ") and (k == 0 or not lines[k - 1].strip())
        if starts and not before.endswith("::"):
            equation = not line.lstrip().startswith((">>>", "- ", ".. "))
        if equation and line.startswith("    "):
            lines[k] = "    | " + line[4:]
        else:
            before = line.rstrip()


def setup(app):
    """Hooks."""
    # Before numpydoc, whose priority is 500.
    app.connect("autodoc-process-docstring", drop_hooks, priority=90)
    app.connect("autodoc-process-docstring", escape_bars, priority=100)
    app.connect("autodoc-process-docstring", keep_lines, priority=110)
