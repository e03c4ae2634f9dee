"""Runs hostile models on this machine's engine, in the sandbox that submissions get."""

import io
import json
import uuid
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from evaluation.contract import BASE_IMAGE, MIB, Beat, Ending, InvalidOutput, Outcome, Runnable
from evaluation.isolation.inference.exchange import CollectedAnswers
from evaluation.isolation.sandbox.containers import (
    RUNTIME_IMAGE,
    DockerRunner,
    list_ours,
    remove_container,
)
from evaluation.isolation.sandbox.engine import connect
from evaluation.isolation.sandbox.images import has_image
from evaluation.isolation.sandbox.limits import Limits

IMAGE_LABEL = "org.dynabench.hostile"
EXAMPLE_COUNT = 40
"""Examples of a run."""
LABELS = ("yes", "no")
LIMITS = Limits(
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
BOOT = """
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
    """Raised when a hostile model got further than it may. The message shows what was seen."""


def expect_that(condition: object, evidence: object) -> None:
    """Raise Breach with the evidence as its message unless the condition is true."""
    if not condition:
        raise Breach(str(evidence))


class HostileRun(NamedTuple):
    """The ending and the answers of a run, with missing answers treated as in every evaluation."""

    ending: Ending
    answers: CollectedAnswers
    texts: list[str]

    @property
    def labels(self) -> list[str | None]:
        """Return the answers in the order of the examples; None for a missing answer."""
        labels: list[str | None] = []
        for answer in self.answers.in_order():
            labels.append(answer.value if answer else None)
        return labels


class Bench:
    """A session of hostile runs.

    folder: where it keeps its files. `close` removes everything outside the folder.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.token = folder, uuid.uuid4().hex[:8]
        self.image = self.build()
        # Without a name it would be removed together with an image that was built on it.
        with closing(connect()) as client:
            client.images.get(self.image).tag(f"{IMAGE_LABEL}:{self.token}")
        self.is_gvisor = DockerRunner("").name == "docker-runsc"

    def build(self, *instructions: str) -> str:
        """Build an image for hostile models and return its id.

        instructions: further lines of its Dockerfile. Raises LookupError if none of our images
        exists to build on.
        """
        base = next(filter(has_image, (BASE_IMAGE, RUNTIME_IMAGE)), None)
        if base is None:
            raise LookupError(f"There is no image {BASE_IMAGE}: scripts/runtime_image.sh makes it.")
        command = json.dumps(["python3", "-c", BOOT])
        mark = f"LABEL {IMAGE_LABEL}={self.token}"
        lines = [f"FROM {base}", mark, f"ENTRYPOINT {command}", "CMD []", *instructions]
        source = io.BytesIO("\n".join(lines).encode())
        with closing(connect()) as client:
            # Without `rm` each step would leave a container.
            image, _ = client.images.build(fileobj=source, rm=True)
        return str(image.id)

    def close(self) -> None:
        """Remove the images, and any containers that a breach left behind."""
        # Containers first: an image that one uses cannot be removed.
        for name in self.left():
            remove_container(name)
        with closing(connect()) as client:
            ours = {"label": f"{IMAGE_LABEL}={self.token}"}
            for image in client.images.list(filters=ours):
                client.images.remove(image.id, force=True)

    def key(self) -> str:
        """Return a new run key that belongs to this session."""
        return f"hostile-{self.token}-{uuid.uuid4().hex[:8]}"

    def left(self) -> list[str]:
        """Return the containers of this session that still exist."""
        return [ours.name for ours in list_ours(f"hostile-{self.token}-")]

    def inputs(self, script: str) -> Path:
        """Write a file of examples, the first of which contains the script, and return its path.

        The right answers are in the same folder, where no model may read them.
        """
        # Runs go on at the same time, so each has a folder of its own.
        folder = self.folder / uuid.uuid4().hex
        folder.mkdir(parents=True)
        (folder / "gold.jsonl").write_text(json.dumps([GOLD_ANSWER] * EXAMPLE_COUNT))
        with (folder / "examples.jsonl").open("w") as file:
            for number in range(EXAMPLE_COUNT):
                inputs = {"text": EXAMPLE_TEXT.format(number), "script": ""}
                if number == 0:  # BOOT runs the script of the first one
                    inputs["script"] = script
                file.write(json.dumps({"id": f"e{number}", "inputs": inputs}) + "\n")
        return folder / "examples.jsonl"

    def run(
        self,
        script: str,
        *,
        image: str = "",
        key: str = "",
        limits: Limits = LIMITS,
        beat: Beat = lambda: None,
    ) -> HostileRun:
        """Run a script as a model. Exceptions of `beat` propagate."""
        answers = CollectedAnswers(
            "label", LABELS, [f"e{number}" for number in range(EXAMPLE_COUNT)]
        )
        ending = DockerRunner(key or self.key()).run(
            Runnable(image=image or self.image, labels=LABELS),
            self.inputs(script),
            limits,
            take=answers.take,
            beat=beat,
        )
        if ending.outcome == Outcome.OK:
            try:
                warning = answers.end()
                if warning:
                    ending = replace(ending, warnings=(*ending.warnings, warning))
            except InvalidOutput as error:
                ending = replace(ending, outcome=Outcome.INVALID_OUTPUT, sentence=str(error))
        return HostileRun(
            ending, answers, [EXAMPLE_TEXT.format(number) for number in range(EXAMPLE_COUNT)]
        )
