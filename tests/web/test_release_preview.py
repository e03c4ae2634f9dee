"""The preview of a release is what the release holds; a release that nobody used can be undone."""

# ruff: noqa: F811  (fixtures are named where they are used)

import random

import pytest
from django.core.files.storage import default_storage
from django.core.management import CommandError, call_command
from django.db import transaction
from django.utils import timezone

from annotation.models import Example, TargetOutput
from evaluation.dataset_releases.build import Options
from evaluation.dataset_releases.census import REASONS, take_census
from evaluation.dataset_releases.services import ReleaseRefused, request_release
from evaluation.dataset_releases.undo_services import UndoRefused, find_final_reasons, undo_release
from evaluation.jobs import build_dataset
from evaluation.models import (
    Dataset,
    DatasetItem,
    EvaluationRun,
    EvaluationSetVersion,
    Submission,
    TrainingRun,
)
from evaluation.test_sets.source_services import make_missing_versions
from tasks.models import Round, TargetVersion, TaskMember
from tests.support.factories import scripted_target
from tests.support.releases import (  # noqa: F401
    LABELS,
    _own_storage,
    closed,
    people,
    released,
)
from validation.models import Consensus

OWN = "/own/nli/rounds/1/release/"
DATA = "/t/nli/rounds/1/data/"
WANTED = {"train": "", "dev": "8", "test": "8", "seed": "0", "license": "cc-by-4.0"}
UNDO = f"{OWN}undo/"
SAID = [  # outcome, and columns of the consensus; None: nobody has judged it
    ("not_fooled", None),
    ("fooled", None),
    ("undecided", None),
    ("fooled", {"state": "decided", "verdict": "correct", "is_verified": True}),
    ("not_fooled", {"state": "decided", "label": "neutral", "is_verified": True}),
    ("fooled", {"state": "decided", "label": "neutral"}),
    ("fooled", {"state": "decided", "verdict": "flagged"}),
    ("fooled", {"state": "decided", "verdict": "cannot_tell"}),
    ("fooled", {"state": "decided", "verdict": "incorrect", "is_sent_back": True}),
    ("fooled", {"state": "no_consensus", "verdict": "correct"}),
    ("fooled", {"state": "undecided", "verdict": "correct"}),
]


def member(user, role, task):
    TaskMember.objects.create(user=user, task=task, role=role)
    return user


def generated(task, people, context, number, chance):
    """A closed round with examples of every kind by a few people, programs and unknown authors."""
    made = Round.objects.create(task=task, number=number, state="closed")
    authors = [None, *people[: chance.randint(1, 6)]]
    target = scripted_target(made, name=f"target-{number}")
    version = TargetVersion.objects.create(target=target, digest="d" * 64)
    context.pk, context.round = None, made
    context.save()
    for place in range(chance.randint(1, 60)):
        outcome, said = chance.choice(SAID)
        label = {"label": chance.choice(LABELS)} if chance.random() < 0.8 else {}
        example = Example.objects.create(
            round=made,
            context=context,
            annotator=chance.choice(authors),
            inputs={"hypothesis": f"Statement {place}.", **label},
            digest=str(place),
            outcome=outcome,
            by_program=chance.random() < 0.1,
            retracted_at=timezone.now() if chance.random() < 0.1 else None,
        )
        answer = {"output": {"label": "neutral"}, "seconds": 0.1}  # of rows without an own label
        TargetOutput.objects.create(example=example, target=target, version=version, **answer)
        if said:
            Consensus.objects.create(
                example=example, round=made, votes=3, still_needed=0, **{"label": "", **said}
            )
    return made


def test_the_preview_is_what_the_release_holds(client, nli, people, alice):
    client.force_login(member(alice, "owner", nli.task))
    chance = random.Random(7)
    for number in range(2, 5):
        made = generated(nli.task, people, nli.contexts.first(), number, chance)
        place = f"/own/nli/rounds/{number}/release/"
        chosen = {"hold_back": "on"} if number == 4 else {}
        wanted = {**WANTED, "dev": chance.randint(0, 3), "test": chance.randint(0, 3), **chosen}
        page = client.post(place, {**wanted, "preview": ""})
        if page.status_code == 422:
            page = client.post(place, {**WANTED, "sizes": "0-0"})
            wanted |= {"dev": 0, "test": 0}
            wanted.pop("hold_back", None)
        assert page.status_code == 200
        assert not Dataset.objects.filter(round=made).exists()
        shown = page.context["preview"]
        assert shown.total + sum(shown.left_out.values()) == made.examples.count()
        assert shown.left_out.keys() <= REASONS.keys()
        if not shown.total:
            continue
        client.post(place, {**wanted, "rows": page.context["confirms"]})
        dataset = made.datasets.get()
        build_dataset(dataset.pk)
        dataset.refresh_from_db()
        assert dataset.state == "done", dataset.error
        held = {split: n for split, n in shown.rows.items() if split != "held"}
        assert dataset.numbers["rows"] == held
        assert dataset.items.count() == shown.total
        assert dataset.numbers["reasons"] == shown.left_out
        assert [*client.get(place).context["left_out"]] == page.context["left_out"]


def test_a_proposal_is_taken_by_one_click_and_only_the_last_button_releases(client, closed, alice):
    client.force_login(member(alice, "owner", closed.task))
    typed = {**WANTED, "description": "kept", "dev": "3", "test": "3"}
    page = client.get(OWN)
    choice = page.context["choices"][1]["sizes"]
    taken = client.post(OWN, {**typed, "sizes": f"{choice.dev}-{choice.test}"})
    assert taken.context["preview"].rows["test"] == choice.test
    assert taken.context["form"]["description"].value() == "kept"
    assert not Dataset.objects.exists()
    stale = client.post(OWN, {**typed, "rows": page.context["confirms"]})
    assert stale.status_code == 422
    assert stale.context["confirms"] != page.context["confirms"]
    assert not Dataset.objects.exists()
    client.post(OWN, {**typed, "rows": stale.context["confirms"]})
    assert Dataset.objects.get().options["confirmed"] == stale.context["preview"].rows


def test_a_release_fails_where_votes_came_after_it_was_confirmed(client, closed, alice):
    client.force_login(member(alice, "owner", closed.task))
    page = client.get(OWN)
    sizes = page.context["choices"][0]["sizes"]
    wanted = {**WANTED, "dev": sizes.dev, "test": sizes.test, "rows": page.context["confirms"]}
    client.post(OWN, wanted)
    Consensus.objects.filter(is_verified=False).update(is_verified=True)
    dataset = Dataset.objects.get()
    build_dataset(dataset.pk)
    dataset.refresh_from_db()
    assert dataset.state == "failed"
    closed.refresh_from_db()
    assert closed.state == "closed"


def test_what_programs_wrote_is_released_and_a_refusal_names_the_true_reason(nli, people):
    context = nli.contexts.first()
    made = Round.objects.create(task=nli.task, number=2, state="closed")
    context.pk, context.round = None, made
    context.save()
    rows = [
        Example(
            round=made, context=context, annotator=people[0], digest=str(place), outcome=outcome,
            inputs={"hypothesis": str(place), "label": "neutral"}, by_program=True,
        )
        for place, outcome in enumerate(["fooled"] * 7 + ["not_fooled"] * 3)
    ]  # fmt: skip
    Example.objects.bulk_create(rows)
    with pytest.raises(ReleaseRefused, match="program"):
        request_release(round=made, options=Options(dev=1), actor=None)
    dataset = request_release(round=made, options=Options(), actor=None)
    build_dataset(dataset.pk)
    dataset.refresh_from_db()
    assert dataset.numbers["rows"] == {"train": 0, "dev": 0, "test": 0, "program": 3}
    assert dataset.numbers["reasons"] == {"undecided": 7}
    made = Round.objects.create(task=nli.task, number=3, state="closed")
    with pytest.raises(ReleaseRefused):
        request_release(round=made, options=Options(), actor=None)
    assert not take_census(made).left_out


def trained(dataset, actor):
    task = dataset.round.task
    TrainingRun.objects.create(task=task, state="done", options={"datasets": [dataset.pk]})


def prompted(dataset, actor):
    items = [*dataset.items.values_list("pk", flat=True)[:1]]
    task = dataset.round.task
    Submission.objects.create(task=task, kind="chat", name="c", chat={"shot_items": items})


def taught(dataset, actor):
    Submission.objects.create(task=dataset.round.task, kind="rows", name="r")


def evaluated(dataset, actor, kind="directory", state="done"):
    make_missing_versions()
    (version,) = EvaluationSetVersion.objects.filter(dataset=dataset)
    task = dataset.round.task
    target = task.targets.get() if kind == "target" else None
    model = Submission.objects.create(task=task, kind=kind, name="m", target=target)
    EvaluationRun.objects.create(submission=model, version=version, state=state)


def answered(dataset, actor):
    make_missing_versions()
    (version,) = EvaluationSetVersion.objects.filter(dataset=dataset)
    Submission.objects.create(
        task=dataset.round.task, kind="predictions", name="p", evaluation_set=version
    )


def opened(dataset, actor):
    Round.objects.create(task=dataset.round.task, number=2, opened_at=timezone.now())


def later(dataset, actor):
    Dataset.objects.create(round=dataset.round, version=2, state="queued")


def downloaded(dataset, actor):
    Dataset.objects.filter(pk=dataset.pk).update(downloaded_at=timezone.now())


def test_a_release_is_final_once_it_was_used_and_the_page_says_why(client, closed, alice):
    client.force_login(member(alice, "owner", closed.task))
    uses = {
        "version": later, "downloaded": downloaded, "trained": trained, "evaluated": evaluated,
        "opened": opened, "prompted": prompted, "taught": taught, "answered": answered,
    }  # fmt: skip
    codes = {"prompted": "trained", "taught": "trained", "answered": "evaluated"}
    dataset = released(closed)
    assert find_final_reasons(dataset) == []
    for name, use in uses.items():
        with transaction.atomic():
            use(dataset, alice)
            dataset.refresh_from_db()
            assert find_final_reasons(dataset) == [codes.get(name, name)]
            assert len(client.get(UNDO).context["reasons"]) == 1
            client.post(UNDO)
            with pytest.raises(UndoRefused):
                undo_release(round=closed, actor=None)
            assert Dataset.objects.filter(pk=dataset.pk).exists()
            transaction.set_rollback(True)


def test_an_undone_release_leaves_nothing_and_can_be_made_again(
    client, closed, alice, django_capture_on_commit_callbacks
):
    client.force_login(member(alice, "owner", closed.task))
    dataset = released(closed, hold_back=True, dev=4, test=8)
    evaluated(dataset, alice, kind="target")
    evaluated(dataset, alice, kind="chat", state="queued")
    names = [file.file.name for file in dataset.files.all()]
    names += [one.inputs.name for one in EvaluationSetVersion.objects.all()]
    assert not client.get(UNDO).context["reasons"]
    with django_capture_on_commit_callbacks(execute=True):
        assert client.post(UNDO).status_code == 302
    closed.refresh_from_db()
    assert closed.state == "closed"
    assert not Dataset.objects.exists()
    assert not DatasetItem.objects.exists()
    assert not EvaluationSetVersion.objects.filter(dataset__isnull=False).exists()
    assert not EvaluationRun.objects.exists()
    assert not closed.task.evaluation_sets.filter(may_leave=True).exists()
    assert not [name for name in names if default_storage.exists(name)]
    assert client.get(DATA).context["versions"] == []
    again = released(closed)
    assert again.version == 1
    call_command("release_round", "nli", 1, undo=True)
    assert not Dataset.objects.exists()
    with pytest.raises(CommandError):
        call_command("release_round", "nli", 1, undo=True)


def test_a_preview_by_the_command_releases_nothing(closed, capsys):
    call_command("release_round", "nli", 1, dev=8, test=8, preview=True)
    assert "train 40, dev 8, test 8" in capsys.readouterr().out
    assert not Dataset.objects.exists()


def test_the_command_reads_statements_from_a_file(closed, tmp_path):
    file = tmp_path / "statements.json"
    file.write_text('{"biases": "Students alone."}')
    call_command("release_round", "nli", 1, dev=8, test=8, statements=file)
    assert Dataset.objects.get().options["statements"]["biases"] == "Students alone."


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"bias": "x"}', '{"biases": 1}', '{"biases": "%s"}' % ("x" * 2001)]
)
def test_the_command_refuses_a_file_without_statements(closed, tmp_path, text):
    file = tmp_path / "statements.json"
    file.write_text(text)
    with pytest.raises(CommandError, match=str(file)):
        call_command("release_round", "nli", 1, statements=file)
    assert not Dataset.objects.exists()


def test_every_door_by_which_a_release_leaves_notes_it(client, closed, alice):
    dataset = released(closed)
    make_missing_versions()
    (version,) = EvaluationSetVersion.objects.filter(dataset=dataset)
    api = "/api/v1/tasks/nli/"
    doors = (
        f"{DATA}1/train.jsonl",
        f"{api}rounds/1/datasets/1/files/README.md",
        f"/t/nli/sets/{version.pk}/inputs/",
        f"{api}evaluation-sets/round-1/inputs/",
    )
    for door in doors:
        Dataset.objects.update(downloaded_at=None)
        assert client.get(door).status_code == 200
        assert Dataset.objects.get().downloaded_at is not None, door
