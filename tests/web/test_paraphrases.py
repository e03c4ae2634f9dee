"""Paraphrases of a set: a model writes them, people check them, a version gets what they kept."""

import re

import pytest

from core.accounts.models import LogEntry
from evaluation.jobs import evaluate_next, write_paraphrases
from evaluation.judges.paraphrases.services import create_paraphrased_version, request_paraphrases
from evaluation.models import EvaluationRun, Paraphrase, Paraphrasing
from evaluation.runs.chat.target_services import MAX_FAILURES
from evaluation.test_sets.selectors import find_latest_version, read_checked_paraphrases
from evaluation.test_sets.services import make_version
from tasks.models import ModelUse, TaskMember
from tests.support.chat_server import chat_server
from tests.support.evaluations import (
    ScriptedRunner,
    accepted_model,
    nli_rows,
    queued_run,
    run_with,
    set_version,
)
from tests.support.factories import UserFactory
from tests.support.judged_answers import chat_target
from tests.support.writing import ok, signed_in

PAGE = "/own/nli/evaluation-sets/dev/paraphrases/"


def in_other_words(messages):
    """Persons 4 and 5 lose their number; of person 3 nothing new is said."""
    text = re.search(r"<text>\n(.*)\n", messages[1]["content"])[1]
    if " 3 " in text or "3." in text:
        return text
    said = text.replace("opened the shop", "unlocked the door").replace("Open", "Opened")
    return re.sub("[45]", "somebody", said)


@pytest.fixture
def server():
    with chat_server({"chat-1": in_other_words}) as server:
        yield server


@pytest.fixture
def version(nli, settings, tmp_path):
    settings.MEDIA_ROOT, settings.TARGET_PRIVATE_HOSTS = tmp_path, ["127.0.0.0/8"]
    return set_version(nli.task, may_leave=True, answers_public=False)


@pytest.fixture
def target(nli, server):
    return chat_target(nli.task, server.url, model="chat-1")


@pytest.fixture
def owner(nli):
    owner = UserFactory(email="owner@example.com")
    TaskMember.objects.create(task=nli.task, user=owner, role="owner")
    return owner


def asked(client):
    """Ask on the page and do the job."""
    sent = {"target": "chat", "prompt": "Say it otherwise.", "size": 6}
    assert client.post(PAGE, sent).status_code == 302
    job = Paraphrasing.objects.latest("pk")
    write_paraphrases(job.pk)
    job.refresh_from_db()
    return job


def test_what_people_keep_is_a_kind_of_the_robustness_suite(
    nli, version, target, owner, server, monkeypatch
):
    client = signed_in(owner)
    job = asked(client)
    assert (job.state, job.error, job.report) == ("done", "", {"calls": 12, "failures": 0})
    assert ModelUse.objects.get().requests == 12
    assert job.fingerprint["model"] == "chat-1"
    assert "Say it otherwise." in server.seen[0]["messages"][0]["content"]
    rows = {one.uid: one for one in Paraphrase.objects.all()}
    assert {uid for uid, one in rows.items() if one.state == "unfit"} == {"u3", "u4", "u5"}
    text = ok(client.get(PAGE)).text
    assert "Person 1 unlocked the door." in text
    assert "neutral" in text

    assert client.post(f"{PAGE}take/").status_code == 302
    assert find_latest_version(version.evaluation_set) == version, "nothing was kept"
    sent = {f"paraphrase-{rows['u1'].pk}": "kept", f"paraphrase-{rows['u2'].pk}": "refused"}
    sent |= {f"paraphrase-{rows['u4'].pk}": "kept", "paraphrase-x": "kept"}
    client.post(f"{PAGE}check/", sent)
    assert client.post(f"{PAGE}take/").url == "/own/nli/evaluation-sets/dev/"
    made = find_latest_version(version.evaluation_set)
    assert (made.version, made.size, made.sha256) == (2, version.size, version.sha256)
    assert made.exposed_at  # the model is elsewhere
    said = {"premise": "Person 1 unlocked the door.", "hypothesis": "Opened 1."}
    assert read_checked_paraphrases(made) == {"u1": said}
    assert read_checked_paraphrases(version) == {}
    client.post(f"{PAGE}check/", {f"paraphrase-{rows['u1'].pk}": "refused"})
    assert read_checked_paraphrases(made) == {"u1": said}, "what a version has stays"
    assert Paraphrase.objects.get(uid="u1").state == "kept"
    assert make_version(made.evaluation_set, nli_rows(), None) == made  # the same examples

    runner = ScriptedRunner()
    run_with(monkeypatch, runner)
    model = accepted_model(nli.task)
    for suite in ("plain", "robustness"):
        run = queued_run(model, made, suite)
        evaluate_next(run.pk)
        run.refresh_from_db()
        assert run.state == EvaluationRun.State.DONE, run.error
    assert [line for line in runner.sent[-1] if line["inputs"] == said]
    score = run.scores.get(metric="accuracy_after", kind="paraphrase")
    assert (score.value, score.n) == (1.0, 1)


def test_only_what_is_settled_is_not_asked_again(version, target, owner, server):
    client = signed_in(owner)
    asked(client)
    Paraphrase.objects.filter(uid="u0").update(state="refused")
    server.behaviours["chat-1"] = lambda messages: in_other_words(messages).replace("the", "a")
    asked(client)
    assert len(server.seen) == 12 + 8, "u0, u3, u4, u5"
    assert Paraphrase.objects.filter(uid="u0", state="waiting").count() == 1
    changed = [*nli_rows()[:2], *nli_rows(9)[6:]]
    Paraphrase.objects.filter(state="waiting").update(state="kept")
    make_version(version.evaluation_set, changed, None)
    made = create_paraphrased_version(evaluation_set=version.evaluation_set, actor=owner)
    assert sorted(read_checked_paraphrases(made)) == ["u0", "u1"], (
        "the others are no examples any more"
    )


def test_a_model_that_fails_writes_nothing_and_is_left_alone(version, target, owner, server):
    server.behaviours["chat-1"] = lambda messages: 500
    job = asked(signed_in(owner))
    assert job.state == "queued"  # until the server is back
    assert job.not_before
    assert len(server.seen) == MAX_FAILURES
    assert not Paraphrase.objects.exclude(state="unfit").exists()
    target.options = {"model": "another"}
    target.save()
    Paraphrasing.objects.update(not_before=None)
    write_paraphrases(job.pk)
    job.refresh_from_db()
    assert job.state == "failed"
    assert job.error


def test_a_set_that_may_not_leave_is_sent_nowhere(version, target, owner, server):
    client = signed_in(owner)
    sent = {"target": "chat", "prompt": "Say it.", "size": 6}
    job = request_paraphrases(
        evaluation_set=version.evaluation_set, target=target, prompt="x", size=1, actor=owner
    )
    assert client.post(PAGE, sent).status_code == 422, "one is under way"
    version.evaluation_set.may_leave = False
    version.evaluation_set.save()
    write_paraphrases(job.pk)
    job.refresh_from_db()
    assert job.state == "failed"
    assert client.post(PAGE, sent).status_code == 422
    assert not server.seen
    assert not LogEntry.objects.filter(action="evaluation_set.exposed").exists()
