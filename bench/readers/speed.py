#!/usr/bin/env python3
"""Measures the processor time of reading documents, beside pdftotext, pandoc, python-docx and openpyxl.

    speed.py READ_EACH CORPUS

Each program reads each document in a process of its own. What the process needs to start is measured with a document of a
few words and taken away. The figures are milliseconds of processor time for each document and for each megabyte of them, of
the documents that all programs of a row can read; the best of three runs counts.
"""
import os
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
TINY = {"html": b"<p>tide", "md": b"tide", "csv": b"a,b\n", "json": b"[1]", "txt": b"tide", "eml": b"Subject: a\n\nb\n"}


def programs(read_each, out):
    ours = ("landfall", lambda path: [read_each, out, path])
    pandoc = ("pandoc", lambda path: ["pandoc", "-t", "plain", "-o", f"{out}/pandoc", path])
    return {
        "pdf": [ours, ("pdftotext", lambda path: ["pdftotext", path, f"{out}/pdftotext"])],
        "docx": [ours, pandoc, ("python-docx", lambda path: [sys.executable, "-c", PYTHON_DOCX, path])],
        "odt": [ours, pandoc],
        "html": [ours, pandoc],
        "xlsx": [ours, ("openpyxl", lambda path: [sys.executable, "-c", OPENPYXL, path])],
    }


def cost(command):
    """The processor time of one run in seconds, or None if it fails."""
    best = None
    for _ in range(3):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        if status != 0:
            return None
        seconds = usage.ru_utime + usage.ru_stime
        best = seconds if best is None else min(best, seconds)
    return best


def main():
    read_each, corpus = sys.argv[1], Path(sys.argv[2])
    out = tempfile.mkdtemp()
    print("| format | documents | MB | program | ms each | ms per MB | of the best |")
    print("|---|---|---|---|---|---|---|")
    for kind, ways in programs(read_each, out).items():
        folder = corpus / kind
        paths = sorted(path for path in folder.glob(f"*.{kind}"))
        if not paths:
            continue
        smallest = min(paths, key=lambda path: path.stat().st_size)
        costs = {}
        for name, command in ways:
            start = cost(command(str(smallest))) or 0.0
            costs[name] = {
                path: max(found - start, 0.0) for path in paths if (found := cost(command(str(path)))) is not None
            }
        common = [path for path in paths if all(path in of for of in costs.values()) and path != smallest]
        size = sum(path.stat().st_size for path in common) / 1e6
        sums = {name: 1000 * sum(of[path] for path in common) for name, of in costs.items()}
        others = [total for name, total in sums.items() if name != "landfall"]
        for name, total in sums.items():
            ratio = total / min(others) if others and min(others) > 0 else float("nan")
            print(f"| {kind} | {len(common)} | {size:.2f} | {name} | {total / len(common):.1f} | {total / size:.0f} | {ratio:.2f} |")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
