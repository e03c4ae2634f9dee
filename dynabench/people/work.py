"""Values for the template of the page about a person's own work."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.db.models import BooleanField, Count, ExpressionWrapper, Prefetch, Q, QuerySet
from django.utils.dateformat import format as date_words
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from annotation.models import Example, TargetOutput
from annotation.writing import result_panel
from core.accounts.models import Annotator, User
from core.days import get_midnight
from core.figures.figure import Figure, FigureTable, LegendItem
from core.figures.plots import ColumnPart, build_column_scene
from dynabench.catches.words import describe_first_catches
from leaderboard.people.activity import WeekWork
from leaderboard.people.goals import WEEK, find_monday, sum_active_seconds
from tasks.config.schema import CORRECTION_FIELD, TaskConfig
from tasks.contexts.media.markup import render_media
from tasks.models import Round, Task
from tasks.permissions import can_write
from validation.consensus.corrections import list_right_answers
from validation.decisions.awaited import build_waiting_condition
from validation.decisions.counted import WorkParts, build_counts
from validation.judging.page import describe_author_claim
from validation.judging.wording import describe_verdict
from validation.models import Choice, Consensus, GoldAnswer, OwnerDecision, Validation
from validation.rewards.points import compute_day_total
from validation.rewards.scores import compute_points, extract_written_text

PAGE_SIZE = 10
TREND_WEEKS = 12
MIN_SHOWN_WEEKS = 6
TREND_HEIGHT = 96
"""The height in pixels of the chart of the past weeks."""
MAX_COMMENTS = 10
MAX_DECIDED_EXAMPLES = 5
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
    "kept": gettext_lazy("Not selected for judging"),
    "valid": gettext_lazy("Confirmed"),
    "not-agreed": gettext_lazy("Not confirmed"),
    "removed": gettext_lazy("Withdrawn"),
}
VERDICTS = {
    "correct": gettext_lazy("correct"),
    "incorrect": gettext_lazy("incorrect"),
    "flagged": gettext_lazy("“not usable”"),
    "cannot_tell": gettext_lazy("“unclear”"),
}


@dataclass(frozen=True)
class OwnExampleRow:
    """A row of the table of the person's examples.

    status_class: the CSS class of the status. points: None while the example is undecided.
    first_catches: texts such as "First with numbers".
    """

    example: Example
    text: str
    media: Sequence[str]
    answer: str
    model_answers: Sequence[tuple[str, str]]
    status: str
    status_class: str
    points: float | None
    judge_answers: Sequence[str]
    corrections: Sequence[str]
    comments: Sequence[str]
    owner_answer: str
    owner_reason: str
    first_catches: Sequence[str]


def build_status_conditions(annotator: Annotator) -> Mapping[str, Q]:
    """Return the query condition of each status, in the order in which the statuses are shown.

    Takes one query, or two if examples were written since somebody last judged.
    """
    # A condition, not a list of ids: the database filters, counts and annotates with it.
    waiting_condition = build_waiting_condition(Example.objects.filter(annotator=annotator))
    return {
        "sent-back": NOT_RETRACTED & Q(consensus__is_sent_back=True),
        "waiting": UNDECIDED & waiting_condition,
        "kept": UNDECIDED & ~waiting_condition,
        **DECIDED_CONDITIONS,
    }


def count_examples_by_status(
    annotator: Annotator, statuses: Mapping[str, Q]
) -> Mapping[str, Mapping[str, int]]:
    """Return the numbers of the person's examples by task code and status. One query.

    The counts `tries`, `confirmed` and `catches` leave out what the person's programs wrote.
    """
    counts = {name: Count("pk", filter=condition) for name, condition in statuses.items()}
    counts |= build_counts("confirmed", "catches")
    # No order: it would be a part of the grouping.
    rows = Example.objects.filter(annotator=annotator).order_by().values_list("round__task__code")
    counts_by_task = {}
    for code, *numbers in rows.annotate(**counts):
        counts_by_task[code] = dict(zip(counts, numbers, strict=True))
    return counts_by_task


def sum_status_counts(
    counts_by_task: Mapping[str, Mapping[str, int]], task: str = ""
) -> dict[str, int]:
    """Return the number of examples by status, and their total under "all".

    counts_by_task: the result of `count_examples_by_status`. task: the task's code, or "" for all
    tasks.
    """
    totals = dict.fromkeys(["all", *STATUS_WORDS], 0)
    for code, numbers in counts_by_task.items():
        if task in ("", code):
            for status in STATUS_WORDS:
                totals[status] += numbers[status]
                totals["all"] += numbers[status]
    return totals


def sum_tile_counts(counts_by_task: Mapping[str, Mapping[str, int]]) -> dict[str, int]:
    """Return the numbers of tries, waiting and confirmed examples, and catches, in all tasks."""
    totals = {"tries": 0, "waiting": 0, "confirmed": 0, "catches": 0}
    for numbers in counts_by_task.values():
        for name in totals:
            totals[name] += numbers[name]
    return totals


@dataclass(frozen=True)
class StatusChip:
    """A link that filters the examples by a status, with their number."""

    status: str
    words: str
    count: int
    is_shown: bool


def build_chips(
    counts_by_task: Mapping[str, Mapping[str, int]], task: str, status: str
) -> list[StatusChip]:
    """Return the filter links for a task, or for all tasks if `task` is "".

    Statuses without examples are left out, except the selected one. status: the selected status, or
    "".
    """
    words = {"all": _("All"), **STATUS_WORDS}
    numbers = sum_status_counts(counts_by_task, task)
    chosen_status = status or "all"
    chips = []
    for name, number in numbers.items():
        if number or name in ("all", chosen_status):
            filter_value = name
            if name == "all":
                filter_value = ""  # no filter
            chips.append(StatusChip(filter_value, str(words[name]), number, name == chosen_status))
    return chips


def find_task_to_continue(user: User, annotator: Annotator) -> Task | None:
    """Return the task with an open round in which the person wrote last.

    None if there is none, or if the person may no longer write in it. One query, and one for the
    role.
    """
    own_examples = Example.objects.filter(annotator=annotator, by_program=False)
    open_examples = own_examples.filter(round__task__rounds__state=Round.State.OPEN)
    example = open_examples.select_related("round__task").order_by("-pk").first()
    if example is None or not can_write(user, example.round.task):
        return None
    return example.round.task


def select_own_examples(
    annotator: Annotator, statuses: Mapping[str, Q], *, task: str = "", status: str = ""
) -> QuerySet[Example]:
    """Return the person's examples, newest first.

    task: a task's code. status: a key of `statuses`. Each is "" for all. Each example is annotated
    with `waits`: whether it waits for judges.
    """
    waits = ExpressionWrapper(statuses["waiting"], BooleanField())
    examples = Example.objects.filter(annotator=annotator).annotate(waits=waits).order_by("-pk")
    if status:
        examples = examples.filter(statuses[status])
    if task:
        examples = examples.filter(round__task__code=task)
    # Prefetched, as are the decisions: a page has up to 20 rows.
    outputs = TargetOutput.objects.select_related("target")
    current_decisions = OwnerDecision.objects.filter(withdrawn_at__isnull=True)
    return examples.select_related("round__task", "context", "consensus").prefetch_related(
        Prefetch("target_outputs", outputs), Prefetch("owner_decisions", current_decisions)
    )


@dataclass(frozen=True)
class DecidedExample:
    """An example of the person that was decided since their last visit.

    status_class: the CSS class of its status.
    """

    example: Example
    text: str
    status: str
    status_class: str


def list_decided_examples(annotator: Annotator, since: datetime) -> list[DecidedExample]:
    """Return the person's examples decided since a time, the latest decisions first. One query.

    At most MAX_DECIDED_EXAMPLES.
    """
    decided_examples = Example.objects.filter(
        annotator=annotator, retracted_at__isnull=True, consensus__decided_at__gte=since
    ).exclude(consensus__state=State.UNDECIDED)
    examples = decided_examples.select_related("round__task", "consensus").order_by(
        "-consensus__decided_at"
    )
    rows = []
    # The list below has them all, so after a long absence the newest few are enough here.
    for example in examples[:MAX_DECIDED_EXAMPLES]:
        text = extract_written_text(example.round.task.config, example.inputs)
        status, status_class = describe_status(example), get_status_class(example)
        rows.append(DecidedExample(example, text, status, status_class))
    return rows


def build_example_rows(annotator: Annotator, examples: Sequence[Example]) -> list[OwnExampleRow]:
    """Return the table rows of examples that `select_own_examples` returned.

    Always five queries.
    """
    points = compute_points(annotator, examples)
    votes: dict[int, list[Validation]] = {}
    # Votes of an example that still needs some are nobody's to see.
    closed_ids = [example.pk for example in examples if _is_over(example)]
    for vote in Validation.objects.filter(example__in=closed_ids):
        votes.setdefault(vote.example_id, []).append(vote)
    first_catches = describe_first_catches(examples)
    rows = []
    for example in examples:
        row = _build_example_row(example, points.get(example.pk), votes.get(example.pk, []))
        rows.append(replace(row, first_catches=first_catches.get(example.pk, [])))
    return rows


def _is_over(example: Example) -> bool:
    """Return whether no more votes are requested, so that the votes may be shown."""
    consensus = getattr(example, "consensus", None)
    return bool(consensus and not consensus.still_needed)


def _build_example_row(
    example: Example, points: float | None, votes: Sequence[Validation]
) -> OwnExampleRow:
    config = example.round.task.config
    decision = next(iter(example.owner_decisions.all()), None)
    answers = result_panel.build_answers(example, config, list(example.target_outputs.all()))
    owner_answer = owner_reason = ""
    if decision:
        owner_answer = describe_choice(config, decision, example)
        owner_reason = decision.reason
    return OwnExampleRow(
        example=example,
        text=extract_written_text(config, example.inputs),
        media=render_media(config, example.inputs),
        answer=describe_author_claim(config, example),
        model_answers=[(answer.name, answer.words) for answer in answers],
        status=describe_status(example),
        status_class=get_status_class(example),
        points=points,
        judge_answers=describe_votes(config, votes, example),
        corrections=list_corrections(votes),
        comments=list_comments(config, votes),
        owner_answer=owner_answer,
        owner_reason=owner_reason,
        first_catches=[],
    )


def describe_status(example: Any) -> str:
    """Describe the state of an example of `select_own_examples`, such as "waiting, 1 of 3"."""
    consensus = getattr(example, "consensus", None)
    if example.retracted_at:
        return _("withdrawn")
    if consensus and consensus.is_sent_back:
        return _("sent back to you")
    if consensus and consensus.state != State.UNDECIDED:
        return _("confirmed") if consensus.is_verified else _("not confirmed")
    if not example.waits:
        return _describe_unjudged_example(example)
    if consensus is None and example.outcome == Example.Outcome.UNDECIDED:
        return _("needs your answer")
    if consensus is None:
        return _("waiting")
    needed_votes = consensus.votes + consensus.still_needed
    return _("waiting (%(votes)d of %(needed)d votes)") % {
        "votes": consensus.votes,
        "needed": needed_votes,
    }


def _describe_unjudged_example(example: Example) -> str:
    """Describe why an example is not judged: it was not sampled, or its round is over."""
    if example.round.state == Round.State.RELEASED:
        return _("not judged")
    phrase, _sentence = result_panel.describe_unjudged_example(example.round.task.config)
    return phrase or _("not judged")


def get_status_class(example: Example) -> str:
    """Return the CSS class of the example's status; "" while it is undecided."""
    consensus = getattr(example, "consensus", None)
    if example.retracted_at:
        return "danger"
    if consensus is None or consensus.state == State.UNDECIDED:
        return ""
    return "fooled" if consensus.is_verified else "held"


def describe_choice(config: TaskConfig, choice: Choice, example: Example) -> str:
    """Return a vote or a decision in the words of the form for judges."""
    if choice.label:
        return config.display(config.answer_field, choice.label)
    return describe_verdict(config, choice.verdict, example) or str(VERDICTS[choice.verdict])


def describe_votes(config: TaskConfig, votes: Sequence[Validation], example: Example) -> list[str]:
    """Describe the votes, the most frequent first, for example “2 of 3 judges chose true”."""
    counts = Counter(describe_choice(config, vote, example) for vote in votes)
    sentence = ngettext(
        "%(number)d of %(total)d judge chose %(words)s",
        "%(number)d of %(total)d judges chose %(words)s",
        len(votes),
    )
    lines = []
    for words, number in counts.most_common():
        lines.append(sentence % {"number": number, "total": len(votes), "words": words})
    return lines


def list_corrections(votes: Sequence[Validation]) -> list[str]:
    """Return up to MAX_COMMENTS right answers that judges entered, the most frequent first."""
    answers = []
    for vote in votes:
        text = vote.metadata.get(CORRECTION_FIELD)
        if text:
            answers.append({"answer": text})
    return list_right_answers(answers)[:MAX_COMMENTS]


def list_comments(config: TaskConfig, votes: Sequence[Validation]) -> list[str]:
    """Return up to MAX_COMMENTS comments by judges, sorted by letter to hide who wrote them."""
    questions = [question.name for question in config.metadata.validate if question.kind.is_text]
    texts: list[Any] = []
    for vote in votes:
        texts += [vote.comment, vote.reveal_comment]
        texts += [vote.metadata.get(name) for name in questions]
    typed_texts = {str(text).strip() for text in texts if text}
    return sorted(typed_texts)[:MAX_COMMENTS]


@dataclass(frozen=True)
class TodaysWork:
    """A person's work since 00:00 UTC.

    minutes: the time between submissions, without long breaks.
    """

    tries: int
    judged: int
    minutes: int
    points: float


def summarise_today(annotator: Annotator, points_per_vote: Mapping[int, float]) -> TodaysWork:
    """Return the person's work today, without the work of their programs.

    points_per_vote: the points for a judgement, by task id.
    """
    day_start = get_midnight()
    todays_examples = Example.objects.filter(
        annotator=annotator, by_program=False, created_at__gte=day_start
    )
    examples = list(todays_examples.select_related("round__task", "consensus"))
    judgement_filter = {"validator": annotator, "by_program": False, "created_at__gte": day_start}
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
    points = list(compute_points(annotator, examples).values())
    for _created_at, _seconds, task in votes:
        points.append(points_per_vote.get(task, 1))
    minutes = round(sum_active_seconds(moments) / 60)
    tries = sum(example.retracted_at is None for example in examples)
    return TodaysWork(tries, len(votes), minutes, compute_day_total(points))


def build_trend_figure(weeks: Mapping[tuple[date, int], WeekWork]) -> Figure | None:
    """Return a chart of the tries in the past TREND_WEEKS weeks, by outcome; None without tries.

    Weeks before the first try are left out, down to MIN_SHOWN_WEEKS.
    """
    this_week = find_monday(datetime.now(UTC).date())
    labels: list[str] = []
    parts_by_week: list[WorkParts] = []
    for weeks_ago in reversed(range(TREND_WEEKS)):
        week_start = this_week - weeks_ago * WEEK
        # Over all tasks, which the weeks keep apart.
        numbers = [0] * len(WorkParts._fields)
        for (day, _task), week in weeks.items():
            if day == week_start:
                numbers = [sum(pair) for pair in zip(numbers, week.parts, strict=True)]
        labels.append(date_words(week_start, "j M"))
        parts_by_week.append(WorkParts(*numbers))
    active_weeks = [number for number, parts in enumerate(parts_by_week) if sum(parts)]
    if not active_weeks:
        return None
    # Somebody who began lately sees their weeks, not a row of empty ones before them.
    first = min(active_weeks[0], TREND_WEEKS - MIN_SHOWN_WEEKS)
    labels, parts_by_week = labels[first:], parts_by_week[first:]
    titles = {
        "catch bar": _("Catches"),
        "step bar": _("Confirmed"),
        "held bar": _("Waiting"),
        "refuted bar": _("Not confirmed"),
    }
    columns, rows = [], []
    for number, (role, words) in enumerate(titles.items()):
        columns.append(ColumnPart(role, words, [parts[number] for parts in parts_by_week]))
    for label, parts in zip(labels, parts_by_week, strict=True):
        rows.append((label, [str(number) for number in parts]))
    return Figure(
        name="weeks",
        title=describe_best_week([sum(parts) for parts in parts_by_week]),
        subtitle=_("Your tries by week"),
        scene=build_column_scene(labels, columns, height=TREND_HEIGHT, css_class="weeks"),
        table=FigureTable(list(titles.values()), rows),
        legend=[LegendItem(role, words) for role, words in titles.items()],
    )


def describe_best_week(tries: Sequence[int]) -> str:
    """Return a sentence about the week with the most tries. tries: by week, the newest last."""
    max_tries = max(tries, default=0)
    sentence = ngettext("Best week: %(number)d try", "Best week: %(number)d tries", max_tries)
    return sentence % {"number": max_tries}
