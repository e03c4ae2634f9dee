"""Sealed sets: what their scores tell through every door, to their attackers and to everybody."""

import gzip
import json
import re

import numpy as np
import pytest
from django.core.cache import cache
from django.core.files.base import ContentFile
from rest_framework.test import APIClient

from evaluation.contract import Ending, Outcome, Usage
from evaluation.isolation.queue import leases
from evaluation.models import EvaluationRun, EvaluationSet, Score
from evaluation.runs.execute import execute_run
from evaluation.runs.services import claim_next_run
from evaluation.submissions.quota import Charge
from evaluation.submissions.services import _iterate_quota_entries
from evaluation.submissions.visibility import Viewer, hide_model_output
from evaluation.test_sets.sealing import Disclosure, round_to_step
from evaluation.test_sets.selectors import read_set_rows
from evaluation.test_sets.services import change_set
from evaluation.test_sets.shown_scores import (
    build_readable_condition,
    describe_disclosure,
    find_sealed_versions,
)
from leaderboard.board import matrix
from leaderboard.board.tables import build_public_table
from leaderboard.jobs import renew_boards
from leaderboard.models import Resample
from tests.support.evaluations import (
    LABELS,
    ScriptedRunner,
    accepted_model,
    queued_run,
    run_with,
    set_version,
)
from tests.support.factories import TaskFactory, UserFactory
from tests.support.submissions import release_of

State, Suite = EvaluationRun.State, EvaluationRun.Suite
SIZE = 24
METRICS = ("accuracy", "macro_f1")


@pytest.fixture(autouse=True)
def _own_storage(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path


@pytest.fixture
def task(db):
    return TaskFactory(code="nli")


@pytest.fixture
def version(task):
    return set_version(task, "sealed", size=SIZE, answers_public=False, may_leave=True)


@pytest.fixture
def hand_in(task, monkeypatch):
    """A model of somebody, evaluated on a version with these answers by example."""
    runner = ScriptedRunner()
    run_with(monkeypatch, runner)

    def run(owner, version, answers, suites=("plain",), **fields):
        model = accepted_model(task, owner, is_published=True, **fields)
        runner.answer = lambda inputs: answers[int(inputs["premise"].split()[1])]
        for suite in suites:
            queued_run(model, version, suite)
            execute_run(claim_next_run())
        return model

    return run


def told(model, user=None):
    """What the API tells of a model's scores, by set, suite, metric, slice and kind."""
    client = APIClient()
    client.force_authenticate(user)
    rows = client.get(f"/api/v1/models/{model.pk}/scores/").json()["results"]
    names = ("evaluation_set", "suite", "metric", "slice", "kind")
    return {tuple(row[name] for name in names): row["value"] for row in rows}


def test_the_attack_of_34_files_learns_one_rounded_result(client, task, version, hand_in):
    """Exact scores of 34 files, each with one answer changed, told 24 of 24 right answers."""
    mallory, seen = UserFactory(), []
    for number in range(34):
        answers = ["neutral"] * SIZE
        answers[number % SIZE] = "entailment"
        seen.append(hand_in(mallory, version, answers, name=f"m{number}"))
    shown = describe_disclosure(version)
    assert shown.max_results == 1
    scores = [told(model, mallory) for model in seen]
    assert [bool(one) for one in scores] == [True] + [False] * 33
    accuracy = round_to_step(9 / SIZE, SIZE)
    assert scores[0]["sealed", "plain", "accuracy", "", ""] == accuracy
    assert accuracy != 9 / SIZE
    assert len(scores[0]) == len(METRICS) + 1  # and the worst group: no slices, no gap
    board = matrix.read_matrix(task).numbers
    assert board.kept_back[:, 0].tolist() == [False] + [True] * 33
    assert board.values[0, 0, 0] == 100 * accuracy
    client.force_login(mallory)
    assert "9.4%" not in client.get(f"/m/{seen[5].pk}/").text


def test_programs_are_told_what_is_rounded(client, task, version, hand_in):
    """By the API: each score, the results, a comparison and the board; exact ones are not."""
    open_version = set_version(task, "open", size=SIZE)
    editor = UserFactory()
    task.members.create(user=editor, role="editor")
    models = [hand_in(UserFactory(), version, ["neutral"] * SIZE, name=n) for n in ("a", "b")]
    for model in models:
        queued_run(model, open_version)
        execute_run(claim_next_run())
    expected = {"sealed": True, "open": False}

    def read(path):
        return client.get(f"/api/v1/{path}").json()

    (a, b) = (model.pk for model in models)
    for reader in (None, models[0].owner):
        if reader:
            client.force_login(reader)
        scores = read(f"models/{a}/scores/")["results"]
        assert {one["evaluation_set"]: one["is_rounded"] for one in scores} == expected
        results = read(f"models/{a}/results/")["scores"]
        found = {name: one["accuracy"]["is_rounded"] for name, one in results.items()}
        assert found == expected
        assert not any(one.get("throughput", {}).get("is_rounded") for one in results.values())
    rows = read(f"tasks/nli/leaderboard/compare/?a={a}&b={b}")["rows"]
    accuracies = {row["set"]: row["is_rounded"] for row in rows if row["metric"] == "accuracy"}
    assert accuracies == expected
    client.force_login(editor)
    assert not any(one["is_rounded"] for one in read(f"models/{a}/scores/")["results"])


def test_many_accounts_learn_the_bound_each(version, hand_in):
    people = [UserFactory() for _ in range(3)]
    models = [
        hand_in(person, version, ["neutral"] * SIZE, name=f"m{n}") for n in range(4)
        for person in people
    ]  # fmt: skip
    shown = sum(bool(told(model)) for model in models)
    assert shown == len(people) * describe_disclosure(version).max_results


def test_what_was_withdrawn_or_failed_counts_as_it_was_seen(task, version, hand_in):
    mallory = UserFactory()
    first = hand_in(mallory, version, ["neutral"] * SIZE, name="first")
    first.withdrawn_at = first.queued_at
    first.save()
    assert not told(hand_in(mallory, version, ["neutral"] * SIZE, name="second"))
    careful = UserFactory()
    failed = queued_run(accepted_model(task, careful), version)
    leases.fail_job(claim_next_run(), "broke", outcome=Outcome.MODEL_ERROR)
    assert told(hand_in(careful, version, ["neutral"] * SIZE, name="next"))
    failed.refresh_from_db()
    assert failed.state == State.FAILED


def test_the_tasks_editors_and_targets_are_shown_all_exactly(task, version, hand_in):
    editor = UserFactory()
    task.members.create(user=editor, role="editor")
    answers = ["neutral"] * SIZE
    models = [hand_in(editor, version, answers, name=name) for name in ("one", "two")]
    for model in models:
        assert told(model)["sealed", "plain", "accuracy", "", ""] == round_to_step(1 / 3, SIZE)
        exact = told(model, editor)
        assert exact["sealed", "plain", "accuracy", "", ""] == 1 / 3
        assert ("sealed", "plain", "accuracy", "tag=odd", "") in exact


def doors(client, task, models, people):
    """Everything that can be read of the models, by everybody who is not an editor."""
    a, b = (model.pk for model in models)
    pair = f"?a={a}&b={b}&set=sealed"
    board, api = f"/t/{task.code}/leaderboard/", f"/api/v1/tasks/{task.code}/leaderboard/"
    pages = [
        *(f"/m/{pk}/" for pk in (a, b)), f"/t/{task.code}/", f"/t/{task.code}/models/", board,
        f"{board}?open={a}", f"{board}?s.sealed=3&m.accuracy=1", f"{board}compare/{pair}",
        *(f"{board}?format={name}" for name in ("csv", "json", "latex")), f"{board}embed/",
        f"{board}rounds/", f"{board}rounds/?format=csv", "/", "/models/", "/me/models/",
    ]  # fmt: skip
    addresses = [
        api, f"{api}?mode=classic", f"{api}compare/{pair}", f"{api}rounds/",
        *(f"/api/v1/models/{pk}/{name}" for pk in (a, b)
          for name in ("", "scores/", "results/", "runs/", "predictions/sealed/")),
        f"/api/v1/tasks/{task.code}/models/", "/api/v1/me/models/",
        f"/api/v1/tasks/{task.code}/evaluation-sets/",
    ]  # fmt: skip
    for person in people:
        api_client = APIClient()
        if person:
            client.force_login(person)
            api_client.force_authenticate(person)
        else:
            client.logout()
        for one, urls in ((client, pages), (api_client, addresses)):
            for url in urls:
                reply = one.get(url)
                body = b"".join(reply) if reply.streaming else reply.content
                yield person, url, reply.status_code, clean(body.decode())
    yield None, "a snapshot", 200, json.dumps(build_public_table(task), default=str)


def clean(text):
    """Without what is another at each request."""
    return re.sub(r'csrf\w*"[^>]*|nonce-[\w-]+|"csrfmiddlewaretoken"[^>]*', "", text)


def put_other_numbers(version):
    """Other right answers, with other scores that are rounded to the same."""
    for score in Score.objects.filter(run__version=version):
        if score.value is None:
            continue
        is_shown = not (score.slice or score.kind) and score.run.suite == Suite.PLAIN
        if (is_shown and score.metric != "group_gap") or score.metric in (
            "consistency",
            "worst_kind",
        ):
            score.value = round_to_step(score.value, min(SIZE, score.n))
        else:
            score.value = 1 - score.value
        score.low, score.high = score.value - 0.01, score.value + 0.02
        score.save()
    ones = np.ones(matrix.DRAW_COUNT, dtype="<f4").tobytes()
    Resample.objects.filter(run__version=version).update(values=ones)
    with version.gold.open("rb") as file:
        text = gzip.decompress(file.read()).decode()
    moved = dict(zip(LABELS, (*LABELS[1:], LABELS[0]), strict=True))
    text = re.sub("|".join(LABELS), lambda found: moved[found[0]], text)
    version.gold.storage.delete(version.gold.name)
    version.gold.storage.save(version.gold.name, ContentFile(gzip.compress(text.encode())))


def test_no_door_tells_more_than_the_rounded_scores(client, task, version, hand_in):
    """With other right answers, where the rounded scores are the same, so is every page."""
    alice, bob = UserFactory(), UserFactory()
    odd = [LABELS[number % 3] if number % 5 else "neutral" for number in range(SIZE)]
    suites = ("plain", "robustness", "fairness")
    models = [
        hand_in(alice, version, odd, suites, name="Ada"),
        hand_in(bob, version, ["entailment"] * SIZE, suites, name="Ben"),
    ]
    renew_boards()
    assert not Resample.objects.exists()
    for run in EvaluationRun.objects.filter(suite=Suite.PLAIN):  # from before sets were sealed
        Resample.objects.create(run=run, metric="accuracy", values=bytes(4 * matrix.DRAW_COUNT))
    before = [*doors(client, task, models, (alice, bob, None))]
    assert {status for *_, status, _ in before} <= {200, 302, 401, 404}
    right = [row.gold for row in read_set_rows(version)]
    put_other_numbers(version)
    assert [row.gold for row in read_set_rows(version)] != right
    matrix._read_numbers.cache_clear()
    cache.clear()
    after = [*doors(client, task, models, (alice, bob, None))]
    for one, other in zip(before, after, strict=True):
        assert one == other, one[:3]


def test_a_set_is_sealed_until_its_answers_are_public(task, version, alice):
    assert version.is_sealed
    assert find_sealed_versions(task) == {version.pk}
    release_of(version, private_test=True)
    version = type(version).objects.get(pk=version.pk)
    assert version.is_sealed
    version.dataset.options = {}
    assert not version.is_sealed
    version.dataset = None
    change_set(
        evaluation_set=version.evaluation_set, actor=alice, description="",
        access="scoring", may_leave=False, answers_public=True,
    )  # fmt: skip
    assert find_sealed_versions(task) == set()


def test_what_was_kept_back_is_shown_once_the_answers_are_public(task, version, hand_in):
    mallory = UserFactory()
    models = [hand_in(mallory, version, ["neutral"] * SIZE, name=n) for n in ("one", "two")]
    assert [bool(told(model)) for model in models] == [True, False]
    EvaluationSet.objects.update(answers_public=True)
    assert all(told(model)["sealed", "plain", "accuracy", "", ""] == 1 / 3 for model in models)
    assert not matrix.read_matrix(task).numbers.kept_back.any()


@pytest.mark.parametrize(
    ("may_leave", "is_sealed", "suite", "is_read"),
    [
        (True, True, "plain", True),
        (True, True, "robustness", False),
        (True, False, "robustness", True),
        (False, True, "plain", False),
        (False, False, "plain", False),
    ],
)
def test_a_log_leaves_only_where_the_examples_may(task, may_leave, is_sealed, suite, is_read):
    fields = {"may_leave": may_leave, "answers_public": not is_sealed}
    run = queued_run(
        accepted_model(task), set_version(task, **fields), suite, state=State.FAILED,
        outcome=Outcome.INVALID_OUTPUT, log="in a code", error="Line 3: no label 'a code'.",
    )  # fmt: skip
    mine = hide_model_output(run, Viewer(is_owner=True, is_task_owner=False))
    assert ("code" in mine.log, "code" in mine.error) == (is_read, is_read)
    run.refresh_from_db()
    theirs = hide_model_output(run, Viewer(is_owner=False, is_task_owner=True))
    assert theirs.log == "in a code"


def test_the_owner_of_a_model_does_not_read_examples_in_its_log(client, task, monkeypatch):
    owner, version = UserFactory(), set_version(task, may_leave=False)
    runner = ScriptedRunner(
        ending=Ending(Outcome.MODEL_ERROR, Usage(1.0), "It ended with 3.", log="Qmd2aXRo")
    )
    run_with(monkeypatch, runner)
    model = accepted_model(task, owner)
    run = queued_run(model, version)
    execute_run(claim_next_run())
    api_client = APIClient()
    api_client.force_authenticate(owner)
    client.force_login(owner)
    for text in (
        client.get(f"/m/{model.pk}/runs/{run.pk}/").text,
        client.get(f"/m/{model.pk}/runs/{run.pk}/?download").text,
        api_client.get(f"/api/v1/models/{model.pk}/runs/{run.pk}/").content.decode(),
        api_client.get(f"/api/v1/models/{model.pk}/results/").content.decode(),
    ):
        assert "Qmd2aXRo" not in text


def test_a_model_that_fails_by_itself_costs_quota_though_its_suites_lack_a_base(task, version):
    model = accepted_model(task, UserFactory(), attempts=1)
    queued_run(model, version, state=State.FAILED, outcome=Outcome.MODEL_ERROR)
    queued_run(model, version, "fairness", state=State.FAILED, outcome=Outcome.INFRASTRUCTURE)
    (entry,) = _iterate_quota_entries([model])
    assert entry.charge == Charge.ACCEPTED


def test_perturbed_runs_count_in_the_bits_where_they_may_know_the_answer(db):
    qa = TaskFactory(code="qa")
    one = EvaluationSet(task=qa, name="x")
    version = type(set_version(TaskFactory(code="nli")))(evaluation_set=one, size=1000)
    assert describe_disclosure(version) == Disclosure(
        1000,
        ("squad_f1", "exact_match", "worst_group", "worst_kind", "fairness", "robustness"),
        side_runs=2,
    )
    assert build_readable_condition([])
