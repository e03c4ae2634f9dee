"""Reads of the owners' pages: what is to be reviewed, and everything about one example."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db import models
from django.db.models import Count, Q

from annotation import panels
from annotation.models import Example
from dynabench.accounts.people import shown_name
from tasks.models import Round, Task
from tasks.schema import Component, TaskConfig
from validation.assignment import is_sampled_for_review
from validation.models import Choice, Consensus, Gold, Validation, Verdict
from validation.policy_preview import Standing

PAGE = 20
LOOKED_AT = 1000
"""Most examples that one page looks at to find those that need a look."""
State = Consensus.State
COLUMNS = (
    *("pk", "example__uuid", "example__by_program"),
    *("state", "verdict", "votes", "decided_by"),
)


class Kind(models.TextChoices):
    """Why an example stands in the review queue."""

    ALL = "all", "Sample and disagreements"
    NO_CONSENSUS = "no-consensus", "No consensus after all votes"
    SPLIT = "split", "Decided by one vote"
    FLAGGED = "flagged", "Flagged, or nobody could tell"
    SAMPLE = "sample", "Sample (5% of what is judged)"
    OWNER = "owner", "Decided by owners"


NOT_USABLE = [Verdict.FLAGGED, Verdict.CANNOT_TELL]
JUDGED = Q(state__in=[State.DECIDED, State.NO_CONSENSUS], votes__gt=0) & ~Q(
    decided_by=Consensus.DecidedBy.OWNER
)
MAY_BE = {
    Kind.ALL: JUDGED,
    Kind.NO_CONSENSUS: JUDGED & Q(state=State.NO_CONSENSUS),
    Kind.SPLIT: JUDGED & Q(state=State.DECIDED, votes__gte=3),
    Kind.FLAGGED: JUDGED & Q(state=State.DECIDED, verdict__in=NOT_USABLE),
    Kind.SAMPLE: JUDGED,
    Kind.OWNER: Q(decided_by=Consensus.DecidedBy.OWNER),
}


@dataclass(frozen=True, slots=True)
class Item:
    """One example of the review queue and why it is there."""

    pk: int
    uuid: UUID
    votes: int
    by_program: bool
    kinds: frozenset[Kind]

    @property
    def reasons(self) -> list[str]:
        """The reasons in words, in the order of `Kind`."""
        return [kind.label for kind in Kind if kind in self.kinds]


@dataclass(frozen=True, slots=True)
class Found:
    """A page of the queue; `after`: the id from which to go on, None at the end."""

    items: Sequence[Item] = field(default_factory=list)
    after: int | None = None


def to_review(rounds: Iterable[Round], kind: Kind, after: int = 0, size: int = PAGE) -> Found:
    """The next examples to review behind the id `after`, oldest first. Two queries.

    Looks at LOOKED_AT examples at most, so that a page costs the same in a round of a million; then
    `items` may be few, or none, though `after` says that there is more to look at.
    """
    rows = list(
        Consensus.objects.filter(
            MAY_BE[kind], round__in=list(rounds), pk__gt=after, example__retracted_at__isnull=True
        )
        .order_by("pk")
        .values(*COLUMNS)[:LOOKED_AT]
    )
    narrow = _decided_by_one([row["pk"] for row in rows if row["votes"] >= 3])
    items: list[Item] = []
    for row in rows:
        kinds = _kinds(row, is_narrow=row["pk"] in narrow)
        if kind in kinds or (kind == Kind.ALL and kinds):
            items.append(
                Item(
                    row["pk"],
                    row["example__uuid"],
                    row["votes"],
                    row["example__by_program"],
                    frozenset(kinds),
                )
            )
        if len(items) == size:
            return Found(items, row["pk"] if row != rows[-1] or len(rows) == LOOKED_AT else None)
    return Found(items, rows[-1]["pk"] if len(rows) == LOOKED_AT else None)


def _kinds(row: Mapping[str, Any], *, is_narrow: bool) -> set[Kind]:
    if row["decided_by"] == Consensus.DecidedBy.OWNER:
        return {Kind.OWNER}
    holds = {
        Kind.NO_CONSENSUS: row["state"] == State.NO_CONSENSUS,
        Kind.SPLIT: row["state"] == State.DECIDED and is_narrow,
        Kind.FLAGGED: row["verdict"] in NOT_USABLE,
        Kind.SAMPLE: is_sampled_for_review(row["example__uuid"]),
    }
    return {kind for kind, true in holds.items() if true}


def _decided_by_one(examples: Sequence[int]) -> set[int]:
    """Those whose first choice has one vote more than the second, or as many."""
    counts: dict[int, list[int]] = {}
    rows = Validation.objects.filter(example__in=examples).order_by()
    for pk, _, _, times in rows.values_list("example", "label", "verdict").annotate(Count("pk")):
        counts.setdefault(pk, []).append(times)
    return {pk for pk, n in counts.items() if len(n) > 1 and sorted(n)[-1] - sorted(n)[-2] <= 1}


def shown_texts(task: Task, examples: Iterable[int]) -> Mapping[int, str]:
    """What the author wrote, in one line, by the example's id. One query."""
    rows = Example.objects.filter(pk__in=list(examples)).values_list("pk", "inputs")
    config = task.config
    return {
        pk: " | ".join(words for _, words in _answers(config, config.input, inputs))
        for pk, inputs in rows
    }


@dataclass(frozen=True, slots=True)
class ShownVote:
    """A vote as owners read it; `notes` are (title, words) of all that was said besides."""

    by: str
    said: str
    seconds: float | None
    notes: Sequence[tuple[str, str]]
    by_program: bool


def case_file(task: Task, example: Example) -> dict[str, Any]:
    """Everything about one example, for the template. Five queries."""
    config = task.config
    votes = example.validations.select_related("validator").order_by("pk")
    decisions = list(example.owner_decisions.select_related("owner").order_by("-pk"))
    consensus = Consensus.objects.filter(pk=example.pk).first()
    return {
        "shown_context": panels.shown_context(config, example.context),
        "written": _answers(config, config.input, example.inputs),
        "explained": _answers(config, config.metadata.create, example.metadata),
        "author": shown_name(example.annotator),
        "answers": _target_answers(config, example),
        "votes": [_shown_vote(config, vote) for vote in votes],
        "decisions": [(decision, said(config, decision)) for decision in decisions],
        "standing": next((d for d in decisions if d.withdrawn_at is None), None),
        "consensus": consensus,
        "gold": Gold.objects.filter(pk=example.pk).first(),
        "decided": said(config, consensus) if consensus else "",
    }


def said(config: TaskConfig, choice: Choice | Standing) -> str:
    """A label or verdict in words; empty where there is none."""
    if choice.verdict:
        return choice.verdict.replace("_", " ")
    labelled = next((name for name in config.target_fields if config.labels(name)), None)
    return config.display(labelled, choice.label) if labelled else choice.label


def _answers(
    config: TaskConfig, components: Iterable[Component], values: Mapping[str, Any]
) -> list[tuple[str, str]]:
    return [
        (component.title.removeprefix("Your ").capitalize(), words)
        for component in components
        if (words := config.display(component.name, values.get(component.name)))
    ]


def _target_answers(config: TaskConfig, example: Example) -> list[tuple[str, str, str]]:
    """(target, what it said, whether that fooled it) of each target."""
    words = {True: "fooled", False: "not fooled", None: "not known whether fooled"}
    name = config.answer_field
    return [
        (output.target.name, config.display(name, output.output.get(name)), words[output.fooled])
        for output in example.target_outputs.select_related("target")
    ]


def _shown_vote(config: TaskConfig, vote: Validation) -> ShownVote:
    reveal = vote.get_reveal_display() if vote.reveal else ""
    kind, _, value = vote.reveal_choice.partition(":")
    changed = said(config, Validation(**{kind: value})) if value else ""
    notes = [
        ("Flagged because", vote.get_flag_reason_display() if vote.flag_reason else ""),
        ("Comment", vote.comment),
        *_answers(config, config.metadata.validate, vote.metadata),
        ("After seeing the author's label", f"{reveal} {changed}".strip()),
        ("Why", vote.reveal_comment),
    ]
    told = [(title, words) for title, words in notes if words]
    name = shown_name(vote.validator)
    return ShownVote(name, said(config, vote), vote.seconds, told, vote.by_program)
