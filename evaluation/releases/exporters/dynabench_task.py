"""A released round of Dynabench as prompts, and its metrics; needs nothing but Python.

lm-evaluation-harness finds these functions through dynabench_task.yaml, Inspect through
inspect_task.py. This file is the same in every release. Instructions, labels and texts are people's
words: they are read as data from task.json and the JSON lines, and are never run or used as
templates. dynabench_words.py, beside it, says which texts and labels are equal.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

Doc = dict[str, Any]
"""An example: uid, instructions, prompt, target, language, and choices where there are labels.

target: the right answer's text, or its place in choices.
"""


def _own_words() -> Any:
    """The module that compares texts: beside this file, which harnesses load by its path alone."""
    spec = spec_from_file_location(
        "dynabench_words", Path(__file__).with_name("dynabench_words.py")
    )
    if spec is None or spec.loader is None or not Path(str(spec.origin)).exists():
        return import_module("core.text.words")  # where no release was made yet
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


words = _own_words()


def read_task(folder: Path) -> dict[str, Any]:
    """What task.json says: name, fields, answer, labels (null: answers in words), instructions."""
    about: dict[str, Any] = json.loads((folder / "task.json").read_text(encoding="utf-8"))
    return about


def examples(folder: Path, split: str) -> Iterator[Doc]:
    """The examples of train, dev or test; none where the file is not there.

    What was withdrawn is left out, and what has no answer that the task knows.
    """
    about, path = read_task(folder), folder / f"{split}.jsonl"
    if path.exists():
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                if not row["withdrawn"] and row["label"] in (about["labels"] or [row["label"]]):
                    yield _example(about, row)


def _example(about: Mapping[str, Any], row: Mapping[str, Any]) -> Doc:
    found = {**json.loads(row["context"]["context_json"]), **json.loads(row["input_json"])}
    lines = [f"{name}: {_words(found[name])}" for name in about["fields"] if name in found]
    doc = {
        "uid": row["uid"],
        "instructions": about["instructions"],
        "prompt": "\n".join([*lines, f"{about['answer']}:"]),
        "target": row["label"],
        "language": about.get("language", ""),
    }
    if about["labels"]:
        doc |= {"choices": about["labels"], "target": about["labels"].index(row["label"])}
    return doc


def _words(value: Any) -> str:
    return str(value["text"] if isinstance(value, dict) else value)


def evaluated(folder: Path) -> list[Doc]:
    """What models are evaluated on: test, or dev where the labels of test are private.

    Raises FileNotFoundError.
    """
    for split in ("test", "dev"):
        if found := list(examples(folder, split)):
            return found
    raise FileNotFoundError(f"There is no example in {folder}/test.jsonl or dev.jsonl.")


def load(**_: Any) -> dict[str, Any]:
    """What lm-evaluation-harness reads: `evaluated`, and `train` for examples in the prompt."""
    from datasets import Dataset

    folder = Path(__file__).parent
    found = {"train": list(examples(folder, "train")), "evaluated": evaluated(folder)}
    return {split: Dataset.from_list(docs) for split, docs in found.items()}


def score_choice(doc: Doc, results: Sequence[tuple[float, bool]]) -> dict[str, Any]:
    """The label that a model finds most likely; results: the logarithm of how likely, by label."""
    best = max(range(len(results)), key=lambda number: results[number][0])
    return {"accuracy": float(best == doc["target"]), "macro_f1": (doc["target"], best)}


def score_text(doc: Doc, results: Sequence[str]) -> dict[str, float]:
    """SQuAD's two numbers of what a model wrote."""
    return text_scores(results[0], doc["target"], doc.get("language", ""))


def text_scores(said: str, right: str, language: str = "") -> dict[str, float]:
    """SQuAD's F1 and EM of one answer (Rajpurkar et al. 2016, 6.1)."""
    one, other = (words.answer_words(text, language=language) for text in (said, right))
    shared = (Counter(one) & Counter(other)).total()
    f1 = 2 * shared / (len(one) + len(other)) if one or other else 1.0
    return {"squad_f1": f1, "exact_match": float(one == other)}


def macro_f1(pairs: Iterable[tuple[Any, Any]]) -> float:
    """The mean F1 of the labels that are right or were answered; pairs: the right one, the answer.

    An answer that is None is no label: the right one was not found. NaN without examples.
    """
    pairs = list(pairs)
    both = Counter(right for right, said in pairs if right == said)
    seen = Counter(label for pair in pairs for label in pair if label is not None)
    f1 = [2 * both[label] / times for label, times in seen.items()]
    return sum(f1) / len(f1) if f1 else math.nan
