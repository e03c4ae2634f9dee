"""One account sends several large files slowly, and nobody else can send one.

A third of a process's threads read large bodies; eight slow uploads of one person took them all.
"""

import threading

import pytest
from django.http import HttpResponse
from django.test import RequestFactory

from core.web import bodies
from core.web.bodies import MAX_BODIES_AT_ONCE, BodyLimitMiddleware, limit_body

pytestmark = pytest.mark.django_db
SIZE = 5 * 2**20


@limit_body(2 * SIZE)
def upload(request):
    return HttpResponse()


def request_of(user, size=SIZE):
    request = RequestFactory().post("/x/", b"", content_type="application/octet-stream")
    request.META["CONTENT_LENGTH"] = str(size)
    request.user = user
    return request


def begin(user, size=SIZE):
    """A request that comes in: itself, and how it is refused."""
    request = request_of(user, size)
    return request, BodyLimitMiddleware(lambda _: HttpResponse()).process_view(
        request, upload, (), {}
    )


def end(request):
    BodyLimitMiddleware(lambda _: HttpResponse()).process_response(request, HttpResponse())


def test_a_person_sends_so_many_large_bodies_at_once(alice, bob):
    going = [begin(alice) for _ in range(MAX_BODIES_AT_ONCE)]
    assert [refused for _request, refused in going] == [None] * MAX_BODIES_AT_ONCE
    too_many, refused = begin(alice)
    assert (refused.status_code, refused["Retry-After"]) == (429, "30")
    end(too_many)  # which was not counted
    assert begin(alice)[1].status_code == 429
    other, refused = begin(bob)
    assert refused is None
    assert begin(alice, size=1000)[1] is None  # small ones are no uploads
    end(going[0][0])
    again, refused = begin(alice)
    assert refused is None
    for request in (going[1][0], other, again):
        end(request)
    assert not bodies._reading_counts


def test_threads_that_begin_at_once_are_counted(alice):
    started = threading.Barrier(8)
    answers = []

    def one():
        request = request_of(alice)
        started.wait()
        answers.append(bodies._begin_reading(request))
        if answers[-1]:
            going.append(request)

    going = []
    threads = [threading.Thread(target=one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(answers) == MAX_BODIES_AT_ONCE
    for request in going:
        end(request)
