"""Read how much the votes on a study's examples agree."""

from collections import defaultdict
from collections.abc import Collection

from django.db.models import Count

from dynabench.studies.rules.agreement import compute_agreement
from validation.models import Validation


def measure_agreement(example_ids: Collection[int]) -> dict[int, float]:
    """Return the agreement of the votes on each example with two votes or more, by its id."""
    votes = Validation.objects.filter(example__in=example_ids).order_by()
    counts: dict[int, list[int]] = defaultdict(list)
    groups = votes.values_list("example", "label", "verdict").annotate(n=Count("pk"))
    for example_id, _label, _verdict, count in groups:
        counts[example_id].append(count)
    shares = {example_id: compute_agreement(sizes) for example_id, sizes in counts.items()}
    return {example_id: share for example_id, share in shares.items() if share is not None}
