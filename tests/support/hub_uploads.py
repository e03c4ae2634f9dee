"""A small server that takes commits as the Hugging Face Hub does, from the hub's own library."""

import base64
import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "0123456789abcdef0123456789abcdef01234567"


class _Hub(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        hub = self.server
        if self.headers.get("Authorization") != f"Bearer {hub.token}":
            return self.answer(401, {"error": "Invalid username or password."})
        if self.path == "/api/validate-yaml":  # the front matter of a card
            return self.answer(200, {"errors": [], "warnings": []})
        if self.path == "/api/repos/create":
            told = json.loads(data)
            name = f"{told['organization']}/{told['name']}"
            is_new = name not in hub.repositories
            hub.repositories.setdefault(name, {"files": {}, "tags": [], "commits": 0})
            status = 200 if is_new else 409
            about = {"url": f"{hub.url}/datasets/{name}", "name": name}
            if not is_new:  # the address comes with the refusal, too
                about["error"] = "You already created this dataset repo"
            return self.answer(status, about)
        name, action = re.match(r"/api/datasets/([^/]+/[^/]+)/(\w+)", self.path).groups()
        repository = hub.repositories[name]
        if action == "preupload":
            files = [
                {"path": one["path"], "uploadMode": "regular", "shouldIgnore": False, "oid": None}
                for one in json.loads(data)["files"]
            ]
            return self.answer(200, {"files": files})
        if {"tag": hub.tags_fail, "commit": hub.fails}[action]:
            return self.answer(500, {"error": "Internal error"})
        if action == "tag":
            repository["tags"].append(json.loads(data)["tag"])
            return self.answer(200, {})
        files = {}
        for line in map(json.loads, data.splitlines()):
            if line["key"] == "file":
                files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])
        repository["files"] |= files
        repository["commits"] += 1
        about = {"commitOid": COMMIT, "commitUrl": f"{hub.url}/datasets/{name}/commit/{COMMIT}"}
        return self.answer(200, {"success": True, **about})

    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        """Stay silent."""


class HubServer(ThreadingHTTPServer):
    """repositories: files, tags and the number of commits, by name. fails: no commit succeeds.

    tags_fail: no tag succeeds, although its commit does.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Hub)
        self.url, self.token = f"http://127.0.0.1:{self.server_port}", "hf_token"
        self.repositories, self.fails, self.tags_fail = {}, False, False


@contextmanager
def hub_server():
    server = HubServer()
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
