"""A write with an Idempotency-Key is done once. Tried on a view of the tests' own."""

from contextlib import suppress
from datetime import timedelta
from threading import Barrier, Thread

import pytest
from django.db import connection
from django.utils import timezone
from rest_framework.response import Response
from rest_framework.test import APIRequestFactory, force_authenticate
from rest_framework.views import APIView

from core.accounts import idempotency
from core.accounts.api import write
from core.accounts.idempotency import LEASE_TIME, purge_idempotent_answers
from core.accounts.models import IdempotentAnswer
from core.errors import Refused


class Counting(APIView):
    """Counts how often its work was done; `answers` are given one after another."""

    throttle_classes = []
    done = 0
    answers = ()

    @write("count")
    def post(self, request):
        Counting.done += 1
        if Counting.answers:
            answer = Counting.answers[Counting.done - 1]
            if isinstance(answer, Exception):
                raise answer
            return Response({"done": Counting.done}, answer)
        return Response({"done": Counting.done, "at": timezone.now()}, 201)


@pytest.fixture
def send(alice):
    Counting.done, Counting.answers = 0, ()

    def post(key="k", body=None, user=alice):
        headers = {"HTTP_IDEMPOTENCY_KEY": key} if key else {}
        request = APIRequestFactory().post("/x/", body or {"a": 1}, format="json", **headers)
        force_authenticate(request, user)
        return Counting.as_view()(request).render()

    return post


def test_the_same_key_is_done_once_and_answered_alike(send):
    first, second = send(), send()
    assert Counting.done == 1
    assert (first.status_code, first.content) == (second.status_code, second.content)
    assert "Idempotent-Replayed" not in first
    assert second["Idempotent-Replayed"] == "true"


def test_without_a_key_each_is_done(send):
    assert [send(key="").data["done"] for _ in range(2)] == [1, 2]


def test_a_key_belongs_to_one_person(send, bob):
    send()
    assert send(user=bob).data["done"] == 2


def test_a_key_is_of_one_request(send):
    send()
    response = send(body={"a": 2})
    assert response.status_code == 409
    assert response.data["error"]["code"] == "key_reused"
    assert Counting.done == 1


def test_a_key_that_is_too_long(send):
    assert send(key="k" * 201).status_code == 400
    assert Counting.done == 0


@pytest.mark.parametrize("bad", [500, 503, 429, Refused("No."), ZeroDivisionError()])
def test_what_may_be_tried_again_is_not_kept(send, bad):
    Counting.answers = (bad, 200)
    with suppress(ZeroDivisionError):
        send()
    assert send().status_code == 200
    assert Counting.done == 2


def test_while_it_is_worked_on_nobody_else_begins(send):
    send()
    IdempotentAnswer.objects.update(status=None, body=None)
    response = send()
    assert (response.status_code, response.data["error"]["code"]) == (409, "in_progress")
    assert 1 <= int(response["Retry-After"]) <= LEASE_TIME.total_seconds()
    IdempotentAnswer.objects.update(begun_at=timezone.now() - LEASE_TIME)
    assert send().data["done"] == 2  # its process must have died


@pytest.mark.django_db(transaction=True)
def test_long_work_keeps_its_key(send, monkeypatch):
    monkeypatch.setattr(idempotency, "RENEW_SECONDS", 0.01)
    answers = []

    def work_until_it_is_renewed(view, request):
        begun_at = IdempotentAnswer.objects.get().begun_at
        while IdempotentAnswer.objects.get().begun_at == begun_at:
            pass
        answers.append(send().status_code)
        return Response({}, 201)

    monkeypatch.setattr(Counting, "post", write("count")(work_until_it_is_renewed))
    assert send().status_code == 201
    assert answers == [409]
    assert send()["Idempotent-Replayed"] == "true"


def test_who_lost_the_key_leaves_the_answer_of_who_has_it(send, monkeypatch):
    def lose_it(view, request):
        IdempotentAnswer.objects.update(status=200, body="1", begun_at=timezone.now())
        raise ZeroDivisionError

    monkeypatch.setattr(Counting, "post", write("count")(lose_it))
    with pytest.raises(ZeroDivisionError):
        send()
    assert send().data == 1


def test_after_a_day_a_key_is_new(send):
    send()
    IdempotentAnswer.objects.update(begun_at=timezone.now() - timedelta(hours=25))
    assert send(body={"a": 2}).data["done"] == 2
    assert purge_idempotent_answers() == 0
    IdempotentAnswer.objects.update(begun_at=timezone.now() - timedelta(hours=25))
    assert purge_idempotent_answers() == 1


@pytest.mark.postgres
@pytest.mark.django_db(transaction=True)
def test_of_many_at_the_same_instant_one_is_done(send):
    barrier, codes = Barrier(8), []

    def post():
        barrier.wait()
        codes.append(send().status_code)
        connection.close()

    threads = [Thread(target=post) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counting.done == 1
    assert 201 in codes
    assert set(codes) <= {201, 409}
