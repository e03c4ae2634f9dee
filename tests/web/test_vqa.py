"""The official task vqa: its pictures, its model as it is served, and one walk through it."""

import json
import re
from itertools import islice

import pytest
from PIL import Image

from annotation.models import Assignment, Example
from evaluation import cli
from evaluation.test_sets import control
from evaluation.test_sets.parsing import RowMaker
from evaluation.test_sets.selectors import read_set_rows
from evaluation.test_sets.source_services import make_control_version
from evaluation.training.shipped import install_starter
from serving.registry import ModelRegistry
from serving.spec import ModelSpec
from tasks.contexts.scenes.drawing import FILE_SCALE, draw_scene
from tasks.contexts.scenes.scene import describe_scene, make_scenes
from tasks.models import Context, Media, Round, Task
from tasks.rounds.loop import register_target
from tasks.rounds.states import set_round_state
from tasks.services import OFFICIAL_FOLDER, SCENES_FILE, _install_task
from tests.support.factories import UserFactory
from tests.support.judging import judge
from tests.support.model_server import serving, wait_for
from tests.support.writing import ok, open_form, signed_in
from tests.web.conftest import HTMX
from validation.models import Consensus

FOLDER = OFFICIAL_FOLDER / "vqa"
ASKED = json.loads((FOLDER / SCENES_FILE).read_text())
URL = "/t/vqa/write/"


@pytest.fixture
def task(db, settings, tmp_path):
    """Installed as by `quickstart`, with six pictures instead of all.

    The configuration names the examples' pictures as another build of Pillow would have.
    """
    settings.MEDIA_ROOT = tmp_path / "media"
    folder = tmp_path / "vqa"
    folder.mkdir()
    text = (FOLDER / "task.yaml").read_text()
    (folder / "task.yaml").write_text(re.sub(r"digest: (\w{32})(\w{32})", r"digest: \2\1", text))
    (folder / SCENES_FILE).write_text(json.dumps({**ASKED, "count": 6}))
    return _install_task(folder)


@pytest.fixture
def port(tmp_path):
    """The model server with the shipped model."""
    spec = ModelSpec("starter-vqa", str(install_starter("vqa", tmp_path)))
    registry = ModelRegistry({spec.name: spec}.get, lambda: [spec.name], tmp_path / "serving")
    wait_for(registry, spec.name)
    with serving(registry) as port:
        yield port
    registry.close()


@pytest.fixture
def round(task, port, settings):
    settings.MODEL_SERVER_URL = f"http://127.0.0.1:{port}"
    first = task.rounds.get()
    register_target(task=task, name="starter-vqa", round=first, source="/unpacked")
    return set_round_state(round=first, state=Round.State.OPEN, actor=None)


def test_the_pictures_are_drawn_stored_and_told_in_words(task):
    first = ASKED["examples"]
    scenes = list(islice(make_scenes(ASKED["seed"]), first, first + 6))
    contexts = Context.objects.filter(round__task=task).order_by("pk")
    assert [context.fields["image"]["alt"] for context in contexts] == [
        *map(describe_scene, scenes)
    ]
    assert Media.objects.filter(task=task, is_used=True).count() == 6 + first
    for context, scene in zip(contexts, scenes, strict=True):
        media = Media.objects.get(digest=context.fields["image"]["digest"])
        with media.file.open("rb") as file:
            assert (
                Image.open(file).convert("RGB").tobytes() == draw_scene(scene, FILE_SCALE).tobytes()
            )
        assert context.tag == f"{len(scene.figures)} shapes"
        assert len(context.metadata["shapes"]) == len(scene.figures)


def test_its_control_set_asks_by_the_grammar_on_its_pictures(task, monkeypatch, tmp_path):
    monkeypatch.setattr(control, "OFFICIAL_TASKS_FOLDER", tmp_path)
    version = make_control_version(task)
    rows = [*read_set_rows(version)]
    assert version.evaluation_set.name == "control"
    assert len({row.inputs["image"]["digest"] for row in rows}) == 6
    assert 6 < len(rows) <= 6 * control.QUESTIONS_PER_SCENE
    labels = {label.value for label in task.config.get_labels("answer")}
    assert {gold for row in rows for gold in row.gold} <= labels
    assert make_control_version(task) == version


def test_there_are_enough_pictures_and_all_differ():
    assert ASKED["count"] >= 300
    scenes = list(islice(make_scenes(ASKED["seed"]), ASKED["count"] + ASKED["examples"]))
    assert len({*scenes}) == len(scenes)


def test_the_examples_show_stored_pictures_in_their_words(task):
    shown = [e.context["image"] for e in (*task.config.examples.good, *task.config.examples.bad)]
    words = {*map(describe_scene, islice(make_scenes(ASKED["seed"]), ASKED["examples"]))}
    assert {picture["alt"] for picture in shown} == words
    for picture in shown:
        assert Media.objects.filter(task=task, digest=picture["digest"]).exists()


def truth(shapes, colour):
    return "no" if any(shape["colour"] == colour for shape in shapes) else "yes"


def test_people_fool_it_judge_it_and_see_it_in_their_work(round, alice):
    client = signed_in(alice)
    page = ok(client.get(URL)).text
    context = Assignment.objects.get().context
    picture = context.fields["image"]
    assert f'src="/media/{picture["digest"]}/"' in page
    assert f'alt="{picture["alt"]}"' in page
    for colour in ("red", "green", "blue", "purple", "orange"):
        question = f"Is it true that nothing here is {colour}?"
        answer = truth(context.metadata["shapes"], colour)
        form = open_form(client, URL, question=question, answer=answer)
        ok(client.post(URL, form, **HTMX))
        example = Example.objects.latest("pk")
        if example.outcome == "fooled":
            break
    assert example.outcome == "fooled", "five questions that people find trivial"
    said = example.target_outputs.get()
    assert said.output["answer"] != answer
    assert len(said.prob) == 21
    for number in range(3):
        judge(signed_in(UserFactory(email=f"j{number}@example.com")), f"label:{answer}",
              "/t/vqa/judge/")  # fmt: skip
    assert Consensus.objects.get(example=example).is_validated_error
    assert question in ok(client.get("/me/")).text


def test_strangers_try_it_out(round, client):
    page = ok(client.get("/t/vqa/try/")).text
    config = Task.objects.get(code="vqa").config
    assert any(c["image"]["digest"] in page for c in config.practice_contexts)
    form = open_form(client, "/t/vqa/try/", question="Is there a circle?", answer="yes")
    assert 'id="verdict"' in ok(client.post("/t/vqa/try/", form, **HTMX)).text
    assert not Example.objects.exists()
    assert "/t/vqa/" in ok(client.get("/")).text


def test_an_evaluation_by_hand_sends_the_pictures_themselves(task, monkeypatch):
    image = Context.objects.filter(round__task=task).first().fields["image"]
    row = {"image": image, "question": "Is there a star?"}
    rows, asked = [RowMaker(task.config).make_row(row, answer="yes")], []

    def note(question, attempt):
        asked.extend(question.prepare_inputs(each.inputs) for each in question.rows())
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "evaluate_set", note)
    with pytest.raises(KeyboardInterrupt):
        cli.evaluate_from_shell(task, cli.Examples("mine", lambda: rows, 1), None, None, [], print)
    (sent,) = asked
    assert sent["image"].startswith("data:image/png;base64,")
    assert sent["question"] == row["question"]


def test_no_answer_is_chosen_for_the_writer(round, alice):
    client = signed_in(alice)
    form = open_form(client, URL, question="Is there a circle?", answer="")
    assert client.post(URL, form, **HTMX).status_code == 422
    assert not Example.objects.exists()
    assert re.search(r'<select name="answer"[^>]*> ?<option value=""[^>]*></option>',
                     client.get(URL).text)  # fmt: skip
