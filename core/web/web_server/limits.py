"""Time limits for slow clients, and limits on the amount of buffered data."""

KIB = 2**10
MIB = 2**20

HEAD_SECONDS = 10.0
MAX_HEAD_BYTES = 64 * KIB
LINGER_SECONDS = 2.0
"""How long we keep reading from a client after the response, before we close the connection."""
MAX_LINGER_BYTES = 32 * MIB

MAX_BUFFERED_BYTES = 2560 * KIB
"""Bodies up to this size, Django's limit for visitors, are received before a thread is taken."""
BODY_GRACE_SECONDS = 20.0
MIN_BODY_BYTES_PER_SECOND = 2 * KIB
"""The minimum rate at which a buffered body must arrive."""

UPLOAD_GRACE_SECONDS = 30.0
MIN_UPLOAD_BYTES_PER_SECOND = 16 * KIB
UPLOAD_SECONDS = 3600.0
"""The time limit for a large body, which a thread reads while it arrives."""
WAIT_SECONDS = 60.0
"""How long a large body waits for one of the threads that read such bodies."""

SEND_GRACE_SECONDS = 30.0
MIN_SEND_BYTES_PER_SECOND = 2 * KIB
MAX_IN_MEMORY_BYTES = 256 * KIB
"""The maximum part of an unread response in memory. A file stores the remaining part."""
MAX_FILE_SPOOLED_BYTES = 64 * MIB

STALL_SECONDS = 30.0
"""The maximum time without any progress, however fast the transfer was before."""
MAX_CONNECTIONS_PER_ADDRESS = 256
"""The maximum number of simultaneous connections from one address, without a proxy."""
MAX_RECEIVED_BYTES = 64 * MIB
"""The maximum size of all unfinished requests of a worker."""
MAX_SPOOLED_BYTES = 128 * MIB
"""The maximum size of the files with all unread responses of a worker."""


def compute_body_deadline(began_at: float, received_bytes: int, progressed_at: float) -> float:
    """Return the time by which more of a buffered body must arrive.

    began_at, progressed_at: times of the first and the latest byte on the monotonic clock.
    received_bytes: how much has arrived so far.
    """
    rate_deadline = began_at + BODY_GRACE_SECONDS + received_bytes / MIN_BODY_BYTES_PER_SECOND
    return min(rate_deadline, progressed_at + STALL_SECONDS)


def compute_upload_deadline(began_at: float, received_bytes: int, progressed_at: float) -> float:
    """Return the time by which more of a large body must arrive.

    Parameters are those of `compute_body_deadline`.
    """
    rate_deadline = began_at + UPLOAD_GRACE_SECONDS + received_bytes / MIN_UPLOAD_BYTES_PER_SECOND
    return min(rate_deadline, progressed_at + STALL_SECONDS, began_at + UPLOAD_SECONDS)


def compute_send_deadline(began_at: float, sent_bytes: int, progressed_at: float) -> float:
    """Return the time by which the client must read more of a response.

    began_at: when sending began. sent_bytes: how much the client has read. progressed_at: when it
    last read. All times are on the monotonic clock.
    """
    rate_deadline = began_at + SEND_GRACE_SECONDS + sent_bytes / MIN_SEND_BYTES_PER_SECOND
    return min(rate_deadline, progressed_at + STALL_SECONDS)


def count_slots(threads: int) -> int:
    """Return the maximum number of threads that may wait for large uploads.

    The same number of other threads may wait for slow readers.
    """
    return max(1, threads // 3)
