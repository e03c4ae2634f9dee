"""What is counted of examples, under one word each: tries, fooled, judged, decided, confirmed.

Pages, charts, files and the API count by these conditions alone; the words are defined in
`validation.rates.terms`.
"""

from collections.abc import Mapping
from typing import Any

from django.db.models import Count, Q

from annotation.models import Example
from validation.models import Consensus

CONDITIONS: Mapping[str, Mapping[str, Any]] = {
    "fooled": {"outcome": Example.Outcome.FOOLED},
    "judged": {"consensus__votes__gt": 0},
    "decided": {"consensus__state": Consensus.State.DECIDED},
    "confirmed": {"consensus__is_verified": True},
    "catches": {"consensus__is_validated_error": True},
}
"""What makes a try one of these, by the word for them."""
STANDS = {"retracted_at__isnull": True}
TRIES = {**STANDS, "by_program": False}


def is_try(path: str = "") -> Q:
    """Return the condition that a row is a try: submitted by a person and not retracted.

    path: the lookup path from the counted rows to the examples, such as `examples__`.
    """
    return _prefix_conditions(path, TRIES)


def is_counted(word: str, path: str = "") -> Q:
    """Return the condition that a try counts under one of the keys of CONDITIONS."""
    return _prefix_conditions(path, CONDITIONS[word])


def counts_of(*words: str, path: str = "") -> dict[str, Count]:
    """Return aggregates that count the tries of a query, and the tries under each of these keys."""
    aggregates = {"tries": Count(f"{path}pk", filter=is_try(path))}
    for word in words:
        aggregates[word] = Count(f"{path}pk", filter=is_try(path) & is_counted(word, path))
    return aggregates


def _prefix_conditions(path: str, conditions: Mapping[str, Any]) -> Q:
    return Q(**{f"{path}{name}": value for name, value in conditions.items()})
