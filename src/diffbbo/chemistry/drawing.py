"""Drawn structures of molecules."""

from __future__ import annotations

import io
from typing import Any

from ..types import need

PIXELS = 500, 380


def draw_molecules(figure: Any, smiles: list[str], captions: list[str], columns: int = 3) -> None:
    """Draw molecules into a matplotlib (sub)figure, row by row, each under its caption."""
    chem = need("rdkit.Chem", "molecules", "Drawing a molecule")
    draw = need("rdkit.Chem.Draw.rdMolDraw2D", "molecules", "Drawing a molecule")
    image = need("PIL.Image", "plots", "Drawing a molecule")
    panels = figure.subplots(-(-len(smiles) // columns), columns, squeeze=False).ravel()
    for panel, text, caption in zip(panels, smiles, captions, strict=False):
        canvas = draw.MolDraw2DCairo(*PIXELS)
        canvas.drawOptions().bondLineWidth = 3
        molecule = chem.MolFromSmiles(text)
        draw.PrepareAndDrawMolecule(canvas, molecule)
        canvas.FinishDrawing()
        panel.imshow(image.open(io.BytesIO(canvas.GetDrawingText())))
        panel.set_title(caption, fontsize=7)
    for panel in panels:
        panel.axis("off")
