"""Pages of the gallery: cards by subject, and a page for each demo with its printed output."""

from __future__ import annotations

import ast
import json
import re
import shutil
import textwrap
from dataclasses import dataclass
from pathlib import Path

import covers
import program

DEMOS = Path(__file__).parents[1]


@dataclass
class Demo:
    """A demo as the index lists it."""

    name: str
    title: str
    words: str
    topic: str
    tags: tuple[str, ...]

    @property
    def folder(self) -> Path:
        return DEMOS / self.name

    @property
    def text(self) -> str:
        return (self.folder / f"{self.name}.py.rst").read_text()

    @property
    def figures(self) -> list[str]:
        return re.findall(r"^\.\. (?:figure|image):: (\S+)", self.text, flags=re.MULTILINE)


def listed() -> list[Demo]:
    """The demos of ``demos/index.rst``, in its order."""
    topic, found = "", []
    blocks = re.split(r"\n(?=\S)", (DEMOS / "index.rst").read_text())
    for above, block in zip(["", *blocks], blocks, strict=False):
        if block.startswith("---"):
            topic = above.strip()
        if entry := re.match(r"`([^<]+) <(\w+)/\w+\.py\.rst>`_\n(.*)", block, flags=re.DOTALL):
            words, _, tags = " ".join(entry[3].split()).partition(" Tags: ")
            title, tags = " ".join(entry[1].split()), tuple(tags.split(", "))
            found.append(Demo(entry[2], title, words, topic, tags))
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
        (to / f"{demo.name}.py").write_text(program.script(demo.text))
        (to / "index.rst").write_text(page(demo, times.get(demo.name), moving.get(demo.name, [])))
        if demo.name in moving:
            covers.preview(demo.name, source / "_extra" / "gallery" / demo.name)
    pictures = {
        demo.name: covers.make(demo.name, demo.figures[0], source / "gallery" / demo.name)
        for demo in demos
    }
    (source / "gallery" / "index.rst").write_text(overview(demos, moving, pictures))


def page(demo: Demo, time: dict | None, moving: list) -> str:
    """The page of a demo: title, best picture, how to run it, text with code and its printed output."""
    lines = demo.text.split("\n")
    title, before = "\n".join(lines[:2]), lines.index("", 3)
    # What moves takes the place of the best picture.
    lead = shown(moving) if moving else "\n".join(lines[3:before])
    printed = program.read_printed(demo.folder / "printed.txt")
    body, number = [], 0
    for part in program.split(demo.text):
        lines = part.lines[max(0, before + 1 - part.start) :]
        if not part.is_code:
            body.append(before_block("\n".join(lines).rstrip()))
            continue
        body.append(code_block([line[2:] for line in lines]))
        if number in printed:
            body.append(listing("none", "printed unwrapped", wrapped(printed[number])))
        number += 1
    text = re.sub(r"<\.\./(\w+)/\w+\.py\.rst>", r"<../\1/index.html>", "\n\n".join(body))
    return "\n\n".join([title, lead, box(demo, time), text, asserted(program.script(demo.text))])


def before_block(text: str) -> str:
    """Text without the mark that announces a code block."""
    if not text.endswith("::"):
        return text
    return text[:-2].rstrip() if text[-3] in " \n" else text[:-1]


def code_block(lines: list[str]) -> str:
    """Python, folded away where it parses the command line."""
    block = listing("python", "", lines)
    if not any("argparse" in line for line in lines):
        return block
    return ".. dropdown:: Imports and command-line options\n\n" + textwrap.indent(block, "   ")


def wrapped(lines: list[str], width: int = 84) -> list[str]:
    """Printed lines, the long ones in several."""
    return [
        part
        for line in lines
        for part in (
            [line] if len(line) <= width else textwrap.wrap(line, width, subsequent_indent="    ")
        )
    ]


def listing(language: str, look: str, lines: list[str]) -> str:
    """A block of code or output."""
    options = f"   :class: {look}\n" if look else ""
    text = textwrap.indent("\n".join(lines).strip("\n"), "   ")
    return f".. code-block:: {language}\n{options}\n{text}\n"


def box(demo: Demo, time: dict | None) -> str:
    """How to run it."""
    seconds = f" (about {time['seconds']:.0f} s on one processor)" if time else ""
    command = f"python -m fdgeom demo {demo.name} && python {demo.name}.py"
    return (
        ".. container:: run-box\n\n"
        f"   Run it: ``{command}``{seconds}, or "
        f"download :download:`{demo.name}.py`. Its `assertions`_ are at the end.\n"
    )


def shown(moving: list) -> str:
    """The scene of a demo, and its film: behind its title where a scene shows the same."""
    lines, has_scene = [], "scene" in {kind for kind, *_ in moving}
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
        f'   <video controls loop muted playsinline preload="none" poster="{poster(file)}" '
        f'aria-label="{words}"><source src="{file}"></video>',
        "",
    ]
    if not folded:
        return shown
    return [f".. dropdown:: {words}", "   :animate: fade-in", "", *(f"   {line}" for line in shown)]


def poster(film: str) -> str:
    """The picture that stands for a film before it plays."""
    return film.replace(".webm", "-poster.png")


def asserted(code: str) -> str:
    """What the demo asserts, as a list of its own tests."""
    tests = assertions(code)
    return (
        "Assertions\n----------\n\n"
        f"The demo stops unless these conditions hold ({len(tests)} assertions of its code).\n\n"
        + listing("python", "quoted wrapped", tests)
    )


def overview(demos: list[Demo], moving: dict, pictures: dict[str, str]) -> str:
    """Cards by subject. A script adds the buttons of the tags and plays the previews."""
    lines = [
        ":html_theme.sidebar_secondary.remove: true", "", "Gallery", "=======", "",
        "Each demo is a text with code that asserts its results. ``make test-all`` runs every demo with "
        "small numbers, and once more with larger ones where its assertions need them. ``make gallery`` "
        "runs the demos in full and writes the pictures and the printed output that you see here.", "",
        ".. container:: gallery-filter", "", "   ..", "",
    ]  # fmt: skip
    topic = None
    for demo in demos:
        if demo.topic != topic:
            topic = demo.topic
            lines += [topic, "-" * len(topic), "", ".. grid:: 1 1 2 2", "   :gutter: 4", ""]
        kinds = {kind for kind, *_ in moving.get(demo.name, [])}
        marks = [word for kind, word in (("scene", "scene"), ("video", "film")) if kind in kinds]
        classes = " ".join([*(f"tag-{tag}" for tag in demo.tags), *(["moves"] if marks else [])])
        badges = [f":bdg-primary:`{mark}`" for mark in marks]
        badges += [f":bdg-primary-line:`{tag}`" for tag in demo.tags]
        lines += [
            f"   .. grid-item-card:: {demo.title}",
            f"      :img-top: {demo.name}/{pictures[demo.name]}",
            f"      :img-alt: {demo.title}",
            f"      :link: {demo.name}/index",
            "      :link-type: doc",
            f"      :class-item: {classes}",
            "",
            f"      {demo.words}",
            "",
            f"      {' '.join(badges)}",
            "",
        ]
    lines += [".. toctree::", "   :hidden:", ""]
    lines += [f"   {demo.name}/index" for demo in demos]
    return "\n".join(lines) + "\n"
