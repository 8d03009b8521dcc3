#!/usr/bin/env python3
"""Measures the processor time of reading documents, beside pdftotext, pandoc, python-docx and openpyxl.

    speed.py READ_EACH CORPUS [--runs N] [--format FORMAT]... [--slowest N]

Each program reads each document in a process of its own. What the process needs to start is measured with the smallest
document of the format and taken away. The programs take turns at each document, so that a busy machine slows all of them;
the best of the runs counts. Only documents that all programs of a row can read are counted, and only PDFs with text: the
reader draws the others for OCR, and pdftotext does nothing with them.

The documents of a corpus are small. So a long one of each format is made too: a text with headings, lists, tables, links and
notes that pandoc writes, and a workbook that openpyxl writes.
"""
import argparse
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

PYTHON_DOCX = "import docx,sys\nfor p in docx.Document(sys.argv[1]).paragraphs: print(p.text)"
OPENPYXL = (
    "import openpyxl,sys\n"
    "for s in openpyxl.load_workbook(sys.argv[1],read_only=True,data_only=True):\n"
    "    for r in s.iter_rows(values_only=True): print(r)"
)
BY_PANDOC = ("docx", "odt", "html", "epub", "rtf", "tex", "ipynb", "md", "rst", "org")
CHAPTERS = 300
ROWS = 20_000


def programs(read_each, out):
    ours = ("landfall", lambda path: [read_each, out, path])
    found = {kind: [ours, ("pandoc", lambda path: ["pandoc", "-t", "plain", "-o", f"{out}/pandoc", path])] for kind in BY_PANDOC}
    found["docx"].append(("python-docx", lambda path: [sys.executable, "-c", PYTHON_DOCX, path]))
    found["pdf"] = [ours, ("pdftotext", lambda path: ["pdftotext", path, f"{out}/pdftotext"])]
    found["csv"] = [ours, ("pandoc", lambda path: ["pandoc", "-f", "csv", "-t", "plain", "-o", f"{out}/pandoc", path])]
    found["xlsx"] = [ours, ("openpyxl", lambda path: [sys.executable, "-c", OPENPYXL, path])]
    return found


def text(chapters):
    """A Markdown text, the same in each run."""
    chance = random.Random(7)
    words = [f"{a}{b}" for a in ("tide", "harbour", "low", "sail", "quay", "mast", "rope") for b in ("", "s", "ing", "er", "ly")]

    def sentence(length):
        return " ".join(chance.choice(words) for _ in range(length)).capitalize() + "."

    parts = []
    for chapter in range(chapters):
        parts.append(f"# Chapter {chapter + 1} {sentence(3)}")
        parts += [" ".join(sentence(12) for _ in range(6)) for _ in range(4)]
        parts.append(f"See [{sentence(2)}](https://example.org/{chapter}) and *{sentence(3)}*[^{chapter}]")
        parts.append(f"[^{chapter}]: {sentence(8)}")
        parts.append("\n".join(f"- {sentence(6)}" for _ in range(5)))
        parts.append("\n".join(f"{number}. {sentence(6)}" for number in range(1, 5)))
        rows = "\n".join(f"| {sentence(2)} | {chance.random():.3f} | {sentence(1)} |" for _ in range(8))
        parts.append(f"| name | height | where |\n|---|---|---|\n{rows}")
    return "\n\n".join(parts) + "\n"


def made(folder, kinds):
    """Writes a long and a tiny document of each format."""
    import openpyxl

    source = {size: Path(folder, f"source-{size}.md") for size in ("long", "tiny")}
    source["long"].write_text(text(CHAPTERS))
    source["tiny"].write_text("tide\n")
    found = {}
    for kind in kinds:
        for size in ("long", "tiny"):
            path = Path(folder, f"{size}.{kind}")
            if kind in BY_PANDOC:
                subprocess.run(["pandoc", "-s", "-f", "markdown", "-o", path, source[size]], check=True, stderr=subprocess.DEVNULL)
            elif kind == "xlsx":
                book = openpyxl.Workbook()
                for row in range(ROWS if size == "long" else 1):
                    book.active.append([f"tide {row % 977}", row, row / 7, "harbour", row % 2 == 0, None, f"{row}-b"])
                book.save(path)
            elif kind == "csv":
                lines = (f'tide {row % 977},{row},{row / 7},"harbour, low",,{row}-b\n' for row in range(ROWS if size == "long" else 2))
                path.write_text("".join(lines))
            else:
                continue
            found.setdefault(kind, []).append(path)
    return found


def cost(command):
    """The processor time of one run in seconds, or None if it fails."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    return usage.ru_utime + usage.ru_stime if status == 0 else None


def costs(ways, path, runs):
    """The least cost of each program, or None if one of them cannot read the document."""
    best = {}
    for _ in range(runs):
        for name, command in ways:
            seconds = cost(command(str(path)))
            if seconds is None:
                return None
            best[name] = min(best.get(name, seconds), seconds)
    return best


def has_text(path):
    run = subprocess.run(["pdftotext", path, "-"], capture_output=True)
    return len(run.stdout.split()) >= 5


def table_row(label, ways, paths, smallest, runs, slowest):
    start = costs(ways, smallest, 3 * runs)
    found = {path: of for path in paths if path != smallest and (of := costs(ways, path, runs))}
    if not start or not found:
        print(f"| {label} | no document that all can read |")
        return False
    size = sum(path.stat().st_size for path in found) / 1e6
    net = {path: {name: max(of[name] - start[name], 0.0) for name in of} for path, of in found.items()}
    sums = {name: 1000 * sum(of[name] for of in net.values()) for name, _ in ways}
    best = min(total for name, total in sums.items() if name != "landfall")
    for name, total in sums.items():
        ratio = total / best if best > 0 else float("nan")
        print(f"| {label} | {len(found)} | {size:.2f} | {name} | {total / len(found):.1f} | {total / size:.0f} | {ratio:.2f} |")
    for path in sorted(net, key=lambda path: -net[path]["landfall"])[:slowest]:
        shown = ", ".join(f"{name} {1000 * seconds:.0f} ms" for name, seconds in net[path].items())
        print(f"    {path.name}: {shown}", file=sys.stderr)
    sys.stdout.flush()
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("read_each")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--format", action="append")
    parser.add_argument("--slowest", type=int, default=0, help="name so many of the slowest documents")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print("| format | documents | MB | program | ms each | ms per MB | of the best |")
        print("|---|---|---|---|---|---|---|")
        ways = programs(arguments.read_each, folder)
        chosen = {kind: of for kind, of in ways.items() if not arguments.format or kind in arguments.format}
        long = made(folder, chosen)
        rows = []
        for kind, of in chosen.items():
            paths = sorted((arguments.corpus / kind).glob(f"*.{kind}"))
            if kind == "pdf":
                paths = [path for path in paths if has_text(path)]
            if len(paths) > 1:
                by_size = sorted(paths, key=lambda path: path.stat().st_size)
                smallest = next((path for path in by_size if costs(of, path, 1)), by_size[0])
                rows.append(table_row(kind, of, paths, smallest, arguments.runs, arguments.slowest))
            if kind in long:
                rows.append(table_row(f"{kind}, long", of, long[kind][:1], long[kind][1], arguments.runs, 0))
    if not rows or not all(rows):
        sys.exit("speed.py: not all formats were measured")


if __name__ == "__main__":
    main()
