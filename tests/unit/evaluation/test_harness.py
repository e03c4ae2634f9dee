"""The harness: which examples go together, what it answers, what it says when it cannot."""

import io
import json
import random
import re
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.contract import Runnable
from evaluation.isolation.sandbox.harness import arguments, shim
from evaluation.isolation.sandbox.harness.answering import (
    answer_batches,
    read_examples,
    stream_answers,
)
from evaluation.isolation.sandbox.harness.batches import (
    BATCH_PIECES,
    BATCH_TOKENS,
    Example,
    iterate_plan_lines,
    make_batches,
)
from evaluation.isolation.sandbox.harness.loading import Model, load_classifier
from evaluation.runs.shards import LineFile, cut_batches
from serving.errors import BadRequestError, MisconfiguredError, ServingError
from tests.support.serving_models import KINDS, tiny_model

ROOT = Path(__file__).parents[3]
WORDS = ("a", "tall", "grey", "heron", "stood", "in the river", "for an hour or two", "unmoved")
RANDOM = random.Random(4)
TEXTS = [" ".join(RANDOM.choices(WORDS, k=RANDOM.randint(1, 90))) for _ in range(120)]
MODEL = Runnable(fields=("text",), output="label", labels=("no", "yes"))


@pytest.fixture(autouse=True)
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading says in the environment that OpenMP has one thread: not to the tests after these."""
    monkeypatch.setenv("OMP_NUM_THREADS", "2")  # put back afterwards


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("models")
    return {kind: tiny_model(place / kind, kind) for kind in KINDS}


def asked(folder: Path, kind: str) -> Namespace:
    about = KINDS[kind]
    labels = about["labels"] and tuple(about["labels"])
    model = Runnable(fields=tuple(about["fields"]), output=about["output"], labels=labels)
    return arguments.read_command_line(
        arguments.build_command_line(model, folder=str(folder), inputs="-", threads=2)
    )


def lines_of(model: Model, ids: list[int]) -> list[bytes]:
    """Examples in this order; a text is the same under the same number."""
    return [
        json.dumps({"id": f"x{n}", "inputs": dict.fromkeys(model.codec.fields, TEXTS[n])}).encode()
        for n in ids
    ]


def answered(model: Model, lines: list[bytes], workers: int = 1) -> dict[str, Any]:
    examples = list(read_examples(lines, model.codec))
    parts = answer_batches(examples, model.codec, model.backend, workers=workers)
    rows = [json.loads(line) for part in parts for line in part.splitlines()]
    return {row.pop("id"): row for row in rows}


sized = st.builds(
    Example,
    size=st.integers(3, 2000),
    pieces=st.integers(1, 9),
    texts=st.tuples(st.text(max_size=3)),
    id=st.uuids().map(str),
)


@given(st.lists(sized, max_size=200), st.randoms(use_true_random=False))
def test_batches_hold_everything_once_and_are_bounded(
    examples: list[Example], chance: random.Random
) -> None:
    found = list(make_batches(examples))
    assert sorted(example for batch in found for example in batch) == sorted(examples)
    for batch in found:
        pieces, longest = sum(e.pieces for e in batch), max(e.size for e in batch)
        assert len(batch) == 1 or (pieces <= BATCH_PIECES and pieces * longest <= BATCH_TOKENS)
    order, names = list(examples), [e.id for e in examples]
    chance.shuffle(order)
    chance.shuffle(names)
    renamed = [e._replace(id=name) for e, name in zip(order, names, strict=True)]
    assert [[e[:3] for e in batch] for batch in make_batches(renamed)] == [
        [e[:3] for e in batch] for batch in found
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_numbers_in_any_order_with_any_number_of_threads(
    kind: str, folders: dict[str, Path]
) -> None:
    model = load_classifier(asked(folders[kind], kind))
    order = list(range(len(TEXTS)))
    first = answered(model, lines_of(model, order))
    random.Random(1).shuffle(order)
    assert answered(model, lines_of(model, order), workers=3) == first
    assert len(first) > 1
    for id, answer in first.items():
        text = TEXTS[int(id[1:])]
        alone = answered(model, lines_of(model, [int(id[1:])]))[id]
        if model.codec.labels:
            assert answer["prob"] == pytest.approx(alone["prob"], abs=1e-5)
        else:
            said = answer["output"]
            assert text[said["start"] : said["end"]] == said["answer"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_set_in_shards_has_the_same_numbers_to_the_last_digit(
    kind: str, folders: dict[str, Path], tmp_path: Path
) -> None:
    """Padding decides the last digits of a float model, so its batches must stay."""
    model, file = load_classifier(asked(folders[kind], kind)), tmp_path / "examples.jsonl"
    file.write_bytes(b"".join(line + b"\n" for line in lines_of(model, [*range(len(TEXTS))])))

    def raw(lines: list[bytes]) -> list[bytes]:
        examples = list(read_examples(lines, model.codec))
        parts = answer_batches(examples, model.codec, model.backend, workers=2)
        return b"".join(parts).splitlines()

    whole, lines = raw(file.read_bytes().splitlines()), LineFile(file)
    plan = iterate_plan_lines([*read_examples(file.read_bytes().splitlines(), model.codec)])
    shards = [*cut_batches(lines.build_batches(plan), 10)]
    found = [line for shard in shards for line in raw(lines.build_shard_text(shard).splitlines())]
    assert len(shards) > 1
    assert sorted(found) == sorted(whole)


def test_what_the_model_cannot_read_is_left_out_and_said(
    folders: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """A hypothesis that leaves no room for its premise; its text is not repeated."""
    model = load_classifier(asked(folders["pair-classification"], "pair-classification"))
    inputs = {"premise": "a heron", "hypothesis": " ".join(["river"] * 80)}
    lines = [json.dumps({"id": "x", "inputs": inputs}).encode()]
    assert not answered(model, lines)
    told = capsys.readouterr().err
    assert told.startswith("Line 1 ")
    assert "80 tokens" in told
    assert "river" not in told
    inputs = {"premise": "a heron", "hypothesis": "a river"}
    lines.append(json.dumps({"id": "y", "inputs": inputs}).encode())
    declined, said = map(json.loads, stream_answers(lines, model))  # where somebody waits for it
    assert declined == {"id": "x", "output": None}
    assert said == {"id": "y", **answered(model, lines[1:])["y"]}


@pytest.mark.parametrize(
    ("inputs", "told"),
    [
        ({"texts": "no"}, "Line 2 of the examples: the field 'text' is missing. It has: texts."),
        ({"text": 3}, "Line 2 of the examples: the field 'text' is no text. It has: text."),
    ],
)
def test_a_wrong_field_is_named(
    inputs: dict[str, Any], told: str, folders: dict[str, Path]
) -> None:
    model = load_classifier(asked(folders["sequence-classification"], "sequence-classification"))
    lines = [*lines_of(model, [0]), json.dumps({"id": "x", "inputs": inputs}).encode()]
    with pytest.raises(BadRequestError, match=f"^{re.escape(told)}$"):
        answered(model, lines)


def test_labels_are_spelled_as_the_task_does(folders: dict[str, Path]) -> None:
    wanted = asked(folders["sequence-classification"], "sequence-classification")
    wanted.label = ["Yes", "NO"]
    assert load_classifier(wanted).codec.labels == ("NO", "Yes")


@pytest.mark.parametrize(
    ("kind", "labels", "told"),
    [
        ("sequence-classification", ["no", "maybe"], "answers no, yes; the task's labels are no"),
        ("sequence-classification", ["no", "yes", "maybe"], "answers no, yes; the task's labels"),
        ("sequence-classification", None, "but the task wants a span"),
        ("extractive-qa", ["no", "yes"], "but the task wants one of no, yes"),
    ],
)
def test_a_model_for_another_task_is_refused(
    kind: str, labels: Any, told: str, folders: dict[str, Path]
) -> None:
    wanted = asked(folders[kind], kind)
    wanted.label = labels
    with pytest.raises(MisconfiguredError, match=told):
        load_classifier(wanted)


def test_weights_without_the_head_are_refused(tmp_path: Path) -> None:
    """transformers would fill the head by chance, and each run would answer something else."""
    from safetensors.torch import load_file, save_file

    kind = "sequence-classification"
    folder = tiny_model(tmp_path / "model", kind)
    weights = load_file(folder / "model.safetensors")
    del weights["classifier.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(MisconfiguredError, match=r"lack classifier\.weight"):
        load_classifier(asked(folder, kind))


def test_a_model_that_fails_says_at_what(folders: dict[str, Path]) -> None:
    class Broken:
        def run(self, batch: Any) -> Any:
            raise IndexError("index out of range in self")

    model = load_classifier(asked(folders["sequence-classification"], "sequence-classification"))
    examples = list(read_examples(lines_of(model, [0]), model.codec))
    with pytest.raises(ServingError, match=r"1 examples .* \d+ tokens: IndexError"):
        list(answer_batches(examples, model.codec, Broken(), workers=1))


def test_the_pins_of_the_runtime_image_are_ours() -> None:
    def pins(name: str) -> set[str]:
        return set(re.findall(r"^\w[\w-]*==\S+", (ROOT / name).read_text(), re.M))

    runtime = pins("requirements-runtime.txt")
    assert len(runtime) == 7
    assert runtime <= pins("requirements.txt") | pins("requirements-web.txt")


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ([], "An answer must be an object with the field 'label'."),
        ({"label": "no", "prob": {"no": 0}}, "prob must hold a number for each label, not all 0."),
        ({"label": "no", "prob": {"no": "1"}}, "prob must hold a number"),
        ({"label": "no", "prob": [1]}, "prob must hold a number"),
    ],
)
def test_the_shim_says_what_is_wrong_with_an_answer(answer: Any, told: str) -> None:
    with pytest.raises(shim.ModelFailed, match=told):
        shim.format_line({"id": "x"}, answer, "label")


def test_the_shim_passes_over_empty_lines_and_a_mark() -> None:
    lines = io.BytesIO(b'\xef\xbb\xbf{"id": 1}\r\n\r\n \n{"id": 2}\n\n{"id": 3}')
    assert [*shim.read_batches(lines, 2)] == [[{"id": 1}, {"id": 2}], [{"id": 3}]]


def test_the_shim_knows_the_port_of_an_image() -> None:
    def port(adapter: str, exposed: Any) -> str:
        config = {"ExposedPorts": exposed, "Entrypoint": None, "Cmd": ["serve"]}
        entrypoint, own = arguments.build_shim_command(
            Runnable(image="sha256:1", adapter=adapter), config, shim="s", inputs="i"
        )
        assert own == ["serve"]
        return entrypoint[3]

    assert port("dynalab", None) == "8080"
    assert port("dynalab", {"8081/tcp": {}, "8080/tcp": {}, "70/tcp": {}}) == "8080"
    assert port("dynabench2", {"8000/tcp": {}}) == "8000"


def test_the_images_sources_hold_all_that_the_harness_imports(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    script = (root / "scripts" / "runtime_image.sh").read_text()
    named = re.search(r"^SOURCES=\(.*?\)$", script, re.MULTILINE | re.DOTALL)
    assert named
    copy = f'cd {root}; {named[0]}; cp -r --parents "${{SOURCES[@]}}" {tmp_path}'
    subprocess.run(["bash", "-ec", copy], check=True)
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import evaluation.isolation.sandbox.harness.loading as loading\n"
        "print(loading.__file__, 'django' in sys.modules)"
    )
    command = [sys.executable, "-I", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert done.stdout.split()[0].startswith(str(tmp_path))
    assert done.stdout.split()[1] == "False"
