"""Which words mattered: asked by POST, once an answer, within bounds of number and time."""

import threading
import time

import pytest
from django.core.cache import cache

from annotation.models import Example
from core.web.throttles import REQUESTS_PER_HOUR
from tasks.targets.endpoints.scripted import ScriptedEndpoint
from tests.support.factories import scripted_target
from tests.support.writing import NLI_PROB, stored
from tests.web.conftest import HTMX

LONG = " ".join(f"w{n}" for n in range(50))


@pytest.fixture
def batches(monkeypatch):
    """How many inputs each call of a target had."""
    sizes: list[int] = []
    ask = ScriptedEndpoint.predict

    def counted(self, batch, *, deadline_seconds):
        sizes.append(len(batch))
        return ask(self, batch, deadline_seconds=deadline_seconds)

    monkeypatch.setattr(ScriptedEndpoint, "predict", counted)
    return sizes


def url(example):
    return f"/attempt/{example.uuid}/saliency/"


def test_it_is_asked_once_by_post_with_few_variants(as_alice, nli, batches):
    scripted_target(nli, label="entailment", prob=NLI_PROB)
    example = stored(as_alice, text=LONG)
    assert as_alice.get(url(example)).status_code == 405
    for headers in (HTMX, {}, HTMX):
        told = as_alice.post(url(example), **headers)
        assert told.status_code == 200
        assert "w0 w1 w2" in told.text
    assert batches == [1, 17]  # the example, then pieces of three words, once


def test_a_person_may_ask_so_many_times_an_hour(as_alice, nli, monkeypatch):
    monkeypatch.setitem(REQUESTS_PER_HOUR, "saliency", 1)
    scripted_target(nli, label="entailment", prob=NLI_PROB)
    first, second = (stored(as_alice, text=f"The shop has {n} doors.") for n in range(2))
    asked = [as_alice.post(url(one), **HTMX).status_code for one in (first, second, first)]
    assert asked == [200, 429, 200]


def test_a_slow_target_holds_neither_a_page_nor_the_pool(as_alice, nli, monkeypatch, settings):
    """While nobody answers: two calls of the pool at most, each page back soon, writing goes on."""
    settings.LIVE_WAIT_SECONDS = 0.3
    scripted_target(nli, label="entailment", prob=NLI_PROB)
    examples = [stored(as_alice, text=f"The shop has {n} doors.") for n in range(5)]
    ask, go_on, calls = ScriptedEndpoint.predict, threading.Event(), []

    def held(self, batch, *, deadline_seconds):
        if len(batch) > 1:
            calls.append(len(batch))
            go_on.wait(60)
        return ask(self, batch, deadline_seconds=deadline_seconds)

    monkeypatch.setattr(ScriptedEndpoint, "predict", held)
    try:
        replies = [as_alice.post(url(one), **HTMX) for one in examples]
        assert [reply.status_code for reply in replies] == [503] * 5
        assert len(calls) == 2
        settings.LIVE_WAIT_SECONDS = 20
        assert stored(as_alice, text="Nobody is kept from writing.").outcome != "unknown"
    finally:
        go_on.set()
    ends_at = time.monotonic() + 60
    while as_alice.post(url(examples[4]), **HTMX).status_code == 503:
        assert time.monotonic() < ends_at
        time.sleep(0.05)
    assert cache.get(f"saliency:{Example.objects.get(pk=examples[4].pk).target_outputs.get().pk}")
