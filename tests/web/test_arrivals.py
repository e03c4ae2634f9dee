"""The check of what arrives, kind by kind, to the files that are kept and the runs asked for."""

# ruff: noqa: F811  (fixtures are named where they are used)

import gzip
import io
import json
import shutil
import tarfile
from types import SimpleNamespace

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage, default_storage

from core.files import bounded
from core.files.bounded import Bounds
from evaluation import jobs
from evaluation.api.runs import convert_predictions
from evaluation.contract import MIB, Ending, Outcome, SetRow, Usage
from evaluation.heartbeat import CHUNK_BYTES, BeatingFile, skip_beat
from evaluation.isolation.inference import precheck
from evaluation.isolation.queue import leases
from evaluation.isolation.uploads.chunked import add_file
from evaluation.jobs import check_submission
from evaluation.models import EvaluationRun, Submission, Upload
from evaluation.runs.endpoints import CannotFetch, make_submission_endpoint
from evaluation.runs.runners import open_model
from evaluation.submissions import intake
from evaluation.submissions.quota import Charge, choose_charge
from evaluation.submissions.selectors import list_public_inputs
from evaluation.submissions.services import cancel_evaluations, submit_model, withdraw_model
from evaluation.test_sets.selectors import read_set_rows
from evaluation.test_sets.services import make_version
from serving import spec
from tests.support.archives import zipped
from tests.support.factories import ContextFactory, RoundFactory
from tests.support.made_sets import (
    make_set,
    task,  # noqa: F401
)
from tests.support.serving_models import tiny_model

State = Submission.State
LABELS = ("entailment", "neutral", "contradiction")
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(autouse=True)
def _places(settings, tmp_path, monkeypatch):
    """Files below the test's folder; no engine, so that folders run in a process of ours."""
    settings.MEDIA_ROOT, settings.MODEL_CACHE = tmp_path / "media", tmp_path / "cache"
    monkeypatch.setattr("evaluation.submissions.kinds.image.has_engine", lambda: False)
    monkeypatch.setattr("evaluation.isolation.sandbox.engine.find_engine", lambda: None)


@pytest.fixture
def version(task):
    return make_set(task, "open", may_leave=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_model(tmp_path_factory.mktemp("tiny"), "pair-classification")


def hand_in(task, owner, kind="directory", data=None, **told):
    upload = data and add_file(owner, "file", len(data), ContentFile(data))
    return submit_model(task=task, owner=owner, kind=kind, name="Mine", upload=upload, **told)


def checked(submission):
    check_submission(submission.pk)
    submission.refresh_from_db()
    return submission


@pytest.mark.own_process
def test_a_folder_is_checked_kept_and_queued(task, alice, folder, version, monkeypatch):
    """A real model answers its five in tests/unit/evaluation/test_checking.py."""
    answering(monkeypatch, right)
    submission = checked(hand_in(task, alice, data=zipped(folder)))
    assert (submission.state, submission.outcome, submission.error) == (State.DONE, "ok", "")
    assert len(submission.digest) == 64
    assert submission.size > 1000
    assert {run.suite for run in submission.runs.all()} == {"plain", *task.config.metrics.deltas}
    assert set(submission.runs.values_list("version", "requested_by")) == {(version.pk, alice.pk)}
    assert not Upload.objects.exists()
    with open_model(submission, submission, skip_beat) as (model, _):
        assert (model.folder / "config.json").exists()
        assert {*model.fields} == {"premise", "hypothesis"}
        assert (model.output, {*model.labels}) == ("label", {*LABELS})
        assert (model.folder / "config.json").stat().st_mode & 0o444 == 0o444


def test_a_storage_may_measure_the_file_and_read_it_at_once(
    task, alice, folder, version, monkeypatch
):
    """As storages of other hosts do, such as S3's."""
    store, stored = FileSystemStorage._save, []

    def upload(self, name, content):
        size = content.seek(0, io.SEEK_END)
        assert content.tell() == size == content.size
        content.seek(0)
        stored.append((content.read(), size))
        return store(self, name, ContentFile(stored[-1][0]))

    answering(monkeypatch, right)
    submission = hand_in(task, alice, data=zipped(folder))
    monkeypatch.setattr(FileSystemStorage, "_save", upload)
    assert checked(submission).state == State.DONE
    assert [len(data) for data, _ in stored] == [size for _, size in stored] == [submission.size]


def test_a_file_with_a_heartbeat_is_read_whole():
    beats = []
    file = BeatingFile(io.BytesIO(bytes(CHUNK_BYTES + 1)), lambda: beats.append(1))
    assert len(file.read()) == CHUNK_BYTES + 1
    file.seek(0)
    assert len(file.read(CHUNK_BYTES)) == CHUNK_BYTES
    assert len(beats) == 2


def test_stored_files_that_changed_are_not_run(task, alice, folder, monkeypatch):
    answering(monkeypatch, right)
    submission = checked(hand_in(task, alice, data=zipped(folder)))
    Submission.objects.filter(pk=submission.pk).update(digest="0" * 64)
    submission.refresh_from_db()
    with pytest.raises(CannotFetch), open_model(submission, submission, skip_beat):
        pass


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"no archive at all", "Pack it again"),
        ({"weights.bin": b"x"}, "weights.bin: "),
        ({"../../evil.json": b"x"}, "../../evil.json: "),
    ],
)
def test_a_refused_file_names_the_member_and_is_thrown_away(task, alice, folder, data, said):
    bytes_ = data if isinstance(data, bytes) else zipped(folder, **data)
    submission = checked(hand_in(task, alice, data=bytes_))
    assert (submission.state, submission.outcome) == (State.FAILED, "rejected")
    assert said in submission.error
    assert not Upload.objects.exists()
    assert not submission.runs.exists()


@pytest.mark.own_process
@pytest.mark.parametrize(
    ("bounds", "written", "said"),
    [
        (Bounds(), b"[" * 200_000, "dynabench.json is not JSON"),
        (
            Bounds(memory_bytes=50 * MIB),
            b"[" + b"[]," * 2_000_000 + b"[]]",
            bounded.TOO_LARGE_MESSAGE,
        ),
        (Bounds(seconds=0), b"{}", bounded.TOO_LONG_MESSAGE),
    ],
)
def test_what_a_check_cannot_bear_is_refused_and_counts(
    bounds, written, said, task, alice, folder, monkeypatch
):
    monkeypatch.setattr(bounded, "BEAT_SECONDS", 0.01)
    monkeypatch.setattr("evaluation.submissions.receiving.READING_BOUNDS", bounds)
    data = zipped(folder, **{"dynabench.json": written})
    submission = checked(hand_in(task, alice, data=data))
    assert (submission.state, submission.outcome) == (State.FAILED, "rejected")
    assert said in submission.error
    assert choose_charge(submission.state, submission.outcome, True, ()) == Charge.REFUSED
    assert not Upload.objects.exists()


def test_a_model_of_other_labels_is_refused(task, alice, tmp_path):
    other = tiny_model(tmp_path / "yes-no", "sequence-classification")
    submission = checked(hand_in(task, alice, data=zipped(other)))
    assert submission.outcome == "rejected"
    assert submission.error


class Answering:
    """A runner that answers as it is told; `answer` gives a line for each example's id."""

    name = "told"

    def __init__(self, answer, outcome=Outcome.OK, log=""):
        self.answer, self.outcome, self.log = answer, outcome, log

    def run(self, model, inputs, limits, *, take, beat):
        beat()
        for number, line in enumerate(inputs.read_text().splitlines()):
            if answer := self.answer(json.loads(line)["id"], number):
                take(json.dumps(answer).encode())
        return Ending(self.outcome, Usage(1.0), "It fell over." * (self.outcome != "ok"),
                      "5 minutes" * (self.outcome == "timeout"), "", self.log)  # fmt: skip


def answering(monkeypatch, *told, **more):
    monkeypatch.setattr(intake, "_choose_runner", lambda *_: Answering(*told, **more))


def right(id, number):
    return {"id": id, "output": {"label": "neutral"}}


def endpoint(task, alice, **told):
    make_set(task, "asked", may_leave=True)
    return hand_in(task, alice, "endpoint", source="https://example.org", **told)


def test_an_endpoint_that_answers_five_is_accepted(task, alice, monkeypatch):
    answering(monkeypatch, right)
    submission = checked(endpoint(task, alice))
    assert submission.state == State.DONE
    assert submission.runs.count() == 1 + len(task.config.metrics.deltas)


def test_an_endpoint_is_asked_with_its_secret_and_never_at_a_private_address(task, alice, settings):
    submission = endpoint(task, alice, secret="s3cret")
    config = make_submission_endpoint(submission)._config
    assert (config.url, config.secret) == ("https://example.org", "s3cret")
    assert (config.output, {*config.labels}) == ("label", {*LABELS})
    assert not config.allow_private_hosts
    settings.SECRET_KEY = "another"
    with pytest.raises(CannotFetch):
        make_submission_endpoint(submission)
    settings.TARGET_PRIVATE_HOSTS = ["127.0.0.1"]  # what owners may ask, submitters may not
    Submission.objects.update(source="https://127.0.0.1:9", secret="")
    checked(submission)
    assert (submission.state, submission.outcome) == (State.FAILED, "model_error")
    assert "127.0.0.1" in submission.error


def test_each_line_that_does_not_fit_is_shown(task, alice, monkeypatch):
    def some_wrong(id, number):
        wrong = {1: {"label": "maybe"}, 3: {"verdict": "neutral"}}
        return (
            None if number == 4 else {"id": id, "output": wrong.get(number, {"label": "neutral"})}
        )

    answering(monkeypatch, some_wrong, log="token s3cret here")
    submission = checked(endpoint(task, alice, secret="s3cret"))
    assert (submission.state, submission.outcome) == (State.FAILED, "invalid_output")
    assert 'Line 2: "maybe"' in submission.error
    assert "Line 4:" in submission.error
    assert "3 of 5 examples" in submission.error
    assert submission.log == "token [secret] here"


def test_a_model_that_ends_badly_is_refused_with_its_outcome(task, alice, monkeypatch):
    answering(monkeypatch, right, outcome=Outcome.TIMEOUT)
    submission = checked(endpoint(task, alice))
    assert (submission.state, submission.outcome) == (State.FAILED, "timeout")
    assert "5 minutes" in submission.error


def test_what_the_platform_lacks_is_waited_for(task, alice, monkeypatch):
    answering(monkeypatch, right, outcome=Outcome.INFRASTRUCTURE)
    submission = checked(endpoint(task, alice))
    assert (submission.state, submission.attempts) == (State.QUEUED, 0)
    assert submission.not_before
    assert submission.message == "It fell over."


def test_what_fails_again_and_again_is_our_fault(task, alice, monkeypatch):
    def broken(*_):
        raise OSError("disk")

    monkeypatch.setattr(intake, "_choose_runner", broken)
    submission = endpoint(task, alice)
    for _ in range(leases.MAX_ATTEMPTS):
        Submission.objects.update(not_before=None)
        checked(submission)
    assert (submission.state, submission.outcome) == (State.FAILED, "infrastructure")
    assert "disk" not in submission.error  # what the worker's log says is not for submitters


def test_an_image_waits_for_an_engine(task, alice):
    image = f"registry.example/model@sha256:{'ab' * 32}"
    submission = checked(hand_in(task, alice, "image", source=image))
    assert submission.state == State.QUEUED
    assert "container engine" in submission.message


def test_cancelled_while_it_is_checked_nothing_is_kept(task, alice, folder, monkeypatch):
    submission = hand_in(task, alice, data=zipped(folder))

    def cancelled(id, number):
        cancel_evaluations(submission=submission, actor=alice)
        return right(id, number)

    answering(monkeypatch, cancelled)
    submission = checked(submission)
    assert submission.state == State.CANCELLED
    assert not submission.file
    assert not submission.runs.exists()
    assert not default_storage.exists(f"submissions/{submission.pk}/model.tar")


def test_a_hub_id_is_fetched_at_its_commit_and_never_from_a_folder_here(
    task, alice, folder, monkeypatch, tmp_path
):
    asked = []

    def fetched(repo_id, **told):
        asked.append((repo_id, told["revision"], told["allow_patterns"], told["token"]))
        shutil.copytree(folder, told["local_dir"])
        (told["local_dir"] / ".cache").mkdir()

    on_hub(monkeypatch, fetched)
    answering(monkeypatch, right)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "org" / "name").mkdir(parents=True)
    submission = checked(hand_in(task, alice, "hub", source="org/name", revision=COMMIT))
    assert asked == [("org/name", COMMIT, spec.HUB_FILE_PATTERNS, False)]
    assert (submission.state, submission.error) == (State.DONE, "")
    with tarfile.open(fileobj=submission.file.open("rb")) as kept:
        assert "config.json" in kept.getnames()
        assert not [name for name in kept.getnames() if "cache" in name]


def on_hub(monkeypatch, fetched):
    """A hub that tells of 3000 bytes, and of a picture that nobody asks for."""
    files = {"config.json": 1000, "model.safetensors": 2000, "demo.mp4": 2**40}

    def told(self, repo_id, *, revision, token, files_metadata, timeout):
        assert (token, files_metadata) == (False, True)
        named = [SimpleNamespace(rfilename=name, size=size) for name, size in files.items()]
        return SimpleNamespace(siblings=named)

    monkeypatch.setattr("huggingface_hub.HfApi.model_info", told)
    monkeypatch.setattr("huggingface_hub.snapshot_download", fetched)


def test_a_model_that_is_too_large_is_not_fetched_from_the_hub(task, alice, settings, monkeypatch):
    settings.UNCONFIRMED_QUOTA_BYTES = 2999
    on_hub(monkeypatch, lambda *_, **__: pytest.fail("it was fetched"))
    submission = checked(hand_in(task, alice, "hub", source="org/name", revision=COMMIT))
    assert (submission.state, submission.outcome) == (State.FAILED, "rejected")
    assert "at most" in submission.error


# Predictions


def lines(version, **changes):
    told = {f"open-{n}": {"output": {"label": "neutral"}} for n in range(version.size)}
    told |= changes
    return "".join(
        json.dumps({"id": uid, **answer}) + "\n" for uid, answer in told.items() if answer
    ).encode()


def predictions(task, alice, version, data):
    return checked(hand_in(task, alice, "predictions", data, evaluation_set=version))


@pytest.mark.own_process
def test_predictions_are_kept_and_scored_on_their_set_only(task, alice, version):
    make_set(task, "other", may_leave=True)
    submission = predictions(task, alice, version, lines(version))
    assert (submission.state, submission.error) == (State.DONE, "")
    run = EvaluationRun.objects.get()
    assert (run.version, run.suite) == (version, "plain")
    with submission.file.open("rb") as file:
        assert gzip.decompress(file.read()) == lines(version)


def test_predictions_that_do_not_fit_name_lines_and_ids(task, alice, version):
    bad = lines(version, **{"open-2": None, "open-4": {"output": {"label": "perhaps"}}})
    bad += b'{"id": "open-0", "output": {"label": "neutral"}}\n'
    bad += b'{"id": "elsewhere", "output": {"label": "neutral"}}\n'
    submission = predictions(task, alice, version, bad)
    assert submission.outcome == "invalid_output"
    for words in (
        'Line 4: "perhaps" is not one of the labels',
        'Line 6: this "id" was answered before',
        'Line 7: no example has this "id"',
        "elsewhere",
        "The first without an answer: open-2, open-4.",
    ):
        assert words in submission.error


@pytest.mark.parametrize(
    ("name", "said"), [("other", " other v1."), ("open", " open v1."), ("hidden", " no set ")]
)
def test_ids_of_another_set_are_told_in_one_line(task, alice, version, name, said):
    make_set(task, "other", may_leave=True)
    make_set(task, "hidden", access="hidden", may_leave=True)
    rows = [
        SetRow(f"new-{n}", row.inputs, row.gold) for n, row in enumerate(read_set_rows(version))
    ]
    newer = make_version(version.evaluation_set, rows, None)
    submission = predictions(
        task, alice, newer, lines(version).replace(b"open-", name.encode() + b"-")
    )
    assert submission.outcome == "invalid_output"
    assert f"{name}-0" in submission.error
    assert said in submission.error
    assert len(submission.error.splitlines()) == 1


def test_a_file_of_rubbish_ends_after_some_lines(task, alice, version):
    submission = predictions(task, alice, version, b"rubbish\n" * 1000)
    named = submission.error.split("lines ", 1)[1].split(".")[0].split(", ")
    assert [int(line) for line in named] == [*range(2, precheck.MAX_PROBLEMS + 1)]


# Which examples


def test_examples_that_may_be_shown_come_from_open_sets_first(task):
    make_set(task, "hidden", access="hidden", may_leave=True)
    make_set(task, "closed")
    assert not any("Premise" in row["premise"] for row in list_public_inputs(task))
    make_set(task, "open", may_leave=True)
    assert {row["premise"] for row in list_public_inputs(task)} == {
        f"Premise {n}." for n in range(5)
    }


def test_a_task_without_sets_shows_its_own_examples(task):
    (first, *others) = list_public_inputs(task)
    assert len(others) == 4
    assert set(task.config.model_fields) <= set(first)


def test_a_task_without_anything_still_asks_five(task):
    text = task.config_text
    start = text.index("examples:")
    rest = text[start:].split("\n")
    end = next(n for n, line in enumerate(rest[1:], 1) if line and not line.startswith(" "))
    task.config_text = text[:start] + "\n".join(rest[end:])
    task.save(update_fields=["config_text"])
    assert len(list_public_inputs(task)) == 5
    ContextFactory(round=RoundFactory(task=task), fields={"premise": "A context."})
    assert list_public_inputs(task)[0] == {"premise": "A context.", "hypothesis": "An example."}


def test_what_another_evaluator_wrote_is_scored_and_comes_back_as_it_was_taken(task, alice):
    """Also what named no label: it is wrong, and may be taken in again."""
    version = make_set(task, "elsewhere", size=3, may_leave=True)
    logs = [[-9.0, -1.0, -9.0], [-1.0, -9.0, -9.0]]
    rows = [
        {
            "doc": {"uid": f"elsewhere-{n}", "choices": LABELS, "target": 1},
            "filtered_resps": [[log, False] for log in logs[n]],
        }
        for n in range(2)
    ]
    rows.append({"doc": {"uid": "elsewhere-2", "target": "neutral"}, "filtered_resps": ["Hm."]})
    data = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    one = checked(hand_in(task, alice, "predictions", data, evaluation_set=version))
    assert (one.state, one.error) == (State.DONE, "")
    run = evaluated(one)
    assert run.scores.get(metric="accuracy", slice="").value == pytest.approx(1 / 3)
    back = b"".join(convert_predictions(run))
    withdraw_model(submission=one, actor=alice)
    again = checked(hand_in(task, alice, "predictions", back, evaluation_set=version))
    assert b"".join(convert_predictions(evaluated(again))) == back


def evaluated(submission):
    run = submission.runs.get()
    jobs.evaluate_next(run.pk)
    run.refresh_from_db()
    return run
