"""Operators look after people: by commands, in the admin, and when the secret key changes."""

import json
from datetime import timedelta
from io import StringIO

import pytest
from django.core import mail
from django.core.management import CommandError, call_command
from django.urls import reverse
from django.utils import timezone

from core.accounts.models import ApiToken, LogEntry, User
from core.accounts.tokens import create_token
from core.data.encryption import UnreadableSecret, decrypt, encrypt
from dynabench.campaigns.payment_services import build_panel_client
from dynabench.campaigns.place_services import find_known_place
from dynabench.campaigns.selectors import decrypt_panel_ids
from dynabench.notices.tokens import remind_of_tokens
from dynabench.webhooks.models import Webhook
from evaluation.isolation.uploads.chunked import count_remaining_bytes
from evaluation.models import Team
from evaluation.submissions.services import find_remaining_quota
from tasks.models import TaskMember
from tests.support.campaigns import open_campaign, take_part
from tests.support.factories import PASSWORD, UserFactory


def people(*words):
    call_command("people", *words, stdout=(said := StringIO()))
    return said.getvalue().strip()


@pytest.fixture
def boss(db):
    return UserFactory(email="boss@example.org", is_superuser=True)


def bearer(key):
    return {"headers": {"Authorization": f"Bearer {key}"}}


def test_an_account_from_its_making_to_its_suspension(client, nli):
    password = people("add", "mo@example.org").rpartition(" ")[2]
    assert client.login(email="mo@example.org", password=password)
    user = User.objects.get(email="mo@example.org")
    for role in ("judge", "owner"):
        people("role", "mo@example.org", "nli", role)
        assert TaskMember.objects.get(user=user).role == role
    key = people("token", "mo@example.org", "cron", "--scopes", "read", "--days", "3")
    assert client.get("/api/v1/tasks/", **bearer(key)).status_code == 200
    people("suspend", "MO@example.org")
    assert "suspended" in people("list")
    assert not client.get("/").wsgi_request.user.is_authenticated
    assert not client.login(email="mo@example.org", password=password)
    assert client.get("/api/v1/tasks/", **bearer(key)).status_code == 401
    people("admit", "mo@example.org")
    assert client.login(email="mo@example.org", password=password)
    people("role", "mo@example.org", "nli", "none")
    assert not TaskMember.objects.exists()
    for wrong in (("suspend", "no@example.org"), ("add", "mo@example.org"), ("add", "x"),
                  ("role", "mo@example.org", "gone", "owner")):  # fmt: skip
        with pytest.raises(CommandError):
            people(*wrong)


def test_the_audit_has_who_did_what_to_whom_since_a_day(boss, alice):
    LogEntry.objects.create(action="old", target="x", created_at="2020-01-01T00:00Z")
    create_token(user=alice, name="t", scopes=["read"], days=3)
    people("suspend", alice.email)

    def rows(*words):
        call_command("audit", "--since", "2021-01-01", *words, stdout=(said := StringIO()))
        return [json.loads(line) for line in said.getvalue().splitlines()]

    found = [(row["who"], row["action"], row["data"].get("user")) for row in rows()]
    assert found == [
        (alice.email, "token.created", None),
        (None, "token.revoked", alice.email),
        (None, "person.suspended", alice.email),
    ]
    assert len(rows("--action", "token.")) == 2
    assert len(rows("--person", alice.email)) == 3
    assert rows("--person", boss.email) == []


def test_administrators_suspend_people_and_revoke_tokens_in_the_admin(client, boss, alice, bob):
    client.force_login(boss)
    client.post("/accounts/reauthenticate/", {"password": PASSWORD})
    for user in (alice, bob):
        create_token(user=user, name="t", scopes=["read"], days=3)
    users, tokens = (reverse(f"admin:accounts_{name}_changelist") for name in ("user", "apitoken"))
    chosen = {"_selected_action": [alice.pk, boss.pk], "action": "suspend"}
    client.post(users, chosen)
    states = dict(User.objects.values_list("email", "is_active"))
    assert states == {boss.email: True, alice.email: False, bob.email: True}
    assert ApiToken.objects.get().user == bob
    left = ApiToken.objects.get().pk
    assert client.get(tokens).status_code == 200
    client.post(tokens, {"_selected_action": [left], "action": "delete_selected", "post": "yes"})
    assert not ApiToken.objects.exists()
    create_token(user=bob, name="t", scopes=["read"], days=3)
    client.post(
        reverse("admin:accounts_user_change", args=[bob.pk]),
        {"email": bob.email, "date_joined_0": "2026-01-01", "date_joined_1": "12:00:00"},
    )
    bob.refresh_from_db()
    assert (bob.is_active, ApiToken.objects.count()) == (False, 0)
    actions = LogEntry.objects.filter(actor=boss).values_list("action", flat=True)
    assert sorted(actions) == 2 * ["person.suspended"] + 3 * ["token.revoked"]


def test_people_are_mailed_once_before_a_token_ends(alice, django_capture_on_commit_callbacks):
    for days in (13, 90):
        token, _ = create_token(user=alice, name=f"{days}", scopes=["read"], days=days)
    with django_capture_on_commit_callbacks(execute=True):
        assert remind_of_tokens() == 0
        ApiToken.objects.update(expires_at=timezone.now() + timedelta(days=13))
        ApiToken.objects.filter(pk=token.pk).update(created_at=timezone.now() - timedelta(days=77))
        assert (remind_of_tokens(), remind_of_tokens()) == (1, 0)
    (sent,) = mail.outbox
    assert sent.to == [alice.email]
    assert token.prefix in sent.body


def test_stored_secrets_outlive_a_change_of_the_secret_key(settings, nli, alice):
    campaign = open_campaign(nli.task, way="prolific", sealed_token=encrypt("token"))
    take_part(campaign)
    place = campaign.all_places.get()
    person = decrypt_panel_ids(place)
    hook = Webhook.objects.create(
        user=alice, url="https://x.test/", events=[], secret=encrypt("s3cret")
    )
    former = settings.SECRET_KEY
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another", [former]
    assert find_known_place(campaign, person) == place
    call_command("rotate_secrets", stdout=StringIO())
    settings.SECRET_KEY_FALLBACKS = []
    hook.refresh_from_db()
    campaign.refresh_from_db()
    assert decrypt(hook.secret) == "s3cret"
    found = find_known_place(campaign, person)  # nobody gets a second place
    assert (found, decrypt_panel_ids(found)) == (place, person)
    assert build_panel_client(campaign)
    settings.SECRET_KEY = "a third"
    with pytest.raises(CommandError, match=str(hook.pk)):
        call_command("rotate_secrets", stdout=StringIO())
    with pytest.raises(UnreadableSecret):
        decrypt(hook.secret)
    assert build_panel_client(campaign) is None


def test_a_person_a_task_and_a_team_may_have_quotas_of_their_own(nli, alice, bob, settings):
    def quota(*words):
        call_command("quota", *words, stdout=(said := StringIO()))
        return said.getvalue()

    team = Team.objects.create(name="Fools")
    task, site = nli.task, settings.SUBMISSIONS_PER_DAY
    assert quota() == ""
    quota("--task", "nli", "--models-a-day", "7")
    quota("--person", alice.email, "--models-a-day", "0", "--gib", "5")
    assert [find_remaining_quota(who, task).left for who in (alice, bob)] == [0, 7]
    assert find_remaining_quota(bob, task, team).left == 7
    assert "5" in quota("--team", "fools", "--models-a-day", "2")
    assert find_remaining_quota(bob, task, team).left == 2
    assert count_remaining_bytes(alice) == 5 * 2**30
    assert count_remaining_bytes(bob) != 5 * 2**30
    quota("--task", "nli", "--clear")
    assert find_remaining_quota(bob, task).left == site
    assert LogEntry.objects.filter(action="allowance.changed").count() == 4
    for wrong in (["--team", "gone"], ["--gib", "3"], ["--task", "nli", "--models-a-day", "-1"]):
        with pytest.raises(CommandError):
            quota(*wrong)
