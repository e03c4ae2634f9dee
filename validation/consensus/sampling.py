"""Which examples are judged, and in what order: by chance, yet always the same for an example.

`secret` is the site's: an example's id is known to its author, who shall foresee none of this. With
another secret other examples are drawn; those that are in the queue stay there.
"""

import hmac
from uuid import UUID


def order_key(uuid: UUID, secret: str) -> int:
    """Draw an example's random position among equals: 63 bits that nobody can choose or predict."""
    # The database's whole numbers have a sign, which leaves 63 bits.
    return draw(f"place {uuid}", secret) >> 1


def is_in_share(uuid: UUID, share: float, secret: str) -> bool:
    """Return whether an example is in this share (0-1) of all.

    Parameters
    ----------
    uuid
        The example's.
    share
        A larger share contains the smaller one.
    secret
        The site's.

    Notes
    -----
    Drawn independently of the order, so that the share is spread over the queue.
    """
    return draw(f"share {uuid}", secret) < share * 2**64


def is_judged(uuid: UUID, outcome: str, judge_not_fooled: float, secret: str) -> bool:
    """Return whether an example is judged: all possible model errors, and a share of the rest.

    Parameters
    ----------
    uuid
        The example's.
    outcome
        Whether the model was fooled.
    judge_not_fooled
        The share (0-1) of examples that fooled no model.
    secret
        The site's.
    """
    return outcome != "not_fooled" or is_in_share(uuid, judge_not_fooled, secret)


def is_sampled_for_review(uuid: UUID, secret: str, share: float = 0.05) -> bool:
    """Return whether an owner reviews the example in any case.

    Parameters
    ----------
    uuid
        The example's.
    secret
        The site's.
    share
        Of all examples (0-1).

    Notes
    -----
    Uses an independent draw. With that of `is_in_share`, the sample would be drawn only from what
    is judged because it is in that share, and would contain far more than `share` of it.
    """
    return draw(f"review {uuid}", secret) < share * 2**64


def draw(seed_text: str, secret: str) -> int:
    """Draw a 64-bit number that is always the same for the text, and that nobody else can know."""
    # Each purpose adds a word of its own, so that its draw depends on no other.
    return int.from_bytes(hmac.digest(secret.encode(), seed_text.encode(), "sha256")[:8])
