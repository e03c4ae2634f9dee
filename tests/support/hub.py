"""A small server that speaks the hub's protocol of data sets: what it tells, files in ranges."""

import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

COMMIT = "89abcdef0123456789abcdef0123456789abcdef"
CONVERTED = "cdef0123456789abcdef0123456789abcdef0123"
NAME = "org/pairs"


class _Hub(BaseHTTPRequestHandler):
    """branches: commit and files of a revision. redirect: where files lie. more: what it says."""

    branches, redirect, more, asked = {}, "", {}, []

    def do_GET(self):
        path = urlsplit(self.path).path
        self.asked.append((unquote(path), self.headers.get("Range")))
        if found := re.fullmatch(rf"/api/datasets/{NAME}(?:/revision/(.+))?", path):
            return self.told(unquote(found[1] or ""))
        if found := re.fullmatch(rf"/datasets/{NAME}/resolve/(\w+)/(.+)", path):
            if self.redirect:
                return self.answer(302, b"", Location=self.redirect)
            return self.file(self.branches[found[1]][1].get(unquote(found[2])))
        return self.answer(401, b'{"error": "Invalid username or password."}')

    def told(self, revision):
        commit, held = self.branches.get(revision, (None, None))
        if held is None:
            return self.answer(404, b'{"error": "Invalid rev id"}')
        siblings = [{"rfilename": path, "size": len(data)} for path, data in held.items()]
        about = {"id": NAME, "sha": commit, "siblings": siblings, "gated": False, **self.more}
        return self.answer(200, json.dumps(about).encode())

    def file(self, data):
        if data is None:
            return self.answer(404, b"Entry not found")
        span = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"])
        first, last = int(span[1]), min(int(span[2]), len(data) - 1)
        about = {"Content-Range": f"bytes {first}-{last}/{len(data)}"}
        return self.answer(206, data[first : last + 1], **about)

    def answer(self, status, body, **headers):
        self.send_response(status)
        for header, value in {**headers, "Content-Length": len(body)}.items():
            self.send_header(header, str(value))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@contextmanager
def dataset_hub(files, *, converted=None, redirect="", **more):
    """Its address, and the list of what was asked (path, range). files: bytes by path.

    converted: files of the hub's own branch of Parquet. redirect: where files lie; more: what the
    hub says of the data set besides, such as gated.
    """
    main, own = (COMMIT, files), (CONVERTED, converted)
    branches = {"": main, "main": main, COMMIT: main, CONVERTED: own, "refs/convert/parquet": own}
    about = {"branches": branches, "redirect": redirect, "more": more, "asked": []}
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Hub", (_Hub,), about))
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", about["asked"]
    finally:
        server.shutdown()
        server.server_close()
