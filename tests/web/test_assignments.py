"""Assignments: what members are asked for, what they are given by it, and who sees it."""

from datetime import timedelta
from itertools import chain

import pytest
from django.utils import timezone

from annotation.models import Example
from annotation.refusals import CapReached
from core.accounts.services import get_annotator
from core.errors import Invalid, Refused
from tasks.members.assignments.services import change_assignment, end_assignment, set_assignments
from tasks.models import Duty, TaskMember
from tasks.services import change_members
from tests.support.factories import UserFactory, scripted_target
from tests.support.judging import judge, write, write_many
from tests.support.writing import open_form
from validation.consensus.consensus import Vote
from validation.decisions.services import override_consensus
from validation.judging import gold
from validation.judging.assignments import list_assignment_rows
from validation.judging.queue_services import fill_queue
from validation.judging.services import cast_validation, lease_next, skip_example
from validation.models import JudgeLease, QueueItem, Validation

NEUTRAL = Vote(label="neutral")
OWN, MINE, WRITE = "/own/nli/access/assignments/", "/me/assignments/", "/t/nli/write/"


@pytest.fixture
def owner(nli, alice):
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    return alice


@pytest.fixture
def judges(nli):
    people = [UserFactory() for _ in range(3)]
    for one in people:
        TaskMember.objects.create(task=nli.task, user=one, role="judge")
    return people


@pytest.fixture
def forty(nli, bob):
    return write_many(nli, bob, ["fooled"] * 40)


def ask(nli, owner, people=(), **what):
    return set_assignments(task=nli.task, actor=owner, kind="judge", people=people, **what)


def judge_all(nli, user, most=100):
    """Judge what one is given; which examples those were."""
    seen, me = [], get_annotator(user)
    while len(seen) < most and (lease := lease_next(validator=me, task=nli.task)):
        cast_validation(validator=me, example=lease.example, vote=NEUTRAL)
        seen.append(lease.example_id)
    return seen


def test_shares_split_the_queue_with_overlap(nli, owner, judges, forty):
    assignments = ask(nli, owner, judges, overlap=2, due_on=timezone.now().date())
    seen = [judge_all(nli, user) for user in judges]
    assert sorted(chain(*seen)) == sorted(2 * [one.pk for one in forty])
    assert all(seen)
    found = {
        one.assignment.person: one.progress for one in list_assignment_rows(Duty.objects.all())
    }
    assert [found[user].done_count for user in judges] == [len(mine) for mine in seen]
    assert all(one.is_done for one in found.values())
    assert [assignment.share for assignment in assignments] == pytest.approx([1 / 3] * 3)


def test_places_of_a_share_are_kept_until_its_day_is_over(nli, owner, judges, forty):
    """Examples need three votes: two are kept, so a stranger may give one."""
    (first, second), stranger = judges[:2], UserFactory()
    ask(nli, owner, [first, second], overlap=2, due_on=timezone.now().date())
    assert len(judge_all(nli, stranger)) == 40
    another = UserFactory()
    assert judge_all(nli, another) == []
    skipped = lease_next(validator=get_annotator(first), task=nli.task).example
    skip_example(validator=get_annotator(first), example=skipped)
    assert judge_all(nli, another) == [skipped.pk]
    assert len(judge_all(nli, second)) == 40
    Duty.objects.update(due_on=timezone.now().date() - timedelta(days=1))
    assert len(judge_all(nli, another)) == 39
    assert not QueueItem.objects.filter(free__gt=0).exists()


def test_a_number_is_no_more_than_that_with_gold_and_late_answers(nli, owner, judges, forty):
    first, second = judges[:2]
    me = get_annotator(first)
    (assignment,) = ask(nli, owner, [first], amount=3, round=nli)
    ask(nli, owner, amount=5)
    assert len(judge_all(nli, first, most=2)) == 2
    lease = lease_next(validator=me, task=nli.task)
    JudgeLease.objects.filter(pk=lease.pk).update(until=timezone.now())
    assert len(judge_all(nli, first)) == 1
    if not Validation.objects.filter(example=lease.example_id, validator=me).exists():
        with pytest.raises(CapReached):
            cast_validation(validator=me, example=lease.example, vote=NEUTRAL)
    assert len(judge_all(nli, second)) == 5
    assert len(judge_all(nli, UserFactory())) == 5
    change_assignment(
        assignment=assignment, actor=owner, amount=4, share=None, overlap=1, due_on=None
    )
    assert len(judge_all(nli, first)) == 1
    end_assignment(assignment=assignment, actor=owner)
    assert len(judge_all(nli, first)) == 1  # now everybody's five hold, of which four are done


def test_no_place_is_kept_for_a_closed_account(nli, owner, judges, forty):
    ask(nli, owner, judges, overlap=3)
    stranger = get_annotator(UserFactory())
    assert lease_next(validator=stranger, task=nli.task) is None
    judges[0].is_active = False
    judges[0].save()
    assert lease_next(validator=stranger, task=nli.task)


def test_nobody_is_given_their_own_or_exceeds_a_cap(nli, owner, judges, forty):
    first = judges[0]
    own = Example.objects.filter(pk__in=[one.pk for one in forty[:20]])
    own.update(annotator=get_annotator(first))
    ask(nli, owner, [first], share=1.0)
    assert set(judge_all(nli, first)) == {one.pk for one in forty[20:]}
    assert judge_all(nli, owner) == []


@pytest.mark.parametrize(
    ("what", "field"),
    [
        ({"share": 0.6}, "share"),
        ({"share": 0.5, "overlap": 3}, "overlap"),
        ({"amount": 5, "kind": "write"}, "people"),
        ({"kind": "write"}, "amount"),
        ({"kind": "write", "share": 0.5}, "amount"),
        ({"amount": 5, "share": 0.5}, "share"),
        ({"share": 0.5, "people": ()}, "share"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_its_field(nli, owner, judges, what, field):
    with pytest.raises(Invalid) as refused:
        ask(
            nli, owner, **{"people": judges[:2], **what}
        ) if "kind" not in what else set_assignments(
            task=nli.task, actor=owner, **{"people": judges[:2], **what}
        )
    assert refused.value.field == field
    assert not Duty.objects.exists()


def test_the_same_is_not_asked_twice_and_strangers_ask_nothing(nli, owner, judges, bob):
    (assignment,) = ask(nli, owner, judges[:1] * 2, amount=5)
    Duty.objects.update(kind="write")
    with pytest.raises(Invalid):
        change_assignment(
            assignment=assignment, actor=owner, amount=None, share=0.5, overlap=1, due_on=None
        )
    Duty.objects.update(kind="judge")
    with pytest.raises(Invalid):
        ask(nli, owner, judges, amount=5)
    with pytest.raises(Refused):
        ask(nli, bob, judges[1:], amount=5)
    with pytest.raises(Refused):
        end_assignment(assignment=Duty.objects.get(), actor=bob)


def test_who_loses_the_role_keeps_what_they_did_and_is_asked_no_more(nli, owner, judges, forty):
    ask(nli, owner, judges, amount=2)
    assert len(judge_all(nli, judges[0])) == 2
    removed, changed = nli.task.members.filter(user__in=judges[:2]).order_by("pk")
    changed.role = "reviewer"
    change_members(task=nli.task, actor=owner, removed_members=[removed], changed_members=[changed])
    assert [assignment.person for assignment in Duty.objects.select_current()] == judges[2:]
    assert Validation.objects.count() == 2


def test_writers_are_asked_for_a_number_and_no_more(nli, owner, client):
    scripted_target(nli, label="entailment")
    writer = UserFactory()
    TaskMember.objects.create(task=nli.task, user=writer, role="writer")
    set_assignments(task=nli.task, actor=owner, kind="write", people=[writer], amount=1)
    client.force_login(writer)
    assert "assignment: 0 of 1" in client.get(WRITE).text
    first = {**open_form(client, WRITE), "hypothesis": "A first one."}
    assert client.post(WRITE, first, follow=True).status_code == 200
    assert "assignment: 1 of 1" in client.get(WRITE).text
    second = {**open_form(client, WRITE), "hypothesis": "Quite another text."}
    assert client.post(WRITE, second).status_code == 429
    assert Example.objects.count() == 1
    [row] = client.get(MINE).context["rows"]
    assert (row.state, row.progress.done_count) == ("done", 1)


def test_owners_set_change_and_end_them_on_pages(nli, as_alice, owner, judges, forty):
    page = as_alice.get(OWN)
    for one in judges:
        assert one.email in page.text
    today = timezone.now().date().isoformat()
    asked = {"kind": "judge", "people": [one.pk for one in judges], "overlap": 2, "due_on": today}
    assert as_alice.post(OWN, {**asked, "everybody": "on"}).status_code == 422
    assert as_alice.post(OWN, {**asked, "share": 50}).status_code == 422
    assert as_alice.post(OWN, {**asked, "due_on": "2020-01-01"}).status_code == 422
    assert as_alice.post(OWN, asked).url == OWN
    third = Duty.objects.get(person=judges[2])
    change = f"{OWN}{third.pk}/"
    shown = {"share": as_alice.get(change).context["form"].initial["share"], "overlap": 3}
    assert as_alice.post(change, {**shown, "due_on": today}).url == OWN
    assert {(one.share, one.overlap) for one in Duty.objects.all()} == {(third.share, 3)}
    assert as_alice.post(change, {**shown, "share": 40, "due_on": today}).status_code == 422
    assert as_alice.post(change, {**shown, "overlap": 2, "due_on": today}).url == OWN
    more = {"kind": "judge", "everybody": "on", "amount": 7, "overlap": 1, "round": 1}
    assert as_alice.post(OWN, more).url == OWN
    everybodys = Duty.objects.get(person=None)
    assert (everybodys.round, everybodys.amount) == (nli, 7)
    assert as_alice.post(f"{OWN}{everybodys.pk}/", {"amount": 9, "overlap": 1}).url == OWN
    assert as_alice.get(f"{OWN}{everybodys.pk}/").context["form"].initial["amount"] == 9
    fill_queue(round=nli)
    rows = as_alice.get(OWN).context["rows"]
    assert [row.assignment.person for row in rows[-1:]] == [None]
    assert sum(row.progress.required_count for row in rows[:3]) == 80
    for row in rows:
        assert as_alice.post(f"{OWN}{row.assignment.pk}/end/").url == OWN
    assert {row.state for row in as_alice.get(OWN).context["rows"]} == {"over"}
    assert as_alice.get(f"{OWN}{everybodys.pk}/").status_code == 404


def test_a_person_sees_what_is_asked_in_all_tasks(nli, qa, owner, judges, forty, client, bob):
    """Of everybody's in a task that all see, too; of a share never what is left."""
    first = judges[0]
    today = timezone.now().date()
    ask(nli, owner, [first], share=0.5, due_on=today)
    TaskMember.objects.create(task=qa.task, user=owner, role="owner")
    set_assignments(task=qa.task, actor=owner, kind="judge", people=(), amount=2, due_on=None)
    client.force_login(first)
    rows = client.get(MINE).context["rows"]
    assert [(one.assignment.task, one.state, one.progress.done_count) for one in rows] == [
        (nli.task, "open", 0), (qa.task, "open", 0),
    ]  # fmt: skip
    page = client.get("/t/nli/judge/").text
    assert "assignment: 0" in page
    judge(client, "label:neutral")
    page = client.get(MINE).text
    assert '"/t/nli/judge/"' in page
    left = client.get(MINE).context["rows"][0].progress.required_count - 1
    assert f"of {left}" not in page
    write(qa, bob, question="Who?", answer="Ada")
    lease = lease_next(validator=get_annotator(first), task=qa.task)
    cast_validation(
        validator=get_annotator(first), example=lease.example, vote=Vote(verdict="correct")
    )
    rows = client.get(MINE).context["rows"]
    assert [(one.assignment.task, one.progress.done_count) for one in rows] == [
        (nli.task, 1),
        (qa.task, 1),
    ]
    client.force_login(bob)
    write_, judge_ = {"kind": "write", "people": (), "amount": 3}, {"kind": "judge", "people": ()}
    qa.state = "closed"  # nobody writes there, and some still judge
    qa.save()
    set_assignments(task=qa.task, actor=owner, **write_, due_on=None)
    assert [one.assignment.kind for one in client.get(MINE).context["rows"]] == [judge_["kind"]]


def test_a_judge_whose_number_is_reached_reads_so(nli, owner, judges, forty, client):
    ask(nli, owner, judges[:1], amount=1)
    client.force_login(judges[0])
    assert "assignment: 0 of 1" in client.get("/t/nli/judge/").text
    done = judge(client, "label:neutral")
    assert 'id="asked-no-more"' in done.text


def test_gold_counts_like_a_vote(nli, owner, judges, forty, monkeypatch):
    """Otherwise the number would tell which items are gold."""
    known = write(nli, UserFactory(), 99)
    override_consensus(example=known, owner=owner, choice=NEUTRAL)
    gold.mark_gold(example=known, owner=owner)
    monkeypatch.setattr(gold, "is_gold_turn", lambda *_: True)
    ask(nli, owner, judges[:1], amount=2)
    seen = judge_all(nli, judges[0])
    assert known.pk in seen
    assert len(seen) == 2
    [mine] = list_assignment_rows(Duty.objects.all())
    assert mine.progress.done_count == 2
