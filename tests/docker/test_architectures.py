"""Some classifiers of the table answer in the real sandbox as the model alone."""

import subprocess
from pathlib import Path
from uuid import uuid4

import pytest

from evaluation.contract import Outcome, Runnable
from evaluation.isolation.sandbox.containers import DockerRunner
from evaluation.isolation.sandbox.limits import Limits
from tests.support.architectures import (
    ARCHITECTURES,
    LABELS,
    TEXTS,
    chances_of,
    check_close,
    example_lines,
    make_model,
    reference,
)

pytestmark = pytest.mark.docker
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["gpt2 whose tokenizer has no padding", "fnet", "xlnet"])
def test_a_submission_in_the_sandbox_answers_as_the_model_alone(name: str, tmp_path: Path) -> None:
    subprocess.run([ROOT / "scripts" / "runtime_image.sh"], check=True)
    folder, inputs = make_model(name, tmp_path / "model"), tmp_path / "examples.jsonl"
    inputs.write_bytes(b"".join(example_lines([{"text": text} for text in TEXTS])))
    answers: list[bytes] = []
    ending = DockerRunner(f"architectures-{uuid4().hex[:12]}").run(
        Runnable(folder, fields=("text",), output="label", labels=LABELS),
        inputs,
        Limits(),
        take=answers.append,
        beat=lambda: None,
    )
    assert ending.outcome == Outcome.OK, ending.sentence
    ask = reference(folder, ARCHITECTURES[name].limit)
    check_close(f"{name}, sandbox", chances_of(answers), [ask(text) for text in TEXTS])
