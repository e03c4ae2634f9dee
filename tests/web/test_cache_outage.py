"""Pages and the API while Redis is away."""

import logging

import pytest
from django.core.cache import cache, caches
from django.urls import reverse
from redis.exceptions import RedisError

from annotation.models import Attempt
from core.data import shared_cache
from tests.support.factories import TaskFactory, scripted_target
from tests.support.parts import redis_server
from tests.support.writing import URL, open_form

pytestmark = [pytest.mark.servers, pytest.mark.django_db]


@pytest.fixture
def redis(settings, monkeypatch):
    """A server whose outages are noticed at once, and the site's cache in it."""
    monkeypatch.setattr(shared_cache, "PAUSE_SECONDS", 0.0)
    with redis_server() as server:
        cache_class = "core.data.shared_cache.SharedCache"
        settings.CACHES = {"default": {"BACKEND": cache_class, "LOCATION": server.url}}
        yield server
        caches.close_all()


def test_values_are_kept_in_redis_and_meanwhile_in_the_process(redis):
    cache.set("name", "in redis")
    redis.stop()
    assert cache.get("name", "none") == "none"
    assert cache.add("lock", 1, 60) is True
    assert cache.add("lock", 1, 60) is False
    cache.set_many({"one": 1, "two": 2})
    assert cache.incr("one") == 2
    cache.delete_many(name for name in ("two",))
    assert cache.get_many(["one", "two"]) == {"one": 2}
    redis.start()
    assert cache.get("one") is None
    cache.set("name", "again")
    assert cache.get("name") == "again"


def test_an_outage_is_logged_once_and_starts_with_nothing(redis, caplog):
    caplog.set_level(logging.WARNING, "core.data.shared_cache")
    for _ in range(2):
        redis.stop()
        for _ in range(5):
            cache.get("name")
        assert cache.add("lock", 1, 60) is True
        redis.start()
        cache.get("name")
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"] * 2


def test_a_server_that_is_away_is_not_asked_each_time(redis, monkeypatch):
    monkeypatch.setattr(shared_cache, "PAUSE_SECONDS", 3600.0)
    redis.stop()
    cache.set("name", "in the process")
    redis.start()
    assert cache.get("name") == "in the process"
    redis.stop()
    with pytest.raises(RedisError):
        cache.ping()


def test_pages_and_the_api_go_on(redis, client):
    TaskFactory(code="nli")
    redis.stop()
    assert client.get(reverse("home")).status_code == 200
    assert client.get("/t/nli/").status_code == 200
    assert client.get("/api/v1/tasks/").status_code == 200
    assert client.get(reverse("account_login")).status_code == 200


def test_limits_hold_in_each_process(redis, client, monkeypatch):
    monkeypatch.setattr(
        "core.web.throttles.ScopeThrottle.THROTTLE_RATES",
        {"read": "3/min", "write": "3/min"},
    )
    redis.stop()
    assert [client.get("/api/v1/tasks/").status_code for _ in range(4)] == [200, 200, 200, 429]


def test_an_annotation_is_not_blamed_on_the_model(redis, as_alice, nli):
    scripted_target(nli, output={"label": "entailment"})
    filled_in = open_form(as_alice)
    redis.stop()
    assert as_alice.post(URL, filled_in, follow=True).status_code == 200
    assert Attempt.objects.get().state == Attempt.State.DONE
