"""Ask a model that was built for Dynabench, inside its own container: lines in, lines out.

Mounted into other people's images, so: standard library only, and Python from 3.6 on.

    python3 shim.py dynalab    PORT INPUT OUTPUT COMMAND…    POST /invocations, one example a call
    python3 shim.py dynabench2 PORT INPUT OUTPUT COMMAND…    POST /model/batch_evaluation, or single

With - as INPUT, each example on standard input is asked as it arrives.
COMMAND is the image's own. It is started, asked about every example over loopback, and stopped.
OUTPUT is the field that is answered.
"""

import http.client
import json
import socket
import subprocess
import sys
import time
from typing import Any, BinaryIO, Dict, Iterator, List, Sequence, Tuple

BATCH_EXAMPLES = 32
SINGLE_ROUTE, BATCH_ROUTE = "/model/single_evaluation", "/model/batch_evaluation"
Json = Dict[str, Any]


class ModelFailed(Exception):
    """Raised when a model gives no usable answer. The message says why."""


class Server:
    """The server that the image's own command runs, as a process of this container."""

    def __init__(self, command: Sequence[str], port: int) -> None:
        self.port = port
        # One connection for all examples, because opening one for each would slow the pace.
        self.connection = http.client.HTTPConnection("127.0.0.1", port)
        # Its output must not get between the answers, and it must not read the examples.
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr)

    def wait(self) -> None:
        """Wait until the server listens. Raises ModelFailed if it ends first.

        The sandbox stops a server that never listens.
        """
        while True:
            if self.process.poll() is not None:
                raise ModelFailed(
                    "The image's command ended with code {} before it listened on port {}.".format(
                        self.process.returncode, self.port
                    )
                )
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.1)

    def post(self, path: str, value: Json) -> Any:
        """Return the server's JSON answer; None if it has no such route. Raises ModelFailed."""
        try:
            status, body = self._send(path, value)
        except (http.client.HTTPException, OSError):  # an idle connection may have been closed
            self.connection.close()
            try:
                status, body = self._send(path, value)
            except (http.client.HTTPException, OSError) as error:
                raise ModelFailed("{} broke off: {!r}.".format(path, error)) from None
        if status in (404, 405):
            return None
        if status != 200:
            raise ModelFailed("{} answered with status {}.".format(path, status))
        try:
            return json.loads(body.decode("utf-8-sig"))
        except ValueError:
            raise ModelFailed("{} answered something that is not JSON.".format(path)) from None

    def _send(self, path: str, value: Json) -> Tuple[int, bytes]:
        body = json.dumps(value).encode()
        self.connection.request("POST", path, body, {"Content-Type": "application/json"})
        reply = self.connection.getresponse()
        return reply.status, reply.read()


def ask_dynalab(server: Server, examples: List[Json]) -> List[Any]:
    """Return the answers of a TorchServe handler, which accepts one example per call.

    Raises ModelFailed.
    """
    answers = []
    for example in examples:
        answer = server.post("/invocations", dict(example["inputs"], uid=example["id"]))
        if isinstance(answer, dict) and answer.get("id", example["id"]) != example["id"]:
            raise ModelFailed("The answer's id is not the uid of the example.")
        answers.append(answer)
    return answers


def ask_dynabench2(server: Server, examples: List[Json]) -> List[Any]:
    """Return the answers of Dynabench 2.0's batch route, or of its single route if it has none.

    Raises ModelFailed.
    """
    samples = [example["inputs"] for example in examples]
    answers = server.post(BATCH_ROUTE, {"dataset_samples": samples})
    if answers is None:
        return [server.post(SINGLE_ROUTE, sample) for sample in samples]
    if not isinstance(answers, list) or len(answers) != len(samples):
        raise ModelFailed(
            "{} must answer a list of {} predictions.".format(BATCH_ROUTE, len(samples))
        )
    return answers


def format_line(example: Json, answer: Any, output: str) -> bytes:
    """Return the output line for an answer.

    Divides probabilities by their sum, as Dynabench did. Raises ModelFailed.
    """
    if not isinstance(answer, dict) or output not in answer:
        raise ModelFailed("An answer must be an object with the field {!r}.".format(output))
    fields = {name: answer[name] for name in (output, "start", "end") if name in answer}
    prob = answer.get("prob")
    if prob is not None:
        try:
            total = sum(prob.values())
            prob = {label: value / total for label, value in prob.items()}
        except (AttributeError, TypeError, ZeroDivisionError):
            raise ModelFailed("prob must hold a number for each label, not all 0.") from None
    return json.dumps({"id": example["id"], "output": fields, "prob": prob}).encode() + b"\n"


def read_batches(lines: BinaryIO, size: int) -> Iterator[List[Json]]:
    """Yield lists of `size` examples. Skips a byte order mark and empty lines."""
    batch = []
    for text in lines:
        if not text.strip():
            continue
        batch.append(json.loads(text.decode("utf-8-sig")))
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def main(adapter: str, port: str, inputs: str, output: str, *command: str) -> int:
    """Answer all examples. Returns 0, or 1 if the model gives no usable answer.

    In that case the last line of stderr says why.
    """
    ask = {"dynalab": ask_dynalab, "dynabench2": ask_dynabench2}[adapter]
    server = Server(command, int(port))
    try:
        server.wait()
        source, size = inputs, BATCH_EXAMPLES  # type: Any, int
        if inputs == "-":  # each example waits for its answer
            source, size = 0, 1
        with open(source, "rb") as lines:
            for examples in read_batches(lines, size):
                answers = ask(server, examples)
                for example, answer in zip(examples, answers):
                    sys.stdout.buffer.write(format_line(example, answer, output))
                sys.stdout.buffer.flush()
    except ModelFailed as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        server.process.kill()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
