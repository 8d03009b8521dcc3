#!/usr/bin/env python3
"""Makes `corpus/TARGET` from documents: `seeds.py FILE...`. A packed document becomes a list of its files (`src/documents.rs`).

`LANDFALL_WRITE=FOLDER cargo test -p landfall-documents --test structure` writes documents to begin with.
"""

import sys
import zipfile
from pathlib import Path

CORPUS = Path(__file__).parent / "corpus"
PACKED = {"pages": "iwork", "zip": "zip_of_files"}
PACKED |= {kind: kind for kind in ("docx", "pptx", "xlsx", "xlsb", "odt", "ods", "odp", "epub")}
NAMES = {"md": "markdown", "tex": "latex", "ipynb": "notebook", "srt": "subtitles", "vtt": "subtitles", "txt": "plain"}
NAMES |= {"tsv": "csv", "adoc": "asciidoc", "dat": "tnef", "png": "picture", "rs": "plain"}
# Larger inputs make every change of them slow.
LARGEST = 24_000


def unpacked(path):
    with zipfile.ZipFile(path) as archive:
        return b"".join(b"\n=== " + name.encode() + b"\n" + archive.read(name) for name in archive.namelist())


def keep(target, name, content):
    if content and len(content) <= LARGEST:
        folder = CORPUS / target
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


for path in map(Path, sys.argv[1:]):
    extension = path.suffix[1:].lower()
    if extension in PACKED:
        keep(PACKED[extension], path.name, unpacked(path))
    else:
        keep(NAMES.get(extension, extension), path.name, path.read_bytes())
    if extension == "zip":
        keep("zip", path.name, path.read_bytes())
        keep("zip_members", path.name, path.read_bytes())
