"""Released choices among texts as preference data for training, in the DPO format that TRL reads.

A row gives a pair for each text that its right answer prefers to another: the chosen text against
each of the others, or each text of a ranking against those behind it. Only answers that others
confirmed count. Nothing is stored: the pairs are made of a file of the release while it is sent,
so that whoever may not read a split's labels gets no pairs of it either.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from evaluation.dataset_releases.rows import convert_to_json, convert_to_text
from evaluation.dataset_releases.split_files import UNLABELLED
from tasks.config.components import FIELD_TYPES, Component
from tasks.config.field_types.tool_calls import build_message
from tasks.config.schema import TaskConfig

PAIR_FORMAT = "dpo"
"""The format's name in a URL, as for the battles of an arena."""
Message = Mapping[str, Any]


def contains_pairs(file_name: str, config: TaskConfig) -> bool:
    """Return whether a file of a release has labelled rows whose answers choose among texts."""
    stem, _dot, ending = file_name.partition(".")
    is_labelled = ending == "jsonl" and not stem.endswith(UNLABELLED)
    return is_labelled and config.get_component(config.answer_field).type == "candidates"


def write_pair_lines(lines: Iterable[bytes], config: TaskConfig) -> Iterator[str]:
    """Yield the pairs of a split's lines, one JSON object a line. config: of the task."""
    for line in lines:
        for pair in _yield_pairs(json.loads(line), config):
            yield f"{convert_to_json(pair)}\n"


def _yield_pairs(row: Mapping[str, Any], config: TaskConfig) -> Iterator[dict[str, Any]]:
    # A tombstone has no label, and an answer that nobody judged is one person's word.
    if row["withdrawn"] or not row["validated"]:
        return
    values = json.loads(row["context"]["context_json"]) | json.loads(row["input_json"])
    component = config.get_component(config.answer_field)
    offered_texts = values.get(component.reference) or ()
    prompt = _build_prompt(values, config, component)
    # TRL learns from answers to a prompt, so texts without one teach nothing.
    if not prompt:
        return
    for better, worse in _list_preferences(row["label"], offered_texts, component):
        yield {
            "id": f"{row['uid']}-{offered_texts.index(better) + 1}-"
            f"{offered_texts.index(worse) + 1}",
            "prompt": prompt,
            "chosen": [{"role": "assistant", "content": better}],
            "rejected": [{"role": "assistant", "content": worse}],
        }


def _list_preferences(
    label: str, offered_texts: Sequence[str], component: Component
) -> list[tuple[str, str]]:
    """Return (better, worse) for each pair that an answer decides.

    Empty if the answer is none of the offered texts, such as one that a judge typed.
    """
    if not component.rank:
        if label not in offered_texts:
            return []
        return [(label, text) for text in offered_texts if text != label]
    try:
        ranked_texts = json.loads(label)
    except ValueError:
        return []
    # Each once: a part of an order says nothing about the texts that it lacks.
    is_list = isinstance(ranked_texts, list) and len(ranked_texts) == len(offered_texts)
    if not is_list or any(text not in ranked_texts for text in offered_texts):
        return []
    # Combinations keep the order, so the first of each pair has the better place.
    return list(combinations(ranked_texts, 2))


def _build_prompt(
    values: Mapping[str, Any], config: TaskConfig, answer: Component
) -> list[Message]:
    """Return what the texts answer as messages; empty if the row has nothing of it.

    A conversation alone keeps its turns. Otherwise one message has the fields that models read,
    with their names if there are several. Pictures and recordings are left out.
    """
    components = []
    for name in config.model_fields:
        component = config.get_component(name)
        if values.get(name) and name != answer.reference and not component.is_media:
            components.append(component)
    if [component.type for component in components] == ["chat"]:
        return [build_message(turn) for turn in values[components[0].name]]
    texts = {}
    for component in components:
        value = values[component.name]
        # The turns of a conversation are lines, as judges read them.
        if component.type == "chat":
            value = FIELD_TYPES["chat"].display(component, value)
        texts[component.name] = convert_to_text(value)
    lines = [f"{name}: {text}" for name, text in texts.items()]
    if len(texts) == 1:
        lines = list(texts.values())
    return [{"role": "user", "content": "\n".join(lines)}] if lines else []
