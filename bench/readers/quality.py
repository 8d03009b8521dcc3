#!/usr/bin/env python3
"""Compares the text of PDFs with that of poppler's pdftotext, which is an independent reader.

    quality.py READ_EACH [--way reader|text|plain|lines]... [--worst N] FILE...

For each way of reading: F1 of the words, F1 of the pairs of neighbouring words, and the share of both texts that is one
common sequence. pdftotext writes a page in reading order, as it looks (-layout) or as it is drawn (-raw). None of these is
always right, so a text is compared with all three and the best one counts. A low score says that the two differ, not who is
right: look at the page. Markdown and bullets are taken away first, and ligatures become letters.
"""
import argparse
import re
import subprocess
import sys
import tempfile
import unicodedata
from collections import Counter
from pathlib import Path

BULLETS = set("•◦▪▫■□●○‣⁃∙➢➤►▶✓✔❖◆◇-–—*·|☒")
SEPARATOR = re.compile(r"^[|\s:-]+$")
LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)")


def words(text, is_markdown):
    """The words of a text, without marks."""
    found = []
    for line in unicodedata.normalize("NFKC", text).splitlines():
        line = line.strip()
        if is_markdown:
            line = LINK.sub(r"\1", line)
            if SEPARATOR.match(line) or line.startswith("```"):
                continue
            line = re.sub(r"^#{1,6} ", "", line)
            line = re.sub(r"^(> ?)+", "", line)
            line = line.replace("\\|", "\0").replace("|", " ").replace("\0", "|")
            line = re.sub(r"\\([\\`*_{}\[\]()#+\-.!<>|~$&])", r"\1", line)
        for word in line.split():
            word = "".join(c for c in word if unicodedata.category(c) not in ("Cf", "Co", "Cc") and c != "\ufffd")
            if word and not all(c in BULLETS for c in word) and set(word) != {"."}:
                found.append(word)
    return found


def f1(found, reference):
    total = len(found) + len(reference)
    return 2 * sum((Counter(found) & Counter(reference)).values()) / total if total else 1.0


def pairs(found):
    return list(zip(found, found[1:]))


def common(found, reference):
    """The length of the longest common subsequence, by rows of bits (Hyyrö)."""
    places = {}
    for at, word in enumerate(found):
        places[word] = places.get(word, 0) | 1 << at
    row = everything = (1 << len(found)) - 1
    for word in reference:
        matches = row & places.get(word, 0)
        row = (row + matches | row - matches) & everything
    return len(found) - row.bit_count()


def score(found, reference):
    total = len(found) + len(reference)
    sequence = 2 * common(found, reference) / total if total else 1.0
    return f1(found, reference), f1(pairs(found), pairs(reference)), sequence


def by_pdftotext(path, *options):
    run = subprocess.run(["pdftotext", "-enc", "UTF-8", *options, path, "-"], capture_output=True, timeout=120)
    return run.stdout.decode("utf-8", "replace")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("read_each")
    parser.add_argument("--way", action="append")
    parser.add_argument("--worst", type=int, default=12)
    parser.add_argument("--keep", help="a folder for the texts")
    parser.add_argument("files", nargs="+", type=Path)
    arguments = parser.parse_args()
    references = {}
    for path in arguments.files:
        texts = [words(by_pdftotext(path, *options), False) for options in ([], ["-layout"], ["-raw"])]
        if len(texts[0]) >= 5:
            references[path] = texts
    for way in arguments.way or ["reader"]:
        folder = Path(arguments.keep or tempfile.mkdtemp()) / way
        folder.mkdir(parents=True, exist_ok=True)
        scores = []
        for path, texts in references.items():
            command = [arguments.read_each, "--way", way, str(folder), str(path)]
            run = subprocess.run(command, capture_output=True, timeout=600, text=True)
            error = run.stdout.rstrip("\n").split("\t")[-1] if run.returncode == 0 else f"exit {run.returncode}"
            output = folder / f"{path.name}.md"
            found = words(output.read_text() if output.exists() else "", way == "reader")
            all_scores = [score(found, reference) for reference in texts]
            best = max(all_scores, key=lambda one: one[1])
            scores.append((best, path, error, all_scores[0]))
        scores.sort(key=lambda one: one[0][1])
        for (unigram, bigram, sequence), path, error, _ in scores[: arguments.worst]:
            print(f"  {unigram:.3f} {bigram:.3f} {sequence:.3f} {path} {error}")
        number = max(len(scores), 1)
        unigram, bigram, sequence = (sum(one[0][at] for one in scores) / number for at in range(3))
        in_order = [sum(one[3][at] for one in scores) / number for at in (1, 2)]
        low = [sum(one[0][1] < limit for one in scores) for limit in (0.9, 0.8)]
        print(
            f"{way}: {number} files, unigram {unigram:.4f} bigram {bigram:.4f} sequence {sequence:.4f}, "
            f"bigram below .9: {low[0]}, below .8: {low[1]}; against the reading order alone bigram {in_order[0]:.4f} "
            f"sequence {in_order[1]:.4f}"
        )
        sys.stdout.flush()


if __name__ == "__main__":
    main()
