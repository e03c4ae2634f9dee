"""Catches of the board of adversaries, asked of models that nobody asked when they were found."""

import gzip
import json
from importlib import import_module
from uuid import uuid4

import pytest
from django.apps import apps
from django.core.files.base import ContentFile
from django.urls import reverse
from rest_framework.test import APIClient

from annotation.attempts import live_targets
from annotation.models import Example
from core.errors import Refused
from dynabench.adversaries import transfer_services
from dynabench.adversaries.jobs import check_transfer
from dynabench.adversaries.models import AdversaryRun, TransferAnswer, TransferCheck
from dynabench.adversaries.transfer_selectors import build_transfer_rows, list_catches
from dynabench.adversaries.transfer_services import request_transfer_check, stop_transfer_check
from evaluation.models import (
    Dataset,
    DatasetItem,
    EvaluationRun,
    EvaluationSet,
    EvaluationSetVersion,
    Submission,
)
from tasks.models import Round, TargetModel, TaskMember
from tasks.targets.spending_services import SpentError
from tests.support.adversaries import make_adversary, run_to_its_end, sentiment_round
from tests.support.factories import UserFactory
from tests.support.judging import write
from tests.support.query_counts import count
from validation.consensus.consensus import Vote
from validation.decisions.services import override_consensus
from validation.rates.rates import compute_clustered_rate

pytestmark = pytest.mark.django_db
State = TransferAnswer.State
# Wrong about positive texts without “blue”.
OTHER = {"label": "negative", "rules": [{"contains": "blue", "label": "positive"}]}
PAGE = reverse("own-adversaries:adversaries", args=["sentiment"])
API = "/api/v1/tasks/sentiment/adversaries/"


def other_model(round, name="other", url="http://scripted.test", **options):
    """A model of the task that is in no round."""
    return TargetModel.objects.create(
        task=round.task, name=name, adapter="scripted", url=url, options=options or OTHER
    )


def confirm(example, owner, label="positive"):
    override_consensus(
        example=example, owner=owner, choice=Vote(label=label), reason="It is clear."
    )
    return example


def find_example(word):
    """The example whose text has this word."""
    (found,) = [one for one in Example.objects.all() if word in one.inputs["text"]]
    return found


@pytest.fixture
def scene():
    """A round, whose adversary has two confirmed catches and a refuted one, and another model."""
    round, owner = sentiment_round()
    lines = [f"positive | We loved the {word} boat." for word in ("blue", "red", "old")]
    adversary = make_adversary(round, owner, sentences="\n".join(lines), words=False)
    run_to_its_end(adversary, owner)
    for word in ("blue", "red"):
        confirm(find_example(word), owner)
    confirm(find_example("old"), owner, "negative")
    return round, owner, adversary, other_model(round)


@pytest.fixture
def asked(monkeypatch):
    """The names of the models that are asked, and the texts."""
    calls, answer = [], live_targets.request_answers_in_time

    def note(targets, inputs, payers, seconds):
        calls.append((targets[0].name, inputs["text"]))
        return answer(targets, inputs, payers, seconds)

    monkeypatch.setattr(live_targets, "request_answers_in_time", note)
    return calls


def work_on(check):
    for _ in range(20):
        check.refresh_from_db()
        if check.is_over:
            return check
        check_transfer(check.pk)
    raise AssertionError(check.message)


def ask_others(round, owner):
    return work_on(request_transfer_check(task=round.task, actor=owner))


def write_catch(round, author, number, owner, text=None):
    """A confirmed catch of a person."""
    text = text or f"We adored evening {number} there."
    return confirm(write(round, author, number, text=text, label="positive"), owner)


def test_other_models_are_asked_about_confirmed_catches_only(scene, asked):
    round, owner, adversary, other = scene
    check = ask_others(round, owner)
    assert (check.state, check.calls, check.unasked) == ("done", 2, {})
    assert {name for name, _text in asked} == {"other"}
    assert {answer.target for answer in TransferAnswer.objects.all()} == {other}
    (row,) = build_transfer_rows(round.task)
    assert (row.code, row.model, row.clusters) == (str(adversary.pk), "other", 1)
    assert (row.share.value, row.share.n) == (0.5, 2)


def test_a_model_that_the_adversary_asked_is_left_out(scene, asked):
    """By what its runs have noted, also if it stored no example against this model."""
    round, owner, adversary, other = scene
    run = adversary.runs.get()
    assert set(run.asked_targets.all()) == {round.round_targets.get().target}
    ask_others(round, owner)
    assert build_transfer_rows(round.task)
    later = AdversaryRun.objects.create(adversary=adversary, round=round, number=2, state="done")
    later.asked_targets.add(other)
    assert build_transfer_rows(round.task) == []
    asked.clear()
    ask_others(round, owner)
    assert asked == []


def test_the_models_of_earlier_runs_are_noted_from_their_logs(scene):
    """By the migration, also a model that is no longer in the round."""
    round, _owner, adversary, other = scene
    run = adversary.runs.get()
    run.asked_targets.clear()
    last_try = run.logged_tries.first()
    last_try.outputs = [{"model": "other", "output": {}, "prob": None}]
    last_try.save()
    name = "dynabench.adversaries.migrations.0005_asked_targets"
    import_module(name).note_logged_targets(apps, None)
    assert set(run.asked_targets.all()) == {other, round.round_targets.get().target}


def test_a_second_check_asks_only_what_is_new(scene, asked):
    round, owner, _adversary, _other = scene
    ask_others(round, owner)
    confirm(find_example("old"), owner)
    check = ask_others(round, owner)
    assert check.calls == 1
    assert len(set(asked)) == len(asked) == 3


def test_a_killed_check_continues_and_asks_nothing_twice(scene, monkeypatch):
    round, owner, _adversary, _other = scene
    other_model(round, "second")
    check = request_transfer_check(task=round.task, actor=owner)
    answer, calls = live_targets.request_answers_in_time, []

    def die_at_the_second(targets, inputs, payers, seconds):
        calls.append((targets[0].name, inputs["text"]))
        if len(calls) == 2:
            raise SystemExit
        return answer(targets, inputs, payers, seconds)

    monkeypatch.setattr(live_targets, "request_answers_in_time", die_at_the_second)
    with pytest.raises(SystemExit):
        check_transfer(check.pk)
    TransferCheck.objects.update(state="queued", lease_token=None)  # as the sweep does
    check = work_on(check)
    assert check.calls == len(calls) == len(set(calls)) == 4
    assert TransferAnswer.objects.get(state=State.LOST).is_fooled is None
    assert {row.model: row.share.n for row in build_transfer_rows(round.task)} == {
        "other": 1,
        "second": 2,
    }


def test_slices_ask_what_one_piece_asks(scene, asked, monkeypatch):
    round, owner, _adversary, _other = scene
    other_model(round, "second")
    monkeypatch.setattr(transfer_services, "SLICE_SECONDS", 0.01)
    assert ask_others(round, owner).calls == len(set(asked)) == len(asked) == 4


def test_a_model_that_is_away_does_not_stop_the_others(scene, asked):
    round, owner, _adversary, _other = scene
    away = other_model(round, "away", fail="down")
    check = request_transfer_check(task=round.task, actor=owner)
    check_transfer(check.pk)
    check.refresh_from_db()
    assert (check.state, TransferAnswer.objects.filter(state=State.WAITING).count()) == (
        "queued",
        1,
    )
    assert [row.model for row in build_transfer_rows(round.task)] == ["other"]
    away.options = OTHER
    away.save()
    TransferCheck.objects.update(not_before=None)
    assert work_on(check).state == "done"
    assert {row.model: row.share.n for row in build_transfer_rows(round.task)} == {
        "away": 2,
        "other": 2,
    }


def test_a_model_without_budget_is_named(scene, monkeypatch):
    """The cap on the calls of a model holds here as for people."""
    round, owner, _adversary, _other = scene

    def check_budget(payer):
        assert payer.round_id == round.pk
        raise SpentError("Its requests_a_day is used up.", "busy", is_permanent=True)

    monkeypatch.setattr(live_targets, "check_budget", check_budget)
    check = ask_others(round, owner)
    assert (check.state, check.unasked) == ("done", {"other": "spent"})
    assert build_transfer_rows(round.task) == []


def test_a_text_that_a_model_cannot_answer_is_in_no_share(scene, asked):
    round, owner, _adversary, other = scene
    other.options = {**OTHER, "rules": [{"contains": "blue", "fail": "refused"}]}
    other.save()
    check = ask_others(round, owner)
    assert check.state == "done"
    assert TransferAnswer.objects.get(state=State.UNANSWERED).reason == "refused"
    (row,) = build_transfer_rows(round.task)
    assert (row.share.value, row.share.n) == (1, 1)


def test_a_check_makes_no_more_calls_than_it_may(scene, asked, monkeypatch):
    round, owner, _adversary, _other = scene
    monkeypatch.setattr(transfer_services, "MAX_CALLS", 1)
    assert (ask_others(round, owner).calls, len(asked)) == (1, 1)
    assert (ask_others(round, owner).calls, len(set(asked))) == (1, 2)


def test_the_interval_is_clustered_by_run_and_by_author(scene):
    """Against the shared formula, from counts that are made here."""
    round, owner, adversary, _other = scene
    people = [UserFactory(), UserFactory(), UserFactory()]
    number = 0
    for author, words in zip(people, (["blue"] * 4, ["red"] * 3, ["blue", "red"]), strict=True):
        for word in words:
            number += 1
            write_catch(round, author, number, owner, f"We adored the {word} boat {number}.")
    TargetModel.objects.update(url="")  # so that texts of an open round may be asked about
    ask_others(round, owner)
    rows = {row.code: row for row in build_transfer_rows(round.task)}
    people_row = rows["people"]
    assert (people_row.clusters, people_row.share.n) == (3, 9)
    assert people_row.share == compute_clustered_rate([(0, 4), (3, 3), (1, 2)])
    assert rows[str(adversary.pk)].share == compute_clustered_rate([(1, 2)])


def test_what_people_refute_later_leaves_the_share(scene):
    round, owner, _adversary, _other = scene
    ask_others(round, owner)
    confirm(find_example("blue"), owner, "negative")
    (row,) = build_transfer_rows(round.task)
    assert (row.share.value, row.share.n) == (1, 1)


# Sealed rows


def make_set(round, **columns):
    round_set = EvaluationSet.objects.create(
        task=round.task, name="round-x", source="round", round=round
    )
    return EvaluationSetVersion.objects.create(
        evaluation_set=round_set, version=1, sha256="0" * 64, size=1, **columns
    )


def make_release(round, example, split, **options):
    dataset = Dataset.objects.create(round=round, version=1, state="done", options=options)
    DatasetItem.objects.create(
        dataset=dataset, position=0, split=split, uid=str(example.uuid), example=example, line="{}"
    )
    return dataset


def test_texts_of_an_open_round_stay_on_the_site(scene, asked):
    """People's texts become rows of a test set, so no other server gets them before."""
    round, owner, adversary, _other = scene
    other_model(round, "own", url="")
    example = write_catch(round, UserFactory(), 1, owner)
    ask_others(round, owner)
    answers = TransferAnswer.objects.filter(example=example)
    assert [answer.target.name for answer in answers] == ["own"]
    assert TransferAnswer.objects.filter(example__annotator=adversary.annotator).count() == 4


def test_rows_of_a_sealed_set_are_never_asked_about(scene, asked):
    round, owner, adversary, _other = scene
    other_model(round, "own", url="")
    example = write_catch(round, UserFactory(), 1, owner)
    make_set(round)
    Round.objects.update(state="closed")
    ask_others(round, owner)
    assert not TransferAnswer.objects.filter(example=example).exists()
    assert example.inputs["text"] not in {text for _name, text in asked}
    # Adversaries' texts are in no test set.
    assert {catch.code for catch in list_catches(round.task)} == {str(adversary.pk)}


@pytest.mark.parametrize(
    ("split", "options", "is_asked"),
    [
        ("train", {}, True),
        ("test", {}, True),
        ("test", {"private_test": True}, False),
        ("held", {"hold_back": True}, False),
    ],
)
def test_only_published_rows_of_a_release_are_asked_about(scene, asked, split, options, is_asked):
    round, owner, _adversary, _other = scene
    example = write_catch(round, UserFactory(), 1, owner)
    make_set(round)
    make_release(round, example, split, **options)
    Round.objects.update(state="released")
    ask_others(round, owner)
    assert (example.inputs["text"] in {text for _name, text in asked}) is is_asked


def evaluate(round, version, example, answer, *, target=None, name="submitted"):
    """A finished run of a model on a version, with its stored answer."""
    submission = Submission.objects.create(
        task=round.task, kind="target" if target else "hub", name=name, state="done", target=target
    )
    line = json.dumps({"uid": str(example.uuid), "answer": answer, "prob": None}) + "\n"
    return EvaluationRun.objects.create(
        submission=submission,
        version=version,
        state="done",
        outcome="ok",
        lease_token=uuid4(),
        predictions=ContentFile(gzip.compress(line.encode()), name="p.jsonl.gz"),
    )


def test_answers_of_evaluations_are_not_asked_for_again(scene, asked, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    round, owner, _adversary, other = scene
    example = write_catch(round, UserFactory(), 1, owner)
    version = make_set(round, dataset=make_release(round, example, "test"))
    Round.objects.update(state="released")
    evaluate(round, version, example, "positive", target=other, name="other")
    evaluate(round, version, example, "neutral")
    evaluate(round, version, example, "neutral", target=round.round_targets.get().target, name="t")
    ask_others(round, owner)
    assert example.inputs["text"] not in {text for _name, text in asked}
    rows = {row.model: row.share for row in build_transfer_rows(round.task) if row.code == "people"}
    assert {model: share.value for model, share in rows.items()} == {"other": 0, "submitted": 1}


def test_answers_on_a_sealed_set_are_not_read(scene, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path
    round, owner, _adversary, _other = scene
    example = write_catch(round, UserFactory(), 1, owner)
    make_release(round, example, "train")
    evaluate(round, make_set(round), example, "neutral")
    ask_others(round, owner)
    assert not TransferAnswer.objects.filter(submission__isnull=False).exists()


# Page, API and permissions


def test_page_and_api_show_the_same(scene, client):
    _round, owner, adversary, _other = scene
    client.force_login(owner)
    api = APIClient()
    api.force_authenticate(owner)
    assert client.post(reverse("own-adversaries:transfer", args=["sentiment"])).status_code == 302
    assert 'id="transfer-runs"' in client.get(PAGE).text
    assert api.post(f"{API}transfer/").json()["error"]["code"] == "running"
    work_on(TransferCheck.objects.get())
    page = client.get(PAGE)
    assert 'id="start-transfer"' in page.text
    board = api.get(f"{API}board/").json()
    first = next(row for row in board["rows"] if row["code"] == str(adversary.pk))
    (shown,), (sent,) = page.context["transfer"], first["transfer"]
    assert (sent["model"], sent["clusters"]) == (shown.model, shown.clusters) == ("other", 1)
    assert sent["share"]["value"] == shown.share.value
    assert first["catches"] == page.context["board"][0].catches == 2
    assert board["transfer_check"]["calls"] == 2


def test_a_check_is_stopped_once(scene, client):
    _round, owner, _adversary, _other = scene
    api = APIClient()
    api.force_authenticate(owner)
    assert api.post(f"{API}transfer/").status_code == 201
    client.force_login(owner)
    client.post(reverse("own-adversaries:stop-transfer", args=["sentiment"]))
    assert TransferCheck.objects.get().state == "cancelled"
    assert api.delete(f"{API}transfer/").json()["error"]["code"] == "idle"
    check_transfer(TransferCheck.objects.get().pk)
    assert not TransferAnswer.objects.exists()


def test_a_stop_during_a_question_ends_the_asking(scene, monkeypatch):
    """Its answer came in time and stays, and no other is asked for."""
    round, owner, _adversary, _other = scene
    check = request_transfer_check(task=round.task, actor=owner)
    answer, calls = live_targets.request_answers_in_time, []

    def stop(*arguments):
        calls.append(1)
        stop_transfer_check(task=round.task, actor=owner)
        return answer(*arguments)

    monkeypatch.setattr(live_targets, "request_answers_in_time", stop)
    check_transfer(check.pk)
    check.refresh_from_db()
    assert (check.state, len(calls)) == ("cancelled", 1)
    assert TransferAnswer.objects.get().state == State.ANSWERED


def test_more_catches_and_models_take_no_more_queries(scene, client):
    round, owner, _adversary, _other = scene
    client.force_login(owner)
    ask_others(round, owner)
    before = count(client, PAGE)
    own = other_model(round, "own", url="")
    for number in range(4):
        write_catch(round, UserFactory(), number, owner)
    ask_others(round, owner)
    assert TransferAnswer.objects.filter(target=own).count() == 6
    assert count(client, PAGE) == before


def test_nothing_is_asked_without_catches_or_models(scene):
    round, owner, _adversary, other = scene
    other.delete()
    TargetModel.objects.update(adapter="imported")
    with pytest.raises(Refused) as refusal:
        request_transfer_check(task=round.task, actor=owner)
    assert refusal.value.code == "no_models"
    Example.objects.update(digest="")  # erased
    with pytest.raises(Refused) as refusal:
        request_transfer_check(task=round.task, actor=owner)
    assert refusal.value.code == "no_catches"


@pytest.mark.parametrize("role", ["reviewer", "viewer", "judge", "annotator", "writer"])
def test_who_may_not_run_adversaries_asks_nobody(scene, client, role):
    round, _owner, _adversary, _other = scene
    member = UserFactory()
    TaskMember.objects.create(task=round.task, user=member, role=role)
    client.force_login(member)
    api = APIClient()
    api.force_authenticate(member)
    for name in ("transfer", "stop-transfer"):
        address = reverse(f"own-adversaries:{name}", args=["sentiment"])
        assert client.post(address).status_code == 403
    answers = [api.get(f"{API}board/"), api.post(f"{API}transfer/"), api.delete(f"{API}transfer/")]
    assert {answer.status_code for answer in answers} == {403}
    assert not TransferCheck.objects.exists()
