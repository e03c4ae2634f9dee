"""The random choice and order of the examples to judge; always the same for an example.

`secret` is the site's secret: authors know the ids of their examples, and must not be able to
predict the result. With another secret, other examples are drawn; those in the queue stay there.
"""

import hmac
from uuid import UUID


def compute_order_key(uuid: UUID, secret: str) -> int:
    """Draw an example's random position among equals: 63 bits that nobody can choose or predict."""
    # The database's integers are signed, which leaves 63 bits.
    return draw_number(f"place {uuid}", secret) >> 1


def is_in_share(uuid: UUID, share: float, secret: str) -> bool:
    """Return whether an example is in a random share (0-1) of all examples.

    Parameters
    ----------
    uuid
        The example's UUID.
    share
        The share, from 0 to 1. A larger share contains every smaller share.
    secret
        The site's secret.

    Notes
    -----
    Drawn independently of the order, so that the share is spread over the queue.
    """
    return draw_number(f"share {uuid}", secret) < share * 2**64


def is_judged(uuid: UUID, outcome: str, judge_not_fooled: float, secret: str) -> bool:
    """Return whether an example is judged: all possible model errors, and a share of the rest.

    Parameters
    ----------
    uuid
        The example's UUID.
    outcome
        The example's outcome, such as `not_fooled`.
    judge_not_fooled
        The share (0-1) of examples that fooled no model.
    secret
        The site's secret.
    """
    return outcome != "not_fooled" or is_in_share(uuid, judge_not_fooled, secret)


def is_sampled_for_review(uuid: UUID, secret: str, share: float = 0.05) -> bool:
    """Return whether the example is in the random sample that owners review.

    Parameters
    ----------
    uuid
        The example's UUID.
    secret
        The site's secret.
    share
        The share (0-1) of all examples that is in the sample.

    Notes
    -----
    The draw is independent of the one in `is_in_share`. Otherwise the sample would contain only
    examples that are judged because of that draw, and far more than `share` of these.
    """
    return draw_number(f"review {uuid}", secret) < share * 2**64


def draw_number(seed_text: str, secret: str) -> int:
    """Return a 64-bit number that depends only on the text and on the secret."""
    # Each purpose adds its own word, so that its draw is independent of others.
    return int.from_bytes(hmac.digest(secret.encode(), seed_text.encode(), "sha256")[:8])
