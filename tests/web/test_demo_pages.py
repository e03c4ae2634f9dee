"""The page that fills the demo and takes it away."""

import json

import pytest
from django.core.management import call_command
from django.db import IntegrityError
from django_q.models import OrmQ

from annotation.models import Example
from core.accounts.models import LogEntry
from dynabench.operations.demo import jobs
from dynabench.operations.demo.models import DemoRun
from dynabench.operations.demo.services import request_demo
from dynabench.operations.management.commands import demo as command
from evaluation.isolation.queue import leases
from evaluation.models import Job
from tasks.models import SIMULATED_TASK_CODE, Round, Task, TaskMember
from tests.support.factories import ContextFactory, UserFactory

pytestmark = pytest.mark.django_db
POSTS = ("/demo/fill/", "/demo/stop/", "/demo/forget/")


@pytest.fixture
def owner(client, nli):
    user = UserFactory()
    TaskMember.objects.create(task=nli.task, user=user, role=TaskMember.Role.OWNER)
    client.force_login(user)
    return user


@pytest.mark.parametrize("role", [None, "editor", "reviewer", "viewer", "annotator"])
def test_it_is_there_for_owners_and_administrators_alone(role, client, nli):
    request_demo(None)
    user = UserFactory()
    if role:
        TaskMember.objects.create(task=nli.task, user=user, role=role)
    assert client.get("/demo/").status_code == 302
    assert {client.post(path).status_code for path in POSTS} == {302}
    client.force_login(user)
    assert client.get("/demo/").status_code == 404
    assert {client.post(path).status_code for path in POSTS} == {404}
    assert DemoRun.objects.get().state == Job.State.QUEUED
    user.is_superuser = True
    user.save()
    assert client.get("/demo/").status_code == 200


def test_one_click_on_an_empty_task_fills_it_once(client, owner, nli):
    assert 'action="/demo/fill/"' in client.get("/own/nli/").text
    for _ in range(2):
        assert client.post("/demo/fill/").url == "/demo/"
    run = DemoRun.objects.get()
    assert (run.state, run.requested_by) == (Job.State.QUEUED, owner)
    assert OrmQ.objects.count() == 1
    assert 'action="/demo/fill/"' not in client.get("/own/nli/").text
    assert 'href="/demo/"' in client.get(f"/own/{SIMULATED_TASK_CODE}/").text
    assert 'id="simulated"' in client.get(f"/t/{SIMULATED_TASK_CODE}/").text


def test_a_task_with_examples_and_other_people_get_no_offer(client, owner, nli):
    Example.objects.create(
        round=nli, context=ContextFactory(round=nli), annotator=owner.annotator, inputs={}
    )
    assert 'action="/demo/fill/"' not in client.get("/own/nli/").text
    Example.objects.all().delete()
    TaskMember.objects.update(role=TaskMember.Role.VIEWER)
    assert 'action="/demo/fill/"' not in client.get("/own/nli/").text


def test_an_empty_site_offers_it_to_administrators_on_the_home_page(client, owner):
    assert 'action="/demo/fill/"' not in client.get("/").text
    owner.is_superuser = True
    owner.save()
    assert 'action="/demo/fill/"' in client.get("/").text


def test_its_page_tells_how_far_it_is_and_leads_to_the_task(client, owner):
    run = request_demo(owner)
    leases.write_heartbeat(leases.claim_job(DemoRun, run.pk), 0.25, "round 2, at work")
    page = client.get("/demo/").text
    assert 'value="0.250"' in page
    assert "round 2, at work" in page
    assert f'href="/t/{SIMULATED_TASK_CODE}/"' in page
    assert 'hx-trigger="load' in page
    DemoRun.objects.update(state=Job.State.DONE)
    assert 'hx-trigger="load' not in client.get("/demo/").text


def test_it_is_stopped_before_it_is_taken_away(client, owner):
    run = request_demo(owner)
    claimed = leases.claim_job(DemoRun, run.pk)
    client.post("/demo/forget/")
    assert Task.objects.filter(code=SIMULATED_TASK_CODE).exists()
    client.post("/demo/stop/")
    with pytest.raises(leases.LeaseLost):  # its worker ends the process
        leases.write_heartbeat(claimed)
    client.post("/demo/forget/")
    assert not Task.objects.filter(code=SIMULATED_TASK_CODE).exists()
    assert not DemoRun.objects.exists()
    assert LogEntry.objects.get(action="demo.forgotten").actor == owner
    client.post("/demo/fill/")
    assert DemoRun.objects.get().state == Job.State.QUEUED


def test_a_worker_fills_it_in_a_separate_process(monkeypatch):
    asked = []
    monkeypatch.setattr(jobs, "run_subprocess_job", lambda run, words: asked.append((run, words)))
    run = request_demo(None)
    jobs.fill(run.pk)
    jobs.fill(run.pk)  # the message came twice
    assert asked == [(run, ["demo", "--run", str(run.pk)])]


def test_the_process_reports_in_lines_of_json(monkeypatch, capsys):
    def run_demo(task, seed, tell):
        tell(0.5, "evaluations")
        return {"rounds": [], "models": 0, "seconds": 1}

    monkeypatch.setattr(command, "run_demo", run_demo)
    call_command("demo", run=request_demo(None).pk)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        {"progress": 0.5, "message": "evaluations"},
        {"report": {"rounds": [], "models": 0, "seconds": 1}},
    ]


def test_what_broke_off_is_not_played_again(capsys):
    run = request_demo(None)
    Round.objects.create(task=run.task, number=1)
    call_command("demo", run=run.pk)
    assert json.loads(capsys.readouterr().out).keys() == {"error"}


def test_a_demo_has_one_filling():
    with pytest.raises(IntegrityError):
        DemoRun.objects.create(task=request_demo(None).task)
