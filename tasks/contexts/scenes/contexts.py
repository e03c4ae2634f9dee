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
    """Yield the rows of contexts that a `scenes.json` describes, and store their pictures.

    A row's metadata describes the shapes in its picture.
    """
    for scene, fields in drawn_scenes(file, task):
        yield {**fields, "metadata": {"shapes": _truth(scene)}}


def drawn_scenes(file: Path, task: Task) -> Iterator[tuple[Scene, dict[str, Any]]]:
    """Yield each scene with its stored picture and its tag.

    The file contains `seed`, `count` and `examples`: how many of the first scenes are those of the
    examples in the configuration.
    """
    plan = json.loads(file.read_bytes())
    first = plan["examples"]
    # The first scenes belong to the examples on the task's page, which people have seen.
    for scene in islice(make_scenes(plan["seed"]), first, first + plan["count"]):
        image = {**_stored(task, scene), "alt": in_words(scene)}
        yield scene, {"image": image, "tag": f"{len(scene.things)} shapes"}


def with_drawn_examples(file: Path, task: Task) -> str:
    """Return the configuration text, with its examples referring to the pictures stored here.

    Pictures are matched by their descriptions: another build of the imaging library compresses the
    same pixels to other bytes, which have another digest.
    """
    plan = json.loads(file.read_bytes())
    scenes = islice(make_scenes(plan["seed"]), plan["examples"])
    digests = {in_words(scene): _stored(task, scene)["digest"] for scene in scenes}
    text = task.config_text
    for example in task.config.examples.good + task.config.examples.bad:
        for image in example.context.values():
            if isinstance(image, dict) and image.get("alt") in digests:
                text = text.replace(image["digest"], digests[image["alt"]])
    return text


def _stored(task: Task, scene: Scene) -> dict[str, Any]:
    return store_decoded(task=task, decoded_file=picture(png(scene)))


def _truth(scene: Scene) -> list[dict[str, Any]]:
    """Return a description of the shapes. Rows and columns count from 1."""
    shapes = []
    for thing in scene.things:
        shapes.append(
            {
                "size": thing.size,
                "colour": thing.colour,
                "shape": thing.shape,
                "row": thing.row + 1,
                "column": thing.column + 1,
            }
        )
    return shapes
