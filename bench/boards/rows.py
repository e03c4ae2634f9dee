"""The rows of the boards: who trains on what, and what is asked of every model.

The files are other people's (DYNABENCH_DATA, else ../shared/data) and no part of this project. No
row that is trained on shares a text, a review, a prompt, a group of revisions or a contrast pair
with a row that is tested on, in any round of the task.
"""

import gzip
import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evaluation.seeds import get_split_group, read_seed_rows, split_by_group
from validation.consensus.consensus import Policy, Vote, decide_by_votes

DATA = Path(
    os.environ.get("DYNABENCH_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data"
)
FILES = (
    *("dynasent-r1-dev", "dynasent-r1-test", "dynasent-r2-dev", "dynasent-r2-test"),
    *("dynasent-sst-dev", "anli-dev-sample", "train/nli-cad-train", "train/nli-cad-test"),
    *("train/hate-hatemojibuild-train", "train/hate-hatemojibuild-dev"),
)
MAJORITY_POLICY = Policy("at-least", 3)
SPLIT_SALT = "board-1"
"""Salt of the splits and samples."""
Row = dict[str, Any]
"""text, or premise and hypothesis; label; uid; group, never split; keys, by which rows are related;
line: as it stands in the file."""
Parts = Mapping[str, Sequence[Row]]


@dataclass(frozen=True)
class Rows:
    """The rows of one task.

    stages: to train on, by name, in the order in which they were collected. tests: by the name of
    the evaluation set. like: of each stage the set that was collected in the same way. dropped:
    rows of each stage that were too close to a test. policy: how votes of imported rounds decide.
    long: sets that a language model is not asked about, for it would take too long.
    """

    task: str
    stages: Parts
    tests: Parts
    like: tuple[str, ...]
    dropped: Mapping[str, int]
    policy: str = "at-least:3"
    long: tuple[str, ...] = ()


def find_file(name: str) -> Path:
    """Where a file of FILES lies."""
    return DATA / f"{name}.jsonl.gz"


def select_related_rows(train: Sequence[Row], tests: Iterable[Row]) -> list[Row]:
    """The rows to train on that share a key with a row to test on."""
    taken = {key for row in tests for key in row["keys"]}
    return [row for row in train if taken & set(row["keys"])]


def sample_rows(rows: Sequence[Row], size: int) -> list[Row]:
    """At least `size` rows, in whole groups by the hash of their name; all where there are fewer.

    Exactly so many where each group is one row.
    """
    if len(rows) <= size:
        return [*rows]
    return split_by_group(rows, share=size / len(rows), salt=SPLIT_SALT)[1]


def separate_stages(stages: Parts, tests: Parts, most: int) -> tuple[Parts, Mapping[str, int]]:
    """At most so many rows of each stage, by the hash of their uid, none of them close to a test.

    And how many were too close.
    """
    tested = [row for rows in tests.values() for row in rows]
    kept, dropped = {}, {}
    for name, rows in stages.items():
        close = {row["uid"] for row in select_related_rows(rows, tested)}
        free = [row for row in rows if row["uid"] not in close]
        kept[name] = sorted(free, key=lambda row: _compute_hash(row["uid"]))[:most]
        dropped[name] = len(close)
    return kept, dropped


def _compute_hash(text: str) -> bytes:
    return hashlib.sha256(f"{SPLIT_SALT}:{text}".encode()).digest()


def build_row(line: Mapping[str, Any]) -> Row:
    """A line of a file. Its label is what three of five people chose, else what the source says."""
    about, texts = line["metadata"], {**line["input"], **line["context"]}
    label = line["author_label"]
    if len(line["validations"]) == 5:
        label = decide_by_votes(
            [Vote(label=one["label"]) for one in line["validations"]], MAJORITY_POLICY
        ).label
    row = {name: texts[name] for name in ("text", "premise", "hypothesis") if name in texts}
    words = " ".join(" ".join(row.values()).lower().split())
    pair = about.get("contrast_uid") and min(line["uid"], about["contrast_uid"])
    related_by = {
        "text": words,
        "review": about.get("review_id"),
        "prompt": line["context"].get("prompt"),
        "group": about.get("group"),
        "pair": pair,
    }
    group = about.get("group") or pair or line["author"] or about.get("review_id") or line["uid"]
    keys = [f"{name}:{value}" for name, value in related_by.items() if value]
    return {
        **row, "label": label, "uid": line["uid"], "group": group, "keys": keys, "line": line,
    }  # fmt: skip


def read_rows(*names: str, labels: Sequence[str]) -> list[Row]:
    """The rows of files that have one of the labels."""
    found = []
    for name in names:
        with gzip.open(find_file(name), "rt", encoding="utf-8") as file:
            found += [build_row(json.loads(line)) for line in file]
    return [row for row in found if row["label"] in labels]


def group_rows(rows: Iterable[Row], name: Callable[[Row], str]) -> dict[str, list[Row]]:
    """The rows by a name of theirs, in the order of the names."""
    found = defaultdict(list)
    for row in rows:
        found[name(row)].append(row)
    return dict(sorted(found.items()))


def build_sentiment_rows(most: int, size: int) -> Rows:
    """DynaSent has no train files here: its dev files train, its test files test."""
    labels = ("positive", "negative", "neutral")
    stages = {f"round {n}": read_rows(f"dynasent-r{n}-dev", labels=labels) for n in (1, 2)}
    names = ("dynasent-sst-dev", "dynasent-r1-test", "dynasent-r2-test")
    tests = {
        f"round-{n}": sample_rows(read_rows(name, labels=labels), size)
        for n, name in enumerate(names)
    }
    return _build_rows("sentiment", stages, tests, ("round-1", "round-2"), most)


def build_nli_rows(most: int, size: int) -> Rows:
    """Originals and their revisions train and test; ANLI's rounds, of 300 rows each, test only."""
    labels = ("entailment", "neutral", "contradiction")

    def of(file: str) -> dict[str, list[Row]]:
        return group_rows(
            read_rows(file, labels=labels), lambda row: str(row["line"]["metadata"]["kind"])
        )

    train, test = of("train/nli-cad-train"), of("train/nli-cad-test")
    kinds = {"originals": "original", "premises": "revised-premise",
             "hypotheses": "revised-hypothesis"}  # fmt: skip
    stages = {name: train[kind] for name, kind in kinds.items()}
    tests = {f"cad-{name}": sample_rows(test[kind], size) for name, kind in kinds.items()}
    like = [*tests]
    anli = group_rows(
        read_rows("anli-dev-sample", labels=labels), lambda row: f"round-{row['line']['round']}"
    )
    tests |= {name: sample_rows(rows, size) for name, rows in anli.items()}
    votes = "at-least:2"
    return _build_rows("nli", stages, tests, like, most, policy=votes, long=tuple(anli))


def build_hate_speech_rows(most: int, size: int) -> Rows:
    """Both files together, split again: in the source a pair may lie in two of them."""
    files = ("train/hate-hatemojibuild-train", "train/hate-hatemojibuild-dev")
    rounds = group_rows(
        read_rows(*files, labels=("hate", "not-hate")), lambda row: str(row["line"]["round"])
    )
    tests = {f"emoji-{number}": sample_rows(rows, size) for number, rows in rounds.items()}
    tested = {row["uid"] for rows in tests.values() for row in rows}
    stages = {
        f"round {number}": [row for row in rows if row["uid"] not in tested]
        for number, rows in rounds.items()
    }
    return _build_rows("hate-speech", stages, tests, tests, most)


def _build_rows(
    task: str, stages: Parts, tests: Parts, like: Iterable[str], most: int, **more: Any
) -> Rows:
    kept, dropped = separate_stages(stages, tests, most)
    return Rows(task, kept, tests, tuple(like), dropped, **more)


def build_seed_rows(most: int, size: int) -> Rows:
    """Shipped seeds of sentiment as two rounds: what smoke forms have where no data is."""
    lines = [_build_line(number, row) for number, row in enumerate(read_seed_rows("sentiment"))]
    rows = [build_row(line) for line in lines[: 2 * most + 2 * size]]
    stages = {"round 1": rows[:most], "round 2": rows[most : 2 * most]}
    tested = rows[2 * most :]
    for row in tested[size:]:
        row["line"]["round"] = 2
    tests = {"round-1": tested[:size], "round-2": tested[size:]}
    return _build_rows("sentiment", stages, tests, tests, most)


def _build_line(number: int, row: Mapping[str, Any]) -> Row:
    """A seed as a line of imported history, whose label five people chose."""
    votes = [{"worker": f"v{n}", "label": row["label"]} for n in range(5)]
    return {
        "task": "sentiment", "round": 1, "uid": f"seed{number}", "context": {},
        "input": {"text": row["text"]}, "author": f"a{number}", "author_label": row["label"],
        "model_prediction": {"model": "seed", "label": "neutral", "probs": None},
        "model_wrong": row["label"] != "neutral", "validations": votes, "metadata": {},
    }  # fmt: skip


TASKS = {
    "sentiment": build_sentiment_rows,
    "nli": build_nli_rows,
    "hate-speech": build_hate_speech_rows,
}


def list_clusters(rows: Sequence[Row]) -> list[str] | None:
    """What makes examples depend on each other; None where each stands alone."""
    groups = [get_split_group(row) for row in rows]
    return groups if len({*groups}) < len(groups) else None
