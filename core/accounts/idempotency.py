"""Execute a write once per Idempotency-Key, and return the same response to each repeat.

1. `_claim_key` inserts a row for the key. A unique constraint allows only one request to do so.
2. While the work runs, a thread renews the row's lease every three seconds. If a lease is not
   renewed for ten seconds, the process has died, and a repeated request may take over.
3. `_store_response` stores the response in the row. Repeated requests get it for a day.
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
from core.data.encryption import UnreadableSecret, decrypt, encrypt
from core.errors import Refused
from core.periodic import register_sweep

KEY_HEADER = "Idempotency-Key"
KEEP_TIME = timedelta(days=1)
"""How long a response is kept."""
LEASE_TIME = timedelta(seconds=10)
"""How long a request may claim a key without renewing its lease."""
RENEW_SECONDS = 3.0


class RequestInProgress(Refused):
    """Raised if the same request is still running, or if its process died moments ago."""

    def __init__(self, remaining: timedelta) -> None:
        super().__init__("We're still processing this request. Try again.", code="in_progress")
        self.wait = max(1, math.ceil(remaining.total_seconds()))


def answer_once(
    request: Request, user: User, work: Callable[[], Response], *, is_secret: bool = False
) -> Response:
    """Return the response of `work`, or the stored response to an earlier request with this key.

    Without an Idempotency-Key, always runs `work`. is_secret: whether the response contains a
    secret and is stored encrypted.

    Server errors and temporary refusals (5xx, 429) are not stored, so that the client may try
    again. Raises Refused if the key is too long or was used for another request. Raises
    RequestInProgress if its request is still running. Takes no lock: a unique constraint lets one
    request begin.
    """
    key = request.headers.get(KEY_HEADER, "")
    if not key:
        return work()
    if len(key) > 200:
        raise Refused(f"{KEY_HEADER} has more than 200 letters.", code="bad_key", status=400)
    row = _claim_key(user, key, _hash_request(request))
    if row.status is not None:
        body = _decode_body(row.body or "null", is_secret)
        return Response(body, row.status, headers={"Idempotent-Replayed": "true"})
    try:
        with _keep_lease_renewed(row):
            response = work()
    except BaseException:
        # Nothing was answered, so the same key may try again.
        _select_claimed_row(row).delete()
        raise
    _store_response(row, response, is_secret)
    return response


def _decode_body(body: str, is_secret: bool) -> Any:
    """Return a stored response body. Raises Refused if the key that encrypted it is lost."""
    try:
        return json.loads(decrypt(body) if is_secret else body)
    except UnreadableSecret:
        message = f"We can no longer read the answer to this {KEY_HEADER}. Use a new one."
        raise Refused(message, code="key_reused") from None


@contextmanager
def _keep_lease_renewed(row: IdempotentAnswer) -> Iterator[None]:
    """Renew the lease on the key until the context ends."""
    is_over = threading.Event()
    renewal_thread = threading.Thread(target=_renew_lease, args=(row, is_over), daemon=True)
    renewal_thread.start()
    try:
        yield
    finally:
        is_over.set()
        # Its last renewal must be over: `_select_claimed_row` finds the row by the time in it.
        renewal_thread.join()


def _renew_lease(row: IdempotentAnswer, is_over: threading.Event) -> None:
    while not is_over.wait(RENEW_SECONDS):
        now = timezone.now()
        try:
            if _select_claimed_row(row).update(begun_at=now):
                row.begun_at = now
        except (OperationalError, InterfaceError):
            pass  # the database is away for a moment; the work itself will tell
    # Django closes connections at the end of requests, and this thread answers none.
    connection.close()


def _select_claimed_row(row: IdempotentAnswer) -> QuerySet[IdempotentAnswer]:
    """Return a queryset with the row, or without rows once another request has taken the key."""
    return IdempotentAnswer.objects.filter(pk=row.pk, begun_at=row.begun_at)


def _hash_request(request: Request) -> str:
    # With method and path, so that a key is refused that is reused for another request.
    text = f"{request.method} {request.get_full_path()}\n".encode()
    return hashlib.sha256(text + request.body).hexdigest()


def _claim_key(user: User, key: str, digest: str) -> IdempotentAnswer:
    """Return the row for a key: one claimed for this request, or one with a stored response.

    Claims a new row, an expired one, or one whose process died. Raises Refused if the key belongs
    to another request, and RequestInProgress if the same request is still running.
    """
    now = timezone.now()
    columns = {"digest": digest, "begun_at": now}
    try:
        # Within a transaction of the caller's, a refused insert would spoil the rest.
        with transaction.atomic():
            return IdempotentAnswer.objects.create(user=user, key=key, **columns)
    except IntegrityError:
        pass
    rows_of_key = IdempotentAnswer.objects.filter(user=user, key=key)
    # Conditional updates: of several requests that find the row free, one takes it over.
    expired_rows = rows_of_key.filter(begun_at__lt=now - KEEP_TIME)
    if expired_rows.update(status=None, body=None, **columns):
        return rows_of_key.get()
    abandoned_rows = rows_of_key.filter(status=None, digest=digest, begun_at__lt=now - LEASE_TIME)
    if abandoned_rows.update(**columns):
        return rows_of_key.get()
    row = rows_of_key.first()
    if row is None:  # it failed and was deleted since the insert above
        raise RequestInProgress(timedelta())
    if row.digest == digest and row.status is None:
        raise RequestInProgress(row.begun_at + LEASE_TIME - now)
    if row.digest != digest:
        raise Refused(
            f"This {KEY_HEADER} was used for another request. Use a new one.", code="key_reused"
        )
    return row


def _store_response(row: IdempotentAnswer, response: Response, is_secret: bool) -> None:
    own_row = _select_claimed_row(row)
    # Stored, these would answer every repeat for a day.
    if response.status_code >= 500 or response.status_code == 429:
        own_row.delete()
    else:
        body = json.dumps(response.data, cls=JSONEncoder)
        own_row.update(status=response.status_code, body=encrypt(body) if is_secret else body)


@register_sweep(why="Answers to requests that were sent twice are needed for a day.")
def purge_idempotent_answers() -> int:
    """Delete the expired responses; return how many."""
    return IdempotentAnswer.objects.filter(begun_at__lt=timezone.now() - KEEP_TIME).delete()[0]
