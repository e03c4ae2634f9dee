"""All examples of a task: filtered, and accepted, rejected, sent back or tagged at once."""

import re
from datetime import timedelta
from itertools import product

import pytest
from django.db import connection
from django.db.models import BooleanField, ExpressionWrapper
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from annotation.attempts.services import begin_attempt, finish_attempt
from annotation.context_picking.services import assign, assign_sent_back
from annotation.models import Example, Report
from annotation.refusals import NotAllowed, RoundClosed
from core.accounts.models import LogEntry
from core.accounts.services import get_annotator
from dynabench.manage.review_many import find_example_state, is_decided_by_owner
from evaluation.dataset_releases.reading import export_lines
from evaluation.dataset_releases.rows import select_releasable_examples
from tasks.models import TaskMember
from tests.support.factories import ContextFactory, UserFactory
from tests.support.judging import answered, write, write_many
from tests.support.policies import rederive
from validation.consensus.consensus import Policy
from validation.decisions import bulk_services
from validation.decisions.bulk_services import (
    Action,
    ActionRequest,
    apply_action,
    count_matched,
    undo_action,
)
from validation.decisions.filter_forms import STATE_WORDS, FilterForm
from validation.models import Consensus, ExampleTag, OwnerDecision, Validation

URL = "/own/nli/review/examples/"


@pytest.fixture
def reviewer(client, alice, nli):
    TaskMember.objects.create(task=nli.task, user=alice, role="reviewer")
    client.force_login(alice)
    return client


@pytest.fixture
def three(nli, bob):
    return [write(nli, bob, number) for number in range(3)]


def found(task, **asked):
    form = FilterForm(task, asked)
    assert form.is_valid(), form.errors
    return [example.pk for example in form.select_examples()]


def act(task, examples, actor, action, **more):
    ids = [example.pk for example in examples]
    return apply_action(
        task=task, examples=ids, actor=actor, request=ActionRequest(Action(action), **more)
    )


def states(examples):
    rows = Consensus.objects.in_bulk([example.pk for example in examples])
    return [(r.is_verified, r.is_sent_back) if (r := rows.get(e.pk)) else None for e in examples]


@pytest.mark.parametrize(
    ("role", "status"),
    [("owner", 200), ("editor", 200), ("reviewer", 200), ("viewer", 403), ("judge", 403),
     ("writer", 403), (None, 404)],
)  # fmt: skip
def test_reviewers_alone_enter(client, alice, nli, role, status):
    if role:
        TaskMember.objects.create(task=nli.task, user=alice, role=role)
    client.force_login(alice)
    assert client.get(URL).status_code == status
    assert client.post(URL, {"action": "accept"}).status_code in (status, 422)


def test_filters_combine(nli, alice, bob, three):
    first, second, third = three
    answered(first, "entailment")
    Example.objects.filter(pk=second.pk).update(
        outcome="not_fooled",
        inputs={"hypothesis": "100% sure.", "label": "entailment"},
        metadata={"why_right": "names"},
        created_at=timezone.now() - timedelta(days=3),
    )
    for name, label in (("one", "neutral"), ("two", "neutral"), ("three", "entailment")):
        judge = get_annotator(UserFactory(email=f"{name}@example.com"))
        Validation.objects.create(example=third, validator=judge, label=label)
    Validation.objects.create(example=second, validator=judge, verdict="flagged")
    rederive(round=nli, policy=Policy("n-equal", 2))
    ExampleTag.objects.create(example=third, name="odd")
    tagged = ContextFactory(round=nli, tag="negation")
    Example.objects.filter(pk=second.pk).update(context=tagged)
    task, bobs = nli.task, str(bob.annotator)
    yesterday = (timezone.now() - timedelta(days=1)).date().isoformat()
    cases = [
        ({"input.label": "entailment"}, [second]),
        ({"input.hypothesis": "STATEMENT", "outcome": "fooled"}, [first, third]),
        ({"text": "100%"}, [second]),
        ({"text": "Statement_"}, []),
        ({"output.label": "entailment"}, [first]),
        ({"output.label": "neutral"}, []),
        ({"state": "valid"}, [third]),
        ({"state": "waiting"}, [first, second]),
        ({"agreement": "split"}, [third]),
        ({"agreement": "all"}, [second]),
        ({"reports": "flagged"}, [second]),
        ({"reports": "context"}, []),
        ({"judge": str(judge)}, [second, third]),
        ({"author": bobs}, three),
        ({"tag": "odd", "round": "1"}, [third]),
        ({"slice": "negation"}, [second]),
        ({"since": yesterday}, [first, third]),
        ({"until": yesterday, "author": bobs}, [second]),
        ({"context.premise": nli.contexts.first().fields["premise"][:5]}, three),
    ]
    for asked, expected in cases:
        assert found(task, **asked) == [example.pk for example in expected], asked
    Report.objects.create(annotator=judge, context=first.context, reason="broken")
    assert found(task, reports="context") == [first.pk, third.pk]


STANDINGS = [
    None, ("undecided", False, False), ("no_consensus", False, False),
    ("decided", True, False), ("decided", False, False), ("decided", False, True),
]  # fmt: skip
"""State, is_verified and is_sent_back of a consensus, as judging may leave them."""


def test_the_words_of_a_row_are_those_of_the_one_filter_that_finds_it(nli, bob):
    example = write(nli, bob, 0)
    apart = dict(STATE_WORDS).keys() - {"by-owner", "mended"}
    for standing, retracted, by in product(STANDINGS, (None, timezone.now()), ("votes", "owner")):
        Consensus.objects.filter(example=example).delete()
        if standing:
            state, is_verified, is_sent_back = standing
            Consensus.objects.create(
                example=example, round=nli, votes=0, still_needed=0, state=state, decided_by=by,
                is_verified=is_verified, is_sent_back=is_sent_back,
            )  # fmt: skip
        Example.objects.filter(pk=example.pk).update(retracted_at=retracted)
        waits = ExpressionWrapper(FilterForm(nli.task, {}).waiting_condition, BooleanField())
        row = Example.objects.select_related("consensus").annotate(waits=waits).get()
        consensus = getattr(row, "consensus", None)
        [name] = [one for one in apart if found(nli.task, state=one)]
        assert find_example_state(row, consensus) == name, (standing, retracted, by)
        if not retracted:
            assert bool(found(nli.task, state="by-owner")) == is_decided_by_owner(consensus)


@pytest.mark.parametrize(
    "query",
    ["state=odd", "round=9", "since=tomorrow", "input.label=maybe", "tag=none", "author=w-nobody"],
)
def test_what_no_filter_means_is_told_and_shows_nothing(reviewer, three, query):
    response = reviewer.get(f"{URL}?{query}")
    assert response.status_code == 422
    assert "data-row" not in response.text
    assert reviewer.post(f"{URL}?{query}", {"action": "accept"}).status_code == 422
    assert not OwnerDecision.objects.exists()


def test_names_of_other_tasks_and_imports_are_not_to_be_found_out(nli, bob, three):
    stranger = get_annotator(UserFactory())
    bob.annotator.source = "import"
    bob.annotator.save()
    for name in (stranger.pseudonym, bob.annotator.pseudonym):
        assert "author" in FilterForm(nli.task, {"author": name}).errors


def test_each_action_and_back(nli, alice, three):
    task, (first, *_) = nli.task, three
    done = act(task, three, alice, "accept", reason="Fine.")
    assert (done.changed, done.left) == (3, [])
    assert states(three) == [(True, False)] * 3
    entry = LogEntry.objects.get(action="consensus.accepted")
    assert (entry.task, entry.data["examples"]) == ("nli", [example.pk for example in three])
    assert undo_action(task=task, actor=alice, run=done.run).changed == 3
    assert states(three) == [None] * 3

    act(task, [first], alice, "reject", reason="No.")
    assert states(three)[0] == (False, False)
    assert first.owner_decisions.get(withdrawn_at=None).reason == "No."
    assert act(task, three, alice, "undecide").changed == 1

    done = act(task, three, alice, "tag", tag="odd")
    again = act(task, three, alice, "tag", tag="odd")
    assert (again.changed, {one.code for one in again.left}) == (0, {"tagged"})
    assert found(task, tag="odd") == [example.pk for example in three]
    assert [row.count('"tags":["odd"]') for row in export_lines(nli)] == [3]
    assert undo_action(task=task, actor=alice, run=done.run).changed == 3
    assert not ExampleTag.objects.exists()
    with pytest.raises(bulk_services.NothingToUndo):
        undo_action(task=task, actor=alice, run="0" * 32)


def test_what_cannot_be_is_left_alone_and_told(nli, alice, bob, three):
    task, (gone, decided, open_) = nli.task, three
    looked_at = timezone.now()
    Example.objects.filter(pk=gone.pk).update(retracted_at=looked_at)
    act(task, [decided], alice, "reject")
    done = act(task, three, alice, "accept", looked_at=looked_at)
    assert done.changed == 1
    assert [(one.example, one.code) for one in done.left] == [
        (gone.uuid, "withdrawn"), (decided.uuid, "changed")
    ]  # fmt: skip
    assert states(three) == [None, (False, False), (True, False)]
    undone = act(task, [open_], alice, "undecide")
    act(task, [open_], alice, "accept")
    assert undo_action(task=task, actor=alice, run=done.run).left[0].code == "changed"
    assert undone.changed == 1

    nli.state = "closed"
    nli.save()
    assert act(task, [open_], alice, "send-back", reason="?").left[0].code == "closed"
    nli.state = "released"
    nli.save()
    for action in Action:
        (left,) = act(task, [open_], alice, action, tag="odd", reason="?").left
        assert left.code == "released"


def test_an_example_that_was_sent_back_is_mended(client, nli, alice, bob, three):
    task, first = nli.task, three[0]
    task.config_text = task.config_text.replace("tries_per_context: 10", "tries_per_context: 1")
    act(task, [first], alice, "send-back", reason="Mend the label.")
    assert states(three)[0] == (False, True)
    assert first.pk not in select_releasable_examples(nli).values_list("pk", flat=True)
    client.force_login(bob)
    page = client.get("/me/?status=sent-back").text
    assert "Mend the label." in page
    assert page.count("/mend/") == 1
    response = client.post(f"/me/examples/{first.uuid}/mend/")
    assert response.url == f"/t/nli/write/?retry={first.uuid}"
    page = client.get(response.url).text
    assert "Statement 0." in page
    assert "Mend the label." in page  # without going back for it
    assignment = assign(annotator=bob.annotator, round=nli)
    assert (assignment.mends, assignment.context) == (first, first.context)

    inputs = {"hypothesis": "Statement 0, mended.", "label": "neutral"}
    attempt, _ = begin_attempt(
        annotator=bob.annotator, assignment=assignment, key="1" * 32, inputs=inputs, parent=first
    )
    mended = finish_attempt(attempt=attempt, targets=[], predictions=[])
    first.refresh_from_db()
    assert first.retracted_at
    assert (mended.parent, mended.retracted_at) == (first, None)
    assert "Mend the label." not in client.get("/t/nli/write/").text
    assert found(task, state="mended") == [mended.pk]
    assert client.post(f"/me/examples/{first.uuid}/mend/").url == "/me/"


def test_nobody_mends_what_is_not_sent_back(client, nli, alice, bob, three):
    first = three[0]
    client.force_login(alice)
    assert client.post(f"/me/examples/{first.uuid}/mend/").status_code == 404
    client.force_login(bob)
    with pytest.raises(NotAllowed):
        assign_sent_back(annotator=bob.annotator, example=first)
    act(nli.task, [first], alice, "send-back", reason="?")
    nli.state = "closed"
    nli.save()
    with pytest.raises(RoundClosed):
        assign_sent_back(annotator=bob.annotator, example=first)


def looked(client, query=""):
    page = client.get(f"{URL}{query}").text
    hidden = re.findall(r'name="(looked_at|everything)"\s+value="([^"]+)"', page)
    return {"looked_at": dict(hidden)["looked_at"]}, dict(hidden)["everything"]


def test_the_page_acts_on_what_is_ticked(reviewer, three):
    seen, _ = looked(reviewer)
    data = {**seen, "action": "tag", "tag": " Odd ", "example": [str(e.uuid) for e in three[:2]]}
    response = reviewer.post(f"{URL}?outcome=fooled", data)
    assert response.url.startswith(f"{URL}?outcome=fooled&run=")
    page = reviewer.get(response.url).text
    assert re.search(r'name="undo"\s+value="([0-9a-f]{32})"', page)
    run = re.search(r"run=([0-9a-f]{32})", response.url)[1]
    assert ExampleTag.objects.filter(name="odd").count() == 2
    assert reviewer.post(URL, {"undo": run}).status_code == 302
    assert not ExampleTag.objects.exists()


def test_typed_words_and_ticks_survive_a_refusal(reviewer, three):
    chosen = str(three[0].uuid)
    for data in (
        {"action": "send-back", "example": chosen},
        {"action": "tag", "example": chosen, "reason": "Kept words"},
        {"action": "odd", "example": chosen},
        {"action": "accept"},
        {"action": "accept", "example": "no-uuid"},
    ):
        response = reviewer.post(URL, data)
        assert response.status_code == 422, data
        assert data.get("reason", "") in response.text
    again = reviewer.post(URL, {"action": "tag", "example": chosen}).text
    assert re.search(rf'value="{chosen}"[^>]*checked', again)
    assert not OwnerDecision.objects.exists()


def test_all_that_match_are_those_that_were_seen(reviewer, nli, bob, three, monkeypatch):
    seen, token = looked(reviewer, "?outcome=fooled")
    late = write(nli, bob, 9)
    data = {**seen, "action": "accept", "everything": token}
    response = reviewer.post(f"{URL}?outcome=fooled", data)
    assert response.status_code == 409
    assert not OwnerDecision.objects.exists()
    late.delete()
    assert reviewer.post(f"{URL}?outcome=fooled", data).status_code == 302
    assert OwnerDecision.objects.count() == 3
    monkeypatch.setattr(bulk_services, "MAX_EXAMPLES", 2)
    assert reviewer.post(f"{URL}?outcome=fooled", data).status_code == 409


def test_batches_and_pages_cost_the_same_however_many_rows(reviewer, nli, alice, bob, monkeypatch):
    def count(action):
        with CaptureQueriesContext(connection) as queries:
            action()
        return len(queries)

    few = write_many(nli, bob, ["fooled"] * 2)
    page = count(lambda: reviewer.get(URL))
    batch = {
        a: count(lambda a=a: act(nli.task, few, alice, a, reason="?", tag="t")) for a in Action
    }
    many = write_many(nli, alice, ["fooled"] * 60)
    assert count(lambda: reviewer.get(URL)) <= page + 1
    for action, queries in batch.items():
        again = count(lambda a=action: act(nli.task, many, alice, a, reason="?", tag="u"))
        assert again <= queries + 2, action
    monkeypatch.setattr(bulk_services, "CHUNK_EXAMPLES", 25)
    done = act(nli.task, many, alice, "accept")
    entries = LogEntry.objects.filter(data__run=done.run)
    assert sorted(len(entry.data["examples"]) for entry in entries) == [10, 25, 25]
    assert count_matched(Example.objects.all()).number == 62
