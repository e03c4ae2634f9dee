"""Files in the storage that are missing or damaged: the doctor finds them, and none is served."""

# ruff: noqa: F811  (fixtures are named where they are used)

import gzip
from pathlib import Path

import pytest
from django.core.files.base import ContentFile

from dynabench.operations.soundness import doctor
from evaluation.dataset_releases.stored_files import find_damages
from evaluation.isolation.uploads.model_folders import digest_folder
from evaluation.models import DatasetFile, EvaluationSetVersion
from evaluation.runs.model_cache import pack_folder
from tests.support.programs import _sound_engine, told  # noqa: F401
from tests.support.releases import _own_storage, closed, people, released  # noqa: F401
from tests.support.submissions import answered, make_set, scored, submission_of

pytestmark = pytest.mark.django_db
PAGE = "/t/nli/rounds/1/data/1/train.jsonl"
API = "/api/v1/tasks/nli/rounds/1/datasets/1/files/train.jsonl"


@pytest.fixture
def stored(closed, alice, tmp_path) -> dict[str, Path]:
    """One file of each kind, where it is kept."""
    released(closed)
    version = make_set(closed.task, "dev")
    folder = tmp_path / "model"
    (folder / "deep").mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "deep" / "weights").write_bytes(bytes(range(256)) * 100)
    with (tmp_path / "model.tar").open("wb") as file:
        pack_folder(folder, file, lambda: None)
    model = submission_of(closed.task, alice, state="done", outcome="ok")
    content = (tmp_path / "model.tar").read_bytes()
    model.size, model.digest = len(content), digest_folder(folder, lambda: None)
    model.file.save("model.tar", ContentFile(content))
    answers = submission_of(closed.task, alice, state="done", outcome="ok")
    answers.kind, answers.digest = "predictions", LINES_DIGEST
    answers.file.save("predictions.jsonl.gz", ContentFile(gzip.compress(b"lines\n")))
    image = submission_of(closed.task, alice, state="done", outcome="ok")
    image.kind, image.digest, image.size = "image", "sha256:of-the-engine", 1
    image.file.save("image.tar", ContentFile(content))
    writer = submission_of(closed.task, alice, state="done", outcome="ok")
    writer.kind, writer.digest, writer.size = "llm", "of-its-prompt-too", len(content)
    writer.file.save("model.tar", ContentFile(content))
    run = scored(model, version)
    answered(run, "neutral")
    train = DatasetFile.objects.get(name="train.jsonl")
    fields = (
        train.file,
        version.inputs,
        version.gold,
        model.file,
        answers.file,
        image.file,
        writer.file,
    )
    names = ("dataset", "inputs", "gold", "model", "answers", "image", "writer")
    return {
        **dict(zip(names, (Path(field.path) for field in fields), strict=True)),
        "predictions": Path(run.predictions.path),
    }


LINES_DIGEST = "58975ca22b214d1bf824a46d50b4cdec9b721839e7331d60fc68803c54e531ac"
KINDS = ("dataset", "inputs", "gold", "model", "answers", "image", "writer", "predictions")


def change_a_byte(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_whole_files_are_no_finding(stored):
    assert list(find_damages()) == []
    assert [found.state for found in doctor.check_media()] == ["ok"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_file_is_told_with_its_row(stored, kind):
    stored[kind].unlink()
    (damage,) = find_damages()
    assert stored[kind].match(damage.path)
    assert damage.message == "is missing"
    text, is_well = told(quick=True, media=True)
    assert damage.path in text
    assert damage.row in text
    assert not is_well
    assert told(quick=True)[1]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("image", "writer")])
def test_a_damaged_file_is_told(stored, kind):
    change_a_byte(stored[kind])
    (damage,) = find_damages()
    assert "damaged" in damage.message
    assert Path(stored[kind]).name in damage.path


@pytest.mark.parametrize("kind", ["dataset", "model", "image"])
def test_a_file_that_was_cut_off_is_told(stored, kind):
    content = stored[kind].read_bytes()
    stored[kind].write_bytes(content[: len(content) // 3])
    assert len(list(find_damages())) == 1


def test_a_set_of_other_answers_is_told(stored):
    version = EvaluationSetVersion.objects.get()
    lines = gzip.decompress(stored["gold"].read_bytes()).replace(b"entailment", b"neutral")
    stored["gold"].write_bytes(gzip.compress(lines))
    (damage,) = find_damages()
    assert version.gold.name in damage.path


@pytest.mark.parametrize("url", [PAGE, API])
def test_a_damaged_file_is_not_given_out(client, stored, url):
    whole = client.get(url)
    assert (whole.status_code, b"".join(whole)) == (200, stored["dataset"].read_bytes())
    change_a_byte(stored["dataset"])
    refused = client.get(url)
    assert refused.status_code == 503
    assert "X-Content-SHA256" not in refused
    part = client.get(url, headers={"Range": "bytes=3-"})
    assert part.status_code == 503
    stored["dataset"].unlink()
    assert client.get(url).status_code == 503
