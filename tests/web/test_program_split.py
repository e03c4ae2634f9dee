"""What programs wrote is released in a split of its own, and is in no evaluation set."""

import json

import pytest
from django.core.management import call_command

from annotation.models import Example
from annotation.moderation import withdraw_example
from evaluation.dataset_releases.reading import export_lines
from evaluation.test_sets.source_services import make_round_version
from tests.support.releases import (
    SPLITS,
    _own_storage,  # noqa: F401
    closed,  # noqa: F401
    content,
    lines,
    people,  # noqa: F401
    released,
)
from validation.models import Validation


@pytest.fixture
def mixed(closed, people):  # noqa: F811
    """The examples of the last two of twelve authors are by their programs; so is one vote each."""
    Example.objects.filter(annotator__in=people[10:12]).update(by_program=True)
    Validation.objects.filter(validator=people[14]).update(by_program=True)
    return closed


@pytest.fixture
def dataset(mixed):
    return released(mixed)


def test_programs_are_in_a_split_of_their_own(dataset):
    rows = {split: lines(dataset, split) for split in (*SPLITS, "program")}
    assert [len(its) for its in rows.values()] == [30, 8, 8, 10]
    assert {row["by_program"] for split in SPLITS for row in rows[split]} == {False}
    assert {(row["by_program"], row["split"]) for row in rows["program"]} == {(True, "program")}
    authors = {row["anon_uid"] for split in SPLITS for row in rows[split]}
    assert len({row["anon_uid"] for row in rows["program"]} - authors) == 2
    modes = [mode for _, mode, _ in rows["dev"][0]["validations"]]
    assert modes == ["user", "user", "program"]
    numbers = dataset.numbers
    assert numbers["rows"] == {"train": 30, "dev": 8, "test": 8, "program": 10}
    assert (numbers["authors"]["program"], numbers["shared_authors"]) == (2, 0)
    assert numbers["left_out"] == 4
    assert numbers["report"]["program_examples"] == 12


def test_its_files_say_the_same_and_the_cards_tell_of_them(dataset, tmp_path):
    import mlcroissant
    import pyarrow.parquet as pq

    with dataset.files.get(name="program.parquet").file.open() as file:
        assert pq.read_table(file).to_pylist() == lines(dataset, "program")
    folder = tmp_path / "releases" / str(dataset)
    read = mlcroissant.Dataset(jsonld=folder / "croissant.json")
    assert len(list(read.records("program"))) == 10
    card = content(dataset, "README.md").decode()
    assert "- split: program\n    path: program.parquet" in card
    assert "| program | 10 | 2 |" in card
    assert "10 program" in content(dataset, "benchmark_card.json").decode()


def test_without_programs_there_is_no_such_split(closed):  # noqa: F811
    dataset = released(closed)
    assert "program" not in dataset.numbers["rows"]
    assert not dataset.files.filter(name__contains="program").exists()
    assert "programs" not in content(dataset, "README.md").decode()
    assert '"program"' not in content(dataset, "croissant.json").decode()


def test_a_withdrawn_one_is_a_tombstone_in_its_split(dataset, mixed):
    gone = dataset.items.filter(split="program").first()
    withdraw_example(example=gone.example, actor=None, reason="")
    second = released(mixed)
    assert second.numbers["withdrawn"]["program"] == 1
    assert lines(second, "program")[0]["withdrawn"]


def test_pages_tell_of_it(mixed, as_alice, alice, capsys):
    from tasks.models import TaskMember

    TaskMember.objects.create(task=mixed.task, user=alice, role="owner")
    page = "/own/nli/rounds/1/release/"
    assert as_alice.get(page).context["preview"].rows["program"] == 10
    call_command("release_round", "nli", 1, dev=8, test=8)
    assert "train 30, dev 8, test 8, program 10" in capsys.readouterr().out
    assert '<th scope="row">program</th>' in as_alice.get("/t/nli/rounds/1/data/").text
    assert '<td class="number">10</td>' in as_alice.get(page).text


def test_the_lines_of_a_round_tell_who_wrote(mixed):
    rows = [json.loads(line) for chunk in export_lines(mixed) for line in chunk.splitlines()]
    assert sum(row["by_program"] for row in rows) == 12


def test_models_are_evaluated_on_what_people_wrote(mixed):
    version = make_round_version(mixed)
    assert version.size == 40
    Example.objects.update(by_program=True)
    assert make_round_version(mixed) is None
