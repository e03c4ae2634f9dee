"""What the evaluations of a chat model will cost, before anybody is asked."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import fmean
from typing import Any

from evaluation.contract import SetRow
from evaluation.isolation.inference.evaluate import reading_of
from evaluation.runs.chat.asking import NOWHERE, chat_endpoint, checked
from evaluation.runs.chat.settings import ChatSettings
from evaluation.runs.chat.shots import shown
from evaluation.scoring.perturb import variants
from evaluation.sets.selectors import newest_versions, set_rows
from evaluation.task_shape import labels_of
from tasks.contexts.media.selectors import for_models
from tasks.models import Task

CHARACTERS = 4  # of a token, in English; other languages have fewer
LOOKED_AT = 20  # examples of each set
AROUND = 12  # tokens of an answer besides a label


@dataclass(frozen=True)
class Estimate:
    """Of all evaluations on the sets of now; later rounds come on top. cost: None without a price.

    requests: calls; tokens as four characters each.
    """

    requests: int
    tokens_in: int
    tokens_out: int
    cost: float | None
    over_cap: bool


def estimate(task: Task, chat: ChatSettings | None) -> Estimate:
    """Estimate what all evaluations of the model would cost, from the first examples of each set.

    Raises Invalid.
    """
    chat = checked(task, NOWHERE, "", chat)
    endpoint = chat_endpoint(task.config, NOWHERE, "", chat, shown(task, chat))
    requests, tokens_in = 0, 0.0
    for version in newest_versions(task).filter(evaluation_set__may_leave=True):
        first = [*islice(set_rows(version), LOOKED_AT)]
        calls: float = version.size
        if chat.perturbed:
            calls += version.size * _variants(task, first) + version.paraphrases.count()
        asked = [endpoint.messages(for_models(task.config, task, one.inputs)) for one in first]
        requests += round(calls)
        tokens_in += calls * fmean(map(_tokens, asked))
    tokens_out = requests * _answer_tokens(task, chat)
    cost = chat.cost(tokens_in, tokens_out) if chat.is_paid else None
    over = cost is not None and chat.most_cost is not None and cost > chat.most_cost
    return Estimate(requests, round(tokens_in), round(tokens_out), cost, over)


def _tokens(messages: Sequence[Mapping[str, Any]]) -> float:
    return len(json.dumps(messages, ensure_ascii=False)) / CHARACTERS


def _answer_tokens(task: Task, chat: ChatSettings) -> float:
    """Estimate the tokens of one answer: a label with some words, or else the maximum."""
    labels = labels_of(task.config)
    if not labels:
        return chat.max_tokens
    return min(chat.max_tokens, max(map(len, labels)) / CHARACTERS + AROUND)


def _variants(task: Task, rows: Sequence[SetRow]) -> float:
    """Return how many perturbed variants an example has on average, in all suites together."""
    reading = reading_of(task.config)
    families = task.config.metrics.deltas
    return fmean(
        sum(len(variants(row, reading, family=one, seed=0)) for one in families) for row in rows
    )
