"""Questions on pictures: answers as transformers gives them, and pictures within bounds."""

import base64
import json
import time
import zlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from serving import pictures
from serving.errors import BadRequestError, MisconfiguredError
from serving.pictures import read_pixels
from serving.registry import ServedModel
from serving.spec import VISUAL_QUESTION_ANSWERING, ModelSpec, PictureSettings, open_folder
from tests.support.serving_models import tiny_vilt

SETTINGS = PictureSettings(16, (0.5, 0.5, 0.5), (0.5, 0.5, 0.5))


def drawn(seed: int = 0, size: tuple[int, int] = (40, 24), mode: str = "RGB") -> Image.Image:
    chance = np.random.default_rng(seed)
    shape = (size[1], size[0], len(mode))
    return Image.fromarray(chance.integers(0, 256, shape, np.uint8), mode)


def coded(image: Image.Image, kind: str = "PNG", **options: Any) -> str:
    file = BytesIO()
    image.save(file, kind, **options)
    return base64.b64encode(file.getvalue()).decode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_vilt(tmp_path_factory.mktemp("vilt") / "model")


@pytest.fixture(scope="module", params=["onnx", "torch"])
def model(
    folder: Path, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServedModel]:
    spec = ModelSpec("vilt", str(folder), backend=request.param)
    served = ServedModel(spec, tmp_path_factory.mktemp("cache"), max_queued=64)
    yield served
    served.close()


ROWS = [
    {"image": coded(drawn(number)), "question": question}
    for number, question in enumerate(["Red?", "How many stars are there?", "Is it?", "What is it"])
]


def expected(folder: Path, row: dict[str, str]) -> dict[str, float]:
    """What transformers' own processing and model say."""
    import torch
    from transformers import AutoTokenizer, ViltForQuestionAnswering, ViltImageProcessorPil

    image = Image.open(BytesIO(base64.b64decode(row["image"]))).convert("RGB")
    processor = ViltImageProcessorPil(size={"shortest_edge": 16}, size_divisor=8, do_resize=False)
    square = image.resize((16, 16), Image.Resampling.BICUBIC)
    inputs = AutoTokenizer.from_pretrained(folder)(row["question"], return_tensors="pt")
    inputs |= processor(square, return_tensors="pt")
    with torch.inference_mode():
        logits = ViltForQuestionAnswering.from_pretrained(folder).eval()(**inputs).logits[0]
    return dict(zip(["yes", "no", "red"], logits.softmax(0).tolist(), strict=True))


def test_answers_are_those_of_transformers(folder: Path, model: ServedModel) -> None:
    answers = model.submit(ROWS, deadline=time.monotonic() + 60).result(60)
    for row, answer in zip(ROWS, answers, strict=True):
        assert answer.prob == pytest.approx(expected(folder, row), abs=1e-4)
        assert answer.output == {"answer": max(answer.prob, key=answer.prob.__getitem__)}
    assert len({json.dumps(answer.prob) for answer in answers}) == len(ROWS)


def test_both_the_picture_and_the_question_decide(model: ServedModel) -> None:
    one, other = ROWS[:2]
    mixed = [one, {**one, "image": other["image"]}, {**one, "question": other["question"]}]
    answers = model.submit(mixed, deadline=time.monotonic() + 60).result(60)
    assert len({json.dumps(answer.prob) for answer in answers}) == 3


def test_a_question_that_is_too_long_is_refused(model: ServedModel) -> None:
    with pytest.raises(BadRequestError) as refused:
        model.submit([{**ROWS[0], "question": "why " * 40}], deadline=time.monotonic() + 60)
    assert refused.value.fields.keys() == {"question"}


def test_the_kind_and_the_labels_are_read_from_the_folder(folder: Path) -> None:
    opened = open_folder(ModelSpec("vilt", str(folder)))
    assert (opened.kind, opened.fields, opened.output) == (
        VISUAL_QUESTION_ANSWERING,
        ("image", "question"),
        "answer",
    )
    assert opened.labels == ("yes", "no", "red")
    assert opened.pictures == SETTINGS


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("config.json", {"model_type": "blip"}),
        ("config.json", {"image_size": 10_000}),
        ("preprocessor_config.json", {"image_std": [0.5, 0.5, 0]}),
        ("preprocessor_config.json", {"image_mean": 0.5}),
    ],
)
def test_other_models_and_settings_are_refused(
    folder: Path, tmp_path: Path, name: str, changes: dict[str, Any]
) -> None:
    for file in folder.iterdir():
        (tmp_path / file.name).symlink_to(file)
    path = tmp_path / name
    before = json.loads(path.read_text()) if path.exists() else {}
    path.unlink(missing_ok=True)
    path.write_text(json.dumps(before | changes))
    with pytest.raises(MisconfiguredError):
        open_folder(ModelSpec("vilt", str(tmp_path)))


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP"])
def test_pictures_become_squares_of_numbers(kind: str) -> None:
    white = Image.new("RGB", (300, 100), "white")
    for text in (coded(white, kind), f"data:image/any;base64,{coded(white, kind)}"):
        pixels = read_pixels(text, "image", SETTINGS)
        assert pixels.shape == (3, 16, 16)
        assert pixels == pytest.approx(1, abs=0.02)


def test_what_is_transparent_is_white() -> None:
    clear = Image.new("RGBA", (20, 20), (0, 0, 0, 0))
    assert (read_pixels(coded(clear), "image", SETTINGS) == 1).all()


def bomb() -> str:
    """A PNG that says it has 60,000 x 60,000 pixels, and has none."""
    data = bytearray(base64.b64decode(coded(Image.new("1", (8, 8)))))
    data[16:24] = (60_000).to_bytes(4, "big") * 2
    data[29:33] = zlib.crc32(data[12:29]).to_bytes(4, "big")
    return base64.b64encode(data).decode()


BAD = {
    "not base64": "§",
    "nothing": "",
    "text": base64.b64encode(b"<svg xmlns='http://www.w3.org/2000/svg'/>").decode(),
    "gif": coded(drawn(), "GIF"),
    "cut off": coded(drawn())[:400],
    "animated": coded(drawn(), "PNG", save_all=True, append_images=[drawn(1)]),
    "a bomb": bomb(),
    "too many bytes": "A" * (pictures.MAX_BYTES // 3 * 4 + 8),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_pictures_are_refused_by_their_field(name: str) -> None:
    with pytest.raises(BadRequestError) as refused:
        read_pixels(BAD[name], "image", SETTINGS)
    assert refused.value.fields.keys() == {"image"}
