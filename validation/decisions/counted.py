"""The conditions by which tries are counted: fooled, judged, decided, confirmed, catches.

Pages, charts, files and the API count only by these conditions. `validation.rates.terms` defines
the terms.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from django.db.models import Count, F, Q

from annotation.models import Example
from validation.models import Consensus

CONDITIONS: Mapping[str, Mapping[str, Any]] = {
    "fooled": {"outcome": Example.Outcome.FOOLED},
    "judged": {"consensus__votes__gt": 0},
    "decided": {"consensus__state": Consensus.State.DECIDED},
    "confirmed": {"consensus__is_verified": True},
    "catches": {"consensus__is_validated_error": True},
}
"""The conditions on a try, by the term under which it is counted."""
STANDING_CONDITIONS = {"retracted_at__isnull": True}
JUDGED_EXAMPLE_STATES = (Consensus.State.DECIDED, Consensus.State.NO_CONSENSUS)
TRY_CONDITIONS = {**STANDING_CONDITIONS, "by_program": False}


def build_try_condition(path: str = "") -> Q:
    """Return the condition that a row is a try: submitted by a person and not retracted.

    path: the lookup path from the counted rows to the examples, such as `examples__`.
    """
    return _prefix_conditions(path, TRY_CONDITIONS)


def build_measure_condition(word: str, path: str = "") -> Q:
    """Return the condition that a try meets the condition with this name.

    word: a key of CONDITIONS. path: see `build_try_condition`.
    """
    return _prefix_conditions(path, CONDITIONS[word])


def build_counts(*words: str, path: str = "") -> dict[str, Count]:
    """Return aggregates that count a query's tries: all, and those that meet each condition.

    words: keys of CONDITIONS. path: see `build_try_condition`.
    """
    aggregates = {"tries": Count(f"{path}pk", filter=build_try_condition(path))}
    for word in words:
        aggregates[word] = Count(
            f"{path}pk", filter=build_try_condition(path) & build_measure_condition(word, path)
        )
    return aggregates


def build_weight_expression() -> Any:
    """Return an expression for the weight by which an example counts in its round's rates.

    The probability of its context if all had the same, divided by the probability with which it
    was drawn. NULL if the context was not drawn; then the weight is 1.
    """
    return 1.0 / (F("context_probability") * F("context_choices"))


class TryParts(NamedTuple):
    """Counts of tries in four disjoint groups; their sum is the number of tries.

    held: the model was right. waiting: the model was wrong, and people have not decided. catches:
    the model was wrong, and people confirm it. refuted: the model seemed wrong, and people do not
    confirm it.
    """

    held: int = 0
    waiting: int = 0
    catches: int = 0
    refuted: int = 0

    @property
    def tries(self) -> int:
        """Return the number of all tries."""
        return sum(self)

    @property
    def wrong(self) -> int:
        """Return the number of tries after which the model counts as wrong."""
        return self.waiting + self.catches + self.refuted

    @property
    def decided(self) -> int:
        """Return how many of the `wrong` tries people have decided."""
        return self.catches + self.refuted


def build_part_counts() -> dict[str, Count]:
    """Return aggregates that count the tries of a query in the parts of `TryParts`, in order.

    The conditions exclude each other, because pages stack the parts. Catches are counted first,
    because only people decide on them if nobody claims anything about the model's answer.
    """
    catch = build_measure_condition("catches")
    # Excludes catches, so that each try is in one part only.
    fooled = ~catch & build_measure_condition("fooled")
    is_judged = Q(consensus__state__in=JUDGED_EXAMPLE_STATES)
    conditions = {
        "part_held": ~catch & ~build_measure_condition("fooled"),
        "part_waiting": fooled & ~is_judged,
        "part_catches": catch,
        "part_refuted": fooled & is_judged,
    }
    aggregates = {}
    for name, condition in conditions.items():
        aggregates[name] = Count("pk", filter=build_try_condition() & condition)
    return aggregates


class WorkParts(NamedTuple):
    """Counts of a person's tries in four disjoint groups.

    caught: people confirm the example, and the model was wrong. confirmed: people confirm it, and
    the model was right. waiting: not decided yet. refuted: people disagree with the author.
    """

    caught: int = 0
    confirmed: int = 0
    waiting: int = 0
    refuted: int = 0


def build_work_counts() -> dict[str, Count]:
    """Return aggregates that count tries in the parts of `WorkParts`, in order."""
    catch = build_measure_condition("catches")
    # A catch is also confirmed, but counts only as a catch.
    confirmed = ~catch & build_measure_condition("confirmed")
    is_judged = Q(consensus__state__in=JUDGED_EXAMPLE_STATES)
    conditions = {
        "work_caught": catch,
        "work_confirmed": confirmed,
        "work_waiting": ~catch & ~build_measure_condition("confirmed") & ~is_judged,
        "work_refuted": ~catch & ~build_measure_condition("confirmed") & is_judged,
    }
    aggregates = {}
    for name, condition in conditions.items():
        aggregates[name] = Count("pk", filter=build_try_condition() & condition)
    return aggregates


def _prefix_conditions(path: str, conditions: Mapping[str, Any]) -> Q:
    return Q(**{f"{path}{name}": value for name, value in conditions.items()})
