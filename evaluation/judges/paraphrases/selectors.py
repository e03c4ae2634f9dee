"""Which examples of a set are said in other words, and what waits to be checked. Reads alone."""

import hashlib
from collections.abc import Iterator, Mapping
from heapq import nsmallest
from typing import Any, NamedTuple

import orjson
from django.db.models import Count

from evaluation.contract import SetRow
from evaluation.models import EvaluationSet, EvaluationSetVersion, Paraphrase, Paraphrasing
from evaluation.sets.selectors import set_rows
from tasks.config.schema import TaskConfig

State = Paraphrase.State
SETTLED = (State.WAITING, State.KEPT)
"""Of an example with such a paraphrase no model is asked for another one."""


class ToCheck(NamedTuple):
    """A paraphrase beside its example. texts: (field, text before, text now)."""

    paraphrase: Paraphrase
    texts: list[tuple[str, str, str]]
    others: list[tuple[str, str]]
    gold: list[str]


def base_of(row: SetRow) -> str:
    """A digest of what a paraphrase is checked against: the inputs and the right answers."""
    return hashlib.sha256(orjson.dumps([row.inputs, row.gold])).hexdigest()


def rows_to_say(job: Paraphrasing, version: EvaluationSetVersion) -> list[SetRow]:
    """Examples that the job has still to say otherwise, drawn by hash.

    Those of which a model has failed before come last.
    """
    all_of_set = Paraphrase.objects.filter(job__evaluation_set=job.evaluation_set_id)
    mine = set(job.paraphrases.values_list("uid", flat=True))
    done = mine | set(all_of_set.filter(state__in=SETTLED).values_list("uid", flat=True))
    tried = set(all_of_set.values_list("uid", flat=True))
    rows = (row for row in set_rows(version) if row.uid not in done)

    def order(row: SetRow) -> tuple[bool, bytes]:
        return row.uid in tried, hashlib.sha256(row.uid.encode()).digest()

    return nsmallest(max(0, job.size - len(mine)), rows, key=order)


def counts(one: EvaluationSet) -> dict[str, int]:
    """How many paraphrases of a set are in each state; zero where there are none."""
    rows = Paraphrase.objects.filter(job__evaluation_set=one).values_list("state")
    found = dict(rows.annotate(n=Count("pk")).order_by())
    return {state.value: found.get(state.value, 0) for state in State}


def fitting(version: EvaluationSetVersion, state: str) -> Iterator[tuple[Paraphrase, SetRow]]:
    """The paraphrases in a state whose examples are in the version as they were read then."""
    rows = Paraphrase.objects.filter(job__evaluation_set=version.evaluation_set_id, state=state)
    found = {one.uid: one for one in rows.order_by("pk")}
    if not found:
        return
    for row in set_rows(version):
        one = found.get(row.uid)
        if one and one.base == base_of(row):
            yield one, row


def beside(config: TaskConfig, one: Paraphrase, row: SetRow) -> ToCheck:
    """What somebody reads who checks a paraphrase: all that models read, and the right answers."""
    media = config.media_fields
    texts = [
        (config.component(name).others_title, str(row.inputs[name]), new)
        for name, new in one.fields.items()
    ]
    others = [
        (config.component(name).others_title, str(row.inputs[name]))
        for name in config.model_fields
        if name not in one.fields and name not in media and row.inputs.get(name)
    ]
    return ToCheck(one, texts, others, [_words(gold) for gold in row.gold])


def _words(gold: Any) -> str:
    text = gold["text"] if isinstance(gold, Mapping) and "text" in gold else gold
    return ", ".join(map(str, text)) if isinstance(text, list) else str(text)
