"""How long the web server waits for a client, and how much of its data it keeps."""

KIB = 2**10
MIB = 2**20

HEAD_SECONDS = 10.0
HEAD_BYTES = 64 * KIB
LINGER_SECONDS = 2.0
"""How long, and for how many bytes, a client that is answered may still send before we close."""
LINGER_BYTES = 32 * MIB

BUFFERED_BYTES = 2560 * KIB
"""Up to this size, Django's limit for strangers, a body is received before a thread is taken."""
BODY_GRACE_SECONDS = 20.0
BODY_RATE = 2 * KIB
"""Bytes a second."""

UPLOAD_GRACE_SECONDS = 30.0
UPLOAD_RATE = 16 * KIB
UPLOAD_SECONDS = 3600.0
"""A larger body is read in a thread: it must arrive in an hour."""
WAIT_SECONDS = 60.0
"""How long a large body waits until one of the threads that read such bodies is free."""

SEND_GRACE_SECONDS = 30.0
SEND_RATE = 2 * KIB
HELD_BYTES = 256 * KIB
"""Of an answer that a client does not read yet: in memory, and beyond that in a file."""
SPOOLED_BYTES = 64 * MIB

STALL_SECONDS = 30.0
"""How long nothing at all may move, however fast it was before."""
MOST_OF_ONE_ADDRESS = 256
"""Connections of one address at once, where clients connect directly."""
MOST_RECEIVED_BYTES = 64 * MIB
"""Of all unfinished requests of a worker."""
MOST_SPOOLED_BYTES = 128 * MIB
"""Of all unread answers of a worker."""


def body_deadline(began_at: float, received_bytes: int, moved_at: float) -> float:
    """Return the time by which more of a buffered body must arrive.

    began_at, moved_at: times of the first and of the latest byte. received_bytes: so far.
    """
    by_rate = began_at + BODY_GRACE_SECONDS + received_bytes / BODY_RATE
    return min(by_rate, moved_at + STALL_SECONDS)


def upload_deadline(began_at: float, received_bytes: int, moved_at: float) -> float:
    """Return the time by which more of a large body must arrive; as `body_deadline`."""
    by_rate = began_at + UPLOAD_GRACE_SECONDS + received_bytes / UPLOAD_RATE
    return min(by_rate, moved_at + STALL_SECONDS, began_at + UPLOAD_SECONDS)


def send_deadline(began_at: float, sent_bytes: int, moved_at: float) -> float:
    """Return the time by which the client must read more of an answer; as `body_deadline`."""
    by_rate = began_at + SEND_GRACE_SECONDS + sent_bytes / SEND_RATE
    return min(by_rate, moved_at + STALL_SECONDS)


def slots(threads: int) -> int:
    """Return how many threads may wait for slow clients, for uploads and for readers each."""
    return max(1, threads // 3)
