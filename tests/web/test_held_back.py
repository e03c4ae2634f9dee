"""A fifth of a round is held back from its release, models are run on it, and then it comes out."""

# ruff: noqa: F811  (fixtures are named where they are used)

import pytest
from django.utils import timezone

from annotation.moderation import withdraw_example
from evaluation.dataset_releases.services import HOLD_BACK_TIME, ReleaseRefused, release_held_rows
from evaluation.jobs import build_dataset
from evaluation.models import Dataset, EvaluationRun, EvaluationSet, Score, Submission
from evaluation.test_sets.selectors import read_set_rows
from evaluation.test_sets.source_services import make_missing_versions
from leaderboard.board.cells import Cell
from leaderboard.rounds.matrix import subtract_cells
from tasks.models import TaskMember
from tests.support.releases import (  # noqa: F401
    SPLITS,
    _own_storage,
    closed,
    content,
    lines,
    people,
    released,
)
from validation.rates.rates import compute_wilson_interval


def held_of(dataset):
    return set(dataset.items.filter(split="held").values_list("uid", flat=True))


def on_its_day(dataset):
    """The day has come on which what it holds is published."""
    options = {**dataset.options, "held_until": timezone.now().date().isoformat()}
    Dataset.objects.filter(pk=dataset.pk).update(options=options)


def newest():
    return Dataset.objects.order_by("-version").first()


def test_a_fifth_by_other_authors_is_in_no_file(closed):
    dataset = released(closed, hold_back=True)
    held = held_of(dataset)
    authors = {split: set() for split in (*SPLITS, "held")}
    for item in dataset.items.select_related("example"):
        authors[item.split].add(item.example.annotator_id)
    assert len(held) == dataset.numbers["held"] == (12 * 4) // 5
    assert not authors["held"] & (authors["train"] | authors["dev"] | authors["test"])
    assert dataset.held_until == timezone.now().date() + HOLD_BACK_TIME
    for file in dataset.files.all():
        data = content(dataset, file.name)
        assert not any(uid.encode() in data for uid in held), file.name
    rows = dataset.numbers["rows"]
    assert rows.keys() == {*SPLITS}
    assert dataset.numbers["left_out"] + sum(rows.values()) + len(held) == 12 * 5


def test_models_are_run_on_what_is_held_back_and_its_set_is_sealed(closed):
    dataset = released(closed, hold_back=True)
    make_missing_versions()
    one = EvaluationSet.objects.get(source="held")
    (version,) = one.versions.all()
    assert (one.name, one.access, one.may_leave) == ("round-1-held", "standard", False)
    assert version.is_sealed
    assert {row.uid for row in read_set_rows(version)} == held_of(dataset)
    assert make_missing_versions() == []


def test_what_is_withdrawn_leaves_the_set_with_the_next_version(closed, alice):
    dataset = released(closed, hold_back=True)
    make_missing_versions()
    gone = dataset.items.filter(split="held").first().example
    withdraw_example(example=gone, actor=alice, reason="")
    again = released(closed)
    assert again.numbers["held"] == dataset.numbers["held"] - 1
    make_missing_versions()
    sizes = EvaluationSet.objects.get(source="held").versions.values_list("size", flat=True)
    assert [*sizes] == [dataset.numbers["held"], again.numbers["held"]]


def test_on_its_day_a_new_version_publishes_it_and_opens_the_set(closed):
    dataset = released(closed, hold_back=True)
    make_missing_versions()
    assert release_held_rows() == []
    with pytest.raises(ReleaseRefused):
        released(closed)
    on_its_day(dataset)
    (asked,) = release_held_rows()
    assert release_held_rows() == []
    build_dataset(asked.pk)
    published = newest()
    assert {row["uid"] for row in lines(published, "held")} == held_of(dataset)
    assert published.files.get(name="held.parquet").is_public
    for split in SPLITS:
        assert lines(published, split) == lines(dataset, split)
    assert (published.held_until, published.numbers["held"]) == (None, 0)
    make_missing_versions()
    one = EvaluationSet.objects.get(source="held")
    assert (one.may_leave, one.answers_public) == (True, True)
    assert release_held_rows() == []


def test_a_publication_that_fails_is_not_asked_for_again_and_again(closed):
    on_its_day(released(closed, hold_back=True))
    (asked,) = release_held_rows()
    Dataset.objects.filter(pk=asked.pk).update(state="failed")
    assert release_held_rows() == []


def test_nothing_is_held_back_where_no_author_is_left(closed):
    closed.examples.update(annotator=closed.examples.first().annotator)
    with pytest.raises(ReleaseRefused):
        released(closed, dev=0, test=0, hold_back=True)
    assert not Dataset.objects.exists()


def test_the_form_offers_it_for_the_first_version_only(closed, client, alice, as_alice):
    TaskMember.objects.create(user=alice, task=closed.task, role="owner")
    url = "/own/nli/rounds/1/release/"
    assert 'name="hold_back"' in as_alice.get(url).text
    released(closed, hold_back=True)
    assert 'name="hold_back"' not in as_alice.get(url).text
    day = (timezone.now().date() + HOLD_BACK_TIME).strftime("%B %Y")
    assert day in client.get("/t/nli/rounds/1/data/").text


@pytest.fixture
def versions(closed):
    """The released and the held back set of the round."""
    released(closed, hold_back=True)
    make_missing_versions()
    made = EvaluationSet.objects.filter(task=closed.task).exclude(source="control")
    return {one.source: one.versions.last() for one in made}


def result(version, model, right, in_the_loop=False):
    run = EvaluationRun.objects.create(
        submission=model, version=version, state="done", outcome="ok", in_the_loop=in_the_loop
    )
    value = right / version.size
    Score.objects.create(
        run=run, metric="accuracy", value=value, low=value, high=value, n=version.size
    )


@pytest.mark.parametrize("in_the_loop", [False, True])
def test_models_are_compared_on_both_sides(closed, versions, alice, as_alice, in_the_loop):
    EvaluationSet.objects.filter(task=closed.task).update(answers_public=True)  # nothing is rounded
    model = Submission.objects.create(
        task=closed.task, owner=alice, name="knows it", kind="hub", state="done", is_published=True
    )
    of_round, held = versions["round"], versions["held"]
    result(of_round, model, of_round.size, in_the_loop)
    result(held, model, 3)
    found = as_alice.get("/api/v1/tasks/nli/leaderboard/training-dates/").json()["held_back"]
    page = as_alice.get("/t/nli/leaderboard/training-dates/").text
    assert ("knows it" in page) == bool(found) == (not in_the_loop)
    if found:
        sides = [(of_round.size, of_round.size), (3, held.size)]
        cells = [
            Cell(100 * k / n, *(100 * end for end in compute_wilson_interval(k, n)))
            for k, n in sides
        ]
        assert found[0]["difference"] == pytest.approx(subtract_cells(*cells)._asdict())
        assert found[0]["held"]["n"] == held.size
