"""A subset of Markdown as reStructuredText, and HTML tables."""

from __future__ import annotations

import re


def to_rst(text: str) -> str:
    """Headings, lists, tables, fences, code and links; anything else stays as it is."""
    out, lines = [], text.splitlines()
    k = 0
    while k < len(lines):
        line = lines[k]
        if fence := re.match(r"```(\w*)$", line):
            end = next(j for j in range(k + 1, len(lines)) if lines[j].startswith("```"))
            out += [f".. code-block:: {fence[1] or 'text'}", ""]
            out += [f"   {inner}".rstrip() for inner in lines[k + 1 : end]] + [""]
            k = end + 1
        elif line.startswith("|"):
            end = k
            while end < len(lines) and lines[end].startswith("|"):
                end += 1
            out += table([cells(row) for j, row in enumerate(lines[k:end]) if j != 1]) + [""]
            k = end
        elif heading := re.match(r"(#+) (.*)", line):
            mark = "=-~^"[min(len(heading[1]) - 1, 3)]
            words = inline(heading[2])
            out += [words, mark * len(words)]
            k += 1
        else:
            out.append(inline(line))
            k += 1
    return "\n".join(out) + "\n"


def cells(row: str) -> list[str]:
    """The cells of a row, in reStructuredText."""
    return [inline(cell.strip()) for cell in row.strip().strip("|").split("|")]


def table(rows: list[list[str]]) -> list[str]:
    """A table with a row of headings; a word where there are no others."""
    if len(rows) < 2:
        return ["Nothing is kept yet."]
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in rows:
        for k, cell in enumerate(row):
            lines.append(f"   {'* -' if k == 0 else '  -'} {cell}".rstrip())
    return lines


def inline(text: str) -> str:
    """Code and links within a line."""
    text = re.sub(r"(?<!`)`([^`]+)`(?!`)", r"``\1``", text)
    return re.sub(r"\[([^\]]+)\]\((https?:[^)]+)\)", r"`\1 <\2>`__", text)


def html_table(heads: list[str], groups: dict[str, list[list[str]]], kind: str) -> list[str]:
    """A raw HTML table of rows in groups with a heading each; cells are HTML and name their column."""
    lines = [".. raw:: html", "", f'   <table class="{kind}"><thead><tr>']
    lines += [f"   <th>{head}</th>" for head in heads] + ["   </tr></thead>"]
    for title, rows in groups.items():
        lines += ["   <tbody>"]
        if title:
            lines += [f'   <tr><th class="group" colspan="{len(heads)}">{title}</th></tr>']
        for row in rows:
            cells = "".join(
                f'<td data-label="{head}">{cell}</td>'
                for head, cell in zip(heads, row, strict=True)
            )
            lines += [f"   <tr>{cells}</tr>"]
        lines += ["   </tbody>"]
    return [*lines, "   </table>", ""]
