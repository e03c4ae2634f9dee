"""Data rights: all of one's own and nothing of others; leaving takes the person and the words."""

import json

import pytest
from allauth.account.models import EmailAddress
from django.apps import apps
from django.contrib.admin.models import LogEntry as AdminLogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import transaction
from django.test import Client

from annotation.attempts.services import begin_attempt, finish_attempt
from annotation.context_picking.services import save_draft
from annotation.models import (
    Assignment,
    Attempt,
    Conversation,
    Example,
    GatePass,
    Report,
    Suggestion,
    TargetOutput,
    TextKey,
    TextVector,
)
from annotation.moderation import report_context
from core.accounts.models import Annotator, ApiToken, LogEntry, User
from core.accounts.services import get_annotator, log
from core.accounts.tokens import create_token
from core.data.encryption import decrypt
from dynabench.people.deletion import services
from dynabench.webhooks.models import Webhook
from dynabench.webhooks.services import create_webhook
from leaderboard.models import WeeklyGoal
from leaderboard.people.services import set_weekly_goal
from tasks.models import TaskDraft, TaskMember
from tasks.selectors import list_targets
from tasks.services import change_members
from tasks.targets.endpoints.base import Prediction
from tests.support.factories import PASSWORD, UserFactory, scripted_target
from tests.support.judging import answered, judge, write
from tests.support.writing import open_form
from tests.web.conftest import HTMX
from validation.decisions.consensus_rows import derive_consensus_of_all
from validation.models import Consensus, Skip, Validation

DELETE = "/me/data/delete/"


def download(client):
    response = client.get("/me/data/download/")
    assert response["Content-Disposition"].startswith("attachment")
    assert response["Cache-Control"] == "no-store"
    return json.loads(b"".join(response.streaming_content))


@pytest.fixture
def life(client, alice, bob, nli):
    """Alice wrote an example that three people judged; she judged, skipped, reported, drafted."""
    me = get_annotator(alice)
    example = write(nli, alice)
    answered(example)
    example.metadata = {"why_right": "Because of Alice's reason."}
    example.typing = {"pasted": 3}
    example.signs = {"condition": "ask", "probability": 0.25, "admitted": True}
    example.challenge, example.support = "negation", {"challenge": "negation"}
    example.save()
    TextKey.objects.create(example=example, round=nli, key=5)
    TextVector.objects.create(example=example, encoder="one", values=b"1")
    for _ in range(3):
        client.force_login(UserFactory())
        judge(client, "label:neutral", **HTMX)
    theirs = [write(nli, bob, n, hypothesis=f"Bob's {n}.", label="neutral") for n in range(2)]
    answered(theirs[0])
    client.force_login(alice)
    client.get("/t/nli/judge/")
    first, second = theirs
    if f'value="{second.uuid}"' in client.get("/t/nli/judge/").text:
        first, second = second, first
    flag = {"flag_reason": "other", "flag_comment": "Alice's comment."}
    client.post("/t/nli/judge/flag/", {"example": first.uuid, **flag}, **HTMX)
    client.post("/t/nli/judge/skip/", {"example": second.uuid}, **HTMX)
    report_context(annotator=me, context=example.context, reason="other", comment="Alice's report.")
    GatePass.objects.create(annotator=me, task=nli.task)
    set_weekly_goal(annotator=me, amount=7)
    scripted_target(nli, fail="down")
    client.post("/t/nli/write/", open_form(client, text="Alice's failed try."))
    form = open_form(client)
    client.post(f"/draft/{form['assignment']}/", {"hypothesis": "Alice's draft."})
    Suggestion.objects.create(
        assignment_id=form["assignment"], text="Alice's suggestion.", source="muse"
    )
    Conversation.objects.create(
        assignment_id=form["assignment"], turns=[{"role": "user", "text": "Alice's turn."}]
    )
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    TaskDraft.objects.create(owner=alice, name="A", text="name: Alice's task.")
    log(alice, "round.closed", nli)
    create_token(user=alice, name="Alice's laptop", scopes=["read"], days=9)
    create_webhook(user=alice, url="https://a.test/Alice", events=["round.closed"], task=nli.task)
    return example


def test_check_39_the_export_holds_my_items_and_nobody_elses(client, life, alice, bob, nli):
    text = json.dumps(found := download(client))
    assert found["account"]["email"] == alice.email
    assert found["annotator"]["pseudonym"] == get_annotator(alice).pseudonym
    assert [row["uuid"] for row in found["examples"]] == [str(life.uuid)]
    mine = found["examples"][0]
    assert mine["inputs"] == life.inputs
    assert mine["typing"] == {"pasted": 3}
    assert mine["signs"] == {"condition": "ask", "probability": 0.25, "admitted": True}
    assert (mine["challenge"], mine["support"]) == ("negation", {"challenge": "negation"})
    assert mine["judged"]["votes"] == 3
    assert mine["points"] == 4
    assert mine["answers"][0]["output"] == {"label": "entailment"}
    assert mine["answers"][0]["prob"]["entailment"] == 0.9
    for said in (
        "reason.",
        "comment.",
        "report.",
        "failed try.",
        "draft.",
        "suggestion.",
        "turn.",
        "task.",
    ):
        assert f"Alice's {said}" in text
    counts = {name: len(found[name]) for name in ("judgements", "skips", "handed_out", "attempts")}
    assert counts == {"judgements": 1, "skips": 1, "handed_out": 2, "attempts": 1}
    assert [goal["amount"] for goal in found["weekly_goals"]] == [7]
    actions = [one["action"] for one in found["actions"]]
    assert actions == ["webhook.created", "token.created", "round.closed"]
    assert [(token["name"], token["scopes"]) for token in found["tokens"]] == [
        ("Alice's laptop", ["read"])
    ]
    assert [(hook["url"], hook["task_code"]) for hook in found["webhooks"]] == [
        ("https://a.test/Alice", "nli")
    ]
    secret = Webhook.objects.get().secret
    assert secret not in text
    assert decrypt(secret) not in text
    assert ApiToken.objects.get().digest not in text
    assert found["roles"] == [{"role": "owner", "task_code": "nli"}]
    assert "Bob's" not in text
    others = Annotator.objects.exclude(user=alice).values_list("pseudonym", "user__email")
    assert not any(name in text or email in text for name, email in others)


def test_the_export_hides_what_the_task_hides(as_alice, alice, bob, nli):
    config = nli.task.config_text.replace("show_confidence: full", "show_confidence: rounded")
    assert "show_confidence" in config
    nli.task.config_text = config
    nli.task.save()
    nli.show_target_name = False
    nli.save()
    parent = write(nli, bob)
    mine = write(nli, alice, 1)
    Example.objects.filter(pk=mine.pk).update(parent=parent)
    answered(mine)
    example = download(as_alice)["examples"][0]
    assert example["answers"][0]["model"] == "Model A"
    assert example["answers"][0]["prob"] is None
    assert example["edits"] is None


def test_an_empty_export_is_json(as_alice):
    found = download(as_alice)
    assert found["examples"] == found["judgements"] == []


def test_the_export_goes_on_past_its_first_hundreds(as_alice, alice, nli, monkeypatch):
    monkeypatch.setattr("dynabench.people.export.CHUNK_ROWS", 2)
    for number in range(5):
        write(nli, alice, number)
    uuids = [row["uuid"] for row in download(as_alice)["examples"]]
    assert uuids == [str(example.uuid) for example in nli.examples.order_by("pk")]


EXPORTED = {
    "account.emailaddress.user", "accounts.annotator.user", "accounts.apitoken.user",
    "accounts.personaccount.user",
    "accounts.logentry.actor",
    "annotation.assignment.annotator", "annotation.attempt.annotator",
    "annotation.example.annotator", "annotation.gatepass.annotator",
    "campaigns.place.annotator", "campaigns.qualification.annotator", "campaigns.invited.user",
    "studies.studydraw.annotator",
    "annotation.report.annotator",
    "annotation.shownexample.annotator", "evaluation.submission.owner", "evaluation.upload.owner",
    "evaluation.teammember.user", "evaluation.ownworker.user", "evaluation.handedanswers.user",
    "leaderboard.weeklygoal.annotator", "leaderboard.follow.user", "leaderboard.weights.owner",
    "mfa.authenticator.user", "tasks.blindjudging.annotator", "tasks.duty.person",
    "tasks.media.sent_by", "tasks.taskmember.user",
    "socialaccount.socialaccount.user", "usersessions.usersession.user",
    "validation.comment.author", "validation.mention.person",
    "validation.goldanswer.validator", "validation.judgelease.validator",
    "validation.ownerdecision.owner", "validation.skip.validator",
    "validation.validation.validator", "webhooks.webhook.user",
    "leaderboard.battle.voter",
    "leaderboard.releaseconsent.voter", "notices.digest.user", "tasks.taskproposal.proposer",
    "communities.communityproposal.proposer", "communities.post.author",
    "communities.jointsubmission.owner", "catches.sharedcatch.annotator",
    "tasks.taskdraft.owner",
    "studies.studydraft.owner",
}  # fmt: skip
LEFT_OUT = {
    "evaluation.allowance.user": "what the operator allows; the person did nothing",
    "accounts.undo.user": "for seven days; a link that only its address may have",
    "accounts.idempotentanswer.user": "for a day; what it says is exported where it belongs",
    "admin.logentry.user": "an action as an administrator, which is the site's record",
    "tasks.task.made_by": "an action in a task; in the log too",
    "communities.communityproposal.decided_by": "an action as an administrator, also in the log",
    "tasks.taskproposal.decided_by": "an action as an administrator, which is the site's record",
    "tasks.duty.set_by": "an action in a task; in the log too",
    "tasks.configversion.actor": "an action in a task; in the log too",
    "tasks.contextbatch.imported_by": "an action in a task; in the log too",
    "validation.gold.made_by": "an action in a task; in the log too",
    "evaluation.dataset.requested_by": "an action in a task; in the log too",
    "evaluation.trainingrun.requested_by": "an action in a task; in the log too",
    "studies.plansimulation.requested_by": "says nothing but that a plan was simulated",
    "studies.pilot.requested_by": "an action in a task; in the log too",
    "evaluation.practicerun.requested_by": "who tries a model; the row goes with the trial",
    "evaluation.custommetric.requested_by": "an action in a task; in the log too",
    "evaluation.custommetric.decided_by": "an action as an operator, which is the site's record",
    "evaluation.ruler.requested_by": "an action in a task; in the log too",
    "evaluation.ruler.retired_by": "an action in a task; in the log too",
    "evaluation.shortevaluation.requested_by": "who asked about a model; in the log too",
    "evaluation.llmjudge.requested_by": "an action in a task; in the log too",
    "adversaries.adversary.annotator": "a program's own; no person writes under it",
    "adversaries.adversary.program_user": "named by a task's editors; the runs are in the log",
    "adversaries.adversary.made_by": "an action in a task; in the log too",
    "adversaries.adversaryimage.requested_by": "an action in a task; in the log too",
    "adversaries.adversaryimage.allowed_by": "an action in a task; in the log too",
    "adversaries.adversaryrun.requested_by": "an action in a task; in the log too",
    "adversaries.transfercheck.requested_by": "an action in a task; in the log too",
    "leaderboard.arenajudge.requested_by": "an action in a task; in the log too",
    "evaluation.paraphrasing.requested_by": "an action in a task; in the log too",
    "evaluation.paraphrase.checked_by": "an action in a task; in the log too",
    "evaluation.evaluationsetversion.made_by": "an action in a task; in the log too",
    "demo.demorun.requested_by": "an action on the site: who asked for the simulated task",
    "leaderboard.comparison.voter": "imported: the voters have no account; else of a battle",
    "leaderboard.snapshot.made_by": "an action in a task; in the log too",
    "evaluation.submission.requested_by": "who is its owner",
    "evaluation.evaluationrun.requested_by": "who asked for a run of a model; in the log too",
    "validation.queueitem.author": "the example is exported",
    "validation.validation.author": "others' votes; what they decide is exported",
}


def test_every_row_about_a_person_is_exported_or_left_out_for_a_reason():
    """A new link to a person fails here: add it to the export and to erasure, or say why not."""
    links = {
        f"{field.model._meta.label_lower}.{field.name}"
        for model in apps.get_models()
        for field in model._meta.get_fields()
        if field.concrete and field.related_model in (User, Annotator) and not field.many_to_many
    }
    assert links == EXPORTED | set(LEFT_OUT)


def confirm(client):
    """Give the password as allauth asks for it, and delete."""
    response = client.get(DELETE)
    assert response.url.startswith("/accounts/reauthenticate/")
    response = client.post(response.url, {"password": PASSWORD}, follow=True)
    assert 'name="sure"' in response.text
    return client.post(DELETE, {"sure": "yes"}, follow=True)


def test_deleting_needs_the_password_a_post_and_a_token(client, alice, nli):
    client.force_login(alice)
    wrong = client.post("/accounts/reauthenticate/", {"password": "wrong"})
    assert wrong.status_code == 200
    assert client.get(DELETE).status_code == 302
    client.post("/accounts/reauthenticate/?next=" + DELETE, {"password": PASSWORD})
    assert 'name="sure"' in client.get(DELETE + "?sure=yes").text
    assert client.post(DELETE, {}).url == DELETE
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = client.cookies
    assert strict.post(DELETE, {"sure": "yes"}).status_code == 403
    assert User.objects.filter(pk=alice.pk).exists()


def test_a_press_of_delete_waits_for_the_password(client, alice, nli):
    client.force_login(alice)
    assert client.post(DELETE, {"sure": "yes"}).url.startswith("/accounts/reauthenticate/")
    assert User.objects.filter(pk=alice.pk).exists()
    client.post("/accounts/reauthenticate/?next=" + DELETE, {"password": PASSWORD})
    assert not User.objects.filter(pk=alice.pk).exists()


def test_former_addresses_go_too(client, alice, bob, nli):
    """Of the log, and of the admin's; the words of others stay."""
    former = "Alice.Former@example.com"
    change_members(
        task=nli.task,
        actor=UserFactory(is_superuser=True),
        added_members=[TaskMember(task=nli.task, user=one, role="owner") for one in (alice, bob)],
    )
    LogEntry.objects.filter(data__person=alice.pk).update(
        data={"user": former, "person": alice.pk, "role": "owner"}
    )
    address = EmailAddress.objects.create(user=alice, email="second@example.com")
    for about, words in ((address, "second@example.com"), (nli.task, f"{former}: owner")):
        AdminLogEntry.objects.create(
            user=bob,
            content_type=ContentType.objects.get_for_model(about),
            object_id=about.pk,
            object_repr=words,
            action_flag=2,
            change_message=f'[{{"changed": {{"object": "{words}"}}}}]',
        )
    client.force_login(alice)
    confirm(client)
    stored = json.dumps([list(model.objects.values()) for model in apps.get_models()], default=str)
    for gone in (former, former.lower(), "second@example.com", "alice@example.com"):
        assert gone not in stored
    assert LogEntry.objects.filter(data__user="bob@example.com").exists()


def test_check_39_deleting_removes_the_identity_and_the_words(client, life, alice, nli):
    annotator, name = get_annotator(alice), get_annotator(alice).pseudonym
    log(None, "member.added", nli.task, user=alice.email, role="owner")
    log(None, "taskmember.deleted", f"{alice.email}: owner")
    before = list(Consensus.objects.order_by("pk").values())
    confirm(client)
    assert client.get("/me/").status_code == 302
    assert not User.objects.filter(email=alice.email).exists()
    annotator.refresh_from_db()
    assert (annotator.user, annotator.in_ranking) == (None, False)
    assert annotator.pseudonym != name
    stored = json.dumps([
        [list(model.objects.values()) for model in apps.get_models() if model is not Annotator]
    ], default=str)  # fmt: skip
    assert "Alice" not in stored
    assert alice.email not in stored
    assert name not in stored
    life.refresh_from_db()
    assert life.retracted_at
    assert (life.inputs, life.typing, life.signs) == ({"label": "neutral"}, None, None)
    assert not TextKey.objects.filter(example=life).exists()
    assert not TextVector.objects.filter(example=life).exists()
    assert not Attempt.objects.exists()
    assert not TargetOutput.objects.filter(example=life).exists()
    assert not GatePass.objects.exists()
    assert not Suggestion.objects.exists()
    assert not Conversation.objects.exists()
    assert not WeeklyGoal.objects.exists()
    assert not Skip.objects.exists()
    assert Report.objects.get().comment == ""
    assert not any(Assignment.objects.values_list("draft", flat=True))
    vote = Validation.objects.get(validator=annotator)
    assert (vote.verdict, vote.comment) == ("flagged", "")
    with transaction.atomic():
        examples = list(Example.objects.select_for_update().filter(round=nli))
        derive_consensus_of_all(examples)
    after = list(Consensus.objects.order_by("pk").values())
    assert after == before  # the votes still decide as they did


def test_others_lose_nothing(client, life, alice, bob):
    theirs = list(Example.objects.filter(annotator__user=bob).order_by("pk").values())
    confirm(client)
    assert list(Example.objects.filter(annotator__user=bob).order_by("pk").values()) == theirs
    client.force_login(bob)
    assert "Bob&#x27;s 0." in client.get("/me/").text


def test_an_answer_that_comes_after_its_author_left_is_not_stored(alice, nli):
    scripted_target(nli, label="entailment")
    client = Client()
    client.force_login(alice)
    form = open_form(client)
    assignment = Assignment.objects.get()
    save_draft(assignment=assignment, inputs={})
    attempt, _ = begin_attempt(
        annotator=get_annotator(alice),
        assignment=assignment,
        key=form["attempt_key"],
        inputs={"hypothesis": "Late.", "label": "neutral"},
    )
    services.delete_person(user=alice)
    prediction = Prediction(output={"label": "entailment"}, prob=None, seconds=0.1, fingerprint={})
    answers = {"targets": list_targets(nli), "predictions": [prediction]}
    assert finish_attempt(attempt=attempt, **answers) is None
    assert not Example.objects.exists()


def test_what_was_cut_short_is_finished_by_the_command(
    client, life, alice, bob, monkeypatch, capsys
):
    with monkeypatch.context() as patch:
        patch.setattr("dynabench.people.deletion.services.erase_work", lambda annotator: 0)
        services.delete_person(user=alice)
    life.refresh_from_db()
    assert life.inputs["hypothesis"]
    call_command("purge_deleted")
    assert "1 examples emptied." in capsys.readouterr().out
    life.refresh_from_db()
    assert life.inputs == {"label": "neutral"}
    call_command("purge_deleted")
    assert "0 examples emptied." in capsys.readouterr().out
    assert Example.objects.filter(annotator__user=bob, retracted_at=None).count() == 2
    assert LogEntry.objects.filter(action="example.withdrawn").count() == 1


def test_the_data_page_lists_consents(as_alice, alice, hate):
    assert not as_alice.get("/me/data/").context["consents"]
    GatePass.objects.create(annotator=get_annotator(alice), task=hate.task)
    assert "hate-speech," in as_alice.get("/me/data/").text
