#!/usr/bin/env python3
"""Print the Markdown table of what bench/peers/run has measured.

    bench/peers/table.py [FILE...]

Without a file, of .tools/peers/results.jsonl. A figure that was measured several times is shown as its median, with the
least and the greatest.
"""

import json
import statistics
import sys
from pathlib import Path

RESULTS = Path(__file__).resolve().parent.parent.parent / ".tools" / "peers" / "results.jsonl"


def show(*files):
    lines = [json.loads(line) for file in files for line in Path(file).read_text().splitlines()]
    for machine in (line for line in lines if line["what"] == "machine"):
        print("; ".join(f"{name} {value}" for name, value in machine.items() if name != "what" and value is not None))
    measured = [line for line in lines if line["what"] != "machine" and "failed" not in line]
    sizes = sorted({line["files"] for line in measured if line["what"] == "flows"})
    columns = ["peer", "durability"]
    columns += [f"flows/s, {files:,} files" for files in sizes]
    columns += [f"CPU ms per flow, {files:,} files (client part)" for files in sizes]
    columns += ["flows/s with queueing", "idle latency p50 / p99 ms", "takeover s", "cores used by others"]
    print("\n" + row(columns) + "\n" + row(["---"] * len(columns)))
    # In the order in which they were first measured.
    for title, durability in dict.fromkeys((line["title"], line["durability"]) for line in measured):
        of_row = [line for line in measured if (line["title"], line["durability"]) == (title, durability)]
        print(row([title, durability, *cells(of_row, sizes)]))
    failures = [line for line in lines if "failed" in line]
    if failures:
        print()
    for line in failures:
        print(f"- failed: {line['title']} ({line['durability']}), {line['what']}: {line['failed']}")


def cells(lines, sizes):
    of = {what: [line for line in lines if line["what"] == what] for what in ("flows", "latency", "takeover")}
    by_size = [[line for line in of["flows"] if line["files"] == files] for files in sizes]
    yield from (middle(same, "flows_per_second") for same in by_size)
    for same in by_size:
        client = middle(same, "client_cpu_ms_per_flow", spread=False)
        yield middle(same, "cpu_ms_per_flow", spread=False) + (f" ({client})" if client else "")
    yield " / ".join(filter(None, (middle(same, "flows_per_second_with_queueing", spread=False) for same in by_size)))
    yield " / ".join(filter(None, (middle(of["latency"], name) for name in ("p50_ms", "p99_ms"))))
    late = [f"> {line['longer_than_seconds']:.0f}" for line in of["takeover"] if "longer_than_seconds" in line]
    yield ", ".join([middle(of["takeover"], "seconds")] * any("seconds" in line for line in of["takeover"]) + late)
    yield middle(lines, "cores_used_by_others", spread=False)


def middle(lines, name, spread=True):
    values = [line[name] for line in lines if name in line]
    if not values:
        return ""
    shown = number(statistics.median(values))
    return f"{shown} [{number(min(values))}..{number(max(values))}]" if spread and len(values) > 1 else shown


def number(value):
    """Three significant digits."""
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f}"


def row(values):
    return f"| {' | '.join(values)} |"


if __name__ == "__main__":
    show(*(sys.argv[1:] or [RESULTS]))
