"""A server that speaks the two panels' APIs, as far as campaigns use them, and fails when told."""

import json
import os
import re
import signal
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class PanelServer:
    """What the panel knows: the status of each participation, and every bonus that it paid.

    faults: of the next requests in turn: None, a status, "lost" (the connection breaks before
    anything happens), "taken" (it happens, and no answer comes), "500 taken".
    victim: the process that is killed with the next request but `kill_in`, before or after it.
    """

    def __init__(self):
        self.status, self.paid, self.prepared, self.tokens = {}, [], {}, {}
        self.faults, self.asked = [], []
        self.victim, self.kill_in, self.kill_after = None, 0, False
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._http.panel = self
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    @contextmanager
    def running(self):
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()
        try:
            yield self
        finally:
            self._http.shutdown()
            self._http.server_close()

    def sum_of(self, person):
        return sum(amount for who, amount in self.paid if who == person)

    def answer(self, method, path, told, target):
        """What happens; returns status and body."""
        return self._turk(target, told) if target else self._prolific(method, path, told)

    def _prolific(self, method, path, told):
        if found := re.fullmatch(r"/api/v1/submissions/(\w+)/", path):
            status = self.status.setdefault(found[1], "AWAITING REVIEW")
            bonuses = [amount for who, amount in self.paid if who == found[1]]
            return 200, {"id": found[1], "status": status, "bonus_payments": bonuses}
        if found := re.fullmatch(r"/api/v1/submissions/(\w+)/transition/", path):
            if told["action"] == "REJECT" and len(told["message"]) < 100:
                return 400, {"error": "too short"}
            if self.status.get(found[1], "AWAITING REVIEW") != "AWAITING REVIEW":
                return 400, {"error": "it was decided"}
            self.status[found[1]] = {"APPROVE": "APPROVED", "REJECT": "REJECTED"}[told["action"]]
            return 200, {}
        if path == "/api/v1/submissions/bonus-payments/":
            lines = [line.split(",") for line in told["csv_bonuses"].splitlines()]
            name = f"bulk{len(self.prepared)}"
            self.prepared[name] = [(who, round(float(units) * 100)) for who, units in lines]
            return 201, {"id": name}
        if found := re.fullmatch(r"/api/v1/bulk-bonus-payments/(\w+)/pay/", path):
            # The real API pays a preparation once; this one pays it as often as it is asked.
            self.paid += self.prepared[found[1]]
            return 202, {}
        return 404, {}

    def _turk(self, target, told):
        id = told["AssignmentId"]
        if target == "GetAssignment":
            return 200, {"Assignment": {"AssignmentStatus": self.status.get(id, "Submitted")}}
        if target in ("ApproveAssignment", "RejectAssignment"):
            if id in self.status:
                return 400, {"__type": "RequestError", "Message": "This was decided"}
            self.status[id] = {"A": "Approved", "R": "Rejected"}[target[0]]
            return 200, {}
        if target == "ListBonusPayments":
            bonuses = [amount for who, amount in self.paid if who == id]
            return 200, {"BonusPayments": [{"BonusAmount": f"{one / 100:.2f}"} for one in bonuses]}
        if told["UniqueRequestToken"] in self.tokens:
            said = "This UniqueRequestToken was already used"
            return 400, {"__type": "RequestError", "Message": said}
        self.tokens[told["UniqueRequestToken"]] = True
        self.paid.append((id, round(float(told["BonusAmount"]) * 100)))
        return 200, {}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def panel(self):
        return self.server.panel

    def do_GET(self):
        self._do_step({})

    def do_POST(self):
        self._do_step(json.loads(self.rfile.read(int(self.headers["Content-Length"] or 0)) or "{}"))

    def _do_step(self, told):
        panel, target = self.panel, self.headers.get("X-Amz-Target", "").rpartition(".")[2]
        panel.asked.append(target or self.path)
        is_last = panel.victim and not panel.kill_in
        panel.kill_in -= 1
        fault = panel.faults.pop(0) if panel.faults else None
        if is_last and not panel.kill_after:
            return self._kill()
        if fault == "lost":
            return self._break()
        if isinstance(fault, int):
            return self._say(fault, {})
        status, body = panel.answer(self.command, self.path, told, target)
        if is_last:
            return self._kill()
        if fault == "taken":
            return self._break()
        return self._say(500, {}) if fault else self._say(status, body)

    def _kill(self):
        os.kill(self.panel.victim, signal.SIGKILL)
        self._break()

    def _break(self):
        self.close_connection = True

    def _say(self, status, body):
        said = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, *_args):
        pass
