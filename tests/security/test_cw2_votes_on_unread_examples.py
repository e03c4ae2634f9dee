"""A second tap lands on an example that nobody has read, and counts as a vote on it.

Three taps on one place within 0.4 seconds were three votes: the request that stores a vote hands
out the next example in its answer. The server counts from the moment at which this example was
handed to this person, so that a reload, a second window or a program gains nothing.
"""

from datetime import timedelta

import pytest
from django.db.models import F
from django.utils import timezone

from dynabench.campaigns.models import Qualification
from tests.api.conftest import api_of  # noqa: F401 - a fixture
from tests.support.battles import battle_arena, send
from tests.support.campaigns import open_campaign, take_part
from tests.support.factories import UserFactory
from tests.support.gold_items import always, make_gold  # noqa: F401 - a fixture
from tests.support.judging import URL, write, write_many
from tests.web.conftest import HTMX, _fast_and_clean, alice, as_alice, bob, nli  # noqa: F401
from validation.consensus import reading
from validation.consensus.consensus import Vote
from validation.judging import pace, services
from validation.models import GoldAnswer, JudgeLease, Skip, Validation

# ruff: noqa: F811  (fixtures are named where they are used)

pytestmark = pytest.mark.own_pace
MOMENT = 3600  # seconds: no machine is so busy that a test outlasts it
BRIEFLY = timedelta(seconds=MOMENT)


@pytest.fixture(autouse=True)
def _a_long_moment(monkeypatch):
    monkeypatch.setattr(reading, "MIN_READING_SECONDS", MOMENT)


def wait():
    """What was handed out so far was handed out long enough ago."""
    JudgeLease.objects.update(leased_at=F("leased_at") - BRIEFLY)


def shown(page):
    return page.context["example"]


def tap(client, example, answer="label:neutral", **headers):
    return client.post(URL, {"example": example.uuid, "answer": answer}, **headers)


@pytest.fixture
def two(nli, bob):
    return write_many(nli, bob, ["fooled"] * 2)


@pytest.mark.parametrize("headers", [{}, HTMX], ids=["page", "htmx"])
def test_a_second_tap_is_no_vote_on_what_came_with_the_first_answer(as_alice, two, headers):
    first = shown(as_alice.get(URL))
    wait()
    page = tap(as_alice, first, **headers)
    second = shown(page if headers else as_alice.get(URL))
    assert second != first
    refused = tap(as_alice, second, **headers)
    assert refused.status_code == 429
    assert shown(refused) == second
    assert refused.context["said"]
    assert [vote.example for vote in Validation.objects.all()] == [first]
    wait()
    tap(as_alice, second)
    assert Validation.objects.count() == 2


def test_a_reload_or_another_window_begins_no_new_wait_and_ends_none(as_alice, two):
    example = shown(as_alice.get(URL))
    leased = JudgeLease.objects.get().leased_at
    assert shown(as_alice.get(URL)) == example
    assert tap(as_alice, example).status_code == 429
    assert JudgeLease.objects.get().leased_at == leased


def test_a_vote_that_is_sent_again_is_answered_as_the_first_time(as_alice, nli, bob, alice):
    example = write(nli, bob)
    as_alice.get(URL)
    wait()
    tap(as_alice, example)
    JudgeLease.objects.update(leased_at=timezone.now())
    said = {"validator": alice.annotator, "example": example, "vote": Vote("neutral")}
    assert services.cast_validation(**said) == Validation.objects.get()


def test_a_flag_keeps_what_was_typed_and_a_skip_keeps_the_example(as_alice, two):
    example = shown(as_alice.get(URL))
    flag = {"example": example.uuid, "flag_reason": "other", "flag_comment": "It is a poem."}
    refused = as_alice.post(f"{URL}flag/", flag, **HTMX)
    assert (refused.status_code, "It is a poem." in refused.text) == (429, True)
    skipped = as_alice.post(f"{URL}skip/", {"example": example.uuid}, **HTMX)
    assert (skipped.status_code, shown(skipped)) == (429, example)
    assert not Validation.objects.exists()
    assert not Skip.objects.exists()


def test_a_gold_item_is_no_faster(as_alice, nli, alice, bob, always):
    make_gold(nli, UserFactory(), bob)
    write_many(nli, bob, ["fooled"] * 2)
    first = shown(as_alice.get(URL))
    wait()
    tap(as_alice, first, **HTMX)
    golden = JudgeLease.objects.get(is_gold=True).example
    assert tap(as_alice, golden).status_code == 429
    assert not GoldAnswer.objects.exists()


def test_the_api_says_when_to_send_it_again_and_takes_it_then(api_of, alice, nli, bob):
    nli.task.config_text += "programs: {judge: true}\n"
    nli.task.save()
    example, api = write(nli, bob), api_of(alice)
    api.post("/api/v1/tasks/nli/judging/next/")
    path, vote = f"/api/v1/examples/{example.uuid}/validations/", {"vote": "label:neutral"}
    refused = api.post(path, vote, headers={"Idempotency-Key": "one"})
    assert (refused.status_code, refused["Retry-After"]) == (429, "1")
    assert refused.json()["error"]["code"] == "too_soon"
    wait()
    assert api.post(path, vote, headers={"Idempotency-Key": "one"}).status_code == 201


def test_an_arena_takes_no_choice_between_answers_that_have_just_come(as_alice, alice):
    task = battle_arena()
    battle = send(task, alice.annotator).battle
    sent = {"battle": battle.uuid, "winner": "tie", "turns": 1}
    assert as_alice.post("/t/duel/battle/vote/", sent, **HTMX).status_code == 429
    battle.refresh_from_db()
    assert not battle.winner
    battle.turns.update(asked_at=F("asked_at") - BRIEFLY)
    battle.turns.get().replies.update(seconds=MOMENT)  # asked earlier, answered just now
    assert as_alice.post("/t/duel/battle/vote/", sent, **HTMX).status_code == 429
    battle.turns.update(asked_at=F("asked_at") - BRIEFLY)
    assert as_alice.post("/t/duel/battle/vote/", sent, **HTMX).status_code == 200
    battle.refresh_from_db()
    assert battle.winner == "tie"


def test_the_browser_is_told_the_same_pace(as_alice, two):
    page = as_alice.get(URL)
    assert f'data-fresh="{shown(page).uuid}" data-deaf="{1000 * MOMENT}"' in page.text


def test_a_whole_test_takes_as_many_moments_as_it_has_items():
    assert reading.is_too_soon(4.9 * MOMENT, items=5)
    assert not reading.is_too_soon(5 * MOMENT, items=5)
    with pytest.raises(pace.TooSoon):
        pace.check_was_seen(timezone.now() - 2 * BRIEFLY, item_count=3)
    pace.check_was_seen(timezone.now() - 3 * BRIEFLY, item_count=3)


def test_the_test_of_a_campaign_is_not_answered_before_it_is_read(nli, bob):
    make_gold(nli, bob, UserFactory(), count=3)
    plan = {"test_items": 3, "test_right": 2, "test_tries": 2, "kind": "judge"}
    client, _page = take_part(open_campaign(nli.task, **plan))
    asked = client.get("/c/study/test/").context["items"]
    sent = {str(item.example.uuid): "label:neutral" for item in asked}
    row = Qualification.objects.get()
    for items in range(3):  # that anybody can have looked at by now
        Qualification.objects.update(tried_at=timezone.now() - items * BRIEFLY)
        page = client.post("/c/study/test/", sent)
        assert (page.status_code, page.context["items"][0].earlier_answer) == (422, "label:neutral")
    row.refresh_from_db()
    assert (row.tries, GoldAnswer.objects.exists()) == (0, False)
    Qualification.objects.update(tried_at=timezone.now() - 3 * BRIEFLY)
    assert client.post("/c/study/test/", sent).context["may_begin"]
