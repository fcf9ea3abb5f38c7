"""Draws docs/pictures/layers.svg: the folders of each package, lowest first, from the table of the layer test."""

from __future__ import annotations

import ast
from html import escape

from examples import ROOT

TEST = ROOT / "tests" / "end_to_end" / "test_layers.py"
PICTURE = ROOT / "docs" / "pictures" / "layers.svg"
COLOURS = {"lift": "#3949ab", "verify": "#00796b", "superopt": "#6a1b9a", "reports": "#5d4037"}
BOX, GAP, ROW, LEFT, ACROSS = 112, 10, 40, 130, 6


def layers() -> dict[str, tuple[str, ...]]:
    """package -> its folders, lowest first."""
    tree = ast.parse(TEST.read_text())
    found = next(n.value for n in tree.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "LAYERS")
    return dict(ast.literal_eval(found))


def drawn() -> str:
    """The packages from the top down, each as rows of boxes read from left to right."""
    top, parts = 10, []
    width = LEFT + ACROSS * (BOX + GAP) + 20
    for package, folders in reversed(layers().items()):
        rows = -(-len(folders) // ACROSS)
        height = rows * ROW + 16
        parts += _band(package, folders, top, height, width)
        top += height + 26
    parts += [_arrow(top - 26 - 8)]
    font = "font-family='system-ui, sans-serif' font-size='14'"
    head = f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {top}' width='{width}' height='{top}' {font}>"
    arrow = "<defs><marker id='a' markerWidth='8' markerHeight='8' refX='4' refY='4' orient='auto'>"
    arrow += "<path d='M0 0 L8 4 L0 8 z' fill='#777'/></marker></defs>"
    return "\n".join([head, "<title>Imports go down</title>", arrow, *parts, "</svg>"]) + "\n"


def _band(package: str, folders: tuple[str, ...], top: int, height: int, width: int) -> list[str]:
    colour = COLOURS[package]
    out = [
        f"<rect x='34' y='{top}' width='{width - 44}' height='{height}' rx='8' fill='{colour}' fill-opacity='0.10' "
        f"stroke='{colour}'/>",
        f"<text x='46' y='{top + height / 2 + 5}' fill='{colour}' font-weight='bold'>{package}</text>",
    ]
    for k, folder in enumerate(folders):
        x, y = LEFT + k % ACROSS * (BOX + GAP), top + 8 + k // ACROSS * ROW
        out.append(f"<rect x='{x}' y='{y + 4}' width='{BOX}' height='28' rx='5' fill='{colour}'/>")
        out.append(f"<text x='{x + BOX / 2}' y='{y + 23}' fill='white' text-anchor='middle'>{escape(folder)}</text>")
    return out


def _arrow(bottom: int) -> str:
    """Downwards at the left edge: the way that imports go."""
    return (
        f"<line x1='18' y1='16' x2='18' y2='{bottom}' stroke='#777' stroke-width='2' marker-end='url(#a)'/>"
        f"<text x='18' y='{bottom / 2}' fill='#777' text-anchor='middle' "
        f"transform='rotate(-90 18 {bottom / 2}) translate(0 -5)'>imports</text>"
    )


if __name__ == "__main__":
    PICTURE.write_text(drawn())
    print(PICTURE.relative_to(ROOT))
