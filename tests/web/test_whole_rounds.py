"""What models would score on a whole round of which people judged a sample, and who sees it."""

# ruff: noqa: F811  (fixtures are named where they are used)

import csv
import gzip
from io import StringIO

import pytest
from django.core.files.base import ContentFile
from django.urls import reverse
from django.utils import timezone

from annotation.models import Example
from evaluation import jobs
from evaluation.contract import Answer
from evaluation.isolation.inference.evaluate import build_prediction_line
from evaluation.models import EvaluationRun, EvaluationSet, WholeRoundScore
from evaluation.runs.whole_round_services import store_whole_round_score
from evaluation.test_sets.items import MAX_ITEMS
from evaluation.test_sets.selectors import read_set_rows
from evaluation.test_sets.source_services import make_release_version, make_round_version
from leaderboard.board.exports import write_board_csv
from leaderboard.board.tables import build_public_table
from tests.support.evaluations import accepted_model
from tests.support.releases import released
from tests.support.sampled_rounds import EXAMPLES, sampled  # noqa: F401
from validation.models import VoteDraw


@pytest.fixture
def version(sampled):
    sampled.state = "closed"
    sampled.save()
    return make_round_version(sampled)


def run_on(version, is_right=lambda text: "unclear" in text, name="later", **fields):
    """A finished run that is right on the examples of which the judge model was unsure."""
    lines = b"".join(
        build_prediction_line(
            row.uid, Answer(row.gold[0] if is_right(row.inputs["hypothesis"]) else "-")
        )
        for row in read_set_rows(version)
    )
    return EvaluationRun.objects.create(
        submission=accepted_model(version.evaluation_set.task, name=name, is_published=True),
        version=version,
        state="done",
        outcome="ok",
        predictions=ContentFile(gzip.compress(lines), name="p.jsonl.gz"),
        **fields,
    )


def open_set(version):
    EvaluationSet.objects.filter(pk=version.evaluation_set_id).update(answers_public=True)


def test_a_version_says_how_many_examples_nobody_was_asked_about(version, sampled):
    left_out = VoteDraw.objects.filter(is_drawn=False).count()
    assert version.left_out == left_out > 0
    assert version.is_whole_round
    # Of a release's test split the chances are those of the split, too.
    dataset = released(sampled, dev=1, test=1)
    later = make_release_version(dataset)
    assert later is None or (later.left_out, later.is_whole_round) == (left_out, False)


def test_the_estimate_weighs_what_the_judge_model_was_sure_of(version):
    run = run_on(version)
    assert store_whole_round_score(run)
    score = WholeRoundScore.objects.get(run=run)
    # The judge says one of two things, so the line is what people confirmed of each of both.
    in_set = {row.uid for row in read_set_rows(version)}
    confirmed = {}
    for said in (0.6, 0.9):
        draws = VoteDraw.objects.filter(judge_score=said).select_related("example")
        drawn = [draw for draw in draws if draw.is_drawn]
        share = sum(str(draw.example.uuid) in in_set for draw in drawn) / len(drawn)
        confirmed[said] = share * len(draws)
    by_hand = confirmed[0.6] / sum(confirmed.values())
    assert score.value == pytest.approx(by_hand, abs=0.03)
    # In the set they are more, because people were asked about more of them.
    assert score.low < by_hand < score.high < 1
    assert score.value < score.set_share
    assert score.judged + score.left_out <= EXAMPLES + 6
    assert score.left_out == version.left_out


def test_it_is_stored_once(version):
    run = run_on(version)
    store_whole_round_score(run)
    before = WholeRoundScore.objects.values().get()
    store_whole_round_score(run)
    assert WholeRoundScore.objects.values().get() == before


def test_there_is_none_if_people_judged_everything(version):
    VoteDraw.objects.update(is_drawn=True, chance=1)
    other = make_round_version(version.evaluation_set.round)
    assert other.left_out is None
    assert not store_whole_round_score(run_on(other))


def test_a_perturbed_run_has_none(version):
    assert not store_whole_round_score(run_on(version, suite="robustness"))
    assert not WholeRoundScore.objects.exists()


def test_the_estimate_follows_the_end_of_a_run(version, monkeypatch):
    """Also if another step fails, and though the end is stored by an update."""
    run = run_on(version)
    in_memory = EvaluationRun.objects.get()
    in_memory.predictions = in_memory.outcome = ""
    done = []

    def fail(run):
        raise OSError

    monkeypatch.setattr(jobs, "do_claimed_job", lambda *_: in_memory)
    monkeypatch.setattr(jobs, "store_near_copies", fail)
    monkeypatch.setattr(jobs, "refresh_item_properties", done.append)
    jobs.evaluate_in_turn()
    assert WholeRoundScore.objects.get().run == run
    assert done == [version]


def test_what_a_killed_worker_left_out_is_stored_later(
    version, monkeypatch, django_assert_num_queries
):
    first, second = (
        run_on(version, name=name, finished_at=timezone.now()) for name in ("first", "second")
    )
    run_on(version, name="noisy", suite="robustness", finished_at=timezone.now())

    def store(run):
        if run == first:
            raise OSError
        return store_whole_round_score(run)

    with monkeypatch.context() as patch:
        patch.setattr(jobs, "store_whole_round_score", store)
        assert jobs.store_missing_whole_rounds() == 1
    assert jobs.store_missing_whole_rounds() == 1
    assert {score.run for score in WholeRoundScore.objects.all()} == {first, second}
    with django_assert_num_queries(1):
        assert jobs.store_missing_whole_rounds() == 0


def test_damaged_answers_give_none(version):
    run = run_on(version)
    run.predictions.delete()
    run.predictions.save("p.jsonl.gz", ContentFile(b"broken"))
    assert not store_whole_round_score(run)


def read_api(client, run):
    runs = client.get(f"/api/v1/models/{run.submission_id}/runs/").json()["results"]
    (found,) = [one["whole_round"] for one in runs if one["id"] == str(run.pk)]
    return found


def read_page(client, run):
    return client.get(reverse("evaluation:model", args=[run.submission_id])).text


def test_on_a_sealed_set_only_the_tasks_editors_see_it(version, as_alice, client):
    run = run_on(version)
    store_whole_round_score(run)
    score = WholeRoundScore.objects.get()
    assert version.is_sealed
    assert read_api(as_alice, run)["value"] == pytest.approx(score.value)
    client.logout()
    assert read_api(client, run) is None
    assert 'id="whole-rounds"' not in read_page(client, run)
    assert not build_public_table(version.evaluation_set.task)["rows"][0]["whole_rounds"]
    open_set(version)
    assert read_api(client, run)["value"] == pytest.approx(score.value)
    assert 'id="whole-rounds"' in read_page(client, run)


def test_the_board_and_its_file_mark_the_estimate(version):
    open_set(version)
    run = run_on(version)
    store_whole_round_score(run)
    score = WholeRoundScore.objects.get()
    table = build_public_table(version.evaluation_set.task)
    (row,) = table["rows"]
    assert row["whole_rounds"]["round-1"]["value"] == pytest.approx(100 * score.value, abs=0.001)
    (board_set,) = [one for one in table["sets"] if one["name"] == "round-1"]
    assert board_set["left_out"] == version.left_out
    (line,) = csv.DictReader(StringIO(write_board_csv(table)))
    assert float(line["whole_round-1_estimated"]) == pytest.approx(100 * score.value, abs=0.001)
    assert line["whole_round-1_estimated_low"] != ""


def test_a_set_says_what_its_scores_mean(version, as_alice):
    url = "/own/nli/evaluation-sets/round-1/"
    page = as_alice.get(url)
    assert "left-out" in page.text
    # Before a model's run has ended, no page has an estimate.
    assert not page.context["estimated_ids"]
    store_whole_round_score(run_on(version))
    assert as_alice.get(url).context["estimated_ids"] == {version.pk}
    Example.objects.all().update(retracted_at="2026-01-01T00:00Z")
    found = as_alice.get("/api/v1/tasks/nli/evaluation-sets/").json()
    (round_set,) = [one for one in found["results"] if one["name"] == "round-1"]
    assert round_set["newest"]["left_out"] == version.left_out


def test_the_board_promises_an_estimate_only_to_those_who_see_it(version):
    def list_notices():
        table = build_public_table(version.evaluation_set.task)
        return table["notices"]

    run_on(version)
    sealed = list_notices()
    open_set(version)
    opened = list_notices()
    (promise,) = set(opened) - set(sealed)
    # What the set lacks is said before.
    assert opened.index(promise) > 0
    type(version).objects.update(size=MAX_ITEMS + 1)
    assert promise not in list_notices()
