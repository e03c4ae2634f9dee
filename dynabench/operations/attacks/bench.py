"""Runs hostile models on this machine's engine, in the sandbox that submissions get."""

import io
import json
import uuid
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from evaluation.contract import (
    BASE_IMAGE,
    MIB,
    BeatCallback,
    Ending,
    InvalidOutput,
    Outcome,
    Runnable,
)
from evaluation.isolation.inference.exchange import CollectedAnswers
from evaluation.isolation.sandbox.containers import (
    RUNTIME_IMAGE,
    DockerRunner,
    list_own_containers,
    remove_container,
)
from evaluation.isolation.sandbox.engine import connect_to_engine
from evaluation.isolation.sandbox.images import has_image
from evaluation.isolation.sandbox.limits import Limits

IMAGE_LABEL = "org.dynabench.hostile"
EXAMPLE_COUNT = 40
"""The number of examples in a run."""
LABELS = ("yes", "no")
BENCH_LIMITS = Limits(
    seconds=30,
    memory_bytes=128 * MIB,
    cpus=1,
    processes=64,
    scratch_bytes=8 * MIB,
    output_bytes=MIB,
    line_bytes=64 * 1024,
    log_bytes=8 * 1024,
)
# What every hostile image does: the first example brings the script. The names are its tools.
BOOT_SCRIPT = """
import json, sys
examples = [json.loads(line) for line in open("/input/examples.jsonl")]
def answer(example, label="yes", **more):
    print(json.dumps({"id": example["id"], "output": {"label": label}, **more}), flush=True)
def answer_all():
    for example in examples:
        answer(example)
def breach(what):
    print("BREACH:", what, file=sys.stderr, flush=True)
exec(examples[0]["inputs"]["script"])
"""
GOLD_ANSWER = "gold-7f3a-must-never-enter"
EXAMPLE_TEXT = "The text of example {} is nobody's but the task's."


class Breach(Exception):
    """Raised if the sandbox did not stop a hostile model. The message shows what was observed."""


def expect_that(condition: object, evidence: object) -> None:
    """Raise Breach with the evidence as its message unless the condition is true."""
    if not condition:
        raise Breach(str(evidence))


class HostileRun(NamedTuple):
    """The ending and the answers of a run. Missing answers are treated as in every evaluation.

    texts: the texts of the examples.
    """

    ending: Ending
    answers: CollectedAnswers
    texts: list[str]

    @property
    def labels(self) -> list[str | None]:
        """Return the answers in the order of the examples; None for a missing answer."""
        labels: list[str | None] = []
        for answer in self.answers.iterate_in_order():
            labels.append(answer.value if answer else None)
        return labels


class Bench:
    """A session of hostile runs.

    folder: the folder for its files. `close` removes everything that the session made elsewhere.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.token = folder, uuid.uuid4().hex[:8]
        self.image = self.build_image()
        # Without a name it would be removed together with an image that was built on it.
        with closing(connect_to_engine()) as client:
            client.images.get(self.image).tag(f"{IMAGE_LABEL}:{self.token}")
        self.is_gvisor = DockerRunner("").name == "docker-runsc"

    def build_image(self, *instructions: str) -> str:
        """Build an image for hostile models and return its id.

        instructions: further lines of its Dockerfile. Raises LookupError if none of the
        site's images exists to build on.
        """
        base_image = next(filter(has_image, (BASE_IMAGE, RUNTIME_IMAGE)), None)
        if base_image is None:
            raise LookupError(f"There is no image {BASE_IMAGE}: scripts/runtime_image.sh makes it.")
        command = json.dumps(["python3", "-c", BOOT_SCRIPT])
        label_line = f"LABEL {IMAGE_LABEL}={self.token}"
        lines = [f"FROM {base_image}", label_line, f"ENTRYPOINT {command}", "CMD []", *instructions]
        source = io.BytesIO("\n".join(lines).encode())
        with closing(connect_to_engine()) as client:
            # Without `rm` each step would leave a container.
            image, _ = client.images.build(fileobj=source, rm=True)
        return str(image.id)

    def close(self) -> None:
        """Remove the images, and any containers that a breach left behind."""
        # Containers first: an image that one uses cannot be removed.
        for name in self.list_leftover_containers():
            remove_container(name)
        with closing(connect_to_engine()) as client:
            own_images = {"label": f"{IMAGE_LABEL}={self.token}"}
            for image in client.images.list(filters=own_images):
                client.images.remove(image.id, force=True)

    def create_key(self) -> str:
        """Return a new run key that belongs to this session."""
        return f"hostile-{self.token}-{uuid.uuid4().hex[:8]}"

    def list_leftover_containers(self) -> list[str]:
        """Return the names of this session's containers that still exist."""
        return [container.name for container in list_own_containers(f"hostile-{self.token}-")]

    def write_inputs(self, script: str) -> Path:
        """Write a file of examples, the first of which contains the script, and return its path.

        A file with the right answers is in the same folder, which no model may be able to read.
        """
        # Runs go on at the same time, so each has a folder of its own.
        folder = self.folder / uuid.uuid4().hex
        folder.mkdir(parents=True)
        (folder / "gold.jsonl").write_text(json.dumps([GOLD_ANSWER] * EXAMPLE_COUNT))
        with (folder / "examples.jsonl").open("w") as file:
            for number in range(EXAMPLE_COUNT):
                inputs = {"text": EXAMPLE_TEXT.format(number), "script": ""}
                if number == 0:  # BOOT_SCRIPT runs the script of the first one
                    inputs["script"] = script
                file.write(json.dumps({"id": f"e{number}", "inputs": inputs}) + "\n")
        return folder / "examples.jsonl"

    def run(
        self,
        script: str,
        *,
        image: str = "",
        key: str = "",
        limits: Limits = BENCH_LIMITS,
        beat: BeatCallback = lambda: None,
    ) -> HostileRun:
        """Run a script as a model. Exceptions of `beat` propagate.

        script: Python code. key: the run's key, a new one by default. beat: called regularly.
        """
        answers = CollectedAnswers(
            "label", LABELS, [f"e{number}" for number in range(EXAMPLE_COUNT)]
        )
        ending = DockerRunner(key or self.create_key()).run(
            Runnable(image=image or self.image, labels=LABELS),
            self.write_inputs(script),
            limits,
            take=answers.take,
            beat=beat,
        )
        if ending.outcome == Outcome.OK:
            try:
                warning = answers.check_missing()
                if warning:
                    ending = replace(ending, warnings=(*ending.warnings, warning))
            except InvalidOutput as error:
                ending = replace(ending, outcome=Outcome.INVALID_OUTPUT, sentence=str(error))
        return HostileRun(
            ending, answers, [EXAMPLE_TEXT.format(number) for number in range(EXAMPLE_COUNT)]
        )
