"""Estimate the cost of a chat model's evaluations, before any call is made."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from statistics import fmean
from typing import Any

from evaluation.contract import SetRow
from evaluation.isolation.inference.evaluate import build_perturbation_scope
from evaluation.runs.chat.asking import UNUSED_URL, check_settings, make_chat_endpoint
from evaluation.runs.chat.settings import ChatSettings
from evaluation.runs.chat.shots import read_shots
from evaluation.scoring.perturb import make_variants
from evaluation.task_shape import get_labels
from evaluation.test_sets.selectors import read_set_rows, select_newest_versions
from tasks.contexts.media.selectors import prepare_for_models
from tasks.models import Task

CHARACTERS_PER_TOKEN = 4  # in English; other languages have fewer
SAMPLE_ROWS = 20  # examples of each set
EXTRA_ANSWER_TOKENS = 12  # tokens of an answer in addition to a label


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
        call_count: float = version.size
        if chat.perturbed:
            call_count += (
                version.size * _count_variants(task, sample_rows) + version.paraphrases.count()
            )
        prompts = [
            endpoint.build_messages(prepare_for_models(task.config, task, row.inputs))
            for row in sample_rows
        ]
        requests += round(call_count)
        tokens_in += call_count * fmean(map(_count_tokens, prompts))
    tokens_out = requests * _estimate_answer_tokens(task, chat)
    cost, is_over_cap = None, False
    if chat.is_paid:
        cost = chat.compute_cost(tokens_in, tokens_out)
        is_over_cap = chat.most_cost is not None and cost > chat.most_cost
    return Estimate(requests, round(tokens_in), round(tokens_out), cost, is_over_cap)


def _count_tokens(messages: Sequence[Mapping[str, Any]]) -> float:
    return len(json.dumps(messages, ensure_ascii=False)) / CHARACTERS_PER_TOKEN


def _estimate_answer_tokens(task: Task, chat: ChatSettings) -> float:
    """Estimate the tokens of one answer: a label with a few words, otherwise the maximum."""
    labels = get_labels(task.config)
    if not labels:
        return chat.max_tokens
    return min(chat.max_tokens, max(map(len, labels)) / CHARACTERS_PER_TOKEN + EXTRA_ANSWER_TOKENS)


def _count_variants(task: Task, rows: Sequence[SetRow]) -> float:
    """Return the average number of perturbed variants of an example, over all suites together."""
    scope = build_perturbation_scope(task.config)
    families = task.config.metrics.deltas
    variant_counts = []
    for row in rows:
        suite_counts = [
            len(make_variants(row, scope, family=family, seed=0)) for family in families
        ]
        variant_counts.append(sum(suite_counts))
    return fmean(variant_counts)
