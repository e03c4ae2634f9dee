"""The owners' pages about rounds."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from annotation.context_picking.services import assign
from annotation.models import Assignment, Example
from core.accounts.models import LogEntry
from core.accounts.services import get_annotator
from tasks.models import Round, TargetModel, TaskMember
from tasks.services import OFFICIAL_FOLDER
from tests.support.factories import (
    ContextFactory,
    RoundFactory,
    TaskFactory,
    UserFactory,
    scripted_target,
)
from tests.web.conftest import HTMX
from validation.consensus.consensus import Vote
from validation.judging.queue import count_waiting_examples
from validation.judging.services import cast_validation, lease_next

URL = "/own/nli/rounds/"
PAGES = [URL, URL + "new/", URL + "1/edit/", URL + "1/close/"]


def member(task, role):
    user = UserFactory()
    TaskMember.objects.create(task=task, user=user, role=role)
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def editor(nli):
    return member(nli.task, "editor")


def plan(**changes):
    return {"rule": "majority", "show_target_name": "on", "description": "", **changes}


def examples(round, author, count, **fields):
    return [
        Example.objects.create(
            round=round, context=round.contexts.first(), annotator=get_annotator(author),
            inputs={"hypothesis": str(n), "label": "neutral"}, digest=str(n), outcome="fooled",
            **fields,
        )
        for n in range(count)
    ]  # fmt: skip


def test_strangers_learn_nothing(as_alice, nli, client):
    for path in PAGES:
        assert as_alice.get(path).status_code == 404
    assert Client().get(URL).status_code == 302


def test_a_moderator_reads_and_finds_no_button(nli):
    page = member(nli.task, "reviewer").get(URL).text
    assert "Round 1" in page
    assert "Close round 1" not in page
    assert f"{URL}new/" not in page


def test_a_card_says_what_a_round_has(editor, nli, bob):
    target = scripted_target(nli, label="entailment")
    Round.objects.update(
        max_collected=40, max_spent=900, pay_example=100, ends_at="2999-01-02T00:00Z"
    )
    second = RoundFactory(task=nli.task, number=2, state="draft", show_target_name=False)
    second.parents.add(nli)
    examples(nli, bob, 3)
    page = editor.get(URL).text
    for words in (
        '<progress value="3" max="40"', target.name, "2 Jan 2999",
        '<progress value="300" max="900"', 'href="#round-1">',
        "/own/nli/rounds/1/close/", "/own/nli/rounds/1/pause/", "/own/nli/rounds/2/ready/",
    ):  # fmt: skip
        assert words in page


def test_waiting_counts_what_is_queued_and_what_nobody_has_looked_at(nli, alice, bob):
    made = examples(nli, bob, 3)
    assert count_waiting_examples([nli])[nli.pk] == 3
    lease = lease_next(validator=get_annotator(alice), task=nli.task)
    assert count_waiting_examples([nli])[nli.pk] == 3
    cast_validation(
        validator=get_annotator(alice), example=lease.example, vote=Vote(label="neutral")
    )
    made[0].retracted_at = timezone.now()
    made[0].save()
    assert count_waiting_examples([nli])[nli.pk] == 2
    nli.state = "released"
    assert count_waiting_examples([nli])[nli.pk] == 0


def test_closing_says_who_is_writing_and_what_waits(editor, nli, alice, bob):
    close = URL + "1/close/"

    def numbers():
        return re.findall(r"\d+", editor.get(close).context["effect"])

    assert numbers() == []
    examples(nli, bob, 1)
    assign(annotator=get_annotator(alice), round=nli)
    assert numbers() == ["1", "15"]
    assign(annotator=get_annotator(bob), round=nli)
    Example.objects.create(
        round=nli, context=nli.contexts.first(), annotator=get_annotator(bob), inputs={},
        digest="x", outcome="fooled",
    )  # fmt: skip
    assert numbers() == ["2", "15", "2"]
    assert Round.objects.get().state == "open"


def test_a_change_without_htmx_goes_back_to_the_card(editor, nli):
    response = editor.post(URL + "1/pause/")
    assert response.url == URL + "#round-1"
    assert Round.objects.get(number=1).state == "paused"
    assert LogEntry.objects.get(action="round.paused").actor is not None


def test_nobody_is_asked_to_do_what_is_done(editor, nli):
    editor.post(URL + "1/pause/")
    assert editor.get(URL + "1/pause/").url == URL + "#round-1"


def test_htmx_swaps_the_card(editor, nli):
    ask = editor.get(URL + "1/close/", **HTMX).text
    assert ask.lstrip().startswith('<section class="card" id="round-1"')
    card = editor.post(URL + "1/close/", **HTMX).text
    assert "<html" not in card
    assert 'id="round-1"' in card
    assert "Open round 1" in card


def test_a_change_that_cannot_be_says_why(editor, nli):
    RoundFactory(task=nli.task, number=2, state="draft")
    for options in ({}, HTMX):
        response = editor.post(URL + "2/open/", **options)
        assert response.status_code == 409
        assert Round.objects.get(number=2).state == "draft"


def test_release_is_no_bare_button(editor, nli, bob):
    for action in ("release", "released", "reopen"):
        assert editor.post(URL + f"1/{action}/").status_code in (302, 403, 404, 409, 422)
    assert Round.objects.get().state == "open"

    def offers_release():
        _side, rounds = editor.get(URL).text.split('<div class="owner">')
        return 'href="/own/nli/rounds/1/release/"' in rounds

    Round.objects.update(state="closed")
    assert not offers_release()
    TaskMember.objects.update(role="owner")  # an editor cannot release
    assert offers_release()
    now = timezone.now()
    Round.objects.update(closed_at=now, writing_until=now + timedelta(minutes=3))
    assert offers_release()  # nobody is writing
    Assignment.objects.create(
        annotator=get_annotator(bob), round=nli, context=nli.contexts.first(), assigned_at=now
    )
    assert not offers_release()
    page = editor.get(URL).text
    assert f"{Round.objects.get().writing_until:%H:%M}" in page
    Round.objects.update(state="released", writing_until=None)
    page = editor.get(URL).text
    assert "/own/nli/train/" in page
    assert f"{URL}1/edit/" not in page
    assert editor.get(URL + "1/release/").status_code != 500


def test_the_page_closes_a_round_whose_end_has_come(editor, nli):
    Round.objects.update(ends_at=timezone.now())
    assert 'class="state closed"' in editor.get(URL).text


def test_the_next_round_is_planned(editor, nli):
    targets = [
        TargetModel.objects.create(task=nli.task, name=name, adapter="scripted") for name in "ab"
    ]
    nli.contexts.filter(pk=nli.contexts.first().pk).update(is_retired=True, tag="old")
    form = plan(
        targets=[target.name for target in targets], parents=[1], contexts_of=1,
        max_fooling="20", pay_bonus="1.5", ends_at="2999-05-06T07:08", description="Try *hard*.",
    )  # fmt: skip
    assert editor.post(URL + "new/", form).url == URL + "#round-2"
    made = Round.objects.get(number=2)
    assert (made.state, made.max_fooling, made.max_spent, made.pay_example) == (
        "draft",
        20,
        None,
        0,
    )
    assert made.pay_bonus == 150  # typed in euros, kept in cents
    assert made.ends_at.isoformat() == "2999-05-06T07:08:00+00:00"
    assert [row.target for row in made.round_targets.all()] == list(targets)
    assert made.parents.get() == nli
    copied = made.contexts.values_list("fields", flat=True)
    assert list(copied) == list(
        nli.contexts.filter(is_retired=False).values_list("fields", flat=True)
    )
    assert LogEntry.objects.filter(action="round.created").exists()


def test_a_draft_takes_the_contexts_of_an_earlier_round(editor, nli):
    two = RoundFactory(task=nli.task, number=2, state="draft")
    assert 'name="contexts_of"' in editor.get(URL + "2/edit/").text
    for _ in range(2):  # what it has stays once
        assert editor.post(URL + "2/edit/", plan(contexts_of=1)).status_code == 302
        assert two.contexts.count() == nli.contexts.count()
    Round.objects.filter(pk=two.pk).update(opened_at=timezone.now())
    assert 'name="contexts_of"' not in editor.get(URL + "2/edit/").text


def test_only_what_belongs_to_the_task_can_be_chosen(editor, nli):
    text = (OFFICIAL_FOLDER / "nli" / "task.yaml").read_text()
    foreign = RoundFactory(task=TaskFactory(code="foreign", config_text=text), number=9)
    ContextFactory(round=foreign)
    target = scripted_target(foreign)
    form = plan(targets=[target.name], parents=[9], contexts_of=9)
    response = editor.post(URL + "new/", form)
    assert response.status_code == 422
    assert {*response.context["form"].errors} == {"targets", "parents", "contexts_of"}
    assert not nli.task.rounds.filter(number=2).exists()


def test_what_was_typed_survives_an_error(editor, nli):
    response = editor.post(
        URL + "new/", plan(description="Keep this.", ends_at="2001-01-01T00:00", max_spent="-1")
    )
    assert response.status_code == 422
    assert 'href="#id_ends_at"' in response.text
    assert "Keep this." in response.text
    assert "<title>Error:" in response.text.replace("\n", "")


def test_a_plan_changes_and_stays_fixed_after_the_opening(editor, nli):
    target = scripted_target(nli, label="neutral")
    Round.objects.update(opened_at=timezone.now())
    page = editor.get(URL + "1/edit/").text
    assert 'name="rule"' not in page
    form = plan(rule="any", targets=[], description="New words", max_collected="5")
    assert editor.post(URL + "1/edit/", form).status_code == 302
    nli.refresh_from_db()
    assert (nli.rule, nli.description, nli.max_collected) == ("majority", "New words", 5)
    assert nli.targets.get() == target
    entry = LogEntry.objects.get(action="round.changed")
    assert sorted(entry.data["fields"]) == ["description", "max_collected"]


def test_a_budget_is_shown_in_money(editor, nli):
    Round.objects.update(max_spent=1250)
    assert "0.00 EUR of 12.50 EUR" in editor.get(URL).text


def test_money_is_typed_in_major_units(editor, nli):
    Round.objects.update(max_spent=1250, pay_example=5)
    form = editor.get(URL + "1/edit/").context["form"]
    assert (form["max_spent"].initial, form["pay_example"].initial) == ("12.50", "0.05")
    typed = {"max_spent": "20", "pay_example": "0.15"}
    assert editor.post(URL + "1/edit/", plan(**typed)).status_code == 302
    nli.refresh_from_db()
    assert (nli.max_spent, nli.pay_example, nli.pay_bonus) == (2000, 15, 0)
    refused = editor.post(URL + "1/edit/", plan(pay_example="0.155", max_spent="999999999"))
    assert set(refused.context["form"].errors) == {"pay_example", "max_spent"}


def test_a_budget_that_is_reached_already_closes_the_round(editor, nli, bob):
    examples(nli, bob, 2)
    editor.post(URL + "1/edit/", plan(max_collected="2"))
    assert Round.objects.get().state == "closed"


def test_a_released_round_does_not_change(editor, nli):
    Round.objects.update(state="released")
    response = editor.post(URL + "1/edit/", plan(description="Other"))
    assert response.status_code == 422
    assert response.context["form"].errors
    assert Round.objects.get().description == ""
