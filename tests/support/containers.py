"""A runner that plays a container: a test's function writes its lines and reads the answers."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from dynabench.adversaries import container_worker
from dynabench.adversaries.image_services import bring_image
from dynabench.adversaries.models import Adversary, AdversaryImage
from evaluation.contract import Ending, InvalidOutput, Outcome
from evaluation.isolation.sandbox.limits import LimitExceeded

SOURCE = f"registry.example.com/attacker@sha256:{'a' * 64}"
DIGEST = f"sha256:{'b' * 64}"
Program = Callable[[dict[str, Any]], Iterator[Any]]


class PlayedRunner:
    """Runs a program of the test in this process, as `DockerRunner` would run a container.

    The program is a generator function. It gets the run's description, yields messages (or raw
    lines as bytes), and gets the reply to each as the value of `yield`. ending: how it ends.
    """

    def __init__(self, program: Program, read_more: Callable[[], bytes], ending: Ending) -> None:
        self._program, self._read_more, self._ending = program, read_more, ending

    def run(self, model, inputs, limits, *, take, beat) -> Ending:
        """Play the program. `model` is what the worker has chosen."""
        try:
            beat()
            first = json.loads(self._read_more())
            program = self._program(first["run"])
            message = next(program, None)
            while message is not None:
                line = message if isinstance(message, bytes) else json.dumps(message).encode()
                take(line)
                beat()
                reply = self._read_more()
                try:
                    message = program.send(json.loads(reply) if reply else None)
                except StopIteration:
                    break
        except LimitExceeded as error:
            return error.ending
        except InvalidOutput as error:
            return Ending(Outcome.INVALID_OUTPUT, sentence=str(error))
        return self._ending


def play(monkeypatch, program: Program, ending: Ending | None = None) -> None:
    """Have each run of a container play this program, on an engine that has every image."""
    end = ending or Ending(Outcome.OK, log="bye")

    def choose_runner(model, key, name, read_more):
        return PlayedRunner(program, read_more, end)

    monkeypatch.setattr(container_worker, "choose_runner", choose_runner)
    monkeypatch.setattr(container_worker, "provide_image", lambda image, beat: image.digest)


def with_image(adversary: Adversary, actor) -> Adversary:
    """The adversary, with an image that is checked, and allowed if an editor brings it."""
    image = bring_image(adversary=adversary, actor=actor, source=SOURCE)
    AdversaryImage.objects.filter(pk=image.pk).update(state="done", digest=DIGEST, size=1)
    return adversary
