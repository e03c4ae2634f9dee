"""The weak spots of the models to fool, as topics of a run.

They are looked for once for each run, on the queue, because the search takes seconds.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from django.db.models import Count, Q

from dynabench.adversaries.kinds.base import FOUND_TOPICS, WEAK_SPOTS, AdversaryKind
from dynabench.adversaries.models import AdversaryRun
from dynabench.failures.selectors import find_weak_spots
from tasks.selectors import list_targets

MAX_SPOTS = 5
"""The greatest number of weak spots of a run, so that its other topics are tried, too."""


class SpotUse(NamedTuple):
    """A weak spot among a run's topics, with its tries, and how many of these fooled the models."""

    words: str
    tries: int
    fooled: int


def find_run_options(run: AdversaryRun, kind: AdversaryKind) -> Mapping[str, Any]:
    """Return the adversary's options, with the weak spots of the run if it writes about them.

    Takes no lock: the run is leased.
    """
    options: Mapping[str, Any] = run.adversary.options
    # Adversaries from before the setting have no such option, and go on as they were.
    if not kind.has_found_topics or not options.get(WEAK_SPOTS):
        return options
    # Also for a run that continues in a slice after people wrote more.
    if run.weak_spots is None:
        run.weak_spots = _list_weak_spots(run)
        AdversaryRun.objects.filter(pk=run.pk).update(weak_spots=run.weak_spots)
    return {**options, FOUND_TOPICS: "\n".join(run.weak_spots)}


def _list_weak_spots(run: AdversaryRun) -> list[str]:
    """Return the words of the clear weak spots of the round's models, the clearest first."""
    task = run.round.task
    spots: dict[str, float] = {}
    for entry in list_targets(run.round):
        for shown in find_weak_spots(task, entry.target).slices:
            # A declared value, such as a label, is nothing to write about.
            # Others may be there by chance.
            if shown.slice.is_clear and shown.slice.words:
                words = ", ".join(shown.slice.words)
                spots[words] = min(shown.slice.p_value, spots.get(words, 1.0))
    # Two models may share a weak spot, which then has the clearer one's place.
    return sorted(spots, key=lambda words: spots[words])[:MAX_SPOTS]


def count_spot_uses(run: AdversaryRun | None) -> list[SpotUse]:
    """Return the weak spots among a run's topics with what came of them. At most one query."""
    if run is None or not run.weak_spots:
        return []
    counts = {}
    for number, words in enumerate(run.weak_spots):
        # As `Cell` writes it, before the number of the try.
        is_in_cell = Q(step__contains=f" · {words}, ")
        counts[f"tries{number}"] = Count("pk", filter=is_in_cell)
        counts[f"fooled{number}"] = Count("pk", filter=is_in_cell & Q(is_fooled=True))
    # One row with all counts, however many weak spots there are.
    found = run.logged_tries.order_by().aggregate(**counts)
    return [
        SpotUse(words, found[f"tries{number}"], found[f"fooled{number}"])
        for number, words in enumerate(run.weak_spots)
    ]
