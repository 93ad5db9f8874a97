"""A storage as one flat table, a row per design, for whoever analyses elsewhere."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from .registry import find
from .spaces import Space
from .storage import Storage
from .types import InputError, need

COLUMNS = ("study", "task", "method", "seed", "round", "position", "member", "status", "value", "error", "seconds")


def export(storage: Storage, path: str | Path, name: str | None = None) -> int:
    """Write every design asked (of one study, or of all) to a `.csv` or `.parquet` file; return how many.

    The design's own columns follow the fixed ones; where a name is taken already, it becomes `design.NAME`.
    """
    target = Path(path)
    if target.suffix not in (".csv", ".parquet"):
        raise InputError(f"The export {str(path)!r} has an unknown format.", "End it in .csv or .parquet.")
    rows = designs(storage, name)
    columns = list(dict.fromkeys([*COLUMNS, *(key for row in rows for key in row)]))
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.suffix == ".csv":
        with target.open("w", newline="", encoding="utf-8") as handle:
            table = csv.DictWriter(handle, columns)
            table.writeheader()
            table.writerows(rows)
    else:
        pandas = need("pandas", "frames", "Parquet export")
        need("pyarrow", "frames", "Parquet export")
        pandas.DataFrame(rows, columns=columns).to_parquet(target)
    return len(rows)


def designs(storage: Storage, name: str | None = None) -> list[dict[str, Any]]:
    """The same table as a list of dicts."""
    rows: list[dict[str, Any]] = []
    records = {record.name: record for record in storage.studies()}
    for record in records.values() if name is None else [find("study", name, records)]:
        space = Space.from_dict(record.space)
        head = {"study": record.name, "task": record.task, "method": record.method, "seed": record.seed}
        for entry in storage.rounds(record.id):
            for i, design in enumerate(space.dicts(entry.x)):
                known = entry.status[i] != ""
                rows.append(
                    head
                    | {
                        "round": entry.number,
                        "position": i,
                        "member": int(entry.member[i]),
                        "status": entry.status[i] or "asked",
                        "value": float(entry.value[i]) if entry.status[i] == "ok" else None,
                        "error": entry.error[i],
                        "seconds": float(entry.seconds[i]) if known else None,
                    }
                    | {(f"design.{key}" if key in COLUMNS else key): value for key, value in design.items()}
                )
    return rows
