"""A small server that speaks Zenodo's deposit protocol, with its odd habits.

A draft has its reserved DOI in `metadata.prereserve_doi`, a published record has it at the top. A
new version answers with the former record, whose link leads to the draft, and the draft begins with
the former files. Digests come with `md5:` from the bucket, and without it in lists.
"""

import hashlib
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PATH = "/api/deposit/depositions"


class _Zenodo(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.body()
        if not self.is_known():
            return
        site, parts = self.server, self.path.strip("/").split("/")
        if self.path == PATH:
            return self.answer(201, site.describe(site.add({})))
        record = site.records[parts[3]]
        if parts[-1] == "newversion":
            draft = site.drafts_of.get(parts[3])
            if draft is None:
                draft = site.drafts_of[parts[3]] = site.add(dict(record["files"]))
            about = site.describe(parts[3])
            about["links"]["latest_draft"] = f"{site.url}{PATH}/{draft}"
            return self.answer(201, about)
        if not record["metadata"].get("title"):
            errors = [{"field": "metadata.title", "message": "Missing data for required field."}]
            return self.answer(400, {"message": "Validation error.", "errors": errors})
        record["submitted"] = True
        if site.drops_answer:
            self.close_connection = True
            return
        return self.answer(202, site.describe(parts[3]))

    def do_GET(self):
        if self.server.is_down:
            self.answer(500, {"message": "Internal server error"})
        elif self.is_known():
            record = self.path.rpartition("/")[2]
            known = record in self.server.records
            self.answer(200, self.server.describe(record)) if known else self.answer(404, {})

    def do_PUT(self):
        data = self.body()
        if not self.is_known():
            return
        if self.path.startswith("/files/"):
            _, _, record, name = self.path.split("/")
            self.server.uploads.append(name)
            if self.server.fails_at == len(self.server.uploads):
                return self.answer(500, {"message": "Internal server error"})
            if self.server.damages == name:
                data = data[:-1]
            self.server.records[record]["files"][name] = data
            digest = hashlib.md5(data).hexdigest()
            return self.answer(201, {"key": name, "checksum": f"md5:{digest}", "size": len(data)})
        record = self.server.records[self.path.rpartition("/")[2]]
        record["metadata"] = json.loads(data)["metadata"]
        return self.answer(200, self.server.describe(self.path.rpartition("/")[2]))

    def do_DELETE(self):
        if self.is_known():
            parts = self.path.split("/")
            files = self.server.records[parts[4]]["files"]
            files.pop(next(name for name in files if self.server.file_id(name) == parts[-1]))
            self.send_response(204)
            self.end_headers()

    def is_known(self):
        if self.headers.get("Authorization") == f"Bearer {self.server.token}":
            return True
        self.answer(401, {"message": "Unauthorized", "status": 401})
        return False

    def body(self):
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        blocks = []
        while size := int(self.rfile.readline(), 16):
            blocks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(blocks)

    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        """Stay silent."""


class ZenodoServer(ThreadingHTTPServer):
    """records: files, metadata and whether it is submitted, by id. uploads: names, as they came.

    fails_at: the number of the upload that gets a 500. damages: the file that loses a byte.
    drops_answer: a record is published, but the connection ends before the answer. is_down: each
    GET gets a 500.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Zenodo)
        self.url, self.token = f"http://127.0.0.1:{self.server_port}", "zenodo-token"
        self.records, self.drafts_of, self.uploads = {}, {}, []
        self.fails_at, self.damages = 0, ""
        self.drops_answer = self.is_down = False

    def add(self, files):
        record = str(7_000_000 + len(self.records))
        self.records[record] = {"files": files, "metadata": {}, "submitted": False}
        return record

    def describe(self, record):
        kept = self.records[record]
        doi = f"10.5281/zenodo.{record}"
        files = [
            {"id": self.file_id(name), "filename": name, "filesize": len(data),
             "checksum": hashlib.md5(data).hexdigest()}
            for name, data in kept["files"].items()
        ]  # fmt: skip
        about = {
            "id": int(record),
            "submitted": kept["submitted"],
            "state": "done" if kept["submitted"] else "unsubmitted",
            "metadata": {**kept["metadata"], "prereserve_doi": {"doi": doi, "recid": int(record)}},
            "files": files,
            "links": {
                "bucket": f"{self.url}/files/{record}",
                "html": f"{self.url}/deposit/{record}",
            },
        }
        if kept["submitted"]:
            about |= {"doi": doi, "conceptdoi": "10.5281/zenodo.6999999"}
            about["links"]["record_html"] = f"{self.url}/records/{record}"
        return about

    @staticmethod
    def file_id(name):
        return hashlib.sha1(name.encode()).hexdigest()


@contextmanager
def zenodo_server():
    server = ZenodoServer()
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
