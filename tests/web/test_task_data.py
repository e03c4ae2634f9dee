"""The pages with the data of rounds: the rounds of a task, a dataset, and a finished round."""

# ruff: noqa: F811  (fixtures are named where they are used)

from dataclasses import replace

import pytest

from evaluation.models import Dataset, DatasetFile
from leaderboard.models import Follow
from tests.support.factories import RoundFactory
from tests.support.releases import _own_storage, closed, people, released  # noqa: F401
from validation.rates.rates import Rate
from validation.statistics.cache import get_all_numbers

DATA = "/t/nli/data/"


def copy_release(dataset, round):
    """A done version of another round, with the same rows in the same files."""
    values = {"version": 1, "state": "done", "numbers": dataset.numbers}
    times = {"started_at": dataset.started_at, "finished_at": dataset.finished_at}
    copied = Dataset.objects.create(round=round, options=dataset.options, **values, **times)
    DatasetFile.objects.bulk_create(
        DatasetFile(
            dataset=copied, name=file.name, file=file.file, size=file.size, sha256=file.sha256
        )
        for file in dataset.files.all()
    )
    return copied


def test_older_releases_open_from_one_row(client, closed):
    dataset = released(closed)
    newer = RoundFactory(task=closed.task, number=2, state="released")
    copy_release(dataset, newer)
    page = client.get(DATA)
    assert page.context["newest_release"].dataset.round == newer
    newest, older = page.text.split('id="round-1"')
    assert "folded" in newest[newest.rindex("<section") :]
    # The newest is whole, and nothing of the older one is lost.
    assert "<summary>" not in newest[newest.index('id="round-2"') :].partition("splits")[0]
    assert "/t/nli/rounds/1/data/1/train.jsonl" in older


def test_splits_without_rows_have_no_files(client, closed):
    dataset = released(closed, dev=0, test=0)
    assert dataset.numbers["rows"]["dev"] == 0
    page = client.get(DATA)
    assert "train.jsonl" in page.context["newest_release"].loading_code
    assert page.context["newest_release"].total_rows == dataset.numbers["rows"]["train"]
    for text in (page.text, page.context["newest_release"].loading_code):
        assert "/1/dev.jsonl" not in text
    code = client.get("/t/nli/rounds/1/data/").context["versions"][0]["loading_code"]
    assert code == page.context["newest_release"].loading_code


def test_the_dataset_card_opens_where_its_limits_stand(client, closed):
    released(closed)
    sections = client.get("/t/nli/rounds/1/data/").context["card"]
    assert len(sections) > 1
    assert all(entries for _title, entries, _is_first_read in sections)
    opened = [entries for _title, entries, is_first_read in sections if is_first_read]
    assert len(opened) == 1
    assert "Limitations" in dict(opened[0])


def test_who_waits_for_the_first_data_can_follow(client, as_alice, alice, nli):
    assert 'data-waits="1"' in client.get(DATA).text
    assert "/t/nli/follow/" in as_alice.get(DATA).text
    Follow.objects.create(task=nli.task, user=alice)
    assert "/t/nli/follow/" not in as_alice.get(DATA).text


@pytest.mark.parametrize("count", [1, 2])
def test_a_finished_round_draws_the_lead_of_people_from_two_rounds_on(
    client, closed, monkeypatch, count
):
    released(closed)
    newest = closed
    if count == 2:
        newest = RoundFactory(task=closed.task, number=2, state="released")
    rates = {
        "human_accuracy": Rate(0.9, 0.85, 0.95, 200, "given", clusters=20),
        "model_accuracy": Rate(0.4, 0.3, 0.5, 200, "given", clusters=20),
        "human_model_gap": Rate(0.5, 0.4, 0.6, 200, "given", clusters=20),
    }
    module = "dynabench.catches.round_views.get_all_numbers"

    def count_rates(rounds):
        counted = get_all_numbers(rounds)
        return {
            key: replace(each, numbers={**each.numbers, **rates}) for key, each in counted.items()
        }

    monkeypatch.setattr(module, count_rates)
    page = client.get(f"/t/nli/rounds/{newest.number}/")
    assert len(page.context["gaps"]) == count
    assert ("chart-people-and-model" in page.text) == (count == 2)
