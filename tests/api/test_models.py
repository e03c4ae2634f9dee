"""Submitted models in the API: submitted, told to who may know, changed by their owners."""

# ruff: noqa: F811  (fixtures are named where they are used)

from datetime import timedelta

import orjson
import pytest
from django.core.files.base import ContentFile
from django.utils import timezone

from evaluation.isolation.inference.precheck import check_predictions
from evaluation.isolation.queue import leases
from evaluation.isolation.uploads.chunked import add_file, add_piece, begin_upload
from evaluation.models import EvaluationRun, Score, Submission
from evaluation.runs.services import claim_next_run
from tests.support.api_errors import error
from tests.support.api_models import (
    COMMIT,
    INSIDE,
    ROLES,
    TASK_OWNERS,
    State,
    _media,  # noqa: F401
    model,  # noqa: F401
    scored,
    task,  # noqa: F401
    url_of,
    visit_as,  # noqa: F401
)
from tests.support.evaluations import accepted_model, queued_run, set_version

URL = "/api/v1/tasks/nli/models/"
HUB = {"kind": "hub", "name": "MiniLM", "source": "org/name", "revision": COMMIT}


# Submitting


def test_a_hub_id_is_handed_in(api, alice, task):
    card = {"description": "Small.", "parameters": 22_000_000}
    reply = api.post(URL, {**HUB, "card": card})
    assert reply.status_code == 201
    told, made = reply.json(), Submission.objects.get()
    assert told["id"] == str(made.pk)
    assert (told["task"], told["kind"], told["phase"]) == ("nli", "hub", "received")
    assert told["owner"] == str(alice.annotator)
    assert not told["is_over"]
    assert (told["source"], told["revision"]) == ("org/name", COMMIT)
    assert told["card"] == {
        "languages": "",
        "trained_on": "",
        "trained_until": None,
        "license": "",
        "paper_url": "",
        **card,
    }
    assert made.owner == alice
    assert api.get("/api/v1/tasks/nli/quota/").json()["left"] == 2


def test_a_file_that_was_uploaded_is_handed_in_once(api, alice, bob, task):
    mine, theirs = (add_file(who, "m.zip", 3, ContentFile(b"abc")) for who in (alice, bob))
    told = {"kind": "directory", "name": "Mine", "upload": str(mine.pk)}
    refused = api.post(URL, {**told, "upload": str(theirs.pk)})
    assert refused.status_code == 422
    assert [*error(refused)["fields"]] == ["upload"]
    first = api.post(URL, told).json()
    assert api.post(URL, {**told, "name": "Again"}).json()["id"] == first["id"]
    assert Submission.objects.get().upload == mine


def test_a_file_of_which_bytes_lack_is_not_submitted(api, alice, task):
    upload = begin_upload(alice, "m.zip", 3)
    told = {"kind": "directory", "name": "Mine", "upload": str(upload.pk)}
    refused = api.post(URL, told)
    assert (refused.status_code, [*error(refused)["fields"]]) == (422, ["upload"])
    assert not Submission.objects.exists()
    add_piece(upload, 0, ContentFile(b"abc"))
    assert api.post(URL, told).status_code == 201


def test_predictions_name_their_set(api, alice, task):
    version = set_version(task, "open", may_leave=True)
    set_version(task, "closed")
    upload = add_file(alice, "p.jsonl", 3, ContentFile(b"abc"))
    told = {"kind": "predictions", "name": "Mine", "upload": str(upload.pk)}
    refused = api.post(URL, {**told, "evaluation_set": "closed"})
    assert "Choose from: open." in error(refused)["fields"]["evaluation_set"][0]
    assert api.post(URL, told).status_code == 422
    made = api.post(URL, {**told, "evaluation_set": "open"}).json()
    assert made["evaluation_set"] == "open"
    assert Submission.objects.get().evaluation_set == version


def test_an_endpoints_secret_never_leaves(api, task):
    set_version(task, "open", may_leave=True)
    told = {"kind": "endpoint", "name": "Far", "source": "https://example.org/model",
            "secret": "s3cret", "adapter": "dynalab"}  # fmt: skip
    reply = api.post(URL, told, headers={"Idempotency-Key": "one"})
    assert reply.status_code == 201
    again = api.post(URL, told, headers={"Idempotency-Key": "one"})
    assert again["Idempotent-Replayed"] == "true"
    submission = Submission.objects.get()
    assert submission.secret
    for answer in (reply, again, api.get(url_of(submission)), api.get("/api/v1/me/models/")):
        assert "s3cret" not in answer.text
        assert submission.secret not in answer.text


@pytest.mark.parametrize(
    ("told", "field", "words"),
    [
        ({**HUB, "name": ""}, "name", "blank"),
        ({**HUB, "name": "a\0b"}, "name", "Null"),
        ({**HUB, "kind": "target"}, "kind", "not a valid choice"),
        ({**HUB, "revision": "main"}, "revision", "40 hexadecimal digits"),
        ({**HUB, "source": "../etc"}, "source", "organisation/name"),
        ({"kind": "directory", "name": "Mine"}, "upload", "Choose the archive"),
        ({"kind": "image", "name": "Mine"}, "source", "docker save"),
        ({**HUB, "card": {"parameters": 10**16}}, "card.parameters", "less than or equal"),
        ({**HUB, "card": {"paper_url": "javascript:x"}}, "card.paper_url", "valid URL"),
        ({**HUB, "upload": "x"}, "upload", "valid UUID"),
        ({"kind": "endpoint", "name": "Far", "source": "https://a.example"}, "kind", "endpoint"),
    ],
)
def test_what_does_not_fit_is_named_by_field(api, task, told, field, words):
    reply = api.post(URL, told)
    assert reply.status_code == 422
    assert words in error(reply)["fields"][field][0]
    assert not Submission.objects.exists()


def test_who_has_handed_in_enough_is_told_when(api, task, settings):
    settings.SUBMISSIONS_PER_DAY = 1
    assert api.post(URL, HUB).status_code == 201
    reply = api.post(URL, {**HUB, "name": "Another"})
    assert (reply.status_code, error(reply)["code"]) == (409, "quota")
    quota = api.get("/api/v1/tasks/nli/quota/").json()
    assert (quota["left"], quota["most"]) == (0, 1)
    day = f"{timezone.now() + timedelta(days=1):%Y-%m-%d}"
    assert quota["free_at"].startswith(day)
    assert day in error(reply)["message"]


def test_who_may_hand_in(api, api_of, alice, anybody, task):
    assert anybody.post(URL, HUB).status_code == 401
    assert anybody.get("/api/v1/tasks/nli/quota/").status_code == 401
    assert api_of(alice, "read", "own").post(URL, HUB).status_code == 403
    task.is_visible = False
    task.save(update_fields=["is_visible"])
    assert api.post(URL, HUB).status_code == 404
    assert api.get("/api/v1/tasks/nli/quota/").status_code == 404
    assert not Submission.objects.exists()


# Who sees what


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize("anonymous", [False, True])
def test_every_role_sees_what_it_may(visit_as, model, role, published, anonymous):
    until = timezone.now().date() + timedelta(days=9) if anonymous else None
    Submission.objects.filter(pk=model.pk).update(is_published=published, anonymous_until=until)
    client, inside = visit_as(role), role in INSIDE
    replies = {
        rest: client.get(url_of(model, rest))
        for rest in ("", "runs/", "scores/", "predictions/open/")
    }
    listed = client.get(URL).json()["results"]
    if not inside and not published:
        assert {reply.status_code for reply in replies.values()} == {404}
        assert listed == []
        return
    assert [one["id"] for one in listed] == [str(model.pk)] * published
    told = replies[""].json()
    shown = inside or not anonymous
    for words in ("Secret name", str(model.owner.annotator), "https://paper.example"):
        assert (words in replies[""].text) == shown
        assert (words in str(listed)) == (shown and published)
    assert (told["source"], told["revision"]) == (("org/name", COMMIT) if inside else ("", ""))
    assert told["anonymous_until"] == (str(until) if anonymous and inside else None)
    sees_hidden = role in TASK_OWNERS
    names = {run["evaluation_set"] for run in replies["runs/"].json()["results"]}
    assert names == ({"open", "sealed"} if sees_hidden else {"open"})
    values = [score["value"] for score in replies["scores/"].json()["results"]]
    assert values == ([0.625, 0.375] if sees_hidden else [0.625])
    everything = "".join(reply.text for reply in replies.values()) + str(listed)
    assert "Loading weights" not in everything
    assert "alice@example.com" not in everything


@pytest.mark.parametrize("role", ROLES)
def test_every_role_may_do_what_it_may(visit_as, model, role):
    Submission.objects.filter(pk=model.pk).update(is_published=True)
    client = visit_as(role)
    refused = 401 if role == "stranger" else 404
    expected = 200 if role == "owner" else refused
    assert client.patch(url_of(model), {"card": {"license": "MIT"}}).status_code == expected
    until = {"until": None}
    for deed, told in (
        *(("unpublish", {}), ("publish", {}), ("cancel", {})),
        *(("anonymous", until), ("withdraw", {})),
    ):
        assert client.post(url_of(model, f"{deed}/"), told).status_code == expected
    assert Submission.objects.filter(withdrawn_at=None).exists() == (role != "owner")


@pytest.mark.parametrize("role", ROLES)
def test_every_role_reads_the_logs_it_may(visit_as, model, role):
    Submission.objects.filter(pk=model.pk).update(is_published=True)
    client = visit_as(role)
    for run in model.runs.select_related("version__evaluation_set"):
        hidden = run.version.evaluation_set.access == "hidden"
        allowed = role in (TASK_OWNERS if hidden else INSIDE)
        refused = 401 if role == "stranger" else 404
        reply = client.get(url_of(model, f"runs/{run.pk}/"))
        assert reply.status_code == (200 if allowed else refused)
        assert (reply.json().get("log") == "Loading weights") == allowed
        model.runs.filter(pk=run.pk).update(outcome="infrastructure", state="failed")
        again = client.post(url_of(model, f"runs/{run.pk}/again/"))
        assert again.status_code == (201 if allowed else refused)
        assert model.runs.filter(version=run.version).count() == 1 + allowed
        if allowed:
            assert again.json()["number"] == 2
            assert client.post(url_of(model, f"runs/{run.pk}/again/")).status_code == 409


def test_a_model_without_an_owner_is_nobodys(anybody, task):
    submission = accepted_model(task, source="org/hidden", is_published=True)
    (listed,) = anybody.get(URL).json()["results"]
    for told in (listed, anybody.get(url_of(submission)).json()):
        assert (told["owner"], told["source"]) == ("", "")


def test_a_hidden_task_hides_its_models(bobs, model):
    Submission.objects.filter(pk=model.pk).update(is_published=True)
    model.task.is_visible = False
    model.task.save(update_fields=["is_visible"])
    for rest in ("", "runs/", "scores/", "predictions/open/"):
        assert bobs.get(url_of(model, rest)).status_code == 404
    assert bobs.get(URL).status_code == 404


def test_a_run_of_another_model_is_not_there(api, alice, task, model):
    other = accepted_model(task, alice, "other")
    assert api.get(url_of(other, f"runs/{model.runs.first().pk}/")).status_code == 404


# What its owner does


def test_a_withdrawn_model_is_a_tombstone_that_names_nobody(api, anybody, model):
    until = timezone.now().date() + timedelta(days=9)
    Submission.objects.filter(pk=model.pk).update(is_published=True, anonymous_until=until)
    told = api.post(url_of(model, "withdraw/")).json()
    assert (told["phase"], told["card"]["description"]) == ("withdrawn", "")
    reply = anybody.get(url_of(model))
    told = reply.json()
    assert (told["name"], told["owner"], told["digest"]) == ("withdrawn", "", "")
    assert str(model.owner.annotator) not in reply.text
    for rest in ("runs/", "scores/"):
        assert anybody.get(url_of(model, rest)).json()["results"] == []
    assert anybody.get(url_of(model, "predictions/open/")).status_code == 404
    assert anybody.get(URL).json()["results"] == []
    again = api.post(url_of(model, "withdraw/"))
    assert (again.status_code, error(again)["code"]) == (409, "refused")
    assert api.patch(url_of(model), {"card": {"license": "MIT"}}).status_code == 409


def test_publishing_needs_a_score(api, alice, task, model):
    assert api.post(url_of(model, "publish/")).json()["is_published"]
    assert not api.post(url_of(model, "unpublish/")).json()["is_published"]
    reply = api.post(url_of(accepted_model(task, alice, "unscored"), "publish/"))
    assert (reply.status_code, error(reply)["code"]) == (409, "refused")
    assert not Submission.objects.get(name="unscored").is_published


def test_of_a_card_only_what_is_named_changes(api, model):
    told = api.patch(url_of(model), {"card": {"license": "MIT"}}).json()
    assert told["card"]["license"] == "MIT"
    assert told["card"]["description"] == "Made of *seeds*."
    assert api.patch(url_of(model), {}).status_code == 422


def test_an_unknown_field_of_a_card_is_refused(api, model):
    answer = api.patch(url_of(model), {"card": {"licence": "MIT"}})
    assert answer.status_code == 422
    (message,) = answer.json()["error"]["fields"]["card.licence"]
    assert "license" in message


def test_names_are_hidden_until_a_day(api, model):
    day = timezone.now().date() + timedelta(days=30)
    reply = api.post(url_of(model, "anonymous/"), {"until": str(day)})
    assert reply.json()["anonymous_until"] == str(day)
    late = api.post(url_of(model, "anonymous/"), {"until": str(day + timedelta(days=400))})
    assert [*error(late)["fields"]] == ["until"]
    assert api.post(url_of(model, "anonymous/"), {}).status_code == 422
    shown = api.post(url_of(model, "anonymous/"), {"until": None}).json()
    assert shown["anonymous_until"] is None


def test_a_refused_model_says_why_to_those_inside(api, bobs, alice, task):
    submission = Submission.objects.create(task=task, owner=alice, kind="hub", name="Bad")
    leases.claim_job(Submission, submission.pk)
    submission.refresh_from_db()
    leases.fail_job(submission, "config.json is missing.", outcome="rejected", log="Nothing read")
    told = api.get(url_of(submission)).json()
    assert (told["phase"], told["outcome"]) == ("refused", "rejected")
    assert (told["error"], told["log"]) == ("config.json is missing.", "Nothing read")
    assert bobs.get(url_of(submission)).status_code == 404


# Runs


def test_who_waits_is_told_the_place_and_the_time(api, alice, task):
    version = set_version(task)
    began = timezone.now() - timedelta(days=2)
    ended = accepted_model(task, name="ended")
    scored(ended, version, started_at=began, finished_at=began + timedelta(seconds=60))
    first, second = (accepted_model(task, alice, f"m{number}") for number in range(2))
    for submission in (first, second):
        queued_run(submission, version)
    told = api.get(url_of(second)).json()
    assert (told["phase"], told["position"], told["wait_seconds"]) == ("queued", 2, 120)
    assert "2 minutes" in told["sentence"]
    (run,) = api.get(url_of(second, "runs/")).json()["results"]
    assert (run["position"], run["wait_seconds"], run["state"]) == (2, 120, "queued")
    claim_next_run()
    (run,) = api.get(url_of(first, "runs/")).json()["results"]
    assert (run["position"], run["wait_seconds"], run["state"]) == (None, None, "running")
    assert api.get(url_of(first)).json()["share"] is not None


def test_a_run_says_what_it_used(anybody, model):
    Submission.objects.filter(pk=model.pk).update(is_published=True)
    (run,) = anybody.get(url_of(model, "runs/")).json()["results"]
    assert (run["evaluation_set"], run["version"], run["suite"]) == ("open", 1, "plain")
    assert run["usage"]["examples_per_second"] == 51.25
    assert run["usage"]["peak_bytes"] is None


def test_scores_are_of_the_first_good_run_with_slices_and_kinds(api, model):
    version = model.runs.get(version__evaluation_set__name="open").version
    first = model.runs.get(version=version)
    scored(model, version, 0.75, number=2)
    queued_run(model, version, number=3, state=State.FAILED, outcome="oom")
    Score.objects.create(run=first, metric="accuracy", slice="tag=odd", value=None, n=0)
    perturbed = queued_run(model, version, "robustness", state=State.DONE, outcome="ok")
    Score.objects.create(run=perturbed, metric="drop", kind="typo", value=0.1, n=6)
    rows = api.get(url_of(model, "scores/")).json()["results"]
    found = [(row["suite"], row["metric"], row["slice"], row["kind"], row["value"]) for row in rows]
    assert found == [
        ("plain", "accuracy", "", "", 0.625),
        ("plain", "accuracy", "tag=odd", "", None),
        ("robustness", "drop", "", "typo", 0.1),
    ]
    assert {row["evaluation_set"] for row in rows} == {"open"}


@pytest.mark.parametrize("role", ROLES)
def test_predictions_leave_where_the_inputs_may(visit_as, model, role):
    Submission.objects.filter(pk=model.pk).update(is_published=True)
    closed = scored(model, set_version(model.task, "closed"))
    for run in model.runs.all():
        run.predictions.save("p", ContentFile(_packed(run)), save=True)
    client = visit_as(role)
    reply = client.get(url_of(model, "predictions/open/"))
    assert reply["Content-Type"] == "application/jsonl"
    lines = b"".join(reply).splitlines()
    answers = [{"label": "neutral"}, None]
    assert [orjson.loads(line) for line in lines] == [
        {"id": f"u{n}", "output": answer, "prob": None} for n, answer in enumerate(answers)
    ]
    assert "1 of 2" in check_predictions(model.task.config, ["u0", "u1"], lines)  # as it was taken
    for name in (closed.version.evaluation_set.name, "sealed"):
        status = client.get(url_of(model, f"predictions/{name}/")).status_code
        assert status == (200 if role in TASK_OWNERS else 404)


def _packed(run):
    import gzip

    lines = (
        b'{"uid": "u0", "answer": "neutral", "prob": null}',
        b'{"uid": "u1", "answer": null, "prob": null}',  # not answered
    )
    return gzip.compress(b"\n".join(lines))


def test_my_models_are_mine(api, bobs, anybody, model):
    mine = api.get("/api/v1/me/models/").json()["results"]
    assert [one["name"] for one in mine] == ["Secret name"]
    assert mine[0]["phase"] == "scored"
    assert bobs.get("/api/v1/me/models/").json()["results"] == []
    assert anybody.get("/api/v1/me/models/").status_code == 401


def test_odd_addresses_are_not_there(api, model):
    nobody = "00000000-0000-4000-8000-000000000000"
    assert api.get(f"/api/v1/models/{nobody}/").status_code == 404
    assert api.get("/api/v1/models/x/").status_code == 404
    assert api.get(url_of(model, "predictions/nothing/")).status_code == 404
    assert api.get(url_of(model, f"runs/{nobody}/")).status_code == 404
    assert EvaluationRun.objects.count() == 2
