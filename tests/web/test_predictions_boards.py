"""Boards of tasks that take predictions alone, with several sets: files of a name are one model."""

import gzip
import json
from datetime import timedelta

import pytest
import sentencepiece
from django.core.files.base import ContentFile
from django.test import Client
from django.utils import timezone

from core.errors import Refused
from evaluation.contract import SetRow
from evaluation.isolation.uploads.chunked import add_file
from evaluation.jobs import check_submission, evaluate_next
from evaluation.models import EvaluationRun, Submission
from evaluation.submissions import services as submissions
from evaluation.submissions.services import find_remaining_quota, submit_model
from evaluation.test_sets.services import create_set, make_version
from leaderboard.board.matrix import read_matrix
from leaderboard.jobs import renew_boards
from tests.support.factories import TaskFactory, UserFactory

JUDGE = """
version: 1
name: Small language models
goal: {text: Choose the sentence that is right.}
input:
  - {name: sentences, type: long_text}
  - {name: choice, type: multiclass, labels: [first, second]}
output: [choice]
verdict: {type: exact_match, fields: [choice]}
metrics: {main: accuracy}
"""
TRANSLATE = """
version: 1
name: Translation
goal: {text: Write a sentence that is hard to translate.}
input:
  - {name: source, type: long_text}
output:
  - {name: translation, type: long_text}
verdict: {type: ask_user}
metrics: {main: sp_bleu, also: [chrf]}
"""
SUBTASKS = ("blimp", "ewok", "glue")
PAIRS = {
    "en-de": ("The cat sat on a mat.", "Die Katze saß auf einer Matte."),
    "en-fr": ("The cat sat on a mat.", "Le chat était assis sur un tapis."),
    "de-fr": ("Die Katze saß auf einer Matte.", "Le chat était assis sur un tapis."),
}


@pytest.fixture(autouse=True)
def _media(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"


def task_of(code, text):
    return TaskFactory(code=code, name=code, config_text=text)


def make_set(task, name, rows):
    about = {"may_leave": True, "answers_public": True}
    return make_version(create_set(task=task, name=name, actor=None, **about), rows, None)


@pytest.fixture
def babylm(db):
    """A task with three sub-tasks of 20 examples each; the first sentence is always right."""
    task = task_of("babylm", JUDGE)
    for name in SUBTASKS:
        rows = [SetRow(f"{name}-{n}", {"sentences": f"{name} {n}"}, ("first",)) for n in range(20)]
        make_set(task, name, rows)
    return task


@pytest.fixture
def flores(db, settings, tmp_path):
    """Three pairs of languages, scored by spBLEU with pieces of a tiny model."""
    words = [text for pair in PAIRS.values() for text in pair] * 20
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(words), model_prefix=str(tmp_path / "tiny"), vocab_size=60,
        hard_vocab_limit=False, minloglevel=2,
    )  # fmt: skip
    settings.SP_BLEU_MODEL = tmp_path / "tiny.model"
    task = task_of("flores", TRANSLATE)
    for name, (source, target) in PAIRS.items():
        rows = [SetRow(f"{name}-{n}", {"source": f"{source} {n}"}, (target,)) for n in range(5)]
        make_set(task, name, rows)
    return task


def hand_in(task, owner, name, set_name, answers):
    """Predictions for a set, checked and scored. answers: by the number of the example."""
    version = task.evaluation_sets.get(name=set_name).versions.last()
    with version.inputs.open("rb") as file, gzip.open(file) as lines:
        uids = [json.loads(line)["uid"] for line in lines]
    field = task.config.answer_field
    text = "\n".join(
        json.dumps({"id": uid, "output": {field: answers(n)}}) for n, uid in enumerate(uids)
    ).encode()
    upload = add_file(owner, "predictions.jsonl", len(text), ContentFile(text))
    made = submit_model(
        task=task, owner=owner, kind="predictions", name=name, upload=upload, evaluation_set=version
    )
    check_submission(made.pk)
    made.refresh_from_db()
    assert made.state == "done", made.error
    for run in made.runs.all():
        evaluate_next(run.pk)
    return made


def right(share):
    """Answers of which this share is right."""
    return lambda n: "first" if n < 20 * share else "second"


def rows_of(client, code, query=""):
    board = client.get(f"/t/{code}/leaderboard/?format=json{query}").json()
    return {row["model"]: row for row in board["rows"]}


def test_a_mean_over_sub_tasks_ranks_models_of_several_files(client, babylm):
    """BabyLM-like: three files of a name are one line, whose score is the mean over the sets."""
    shares = {"Baby 1": (0.9, 0.8, 0.7), "Baby 2": (0.6, 0.6, 0.6), "Baby 3": (1.0, 0.5)}
    for name, of_sets in shares.items():
        owner = UserFactory()
        files = [
            hand_in(babylm, owner, name, one, right(share))
            for one, share in zip(SUBTASKS, of_sets, strict=False)
        ]
        submissions.publish_model(submission=files[0], actor=owner)
    renew_boards()
    rows = rows_of(client, "babylm")
    assert {name: row["rank"] for name, row in rows.items()} == {
        "Baby 1": "1",
        "Baby 2": "2",
        "Baby 3": "",
    }
    assert rows["Baby 1"]["dynascore"]["value"] == pytest.approx(60)  # from one in two to all
    assert rows["Baby 1"]["metrics"]["accuracy"]["value"] == pytest.approx(80)
    assert set(rows["Baby 1"]["sets"]) == set(SUBTASKS)
    assert rows["Baby 3"]["missing"] == ["glue"]
    without = rows_of(client, "babylm", "&d_glue=0")
    assert without["Baby 3"]["dynascore"]["value"] == pytest.approx(50)
    page = client.get("/t/babylm/leaderboard/").text
    assert page.count(">Baby 1</a>") == 1
    opened = client.get(f"/t/babylm/leaderboard/?open={rows['Baby 1']['id']}").text
    assert all(f"Scores of Baby 1 on {name} v1" in opened for name in SUBTASKS)


def test_pairs_of_languages_are_scored_by_pieces_and_letters(client, flores):
    """FLORES-like: spBLEU and chrF on each pair of languages."""
    said = {
        "Good": lambda pair: lambda n: PAIRS[pair][1],
        "Poor": lambda pair: lambda n: PAIRS[pair][1].replace("a", "o"),
    }
    for name, answer in said.items():
        owner = UserFactory()
        files = [hand_in(flores, owner, name, pair, answer(pair)) for pair in PAIRS]
        submissions.publish_model(submission=files[-1], actor=owner)
    renew_boards()
    rows = rows_of(client, "flores")
    assert rows["Good"]["rank"] == "1"
    assert rows["Good"]["metrics"]["sp_bleu"]["value"] == pytest.approx(100)
    assert rows["Good"]["metrics"]["chrf"]["value"] == pytest.approx(100)
    assert set(rows["Poor"]["sets"]["de-fr"]) == {"sp_bleu", "chrf"}
    assert 0 < rows["Poor"]["metrics"]["sp_bleu"]["value"] < 100
    assert "en-de v1" in client.get("/t/flores/leaderboard/").text


def test_a_new_version_of_a_set_takes_a_new_file_of_the_model(client, babylm, alice):
    owner = alice
    first = hand_in(babylm, owner, "Baby", "blimp", right(0.5))
    submissions.publish_model(submission=first, actor=owner)
    rows = [SetRow(f"new-{n}", {"sentences": f"new {n}"}, ("first",)) for n in range(20)]
    make_version(babylm.evaluation_sets.get(name="blimp"), rows, None)
    old = rows_of(client, "babylm", "&d_ewok=0&d_glue=0")["Baby"]
    (missing,) = old["missing"]
    assert missing.startswith("blimp (")
    again = hand_in(babylm, owner, "Baby", "blimp", right(0.75))
    submissions.publish_model(submission=again, actor=owner)
    row = rows_of(client, "babylm", "&d_ewok=0&d_glue=0")["Baby"]
    assert row["dynascore"]["value"] == pytest.approx(50)


def test_the_same_set_takes_one_file_of_a_name(babylm, alice):
    hand_in(babylm, alice, "Baby", "blimp", right(1))
    with pytest.raises(Refused) as refused:
        hand_in(babylm, alice, "Baby", "blimp", right(0.5))
    assert refused.value.field == "name"
    with pytest.raises(Refused) as refused:
        submit_model(
            task=babylm, owner=alice, kind="hub", name="Baby", source="a/b", revision="0" * 40
        )
    assert refused.value.field == "name"


def test_further_files_of_a_model_cost_no_quota(settings, babylm, alice):
    settings.SUBMISSIONS_PER_DAY = 2
    first = [hand_in(babylm, alice, "Baby", name, right(1)) for name in SUBTASKS]
    assert find_remaining_quota(alice, babylm).left == 1
    hand_in(babylm, alice, "Other", "blimp", right(1))
    assert find_remaining_quota(alice, babylm).left == 0
    submissions.withdraw_model(submission=first[0], actor=alice)
    assert find_remaining_quota(alice, babylm).left == 0  # what was withdrawn counts for itself


def test_a_name_of_somebody_else_is_another_model(babylm, alice, bob):
    hand_in(babylm, alice, "Baby", "blimp", right(1))
    hand_in(babylm, bob, "Baby", "ewok", right(1))
    Submission.objects.update(is_published=True)
    assert len(read_matrix(babylm).models) == 2


def test_actions_are_of_all_files(babylm, alice):
    files = [hand_in(babylm, alice, "Baby", name, right(1)) for name in SUBTASKS]
    EvaluationRun.objects.filter(submission=files[2]).update(state="failed", outcome="timeout")
    submissions.publish_model(submission=files[0], actor=alice)
    until = timezone.now().date() + timedelta(days=3)
    submissions.set_anonymous_until(submission=files[1], actor=alice, until=until)
    told = Submission.objects.order_by("queued_at").values_list("is_published", "anonymous_until")
    assert [*told] == [(True, until), (True, until), (False, until)]
    (model,) = read_matrix(babylm).models
    assert (model.name, model.owner, len(model.files)) == ("Anonymous 1", "", 2)
    (model,) = read_matrix(babylm, alice).models
    assert (model.name, model.is_published, len(model.files)) == ("Baby", False, 3)
    submissions.withdraw_model(submission=files[1], actor=alice)
    later = hand_in(babylm, alice, "Baby", "ewok", right(1))
    assert later.anonymous_until == until
    submissions.unpublish_model(submission=later, actor=alice)
    assert not Submission.objects.filter(is_published=True, withdrawn_at=None).exists()


def test_the_page_of_a_file_leads_to_the_others(as_alice, babylm, alice):
    files = [hand_in(babylm, alice, "Baby", name, right(1)) for name in SUBTASKS]
    page = as_alice.get(f"/m/{files[0].pk}/").text
    assert f'<a href="/m/{files[1].pk}/">ewok v1</a>' in page
    Submission.objects.exclude(pk=files[2].pk).update(is_published=True)
    page = Client().get(f"/m/{files[0].pk}/").text
    assert f"/m/{files[1].pk}/" in page
    assert f"/m/{files[2].pk}/" not in page


def test_results_of_a_file_are_those_of_its_model(client, as_alice, babylm, alice):
    files = [hand_in(babylm, alice, "Baby", name, right(1)) for name in SUBTASKS]
    found = as_alice.get(f"/api/v1/models/{files[2].pk}/results/").json()
    assert found["dynascore"] == pytest.approx(100)
    assert set(found["scores"]) == set(SUBTASKS)
    assert found["throughput"] is None


def test_two_models_of_files_are_compared(client, babylm, alice, bob):
    pair = []
    for owner, model, share in ((alice, "Baby", 1), (bob, "Child", 0.5)):
        pair += [hand_in(babylm, owner, model, name, right(share)) for name in SUBTASKS][:1]
        submissions.publish_model(submission=pair[-1], actor=owner)
    address = "/api/v1/tasks/babylm/leaderboard/compare/"
    found = client.get(address, {"a": pair[0].pk, "b": pair[1].pk}).json()
    assert {row["set"] for row in found["rows"]} == set(SUBTASKS)
    assert {row["better"] for row in found["rows"]} == {"a"}
    other = Submission.objects.filter(owner=alice).exclude(pk=pair[0].pk)[0]
    assert client.get(address, {"a": other.pk, "b": pair[1].pk}).json()["a"] == found["a"]
