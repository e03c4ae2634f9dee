"""Values for the template of the page about a person's own work."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.db.models import BooleanField, Count, ExpressionWrapper, Prefetch, Q, QuerySet
from django.utils.dateformat import format as date_words
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from annotation.models import Example, TargetOutput
from annotation.writing import result_panel
from core.accounts.models import Annotator
from core.charts import Point, column_chart
from core.days import midnight
from leaderboard.people.activity import Week
from leaderboard.people.goals import WEEK, find_monday, sum_active_seconds
from tasks.config.schema import CORRECTION_FIELD, TaskConfig
from tasks.contexts.media.markup import render_media
from tasks.models import Round
from validation.consensus.corrections import right_answers
from validation.decisions.awaited import waits_for_judges
from validation.decisions.counted import counts_of
from validation.judging.page import describe_author_claim
from validation.judging.wording import verdict_words
from validation.models import Choice, Consensus, GoldAnswer, OwnerDecision, Validation
from validation.rewards.points import day_total
from validation.rewards.scores import extract_written_text, points_of

PAGE_SIZE = 20
TREND_WEEKS = 12
MAX_COMMENTS = 10
State = Consensus.State
NOT_RETRACTED = Q(retracted_at__isnull=True)
UNDECIDED = NOT_RETRACTED & (Q(consensus__isnull=True) | Q(consensus__state=State.UNDECIDED))
DECIDED_CONDITIONS = {
    "valid": NOT_RETRACTED & Q(consensus__is_verified=True),
    "not-agreed": NOT_RETRACTED
    & Q(
        consensus__state__in=[State.DECIDED, State.NO_CONSENSUS],
        consensus__is_verified=False,
        consensus__is_sent_back=False,
    ),
    "removed": ~NOT_RETRACTED,
}
STATUS_WORDS = {
    "sent-back": gettext_lazy("Sent back to you"),
    "waiting": gettext_lazy("Waiting for judges"),
    "kept": gettext_lazy("Kept without judging"),
    "valid": gettext_lazy("Confirmed"),
    "not-agreed": gettext_lazy("Not agreed"),
    "removed": gettext_lazy("Removed"),
}
VERDICTS = {
    "correct": gettext_lazy("correct"),
    "incorrect": gettext_lazy("incorrect"),
    "flagged": gettext_lazy("“do not use this”"),
    "cannot_tell": gettext_lazy("“unclear”"),
}


@dataclass(frozen=True)
class OwnExampleRow:
    """A row of the table of the person's examples.

    points: None while the example is undecided.
    """

    example: Example
    text: str
    media: Sequence[str]
    answer: str
    models_said: Sequence[tuple[str, str]]
    status: str
    look: str
    points: float | None
    judges_said: Sequence[str]
    corrections: Sequence[str]
    comments: Sequence[str]
    owner_said: str
    owner_reason: str


def build_status_conditions(me: Annotator) -> Mapping[str, Q]:
    """Return the query condition of each status, in the order in which they are shown.

    One query, or two if there are examples since somebody last judged.
    """
    # A condition, not a list of ids: the database filters, counts and annotates with it.
    waiting_condition = waits_for_judges(Example.objects.filter(annotator=me))
    return {
        "sent-back": NOT_RETRACTED & Q(consensus__is_sent_back=True),
        "waiting": UNDECIDED & waiting_condition,
        "kept": UNDECIDED & ~waiting_condition,
        **DECIDED_CONDITIONS,
    }


def count_by_status(me: Annotator, statuses: Mapping[str, Q]) -> Mapping[str, Mapping[str, int]]:
    """Return the numbers of the person's examples by task code and status. One query.

    The counts `tries` and `confirmed` exclude what the person's programs wrote.
    """
    counts = {name: Count("pk", filter=condition) for name, condition in statuses.items()}
    counts |= counts_of("confirmed")
    # No order: it would be a part of the grouping.
    rows = Example.objects.filter(annotator=me).order_by().values_list("round__task__code")
    by_task = {}
    for code, *numbers in rows.annotate(**counts):
        by_task[code] = dict(zip(counts, numbers, strict=True))
    return by_task


def sum_counts(counts_by_task: Mapping[str, Mapping[str, int]], task: str = "") -> dict[str, int]:
    """Return the number of examples by status, and as `all`.

    task: code of the task; empty for all tasks.
    """
    totals = dict.fromkeys(["all", *STATUS_WORDS], 0)
    for code, numbers in counts_by_task.items():
        if task in ("", code):
            for status in STATUS_WORDS:
                totals[status] += numbers[status]
                totals["all"] += numbers[status]
    return totals


def sum_tiles(counts_by_task: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Return the numbers of tries, confirmed and waiting examples, over all tasks."""
    totals = {"tries": 0, "confirmed": 0, "waiting": 0}
    for numbers in counts_by_task.values():
        for name in totals:
            totals[name] += numbers[name]
    return totals


@dataclass(frozen=True)
class StatusChip:
    """A link that filters by a status, with the number of examples."""

    status: str
    words: str
    count: int
    is_shown: bool


def build_chips(
    counts_by_task: Mapping[str, Mapping[str, int]], task: str, status: str
) -> list[StatusChip]:
    """Return the filter links of a task or, if `task` is empty, of all tasks.

    status: the selected one.
    """
    words = {"all": _("All"), **STATUS_WORDS}
    numbers = sum_counts(counts_by_task, task)
    chosen_status = status or "all"
    chips = []
    for name, number in numbers.items():
        if number or name in ("all", chosen_status):
            in_address = name
            if name == "all":
                in_address = ""  # no filter
            chips.append(StatusChip(in_address, str(words[name]), number, name == chosen_status))
    return chips


def select_own_examples(
    me: Annotator, statuses: Mapping[str, Q], *, task: str = "", status: str = ""
) -> QuerySet[Example]:
    """Return the person's examples, newest first.

    task: code of a task; status: a key of `statuses`; empty for all. Each example is
    annotated with `waits`: whether it waits for judges.
    """
    waits = ExpressionWrapper(statuses["waiting"], BooleanField())
    examples = Example.objects.filter(annotator=me).annotate(waits=waits).order_by("-pk")
    if status:
        examples = examples.filter(statuses[status])
    if task:
        examples = examples.filter(round__task__code=task)
    # Prefetched, as are the decisions: a page has up to 20 rows.
    outputs = TargetOutput.objects.select_related("target")
    standing = OwnerDecision.objects.filter(withdrawn_at__isnull=True)
    return examples.select_related("round__task", "context", "consensus").prefetch_related(
        Prefetch("target_outputs", outputs), Prefetch("owner_decisions", standing)
    )


def build_example_rows(me: Annotator, examples: Sequence[Example]) -> list[OwnExampleRow]:
    """Return the table rows of examples from `select_own_examples`. Always four queries."""
    points = points_of(me, examples)
    votes: dict[int, list[Validation]] = {}
    # Votes of an example that still needs some are nobody's to see.
    closed = [example.pk for example in examples if _is_over(example)]
    for vote in Validation.objects.filter(example__in=closed):
        votes.setdefault(vote.example_id, []).append(vote)
    rows = []
    for example in examples:
        rows.append(_build_row(example, points.get(example.pk), votes.get(example.pk, [])))
    return rows


def _is_over(example: Example) -> bool:
    """Return whether no further vote is requested, so that the votes may be shown."""
    consensus = getattr(example, "consensus", None)
    return bool(consensus and not consensus.still_needed)


def _build_row(
    example: Example, points: float | None, votes: Sequence[Validation]
) -> OwnExampleRow:
    config = example.round.task.config
    decision = next(iter(example.owner_decisions.all()), None)
    answers = result_panel.build_answers(example, config, list(example.target_outputs.all()))
    owner_said = owner_reason = ""
    if decision:
        owner_said = describe_choice(config, decision, example)
        owner_reason = decision.reason
    return OwnExampleRow(
        example=example,
        text=extract_written_text(config, example.inputs),
        media=render_media(config, example.inputs),
        answer=describe_author_claim(config, example),
        models_said=[(answer.name, answer.words) for answer in answers],
        status=describe_status(example),
        look=get_status_class(example),
        points=points,
        judges_said=describe_votes(config, votes, example),
        corrections=list_corrections(votes),
        comments=list_comments(config, votes),
        owner_said=owner_said,
        owner_reason=owner_reason,
    )


def describe_status(example: Any) -> str:
    """Describe the state of an example from `select_own_examples`, such as "1 of 3"."""
    consensus = getattr(example, "consensus", None)
    if example.retracted_at:
        return _("removed")
    if consensus and consensus.is_sent_back:
        return _("sent back to you")
    if consensus and consensus.state != State.UNDECIDED:
        return _("confirmed") if consensus.is_verified else _("not agreed")
    if not example.waits:
        return _describe_unjudged(example)
    if consensus is None and example.outcome == Example.Outcome.UNDECIDED:
        return _("needs your answer")
    if consensus is None:
        return _("waiting")
    needed = consensus.votes + consensus.still_needed
    return _("waiting, %(votes)d of %(needed)d") % {"votes": consensus.votes, "needed": needed}


def _describe_unjudged(example: Example) -> str:
    """Describe why an example is not judged: it was not sampled, or its round is over."""
    if example.round.state == Round.State.RELEASED:
        return _("not judged")
    # Translators: an example that is kept without being judged
    return result_panel.describe_unjudged(example.round.task.config)[0] or _("kept")


def get_status_class(example: Example) -> str:
    """Return the CSS class of the example's status."""
    consensus = getattr(example, "consensus", None)
    if example.retracted_at:
        return "danger"
    if consensus is None or consensus.state == State.UNDECIDED:
        return ""
    return "fooled" if consensus.is_verified else "held"


def describe_choice(config: TaskConfig, choice: Choice, example: Example) -> str:
    """Return a vote or a decision in the words of the judging form."""
    if choice.label:
        return config.display(config.answer_field, choice.label)
    return verdict_words(config, choice.verdict, example) or str(VERDICTS[choice.verdict])


def describe_votes(config: TaskConfig, votes: Sequence[Validation], example: Example) -> list[str]:
    """Describe the votes, most frequent first: “2 of 3 people chose true”."""
    counts = Counter(describe_choice(config, vote, example) for vote in votes)
    sentence = ngettext(
        "%(number)d of %(total)d person chose %(words)s",
        "%(number)d of %(total)d people chose %(words)s",
        len(votes),
    )
    lines = []
    for words, number in counts.most_common():
        lines.append(sentence % {"number": number, "total": len(votes), "words": words})
    return lines


def list_corrections(votes: Sequence[Validation]) -> list[str]:
    """Return the right answers that judges typed, most frequent first."""
    answers = []
    for vote in votes:
        text = vote.metadata.get(CORRECTION_FIELD)
        if text:
            answers.append({"answer": text})
    return right_answers(answers)[:MAX_COMMENTS]


def list_comments(config: TaskConfig, votes: Sequence[Validation]) -> list[str]:
    """Return the judges' comments in alphabetical order, which hides who wrote them."""
    questions = [question.name for question in config.metadata.validate if question.kind.is_text]
    texts: list[Any] = []
    for vote in votes:
        texts += [vote.comment, vote.reveal_comment]
        texts += [vote.metadata.get(name) for name in questions]
    typed = {str(text).strip() for text in texts if text}
    return sorted(typed)[:MAX_COMMENTS]


@dataclass(frozen=True)
class TodaysWork:
    """A person's work since 00:00 UTC.

    minutes: time between submissions, without long breaks.
    """

    tries: int
    judged: int
    minutes: int
    points: float


def summarise_today(me: Annotator, points_a_vote: Mapping[int, float]) -> TodaysWork:
    """Return the person's work today, without that of their programs.

    points_a_vote: points for a judgement, by task id.
    """
    day_start = midnight()
    own = Example.objects.filter(annotator=me, by_program=False, created_at__gte=day_start)
    examples = list(own.select_related("round__task", "consensus"))
    judgement_filter = {"validator": me, "by_program": False, "created_at__gte": day_start}
    names = ("created_at", "seconds")
    votes = list(
        Validation.objects.filter(**judgement_filter).values_list(*names, "example__round__task")
    )
    # Answers to gold items count like votes, or people would know which items are gold.
    answers = GoldAnswer.objects.filter(**judgement_filter)
    votes += answers.values_list(*names, "gold__example__round__task")
    # Of each piece of work its beginning and its end.
    moments: list[datetime] = []
    for example in examples:
        moments += [example.created_at, example.shown_at or example.created_at]
    for created_at, seconds, _task in votes:
        moments += [created_at, created_at - timedelta(seconds=seconds or 0)]
    points = list(points_of(me, examples).values())
    for _created_at, _seconds, task in votes:
        points.append(points_a_vote.get(task, 1))
    minutes = round(sum_active_seconds(moments) / 60)
    tries = sum(example.retracted_at is None for example in examples)
    return TodaysWork(tries, len(votes), minutes, day_total(points))


def draw_trend(weeks: Mapping[tuple[date, int], Week]) -> SafeString:
    """Draw a chart of tries and confirmed ones in the past 12 weeks; empty without tries."""
    this_week = find_monday(datetime.now(UTC).date())
    try_points, confirmed_points = [], []
    for weeks_ago in reversed(range(TREND_WEEKS)):
        week_start = this_week - weeks_ago * WEEK
        of_week = [week for (day, _task), week in weeks.items() if day == week_start]
        label = date_words(week_start, "j M")
        try_points.append(Point(label, sum(week.tried for week in of_week)))
        confirmed_points.append(Point(label, sum(week.valid for week in of_week)))
    if not any(point.value for point in try_points):
        return SafeString()
    parts = {_("Tries"): try_points, _("Confirmed"): confirmed_points}
    return column_chart(parts, title=_("Your tries by week, and those that people confirmed"))
