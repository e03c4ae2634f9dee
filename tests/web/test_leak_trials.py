"""Models that arrive after a release are run on both halves, and a leak is found or excluded."""

# ruff: noqa: F811  (fixtures are named where they are used)

import csv
import gzip
import io

import pytest
from django.core.files.base import ContentFile
from django.utils import timezone

from evaluation.contract import Answer
from evaluation.isolation.inference.evaluate import build_prediction_line
from evaluation.models import EvaluationRun, EvaluationSet, LeakTrial, Submission
from evaluation.runs.leak_services import store_leak_trials
from evaluation.runs.services import request_missing_runs
from evaluation.scoring import leaks
from evaluation.test_sets.sealing import count_steps
from evaluation.test_sets.selectors import read_set_rows
from evaluation.test_sets.shown_scores import describe_disclosure
from evaluation.test_sets.source_services import make_missing_versions
from tasks.models import TaskMember
from tests.support.evaluations import accepted_model
from tests.support.releases import _own_storage, closed, people, released  # noqa: F401

API = "/api/v1/tasks/nli/leaderboard/training-dates/"
PAGE = "/t/nli/leaderboard/training-dates/"


@pytest.fixture
def halves(closed, monkeypatch):
    """The released and the held-back set of a round, small as they are."""
    monkeypatch.setattr(leaks, "MIN_AUTHORS", 2)
    monkeypatch.setattr(leaks, "MIN_EXAMPLES", 8)
    released(closed, hold_back=True)
    make_missing_versions()
    sets = EvaluationSet.objects.filter(task=closed.task).exclude(source="control")
    return {one.source: one.versions.last() for one in sets}


def run_on(version, model, is_right, **fields):
    """A run of the model; is_right: by place in the set."""
    lines = b"".join(
        build_prediction_line(row.uid, Answer(row.gold[0] if is_right(place) else "-"))
        for place, row in enumerate(read_set_rows(version))
    )
    file = ContentFile(gzip.compress(lines), name="p.jsonl.gz")
    fields = {"state": "done", "outcome": "ok", "predictions": file} | fields
    return EvaluationRun.objects.create(submission=model, version=version, **fields)


def run_on_both(halves, model, in_the_loop=False):
    """A model that knows all released answers, and every second one of the others."""
    run_on(halves["round"], model, lambda place: True, in_the_loop=in_the_loop)
    return run_on(halves["held"], model, lambda place: place % 2 == 0, in_the_loop=in_the_loop)


def later_model(task, **fields):
    return accepted_model(task, name="later", is_published=True, **fields)


def earlier_model(task):
    model = accepted_model(task, name="earlier", is_published=True)
    Submission.objects.filter(pk=model.pk).update(
        queued_at=timezone.now() - timezone.timedelta(days=9)
    )
    return model


def test_a_later_model_gets_a_run_on_each_half(closed, halves):
    model = later_model(closed.task)
    request_missing_runs()
    versions = set(model.runs.filter(suite="plain").values_list("version", flat=True))
    assert {halves["round"].pk, halves["held"].pk} <= versions


def test_a_trial_is_stored_once_for_each_later_model(closed, halves):
    earlier, later = earlier_model(closed.task), later_model(closed.task)
    run_on_both(halves, earlier)
    run = run_on_both(halves, later)
    assert store_leak_trials(run) == 1
    assert store_leak_trials(run) == 0
    trial = LeakTrial.objects.get()
    assert (trial.submission, trial.round, trial.earlier_models) == (later, closed, 1)
    assert (trial.released_n, trial.held_n) == (halves["round"].size, halves["held"].size)
    # Until the model is compared with others that do the same, it is half of the held-back rows.
    assert trial.difference is not None


def test_a_model_in_the_loop_has_none(closed, halves):
    assert store_leak_trials(run_on_both(halves, later_model(closed.task), in_the_loop=True)) == 0


def test_once_both_halves_are_public_a_new_model_has_none(closed, halves):
    honest = run_on_both(halves, later_model(closed.task))
    release = halves["round"].dataset
    release.pk, release.version, release.numbers = None, 2, {"rows": {"held": 9}}
    release.finished_at = timezone.now()
    release.save()
    late = accepted_model(closed.task, name="late", is_published=True)
    run_on_both(halves, late)
    assert store_leak_trials(honest) == 1
    assert not LeakTrial.objects.filter(submission=late).exists()


def test_one_half_is_not_enough(closed, halves):
    model = later_model(closed.task)
    assert store_leak_trials(run_on(halves["round"], model, bool)) == 0


def test_too_few_authors_store_a_trial_without_numbers(closed, halves, monkeypatch, as_alice):
    monkeypatch.setattr(leaks, "MIN_AUTHORS", 50)
    store_leak_trials(run_on_both(halves, later_model(closed.task)))
    (found,) = as_alice.get(API).json()["leak_trials"]
    assert (found["difference"]["value"], found["is_found"]) == (None, False)
    assert as_alice.get(PAGE).status_code == 200


def test_pages_file_and_api_say_the_same(closed, halves, as_alice):
    EvaluationSet.objects.update(answers_public=True)  # nothing is rounded
    model = later_model(closed.task)
    store_leak_trials(run_on_both(halves, model))
    (found,) = as_alice.get(API).json()["leak_trials"]
    held_share = -(-halves["held"].size // 2) / halves["held"].size
    assert found["difference"]["value"] == pytest.approx(100 * (1 - held_share))
    assert found["largest_leak"] >= found["difference"]["value"]
    (row,) = csv.DictReader(io.StringIO(as_alice.get(f"{PAGE}?format=csv").text))
    assert float(row["difference"]) == pytest.approx(found["difference"]["value"])
    for address in (PAGE, f"/m/{model.pk}/"):
        assert 'id="leak-trials"' in as_alice.get(address).text


def test_on_a_sealed_set_numbers_are_rounded_but_not_for_editors(closed, halves, alice, as_alice):
    model = later_model(closed.task)
    store_leak_trials(run_on_both(halves, model))
    trial = LeakTrial.objects.get()
    (found,) = as_alice.get(API).json()["leak_trials"]
    steps = found["difference"]["value"] / 100 * count_steps(halves["round"].size)
    assert steps == pytest.approx(round(steps))
    text = f"{100 * trial.difference:.1f}"
    assert text not in as_alice.get(f"/m/{model.pk}/").text
    TaskMember.objects.create(user=alice, task=closed.task, role="owner")
    assert text in as_alice.get(f"/m/{model.pk}/").text


@pytest.mark.parametrize("hidden", ["set", "result", "released half"])
def test_what_others_may_not_see(closed, halves, as_alice, hidden):
    store_leak_trials(run_on_both(halves, later_model(closed.task)))
    assert as_alice.get(API).json()["leak_trials"]
    if hidden == "set":
        EvaluationSet.objects.filter(source="held").update(access="hidden")
    elif hidden == "result":
        EvaluationRun.objects.update(is_shown=False)
    else:
        dataset = halves["round"].dataset
        dataset.options["private_test"] = True
        dataset.save()
    assert as_alice.get(API).json()["leak_trials"] == []


def test_a_trial_counts_as_disclosed(halves):
    held, other = describe_disclosure(halves["held"]), describe_disclosure(halves["round"])
    assert (held.has_trial, other.has_trial) == (True, False)
    assert held.bits > 2 * other.bits / 2
