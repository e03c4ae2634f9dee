"""Firefox by Marionette and WebKit by WebDriver: one small client for both, of W3C's commands.

Debian has no geckodriver. Firefox's own protocol has the same commands under names of its own.
"""

import base64
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.support.parts import free_port

PATIENCE = 60  # seconds; the machine may be busy
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
CONTROL, ENTER, LEFT, RIGHT = "\ue009", "\ue007", "\ue012", "\ue014"
MINI_BROWSERS = "/usr/lib/*/webkit2gtk-*/MiniBrowser"
COMMANDS = {  # by our names: the method and path of WebDriver, and Marionette's name
    "navigate": ("POST", "/url", "WebDriver:Navigate"),
    "back": ("POST", "/back", "WebDriver:Back"),
    "refresh": ("POST", "/refresh", "WebDriver:Refresh"),
    "run": ("POST", "/execute/sync", "WebDriver:ExecuteScript"),
    "find": ("POST", "/elements", "WebDriver:FindElements"),
    "click": ("POST", "/element/{id}/click", "WebDriver:ElementClick"),
    "type": ("POST", "/element/{id}/value", "WebDriver:ElementSendKeys"),
    "act": ("POST", "/actions", "WebDriver:PerformActions"),
    "add cookie": ("POST", "/cookie", "WebDriver:AddCookie"),
    "forget cookies": ("DELETE", "/cookie", "WebDriver:DeleteAllCookies"),
    "picture": ("GET", "/screenshot", "WebDriver:TakeScreenshot"),
    "resize": ("POST", "/window/rect", "WebDriver:SetWindowRect"),
}
# Past what sticks to the edges, which WebDriver's own scrolling does not know.
IN_VIEW = """
    const centre = {block: "center", behavior: "instant"};
    document.querySelector(arguments[0])?.scrollIntoView(centre);
"""
FAULTS = """
    const isFault = one => one instanceof Ci.nsIScriptError
        && one.sourceName.startsWith(arguments[0])
        && (!(one.flags & Ci.nsIScriptError.warningFlag) || one.category.startsWith("CSP"));
    const found = Services.console.getMessageArray().filter(isFault);
    Services.console.reset();
    return found.map(one => `${one.category}: ${one.errorMessage} ${one.sourceName}`);
"""
# Without a screen it takes itself for a telephone, unless it is told of a mouse.
PREFERENCES = """
user_pref("marionette.port", 0);
user_pref("app.update.enabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("browser.startup.page", 0);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("toolkit.telemetry.enabled", false);
user_pref("ui.allPointerCapabilities", 6);
user_pref("ui.primaryPointerCapabilities", 6);
"""


class Missed(Exception):
    """What a browser answers that cannot do a command: its code, such as `no such element`."""


class Engine:
    """One window of a browser."""

    name = ""

    def __init__(self, send: Callable[[str, dict[str, Any]], Any]) -> None:
        """send: hands one command of COMMANDS on and returns the value that comes back."""
        self._send = send
        self.origin = ""

    # What a person does

    def visit(self, path: str) -> None:
        self._send("navigate", {"url": self.origin + path})

    def visit_nothing(self) -> None:
        """Leave the site, so that nothing asks it any more."""
        self._send("navigate", {"url": "about:blank"})

    def reload(self) -> None:
        """Load the page again, as by F5."""
        self._send("refresh", {})

    def back(self) -> None:
        self._send("back", {})

    def click(self, selector: str) -> None:
        """Press what is shown, once it is."""
        self._on(selector, "click", {})

    def type(self, selector: str, text: str) -> None:
        self._on(selector, "type", {"text": text})

    def press(self, *keys: str) -> None:
        """Press keys on what has the focus: all at once where several are named."""
        downs = [{"type": "keyDown", "value": key} for key in keys]
        ups = [{"type": "keyUp", "value": key} for key in reversed(keys)]
        source = {"type": "key", "id": "keys", "actions": downs + ups}
        self._send("act", {"actions": [source]})

    def write(self, text: str) -> None:
        """Type into what has the focus, whatever it is."""
        keys = text.replace("\n", ENTER)
        each = [{"type": kind, "value": one} for one in keys for kind in ("keyDown", "keyUp")]
        self._send("act", {"actions": [{"type": "key", "id": "keys", "actions": each}]})

    # What a person sees

    def run(self, script: str, *values: Any) -> Any:
        return self._send("run", {"script": script, "args": list(values)})

    def value(self, selector: str) -> Any:
        """What stands in a field; None: there is none."""
        return self.run("return document.querySelector(arguments[0])?.value ?? null", selector)

    def until(self, condition: str, *values: Any) -> Any:
        """Wait until a JavaScript expression of `arguments` is true in the page; return it."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                if found := self.run(f"return {condition}", *values):
                    return found
            except Missed:  # one page goes, another comes
                pass
            time.sleep(0.02)
        at = self.run("return location.href")
        raise AssertionError(f"{self.name}: never {condition} {values} at {at}")

    def until_seen(self, selector: str) -> None:
        self.until("document.querySelector(arguments[0])?.getClientRects().length > 0", selector)

    def until_focused(self, selector: str) -> None:
        self.until("document.activeElement?.matches(arguments[0])", selector)

    # What tests do beside

    def sign_out(self) -> None:
        """Be nobody from now on. A page of the site must be open."""
        self._send("forget cookies", {})

    def sign_in(self, cookie: str, value: str) -> None:
        """Be somebody else from now on. A page of the site must be open."""
        self.sign_out()
        self._send("add cookie", {"cookie": {"name": cookie, "value": value, "path": "/"}})

    def resize(self, width: int, height: int) -> None:
        self._send("resize", {"width": width, "height": height})

    def faults(self) -> list[str]:
        """Errors of scripts and broken policies since the last time, where an engine tells them."""
        return []

    def keep_picture(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self._send("picture", {})))

    def _on(self, selector: str, command: str, body: dict[str, Any]) -> None:
        """Do something to an element, and once more where the page is only about to show it."""
        end = time.monotonic() + PATIENCE
        while True:
            self.until_seen(selector)
            self.run(IN_VIEW, selector)
            found = self._send("find", {"using": "css selector", "value": selector})
            try:
                for element in found[:1]:
                    return self._send(command, {"id": element[ELEMENT], **body})
            except Missed as error:
                if time.monotonic() > end or "stale" not in str(error):
                    raise


class Firefox(Engine):
    name = "firefox"

    def reload(self) -> None:
        """By the browser's own button: WebDriver's command restores no fields."""
        self.run("window.isOld = true")
        self.chrome("gBrowser.reload()")
        self.until("!window.isOld && document.readyState === 'complete'")

    def faults(self) -> list[str]:
        return self.chrome(FAULTS, self.origin)

    def chrome(self, script: str, *values: Any) -> Any:
        """Run a script of the browser itself."""
        self._send("Marionette:SetContext", {"value": "chrome"})
        try:
            return self.run(script, *values)
        finally:
            self._send("Marionette:SetContext", {"value": "content"})


class WebKit(Engine):
    name = "webkit"


@contextmanager
def firefox(home: Path) -> Iterator[Firefox]:
    """Start Firefox with an empty profile below `home`."""
    (home / "user.js").write_text(PREFERENCES)
    command = ["firefox-esr", "--headless", "--no-remote", "--profile", str(home)]
    command += ["--marionette", "--remote-allow-system-access"]
    with _process(command, home / "firefox.log"), ExitStack() as stack:
        port = int(_until(lambda: (home / "MarionetteActivePort").read_text()))
        wire = stack.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE))
        stream = stack.enter_context(wire.makefile("rb"))
        _message(stream)  # its greeting

        def send(name: str, body: dict[str, Any]) -> Any:
            name = COMMANDS[name][2] if name in COMMANDS else name
            sent = json.dumps([0, 1, name, body]).encode()
            wire.sendall(str(len(sent)).encode() + b":" + sent)
            error, result = _message(stream)[2:]
            if error:
                raise Missed(f"{error['error']}: {error['message']}")
            return result["value"] if isinstance(result, dict) and "value" in result else result

        send("WebDriver:NewSession", {"capabilities": {"alwaysMatch": {}}})
        yield Firefox(send)


@contextmanager
def webkit(home: Path) -> Iterator[WebKit]:
    """Start WebKitGTK's small browser on a screen of its own."""
    port = free_port()
    with ExitStack() as stack:
        screen = stack.enter_context(_screen(home))
        own = {"DISPLAY": screen, "HOME": str(home), "GDK_BACKEND": "x11"}
        own |= {"WEBKIT_DISABLE_COMPOSITING_MODE": "1", "NO_AT_BRIDGE": "1"}
        driver = ["WebKitWebDriver", f"--port={port}"]
        stack.enter_context(_process(driver, home / "webkit.log", **own))
        client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE)
        stack.enter_context(client)
        _until(lambda: client.get("/status"))
        options = {"binary": mini_browser(), "args": ["--automation"]}
        wanted = {"alwaysMatch": {"webkitgtk:browserOptions": options}}
        begun = _answer(client.post("/session", json={"capabilities": wanted}))

        def send(name: str, body: dict[str, Any]) -> Any:
            method, path, _ = COMMANDS[name]
            path = f"/session/{begun['sessionId']}{path.format(**body)}"
            return _answer(client.request(method, path, json=None if method != "POST" else body))

        stack.callback(client.delete, f"/session/{begun['sessionId']}")
        yield WebKit(send)


def mini_browser() -> str | None:
    """WebKitGTK's small browser, which its driver steers."""
    return next(map(str, sorted(Path("/").glob(MINI_BROWSERS[1:]))), None)


def are_installed() -> bool:
    """Whether both engines are there, and the screen that one of them needs."""
    programs = ("firefox-esr", "WebKitWebDriver", "Xvfb")
    return all(map(shutil.which, programs)) and mini_browser() is not None


def _answer(response: httpx.Response) -> Any:
    value = response.json()["value"]
    if response.is_error:
        raise Missed(f"{value['error']}: {value['message']}")
    return value


def _message(stream: Any) -> Any:
    """One message of Marionette: its length, a colon, JSON."""
    length = b""
    while not length.endswith(b":"):
        length += stream.read(1)
    return json.loads(stream.read(int(length[:-1])))


def _until(ask: Callable[[], Any]) -> Any:
    """Ask again until something answers."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            if answer := ask():
                return answer
        except (OSError, httpx.TransportError):
            if time.monotonic() > end:
                raise
        time.sleep(0.02)


@contextmanager
def _process(command: list[str], log: Path, **own: str) -> Iterator[None]:
    with log.open("wb") as told:
        process = subprocess.Popen(
            command, env=os.environ | own, stdout=told, stderr=told, start_new_session=True
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE)


@contextmanager
def _screen(home: Path) -> Iterator[str]:
    """A screen that nobody sees; gives its name."""
    reads, writes = os.pipe()
    command = ["Xvfb", "-displayfd", str(writes), "-screen", "0", "1280x900x24", "-nolisten", "tcp"]
    with (home / "screen.log").open("wb") as told:
        process = subprocess.Popen(command, pass_fds=[writes], stdout=told, stderr=told)
    os.close(writes)
    try:
        with os.fdopen(reads) as named:
            yield f":{named.readline().strip()}"
    finally:
        process.terminate()
        process.wait(PATIENCE)
