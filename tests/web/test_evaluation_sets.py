"""Versions of evaluation sets: made of files, closed rounds, releases and seeds."""

import gzip
import json

import pytest
from django.core.files.storage import default_storage
from django.utils import timezone

from annotation.models import Example
from core.accounts.models import LogEntry
from core.accounts.services import get_annotator
from core.errors import Refused
from evaluation import jobs
from evaluation.dataset_releases.build import Options
from evaluation.dataset_releases.services import request_release
from evaluation.models import Dataset, DatasetItem, EvaluationSet, EvaluationSetVersion
from evaluation.test_sets import services, source_services
from evaluation.test_sets.parsing import InvalidLines
from evaluation.test_sets.selectors import find_latest_version, read_input_rows, read_set_rows
from evaluation.test_sets.services import change_set, create_set, make_version
from evaluation.test_sets.source_services import (
    make_control_version,
    make_missing_versions,
    make_release_version,
    make_requested_round_version,
    make_round_version,
)
from tasks.line_files import LineError
from tasks.models import Round
from tests.support.factories import RoundFactory, TaskFactory, UserFactory
from tests.support.sets import ROWS, verified
from tests.support.training_data import release
from validation.models import Consensus


@pytest.fixture(autouse=True)
def _own_storage(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path


@pytest.fixture
def one(db):
    return create_set(task=TaskFactory(code="sentiment"), name="mine", actor=None)


def stored_files(folder="evaluation-sets"):
    folders, files = default_storage.listdir(folder) if default_storage.exists(folder) else ([], [])
    return [*files, *(name for part in folders for name in stored_files(f"{folder}/{part}"))]


def test_a_version_is_read_as_it_was_made(one):
    version = make_version(one, iter(ROWS), UserFactory())
    assert list(read_set_rows(version)) == ROWS
    assert list(read_input_rows(version)) == [{"uid": r.uid, "inputs": r.inputs} for r in ROWS]
    assert (version.version, version.size) == (1, 2)
    assert version.slices == {"tag": {"food": 2, "short": 1}}
    assert find_latest_version(one) == version


def test_inputs_hold_neither_answers_nor_slices(one):
    version = make_version(one, ROWS, None)
    with version.inputs.open("rb") as file:
        lines = gzip.decompress(file.read())
    assert b"positive" not in lines
    assert b"food" not in lines


def test_reading_inputs_never_opens_the_answers(one):
    version = make_version(one, ROWS, None)
    default_storage.delete(version.gold.name)
    assert len(list(read_input_rows(version))) == 2
    with pytest.raises(FileNotFoundError):
        list(read_set_rows(version))


def test_files_that_do_not_belong_together_are_noticed(one):
    first, second = make_version(one, ROWS, None), make_version(one, ROWS[::-1], None)
    EvaluationSetVersion.objects.filter(pk=second.pk).update(gold=first.gold.name)
    second.refresh_from_db()
    with pytest.raises(ValueError, match="differ at b"):
        list(read_set_rows(second))


def test_the_same_examples_make_no_second_version(one):
    first = make_version(one, ROWS, None)
    assert make_version(one, ROWS, None) == first
    assert make_version(one, ROWS[:1], None).version == 2
    assert make_version(one, ROWS, None).version == 3  # as an older one is no reason against it
    assert len(stored_files()) == 6


def test_a_wrong_line_leaves_nothing_behind(one):
    def rows():
        yield ROWS[0]
        raise InvalidLines([LineError(2, "not JSON")])

    with pytest.raises(InvalidLines, match="line 2: not JSON"):
        make_version(one, rows(), None)
    assert not one.versions.exists()
    assert not stored_files()


def test_files_of_a_version_that_could_not_be_stored_are_taken_away(one, monkeypatch):
    def broken(version):
        raise RuntimeError

    monkeypatch.setattr(services, "_insert_or_find", broken)
    with pytest.raises(RuntimeError):
        make_version(one, ROWS, None)
    assert not stored_files()


def test_a_set_without_examples_is_refused(one):
    with pytest.raises(Refused, match="no example"):
        make_version(one, [], None)


@pytest.mark.parametrize("name", ["mine", "control", "round-3"])
def test_a_name_that_is_taken_or_kept_is_refused(name, one):
    with pytest.raises(Refused, match=name):
        create_set(task=one.task, name=name, actor=None)
    assert EvaluationSet.objects.count() == 1


def test_a_set_changes_but_not_its_versions(one):
    version = make_version(one, ROWS, None)
    change_set(
        evaluation_set=one, actor=UserFactory(), access="hidden", description="x", may_leave=True
    )
    one.refresh_from_db()
    version.refresh_from_db()
    assert (one.access, one.description, one.may_leave) == ("hidden", "x", True)
    assert version.version == 1


def test_a_closed_round_gives_what_is_verified_and_stands(nli):
    examples = [verified(nli, number) for number in range(4)]
    Consensus.objects.filter(example=examples[0]).update(is_verified=False)
    Example.objects.filter(pk=examples[2].pk).update(challenge="negation")
    Example.objects.filter(pk=examples[1].pk).update(retracted_at="2026-01-01T00:00Z")
    assert make_missing_versions() == []  # it is open
    with pytest.raises(Refused, match="still running"):
        make_round_version(nli)
    nli.state = "closed"
    nli.save()
    (version,) = make_missing_versions()
    assert make_missing_versions() == []
    assert str(version) == "nli/round-1 v1"
    assert version.evaluation_set.round == nli
    assert not version.evaluation_set.may_leave
    uuids = [str(example.uuid) for example in examples[2:]]
    assert [row.uid for row in read_set_rows(version)] == uuids
    row = next(read_set_rows(version))
    assert row.inputs == {**examples[2].context.fields, "hypothesis": "Statement 2."}
    assert (row.gold, row.slices) == (("neutral",), {"tag": ("work",), "challenge": ("negation",)})


def test_a_round_that_people_still_finish_waits(nli):
    verified(nli, 1)
    nli.state, nli.writing_until = "closed", "2999-01-01T00:00Z"
    nli.save()
    assert make_missing_versions() == []


def test_a_round_without_verified_examples_has_no_version(nli):
    nli.state = "closed"
    nli.save()
    assert make_round_version(nli) is None
    assert make_missing_versions() == []


def test_an_example_that_the_configuration_does_not_fit_any_more_is_left_out(nli, caplog):
    verified(nli, 1)
    verified(nli, 2, label="undecidable")
    nli.state = "closed"
    nli.save()
    assert make_round_version(nli).size == 1
    (line,) = caplog.records
    assert line.levelname == "WARNING"


@pytest.fixture
def released(db):
    round = RoundFactory(task=TaskFactory(code="nli"), state="released")
    return release(round, (5, 3, 4))


def test_a_release_gives_its_test_split(released):
    (version,) = make_missing_versions()
    assert make_missing_versions() == []
    assert (version.dataset, version.size, version.version) == (released, 4, 1)
    assert version.evaluation_set.name == "round-1"
    assert EvaluationSet.objects.get().may_leave
    items = released.items.filter(split="test").order_by("position")
    assert [row.uid for row in read_set_rows(version)] == [item.uid for item in items]
    assert [row.gold[0] for row in read_set_rows(version)] == [
        json.loads(item.line)["label"] for item in items
    ]


def test_a_release_after_a_closed_round_is_the_next_version(nli):
    verified(nli, 1)
    nli.state = "closed"
    nli.save()
    make_missing_versions()
    release(nli, (5, 3, 4))
    (version,) = make_missing_versions()
    assert (version.version, version.size) == (2, 4)
    assert make_missing_versions() == []


def test_withdrawn_examples_are_not_in_the_next_version(released):
    make_release_version(released)
    EvaluationSet.objects.update(may_leave=False)
    for number, gone in ((2, "train"), (3, "test")):
        dataset = Dataset.objects.create(round=released.round, version=number, state="done")
        for item in released.items.all():
            item.pk, item.dataset = None, dataset
            item.is_withdrawn = item.uid == released.items.filter(split=gone).first().uid
            item.save()
        made = make_missing_versions()
        assert [v.size for v in made] == ([] if gone == "train" else [3])
        assert make_missing_versions() == []
    assert not EvaluationSet.objects.get().may_leave  # what an owner decided since stays


def test_a_release_without_test_rows_has_no_version(released):
    DatasetItem.objects.filter(split="test").delete()
    assert make_missing_versions() == []
    assert make_release_version(released) is None


@pytest.mark.parametrize(
    ("options", "is_public"),
    [
        (Options(), True),
        (Options(train=1), False),  # the other row is in no file
        (Options(test=1, private_test=True), False),
    ],
)
def test_a_set_is_no_secret_once_all_of_its_rows_are_published(
    nli, monkeypatch, options, is_public
):
    examples = [verified(nli, number) for number in range(2)]
    nli.state = "closed"
    nli.save()
    make_missing_versions()
    dataset = request_release(round=nli, options=options, actor=None)
    jobs.build_dataset(dataset.pk)
    monkeypatch.setattr(source_services, "make_release_version", lambda dataset: None)
    assert make_missing_versions() == []
    (version,) = EvaluationSetVersion.objects.all()
    assert version.size == len(examples)
    assert version.is_sealed != is_public
    assert version.evaluation_set.may_leave == is_public


def test_one_round_that_fails_stops_no_other(released, monkeypatch, caplog):
    RoundFactory(task=released.round.task, number=2, state="closed")

    def broken(dataset):
        raise RuntimeError

    monkeypatch.setattr(source_services, "make_release_version", broken)
    verified(released.round.task.rounds.get(number=2), 1)
    (version,) = make_missing_versions()
    assert version.evaluation_set.name == "round-2"
    assert [one.levelname for one in caplog.records] == ["ERROR"]


@pytest.mark.parametrize("code", ["nli", "qa", "sentiment", "hate-speech", "secret", "grounded"])
def test_an_official_task_has_a_control_set(code, db):
    task = TaskFactory(code=code, is_official=True)
    (version,) = make_missing_versions()
    assert make_missing_versions() == []
    one = version.evaluation_set
    assert (one.name, one.source, one.access) == ("control", "control", "standard")
    rows = list(read_set_rows(version))
    assert version.size == len(rows) > 20
    assert all(row.inputs.keys() == set(task.config.model_fields) for row in rows)


def test_only_official_tasks_have_a_control_set(nli):
    assert make_control_version(nli.task) is None
    assert make_control_version(TaskFactory(code="other", config_text=nli.task.config_text)) is None


def waits(round, number=9):
    """An example of the round that nobody has judged."""
    return Example.objects.create(
        round=round,
        context=round.contexts.first(),
        annotator=get_annotator(UserFactory()),
        inputs={"hypothesis": f"Unjudged {number}.", "label": "neutral"},
        digest=f"waits{number}",
        outcome="fooled",
    )


def test_a_round_that_is_still_judged_has_no_version(nli):
    verified(nli, 1)
    undecided = waits(nli)
    Round.objects.update(state="closed", closed_at=timezone.now())
    assert make_missing_versions() == []
    assert EvaluationSet.objects.get().name == "round-1"  # its page takes the owner's decision
    undecided.retracted_at = timezone.now()
    undecided.save()
    (version,) = make_missing_versions()
    assert not version.is_provisional
    assert make_missing_versions() == []


def test_owners_take_a_round_early_with_a_reason(nli):
    verified(nli, 1)
    undecided = waits(nli)
    Round.objects.update(state="closed", closed_at=timezone.now())
    nli.refresh_from_db()
    owner = UserFactory()
    with pytest.raises(Refused):
        make_requested_round_version(round=nli, actor=owner, reason=" ")
    early = make_requested_round_version(round=nli, actor=owner, reason="The paper is due.")
    assert early.is_provisional
    assert (early.judged, early.to_judge) == (1, 2)
    noted = LogEntry.objects.get(action="evaluation_set.taken")
    assert (noted.actor, noted.data) == (owner, {"waiting": 1, "reason": "The paper is due."})
    assert make_missing_versions() == []
    Example.objects.filter(pk=undecided.pk).update(retracted_at=timezone.now())
    (settled,) = make_missing_versions()
    assert (settled.pk, settled.is_provisional) == (early.pk, False)  # the same examples
    assert (settled.judged, settled.to_judge) == (1, 1)
    assert make_missing_versions() == []


def test_a_round_that_is_closed_again_gets_another_version(nli):
    verified(nli, 1)
    Round.objects.update(state="closed", closed_at=timezone.now())
    assert [version.version for version in make_missing_versions()] == [1]
    Round.objects.update(state="open")
    verified(nli, 2)
    assert make_missing_versions() == []
    Round.objects.update(state="closed", closed_at=timezone.now())
    assert [version.size for version in make_missing_versions()] == [2]
    assert make_missing_versions() == []
