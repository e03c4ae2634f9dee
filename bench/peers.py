"""What our server is compared with: a locked pipeline, LitServe and Mosec, with the same model.

`python bench/peers.py PORT` serves $BENCH_PEER; all settings come from BENCH_* in the environment,
because the peers start their workers as new processes. LitServe and Mosec get two workers of one
thread each, and the same weights in ONNX Runtime: padded, as one exports a model, or by the very
backend object of our server, so that only the serving differs.
"""

import os
import sys
import threading
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from serving.backends import (
    OnnxBackend,
    build_backend_version,
    count_cores,
    load_backend,
    load_torch_model,
    write_onnx,
)
from serving.codecs import choose_codec
from serving.fingerprint import FileHashes, compute_fingerprint
from serving.spec import ModelFolder, ModelSpec, open_folder
from serving.tokens import ModelTokenizer, read_tokenizer

WAIT_MS = 2


class BareModel:
    """A model in process: texts in, predictions out, no queue."""

    def __init__(
        self, folder: str, cache: Path, *, backend: str, precision: str, padded: bool = False
    ) -> None:
        spec = ModelSpec("bench", folder, backend=backend, precision=precision)
        files = open_folder(spec)
        hashes = FileHashes(cache / "hashes.json")
        identity = compute_fingerprint(
            spec, files, backend_version=build_backend_version(spec, files.kind), hashes=hashes
        )
        if padded:
            self.backend, tokens = load_padded_backend(
                spec, files, cache / "padded" / identity["digest"]
            )
        else:
            self.backend, tokens = load_backend(
                spec, files, export_folder=cache / "onnx" / identity["digest"]
            )
        self.codec = choose_codec(files, tokens.tokenizer, files.max_length or tokens.token_limit)

    def __call__(self, texts: list[str]) -> list[dict[str, Any]]:
        encoded = [self.codec.encode({"text": text}) for text in texts]
        logits = self.backend.run([encodings[0] for encodings in encoded])
        answers = [
            self.codec.decode({}, encodings, [row])
            for encodings, row in zip(encoded, logits, strict=True)
        ]
        return [{"output": answer.output, "prob": answer.prob} for answer in answers]


def load_padded_backend(
    spec: ModelSpec, files: ModelFolder, folder: Path
) -> tuple[OnnxBackend, ModelTokenizer]:
    """The model as transformers has it, exported to `folder` once."""
    tokens, graph = read_tokenizer(spec, files), folder / "model.onnx"
    if not graph.exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_onnx(load_torch_model(spec, files), tokens, graph)
    return OnnxBackend(graph, tokens, is_int8=False), tokens


def load_model_from_environment() -> BareModel:
    """The model that BENCH_* names."""
    return BareModel(
        os.environ["BENCH_MODEL"],
        Path(os.environ["BENCH_CACHE"]),
        backend="onnx",
        precision="fp32",
        padded=os.environ["BENCH_PADDED"] == "1",
    )


def serve_pipeline(port: int) -> None:
    """transformers.pipeline behind a lock, in gunicorn with threads."""
    import json

    from gunicorn.app.base import BaseApplication

    class Pipeline(BaseApplication):
        def load_config(self) -> None:
            self.cfg.set("bind", f"127.0.0.1:{port}")
            self.cfg.set("worker_class", "gthread")
            self.cfg.set("threads", 64)
            self.cfg.set("keepalive", 75)
            self.cfg.set("control_socket_disable", True)

        def load(self) -> Any:
            import torch
            from transformers import pipeline

            torch.set_num_threads(int(os.environ["BENCH_THREADS"]))
            model = pipeline("text-classification", os.environ["BENCH_MODEL"], top_k=None)
            lock = threading.Lock()

            def app(environ: dict[str, Any], start_response: Any) -> list[bytes]:
                inputs = json.load(environ["wsgi.input"])["inputs"]
                with lock:
                    scores = model(inputs["text"], truncation=True)
                body = json.dumps(scores).encode()
                start_response("200 OK", [("Content-Length", str(len(body)))])
                return [body]

            return app

    Pipeline().run()


BATCH_SIZE = int(os.environ.get("BENCH_BATCH", "1"))

# The peers' classes stand at the top, because their workers import them by name.
if os.environ.get("BENCH_PEER") == "litserve":
    import litserve

    class LitServeModel(litserve.LitAPI):
        def setup(self, device: str) -> None:
            self.model = load_model_from_environment()

        def decode_request(self, request: dict[str, Any]) -> str:
            return str(request["inputs"]["text"])

        def batch(self, inputs: list[str]) -> list[str]:
            return list(inputs)

        def predict(self, texts: Any) -> Any:
            return self.model(texts) if BATCH_SIZE > 1 else self.model([texts])[0]

        def unbatch(self, output: list[Any]) -> list[Any]:
            return output

        def encode_response(self, output: Any) -> Any:
            return output

    def serve_litserve(port: int) -> None:
        wait = WAIT_MS / 1000 if BATCH_SIZE > 1 else 0.0
        api = LitServeModel(max_batch_size=BATCH_SIZE, batch_timeout=wait)
        server = litserve.LitServer(api, accelerator="cpu", workers_per_device=count_cores())
        server.run(port=port, host="127.0.0.1", generate_client_file=False, log_level="error")


if os.environ.get("BENCH_PEER") == "mosec":
    import mosec

    class MosecModel(mosec.Worker):
        def __init__(self) -> None:
            self.model = load_model_from_environment()

        def forward(self, data: Any) -> Any:
            if isinstance(data, list):
                return self.model([row["inputs"]["text"] for row in data])
            return self.model([data["inputs"]["text"]])[0]

    def serve_mosec(port: int) -> None:
        sys.argv = [sys.argv[0], "--port", str(port), "--address", "127.0.0.1"]
        server = mosec.Server()
        server.append_worker(
            MosecModel,
            num=count_cores(),
            max_batch_size=BATCH_SIZE,
            max_wait_time=WAIT_MS,
            timeout=60,
        )
        server.run()


if __name__ == "__main__":
    peer = os.environ["BENCH_PEER"]
    if peer == "pipeline":
        serve_pipeline(int(sys.argv[1]))
    elif peer == "litserve":
        serve_litserve(int(sys.argv[1]))
    else:
        serve_mosec(int(sys.argv[1]))
