"""Server-sent events that stream answers to pages with a script."""

import json
import threading
from collections.abc import Iterator, Sequence

from django.conf import settings
from django.db.models import Model, QuerySet
from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from annotation.attempts.partial_answers import stream_texts

# Without the second one nginx would hold the events back until the end.
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
# A listener holds a thread for up to a minute, and others need threads too.
_listener_slots = threading.BoundedSemaphore(max(1, settings.LIVE_CALLS // 2))


def stream_events(keys: Sequence[str], waiting_rows: QuerySet[Model]) -> HttpResponseBase:
    """Stream the partial answers (see `stream_texts`) as events, then `done`.

    Returns 204 if there are too many listeners; the page then polls.
    """
    if not _listener_slots.acquire(blocking=False):
        return HttpResponse(status=204)
    events = _Events(stream_texts(keys, waiting_rows))
    return StreamingHttpResponse(events, content_type="text/event-stream", headers=HEADERS)


class _Events:
    """An iterable of events; Django closes it even if no event was read."""

    def __init__(self, texts: Iterator[list[str]]) -> None:
        self._texts = texts

    def __iter__(self) -> Iterator[str]:
        for texts in self._texts:
            yield f"data: {json.dumps(texts)}\n\n"
        yield "event: done\ndata:\n\n"

    def close(self) -> None:
        _listener_slots.release()
