"""Tables and figures on a page of Markdown, between `<!-- NAME:PART -->` and `<!-- end -->`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

NOTHING = "*Not run yet.*"
END = "<!-- end -->"


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(text.replace("|", "/") for text in line) + " |" for line in lines)


def picture(name: str, what: str) -> str:
    """A link to a figure of `docs/images/results`, from the page."""
    return f"![{what}](images/results/{name}.png)"


def fill(page: Path, name: str, parts: Mapping[str, str]) -> dict[str, str]:
    """Put each part in its place on the page; return those that have none there."""
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    homeless = {}
    for part, content in parts.items():
        before, marker, rest = text.partition(f"<!-- {name}:{part} -->\n")
        if marker:
            text = f"{before}{marker}{content}\n{END}{rest.partition(END)[2]}"
        else:
            homeless[part] = content
    if len(homeless) < len(parts):
        page.write_text(text, encoding="utf-8")
    return homeless
