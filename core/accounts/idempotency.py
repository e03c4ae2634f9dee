"""Writes that may be sent again: the same Idempotency-Key is done once and answered alike."""

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

HEADER = "Idempotency-Key"
KEPT = timedelta(days=1)
LEASE = timedelta(seconds=10)
"""How long a key is taken; the request renews it while it works, so then its process has died."""
RENEWED_SECONDS = 3.0


class InProgress(Refused):
    """The same request is being worked on, or its process died a moment ago."""

    def __init__(self, left: timedelta) -> None:
        super().__init__("This very request is being worked on. Try again.", code="in_progress")
        self.wait = max(1, math.ceil(left.total_seconds()))


def answer_once(
    request: Request, user: User, work: Callable[[], Response], *, is_secret: bool = False
) -> Response:
    """The response of `work`, or the one that was given to this key before.

    is_secret: the answer holds a secret and is kept encrypted.

    Errors of ours and refusals for the time being (5xx, 429) are not kept, so that the client may
    try again. Raises Refused: the key was used for something else, or is being worked on. No lock:
    a unique constraint lets one request begin.
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
        _mine(row).delete()
        raise
    _end(row, response, is_secret)
    return response


def _read(body: str, is_secret: bool) -> Any:
    """An answer as it was given. Raises Refused where the key of secrets has changed."""
    try:
        return json.loads(decrypt(body) if is_secret else body)
    except Unreadable:
        said = f"The answer to this {HEADER} cannot be read any more. Take a new one."
        raise Refused(said, code="key_reused") from None


@contextmanager
def _renewed(row: IdempotentAnswer) -> Iterator[None]:
    """Keep the key taken for as long as the work takes."""
    is_over = threading.Event()
    keeper = threading.Thread(target=_renew, args=(row, is_over), daemon=True)
    keeper.start()
    try:
        yield
    finally:
        is_over.set()
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
    """The row, unless another request has taken the key since."""
    return IdempotentAnswer.objects.filter(pk=row.pk, begun_at=row.begun_at)


def _digest(request: Request) -> str:
    text = f"{request.method} {request.get_full_path()}\n".encode()
    return hashlib.sha256(text + request.body).hexdigest()


def _begin(user: User, key: str, digest: str) -> IdempotentAnswer:
    """The row of a key, new or with an answer in it."""
    now = timezone.now()
    columns = {"digest": digest, "begun_at": now}
    try:
        with transaction.atomic():
            return IdempotentAnswer.objects.create(user=user, key=key, **columns)
    except IntegrityError:
        pass
    mine = IdempotentAnswer.objects.filter(user=user, key=key)
    old = mine.filter(begun_at__lt=now - KEPT)
    dead = mine.filter(status=None, digest=digest, begun_at__lt=now - LEASE)
    if old.update(status=None, body=None, **columns) or dead.update(**columns):
        return mine.get()
    row = mine.first()
    if row is None or (row.digest == digest and row.status is None):
        raise InProgress(row.begun_at + LEASE - now if row else timedelta())
    if row.digest != digest:
        raise Refused(
            f"This {HEADER} was used for another request. Take a new one.", code="key_reused"
        )
    return row


def _end(row: IdempotentAnswer, response: Response, is_secret: bool) -> None:
    mine = _mine(row)
    if response.status_code >= 500 or response.status_code == 429:
        mine.delete()
    else:
        body = json.dumps(response.data, cls=JSONEncoder)
        mine.update(status=response.status_code, body=encrypt(body) if is_secret else body)


def purge_answers() -> int:
    """Delete the answers that are not kept any more; returns how many."""
    return IdempotentAnswer.objects.filter(begun_at__lt=timezone.now() - KEPT).delete()[0]
