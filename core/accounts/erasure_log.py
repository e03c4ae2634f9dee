"""Record erasures, so that restoring an older backup does not bring the data back.

A row is added in the transaction that erases. A sweep moves the rows to a file outside the
database (`ERASURE_LOG`), with one JSON object per line. Names in it are keyed hashes.
"""

import hashlib
import hmac
import json
import logging
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from uuid import UUID

from django.conf import settings
from django.utils.encoding import force_bytes

from core.accounts.models import Erasure, User
from core.periodic import register_sweep

logger = logging.getLogger(__name__)
BATCH_ROWS = 1000


def derive_erasure_key(secret: str | bytes) -> bytes:
    """Return the key for hashes in the log, derived from a SECRET_KEY without revealing it."""
    return hashlib.sha256(b"dynabench.erasures:" + force_bytes(secret)).digest()


def hash_erased_name(kind: str, name: str | UUID, key: bytes) -> str:
    """Return the hash that identifies an erased object in the log."""
    return hmac.new(key, f"{kind}:{name}".encode(), hashlib.sha256).hexdigest()


def get_erasure_name(user: User) -> str:
    """Return a name for a person that differs even from a later account with the same id."""
    return f"{user.pk} {user.date_joined.timestamp():.6f}"


def record_erasure(kind: str, name: str | UUID) -> None:
    """Record that an object is erased. Call it in the transaction that erases. Takes no lock."""
    digest = hash_erased_name(kind, name, derive_erasure_key(settings.SECRET_KEY))
    Erasure.objects.create(kind=kind, digest=digest)


@register_sweep(why="A restored backup erases again what the log names.")
def write_erasure_log() -> int:
    """Move recorded erasures to the log, creating it if missing; return the number of lines.

    Rows that cannot be written stay for the next call. Takes no lock: if the process is killed, or
    two run at once, some lines are written twice.
    """
    written_count = 0
    create_erasure_log()
    # Written, then deleted: in the other order a kill in between would lose them.
    while rows := list(Erasure.objects.order_by("pk")[:BATCH_ROWS]):
        try:
            _append_rows(rows)
        except OSError as error:
            logger.error("Erasures wait for their log, %s: %s", settings.ERASURE_LOG, error)
            break
        Erasure.objects.filter(pk__in=[row.pk for row in rows]).delete()
        written_count += len(rows)
    return written_count


def create_erasure_log() -> None:
    """Create an empty log if there is none. Takes no lock.

    So a missing log always means that a log was lost, even if nobody was erased. If the log cannot
    be created, the doctor reports it.
    """
    with suppress(OSError):
        os.close(os.open(settings.ERASURE_LOG, os.O_CREAT | os.O_WRONLY, mode=0o600))


def count_erased_names() -> int:
    """Return the number of names in the log; 0 if it cannot be read."""
    try:
        return sum(map(len, read_erasure_log().values()))
    except OSError:
        return 0


def _append_rows(rows: Iterable[Erasure]) -> None:
    """Append rows to the log and flush it to disk.

    Starts with an empty line, because a full disk may have cut off the last line.
    """
    with open(settings.ERASURE_LOG, "a", opener=_open_private) as file:
        file.write("\n")
        for row in rows:
            erased_at = row.erased_at.isoformat()
            line = json.dumps({"at": erased_at, "kind": row.kind, "digest": row.digest})
            file.write(f"{line}\n")
        file.flush()
        # The caller deletes the rows next, so the lines have to be on the disk.
        os.fsync(file.fileno())


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, mode=0o600)


def read_erasure_log() -> Mapping[str, set[str]]:
    """Return the digests in the log by kind. Raises FileNotFoundError if there is no log.

    Lines that cannot be read are skipped with a warning in the site's own log.
    """
    digests: dict[str, set[str]] = defaultdict(set)
    with open(settings.ERASURE_LOG) as file:
        for line in filter(str.strip, file):
            try:
                entry = json.loads(line)
                digests[entry["kind"]].add(entry["digest"])
            except (ValueError, TypeError, KeyError):  # the end of a line that a full disk cut off
                logger.warning("A line of %s cannot be read: %r", settings.ERASURE_LOG, line[:80])
    return digests
