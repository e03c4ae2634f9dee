"""Writes that a client may send again: one Idempotency-Key is carried out once, and answered alike.

1. `_begin` inserts a row for the key. A unique constraint lets one request do so.
2. While the work runs, a thread renews the row's lease every three seconds. A lease that is not
   renewed for ten seconds means that the process died, so that a repeated request may take over.
3. `_end` stores the answer in the row. Repeated requests get it for a day.
"""

import hashlib
import json
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from django.db import IntegrityError, InterfaceError, OperationalError, connection, transaction
from django.db.models import QuerySet
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.encoders import JSONEncoder

from core.accounts.models import IdempotentAnswer, User
from core.data.encryption import Unreadable, decrypt, encrypt
from core.errors import Refused
from core.periodic import each_sweep

HEADER = "Idempotency-Key"
KEPT = timedelta(days=1)
"""How long an answer is kept."""
LEASE = timedelta(seconds=10)
"""How long a key stays taken without being renewed."""
RENEWED_SECONDS = 3.0


class InProgress(Refused):
    """Raised while the same request is running, or shortly after its process died."""

    def __init__(self, remaining: timedelta) -> None:
        super().__init__("This very request is being worked on. Try again.", code="in_progress")
        self.wait = max(1, math.ceil(remaining.total_seconds()))


def answer_once(
    request: Request, user: User, work: Callable[[], Response], *, is_secret: bool = False
) -> Response:
    """Return the response of `work`, or the stored response to an earlier request with this key.

    is_secret: whether the response contains a secret and is stored encrypted.

    Server errors and temporary refusals (5xx, 429) are not stored, so that the client may try
    again. Raises Refused if the key was used for another request, or its request is in progress. No
    lock: a unique constraint lets one request begin.
    """
    key = request.headers.get(HEADER, "")
    if not key:
        return work()
    if len(key) > 200:
        raise Refused(f"{HEADER} has more than 200 letters.", code="bad_key", status=400)
    row = _begin(user, key, _digest(request))
    if row.status is not None:
        body = _read(row.body or "null", is_secret)
        return Response(body, row.status, headers={"Idempotent-Replayed": "true"})
    try:
        with _renewed(row):
            response = work()
    except BaseException:
        # Nothing was answered, so the same key may try again.
        _mine(row).delete()
        raise
    _end(row, response, is_secret)
    return response


def _read(body: str, is_secret: bool) -> Any:
    """Return a stored response body. Raises Refused if the key that encrypted it is lost."""
    try:
        return json.loads(decrypt(body) if is_secret else body)
    except Unreadable:
        message = f"The answer to this {HEADER} cannot be read any more. Take a new one."
        raise Refused(message, code="key_reused") from None


@contextmanager
def _renewed(row: IdempotentAnswer) -> Iterator[None]:
    """Renew the lease on the key until the context ends."""
    is_over = threading.Event()
    keeper = threading.Thread(target=_renew, args=(row, is_over), daemon=True)
    keeper.start()
    try:
        yield
    finally:
        is_over.set()
        # Its last renewal must be over: `_mine` finds the row by the time in it.
        keeper.join()


def _renew(row: IdempotentAnswer, is_over: threading.Event) -> None:
    while not is_over.wait(RENEWED_SECONDS):
        now = timezone.now()
        try:
            if _mine(row).update(begun_at=now):
                row.begun_at = now
        except (OperationalError, InterfaceError):
            pass  # the database is away for a moment; the work itself will tell
    connection.close()


def _mine(row: IdempotentAnswer) -> QuerySet[IdempotentAnswer]:
    """Return a query for the row that is empty once another request has taken the key."""
    return IdempotentAnswer.objects.filter(pk=row.pk, begun_at=row.begun_at)


def _digest(request: Request) -> str:
    text = f"{request.method} {request.get_full_path()}\n".encode()
    return hashlib.sha256(text + request.body).hexdigest()


def _begin(user: User, key: str, digest: str) -> IdempotentAnswer:
    """Return the row for a key: a new one, or one with a stored response. Raises Refused."""
    now = timezone.now()
    columns = {"digest": digest, "begun_at": now}
    try:
        # Within a transaction of the caller's, a refused insert would spoil the rest.
        with transaction.atomic():
            return IdempotentAnswer.objects.create(user=user, key=key, **columns)
    except IntegrityError:
        pass
    of_key = IdempotentAnswer.objects.filter(user=user, key=key)
    # Conditional updates: of several requests that find the row free, one takes it over.
    expired = of_key.filter(begun_at__lt=now - KEPT)
    if expired.update(status=None, body=None, **columns):
        return of_key.get()
    died = of_key.filter(status=None, digest=digest, begun_at__lt=now - LEASE)
    if died.update(**columns):
        return of_key.get()
    row = of_key.first()
    if row is None:  # it failed and was deleted since the insert above
        raise InProgress(timedelta())
    if row.digest == digest and row.status is None:
        raise InProgress(row.begun_at + LEASE - now)
    if row.digest != digest:
        raise Refused(
            f"This {HEADER} was used for another request. Take a new one.", code="key_reused"
        )
    return row


def _end(row: IdempotentAnswer, response: Response, is_secret: bool) -> None:
    own_row = _mine(row)
    # Stored, these would answer every repeat for a day.
    if response.status_code >= 500 or response.status_code == 429:
        own_row.delete()
    else:
        body = json.dumps(response.data, cls=JSONEncoder)
        own_row.update(status=response.status_code, body=encrypt(body) if is_secret else body)


@each_sweep(why="Answers to requests that were sent twice are needed for a day.")
def purge_answers() -> int:
    """Delete the expired responses; return how many."""
    return IdempotentAnswer.objects.filter(begun_at__lt=timezone.now() - KEPT).delete()[0]
