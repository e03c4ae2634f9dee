"""How a round closes: by hand or by its budget, with time for those who are writing."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotation.attempts.services import begin_attempt
from annotation.context_picking.services import assign, change_goal, save_draft
from annotation.models import Assignment, Example
from annotation.refusals import RoundClosed
from core.accounts.models import LogEntry
from core.accounts.services import get_annotator
from core.errors import Refused
from tasks.models import Round
from tasks.questions import find_writers, get_used_budget
from tasks.rounds.states import close_due_rounds, close_round_if_due, set_round_state
from tasks.selectors import count_late_writers
from tests.support.factories import RoundFactory, scripted_target
from tests.support.writing import open_form
from validation.consensus.consensus import Vote
from validation.judging.services import cast_validation, lease_next
from validation.models import JudgeLease

URL = "/t/nli/write/"
HTMX = {"HTTP_HX_REQUEST": "true"}
LONG_AGO = timezone.now() - timedelta(hours=2)


def close(round, **more):
    return set_round_state(round=round, state="closed", actor=None, **more)


def send(client, text="Another statement."):
    return client.post(URL, open_form(client, text=text), **HTMX)


def idle():
    """Nobody has done anything for long."""
    Assignment.objects.update(assigned_at=LONG_AGO, draft_saved_at=None)


@pytest.fixture
def target(nli):
    return scripted_target(nli, label="entailment", prob=None)


def test_a_round_in_which_nobody_writes_closes_at_once(nli, alice):
    assign(annotator=get_annotator(alice), round=nli)
    idle()
    closed = close(nli)
    assert (closed.state, closed.writing_until, closed.is_being_written) == ("closed", None, False)
    assert LogEntry.objects.get(action="round.closed").data == {"writing": 0}


def test_saving_or_sending_lately_is_writing(nli, alice, bob):
    first, second = (assign(annotator=get_annotator(who), round=nli) for who in (alice, bob))
    idle()
    assert not find_writers(nli, timezone.now())
    Assignment.objects.filter(pk=first.pk).update(draft_saved_at=timezone.now())
    assert [row.pk for row in find_writers(nli, timezone.now())] == [first.pk]
    for _ in range(2):
        key = "a" * 31 + str(_)
        begin_attempt(annotator=second.annotator, assignment=second, key=key, inputs={"x": str(_)})
    assert {row.pk for row in find_writers(nli, timezone.now())} == {first.pk, second.pk}
    Assignment.objects.update(left_at=timezone.now())
    assert not find_writers(nli, timezone.now())


def test_who_has_read_the_verdict_and_typed_nothing_since_is_not_waited_for(
    as_alice, alice, bob, nli, target
):
    send(as_alice, "One statement.")
    (mine,) = Assignment.objects.filter(annotator=get_annotator(alice), left_at=None)
    assert not find_writers(nli, timezone.now())
    save_draft(assignment=mine, inputs={"hypothesis": "A second one, half"})
    assert [row.pk for row in find_writers(nli, timezone.now())] == [mine.pk]
    send(as_alice, "A second one, wholly typed.")
    assign(annotator=get_annotator(bob), round=nli)
    closed = close(nli)
    assert count_late_writers(closed) == 1  # Bob alone
    Assignment.objects.filter(annotator=get_annotator(bob)).update(left_at=timezone.now())
    assert set_round_state(round=closed, state="released", actor=alice).state == "released"


def test_who_is_writing_finishes_one_example(as_alice, nli, target):
    form = open_form(as_alice, text="I was at it.")
    closed = close(nli)
    assert timedelta(minutes=14) < closed.writing_until - timezone.now() <= timedelta(minutes=15)
    page = as_alice.get(URL).text
    assert 'id="closing"' in page
    assert f'<time datetime="{closed.writing_until:%Y-%m-%d}' in page
    assert f"{closed.writing_until:%H:%M} UTC" in page
    assert as_alice.post(URL, form, **HTMX).status_code == 200
    assert Example.objects.get().round == nli
    late = as_alice.post(
        URL, {**form, "attempt_key": "0" * 32, "hypothesis": "And one more."}, **HTMX
    )
    assert late.status_code == 410
    assert Example.objects.count() == 1
    assert 'id="refused"' in as_alice.get(URL).text


def test_the_draft_tells_that_the_round_closed(as_alice, nli, target):
    as_alice.get(URL)
    assignment = Assignment.objects.get()
    close(nli)
    before = Assignment.objects.get().draft_saved_at
    said = as_alice.post(f"/draft/{assignment.pk}/", {"hypothesis": "I go on"}).text
    assert 'hx-swap-oob="innerHTML:#status"' in said
    assignment.refresh_from_db()
    assert assignment.draft["hypothesis"] == "I go on"
    assert assignment.draft_saved_at == before


def test_who_was_idle_does_not_come_back(as_alice, bob, nli, target):
    form = open_form(as_alice, text="I was away.")
    idle()
    assign(annotator=get_annotator(bob), round=nli)  # writes, so that the round gives time
    assert close(nli).is_being_written
    as_alice.post(f"/draft/{Assignment.objects.earliest('pk').pk}/", {"hypothesis": "Typing"})
    assert as_alice.post(URL, form, **HTMX).status_code == 410
    assert 'id="refused"' in as_alice.get(URL).text
    assert not Example.objects.exists()


def test_the_time_ends(as_alice, nli, target):
    form = open_form(as_alice, text="Too slow.")
    close(nli)
    Round.objects.update(writing_until=timezone.now() - timedelta(seconds=1))
    assert as_alice.post(URL, form, **HTMX).status_code == 410
    assert not Example.objects.exists()


def test_nothing_new_is_handed_out_after_the_closing(as_alice, alice, bob, nli, target):
    as_alice.get(URL)
    close(nli)
    mine = Assignment.objects.get()
    mine.round.refresh_from_db()
    for who, action in (
        (alice, lambda: assign(annotator=get_annotator(alice), round=nli, is_fresh=True)),
        (bob, lambda: assign(annotator=get_annotator(bob), round=nli)),
        (alice, lambda: change_goal(assignment=mine)),
    ):
        with pytest.raises(RoundClosed):
            action()
        assert who
    for want in ("passage", "goal", "edit"):
        assert as_alice.post("/t/nli/write/next/", {"want": want}, **HTMX).status_code == 410
    assert Assignment.objects.get().left_at is None


def test_the_next_round_waits_for_what_is_being_written(as_alice, nli, target):
    form = open_form(as_alice, text="For the old round.")
    close(nli)
    second = RoundFactory(task=nli.task, number=2)
    second.contexts.create(fields={"premise": "A new one."}, digest="2")
    assert 'id="closing"' in as_alice.get(URL).text
    as_alice.post(URL, form, **HTMX)
    assert Example.objects.get().round == nli
    assert "A new one." in as_alice.get(URL).text


def test_release_waits_for_those_who_write(nli, alice):
    assign(annotator=get_annotator(alice), round=nli)
    closed = close(nli)
    with pytest.raises(Refused):
        set_round_state(round=closed, state="released", actor=None)
    assert Round.objects.get().state == "closed"
    Round.objects.update(writing_until=timezone.now())
    assert set_round_state(round=closed, state="released", actor=alice).state == "released"
    with pytest.raises(Refused):
        set_round_state(round=closed, state="open", actor=None)


def test_a_release_waits_no_longer_than_people_write(as_alice, nli, target, alice):
    form = open_form(as_alice, text="I was at it.")
    closed = close(nli)
    assert count_late_writers(closed) == 1
    as_alice.post(URL, form, **HTMX)
    closed.refresh_from_db()
    assert (closed.is_being_written, count_late_writers(closed)) == (True, 0)
    assert set_round_state(round=closed, state="released", actor=alice).state == "released"


def test_closing_again_gives_no_more_time_where_nobody_has_written_since(nli, alice, bob):
    assign(annotator=get_annotator(alice), round=nli)
    first = close(nli)
    earlier = timezone.now() - timedelta(minutes=4)
    Assignment.objects.update(assigned_at=earlier - timedelta(minutes=1))
    Round.objects.update(closed_at=earlier)
    set_round_state(round=nli, state="open", actor=alice)
    again = close(nli)
    assert again.writing_until == earlier + timedelta(minutes=15) < first.writing_until
    set_round_state(round=nli, state="open", actor=alice)
    assign(annotator=get_annotator(bob), round=nli)
    assert close(nli).writing_until > first.writing_until
    Assignment.objects.update(left_at=timezone.now())
    set_round_state(round=nli, state="open", actor=alice)
    assert close(nli).writing_until is None


def test_the_pages_say_who_is_writing_before_anything_is_clicked(client, nli, alice, bob):
    nli.task.members.create(user=alice, role="owner")
    client.force_login(alice)
    assign(annotator=get_annotator(bob), round=nli)
    asked = client.get("/own/nli/rounds/1/close/").context["effect"]
    assert "15" in asked
    closed = close(nli)
    page = "/own/nli/rounds/1/release/"
    assert f"{closed.writing_until:%H:%M}" in client.get(page).context["waits"]
    (card,) = client.get("/own/nli/rounds/").context["cards"]
    assert card.writing == 1
    Assignment.objects.update(left_at=timezone.now())
    assert client.get(page).context["waits"] == ""


def test_opening_again_forgets_the_time(nli, alice):
    assign(annotator=get_annotator(alice), round=nli)
    close(nli)
    opened = set_round_state(round=nli, state="open", actor=alice)
    assert (opened.writing_until, opened.state) == (None, "open")


def test_the_example_that_fills_the_budget_closes_the_round(as_alice, nli, target):
    Round.objects.update(max_collected=2)
    send(as_alice, "One statement.")
    assert Round.objects.get().state == "open"
    send(as_alice, "And a second one.")
    entry = LogEntry.objects.get(action="round.closed")
    assert Round.objects.get().state == "closed"
    assert (entry.actor, entry.data) == (None, {"reason": "collected", "writing": 0})


def test_what_was_retracted_is_not_collected(as_alice, nli, target):
    Round.objects.update(max_collected=2)
    send(as_alice, "One statement.")
    Example.objects.update(retracted_at=timezone.now())
    send(as_alice, "And a second one.")
    assert Round.objects.get().state == "open"


def judged(nli, author, *validators, label="neutral"):
    """An example by `author` that fooled, with one vote of each of the validators."""
    Example.objects.create(
        round=nli, context=nli.contexts.first(), annotator=get_annotator(author), digest="1",
        inputs={"hypothesis": "Yes", "label": "neutral"}, outcome="fooled",
    )  # fmt: skip
    for person in validators:
        lease = lease_next(validator=get_annotator(person), task=nli.task)
        cast_validation(
            validator=get_annotator(person), example=lease.example, vote=Vote(label=label)
        )


@pytest.fixture
def crowd(django_user_model):
    from tests.support.factories import UserFactory

    return [UserFactory() for _ in range(3)]


def test_the_vote_that_verifies_the_last_fooling_example_closes_the_round(nli, alice, crowd):
    Round.objects.update(max_fooling=1)
    judged(nli, alice, *crowd[:2])
    assert Round.objects.get().state == "open"
    lease = lease_next(validator=get_annotator(crowd[2]), task=nli.task)
    cast_validation(
        validator=get_annotator(crowd[2]), example=lease.example, vote=Vote(label="neutral")
    )
    assert Round.objects.get().state == "closed"
    assert LogEntry.objects.get(action="round.closed").data["reason"] == "fooling"


def test_votes_cost_money(nli, alice, crowd):
    Round.objects.update(max_spent=120, pay_example=50, pay_validation=10, pay_bonus=40)
    judged(nli, alice, *crowd)
    nli.refresh_from_db()
    assert get_used_budget(nli) == (1, 1, 3)
    assert nli.state == "closed"
    assert LogEntry.objects.get(action="round.closed").data["reason"] == "money"


def test_counts_only_what_has_a_limit(nli, django_assert_num_queries):
    for fields, queries in (
        ({}, 0),
        ({"max_collected": 5}, 1),
        ({"max_fooling": 5}, 1),
        ({"max_spent": 5}, 3),
    ):
        Round.objects.update(**{"max_collected": None, "max_fooling": None, **fields})
        nli.refresh_from_db()
        with django_assert_num_queries(queries):
            close_round_if_due(round=nli)


def test_without_a_budget_a_submit_and_a_vote_need_no_query_more(as_alice, bob, nli, target):
    def queries_of(action):
        with CaptureQueriesContext(connection) as queries:
            action()
        return len(queries)

    send(as_alice, "One statement.")
    form = open_form(as_alice, text="And a second one.")
    plain = queries_of(lambda: as_alice.post(URL, form, **HTMX))
    Round.objects.update(max_collected=100)
    form = open_form(as_alice, text="And a third one.")
    assert queries_of(lambda: as_alice.post(URL, form, **HTMX)) == plain + 1
    Example.objects.update(outcome="fooled")  # so that all are judged
    annotator = get_annotator(bob)
    lease_next(validator=annotator, task=nli.task)

    def vote():
        example = JudgeLease.objects.get(takes_place=True).example
        cast_validation(validator=annotator, example=example, vote=Vote(label="neutral"))

    with_limit = queries_of(vote)
    Round.objects.update(max_collected=None)
    lease_next(validator=annotator, task=nli.task)
    assert queries_of(vote) <= with_limit - 1


@pytest.mark.parametrize("path", [URL, "/t/nli/try/"])
def test_the_request_that_sees_the_end_closes_the_round(as_alice, bob, nli, target, path):
    Round.objects.update(ends_at=timezone.now())
    as_alice.get(path)
    assert Round.objects.get().state == "closed"
    assert LogEntry.objects.get(action="round.closed").data == {"reason": "date", "writing": 0}


def test_a_submit_after_the_end_is_in_time_for_who_was_writing(as_alice, nli, target):
    form = open_form(as_alice, text="Just in time.")
    Round.objects.update(ends_at=timezone.now())
    assert as_alice.post(URL, form, **HTMX).status_code == 200
    assert Round.objects.get().state == "closed"
    assert Example.objects.count() == 1


def test_a_submit_after_the_end_of_who_was_idle_is_refused(as_alice, nli, target):
    form = open_form(as_alice, text="Much too late.")
    idle()
    Round.objects.update(ends_at=timezone.now())
    assert as_alice.post(URL, form, **HTMX).status_code == 410
    assert Round.objects.get().state == "closed"


def test_each_minute_closes_what_is_due(nli):
    assert close_due_rounds() == 0
    Round.objects.update(ends_at=LONG_AGO, state="paused")
    assert close_due_rounds() == 0
    Round.objects.update(state="open")
    assert close_due_rounds() == 1
    assert Round.objects.get().state == "closed"


@pytest.mark.parametrize("fields", [{"ends_at": LONG_AGO}, {"max_collected": 0}])
def test_a_round_that_would_close_at_once_does_not_open(nli, fields):
    Round.objects.update(state="paused", **fields)
    with pytest.raises(Refused):
        set_round_state(round=nli, state="open", actor=None)
