"""Make the one-file D'Kitty model of the package from the files of the Python package `robel` 0.1.2 (Apache-2.0).

    python scripts/robots/dkitty_model.py robel_dkitty_model.tar.gz src/diffbbo/data/dkitty.xml

Includes are resolved, what only serves the eye is left out (visual geoms, textures, lights, cameras), the six small
collision meshes go inline. The flat height field 5 mm below the floor is dropped: nothing reaches it.
"""

from __future__ import annotations

import struct
import sys
import tarfile
from pathlib import Path
from xml.etree import ElementTree

NOTICE = (
    " D'Kitty of ROBEL 0.1.2, Copyright 2019 The ROBEL Authors, Apache-2.0; "
    "changed: see scripts/robots/dkitty_model.py "
)
VISUAL = ("visual", "light", "camera", "hfield", "texture", "material", "size", "sensor")


def main(archive: str, out: str) -> None:
    with tarfile.open(archive) as tar:
        files = {Path(m.name).name: tar.extractfile(m).read() for m in tar.getmembers() if m.isfile()}  # type: ignore[union-attr]

    def parse(name: str) -> ElementTree.Element:
        text = files[name].decode()
        return ElementTree.fromstring(text[text.index("<?xml") :])  # a comment stands before the declaration

    root = parse("dkitty_walk-v0.xml")
    resolve(root, parse)
    classes = {d.get("class") for d in root.iter("default") if (d.get("class") or "").startswith("viz_")}
    prune(root, classes, set(files))
    for mesh in root.iter("mesh"):
        mesh.set("vertex", vertices(files[Path(mesh.attrib.pop("file")).name]))
    for element in root.iter():
        element.attrib.pop("material", None)
    for compiler in root.findall("compiler"):
        for key in ("meshdir", "texturedir"):
            compiler.attrib.pop(key, None)
    root.insert(0, ElementTree.Comment(NOTICE))
    ElementTree.indent(root)
    Path(out).write_text(ElementTree.tostring(root, encoding="unicode") + "\n")


def resolve(parent: ElementTree.Element, parse) -> None:
    """Put the children of an included file where the include stands."""
    for child in list(parent):
        if child.tag == "include":
            included = parse(Path(child.attrib["file"]).name)
            resolve(included, parse)
            where = list(parent).index(child)
            parent.remove(child)
            for offset, element in enumerate(included):
                parent.insert(where + offset, element)
        else:
            resolve(child, parse)


def prune(parent: ElementTree.Element, visual: set[str | None], files: set[str]) -> None:
    for child in list(parent):
        invisible = (
            child.tag in VISUAL
            or child.get("class") in visual
            or child.get("type") == "hfield"
            or (child.tag == "mesh" and Path(child.attrib["file"]).name not in files)
        )
        if invisible:
            parent.remove(child)
        else:
            prune(child, visual, files)


def vertices(stl: bytes) -> str:
    """The distinct corners of a binary STL file; MuJoCo takes their convex hull."""
    (count,) = struct.unpack_from("<I", stl, 80)
    corners = {struct.unpack_from("<3f", stl, 84 + 50 * k + 12 * c) for k in range(count) for c in (1, 2, 3)}
    return " ".join(f"{x:.6g}" for corner in sorted(corners) for x in corner)


if __name__ == "__main__":
    main(*sys.argv[1:3])
