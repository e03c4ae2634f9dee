"""The criteria of an example, with what its author, judges and LLM judges said of each."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from annotation.models import Example
from annotation.writing.criteria_forms import JUDGEMENT_WORDS
from core.numbers import format_percent
from evaluation.judges.llm_judges.agreement import Agreement
from evaluation.judges.llm_judges.selectors import find_prejudgements
from tasks.config.verdicts import list_criteria
from tasks.models import Task
from validation.models import Consensus, Validation


@dataclass(frozen=True, slots=True)
class CriterionDetails:
    """A criterion as owners see it. counts: how many people said met, not met and can't tell."""

    text: str
    points: int
    author: str
    counts: Sequence[int]
    decided: str


def build_criteria_values(
    example: Example, votes: Sequence[Validation], consensus: Consensus | None
) -> dict[str, Any]:
    """Return the template's values about an example's criteria; empty if it has none.

    One query for what the author said.
    """
    criteria = list_criteria(example.round.task.config.verdict, example.inputs)
    if not criteria:
        return {}
    outputs = example.target_outputs.exclude(judgements=None)
    said = outputs.values_list("judgements", flat=True).first() or ()
    decided = (consensus.judgements if consensus else None) or ()
    # Flags and imported votes say nothing of single criteria.
    given = [vote.judgements for vote in votes if vote.judgements]
    rows = []
    # Owners see points and the author's judgements, which judges do not.
    for number, criterion in enumerate(criteria):
        counts = Counter(judgements[number] for judgements in given)
        rows.append(
            CriterionDetails(
                criterion.text,
                criterion.points,
                _describe(said, number),
                [counts[judgement] for judgement in JUDGEMENT_WORDS],
                _describe(decided, number),
            )
        )
    score = consensus.score if consensus else None
    return {"criteria": rows, "criteria_score": "" if score is None else format_percent(score)}


@dataclass(frozen=True, slots=True)
class JudgeColumn:
    """A column with what an LLM judge said of each criterion. words: in the criteria's order."""

    name: str
    agreement: Agreement
    words: Sequence[str]


def list_judge_columns(task: Task, example: Example) -> list[JudgeColumn]:
    """Return a column for each LLM judge that has judged the example's criteria.

    For owners only: what a model said would sway people who still judge or review.
    """
    words = {True: JUDGEMENT_WORDS["met"], False: JUDGEMENT_WORDS["not_met"], None: _("–")}
    return [
        JudgeColumn(
            found.judge.name, found.agreement, [str(words[is_met]) for is_met in found.are_met]
        )
        for found in find_prejudgements(task, example)
    ]


def describe_judgements(judgements: Sequence[str] | None) -> str:
    """Return one person's judgements as text; "" if the vote has none."""
    words = []
    for number, judgement in enumerate(judgements or (), 1):
        words.append(f"{number}: {JUDGEMENT_WORDS[judgement]}")
    return ", ".join(words)


def _describe(judgements: Sequence[str | None], number: int) -> str:
    """Return a judgement in words; a dash where there is none."""
    judgement = judgements[number] if number < len(judgements) else None
    # Translators: in a table: nobody has said anything, or the votes decide nothing
    return str(JUDGEMENT_WORDS[judgement]) if judgement else _("–")
