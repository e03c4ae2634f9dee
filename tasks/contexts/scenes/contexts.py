"""Scenes as contexts of a task: drawn when the task is installed, never kept as files."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from tasks.contexts.media.decoding import picture
from tasks.contexts.media.services import store_decoded
from tasks.models import Task

from .drawing import png
from .scene import Scene, in_words, make_scenes


def drawn_contexts(file: Path, task: Task) -> Iterator[dict[str, Any]]:
    """The rows of contexts that a `scenes.json` asks for; their pictures are stored.

    A row's metadata says what is in its picture.
    """
    for scene, fields in drawn_scenes(file, task):
        yield {**fields, "metadata": {"shapes": _truth(scene)}}


def drawn_scenes(file: Path, task: Task) -> Iterator[tuple[Scene, dict[str, Any]]]:
    """Each scene with its picture, which is stored, and its tag.

    The file holds `seed`, `count`, and `examples`: the first so many scenes are those of the
    examples in the configuration.
    """
    asked = json.loads(file.read_bytes())
    first = asked["examples"]
    for scene in islice(make_scenes(asked["seed"]), first, first + asked["count"]):
        image = {**_stored(task, scene), "alt": in_words(scene)}
        yield scene, {"image": image, "tag": f"{len(scene.things)} shapes"}


def with_drawn_examples(file: Path, task: Task) -> str:
    """The configuration as text, whose examples name the pictures that are drawn and stored here.

    They are told by their words: another build of the library of pictures packs the same pixels
    into other bytes, and so gives another digest.
    """
    asked = json.loads(file.read_bytes())
    scenes = islice(make_scenes(asked["seed"]), asked["examples"])
    digests = {in_words(scene): _stored(task, scene)["digest"] for scene in scenes}
    text = task.config_text
    for example in (*task.config.examples.good, *task.config.examples.bad):
        for shown in example.context.values():
            if isinstance(shown, dict) and shown.get("alt") in digests:
                text = text.replace(shown["digest"], digests[shown["alt"]])
    return text


def _stored(task: Task, scene: Scene) -> dict[str, Any]:
    return store_decoded(task=task, found=picture(png(scene)))


def _truth(scene: Scene) -> list[dict[str, Any]]:
    """Rows and columns count from 1."""
    return [
        {
            "size": thing.size,
            "colour": thing.colour,
            "shape": thing.shape,
            "row": thing.row + 1,
            "column": thing.column + 1,
        }
        for thing in scene.things
    ]
