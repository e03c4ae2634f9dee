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
"""An example: uid, instructions, prompt, target, language, and choices if there are labels.

target: the right answer's text, or its index in choices.
"""


def _load_words_module() -> Any:
    """Return the module that compares texts, loaded from this file's folder if it is there.

    Tools load this file by its path, so the module cannot simply be imported.
    """
    spec = spec_from_file_location(
        "dynabench_words", Path(__file__).with_name("dynabench_words.py")
    )
    # In our own tests there is no release, so the file is not next to this one.
    if spec is None or spec.loader is None or not Path(str(spec.origin)).exists():
        return import_module("core.text.words")  # if there is no release yet
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


words = _load_words_module()


def read_task(folder: Path) -> dict[str, Any]:
    """Return the contents of task.json.

    These are name, fields, answer, labels (null if answers are free text), language and
    instructions.
    """
    task_info: dict[str, Any] = json.loads((folder / "task.json").read_text(encoding="utf-8"))
    return task_info


def iterate_examples(folder: Path, split: str) -> Iterator[Doc]:
    """Yield the examples of train, dev or test; none if the file is missing.

    Skips withdrawn rows, and rows whose answer is not one of the task's labels.
    """
    task_info, path = read_task(folder), folder / f"{split}.jsonl"
    if not path.exists():
        return
    labels = task_info["labels"]
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            if not row["withdrawn"] and (not labels or row["label"] in labels):
                yield _make_doc(task_info, row)


def _make_doc(task_info: Mapping[str, Any], row: Mapping[str, Any]) -> Doc:
    values = {**json.loads(row["context"]["context_json"]), **json.loads(row["input_json"])}
    lines = [
        f"{name}: {_convert_to_words(values[name])}"
        for name in task_info["fields"]
        if name in values
    ]
    doc = {
        "uid": row["uid"],
        "instructions": task_info["instructions"],
        "prompt": "\n".join([*lines, f"{task_info['answer']}:"]),
        "target": row["label"],
        "language": task_info.get("language", ""),
    }
    if task_info["labels"]:
        doc |= {"choices": task_info["labels"], "target": task_info["labels"].index(row["label"])}
    return doc


def _convert_to_words(value: Any) -> str:
    return str(value["text"] if isinstance(value, dict) else value)


def list_evaluation_examples(folder: Path) -> list[Doc]:
    """Return the examples for evaluation: test, or dev if the labels of test are private.

    Raises FileNotFoundError.
    """
    for split in ("test", "dev"):
        docs = list(iterate_examples(folder, split))
        if docs:
            return docs
    raise FileNotFoundError(f"{folder}/test.jsonl and dev.jsonl contain no examples.")


def load_splits(**_: Any) -> dict[str, Any]:
    """Return the splits for lm-evaluation-harness.

    `evaluated` contains the examples to answer, `train` the examples for few-shot prompts.
    """
    # Only this harness needs it; Inspect does not.
    from datasets import Dataset

    folder = Path(__file__).parent
    splits = {
        "train": list(iterate_examples(folder, "train")),
        "evaluated": list_evaluation_examples(folder),
    }
    return {split: Dataset.from_list(docs) for split, docs in splits.items()}


def score_choice(doc: Doc, results: Sequence[tuple[float, bool]]) -> dict[str, Any]:
    """Score the label that a model finds most likely.

    results: one pair for each label, whose first element is its log-likelihood.
    """
    best = max(range(len(results)), key=lambda number: results[number][0])
    return {"accuracy": float(best == doc["target"]), "macro_f1": (doc["target"], best)}


def score_text(doc: Doc, results: Sequence[str]) -> dict[str, float]:
    """Return SQuAD's F1 and EM of a model's text."""
    return compute_text_scores(results[0], doc["target"], doc.get("language", ""))


def compute_text_scores(answer: str, right_answer: str, language: str = "") -> dict[str, float]:
    """Return SQuAD's F1 and EM of one answer (Rajpurkar et al. 2016, section 6.1)."""
    split_answer_words = words.split_answer_words(answer, language=language)
    right_words = words.split_answer_words(right_answer, language=language)
    shared = (Counter(split_answer_words) & Counter(right_words)).total()
    total = len(split_answer_words) + len(right_words)
    f1 = 2 * shared / total if total else 1.0
    return {"squad_f1": f1, "exact_match": float(split_answer_words == right_words)}


def compute_macro_f1(pairs: Iterable[tuple[Any, Any]]) -> float:
    """Return the mean F1 of the labels that occur as right label or answer; NaN without examples.

    pairs: (right label, answer) of each example. An answer of None counts as no label.
    """
    pairs = list(pairs)
    correct = Counter(right_answer for right_answer, answer in pairs if right_answer == answer)
    counts: Counter[Any] = Counter()
    for right_answer, answer in pairs:
        counts[right_answer] += 1
        if answer is not None:
            counts[answer] += 1
    f1 = [2 * correct[label] / count for label, count in counts.items()]
    return sum(f1) / len(f1) if f1 else math.nan
