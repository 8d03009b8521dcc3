#!/usr/bin/env python3
"""Compares the text of PDFs with that of poppler's pdftotext, which is an independent reader.

    quality.py READ_EACH [--way reader|text|plain|lines]... [--worst N] FILE...

For each way of reading: F1 of the words, F1 of the pairs of neighbouring words, and the share of both texts that is one
common sequence. pdftotext writes a page in reading order, as it looks (-layout) or as it is drawn (-raw). None of these is
always right, so each page is compared with all three and the best one counts. A low score says that the two differ, not who
is right: look at the page.

Before that, Markdown and bullets are taken away, ligatures become letters, all apostrophes and quotation marks the same ones,
each character of Chinese, Japanese and Korean is a word (they write no spaces), dots that lead to a page number are dropped,
words that are divided at the end of a line are joined, hyphens inside words are dropped (both readers guess which of them
divide a word), and lines that pdftotext repeats at the edge of most pages are kept once, as the reader keeps them.
"""
import argparse
import re
import subprocess
import sys
import tempfile
import unicodedata
from collections import Counter
from pathlib import Path

BULLETS = set("•◦▪▫■□●○‣⁃∙➢➤►▶✓✔❖◆◇-–—*·|☒☐")
SEPARATOR = re.compile(r"^[|\s:-]+$")
LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*\)")
LEADER = re.compile(r"(\. ?){4,}|…{2,}|_{4,}")
UNSPACED = re.compile("([\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef])")
DIVIDED = re.compile(r"([^\W\d_]{2})[-\u00ad\u2010][ \t]*\n[ \t]*(?=[^\W\d_A-Z])")
QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "`": "'", "\u00b4": "'"})
HYPHENS = re.compile(r"(?<=\w)[-\u2010\u2011](?=\w)")
TIMEOUT = 120
MODES = ([], ["-layout"], ["-raw"])


def words(text, is_markdown):
    """The words of a text, without marks."""
    found = []
    for line in unicodedata.normalize("NFKC", DIVIDED.sub(r"\1", text.translate(QUOTES))).splitlines():
        line = line.strip()
        if is_markdown:
            line = LINK.sub(r"\1", line)
            if SEPARATOR.match(line) or line.startswith("```"):
                continue
            line = re.sub(r"^#{1,6} ", "", line)
            line = re.sub(r"^(> ?)+", "", line)
            if line.startswith("|") and line.endswith("|"):
                line = line.replace("\\|", "\0").replace("|", " ").replace("\0", "|")
        line = UNSPACED.sub(r" \1 ", LEADER.sub(" ", line))
        for word in HYPHENS.sub("", line).split():
            word = "".join(c for c in word if unicodedata.category(c) not in ("Cf", "Co", "Cc") and c != "\ufffd")
            if word and not all(c in BULLETS for c in word) and set(word) != {"."}:
                found.append(word)
    return found


def without_running_heads(pages):
    """The pages without the lines that stand at the edge of most of them, but for the first page that has one."""
    if len(pages) < 4:
        return pages
    split = [page.splitlines() for page in pages]

    def edges(lines):
        filled = [at for at, line in enumerate(lines) if line.strip()]
        return set(filled[:2] + filled[-2:])

    def shape(line):
        return " ".join(re.sub(r"\d+|\b[ivxlc]+\b", "#", line).split())

    counts = Counter(one for lines in split for one in {shape(lines[at]) for at in edges(lines)})
    repeated = {one for one, number in counts.items() if number >= max(3, len(pages) // 4)}
    seen, cleaned = set(), []
    for lines in split:
        at_edge = edges(lines)
        kept = []
        for at, line in enumerate(lines):
            if at in at_edge and shape(line) in repeated:
                if shape(line) in seen:
                    continue
                seen.add(shape(line))
            kept.append(line)
        cleaned.append("\n".join(kept))
    return cleaned


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


def counted(found, reference):
    """What both have in common and what both have, of words, of pairs and of the sequence."""
    shared = sum((Counter(found) & Counter(reference)).values())
    found_pairs, reference_pairs = pairs(found), pairs(reference)
    shared_pairs = sum((Counter(found_pairs) & Counter(reference_pairs)).values())
    total = len(found) + len(reference)
    return (shared, total, shared_pairs, len(found_pairs) + len(reference_pairs), common(found, reference), total)


def share(shared, total):
    return 2 * shared / total if total else 1.0


def score(found_pages, modes):
    """The scores of a document, and which page is the worst."""
    number = max(len(found_pages), max(len(pages) for pages in modes))
    sums, worst = [0] * 6, (2.0, 0)
    for at in range(number):
        found = found_pages[at] if at < len(found_pages) else []
        references = [pages[at] if at < len(pages) else [] for pages in modes]
        best = max((counted(found, one) for one in references), key=lambda one: share(one[2], one[3]))
        sums = [a + b for a, b in zip(sums, best)]
        if best[3] > 20:
            worst = min(worst, (share(best[2], best[3]), at + 1))
    return [share(sums[at], sums[at + 1]) for at in (0, 2, 4)], worst[1]


def by_pdftotext(path, *options):
    run = subprocess.run(["pdftotext", "-enc", "UTF-8", *options, path, "-"], capture_output=True, timeout=TIMEOUT)
    pages = run.stdout.decode("utf-8", "replace").split("\f")
    return without_running_heads(pages[:-1] if pages and not pages[-1].strip() else pages)


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
        modes = [[words(page, False) for page in by_pdftotext(path, *options)] for options in MODES]
        if sum(map(len, modes[0])) >= 5:
            references[path] = modes
    for way in arguments.way or ["reader"]:
        folder = Path(arguments.keep or tempfile.mkdtemp()) / way
        folder.mkdir(parents=True, exist_ok=True)
        scores = []
        for path, modes in references.items():
            output = folder / f"{path.name}.md"
            output.unlink(missing_ok=True)
            command = [arguments.read_each, "--way", way, str(folder), str(path)]
            try:
                run = subprocess.run(command, capture_output=True, timeout=TIMEOUT, text=True)
                error = run.stdout.rstrip("\n").split("\t")[-1] if run.returncode == 0 else f"exit {run.returncode}"
            except subprocess.TimeoutExpired:
                error = f"not read in {TIMEOUT} s"
            text = output.read_text() if output.exists() else ""
            found, worst_page = score([words(page, way == "reader") for page in text.split("\f")], modes)
            scores.append((found, path, f"page {worst_page} {error}"))
        if not scores:
            sys.exit("quality.py: there is no PDF with text to compare")
        scores.sort(key=lambda one: one[0][1])
        for (unigram, bigram, sequence), path, remark in scores[: arguments.worst]:
            print(f"  {unigram:.3f} {bigram:.3f} {sequence:.3f} {path} {remark}")
        unigram, bigram, sequence = (sum(one[0][at] for one in scores) / len(scores) for at in range(3))
        low = [sum(one[0][1] < limit for one in scores) for limit in (0.9, 0.8)]
        print(
            f"{way}: {len(scores)} files, unigram {unigram:.4f} bigram {bigram:.4f} sequence {sequence:.4f}, "
            f"bigram below .9: {low[0]}, below .8: {low[1]}"
        )
        sys.stdout.flush()


if __name__ == "__main__":
    main()
