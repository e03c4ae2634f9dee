"""The security holes of the original platform, each as something that cannot happen here.

Their numbers are those of the inventory that was made of the original's source: S1 to S14.
"""

import json
import logging
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.conf import settings as django_settings
from django.core import mail
from django.core.management import load_command_class
from django.test import Client
from rest_framework.test import APIClient

from annotation.models import Example
from core.accounts.models import ApiToken, User
from core.accounts.tokens import create_token
from core.data.encryption import decrypt
from dynabench.webhooks.models import Webhook
from evaluation.contract import Runnable
from evaluation.isolation.sandbox.containers import DockerRunner
from evaluation.isolation.sandbox.limits import Limits
from evaluation.models import Score, Submission
from tasks.models import Round, TargetModel, Task
from tasks.targets.endpoints.base import EndpointConfig, EndpointError
from tasks.targets.endpoints.client import SHARED_TRANSPORT
from tasks.targets.endpoints.registry import build_endpoint
from tasks.targets.endpoints.transport import RETRY_IDEMPOTENT, parse_url
from tests.api.world import SCOPES, make_world
from tests.support.api_routes import address_of, routes
from tests.support.factories import PASSWORD, scripted_target
from tests.support.variables import APPS
from tests.support.writing import goal_is, open_form
from tests.web.conftest import *  # noqa: F403 - names and hashes as in the tests of pages
from tests.web.conftest import _fast_and_clean  # noqa: F401

ROOT = Path(__file__).parents[2]
CODE = [
    path for room in APPS for path in (ROOT / room).rglob("*.py") if "migrations" not in path.parts
]
V1 = "/api/v1/"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def world(db, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    return make_world()


@pytest.fixture
def client_of():
    """A client with a token that may everything."""

    def client_of(user):
        client = APIClient()
        _, key = create_token(user=user, name="tests", scopes=SCOPES, days=1)
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {key}")
        return client

    return client_of


@pytest.fixture
def owners(world, client_of):
    return client_of(world.owner)


@pytest.fixture
def others(world, client_of):
    return client_of(world.other)


def readable(world):
    """Every address that is read."""
    return [address_of(world, route) for method, route in routes() if method == "GET"
            if not route.startswith("^")]  # fmt: skip


CLAIMS = {
    "outcome": "fooled", "fooled": True, "model_wrong": True, "retracted": False,
    "output": {"label": "contradiction"}, "prob": {"entailment": 0}, "target": "mine",
}  # fmt: skip


def test_s1_the_verdict_is_the_servers_whatever_the_browser_claims(as_alice, nli):
    scripted_target(nli, label="entailment", prob=None)
    goal_is(as_alice, "entailment")
    as_alice.post("/t/nli/write/", open_form(as_alice, **CLAIMS, label="neutral"))
    stored = Example.objects.get()
    assert stored.outcome == "not_fooled"
    assert stored.inputs["label"] == "entailment"
    assert stored.target_outputs.get().output == {"label": "entailment"}


def test_s1_nor_whatever_a_program_claims(world, owners):
    assignment = world.ids["assignments"][0]
    goal = owners.post(f"{V1}tasks/nli/assignment/", {}).json()["goal"]
    sent = {"inputs": {"hypothesis": "The shop was open."}, **CLAIMS}
    address = f"{V1}assignments/{assignment}/examples/"
    assert owners.post(address, sent).status_code == 422
    made = owners.post(address, {"inputs": sent["inputs"]})
    assert made.status_code == 201
    stored = Example.objects.latest("pk")
    assert (stored.outcome == "fooled") == (goal != "entailment")
    address = f"{V1}examples/{stored.uuid}/"
    assert owners.patch(address, CLAIMS).status_code in (403, 405)
    assert owners.post(f"{address}answer/", {"model_right": False}).status_code == 403
    stored.refresh_from_db()
    assert (stored.outcome == "fooled") == (goal != "entailment")


UNSIGNED = [
    {"HTTP_AUTHORIZATION": "turk"},
    {"HTTP_AUTHORIZATION": "turk", "HTTP_ORIGIN": "https://elsewhere.test"},
    {"HTTP_AUTHORIZATION": "Bearer turk"},
    {"HTTP_X_REMOTE_USER": "owner@example.com", "HTTP_REMOTE_USER": "owner@example.com"},
]


def test_s2_no_header_signs_anybody_in_without_a_secret(world):
    for method, route in routes():
        for headers in UNSIGNED if method != "GET" else ():
            answer = getattr(Client(), method.lower())(address_of(world, route), **headers)
            assert answer.status_code in (401, 404), (method, route, headers)
    for headers in UNSIGNED:
        answer = Client().get(f"{V1}me/", **headers)
        assert answer.status_code == 401
        assert "Access-Control-Allow-Origin" not in answer
        assert Client().get("/me/", **headers).url.startswith("/accounts/login/")


def test_s3_what_people_send_never_becomes_sql(world, owners):
    attack = "' OR '1'='1' UNION SELECT password FROM accounts_user --"
    named = ("search", "group", "annotator", "annotator_id", "author", "outcome", "tag", "cursor",
             "page_size", "status", "label", "a", "b", "fork", "mode", "mine")  # fmt: skip
    asked = dict.fromkeys(named, attack)
    for address in readable(world):
        answer = owners.get(address, asked)
        assert answer.status_code in (200, 403, 404, 422), address
        if not answer.streaming:
            assert world.owner.password not in answer.content.decode(errors="replace")
    built = re.compile(r"\.raw\(|RawSQL|\.extra\(|execute\(\s*f[\"']|execute\([^)]*[%+] ")
    asked_by_people = [
        path for path in CODE if "backups" not in path.parts
    ]  # whose tables are ours
    assert not [path for path in asked_by_people if built.search(path.read_text())]


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:1/x", "https://169.254.169.254/latest/", "https://[::1]/x"]
)
def test_s4_no_address_leads_inside(address):
    with pytest.raises(EndpointError) as refused:
        SHARED_TRANSPORT.request(
            "GET", parse_url(address), seconds=5, max_bytes=99, allowed_hosts=False, secret=None,
            payload=None, retry=RETRY_IDEMPOTENT,
        )  # fmt: skip
    assert refused.value.reason == "misconfigured"


def test_s4_nobody_names_an_address(world, owners):
    address = "http://127.0.0.1:1/x"
    model = {"kind": "endpoint", "name": "x", "source": "http://127.0.0.1:1/x", "adapter": "jsonl"}
    assert owners.post(f"{V1}tasks/nli/models/", model).status_code == 422
    assert owners.post(f"{V1}tasks/nli/convert_to_model_io/", {}).status_code == 404
    before = list(TargetModel.objects.values())
    targets = f"{V1}tasks/nli/targets/"
    for send in (owners.post, owners.put, owners.patch):
        assert send(targets, {"url": address}).status_code in (403, 405)
    assert list(TargetModel.objects.values()) == before


def test_s4_certificates_are_checked():
    assert not [path for path in CODE if re.search(r"verify=False|CERT_NONE", path.read_text())]


SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(1)> [x](javascript:alert(1))"


def test_s5_what_owners_write_is_no_markup(client, world):
    config = world.task.config_text.replace("instructions: |", f"instructions: |\n  {SCRIPT}\n", 1)
    assert SCRIPT in config
    Task.objects.update(config_text=config, summary=SCRIPT, name=SCRIPT)
    Round.objects.update(description=SCRIPT)
    Submission.objects.update(description=SCRIPT, name=SCRIPT, is_published=True)
    client.force_login(world.owner)
    model = world.ids["models"][0]
    for page in ("/", "/t/nli/", "/t/nli/write/", "/t/nli/leaderboard/", f"/m/{model}/",
                 "/own/nli/rounds/", "/t/nli/models/"):  # fmt: skip
        answer = client.get(page)
        assert answer.status_code == 200, page
        assert not re.search(r"<script>|<img src=x|href=\"javascript:", answer.text), page
        assert "script-src 'self';" in answer["Content-Security-Policy"]


def test_s6_no_answer_names_people_targets_or_secrets(world, owners, others):
    """Nor does reading change anything (S10)."""
    TargetModel.objects.update(url="http://target.inside.test:8100/", secret_env="TARGET_X_SECRET")
    Submission.objects.update(secret="gAAAA-encrypted")
    secrets = [
        world.owner.email, world.other.email, world.admin.email, "target.inside.test",
        "TARGET_X_SECRET", "gAAAA-encrypted", django_settings.SECRET_KEY,
        *ApiToken.objects.values_list("digest", flat=True),
        *map(decrypt, Webhook.objects.values_list("secret", flat=True)),
    ]  # fmt: skip
    before = state()
    for address in readable(world):
        for_owners = ("/members/", "/own-workers/", "/target-models/")
        knowing = [owners] if address.endswith(for_owners) else []
        if "/teams/" in address:  # its members know each other's addresses
            knowing = [owners, others]
        # The header of a page names the account that reads it.
        own = {others: world.other.email, owners: world.owner.email} if "/docs/" in address else {}
        for client in (APIClient(), others, owners):
            answer = client.get(address)
            text = b"".join(answer.streaming_content) if answer.streaming else answer.content
            told = [one for one in secrets if one.encode() in text and one != own.get(client)]
            assert not told or client in knowing, address
    assert state() == before


NOTED = {"accounts.apitoken", "sessions.session", "usersessions.usersession"}


def state():
    """The ids of all rows of everything."""
    return {
        model._meta.label_lower: set(model._base_manager.values_list("pk", flat=True))
        for model in apps.get_models()
        if model._meta.label_lower not in NOTED
    }


def test_s7_what_is_not_signed_by_us_counts_for_nothing(world):
    unsigned = "eyJhbGciOiJub25lIn0.eyJzdWIiOiAxLCAiYWRtaW4iOiB0cnVlfQ."  # a JWT without signature
    for key in (unsigned, "dyna_" + "A" * 43):
        answer = APIClient().get(f"{V1}me/", HTTP_AUTHORIZATION=f"Bearer {key}")
        assert answer.status_code == 401
    client = Client()
    client.cookies[django_settings.SESSION_COOKIE_NAME] = "forged"
    assert client.get("/me/").status_code == 302
    weak = re.compile(r"\bsha1\(|hashlib\.md5|import jwt")
    # Zenodo names the digests of files in its own protocol; nothing is trusted by them.
    others = ROOT / "evaluation/dataset_releases/publishing/zenodo.py"
    assert [path for path in CODE if weak.search(path.read_text())] == [others]


def test_s8_a_key_is_stored_as_a_digest_sent_in_a_header_and_never_logged(alice, caplog):
    _, key = create_token(user=alice, name="a", scopes=["read"], days=1)
    assert key not in str(list(ApiToken.objects.values()))
    client = APIClient()
    with caplog.at_level(logging.DEBUG):
        assert client.get(f"{V1}me/", {"api_token": key, "token": key}).status_code == 401
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {key}")
        assert client.get(f"{V1}me/").status_code == 200
        assert client.get(f"{V1}nothing/").status_code == 404
    logged = [line for line in caplog.text.splitlines() if key in line and "token=" not in line]
    assert logged == []


def test_s9_scores_configurations_logs_and_peoples_data_are_not_open(world, others):
    model, run = world.ids["models"][0], world.ids["runs"][0]
    scores = list(Score.objects.order_by("pk").values())
    config = world.task.config_text
    for client in (APIClient(), others):
        for method in ("post", "put", "patch", "delete"):
            answer = getattr(client, method)(f"{V1}models/{model}/scores/", {"accuracy": 1})
            assert answer.status_code in (401, 403, 404, 405)
        assert client.put(f"{V1}tasks/nli/config/", {"config_text": ""}).status_code in (401, 404)
        contexts = f"{V1}tasks/nli/rounds/2/contexts/"
        assert client.post(contexts, {"format": "csv", "text": "a"}).status_code in (401, 404)
        assert client.get(f"{V1}models/{model}/runs/{run}/").status_code in (401, 404)
        assert client.get(f"/m/{model}/runs/{run}/").status_code in (302, 404)
        assert client.post("/score/heavy_evaluation_scores/", {"score": 1}).status_code == 404
    assert list(Score.objects.order_by("pk").values()) == scores
    assert Task.objects.get().config_text == config
    browser = Client()
    browser.force_login(world.other)
    mine = b"".join(browser.get("/me/data/download/?user=1&user_id=1").streaming_content)
    assert world.owner.email.encode() not in mine


def test_s10_who_somebody_is_is_never_read_from_what_they_send(world, others):
    told = {
        "kind": "hub", "name": "theirs", "source": "org/name", "revision": COMMIT,
        "owner": world.owner.pk, "user_id": world.owner.pk, "uid": world.owner.pk,
    }  # fmt: skip
    assert others.post(f"{V1}tasks/nli/models/", told).status_code == 422
    for name in ("owner", "user_id", "uid"):
        del told[name]
    assert others.post(f"{V1}tasks/nli/models/", told).status_code == 201
    assert Submission.objects.get(name="theirs").owner == world.other
    hook = {"url": "https://b.test", "events": ["round.closed"]}
    assert others.post(f"{V1}webhooks/", {**hook, "user": world.owner.pk}).status_code == 422
    others.post(f"{V1}webhooks/", hook)
    assert Webhook.objects.get(url="https://b.test").user == world.other


def test_s10_others_models_are_not_changed_published_or_deleted(world, others):
    model = f"{V1}models/{world.ids['models'][0]}/"
    before = Submission.objects.values().get(pk=world.ids["models"][0])
    for action in ("publish", "unpublish", "cancel", "withdraw", "anonymous"):
        assert others.post(f"{model}{action}/", {}).status_code == 404
    assert others.patch(model, {"card": {"description": "mine"}}).status_code == 404
    assert Submission.objects.values().get(pk=world.ids["models"][0]) == before


def test_s11_a_name_in_a_text_imports_nothing(world, owners):
    version = owners.get(f"{V1}tasks/nli/config/").json()["version"]
    for name in ("os.system", "builtins:eval", "../metrics", "accuracy; import os"):
        config = world.task.config_text.replace("main: accuracy", f"main: {json.dumps(name)}")
        sent = {"config_text": config, "version": version}
        answer = owners.put(f"{V1}tasks/nli/config/", sent)
        assert answer.status_code == 422, name
        assert "metrics" in json.dumps(answer.json()["error"])
        model = {"kind": "image", "name": "x", "source": f"a@sha256:{'0' * 64}", "adapter": name}
        assert owners.post(f"{V1}tasks/nli/models/", model).status_code == 422, name
        with pytest.raises(EndpointError, match="Unknown adapter"):
            build_endpoint(name, EndpointConfig(url="http://x", fields=("text",), output="label"))


def test_s12_a_lost_password_is_replaced_by_a_link_and_never_sent(client, alice):
    client.post("/accounts/password/reset/", {"email": alice.email})
    (sent,) = mail.outbox
    assert PASSWORD not in sent.body
    link = re.search(r"https?://[^/]+(/accounts/password/reset/key/\S+)", sent.body)[1]
    form = client.get(link, follow=True).request["PATH_INFO"]
    new = "another horse battery"
    client.post(form, {"password1": new, "password2": new})
    assert new not in mail.outbox[-1].body
    assert Client().login(email=alice.email, password=new)
    assert not Client().login(email=alice.email, password=PASSWORD)
    again = client.get(link, follow=True)
    assert again.context["token_fail"]


def test_s12_an_address_that_has_no_account_is_answered_alike(client, alice):
    known = client.post("/accounts/password/reset/", {"email": alice.email})
    unknown = client.post("/accounts/password/reset/", {"email": "nobody@example.com"})
    assert (known.status_code, known.url) == (unknown.status_code, unknown.url)


def test_s12_cookies_are_for_https_where_the_site_is():
    told = "SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE", "SESSION_COOKIE_HTTPONLY"
    code = f"from dynabench import settings as s; print([getattr(s, n) for n in {told!r}])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"HTTPS": "1", "SECRET_KEY": "x", "DYNABENCH_HOME": str(django_settings.HOME)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[True, True, True]"


def test_s12_nobody_gets_an_account_by_an_address_of_a_crowd_platform(client, nli):
    worker = {"workerId": "A1B2", "assignmentId": "x", "email": "a@amazonturk.com", "annotator": 1}
    for page in ("/t/nli/write/", "/t/nli/judge/", "/me/"):
        assert client.get(page, worker).url.startswith("/accounts/login/")
    assert not User.objects.exists()


def test_s13_models_listen_on_this_machine_only():
    parser = load_command_class("tasks", "serve_model").create_parser("manage.py", "serve_model")
    assert parser.parse_args([]).host == "127.0.0.1"
    assert django_settings.MODEL_SERVER_URL.startswith("http://127.0.0.1:")


def test_s14_examples_and_their_history_are_for_the_tasks_people(world, owners, others):
    for part in ("examples", "export", "contexts", "validations"):
        address = f"{V1}tasks/nli/rounds/2/{part}/"
        assert others.get(address).status_code == 404, part
        assert owners.get(address).status_code == 200, part
    assert others.get(f"{V1}examples/{world.ids['examples'][-1]}/").status_code == 404


def test_s14_what_people_hand_in_runs_without_any_network(tmp_path):
    """That it holds against attacks is shown in tests/docker."""
    runner = DockerRunner.__new__(DockerRunner)
    runner.key, runner._engine = "key", SimpleNamespace(has_runsc=False, cpus=2)
    runner._read_more = None
    image = SimpleNamespace(attrs={"Config": {"Cmd": ["model"]}})
    told = runner._build_options(image, Runnable(image="x"), tmp_path, Limits())
    assert told["device_requests"] == []
    on_gpu = runner._build_options(image, Runnable(image="x", gpu="1"), tmp_path, Limits())
    (gpu,) = on_gpu["device_requests"]
    assert (gpu["DeviceIDs"], gpu["Capabilities"]) == (["1"], [["gpu"]])
    assert (told["network_mode"], told["network_disabled"]) == ("none", True)
    built = [path for path in CODE if "images.build(" in path.read_text()]
    assert built == [ROOT / "dynabench/operations/attacks/bench.py"]  # the attacks, which are ours
