"""Pictures and recordings for programs, and in configurations."""

# ruff: noqa: F811  (fixtures are named where they are used)

import json
from io import BytesIO

import pytest
from PIL import Image

from annotation.models import Example
from tasks.config.loading import check_config
from tasks.contexts.media.services import store_media
from tasks.models import Media
from tests.support import media
from tests.support.picture_tasks import (
    SVG,
    VQA,
    as_program,
    coded,
    own_storage,  # noqa: F401
    round,  # noqa: F401
    task,  # noqa: F401
)
from tests.support.writing import ok, signed_in


def test_a_program_uploads_and_names_it(round, alice):
    made = as_program(alice, "post", "media/", kind="image", content=coded(media.png("blue")))
    assert made.status_code == 201, made.text
    value = made.json()
    got = signed_in(alice).get(f"/api/v1/tasks/pictures/media/{value['digest']}/")
    assert Image.open(BytesIO(got.content)).getpixel((0, 0)) == (0, 0, 255)
    assignment = as_program(alice, "post", "assignment/").json()
    url = f"/api/v1/assignments/{assignment['id']}/examples/"
    inputs = {"question": "Which colour?", "answer": "red"}
    for photo in (
        {"digest": value["digest"]},  # no words
        {"digest": "0" * 64, "alt": "It"},
        {"digest": value["digest"], "alt": "It", "mime": "text/html", "more": 1},
        "https://example.com/1.png",
    ):
        body = {"inputs": inputs | {"photo": photo}}
        reply = signed_in(alice).post(url, body, content_type="application/json")
        is_whole = isinstance(photo, dict) and "more" in photo
        assert reply.status_code == (201 if is_whole else 422), reply.text
        if not is_whole:
            assert "inputs.photo" in reply.json()["error"]["fields"]
    assert Example.objects.get().inputs["photo"] == value | {"alt": "It"}  # nothing of its own


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"kind": "image", "content": "§"}, "content"),
        ({"kind": "video", "content": ""}, "kind"),
        ({"kind": "image", "content": coded(SVG)}, None),
    ],
)
def test_a_program_reads_why_a_file_is_not_taken(round, alice, body, field):
    reply = as_program(alice, "post", "media/", **body)
    assert reply.status_code == 422
    assert field is None or field in reply.json()["error"]["fields"]
    assert Media.objects.count() == 1


@pytest.mark.parametrize(
    ("old", "new", "path"),
    [
        ("validation:", "slices: [scene]\nvalidation:", "slices[0]"),
        ("name: question", "name: photo_alt", "input[0].name"),
        ("name: question", "name: scene_file", "input[0].name"),
        ("output: [answer]", "output: [answer, {name: p, type: image}]", "output[1].type"),
        ("output: [answer]", "metadata: {create: [{name: x, type: image}]}\noutput: [answer]",
         "metadata.create[0].type"),
        ("type: image, label: Scene", "type: image, max_length: 3", "context[0].max_length"),
        ("metrics:", "support: {prompt_field: scene}\nmetrics:", "support.prompt_field"),
        ("{type: string_f1, field: answer}", "{type: contains, field: photo}", "verdict.field"),
    ],
)  # fmt: skip
def test_what_a_file_cannot_do_is_refused_where_it_stands(old, new, path):
    assert old in VQA
    config, problems = check_config(VQA.replace(old, new, 1))
    assert config is None
    assert path in [one.path for one in problems if one.severity == "error"]
    assert all(one.fix for one in problems)


def test_the_pictures_of_examples_are_stored_and_stay(round, alice):
    round.task.members.create(user=alice, role="owner")
    value = store_media(task=round.task, kind="image", data=media.png("blue")) | {"alt": "Blue"}
    for shown, status in ((value | {"digest": "0" * 64}, 422), (value, 200)):
        good = {"context": {"scene": shown}, "input": {"question": "Which?", "answer": "red"}}
        text = f"{VQA}examples: {json.dumps({'good': [good | {'reason': 'It is.'}]})}\n"
        told = as_program(alice, "get", "config/").json()
        saved = as_program(alice, "put", "config/", config_text=text, version=told["version"])
        assert saved.status_code == status, saved.text
    assert Media.objects.get(digest=value["digest"]).is_used
    page = ok(signed_in(alice).get("/t/pictures/try/")).text
    assert f'src="/media/{value["digest"]}/"' in page
