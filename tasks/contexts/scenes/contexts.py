"""Draw scenes as contexts of a task when it is installed. The pictures are not source files."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from core.files.decoding import decode_picture
from tasks.contexts.media.services import store_decoded
from tasks.models import Task

from .drawing import encode_png
from .scene import Scene, describe_scene, make_scenes


def draw_contexts(file: Path, task: Task) -> Iterator[dict[str, Any]]:
    """Yield the contexts that a `scenes.json` describes, as rows, and store their pictures.

    A row's metadata describes the shapes in its picture.
    """
    for scene, fields in draw_scenes(file, task):
        yield {**fields, "metadata": {"shapes": _describe_shapes(scene)}}


def draw_scenes(file: Path, task: Task) -> Iterator[tuple[Scene, dict[str, Any]]]:
    """Yield each scene with the row of its context: the stored picture and a tag.

    The file contains `seed`, `count` and `examples`, the number of first scenes to skip because the
    examples in the configuration show them.
    """
    plan = json.loads(file.read_bytes())
    first = plan["examples"]
    # The first scenes belong to the examples on the task's page, which people have seen.
    for scene in islice(make_scenes(plan["seed"]), first, first + plan["count"]):
        image = {**_store_scene(task, scene), "alt": describe_scene(scene)}
        yield scene, {"image": image, "tag": f"{len(scene.figures)} shapes"}


def draw_examples(file: Path, task: Task) -> str:
    """Store the pictures of the examples; return the configuration text that refers to them.

    Pictures are matched by their descriptions, because another build of the imaging library
    compresses the same pixels to other bytes, with another digest.
    """
    plan = json.loads(file.read_bytes())
    scenes = islice(make_scenes(plan["seed"]), plan["examples"])
    digests = {describe_scene(scene): _store_scene(task, scene)["digest"] for scene in scenes}
    text = task.config_text
    for example in task.config.examples.good + task.config.examples.bad:
        for image in example.context.values():
            if isinstance(image, dict) and image.get("alt") in digests:
                text = text.replace(image["digest"], digests[image["alt"]])
    return text


def _store_scene(task: Task, scene: Scene) -> dict[str, Any]:
    return store_decoded(task=task, decoded_file=decode_picture(encode_png(scene)))


def _describe_shapes(scene: Scene) -> list[dict[str, Any]]:
    """Return the features of the shapes. Rows and columns are counted from 1."""
    shapes = []
    for figure in scene.figures:
        shapes.append(
            {
                "size": figure.size,
                "colour": figure.colour,
                "shape": figure.shape,
                "row": figure.row + 1,
                "column": figure.column + 1,
            }
        )
    return shapes
