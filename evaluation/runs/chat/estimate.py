"""The estimated cost of a chat model's evaluations, before any call is made."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import fmean
from typing import Any

from evaluation.contract import SetRow
from evaluation.isolation.inference.evaluate import perturbation_scope_of
from evaluation.runs.chat.asking import UNUSED_URL, check_settings, make_chat_endpoint
from evaluation.runs.chat.settings import ChatSettings
from evaluation.runs.chat.shots import read_shots
from evaluation.scoring.perturb import make_variants
from evaluation.task_shape import labels_of
from evaluation.test_sets.selectors import read_set_rows, select_newest_versions
from tasks.contexts.media.selectors import prepare_for_models
from tasks.models import Task

CHARACTERS_PER_TOKEN = 4  # of a token, in English; other languages have fewer
SAMPLE_ROWS = 20  # examples of each set
AROUND = 12  # tokens of an answer besides a label


@dataclass(frozen=True)
class Estimate:
    """The expected cost of all evaluations on the current sets, without sets of later rounds.

    requests: the number of calls. tokens: estimated at four characters each.
    cost: None if no price was entered.
    """

    requests: int
    tokens_in: int
    tokens_out: int
    cost: float | None
    over_cap: bool


def estimate_cost(task: Task, chat: ChatSettings | None) -> Estimate:
    """Estimate what all evaluations of the model would cost, from the first examples of each set.

    Raises Invalid.
    """
    chat = check_settings(task, UNUSED_URL, "", chat)
    endpoint = make_chat_endpoint(task.config, UNUSED_URL, "", chat, read_shots(task, chat))
    requests, tokens_in = 0, 0.0
    for version in select_newest_versions(task).filter(evaluation_set__may_leave=True):
        sample_rows = list(islice(read_set_rows(version), SAMPLE_ROWS))
        calls: float = version.size
        if chat.perturbed:
            calls += version.size * _count_variants(task, sample_rows) + version.paraphrases.count()
        prompts = [
            endpoint.messages(prepare_for_models(task.config, task, row.inputs))
            for row in sample_rows
        ]
        requests += round(calls)
        tokens_in += calls * fmean(map(_count_tokens, prompts))
    tokens_out = requests * _estimate_answer_tokens(task, chat)
    cost, is_over_cap = None, False
    if chat.is_paid:
        cost = chat.cost(tokens_in, tokens_out)
        is_over_cap = chat.most_cost is not None and cost > chat.most_cost
    return Estimate(requests, round(tokens_in), round(tokens_out), cost, is_over_cap)


def _count_tokens(messages: Sequence[Mapping[str, Any]]) -> float:
    return len(json.dumps(messages, ensure_ascii=False)) / CHARACTERS_PER_TOKEN


def _estimate_answer_tokens(task: Task, chat: ChatSettings) -> float:
    """Estimate the tokens of one answer: a label with a few words, otherwise the maximum."""
    labels = labels_of(task.config)
    if not labels:
        return chat.max_tokens
    return min(chat.max_tokens, max(map(len, labels)) / CHARACTERS_PER_TOKEN + AROUND)


def _count_variants(task: Task, rows: Sequence[SetRow]) -> float:
    """Return the average number of perturbed variants of an example, over all suites together."""
    reading = perturbation_scope_of(task.config)
    families = task.config.metrics.deltas
    variant_counts = []
    for row in rows:
        in_all_suites = [len(make_variants(row, reading, family=name, seed=0)) for name in families]
        variant_counts.append(sum(in_all_suites))
    return fmean(variant_counts)
