"""Describe a possible catch or a near miss for the page that shows a new verdict."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db.models import Count, Q
from django.utils import timezone
from django.utils.translation import gettext as _

from annotation.context_picking.challenges import count_verified_by_challenge
from annotation.models import Assignment, Example, TargetOutput
from annotation.verdict.first_beat import (
    CatchFacts,
    Meaning,
    choose_ideas,
    compute_odds,
    describe_miss,
    find_meaning,
)
from annotation.writing.result_panel import TargetAnswer, round_chances
from core.data.adaptive_cache import read_or_count
from tasks.config.schema import TaskConfig
from tasks.models import Round

Outcome = Example.Outcome
RECENT_TIME = timedelta(days=7)
MAX_MISTAKES = 500
"""The number of newest mistakes of the past week among which the most confident is found."""
LABEL_RULES = ("exact_match", "string_f1", "contains", "spans_f1", "rank")
"""Verdict rules that find a model's answer wrong without asking the author."""


@dataclass(frozen=True)
class PossibleCatch:
    """A catch that people have not confirmed yet.

    answer: the model's wrong answer. confidence: its probability as text; "" if it is not shown.
    """

    answer: str
    confidence: str


@dataclass(frozen=True)
class NearMiss:
    """A try that fooled no model.

    kind: close or sure. chance: the probability of the author's label, as text. ideas: sentences of
    challenges to try, in the task's language.
    """

    kind: str
    chance: str
    ideas: Sequence[str]


def describe_possible_catch(
    example: Example, config: TaskConfig, answers: Sequence[TargetAnswer]
) -> PossibleCatch | None:
    """Return the possible catch in an example that fooled its only target, otherwise None.

    Always None in sensitive tasks, and for rules that let the author decide.
    """
    is_fooled = example.outcome == Outcome.FOOLED and example.decided_by == Example.DecidedBy.RULE
    is_plain = example.round.task.is_sensitive or config.verdict.type not in LABEL_RULES
    if not is_fooled or is_plain or len(answers) != 1 or not answers[0].words:
        return None
    return PossibleCatch(answers[0].words, answers[0].probability_text)


def build_catch_heading(catch: PossibleCatch) -> str:
    """Return the verdict as plain text, for the page's title and for screen readers."""
    if not catch.confidence:
        return _("Possible catch: the model said %(answer)s") % {"answer": catch.answer}
    values = {"answer": catch.answer, "sure": catch.confidence}
    # Translators: sure: a percentage, such as 98%
    return _("Possible catch: the model said %(answer)s, %(sure)s sure") % values


def describe_meaning(example: Example, config: TaskConfig) -> str:
    """Return the sentence about what a possible catch means; empty if there is none.

    One query, and two more where the round's numbers are not cached.
    """
    meaning = find_meaning(_read_facts(example, config))
    if meaning is None:
        return ""
    return _describe_meaning(meaning, example.round)


def _describe_meaning(meaning: Meaning, round: Round) -> str:
    if meaning == "first_on_text":
        return _("The first possible catch on this text.")
    if meaning == "most_confident":
        return _("The model's most confident mistake this week.")
    number = compute_odds(*_count_tries(round)) or 0
    # At least 2: where more than half of the tries fool the model, this is not said.
    return _("About 1 in %(number)d tries gets this far.") % {"number": number}


def _read_facts(example: Example, config: TaskConfig) -> CatchFacts:
    """Return the facts about a stored example that fooled the model."""
    earlier_catches = Example.objects.filter(
        context=example.context_id,
        outcome=Outcome.FOOLED,
        retracted_at__isnull=True,
        pk__lt=example.pk,
    )
    tries, fooled = _count_tries(example.round)
    # In a task without texts all examples share an empty one, which nobody is first on.
    is_first = config.context_role != "nothing" and not earlier_catches.exists()
    # Rounded chances are often equal, so none of them is the highest.
    confidence, mistakes, highest = None, 0, 0.0
    is_recent = example.created_at >= timezone.now() - RECENT_TIME
    if config.limits.show_confidence == "full" and is_recent:
        confidence = max(_list_confidences(example.target_outputs.all(), config), default=None)
        mistakes, highest = _read_week(example.round)
    return CatchFacts(
        is_first_on_text=is_first,
        confidence=confidence,
        week_mistakes=mistakes,
        week_highest=highest,
        round_tries=tries,
        round_fooled=fooled,
    )


def _count_tries(round: Round) -> tuple[int, int]:
    """Return how many tries the round has, and how many of these fooled the model; cached."""

    def count() -> tuple[int, int]:
        current_examples = Example.objects.filter(
            round=round, retracted_at__isnull=True, by_program=False
        )
        numbers = current_examples.aggregate(
            tries=Count("pk"), fooled=Count("pk", filter=Q(outcome=Outcome.FOOLED))
        )
        return numbers["tries"], numbers["fooled"]

    return read_or_count(f"tries-fooled:{round.pk}", count)


def _read_week(round: Round) -> tuple[int, float]:
    """Return how many of the past week's mistakes have a known probability, and the highest one.

    Only the newest MAX_MISTAKES mistakes count. The result is cached.
    """

    def count_mistakes() -> tuple[int, float]:
        outputs = TargetOutput.objects.filter(
            fooled=True,
            example__round=round,
            example__retracted_at__isnull=True,
            example__created_at__gte=timezone.now() - RECENT_TIME,
        )
        # The newest only, since a busy round has thousands in a week.
        latest_outputs = outputs.order_by("-example").only("fooled", "output", "prob")[
            :MAX_MISTAKES
        ]
        confidences = _list_confidences(latest_outputs, round.task.config)
        return len(confidences), max(confidences, default=0.0)

    return read_or_count(f"week-mistakes:{round.pk}", count_mistakes)


def _list_confidences(outputs: Any, config: TaskConfig) -> list[float]:
    """Return the known probabilities that fooled targets gave their wrong answers."""
    confidences = []
    for output in outputs:
        chance = (output.prob or {}).get(str(output.output.get(config.answer_field)))
        if output.fooled and chance is not None:
            confidences.append(chance)
    return confidences


def describe_near_miss(
    example: Example, config: TaskConfig, chances: Mapping[str, float] | None, own_chance: str
) -> NearMiss | None:
    """Return how close to a catch a try came that fooled no model; None if that may not be shown.

    chances: the first target's probabilities, by label. own_chance: the probability of the author's
    label, as text. No query if the numbers of the round's challenges are cached.
    """
    if example.outcome != Outcome.NOT_FOOLED or example.round.task.is_sensitive or not own_chance:
        return None
    shown_chances = round_chances(chances, config.limits.show_confidence)
    kind = describe_miss(shown_chances, str(example.inputs.get(config.answer_field)))
    if kind is None:
        return None
    return NearMiss(kind, own_chance, _list_ideas(example.round, config))


def _list_ideas(round: Round, config: TaskConfig) -> list[str]:
    """Return the sentences of a few challenges of which the round has few confirmed examples."""
    names = list(config.challenges)
    if not names:
        return []
    confirmed_counts = count_verified_by_challenge(round)
    ideas = choose_ideas({name: confirmed_counts.get(name, 0) for name in names})
    # Whole sentences: owners' short names, such as no_feeling_word, read badly on a page.
    return [config.challenges[name] for name in ideas]


def name_challenge(name: str) -> str:
    """Return a challenge's name as people read it.

    >>> name_challenge("several_steps")
    'several steps'
    """
    return name.replace("_", " ")


def find_discovery(assignment: Assignment) -> str:
    """Return the name of the offered challenge if nobody fooled the model with it; else empty.

    Empty in sensitive tasks. No query where the numbers of the round are cached.
    """
    round, name = assignment.round, assignment.challenge
    if not name or round.task.is_sensitive or name not in round.task.config.challenges:
        return ""
    return "" if name in _find_fooled_challenges(round) else name_challenge(name)


def _find_fooled_challenges(round: Round) -> set[str]:
    """Return the challenges with which people fooled the round's model; cached."""

    def read_names() -> set[str]:
        catches = Example.objects.filter(
            round=round,
            challenge__isnull=False,
            outcome=Outcome.FOOLED,
            retracted_at__isnull=True,
        )
        names = catches.order_by().values_list("challenge", flat=True).distinct()
        return {name for name in names if name}

    return read_or_count(f"fooled-challenges:{round.pk}", read_names)
