"""The pages of the benchmarks, from what is stored: ``bench.md``, ``peers.md`` and their pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.growth import LINEAR

Results = Mapping[str, Mapping[str, Any]]

_BENCH = """# Results: speed and memory

`make bench` measures these, `python -m benchmarks NAME` one of them. A ratio is the median of interleaved rounds in one
run, with its quartiles. All figures are in [bench.json](bench.json); beside other packages: [peers](peers.md); at a
very large scale: [scale-costs](../scale-costs.md).
"""
_PEERS = """# Results: beside other packages

Every figure that `make bench` measures beside somebody else's code, also where that is ahead. The ratio is ours over
theirs; where both run in one process it is the median of interleaved rounds, with its quartiles. Who is ahead needs
both quartiles on one side of 1. Every peer runs with its own defaults unless the task says otherwise, in an environment
of its own that the benchmark makes (`build/peers`), and is stopped after the limit that stands with it.
"""


def write(results: Results, out: Path) -> None:
    """Write every page and picture into the folder ``out``."""
    pictures = _pictures(results, out)
    (out / "bench.md").write_text("\n".join(_bench(results, pictures)) + "\n")
    (out / "peers.md").write_text("\n".join(_peers(results, pictures)) + "\n")


def _bench(results: Results, pictures: set[str]) -> list[str]:
    lines = [_BENCH, "| benchmark | claim | holds | measured with |", "|---|---|---|---|"]
    lines += [
        f"| `{name}` | {one['claim']} | {_verdict(one)} | {_stamp(one)} |"
        for name, one in results.items()
        if "skipped" not in one and one["claim"] is not None
    ]
    lines += [*_unmeasured(results), "", "## Ratios", ""]
    if "bench-ratios.svg" in pictures:
        lines += ["![Ratios with their quartiles and targets](bench-ratios.svg)", ""]
    lines += ["| benchmark | ratio | median | quartiles | rounds | target |", "|---|---|---|---|---|---|"]
    lines += [
        f"| `{name}` | {label} | {_number(ratio['median'])} | {_quartiles(ratio)} | {ratio['rounds']} "
        f"| {_target(ratio)} |"
        for name, one in results.items()
        for label, ratio in one.get("ratios", {}).items()
    ]
    figures = [(name, one["figures"]) for name, one in results.items() if one.get("figures")]
    if figures:
        lines += ["", "## Other figures", "", "| benchmark | measured |", "|---|---|"]
        lines += [f"| `{name}` | {_text(said)} |" for name, said in figures]
    if tasks := results.get("growth", {}).get("tasks"):
        lines += ["", *_growth(tasks, results["growth"], pictures)]
    return lines


def _growth(tasks: Mapping[str, Any], result: Mapping[str, Any], pictures: set[str]) -> list[str]:
    lines = [
        "## Growth",
        "",
        "Seconds and peak memory of one process at every size; the exponent is the slope over the last decade in "
        f"log-log axes, 1 is linear. Measured with {_stamp(result)}.",
        "",
    ]
    if "bench-growth.svg" in pictures:
        lines += ["![Time and memory against size, log-log](bench-growth.svg)", ""]
    lines += [
        "| task | along | exponent of time (quartiles) | of memory | largest | seconds | peak MB | commit |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for task in tasks.values():
        last, memory = task["points"][-1], task["memory exponent"]
        bytes_ = "flat" if memory is None else f"{_number(memory['median'])} ({_quartiles(memory)})"
        time = f"{_number(task['exponent']['median'])} ({_quartiles(task['exponent'])})"
        lines.append(
            f"| {task['about']} | {task['along']} | {time} | {bytes_} | {last['size']:,} | {_number(last['seconds'])} "
            f"| {last['peak MB']:,} | {task['commit']} |"
        )
    above = [task for task in tasks.values() if above_linear(task)]
    lines += ["", *(f"- Above linear: {task['about']}. {task['why'] or 'Not explained yet.'}" for task in above)]
    return lines


def above_linear(task: Mapping[str, Any]) -> bool:
    """Whether time or memory grows faster than the size, beyond its spread."""
    kinds = (task["exponent"], task["memory exponent"])
    return any(one is not None and one["quartiles"][0] > LINEAR for one in kinds)


def _peers(results: Results, pictures: set[str]) -> list[str]:
    lines = [_PEERS]
    if "bench-peers.svg" in pictures:
        lines += ["![Ours over theirs, log scale](bench-peers.svg)", ""]
    lines += [
        "| peer | task | quantity | ours | theirs | ours over theirs | ahead | measured with |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in results.values():
        for line in one.get("against", []):
            ratio = line["ratio"]
            spread = f" ({_quartiles(ratio)})" if ratio["rounds"] > 1 else ""
            quantity = f"{line['quantity']}, {line['better']} is better"
            cells = (line["peer"], line["task"], quantity, _number(line["ours"]), _number(line["theirs"]))
            lines.append(
                f"| {' | '.join(cells)} | {_number(ratio['median'])}{spread} | {line['ahead']} | {_stamp(one)} |"
            )
    notes = {
        (line["peer"], line["note"]) for one in results.values() for line in one.get("against", []) if line["note"]
    }
    lines += ["", *(f"- {peer}: {note}" for peer, note in sorted(notes))]
    missing = [
        (name, peer, why)
        for name, one in results.items()
        for peer, why in one.get("peers without a figure", {}).items()
    ]
    missing += [(name, name, one["skipped"]) for name, one in results.items() if "skipped" in one]
    if missing:
        lines += ["", "Without a figure:", ""]
        lines += [f"- {peer} (`{name}`): {why}" for name, peer, why in missing]
    return lines


def _unmeasured(results: Results) -> list[str]:
    skipped = [f"- `{name}`: {one['skipped']} ({_stamp(one)})" for name, one in results.items() if "skipped" in one]
    return ["", "Not measured:", "", *skipped] if skipped else []


def _verdict(one: Mapping[str, Any]) -> str:
    return {True: "yes", False: "**no**", None: ""}[one["holds"]]


def _stamp(one: Mapping[str, Any]) -> str:
    if one["date"] is None:
        return "an earlier version"
    return f"{one['commit'] or 'no commit'}, {one['date']}" + (", small" if one["small"] else "")


def _target(ratio: Mapping[str, Any]) -> str:
    ends = (("at most", "≤"), ("at least", "≥"))
    return ", ".join(f"{sign} {_number(ratio[key])}" for key, sign in ends if key in ratio)


def _quartiles(ratio: Mapping[str, Any]) -> str:
    low, high = ratio["quartiles"]
    return f"{_number(low)} … {_number(high)}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {_text(one)}" for key, one in value.items())
    return ", ".join(map(_text, value)) if isinstance(value, list) else str(value)


# Pictures.

_OURS, _THEIRS, _EVEN = "#1f6f8b", "#c0504d", "#888888"


def _pictures(results: Results, out: Path) -> set[str]:
    """Draw what there is to draw; the names of the files."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams.update(
        {"svg.hashsalt": "sfumato", "font.size": 8, "axes.spines.top": False, "axes.spines.right": False}
    )
    done = set()
    ratios = [
        (f"{name}: {label}", ratio, _EVEN if _kept(ratio) is None else _OURS if _kept(ratio) else _THEIRS)
        for name, one in results.items()
        for label, ratio in one.get("ratios", {}).items()
    ]
    colours = {"sfumato": _OURS, "peer": _THEIRS, "even": _EVEN}
    against = [
        (f"{line['peer']}: {line['task']}, {line['quantity']}", line["ratio"], colours[line["ahead"]])
        for one in results.values()
        for line in one.get("against", [])
    ]
    if ratios:
        _forest(ratios, out / "bench-ratios.svg", "ratio (blue: keeps its target, red: does not, grey: has none)")
        done.add("bench-ratios.svg")
    if against:
        _forest(against, out / "bench-peers.svg", "ours over theirs (blue: sfumato ahead, red: the peer, grey: even)")
        done.add("bench-peers.svg")
    if tasks := results.get("growth", {}).get("tasks"):
        _curves(tasks, out / "bench-growth.svg")
        done.add("bench-growth.svg")
    return done


def _kept(ratio: Mapping[str, Any]) -> bool | None:
    if "at most" in ratio:
        return bool(ratio["median"] <= ratio["at most"])
    return bool(ratio["median"] >= ratio["at least"]) if "at least" in ratio else None


def _forest(rows: Sequence[tuple[str, Mapping[str, Any], str]], path: Path, label: str) -> None:
    """A point with its quartiles for every ratio, targets as ticks."""
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(10, 0.8 + 0.2 * len(rows)))
    for place, (_, ratio, colour) in enumerate(rows):
        low, high = ratio["quartiles"]
        axes.plot([low, high], [place, place], color=colour, linewidth=1.5)
        axes.plot(ratio["median"], place, "o", color=colour, markersize=4)
        target = ratio.get("at most", ratio.get("at least"))
        if target is not None:
            axes.plot(target, place, "|", color="black", markersize=9)
    axes.axvline(1.0, color="#cccccc", linewidth=0.8, zorder=0)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("{x:g}")
    axes.set_yticks(range(len(rows)), [name for name, _, _ in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel(label)
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)


def _curves(tasks: Mapping[str, Any], path: Path) -> None:
    """Seconds (left axis) and peak MB (right axis) against size, both logarithmic, for every task."""
    from matplotlib import pyplot as plt

    columns = 3
    rows = -(-len(tasks) // columns)
    figure, grid = plt.subplots(rows, columns, figsize=(11, 2.9 * rows), squeeze=False)
    for axes in grid.flat[len(tasks) :]:
        axes.set_visible(False)
    for axes, (name, task) in zip(grid.flat, tasks.items(), strict=False):
        size = [point["size"] for point in task["points"]]
        seconds = [point["seconds"] for point in task["points"]]
        axes.fill_between(
            size, *zip(*(point["range"] for point in task["points"]), strict=True), color=_OURS, alpha=0.2
        )
        axes.plot(size, seconds, "o-", color=_OURS, markersize=3, linewidth=1)
        axes.plot(size, [seconds[-1] * one / size[-1] for one in size], ":", color=_EVEN, linewidth=1)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_title(f"{name}: time ∝ size^{task['exponent']['median']:.2f}", fontsize=8)
        axes.set_xlabel(task["along"])
        axes.set_ylabel("seconds", color=_OURS)
        beside = axes.twinx()
        beside.plot(
            size, [point["peak MB"] for point in task["points"]], "s--", color=_THEIRS, markersize=3, linewidth=1
        )
        beside.set_yscale("log")
        beside.set_ylabel("peak MB", color=_THEIRS)
        beside.spines["right"].set_visible(True)
    figure.suptitle("dotted: linear", fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
