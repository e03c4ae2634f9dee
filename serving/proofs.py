"""Proof for our model server that a call comes from its site, and for which task. No Django.

A target is of one task, and its name is no secret. Whoever can make the site call an address could
otherwise have the model server answer for a task that is not theirs.
"""

import hashlib
import hmac
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

HEADER = b"x-dynabench-proof"
LIFETIME_SECONDS = 300
"""For how long a proof is valid, before and after the clock of the model server."""


@dataclass(frozen=True)
class Prover:
    """A signer of calls for one task. key: shared by the site and its model server."""

    key: bytes = field(repr=False)
    task: int

    def header(self, now: float | None = None) -> tuple[bytes, bytes]:
        """Return the signed header for one call. now: seconds since the epoch."""
        made_at = int(time.time() if now is None else now)
        return HEADER, b"%d.%d.%s" % (self.task, made_at, _signature(self.key, self.task, made_at))


def proven_task(
    keys: Sequence[bytes], headers: Iterable[tuple[bytes, bytes]], now: float | None = None
) -> int | None:
    """Return the id of the task that the call's proof names; None without a valid proof.

    keys: the current key and earlier ones. headers: names in lower case. now: seconds since the
    epoch.
    """
    values = [value for name, value in headers if name == HEADER]
    parts = values[0].split(b".") if len(values) == 1 else []
    if len(parts) != 3:
        return None
    task_text, time_text, signature = parts
    for text in (task_text, time_text):
        if not text.isdigit() or len(text) >= 20:
            return None
    task, made_at = int(task_text), int(time_text)
    # Clocks of two machines may differ in both directions.
    age = (time.time() if now is None else now) - made_at
    if abs(age) > LIFETIME_SECONDS:
        return None
    for key in keys:
        # In constant time, so that nobody can guess a signature byte by byte.
        if hmac.compare_digest(signature, _signature(key, task, made_at)):
            return task
    return None


def _signature(key: bytes, task: int, made_at: int) -> bytes:
    return hmac.new(key, b"%d.%d" % (task, made_at), hashlib.sha256).hexdigest().encode()
