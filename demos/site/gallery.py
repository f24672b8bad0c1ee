"""Pages of the gallery: each demo as it is, with what it takes to run it and what it asserts."""

from __future__ import annotations

import ast
import json
import re
import shutil
import textwrap
from dataclasses import dataclass
from pathlib import Path

import covers

from fdgeom.__main__ import script

DEMOS = Path(__file__).parents[1]


@dataclass
class Demo:
    """A demo as the index lists it."""

    name: str
    title: str
    words: str
    topic: str

    @property
    def folder(self) -> Path:
        return DEMOS / self.name

    @property
    def text(self) -> str:
        return (self.folder / f"{self.name}.py.rst").read_text()

    @property
    def figures(self) -> list[str]:
        return re.findall(r"^\.\. figure:: (\S+)", self.text, flags=re.MULTILINE)


def listed() -> list[Demo]:
    """The demos of ``demos/index.rst``, in its order."""
    topic, found = "", []
    blocks = re.split(r"\n(?=\S)", (DEMOS / "index.rst").read_text())
    for above, block in zip(["", *blocks], blocks, strict=False):
        if block.startswith("---"):
            topic = above.strip()
        if entry := re.match(r"`([^<]+) <(\w+)/\w+\.py\.rst>`_\n(.*)", block, flags=re.DOTALL):
            words = " ".join(entry[3].split())
            found.append(Demo(entry[2], " ".join(entry[1].split()), words, topic))
    return found


def assertions(code: str) -> list[str]:
    """The tests in a demo's program, as they stand there."""
    tests = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Assert)]
    return [ast.unparse(node.test) for node in sorted(tests, key=lambda node: node.lineno)]


def write(source: Path, moving: dict) -> None:
    """Write the gallery and a page for each demo.

    Parameters
    ----------
    source : Path
        Folder of the pages.
    moving : dict
        What moves in a demo, by its name: a list of (kind, file, words).
    """
    times = json.loads((Path(__file__).parent / "times.json").read_text())
    demos = listed()
    for demo in demos:
        to = source / "gallery" / demo.name
        to.mkdir(parents=True, exist_ok=True)
        for picture in demo.figures:
            shutil.copy(demo.folder / picture, to)
        code = script(demo.text)
        (to / f"{demo.name}.py").write_text(code)
        head, rest = demo.text.split("\n", 2)[0:2], demo.text.split("\n", 2)[2]
        parts = ["\n".join(head), box(demo, times.get(demo.name), moving.get(demo.name, []))]
        body = re.sub(r"<\.\./(\w+)/\w+\.py\.rst>", r"<../\1/index.html>", rest)
        (to / "index.rst").write_text("\n\n".join([*parts, body, asserted(code)]))
    pictures = {demo.name: covers.make(demo.name, source / "gallery" / demo.name) for demo in demos}
    (source / "gallery" / "index.rst").write_text(overview(demos, moving, pictures))


def box(demo: Demo, time: dict | None, moving: list) -> str:
    """How to run it, and what moves."""
    seconds = f" (some {time['seconds']:.0f} s of one processor)" if time else ""
    command = f"python -m fdgeom demo {demo.name} && python {demo.name}.py"
    lines = [
        ".. container:: run-box",
        "",
        f"   Run it: ``{command}``{seconds}, or "
        f"download :download:`{demo.name}.py`. `What it asserts`_ is at the end.",
    ]
    has_scene = "scene" in {kind for kind, *_ in moving}
    for kind, file, words in moving:
        lines += ["", *(scene(file, words) if kind == "scene" else film(file, words, has_scene))]
    return "\n".join(lines)


def scene(file: str, words: str) -> list[str]:
    return [
        ".. raw:: html",
        "",
        f'   <iframe class="scene" src="{file}" title="{words}" loading="lazy"></iframe>',
        f'   <p class="run-box">Turn it with the mouse or a finger: {words}. '
        f'<a href="{file}">On a page of its own</a>.</p>',
        "",
    ]


def film(file: str, words: str, folded: bool) -> list[str]:
    """A film, behind its title where a scene shows the same."""
    shown = [
        ".. raw:: html",
        "",
        f'   <video controls loop muted playsinline preload="metadata" aria-label="{words}">'
        f'<source src="{file}"></video>',
        "",
    ]
    if not folded:
        return shown
    return [f".. dropdown:: {words}", "   :animate: fade-in", "", *(f"   {line}" for line in shown)]


def asserted(code: str) -> str:
    """What the demo asserts, as a list of its own tests."""
    tests = assertions(code)
    listing = textwrap.indent("\n".join(tests), "   ")
    return (
        "What it asserts\n---------------\n\n"
        f"The demo stops unless these hold ({len(tests)} tests, as they stand in its code).\n\n"
        f".. code-block:: python\n   :class: quoted\n\n{listing}\n"
    )


def overview(demos: list[Demo], moving: dict, pictures: dict[str, str]) -> str:
    """Cards by topic."""
    lines = [
        ":html_theme.sidebar_secondary.remove: true", "", "Gallery", "=======", "",
        "Each demo is a text with code that asserts what it shows. The tests run each demo: most "
        "with small numbers, those whose assertions need more once with the numbers that they need. "
        "Those marked *turn* have a scene in space that can be turned, those marked *film* a moving "
        "picture.", "",
    ]  # fmt: skip
    topic = None
    for demo in demos:
        if demo.topic != topic:
            topic = demo.topic
            lines += [topic, "-" * len(topic), "", ".. grid:: 1 2 2 3", "   :gutter: 3", ""]
        kinds = {kind for kind, *_ in moving.get(demo.name, [])}
        marks = [word for kind, word in (("scene", "turn"), ("video", "film")) if kind in kinds]
        lines += [
            f"   .. grid-item-card:: {demo.title}",
            f"      :img-top: {demo.name}/{pictures[demo.name]}",
            f"      :img-alt: {demo.title}",
            f"      :link: {demo.name}/index",
            "      :link-type: doc",
            "",
            f"      {demo.words}",
            "",
        ]
        if marks:
            badges = " ".join(f":bdg-primary:`{mark}`" for mark in marks)
            lines += [f"      {badges}", ""]
    lines += [".. toctree::", "   :hidden:", ""]
    lines += [f"   {demo.name}/index" for demo in demos]
    return "\n".join(lines) + "\n"
