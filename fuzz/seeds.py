#!/usr/bin/env python3
"""Makes `corpus/TARGET` from documents: `seeds.py FILE…`. A packed document becomes a list of its files (`src/lib.rs`)."""
import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).parent
PACKED = {"docx": "docx", "pptx": "pptx", "xlsx": "xlsx", "xlsb": "xlsb", "odt": "odf", "ods": "odf", "odp": "odf",
          "epub": "epub", "pages": "iwork", "zip": "archive"}
NAMES = {"md": "markdown", "tex": "latex", "ipynb": "notebook", "srt": "subtitles", "vtt": "subtitles", "txt": "plain",
         "tsv": "csv", "adoc": "asciidoc", "dat": "tnef", "png": "picture", "rs": "plain"}
LARGEST = 40_000


def unpacked(path):
    parts = []
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            content = archive.read(name)
            if len(content) < 20_000 and not name.endswith(("/", ".png", ".jpeg", ".jpg", ".emf", "theme1.xml")):
                parts.append(b"\n=== " + name.encode() + b"\n" + content)
    return b"".join(parts)


for path in map(Path, sys.argv[1:]):
    extension = path.suffix[1:].lower()
    target = PACKED.get(extension) or NAMES.get(extension) or extension
    content = unpacked(path) if extension in PACKED else path.read_bytes()
    if content and len(content) <= LARGEST:
        folder = HERE / "corpus" / target
        folder.mkdir(parents=True, exist_ok=True)
        (folder / path.name).write_bytes(content)
