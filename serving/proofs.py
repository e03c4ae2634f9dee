"""Prove to our model server that a call comes from its site, and for which task. No Django.

A model belongs to one task, and its name is no secret. Without a proof, anybody who can make the
site call an address could have the model server answer for another task.
"""

import hashlib
import hmac
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

PROOF_HEADER = b"x-dynabench-proof"
LIFETIME_SECONDS = 300
"""How far a proof's time may differ from the model server's clock, in both directions."""


@dataclass(frozen=True)
class Prover:
    """A signer of calls for one task.

    key: a secret shared by the site and its model server. task: the task's id.
    """

    key: bytes = field(repr=False)
    task: int

    def build_header(self, now: float | None = None) -> tuple[bytes, bytes]:
        """Return the signed header for one call. now: seconds since the epoch."""
        made_at = int(time.time() if now is None else now)
        return PROOF_HEADER, b"%d.%d.%s" % (
            self.task,
            made_at,
            _compute_signature(self.key, self.task, made_at),
        )


def read_proven_task(
    keys: Sequence[bytes], headers: Iterable[tuple[bytes, bytes]], now: float | None = None
) -> int | None:
    """Return the id of the task that the call's proof names; None without a valid proof.

    keys: the current key and earlier ones. headers: names in lower case. now: seconds since the
    epoch.
    """
    # Two proofs in one call are no proof: which of them counts would be unclear.
    values = [value for name, value in headers if name == PROOF_HEADER]
    parts = values[0].split(b".") if len(values) == 1 else []
    if len(parts) != 3:
        return None
    task_text, time_text, signature = parts
    for text in (task_text, time_text):
        # `int` fails on thousands of digits, and whoever calls may have sent any text.
        if not text.isdigit() or len(text) >= 20:
            return None
    task, made_at = int(task_text), int(time_text)
    # Clocks of two machines may differ in both directions.
    age = (time.time() if now is None else now) - made_at
    if abs(age) > LIFETIME_SECONDS:
        return None
    for key in keys:
        # In constant time, so that nobody can guess a signature byte by byte.
        if hmac.compare_digest(signature, _compute_signature(key, task, made_at)):
            return task
    return None


def _compute_signature(key: bytes, task: int, made_at: int) -> bytes:
    return hmac.new(key, b"%d.%d" % (task, made_at), hashlib.sha256).hexdigest().encode()
