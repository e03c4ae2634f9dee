"""Which examples are judged, and in what order: by chance, yet always the same for an example."""

import hmac
from hashlib import sha256
from uuid import UUID


def order_key(uuid: UUID) -> int:
    """The place of an example among equals: 63 bits that nobody can choose or foresee."""
    return int.from_bytes(sha256(uuid.bytes).digest()[:8]) >> 1


def is_in_share(uuid: UUID, share: float) -> bool:
    """Whether an example is in this share (0-1) of all. A larger share holds the smaller one.

    Other bits than those of the order, so that the share has no place of its own in the queue.
    """
    return int.from_bytes(sha256(uuid.bytes).digest()[8:16]) < share * 2**64


def is_judged(uuid: UUID, outcome: str, judge_not_fooled: float) -> bool:
    """Whether others judge it: all that may be model errors, and a share of what is none."""
    return outcome != "not_fooled" or is_in_share(uuid, judge_not_fooled)


def is_sampled_for_review(uuid: UUID, share: float = 0.05) -> bool:
    """Whether an owner looks at it in any case.

    Again other bits: with those of `is_in_share` the sample would be drawn from what is judged only
    because it is in that share, and hold far more than `share` of it.
    """
    return int.from_bytes(sha256(uuid.bytes).digest()[16:24]) < share * 2**64


def draw(what: str, secret: str) -> int:
    """A number of 64 bits by chance that is always the same, and known to nobody else."""
    return int.from_bytes(hmac.digest(secret.encode(), what.encode(), "sha256")[:8])
