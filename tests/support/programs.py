"""Programs that tests start, and what they print."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from playwright.sync_api import Locator, Page

from dynabench.operations.management.commands import doctor as command
from dynabench.operations.soundness import doctor
from evaluation.isolation.sandbox.engine import Engine
from tests.support.parts import free_port

VISIBLE_FOCUS = """element => {
    const style = getComputedStyle(element), box = element.getBoundingClientRect();
    // A text area may begin at the lower edge: the browser only shows the line with the caret.
    const top = Math.max(box.top, 0), bottom = Math.min(box.bottom, window.innerHeight);
    const seen = document.elementFromPoint(box.x + box.width / 2, (top + bottom) / 2);
    return {
        outlined: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
        uncovered: !!seen && (element.contains(seen) || seen.contains(element)),
        what: `${element.outerHTML.slice(0, 120)} at ${box.top} to ${box.bottom} of `
            + `${window.innerHeight}, under ${seen?.outerHTML.slice(0, 120)}`,
    };
}"""


def tab_to(page: Page, wanted: Locator) -> None:
    """Press Tab until the element has the focus; every stop on the way shows that it has it."""
    handle = wanted.element_handle()
    for _ in range(60):
        page.keyboard.press("Tab")
        stop = page.evaluate_handle("document.activeElement").as_element()
        if stop.evaluate("element => element === document.body"):
            continue
        seen = stop.evaluate(VISIBLE_FOCUS)
        assert seen["outlined"], f"no visible focus: {seen['what']}"
        assert seen["uncovered"], f"the focus is covered: {seen['what']}"
        if stop.evaluate("(element, wanted) => element === wanted", handle):
            return
    raise AssertionError(f"Tab never came to {wanted}")


def press_on(page: Page, wanted: Locator, key: str) -> None:
    tab_to(page, wanted)
    page.keyboard.press(key)


ROOT = Path(__file__).resolve().parents[2]
PRODUCT_ONLY = str(ROOT / "tests/support/product_only")
"""On PYTHONPATH it hides what only tests install."""


class Process:
    """`manage.py serve_model` on a free port, with a home of its own."""

    def __init__(self, home: Path, *arguments: str) -> None:
        self.port = free_port()
        self.log = home / "log"
        own = {"HOME": str(home), "DYNABENCH_HOME": str(home / "var"), "PYTHONPATH": PRODUCT_ONLY}
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "serve_model", f"--port={self.port}", *arguments],
                cwd=ROOT,
                env=os.environ | own,
                stdout=log,
                stderr=log,
            )

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)

    def call(self, path: str, body: object = None) -> tuple[int, Any]:
        connection = self.connect()
        try:
            return exchange(connection, path, body)
        finally:
            connection.close()

    def wait_for(self, path: str) -> None:
        """Until the path answers 200."""
        end = time.monotonic() + 300  # a busy machine takes its time to export a model
        while time.monotonic() < end:
            assert self.process.poll() is None, self.log.read_text()
            try:
                if self.call(path)[0] == 200:
                    return
            except OSError:
                pass
            time.sleep(0.1)
        raise AssertionError(f"{path} did not become ready: {self.log.read_text()}")

    def stop(self, signal_number: int = signal.SIGTERM) -> int:
        self.process.send_signal(signal_number)
        return self.process.wait(120)

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *error: object) -> None:
        if self.process.poll() is None:
            self.stop()


def exchange(connection: http.client.HTTPConnection, path: str, body: object) -> tuple[int, Any]:
    sent = None if body is None else json.dumps(body).encode()
    connection.request("GET" if sent is None else "POST", path, sent)
    reply = connection.getresponse()
    return reply.status, json.loads(reply.read())


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


ENGINE = Engine(
    version="28.0", cgroup="2", arch="amd64", has_runsc=True, has_seccomp=True, cpus=2, root="/none"
)


@pytest.fixture(autouse=True)
def _sound_engine(monkeypatch):
    monkeypatch.setattr(doctor, "find_engine", lambda: ENGINE)
    monkeypatch.setattr(doctor, "has_image", lambda name: True)
    monkeypatch.setattr(doctor, "IMAGE_SCRIPT", "true")
    monkeypatch.setattr(command, "find_engine", lambda: ENGINE)


def told(**options) -> tuple[str, bool]:
    """What is printed, and whether it ended well."""
    out = StringIO()
    try:
        call_command("doctor", stdout=out, **options)
    except CommandError:
        return out.getvalue(), False
    return out.getvalue(), True
