"""The columns of rows whose answers were judged criterion by criterion."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import orjson
from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast

from annotation.models import TargetOutput
from tasks.config.criteria import JUDGEMENTS
from tasks.config.schema import TaskConfig
from tasks.config.verdicts import list_criteria
from validation.models import Consensus, Validation


class JudgedCriteria(NamedTuple):
    """The judgements of an example's criteria, each list in the order of the criteria.

    votes: of each person the judgements, `user` or `program`, and the person's pseudonym.
    """

    author: Sequence[str]
    consensus: Sequence[str | None]
    score: float | None
    votes: Sequence[tuple[Sequence[str], str, str | None]]


class CriteriaColumns:
    """A maker of the columns `criteria` and `criteria_score`, which only some tasks have."""

    def __init__(self, config: TaskConfig, get_pseudonym: Callable[[str, int | None], Any]) -> None:
        self._config, self._get_pseudonym = config, get_pseudonym
        self._is_needed = config.verdict.type == "criteria"

    def read(self, example_ids: Sequence[int]) -> Mapping[int, JudgedCriteria]:
        """Return what was said of the criteria of these examples, by example id.

        Makes three queries, none if the task has no criteria. example_ids: in ascending order.
        """
        if not self._is_needed:
            return {}
        id_range = {"example__gte": example_ids[0], "example__lte": example_ids[-1]}
        votes: dict[int, list[tuple[Sequence[str], str, str | None]]] = {}
        rows = Validation.objects.filter(**id_range, judgements__isnull=False).order_by("pk")
        for pk, text, validator, by_program in _select(rows, "validator_id", "by_program"):
            kind = "program" if by_program else "user"
            name = self._get_pseudonym("validator", validator)
            votes.setdefault(pk, []).append((orjson.loads(text), kind, name))
        # Backwards, so that the first target's stays, as in other columns.
        outputs = TargetOutput.objects.filter(**id_range, judgements__isnull=False)
        authors = {pk: orjson.loads(text) for pk, text in _select(outputs.order_by("-position"))}
        decisions = Consensus.objects.filter(**id_range, judgements__isnull=False)
        consensus = {
            pk: (orjson.loads(text), score) for pk, text, score in _select(decisions, "score")
        }
        judged = {}
        for pk in {*votes, *authors, *consensus}:
            decided, score = consensus.get(pk, ((), None))
            judged[pk] = JudgedCriteria(authors.get(pk, ()), decided, score, votes.get(pk, ()))
        return judged

    def make(self, inputs: Mapping[str, Any], judged: JudgedCriteria | None) -> dict[str, Any]:
        """Return the columns of an example; empty if the task has no criteria.

        judged: None if nobody has said anything of its criteria.
        """
        if not self._is_needed:
            return {}
        judged = judged or JudgedCriteria((), (), None, ())
        rows = []
        for number, criterion in enumerate(list_criteria(self._config.verdict, inputs)):
            given = [(judgements[number], kind, name) for judgements, kind, name in judged.votes]
            counts = Counter(judgement for judgement, _, _ in given)
            row: dict[str, Any] = {"text": criterion.text, "points": criterion.points}
            row["author"] = _pick(judged.author, number)
            row["consensus"] = _pick(judged.consensus, number)
            row |= {judgement: counts[judgement] for judgement in JUDGEMENTS}
            rows.append(row | {"judgements": given})
        return {"criteria": rows, "criteria_score": judged.score}


def _select(rows: QuerySet[Any], *names: str) -> Iterator[tuple[Any, ...]]:
    """Yield the example's id, the judgements as JSON text, and the named columns of each row."""
    texts = rows.annotate(text=Cast("judgements", TextField()))
    yield from texts.values_list("example_id", "text", *names)


def _pick(judgements: Sequence[str | None], number: int) -> str | None:
    # Shorter where nobody said anything, as of imported rows.
    return judgements[number] if number < len(judgements) else None
