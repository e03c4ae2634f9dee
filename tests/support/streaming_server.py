"""A server that speaks /v1/chat/completions with streaming, and says what a test tells it."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class ChatServer:
    """`say`: the answer in parts; from the second on each waits until `go_on` is set.

    breaks_off: it does not say that the answer has ended.
    """

    def __init__(self):
        self.say, self.go_on, self.asked = ["Nine."], threading.Event(), []
        self.go_on.set()
        self.breaks_off = False
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"

    @contextmanager
    def running(self):
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        try:
            yield self
        finally:
            self.go_on.set()
            self._http.shutdown()
            self._http.server_close()


def _handler(server):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self._start("application/json")
            self.wfile.write(json.dumps({"data": [{"id": "m"}]}).encode())

        def do_POST(self):
            server.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self._start("text/event-stream")
            for number, part in enumerate(server.say):
                if number:
                    server.go_on.wait(20)
                self._send({"delta": {"content": part}})
            if server.breaks_off:
                return
            self._send({"delta": {}, "finish_reason": "stop"})
            self.wfile.write(b"data: [DONE]\n\n")

        def _start(self, kind):
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.end_headers()

        def _send(self, choice):
            event = {"model": "m", "choices": [{"index": 0, **choice}]}
            self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
            self.wfile.flush()

        def log_message(self, *args):
            """Stay silent."""

    return Handler
