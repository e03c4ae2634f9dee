"""The four communities that come ready: made by one command, with a submission of each."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command

from dynabench.communities.models import Community
from dynabench.communities.ready_services import READY_FOLDER
from evaluation.models import Submission
from evaluation.submissions.kinds import rows as rows_kind
from evaluation.submissions.receiving import ReceivedModel
from tasks.models import Task
from tests.support.archives import zip_of
from tests.support.evaluations import ScriptedRunner, run_with
from tests.support.factories import TaskFactory, UserFactory
from tests.support.submissions import work_off

OFFICIAL = ["nli", "qa", "sentiment", "hate-speech"]


@pytest.fixture(autouse=True)
def _media(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"


def add(name):
    UserFactory(email="boss@example.com")
    for _ in range(2):  # the second time nothing is added
        call_command("add_community", name, owner="boss@example.com", verbosity=0)
    return Community.objects.get(slug=name)


def rows_of(code):
    """The rows of each set of a ready task, by the place of its predictions in an archive."""
    (folder,) = READY_FOLDER.glob(f"*/{code}")
    for file in folder.glob("*.jsonl"):
        if file.stem != "pool":
            yield f"{code}/{file.name}", [*map(json.loads, file.read_text().splitlines())]


def predictions(codes, answer):
    """An archive in which each example has the answer that the function gives of its row."""
    files = {}
    for code in codes:
        field = Task.objects.get(code=code).config.answer_field
        for place, rows in rows_of(code):
            said = [(row["uid"], answer(row, field)) for row in rows]
            files[place] = "\n".join(
                json.dumps({"id": uid, "output": {field: value}, "prob": None})
                for uid, value in said
            )
    return SimpleUploadedFile("answers.zip", zip_of(files))


def submit(client, slug, name, **fields):
    page = client.post(f"/communities/{slug}/submit/", {"name": name, **fields})
    assert page.status_code == 302, page.context["form"].errors
    work_off()
    assert {one.state for one in Submission.objects.filter(name=name)} == {"done"}
    Submission.objects.filter(name=name).update(is_published=True)


def test_small_language_models_are_compared_in_tracks(as_alice, alice):
    made = add("small-language-models")
    codes = [entry.task.code for entry in made.entries.all()]
    assert codes == ["slm-grammar", "slm-meaning", "slm-words"]
    track = made.tracks[0]
    told = {"kind": "predictions", "track": track}
    submit(as_alice, made.slug, "All right", upload=predictions(codes, dict.get), **told)
    board = as_alice.get(f"/communities/{made.slug}/board/?track={track}").context["board"]
    (line,) = board.lines
    assert (line.entrant.name, line.missing) == ("All right", ())
    assert line.score.value == pytest.approx(100)
    assert {head.floor for head in board.columns} == {50}
    assert (
        not as_alice.get(f"/communities/{made.slug}/board/?track={made.tracks[1]}")
        .context["board"]
        .lines
    )


def test_translations_have_a_board_by_pair_with_filters(as_alice, client):
    made = add("translation")
    archive = predictions(
        ["translation-pairs"], lambda row, name: row[name] if "de" in row["pair"] else "Nothing."
    )
    submit(as_alice, made.slug, "German", kind="predictions", upload=archive)
    url = f"/communities/{made.slug}/board/pairs/translation-pairs/"
    board = client.get(url).context["pairs"]
    assert (len(board.pairs), board.metric) == (12, "chrf_pp")
    (line,) = board.lines
    assert line.points["en-de"].value == pytest.approx(100)
    assert line.points["en-fr"].value < 50
    german = client.get(f"{url}?target=de&metric=bleu").context["pairs"]
    assert (german.pairs, german.lines[0].rank) == (["en-de", "es-de", "fr-de"], "1")
    assert german.lines[0].score.value == pytest.approx(100)
    Task.objects.update(is_visible=False)
    client.logout()
    assert client.get(url).status_code == 404


def test_data_is_chosen_from_a_pool_and_one_model_learns_from_it(as_alice, monkeypatch):
    """tests/web/test_training_data.py has it learn in earnest; here it says the same of all."""
    learned: list = []
    monkeypatch.setattr(rows_kind, "train_on_rows", lambda config, rows, *_: learned.extend(rows))
    monkeypatch.setattr(rows_kind, "receive_weights", lambda *_: ReceivedModel("sha256:1"))
    run_with(monkeypatch, ScriptedRunner(lambda inputs: "positive"))
    made = add("data-centric")
    uids = [f"pool-{n}" for n in (0, 1, 3, 4, 8, 9, 11, 12, 16, 17, 19, 20)]
    rows = [{"uid": uid} for uid in uids] + [{"text": "It was lovely.", "label": "positive"}]
    archive = SimpleUploadedFile(
        "rows.zip", zip_of({"data-reviews.jsonl": "\n".join(map(json.dumps, rows))})
    )
    submit(as_alice, made.slug, "Chosen", kind="rows", upload=archive)
    (row,) = as_alice.get(f"/communities/{made.slug}/board/data/").context["rows"]
    assert (row.rows, row.chosen, row.labels["positive"]) == (13, 12, 7)
    assert row.points.value == 0  # half are right, as by guessing
    assert learned[0]["text"].startswith("The soup was spotless")


def test_adversarial_nlp_holds_the_official_four(as_alice):
    for code in OFFICIAL:  # else the command installs all that are official
        TaskFactory(code=code)
    made = add("adversarial-nlp")
    assert [entry.task.code for entry in made.entries.all()] == OFFICIAL
    commit = "0" * 40
    hub = {"kind": "hub", "name": "One", "source": "org/name", "revision": commit}
    assert as_alice.post(f"/communities/{made.slug}/submit/", hub).status_code == 302
    assert {one.task.code for one in Submission.objects.all()} == {*OFFICIAL}
