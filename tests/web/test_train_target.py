"""From asking for a training to a report and a target, with a model that trains in a second."""

import json
import re
from dataclasses import replace
from io import StringIO

import pytest
from django.core.files.base import ContentFile
from django.core.management import CommandError, call_command
from django.utils import timezone

from evaluation.isolation.queue import subprocess_job
from evaluation.isolation.sandbox.choose import NoEngine
from evaluation.management.commands import train_target as command
from evaluation.models import TrainingRun
from evaluation.seeds import read_seed_rows, split_held_out
from evaluation.task_shape import build_trainable_shape
from evaluation.training import services as trainings
from evaluation.training.fine_tune import TrainingOptions
from evaluation.training.next_target import choose_training_options, collect_sources, open_base
from evaluation.training.services import (
    TrainingRefused,
    find_current_target,
    find_default_base,
    find_free_name,
    register_trained_target,
)
from serving.errors import MisconfiguredError
from tasks.contexts import uploads
from tasks.models import Round, RoundTarget, TargetModel, TaskMember
from tests.support.factories import ContextFactory, RoundFactory, TaskFactory, scripted_target
from tests.support.serving_models import tiny_model
from tests.support.training_data import nli_task, release
from tests.unit.tasks.config_texts import MINIMAL

State = TrainingRun.State


@pytest.fixture
def task(db, tmp_path, settings):
    settings.MODELS_HOME = tmp_path / "models"
    return nli_task(tmp_path)


def ask(task, weights=None, **options):
    return trainings.request_training(
        task=task, actor=None, weights=weights or {"seed": 1}, **options
    )


def worked(run):
    """What the process of a run tells."""
    out = StringIO()
    call_command("train_target", run=run.pk, stdout=out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


@pytest.fixture
def done(task):
    """A finished training on round 1; its model is the tiny target's."""
    release(task.rounds.get())
    run = ask(task, {"round1": 1})
    report = {"folder": tiny_model_of(task), "labels": [], "tests": []}
    TrainingRun.objects.update(state=State.DONE, report=report)
    run.refresh_from_db()
    return run


def test_a_training_reports_its_rows_epochs_and_tests(task, settings):
    release(task.rounds.get())
    run = ask(task, {"round1": 2}, base=find_default_base(task)[0], epochs=2)
    report = worked(run)[-1]["report"]
    seed, one = report["sources"]
    held = len(split_held_out(read_seed_rows("nli"))[1])
    assert (seed["name"], seed["weight"], seed["train"], seed["test"]) == ("seed", None, 0, held)
    assert one == {
        "name": "round1", "dataset": "nli-round1-v1", "weight": 2.0, "train": 40, "dev": 12,
        "test": 20, "left_out": 0,
    }  # fmt: skip
    assert len(report["training"]["curve"]) == 2
    assert report["training"]["curve"][0].keys() == {"loss", "accuracy", "macro_f1"}
    assert (report["base"], report["old"], report["old_missing"]) == ("tiny", "tiny", "")
    assert [(test["name"], test["after"]["n"]) for test in report["tests"]] == [
        ("seed", held),
        ("round1", 20),
    ]
    for test in report["tests"]:
        changed = test["mended"] - test["broken"]
        difference = test["after"]["value"] - test["before"]["value"]
        assert changed == pytest.approx(difference * test["after"]["n"])
    folder = settings.MODELS_HOME / "targets" / "nli" / report["training"]["weights_sha256"][:16]
    assert report["folder"] == str(folder)
    # The ids of test rows stay in the database.
    published = {name: value for name, value in report.items() if name != "standing"}
    assert json.loads((folder / "report.json").read_text()) == published
    assert report["standing"].keys() == {"round1"}
    again = worked(run)[-1]["report"]  # the same weights, so the same folder
    assert again["folder"] == report["folder"]
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_it_tells_how_far_it_is(task):
    release(task.rounds.get())
    told = worked(ask(task, {"round1": 1}, base=find_default_base(task)[0], epochs=1))
    shares = [line["progress"] for line in told[:-1]]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 0.9)
    messages = [line["message"] for line in told[:-1]]
    assert messages[0] == "collecting the rows"
    assert messages[-1].startswith("asking tiny about ")


def test_withdrawn_rows_and_older_versions_are_not_used(task):
    one = task.rounds.get()
    release(one, (10, 5, 5))
    release(one, (10, 5, 5), version=2, withdrawn=4)
    run = ask(task, {"round1": 1})
    (source,) = sources(run, "round1")
    assert (source.dataset, len(source.train)) == ("nli-round1-v2", 6)
    assert "u3" not in str(source.train)


def sources(run, *names):
    shape = build_trainable_shape(run.task.config)
    how = choose_training_options(run.task, shape, run.options)
    return [s for s in collect_sources(run.task, shape, run.options, how) if s.name in names]


def test_seeds_are_split_into_train_dev_and_the_held_out_tenth(task):
    (source,) = sources(ask(task), "seed")
    groups = [
        {row["group"] for row in getattr(source, split)} for split in ("train", "dev", "test")
    ]
    assert not groups[0] & groups[1] | groups[0] & groups[2] | groups[1] & groups[2]
    assert sum(map(len, (source.train, source.dev, source.test))) == len(read_seed_rows("nli"))


def test_rows_that_cannot_teach_are_counted(task):
    dataset = release(task.rounds.get(), (10, 5, 5))
    item = dataset.items.first()
    item.line = json.dumps({**json.loads(item.line), "label": "no such label"})
    item.save(update_fields=["line"])
    (source,) = sources(ask(task, {"round1": 1}), "round1")
    assert (source.left_out, len(source.train)) == (1, 9)


def test_rows_that_are_too_long_are_left_out_of_every_split(task):
    dataset = release(task.rounds.get(), (10, 5, 5))
    for item in (dataset.items.first(), dataset.items.last()):
        line = json.loads(item.line)
        inputs = {**json.loads(line["input_json"]), "hypothesis": "long " * 200}
        item.line = json.dumps({**line, "input_json": json.dumps(inputs)})
        item.save(update_fields=["line"])
    run = ask(task, {"round1": 1}, base=find_default_base(task)[0], epochs=1)
    one = worked(run)[-1]["report"]["sources"][1]
    assert (one["train"], one["dev"], one["test"], one["left_out"]) == (9, 5, 4, 2)


def test_a_dev_split_of_one_author_is_enough(task):
    dataset = release(task.rounds.get(), (10, 1, 5))
    run = ask(task, {"round1": 1}, base=find_default_base(task)[0], epochs=1)
    report = worked(run)[-1]["report"]
    assert (report["sources"][1]["dataset"], report["training"]["dev_rows"]) == (str(dataset), 1)


def test_without_rows_the_training_says_so(task):
    release(task.rounds.get(), (0, 0, 5))
    told = worked(ask(task, {"round1": 1}, base=find_default_base(task)[0]))
    assert told[-1]["error"]


def test_an_old_target_elsewhere_is_asked(task):
    newer = RoundFactory(task=task, number=2, state=Round.State.CLOSED)
    scripted_target(newer, label="entailment")
    release(task.rounds.get(number=1))
    run = ask(task, {"round1": 1}, epochs=1, base=str(tiny_model_of(task)))
    report = worked(run)[-1]["report"]
    test = report["tests"][1]
    rows = [json.loads(item.line)["label"] for item in dataset_items(task, "test")]
    assert report["old"] == "scripted"
    assert test["before"]["value"] == pytest.approx(rows.count("entailment") / len(rows))


def tiny_model_of(task):
    return TargetModel.objects.get(name="tiny").source


def dataset_items(task, split):
    return task.rounds.get(number=1).datasets.get().items.filter(split=split)


def test_an_old_target_that_does_not_answer_leaves_its_column_empty(task):
    newer = RoundFactory(task=task, number=2, state=Round.State.CLOSED)
    scripted_target(newer, fail="down")
    release(task.rounds.get(number=1))
    report = worked(ask(task, {"round1": 1}, epochs=1, base=tiny_model_of(task)))[-1]["report"]
    assert report["old_missing"].startswith("scripted ")
    assert [test["before"] for test in report["tests"]] == [None, None]


def test_a_task_without_an_older_target_has_no_before(task):
    source = tiny_model_of(task)
    RoundTarget.objects.all().delete()
    release(task.rounds.get())
    report = worked(ask(task, {"round1": 1}, epochs=1, base=source))[-1]["report"]
    assert report["old"] is None
    assert report["old_missing"]


def test_pickled_weights_are_no_base(task, tmp_path):
    folder = tmp_path / "pickled"
    folder.mkdir()
    (folder / "pytorch_model.bin").write_bytes(b"")
    (told,) = worked(ask(task, base=str(folder)))[1:]
    assert "safetensors" in told["error"]


def test_a_hub_base_needs_a_commit(task):
    run = ask(task, base="org/model", revision="main")
    shape = build_trainable_shape(task.config)
    with pytest.raises(MisconfiguredError, match="full commit"):
        open_base(run.options, shape, choose_training_options(task, shape, run.options))


def test_ten_labels_and_more_are_in_the_order_of_their_numbers(task, tmp_path):
    """Configurations are sorted as texts: 0, 1, 10, 11, 2 …"""
    labels = tuple(f"label {letter}" for letter in "abcdefghijkl")
    named = {str(number): label for number, label in enumerate(labels)}
    folder = tmp_path / "base"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "config.json").write_text(json.dumps({"id2label": named}, sort_keys=True))
    shape = replace(build_trainable_shape(task.config), labels=labels)
    options = {"base": str(folder), "revision": ""}
    assert open_base(options, shape, TrainingOptions())[1].labels == labels


def test_labels_stay_in_the_order_of_the_base(task, tmp_path):
    folder = tiny_model(tmp_path / "other", "pair-classification")
    settings = json.loads((folder / "dynabench.json").read_text())
    settings["labels"].reverse()
    (folder / "dynabench.json").write_text(json.dumps(settings))
    run = ask(task, base=str(folder))
    shape = build_trainable_shape(task.config)
    how = choose_training_options(task, shape, run.options)
    assert open_base(run.options, shape, how)[1].labels == tuple(settings["labels"])
    assert how.labels == shape.labels


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ({"round1": 1}, "Round 1 "),
        ({"round7": 1}, "round 7"),
        ({"seed": 0}, "at most 100"),
        ({"seed": 101}, "at most 100"),
        ({"seed": float("nan")}, "at most 100"),
        ({}, "at least one"),
    ],
)
def test_what_cannot_be_trained_on_is_told(task, weights, said):
    with pytest.raises(TrainingRefused, match=said):
        trainings.request_training(task=task, actor=None, weights=weights)
    assert not TrainingRun.objects.exists()


def test_other_tasks_have_no_seeds_and_other_kinds_are_refused(task):
    other = TaskFactory(code="mine", config_text=task.config_text)
    for one, weights in (
        (other, {"seed": 1}),
        (TaskFactory(code="free", config_text=MINIMAL), {"round1": 1}),
    ):
        with pytest.raises(TrainingRefused):
            ask(one, weights)
    assert not TrainingRun.objects.exists()


def test_a_task_has_one_training_at_a_time(task):
    run = ask(task)
    with pytest.raises(TrainingRefused):
        ask(task)
    TrainingRun.objects.filter(pk=run.pk).update(state=State.FAILED)
    assert ask(task).pk != run.pk


def test_the_model_becomes_a_target_of_a_new_draft(done, task, alice):
    task.rounds.update(opened_at=timezone.now())
    ContextFactory(round=task.rounds.get(), fields={"premise": "The shop is open."})
    target = register_trained_target(run=done, number=2, name="nli-2", actor=alice)
    two = task.rounds.get(number=2)
    assert (two.state, list(two.parents.all())) == (Round.State.DRAFT, [task.rounds.get(number=1)])
    assert two.target_names == ["nli-2"]
    assert two.contexts.get().fields == {"premise": "The shop is open."}  # of the round before
    assert (target.source, target.url) == (done.report["folder"], "")
    assert target.serving == {
        "backend": "onnx",
        "precision": "fp32",
        "fields": ["premise", "hypothesis"],
        "output": "label",
    }
    done.refresh_from_db()
    assert (done.target, done.round) == (target, two)
    Round.objects.filter(pk=two.pk).update(state=Round.State.OPEN)
    assert find_current_target(task) == target


def test_a_registered_model_may_join_another_round_under_its_name(done, task):
    first = register_trained_target(run=done, number=2, name="nli-2", actor=None)
    assert register_trained_target(run=done, number=3, name="ignored", actor=None) == first
    assert task.rounds.get(number=3).target_names == ["nli-2"]


@pytest.mark.parametrize(
    ("number", "name", "said"),
    [
        (1, "nli-2", "Round 1 "),
        (4, "nli-2", "Round 4.* 2"),
        (2, "tiny", "has this name"),
        (2, "no spaces", "letters, numbers"),
    ],
)
def test_what_cannot_be_registered_is_told(done, task, number, name, said):
    with pytest.raises(TrainingRefused, match=said):
        register_trained_target(run=done, number=number, name=name, actor=None)
    assert task.rounds.count() == 1
    assert TargetModel.objects.count() == 1


def test_only_a_finished_training_has_a_model(task):
    with pytest.raises(TrainingRefused):
        register_trained_target(run=ask(task), number=2, name="nli-2", actor=None)


def test_names_are_free(task):
    assert find_free_name(task, 2) == "nli-round-2"
    for name in ("nli-round-2", "nli-round-2-2"):
        TargetModel.objects.create(task=task, name=name)
    assert find_free_name(task, 2) == "nli-round-2-3"


@pytest.fixture
def here(monkeypatch):
    """Do in this process what a process of its own would do."""

    def carry_out(job, arguments, show):
        assert arguments == ["train_target", "--run", str(job.pk)]
        told = worked(job)
        for line in told[:-1]:
            show(line["progress"], line["message"])
        if "report" in told[-1]:
            subprocess_job.leases.finish_job(job, report=told[-1]["report"])
        else:
            subprocess_job.leases.fail_job(job, told[-1]["error"])

    monkeypatch.setattr(command, "run_subprocess_job", carry_out)


def train(*arguments):
    out, err = StringIO(), StringIO()
    call_command("train_target", *arguments, stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def test_the_command_trains_prints_and_registers(task, here):
    release(task.rounds.get())
    out, err = train(
        "nli", "--rounds=1", "--no-seed", "--weight=round1=2", "--epochs=1", "--round=2", "--name=b"
    )
    assert "nli-round1-v1: 40 train, 12 dev, 20 test (weight 2)" in out
    assert re.search(r"^accuracy .*\(tiny\)", out, re.M)
    assert err.splitlines()[-1].startswith("b is a target")
    assert task.rounds.get(number=2).target_names == ["b"]


def test_the_command_prints_one_object(task, here):
    release(task.rounds.get())
    out, _ = train("nli", "--rounds=1", "--no-seed", "--epochs=1", "--json")
    run = TrainingRun.objects.get()
    assert json.loads(out) == {"run": run.pk, **run.report}
    assert run.state == State.DONE
    assert run.options["base"] == tiny_model_of(task)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none"], "'none'. Tasks: nli."),
        (["nli", "--rounds=1"], "Round 1 "),
        (["nli", "--weight=round1=2"], "--weight .*round1"),
        (["nli", "--weight=seed"], "--weight 'seed': "),
        (["nli", "--no-seed"], "at least one"),
        (["nli", "--base=no/such"], "no/such"),
        (["nli", "--name=mine"], "--round"),
        (["nli", "--epochs=0"], "--epochs"),
    ],
)
def test_mistakes_of_the_command_line_are_told(task, here, arguments, said):
    with pytest.raises(CommandError, match=said):
        train(*arguments)


@pytest.mark.parametrize(("number", "said"), [(1, "already been opened"), (7, "Round 7")])
def test_a_round_that_takes_no_target_is_told_before_the_training(task, number, said):
    with pytest.raises(CommandError, match=said):
        train("nli", "--rounds=1", f"--round={number}")
    assert not TrainingRun.objects.exists()


def test_ctrl_c_is_a_failure_and_not_tried_again(task, monkeypatch):
    def interrupted(job, arguments, show):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "run_subprocess_job", interrupted)
    with pytest.raises(CommandError, match=r"Stopped by Ctrl-C."):
        train("nli")
    assert TrainingRun.objects.get().state == State.FAILED


def test_a_fault_of_ours_is_no_message(task, monkeypatch):
    stopped: list[Exception] = [NoEngine("No node."), ZeroDivisionError()]

    def broken(run, tell, trainer):
        raise stopped.pop(0)

    monkeypatch.setattr("evaluation.training.next_target.train_next_target", broken)
    run = ask(task)
    assert worked(run) == [{"wait": "No node."}]
    with pytest.raises(ZeroDivisionError):
        worked(run)


def test_owners_train_on_rows_that_they_have_labelled(task, alice, as_alice, tmp_path, monkeypatch):
    monkeypatch.setattr(uploads, "UPLOADS_FOLDER", tmp_path / "uploads")
    TaskMember.objects.create(task=task, user=alice, role="editor")
    lines = [
        f"{one['premise']!r}\t{one['hypothesis']!r}\t{one['label']}"
        for one, _n in zip(read_seed_rows("nli"), range(120), strict=False)
    ]
    page = "/own/nli/rounds/1/labelled/"

    def file(count):
        rows = ["First\tSecond\tlabel", *lines[:count], "no\tlabel\tmaybe"]
        return ContentFile("\n".join(rows).encode(), "rows.tsv")

    def choose(count):
        shown = as_alice.post(page, {"file": file(count)})
        columns = {"premise": "First", "hypothesis": "Second", "label": "label"}
        names = [bound.html_name for bound in shown.context["match"]]
        matched = {n: next((c for k, c in columns.items() if n.endswith(k)), "") for n in names}
        return {"ticket": shown.context["ticket"], **matched}

    assert "120" not in as_alice.get(page).text
    few = choose(50)
    assert as_alice.post(f"{page}store/", few).url == page
    assert not TrainingRun.objects.exists()
    told = choose(120)
    assert as_alice.post(f"{page}match/", told).context["summary"].error_count == 1
    assert as_alice.post(f"{page}store/", told).url == "/own/nli/trainings/"
    run = TrainingRun.objects.get()
    assert (run.state, len(run.rows), run.requested_by) == ("queued", 120, alice)
    run.options |= {"has_seed": False, "epochs": 1}
    run.save()
    report = worked(run)[-1]["report"]
    (source,) = report["sources"]
    TrainingRun.objects.update(state=State.DONE, report=report)
    assert source["name"] == "rows"
    assert source["train"] + source["dev"] + source["test"] + source["left_out"] == 120
    assert 0 < source["test"] < 30
    assert source["dataset"] == "rows.tsv"
    assert "rows.tsv" in as_alice.get(f"/own/nli/trainings/{run.pk}/").text
    target = register_trained_target(
        run=TrainingRun.objects.get(), number=2, name="first", actor=None
    )
    name = f"weight_rows{run.pk}"
    assert name in as_alice.get("/own/nli/trainings/").context["form"].fields
    as_alice.post("/own/nli/trainings/", {name: 1, "base": target.pk, "seed": 0, "epochs": 1})
    second = task.training_runs.first()
    assert second.pk != run.pk
    second.options["has_seed"] = False
    second.save()
    report = worked(second)[-1]["report"]
    (again,) = report["sources"]
    assert again == {**source, "name": f"rows{run.pk}"}
    (test,) = report["tests"]
    assert (test["name"], test["after"]["n"]) == (f"rows{run.pk}", source["test"])
    assert test["before"] is not None


def test_uploaded_rows_are_tested_on_where_they_are_not_trained_on(task):
    row = {"premise": "A.", "hypothesis": "B.", "label": "neutral"}
    rows = [{**row, "group": str(number)} for number in range(100)]
    first = ask(task, {"rows": 1}, rows=rows, file_name="mine.csv")
    report = {"folder": tiny_model_of(task), "labels": [], "tests": []}
    TrainingRun.objects.update(state=State.DONE, report=report)
    first.refresh_from_db()
    assert ask(task).options["files"] == []  # its model is no target yet
    TrainingRun.objects.exclude(pk=first.pk).delete()
    register_trained_target(run=first, number=2, name="first", actor=None)
    release(task.rounds.get(number=1))
    third = ask(task, {"round1": 1})
    assert third.options["files"] == [first.pk]
    shape, options = build_trainable_shape(task.config), {**third.options, "rows": None}
    options["has_seed"] = False
    how = choose_training_options(task, shape, options)
    kept, _ = collect_sources(task, shape, options, how)
    assert (kept.name, kept.dataset, kept.weight) == (f"rows{first.pk}", "mine.csv", None)
    assert (len(kept.train), len(kept.test)) == (0, len(split_held_out(rows)[1]))
    TrainingRun.objects.filter(pk=third.pk).update(state=State.DONE, report=report)
    third.refresh_from_db()
    TrainingRun.objects.filter(pk=third.pk).update(
        options={**third.options, "weights": {"round1": 1, f"rows{first.pk}": 1}}
    )
    third.refresh_from_db()
    register_trained_target(run=third, number=3, name="third", actor=None)
    assert [one.number for one in task.rounds.get(number=3).parents.all()] == [1]
