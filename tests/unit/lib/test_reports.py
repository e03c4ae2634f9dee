"""What leaves for Sentry, asked of a server that stands in its place."""

import gzip
import json
import logging
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import brotli
import pytest
import sentry_sdk

from core.telemetry.reports import start_error_reports
from core.versions import get_version


def test_an_error_goes_without_what_people_wrote():
    got = []

    class Sentry(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            unpack = {"gzip": gzip.decompress, "br": brotli.decompress}
            got.append(unpack[self.headers["Content-Encoding"]](body).decode())
            self.send_response(200)
            self.end_headers()

        def log_message(self, *words):
            pass

    server = HTTPServer(("127.0.0.1", 0), Sentry)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        start_error_reports(f"http://key@127.0.0.1:{server.server_port}/1")
        text = "what somebody wrote"
        logging.getLogger("dynabench").warning("A warning stays here")
        try:
            raise RuntimeError(f"of {len(text)} characters")
        except RuntimeError:
            logging.getLogger("dynabench").exception("It failed")
        sentry_sdk.flush(5)
    finally:
        sentry_sdk.init(default_integrations=False, auto_enabling_integrations=False)
        server.shutdown()
        server.server_close()
    (envelope,) = got
    event = json.loads(envelope.splitlines()[-1])
    assert (event["release"], event["exception"]["values"][0]["type"]) == (
        get_version(),
        "RuntimeError",
    )
    assert "of 19 characters" in envelope
    assert text not in envelope
    assert "A warning" not in envelope
    assert not {"user", "request"} & event.keys()


def test_another_address_is_refused():
    with pytest.raises(ValueError, match="scheme"):
        start_error_reports("sentry.example.org")
