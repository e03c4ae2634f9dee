"""A small server that gives a model's files as the Hugging Face Hub does, to the hub's library."""

import hashlib
import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import huggingface_hub
import huggingface_hub.constants


def hash_file(data):
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()


def describe_commit(name, commit, model):
    sizes = [{"rfilename": key, "size": len(data)} for key, data in model.items()]
    return {"id": name, "sha": commit, "siblings": sizes}


def list_tree(model):
    return [
        {"type": "file", "path": key, "size": len(data), "oid": hash_file(data)}
        for key, data in model.items()
    ]


class _ModelHub(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = self.path.partition("?")[0]
        about = re.fullmatch(r"/api/models/([^/]+/[^/]+)/(revision|tree)/(\w+)", path)
        file = re.fullmatch(r"/([^/]+/[^/]+)/resolve/(\w+)/(.+)", path)
        name, commit = about.group(1, 3) if about else file.group(1, 2) if file else ("", "")
        model = self.server.models.get((name, commit))
        if model is None:
            return self.answer(404, b"", {"X-Error-Code": "RevisionNotFound"})
        if about:
            told = list_tree(model) if about[2] == "tree" else describe_commit(name, commit, model)
            return self.answer(200, json.dumps(told).encode(), {"Content-Type": "application/json"})
        data = model[file[3]]
        # The library compares both before it takes a file.
        return self.answer(200, data, {"ETag": f'"{hash_file(data)}"', "X-Repo-Commit": commit})

    do_HEAD = do_GET

    def answer(self, status, body, headers):
        self.send_response(status)
        for key, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *args):
        """Stay silent."""


@contextmanager
def model_hub(name, commit, folder):
    """Gives the address of a hub with one model, whose files are those of a folder."""
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    with ThreadingHTTPServer(("127.0.0.1", 0), _ModelHub) as server:
        server.models = {(name, commit): files}
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def use_hub(monkeypatch, address):
    """Have the hub's library ask there, also where tests are to ask no hub."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", address)
    for module in ("hf_api", "_snapshot_download"):
        monkeypatch.setattr(f"huggingface_hub.{module}.constants.ENDPOINT", address)
    # The address of files is made when the library is imported.
    files = f"{address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", files)
