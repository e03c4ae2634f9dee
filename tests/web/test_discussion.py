"""What members say to each other about an example, and who is told."""

from datetime import timedelta

import pytest
import time_machine
from django.core import mail
from django.utils import timezone

from core.accounts.models import LogEntry
from core.accounts.services import get_annotator
from dynabench.notices.digest_services import send_digests
from dynabench.notices.models import Digest, Notice
from dynabench.notices.services import renew_notices
from dynabench.people.deletion.services import delete_person
from evaluation.dataset_releases.reading import export_lines
from tasks.models import TaskMember
from tests.support.factories import UserFactory
from tests.support.judging import write
from validation.discussion import services
from validation.models import Comment, Mention


@pytest.fixture
def example(nli, bob):
    return write(nli, bob)


@pytest.fixture
def people(nli, alice):
    """By role: members of a hidden task."""
    nli.task.is_visible = False
    nli.task.save()
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    found = {"owner": alice}
    for role in ("reviewer", "viewer", "annotator", "writer", "judge"):
        found[role] = UserFactory(email=f"{role}@example.com")
        TaskMember.objects.create(task=nli.task, user=found[role], role=role)
    return found


@pytest.fixture
def as_(client, people):
    def enter(role):
        client.force_login(people[role])
        return client

    return enter


def url(example):
    return f"/own/nli/examples/{example.uuid}/"


def at(comment):
    return f"/own/nli/comments/{comment.pk}/"


def name(person):
    return get_annotator(person).pseudonym


def test_who_reads_labels_talks_and_nobody_else_hears(as_, people, example, bob, client):
    text = f"Ask @{name(people['viewer'])}, not @{name(people['judge'])} or @{name(bob)}."
    assert as_("reviewer").post(url(example), {"text": text}).status_code == 302
    comment = Comment.objects.get()
    for role in ("owner", "reviewer", "viewer"):
        page = as_(role).get(url(example))
        assert text in page.text
    readers = {person.user for person in services.find_readers(example.round.task).values()}
    assert readers == {people[role] for role in ("owner", "reviewer", "viewer")}
    for role in ("annotator", "writer", "judge"):
        assert as_(role).get(url(example)).status_code == 403
        assert as_(role).post(url(example), {"text": "Hear."}).status_code == 403
        assert as_(role).post(at(comment), {"wish": "report"}).status_code == 403
    client.force_login(bob)
    assert client.get(url(example)).status_code == 404
    assert [mention.person.user for mention in Mention.objects.all()] == [people["viewer"]]
    assert name(people["viewer"]) not in comment.text
    assert "Ask @" not in "".join(export_lines(example.round))


def test_the_mentioned_are_told_once_by_mail_and_until_they_look(as_, people, example):
    viewer = people["viewer"]
    services.add_comment(
        example=example, author=get_annotator(people["owner"]), text=f"@{name(viewer)}!"
    )
    assert url(example) in as_("viewer").get("/me/").text
    assert send_digests() == 1
    assert mail.outbox[0].to == [viewer.email]
    assert url(example) in mail.outbox[0].body
    assert send_digests() == 0
    as_("viewer").get(url(example))
    assert url(example) not in as_("viewer").get("/me/").text

    Digest.objects.filter(user=viewer).update(told_at=None, is_off=True)
    services.add_comment(
        example=example, author=get_annotator(people["owner"]), text=f"@{name(viewer)}?"
    )
    assert send_digests() == 0
    Digest.objects.filter(user=viewer).update(is_off=False)
    TaskMember.objects.filter(user=viewer).update(role="judge")
    assert send_digests() == 0


def test_ones_own_is_changed_for_a_while_and_an_owner_deletes_any(as_, people, example):
    author = get_annotator(people["viewer"])
    comment = services.add_comment(example=example, author=author, text="Frist.")
    as_("reviewer").post(at(comment), {"text": "Not mine."})
    as_("reviewer").post(at(comment), {"wish": "remove"})
    comment.refresh_from_db()
    assert (comment.text, comment.removed_at) == ("Frist.", None)
    as_("viewer").post(at(comment), {"text": f"First, @{name(people['owner'])}."})
    assert "First, @" in as_("owner").get(url(example)).text
    assert Mention.objects.get().person.user == people["owner"]
    with time_machine.travel(timezone.now() + timedelta(hours=2)):
        as_("viewer").post(at(comment), {"text": "Too late."})
        as_("viewer").post(at(comment), {"wish": "remove"})
        comment.refresh_from_db()
        assert comment.text.startswith("First")
        as_("owner").post(at(comment), {"wish": "remove"})
    comment.refresh_from_db()
    assert (comment.text, comment.removed_at is None) == ("", False)
    assert LogEntry.objects.get(action="comment.removed").task == "nli"
    assert as_("viewer").post(url(example), {"text": " "}).status_code == 422


def test_whom_to_tell_is_chosen_among_the_readers(as_, people, example):
    page, viewer = as_("reviewer").get(url(example)).text, name(people["viewer"])
    page = page.partition('id="main"')[2]  # the header names whoever reads it
    assert f'<option value="{viewer}"' in page
    assert people["viewer"].email in as_("owner").get(url(example)).text
    assert people["viewer"].email not in page
    assert people["owner"].email not in as_("viewer").get(url(example)).text
    for gone in ("judge", "writer"):
        assert name(people[gone]) not in page
        data = {"text": "Look.", "tell": name(people[gone])}
        response = as_("viewer").post(url(example), data)
        assert (response.status_code, "Look." in response.text) == (422, True)
    as_("reviewer").post(url(example), {"text": "Look.", "tell": viewer})
    assert Mention.objects.get().person.user == people["viewer"]


def test_a_name_that_reaches_nobody_is_named(as_, people, example):
    viewer = name(people["viewer"])
    sent = {"text": f"Look, @{viewer} and @nobody-here."}
    page = as_("reviewer").post(url(example), sent, follow=True)
    (said,) = [str(one) for one in page.context["messages"]]
    assert "@nobody-here" in said
    assert viewer not in said
    assert Mention.objects.get().person.user == people["viewer"]


def test_a_report_reaches_the_owners_until_one_has_looked(as_, people, example):
    comment = services.add_comment(
        example=example, author=get_annotator(people["owner"]), text="Rude."
    )
    as_("viewer").post(at(comment), {"wish": "report"})
    renew_notices()
    assert Notice.objects.get(kind="reports", ended_at=None).numbers == {"count": 1}
    assert url(example) in as_("owner").get("/own/nli/reports/").text
    assert as_("viewer").post(at(comment), {"wish": "keep"}).status_code == 403
    as_("owner").post(at(comment), {"wish": "keep"})
    assert url(example) not in as_("owner").get("/own/nli/reports/").text


def test_who_leaves_takes_their_words_and_their_name(people, example):
    viewer, owner = people["viewer"], people["owner"]
    gone = name(viewer)
    services.report_comment(
        comment=services.add_comment(
            example=example, author=get_annotator(viewer), text="My words."
        )
    )
    services.add_comment(example=example, author=get_annotator(owner), text=f"Hello @{gone}.")
    delete_person(user=viewer)
    texts = [one.text for one in services.read_discussion(example, owner)]
    assert texts[0] == ""
    assert texts[1].startswith("Hello @w-")
    assert gone not in texts[1]
    assert not services.select_unseen_mentions()
    assert not Comment.objects.exclude(reported_at=None)
