"""Runs demos for the site and reports changed pictures: `make gallery`, or pictures.py [demo ...].

Each demo runs as its reader would run it, in a folder of its own, with one style for all pictures
(``matplotlibrc``). A picture that looks as before is not replaced, so that the repository changes only
where a picture does. The printed output goes to ``printed.txt`` beside the demo, the processor time to
``times.json``.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import program

HERE = Path(__file__).parent
DEMOS = HERE.parent
TIMES = HERE / "times.json"
#: Levels (of 255) by which a pixel may differ, and the part of all pixels that may differ by more.
LEVELS, PART = 24, 0.002
#: Bytes from which a picture is saved with fewer colours.
LARGE = 200_000
#: Part of their extent by which shapes may differ.
SHAPE = 1e-3


def changed(new: Path, old: Path) -> str:
    """Difference of two pictures or files of shapes in words; empty if they look the same."""
    if not old.exists():
        return "is new"
    return (changed_shapes if new.suffix == ".npz" else changed_pixels)(new, old)


def changed_pixels(new: Path, old: Path) -> str:
    """The part of the pixels that differ."""
    from PIL import Image

    with Image.open(new) as a, Image.open(old) as b:
        if a.size != b.size:
            return f"is of {a.size[0]}×{a.size[1]} pixels, was of {b.size[0]}×{b.size[1]}"
        pixels = [np.asarray(picture.convert("RGB"), dtype=int) for picture in (a, b)]
    part = (np.abs(pixels[0] - pixels[1]).max(axis=2) > LEVELS).mean()
    return f"differs in {100 * part:.1f} % of its pixels" if part > PART else ""


def changed_shapes(new: Path, old: Path) -> str:
    """The array that differs most."""
    with np.load(new) as a, np.load(old) as b:
        if sorted(a.files) != sorted(b.files):
            return "holds other arrays"
        for name in a.files:
            if a[name].shape != b[name].shape:
                return f"holds {name} of shape {a[name].shape}, was {b[name].shape}"
            if not a[name].size:
                continue
            extent = float(np.ptp(b[name].astype(float))) or 1.0
            apart = float(np.abs(a[name].astype(float) - b[name].astype(float)).max()) / extent
            # A quaternion and its negative are one turn.
            if name == "orientations":
                apart = float(1 - np.abs((a[name] * b[name]).sum(axis=-1)).min())
            if apart > SHAPE:
                return f"{name} differs by {apart:.1e} of its extent"
    return ""


def draw(name: str) -> tuple[float, dict[str, str]]:
    """Run a demo; its processor time, and what changed by picture."""
    folder = DEMOS / name
    style = {"MPLBACKEND": "Agg", "MATPLOTLIBRC": str(HERE / "matplotlibrc")}
    with tempfile.TemporaryDirectory() as place:
        before = _used()
        done = program.run(
            folder / f"{name}.py.rst",
            ["--pictures", "pictures"],
            Path(place),
            os.environ | style | {"OMP_NUM_THREADS": "1"},
        )
        seconds = _used() - before
        program.write_printed(done["printed"], folder / "printed.txt")
        found = {}
        for picture in sorted((Path(place) / "pictures").iterdir()):
            if picture.suffix not in {".png", ".npz"}:
                continue
            if picture.suffix == ".png":
                reduce_colours(picture)
            found[picture.name] = changed(picture, folder / picture.name)
            if found[picture.name]:
                shutil.copy(picture, folder)
    return seconds, found


def reduce_colours(picture: Path) -> None:
    """Save a large picture with 256 colours, in a third of the space."""
    from PIL import Image

    if picture.stat().st_size < LARGE:
        return
    with Image.open(picture) as image:
        whole = image.convert("RGB")
    few = whole.quantize(180, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    # With greys of their own: white, grey lines and the panes of axes in space get no tint.
    palette = np.zeros((256, 3), dtype=int)
    palette[:180] = np.reshape(few.getpalette()[:540], (-1, 3))
    palette[180:] = np.linspace(0, 255, 76).round()[:, None]
    colours, which = np.unique(np.reshape(whole, (-1, 3)).astype(int), axis=0, return_inverse=True)
    nearest = np.array([((palette - colour) ** 2).sum(axis=1).argmin() for colour in colours])
    few = Image.fromarray(nearest[which].astype(np.uint8).reshape(whole.size[::-1]))
    few.putpalette(palette.ravel().astype(np.uint8).tolist())
    few.save(picture, optimize=True)


def _used() -> float:
    """Processor time of all processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(names: list[str]) -> None:
    """Draw the demos of these names, or all."""
    known = sorted(path.parent.name for path in DEMOS.glob("*/*.py.rst"))
    for name in names:
        if name not in known:
            raise SystemExit(f"no demo {name!r}: choose among {', '.join(known)}")
    summary = []
    for name in names or known:
        print(f"--- {name}", flush=True)
        seconds, found = draw(name)
        times = json.loads(TIMES.read_text()) | {name: {"seconds": float(f"{seconds:.2g}")}}
        TIMES.write_text(json.dumps(times, indent=1, sort_keys=True) + "\n")
        summary += [f"{name}/{file}: {words}" for file, words in found.items() if words]
        summary += [] if any(found.values()) else [f"{name}: as before"]
    print("\n".join(["", *summary]))


if __name__ == "__main__":
    main(sys.argv[1:])
