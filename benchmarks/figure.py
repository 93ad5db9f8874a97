"""The figure and the tables of docs/performance.md, from the result files alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from diffbbo.figures import BLUE, COLOURS, GREY, OURS, legend_below, new_figure, save_figure, styled
from experiments.page import NOTHING, markdown, picture

from .common import Row

Results = Mapping[str, Row]  # by kind of machine: what `run` has written
RATIOS: dict[str, tuple[str, Callable[[Row], str]]] = {  # drawn, by subject: which column, and what a row is called
    "step": ("speedup", lambda row: f"five loops / batched step, hidden {row['hidden']}"),
    "draws": ("speedup", lambda row: f"{row['slow_steps']} steps / fast sampler, {row['problem'].split(',')[0]}"),
    "ask": ("botorch_speedup", lambda row: f"BoTorch / ask({row['batch']}), {row['rows']} rows"),
    "round": ("paper_speedup", lambda row: f"the paper's A100 / a round of its size, {row['task']}"),
}  # fmt: skip


# ---- numbers as text -----------------------------------------------------------------------------------


def duration(value: float) -> str:
    """Seconds with the unit that suits them."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-6:.3g} us"


def spread(found: Row | None, shown: Callable[[float], str] = duration) -> str:
    """The median, and between which values half of the repeats lie."""
    if found is None:
        return "-"
    if found["repeats"] == 1:
        return f"{shown(found['median'])} (once)"
    return f"{shown(found['median'])} ({shown(found['low'])} to {shown(found['high'])})"


def times(value: float) -> str:
    return f"{value:.3g}x"


def giga(value: float) -> str:
    return f"{value / 1e9:,.4g}"


def share(value: float) -> str:
    return f"{value:.1%}"


# ---- tables ----------------------------------------------------------------------------------------------


def step(row: Row) -> dict[str, str]:
    cells = {
        "hidden": str(row["hidden"]), "batched step": spread(row["batched_s"]), "five loops": spread(row["loops_s"]),
        "loops / batched": spread(row["speedup"], times), "Gop": giga(row["operations"]),
        "products": spread(row["products_s"]), "memory": spread(row["memory_s"]),
        "batched / products": spread(row["over_products"], times),
        "batched / (products + memory)": spread(row["over_floor"], times),
        "batched / Gop at square rate": spread(row["over_square"], times),
        "rate of products, Gop/s": giga(row["rate_products"]), "of a large square": spread(row["rate_square"], giga),
        "copy, GB/s": spread(row["rate_copy"], giga),
    }  # fmt: skip
    return cells | ({"products in TF32": spread(row["products_tf32_s"])} if "products_tf32_s" in row else {})


def draws(row: Row) -> dict[str, str]:
    return {
        "problem": row["problem"], "samples": f"{row['samples']:,}",
        f"{row['slow_steps']} steps": spread(row["slow_s"]), f"{row['fast_steps']} fast steps": spread(row["fast_s"]),
        "slow / fast": spread(row["speedup"], times), "distance, slow": f"{row['slow_distance']:.5f}",
        "distance, fast": f"{row['fast_distance']:.5f}",
        "difference": f"{row['gap']:+.5f} ± {row['gap_error']:.5f}",
    }  # fmt: skip


def ask(row: Row) -> dict[str, str]:
    return {
        "task": row["task"], "rows": f"{row['rows']:,}", f"diffbbo, ask({row['batch']})": spread(row["diffbbo_s"]),
        "gp-ei": spread(row["gp_ei_s"]), "BoTorch, qLogEI": spread(row["botorch_s"]),
        "gp-ei / diffbbo": spread(row["gp_ei_speedup"], times),
        "BoTorch / diffbbo": times(row["botorch_speedup"]["median"]),
    }  # fmt: skip


def rows(row: Row) -> dict[str, str]:
    return {
        "rows": f"{row['rows']:,}", f"ask({row['batch']})": spread(row["ask_s"]),
        "encoding": duration(row["encoding_s"]["median"]), "repeats": duration(row["duplicates_s"]["median"]),
        "validation": duration(row["validation_s"]["median"]), "the three / ask": spread(row["share"], share),
        "peak memory": f"{row['peak_gib']:.2f} GiB", "before ask": f"{row['start_gib']:.2f} GiB",
    }  # fmt: skip


def imports(row: Row) -> dict[str, str]:
    return {"command": row["command"], "time": spread(row["seconds"]),
            "times Python alone": spread(row["over_python"], times)}  # fmt: skip


def storing(row: Row) -> dict[str, str]:
    cells = {"what": row["what"], "designs": f"{row['designs']:,}", "ours": "-", "bare table": "-",
             "ours / bare": spread(row.get("ratio"), times), "designs a second": "-", "peak memory": "-"}  # fmt: skip
    if "ours_bytes" in row:
        return cells | {"ours": f"{row['ours_bytes']:.0f}", "bare table": f"{row['plain_bytes']:.0f}"}
    cells |= {"ours": spread(row["ours_s"]), "bare table": spread(row.get("plain_s")),
              "designs a second": f"{row['per_second']:,.0f}"}  # fmt: skip
    return cells | ({"peak memory": f"{row['peak_gib']:.2f} GiB"} if "peak_gib" in row else {})


def round_(row: Row) -> dict[str, str]:
    return {"method": row["method"], "task": row["task"], "rows": f"{row['rows']:,}", "steps": f"{row['steps']:,}",
            "a round": spread(row["round_s"]), "of it training": spread(row["train_s"]),
            "the paper, A100": duration(row["paper_s"]) if row["paper_s"] else "-"}  # fmt: skip


TABLES: dict[str, Callable[[Row], dict[str, str]]] = {
    "step": step, "draws": draws, "ask": ask, "round": round_, "rows": rows, "imports": imports, "storing": storing,
}  # fmt: skip


def table(results: Results, subject: str) -> str:
    """A subject's rows of all machines; a column that only some have is a hole for the others."""
    lines: list[dict[str, str]] = []
    missing = []
    for kind, result in results.items():
        found = result["subjects"].get(subject)
        if found is None:
            continue
        lines += [{"machine": kind, **TABLES[subject](row)} for row in found["rows"]]
        if found["missing"]:
            missing.append(f"`{kind}`: {found['missing']}.")
    header = list(dict.fromkeys(name for line in lines for name in line))
    parts = [markdown(header, [[line.get(name, "-") for name in header] for line in lines])] if lines else []
    return "\n\n".join([*parts, *missing]) or NOTHING


def targets(results: Results) -> str:
    lines = []
    for kind, result in results.items():
        for subject in TABLES:
            for found in result["subjects"].get(subject, {}).get("targets", ()):
                unit = "x" if found["unit"] == "x" else f" {found['unit']}".rstrip()
                limit = f"{'at least' if found['at_least'] else 'at most'} {found['limit']:g}{unit}"
                lines.append([kind, found["what"], limit, f"{found['value']:.3g}{unit}",
                              "met" if found["met"] else "**not met**"])  # fmt: skip
    return markdown(["machine", "what", "target", "measured", ""], lines) if lines else NOTHING


def machines(results: Results) -> str:
    lines = []
    for kind, result in results.items():
        said = result["machine"]
        facts = [said["gpu"], said["processor"], f"{said['cores']} cores", f"{said['memory_gib']:g} GiB",
                 said["versions"]]  # fmt: skip
        busy = [found["load"] for found in result["subjects"].values() if found.get("load") is not None]
        load = f"; load before a subject at most {max(busy):.1f}" if busy else ""
        lines.append(f"- `{kind}`: {'; '.join(filter(None, facts))}{load}")
    return "\n".join(lines) or NOTHING


# ---- the figure ------------------------------------------------------------------------------------------


def figure(results: Results, images: Path) -> str:
    """A line of two panels for each machine: how many times faster, and how `ask` grows with the told rows."""
    ratios = {kind: _ratios(result) for kind, result in results.items()}
    if not any(ratios.values()):
        return NOTHING
    heights = [0.2 * max(7, len(found)) + 0.8 for found in ratios.values()]
    with styled():
        drawn = new_figure(7.2, sum(heights))
        panels = drawn.subplots(len(results), 2, squeeze=False, height_ratios=heights, width_ratios=[3, 2])
        for (kind, result), (left, right) in zip(results.items(), panels, strict=True):
            _faster(left, ratios[kind])
            left.set_title(f"{kind}: how many times faster")
            if found := result["subjects"].get("rows", {}).get("rows", ()):
                _growth(right, found)
                right.set_title(f"{kind}: ask(100) by told rows")
            else:
                right.set_visible(False)
        legend_below(drawn, columns=4)
        for suffix in ("png", "svg"):
            save_figure(drawn, images / f"benchmark.{suffix}")
    return picture("benchmark", "How many times faster than what a user would do instead; ask by told rows")


def _ratios(result: Row) -> list[tuple[str, Row, float | None]]:
    """Label, ratio and target of all that is drawn."""
    found = []
    for subject, (column, label) in RATIOS.items():
        said = result["subjects"].get(subject, {"rows": (), "targets": ()})
        for row in said["rows"]:
            ratio = row.get(column)
            if column == "paper_speedup":
                if not row["paper_s"]:
                    continue
                ratio = {key: row["paper_s"] / row["round_s"][key] for key in ("median", "low", "high")}
            limit = [t["limit"] for t in said["targets"] if t["unit"] == "x" and t["value"] == ratio["median"]]
            found.append((label(row), ratio, limit[0] if limit else None))
    return found


def _faster(panel: Any, ratios: Sequence[tuple[str, Row, float | None]]) -> None:
    for y, (_, ratio, limit) in enumerate(reversed(ratios)):
        panel.plot([1, ratio["median"]], [y, y], color=OURS, linewidth=3, solid_capstyle="butt", alpha=0.35)
        panel.plot([ratio["low"], ratio["high"]], [y, y], color=OURS, linewidth=1)
        panel.plot(ratio["median"], y, "o", color=OURS, markersize=4)
        panel.annotate(f" {ratio['median']:.3g}x", (max(ratio["median"], ratio["high"]), y), va="center", fontsize=7)
        if limit is not None:
            panel.plot(limit, y, "|", color="black", markersize=9, label="target")
    panel.axvline(1, color=GREY, linewidth=0.7)
    panel.set(xscale="log", ylim=(-0.6, len(ratios) - 0.4))
    panel.margins(x=0.18)
    low, high = panel.get_xlim()
    ticks = [
        tick for power in range(-2, 5) for tick in (10**power, 2 * 10**power, 5 * 10**power) if low <= tick <= high
    ]
    panel.set_xticks(ticks, [f"{tick:g}x" for tick in ticks])
    panel.minorticks_off()
    panel.set_yticks(range(len(ratios)), [label for label, _, _ in reversed(ratios)])


def _growth(panel: Any, found: Sequence[Row]) -> None:
    """Seconds on the left axis with what encoding, repeats and validation take of them; memory on the right."""
    x = [row["rows"] for row in found]
    three = [sum(row[f"{part}_s"]["median"] for part in ("encoding", "duplicates", "validation")) for row in found]
    panel.plot(x, [row["ask_s"]["median"] for row in found], "o-", color=OURS, markersize=4, label="ask, s")
    panel.plot(x, three, "s--", color=BLUE, markersize=3, label="encoding, repeats, validation, s")
    panel.plot(x, [row["peak_gib"] for row in found], "^:", color=COLOURS[1], markersize=4, label="peak memory, GiB")
    panel.set(xlabel="told rows")
    if found:  # an empty axis has no logarithm
        panel.set(xscale="log", yscale="log")
