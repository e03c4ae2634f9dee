"""The owner's pages of trainings: asking, looking, using, and nobody else coming in."""

# ruff: noqa: F811  (fixtures are named where they are used)

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django_q.models import OrmQ

from evaluation.isolation.queue import leases
from evaluation.models import TrainingRun
from tasks.models import Round, TargetModel, Task, TaskMember
from tests.support.factories import RoundFactory, UserFactory
from tests.support.query_counts import check
from tests.support.training_data import release
from tests.support.training_pages import (
    REPORT,
    State,
    done,
    run,  # noqa: F401
    task,  # noqa: F401
)
from tests.web.conftest import HTMX

URL = "/own/nli/trainings/"
FORM = {"weight_seed": "", "weight_round1": "2", "base": "encoder", "seed": "3", "epochs": "1"}


@pytest.mark.parametrize(("role", "may"), [(None, 0), ("editor", 1)])
def test_only_editors_find_the_pages(client, bob, run, role, may):
    if role:
        TaskMember.objects.create(task=run.task, user=bob, role=role)
    for url in (URL, "/own/nli/train/", f"{URL}{run.pk}/"):
        assert client.get(url).status_code == 302  # signed out
        client.force_login(bob)
        assert client.get(url).status_code == (200 if may else 404)
        assert client.post(url, FORM).status_code == (422 if may else 404)
        client.logout()
    assert TrainingRun.objects.count() == 1


def test_a_run_of_another_task_is_not_there(as_alice, run):
    other = Task.objects.create(code="other", name="Other", config_text=run.task.config_text)
    TrainingRun.objects.filter(pk=run.pk).update(task=other)
    assert as_alice.get(f"{URL}{run.pk}/").status_code == 404


def test_the_button_queues_a_training(as_alice, alice, task):
    page = as_alice.get(URL)
    assert page.context["form"]["base"].initial == str(TargetModel.objects.get().pk)
    reply = as_alice.post(URL, FORM)
    run = TrainingRun.objects.get()
    assert reply.url == f"{URL}{run.pk}/"
    assert (run.state, run.requested_by) == (State.QUEUED, alice)
    assert run.options["weights"] == {"round1": 2.0}
    assert (run.options["base"], run.options["seed"], run.options["epochs"]) == ("", 3, 1)
    assert OrmQ.objects.count() == 1


def test_a_target_of_the_task_may_be_the_base(as_alice, task):
    target = TargetModel.objects.get()
    as_alice.post(URL, {**FORM, "base": str(target.pk)})
    assert TrainingRun.objects.get().options["base"] == target.source


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"weight_round1": "0"}, "__all__"),
        ({"weight_round1": "-1"}, "weight_round1"),
        ({"weight_round1": "nan"}, "weight_round1"),
        ({"base": "/etc"}, "base"),
        ({"seed": ""}, "seed"),
        ({"epochs": "0"}, "epochs"),
    ],
)
def test_mistakes_are_told_and_what_was_typed_stays(as_alice, task, changes, field):
    reply = as_alice.post(URL, {**FORM, "epochs": "7", **changes})
    assert reply.status_code == 422
    assert [*reply.context["form"].errors] == [field]
    assert 'id="error-summary"' in reply.text
    assert "<title>Error: " in reply.text
    assert reply.context["form"]["weight_seed"].value() == ""
    assert not TrainingRun.objects.exists()


def test_rounds_without_a_release_are_named_and_not_offered(as_alice, task):
    RoundFactory(task=task, number=2, state="closed")
    page = as_alice.get(URL)
    assert page.context["form"].unreleased == [2]
    assert "weight_round2" not in page.text
    assert (
        as_alice.post(URL, {**FORM, "weight_round2": "1", "weight_round1": ""}).status_code == 422
    )


def test_a_training_that_runs_is_polled_until_it_is_over(as_alice, run):
    url = f"{URL}{run.pk}/"
    assert 'hx-trigger="load delay:2s"' in as_alice.get(url).text
    mine = leases.claim_job(TrainingRun, run.pk)
    leases.write_heartbeat(mine, 0.25, "epoch 1")
    page = as_alice.get(url)
    assert 'hx-trigger="load delay:2s"' in page.text
    assert 'value="0.250"' in page.text
    part = as_alice.get(url, **HTMX)
    assert part.text.lstrip().startswith("<section")
    leases.fail_job(mine, "There are no rows.")
    part = as_alice.get(url, **HTMX)
    assert "hx-trigger" not in part.text
    assert "There are no rows." in part.text


def test_the_report_has_a_chart_tables_and_escaped_texts(as_alice, run):
    done(run)
    page = as_alice.get(f"{URL}{run.pk}/").text
    assert "<svg" in page
    for words in ("40.0%", "50.0%", "20 examples", "Rain &lt;b&gt; · Sun", "p = 0.250", "1 (kept)"):
        assert words in page
    assert 'class="number">0</td>' in page  # nothing mended is a number
    assert 'class="shield"' not in page
    assert "/nowhere" not in page


def test_each_test_is_drawn_before_and_after(as_alice, client, run):
    done(run)
    url = f"{URL}{run.pk}/"
    page = as_alice.get(url)
    assert page.text.count('class="row-plot"') == len(REPORT["tests"])
    assert 'class="joint"' in page.text
    file = as_alice.get(f"{url}chart/before-and-after.svg")
    assert page.context["figure"].title in file.text
    assert as_alice.get(f"{url}chart/before-and-after.png").content.startswith(b"\x89PNG")
    client.force_login(UserFactory())
    assert client.get(f"{url}chart/before-and-after.svg").status_code == 404


def test_texts_of_sensitive_tasks_are_shielded(as_alice, run, monkeypatch):
    monkeypatch.setattr(Task, "is_sensitive", True)
    done(run)
    assert 'class="shield"' in as_alice.get(f"{URL}{run.pk}/").text


def test_without_an_old_target_the_report_says_so(as_alice, run):
    test = {**REPORT["tests"][0], "before": None, "mended": None, "broken": None, "p": None}
    done(run, old=None, old_missing="nobody had one", tests=[test])
    page = as_alice.get(f"{URL}{run.pk}/").text
    assert "nobody had one." in page
    assert page.partition("<main")[2].count('class="none"') == 3


def test_the_model_becomes_a_target_with_one_button(as_alice, run):
    done(run)
    page = as_alice.get(f"{URL}{run.pk}/")
    form = page.context["form"]
    assert [number for number, _ in form.fields["number"].choices] == [2]
    reply = as_alice.post(f"{URL}{run.pk}/", {"number": "2", "name": form["name"].initial})
    assert reply.url == f"{URL}{run.pk}/"
    page = as_alice.get(reply.url).text
    assert 'id="use-as-target"' not in page
    assert run.task.rounds.get(number=2).target_names == ["nli-round-2"]
    assert "nli-round-2 (round 2)" in as_alice.get(URL).text


def test_a_draft_is_offered_first(as_alice, run):
    RoundFactory(task=run.task, number=2, state=Round.State.DRAFT)
    done(run)
    form = as_alice.get(f"{URL}{run.pk}/").context["form"]
    assert [number for number, _ in form.fields["number"].choices] == [2, 3]


def test_a_taken_name_is_told(as_alice, run):
    done(run)
    reply = as_alice.post(f"{URL}{run.pk}/", {"number": "2", "name": "tiny"})
    assert reply.status_code == 422
    assert TargetModel.objects.filter(name="tiny").count() == 1
    assert 'value="tiny"' in reply.text


def test_a_training_that_is_not_done_cannot_be_used(as_alice, run):
    reply = as_alice.post(f"{URL}{run.pk}/", {"number": "2", "name": "early"})
    assert (reply.status_code, TargetModel.objects.count()) == (422, 1)
    assert reply.context["form"].errors


def count(client, url):
    client.get(url)
    with CaptureQueriesContext(connection) as queries:
        assert client.get(url).status_code == 200
    return len(queries)


def test_query_counts(as_alice, run):
    done(run)
    few = count(as_alice, URL), count(as_alice, f"{URL}{run.pk}/")
    for number in range(2, 9):
        release(RoundFactory(task=run.task, number=number, state="closed"), (2, 2, 2))
        TargetModel.objects.create(task=run.task, name=f"t{number}", source="somewhere")
        other = TrainingRun.objects.create(task=run.task, options=run.options)
        TrainingRun.objects.filter(pk=other.pk).update(
            state=State.DONE, target=TargetModel.objects.last(), round=run.task.rounds.last()
        )
    assert (count(as_alice, URL), count(as_alice, f"{URL}{run.pk}/")) == few
    check("trainings", few[0])
    check("training", few[1])


def test_a_report_without_tests_says_that_nothing_was_compared(as_alice, run):
    done(run)
    assert 'id="not-compared"' not in as_alice.get(f"{URL}{run.pk}/").text
    TrainingRun.objects.filter(pk=run.pk).update(report={**REPORT, "tests": []})
    page = as_alice.get(f"{URL}{run.pk}/").text
    assert 'id="not-compared"' in page
    assert "<svg" not in page.partition("<main")[2].partition('id="learned-from"')[0]
