"""Store the sentence vectors of texts."""

from collections.abc import Mapping

from django.db import transaction

from annotation.models import Example, TextVector


@transaction.atomic
def store_vectors(*, encoder: str, vectors: Mapping[int, bytes]) -> int:
    """Store the examples' vectors, by id, replacing another encoder's; return how many.

    Locks the examples in order of their ids, so that no vector remains of a text that is
    erased at the same time.
    """
    # An erased text has no digest; one that is erased meanwhile waits for the lock.
    rows = Example.objects.select_for_update(of=("self",), no_key=True).exclude(digest="")
    pks = rows.filter(pk__in=vectors).order_by("pk").values_list("pk", flat=True)
    text_vectors = [TextVector(example_id=pk, encoder=encoder, values=vectors[pk]) for pk in pks]
    TextVector.objects.bulk_create(
        text_vectors,
        update_conflicts=True,
        unique_fields=["example"],
        update_fields=["encoder", "values"],
    )
    return len(text_vectors)
