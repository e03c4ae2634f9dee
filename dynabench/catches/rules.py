"""The slices of a catch, and the first catch of each slice. Pure."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

MAX_VALUE_CHARS = 200
CHALLENGE, TAG = "challenge", "tag"


class SliceKey(NamedTuple):
    """A value of a slice in a round. round: the round's id."""

    round: int
    slice: str
    value: str


def list_slices(
    slice_names: Iterable[str],
    label_fields: Collection[str],
    *,
    challenge: str | None,
    tag: str,
    values: Mapping[str, Any],
) -> list[tuple[str, str]]:
    """Return the (slice, value) pairs for which an example can be the first catch.

    Parameters
    ----------
    slice_names
        The slices of the task's configuration, in its order.
    label_fields
        The slices that are fields with labels. Free-text fields are left out, because every text
        would be a first.
    challenge, tag
        The challenge that the author chose, and the tag of the context. Empty if there is none.
    values
        The author's inputs by field.

    Examples
    --------
    >>> list_slices(["tag", "challenge"], [], challenge="irony", tag="", values={})
    [('challenge', 'irony')]
    """
    known_values = {CHALLENGE: challenge or "", TAG: tag}
    slices = []
    for name in slice_names:
        value: Any = known_values.get(name, "")
        if name in label_fields:
            value = values.get(name)
        if isinstance(value, str) and value:
            slices.append((name, value[:MAX_VALUE_CHARS]))
    return slices


def find_first_catches(catches: Iterable[tuple[SliceKey, int]]) -> dict[SliceKey, int]:
    """Return the first catch's id in each slice.

    catches: (slice, id) pairs in the order of decision.

    >>> key = SliceKey(1, "tag", "sport")
    >>> find_first_catches([(key, 7), (key, 3)])[key]
    7
    """
    first_ids: dict[SliceKey, int] = {}
    for key, example_id in catches:
        first_ids.setdefault(key, example_id)
    return first_ids
