"""Annotate the same five texts as three people in a real tool, and export in every format.

Runs in the environment of a tool: `python annotating_tools.py TOOL FOLDER`. What an import reads
goes into FOLDER/read, what it refuses into FOLDER/refused, and what people said into said.json.
"""

import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode

TEXTS = (
    "The soup was warm.",
    "Line one\r\nLine two\n\nLine three",
    "汤很热 😀 👩‍🍳",
    "شوربة ساخنة",
    "<b>bold</b> \"q\", 'x'\ttab; a:b",
)
PEOPLE = ("ann", "bob@example.org", "eve")
LABELS = ("good", "bad", "好")
PASSWORD = "pass12345"
BIN = Path(sys.executable).parent
MINUTES = 5


def label_of(person: int, text: int) -> str:
    """What a person says of a text: of the last one only the first person says anything."""
    return LABELS[person * text % 3] if text < len(TEXTS) - 1 or not person else ""


def annotated() -> Iterator[tuple[int, int, str]]:
    """Who says what of which text."""
    for person in range(len(PEOPLE)):
        for text in range(len(TEXTS)):
            if label := label_of(person, text):
                yield person, text, label


class Client:
    """Somebody at a browser, with cookies."""

    def __init__(self, url: str):
        self._url, self._cookies = url, CookieJar()
        handler = urllib.request.HTTPCookieProcessor(self._cookies)
        self._opener = urllib.request.build_opener(handler)

    def get(self, path: str) -> bytes:
        return self._ask(path, None, "")

    def post(self, path: str, told: Any) -> Any:
        """Send JSON; the JSON that comes back."""
        answer = self._ask(path, json.dumps(told).encode(), "application/json")
        return json.loads(answer) if answer else None

    def send(self, path: str, form: Any) -> bytes:
        """Send a form."""
        return self._ask(path, urlencode(form).encode(), "application/x-www-form-urlencoded")

    def upload(self, path: str, name: str, data: bytes) -> str:
        head = f'--x\r\nContent-Disposition: form-data; name="filepond"; filename="{name}"\r\n\r\n'
        body = head.encode() + data + b"\r\n--x--\r\n"
        return self._ask(path, body, "multipart/form-data; boundary=x").decode()

    def token(self) -> str:
        return next((one.value or "" for one in self._cookies if one.name == "csrftoken"), "")

    def _ask(self, path: str, data: bytes | None, kind: str) -> bytes:
        headers = {"X-CSRFToken": self.token(), "Referer": self._url}
        if kind:
            headers["Content-Type"] = kind
        asked = urllib.request.Request(self._url + path, data, headers)
        with self._opener.open(asked, timeout=60) as answer:
            return bytes(answer.read())


@contextmanager
def running(*commands: list[str], port: int, folder: Path, **more: str) -> Iterator[str]:
    """The address of a tool's server, once it answers."""
    url = f"http://127.0.0.1:{port}"
    with (folder / "server.log").open("wb") as log:
        programs = [
            subprocess.Popen(
                one,
                cwd=folder,
                stdout=log,
                stderr=log,
                env=os.environ | {"HOME": str(folder)} | more,
            )
            for one in commands
        ]
        try:
            until(lambda: bool(Client(url).get("/")))
            yield url
        finally:
            for one in programs:
                one.terminate()
                one.wait(30)


def until(is_ready: Callable[[], bool]) -> None:
    """Wait until something is so."""
    last = time.monotonic() + 60 * MINUTES
    while time.monotonic() < last:
        try:
            if is_ready():
                return
        except (URLError, ConnectionError):
            pass
        time.sleep(0.5)
    raise TimeoutError(f"Not ready within {MINUTES} minutes.")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def annotate_in_label_studio(folder: Path) -> None:
    """One question in Choices; one person answers twice, skips and leaves a draft."""
    port = free_port()
    start = [str(BIN / "label-studio"), "start", "--port", str(port), "--no-browser", "--username",
             "admin@example.org", "--password", PASSWORD]  # fmt: skip
    more = {"LABEL_STUDIO_BASE_DATA_DIR": str(folder / "data"), "COLLECT_ANALYTICS": "0"}
    with running(start, port=port, folder=folder, **more) as url:
        admin = signed_in(url, "admin@example.org", "/user/login/")
        invitation = json.loads(admin.get("/api/invite"))["invite_url"]
        path = re.sub(r"^https?://[^/]+", "", invitation)
        people = [signed_in(url, f"person{number}@example.org", path) for number in range(3)]
        config = (
            '<View><Text name="text" value="$text"/><Choices name="tone" toName="text">'
            + "".join(f'<Choice value="{label}"/>' for label in LABELS)
            + "</Choices></View>"
        )
        project = admin.post("/api/projects/", {"title": "tone", "label_config": config})["id"]
        admin.post(f"/api/projects/{project}/import", [{"text": text} for text in TEXTS])
        listed = json.loads(admin.get(f"/api/tasks?project={project}&page_size=100"))["tasks"]
        tasks = sorted(task["id"] for task in listed)
        people[0].post(f"/api/tasks/{tasks[0]}/annotations/", {"result": chosen("bad")})
        for person, text, label in annotated():
            path = f"/api/tasks/{tasks[text]}/annotations/"
            people[person].post(path, {"result": chosen(label)})
        skipped = {"result": chosen("bad"), "was_cancelled": True}
        people[1].post(f"/api/tasks/{tasks[4]}/annotations/", skipped)
        people[2].post(f"/api/tasks/{tasks[4]}/drafts", {"result": chosen("bad")})
        kinds = {"JSON": "read/a.json", "JSON_MIN": "refused/min.json", "CSV": "refused/a.csv",
                 "TSV": "refused/a.tsv", "CONLL2003": "refused/a.conll", "COCO": "refused/coco.zip",
                 "YOLO": "refused/yolo.zip", "ASR_MANIFEST": "refused/asr.zip"}  # fmt: skip
        for kind, name in kinds.items():
            path = f"/api/projects/{project}/export?exportType={kind}&download_all_tasks=true"
            (folder / name).write_bytes(admin.get(path))


def chosen(label: str) -> list[dict[str, Any]]:
    """Label Studio's result."""
    result = {"from_name": "tone", "to_name": "text", "type": "choices"}
    return [{**result, "value": {"choices": [label]}}]


def signed_in(url: str, address: str, path: str) -> Client:
    """Somebody with an account of Label Studio, which an invitation makes."""
    client = Client(url)
    client.get(path)
    form = {"email": address, "password": PASSWORD, "csrfmiddlewaretoken": client.token(),
            "allow_newsletters": "false", "how_find_us": ""}  # fmt: skip
    client.send(path, form)
    return client


def annotate_in_doccano(folder: Path) -> None:
    """A project in which people work apart, with a comment."""
    port, program = free_port(), str(BIN / "doccano")
    more = {"DOCCANO_HOME": str(folder), "DATABASE_URL": f"sqlite:///{folder}/db.sqlite3"}
    quiet = {"cwd": folder, "check": True, "env": os.environ | more, "capture_output": True}
    subprocess.run([program, "init"], **quiet)
    for name in ("admin", *PEOPLE):
        account = ["--username", name, "--password", PASSWORD]
        subprocess.run([program, "createuser", *account], **quiet)
    server = [program, "webserver", "--port", str(port), "--workers", "1"]
    with running(server, [program, "task"], port=port, folder=folder, **more) as url:
        clients = {}
        for name in ("admin", *PEOPLE):
            clients[name] = client = Client(url)
            client.post("/v1/auth/login/", {"username": name, "password": PASSWORD})
        admin = clients["admin"]
        project = admin.post("/v1/projects", {
            "name": "tone", "description": "d", "guideline": "g", "random_order": False,
            "project_type": "DocumentClassification", "resourcetype": "TextClassificationProject",
            "collaborative_annotation": False, "single_class_classification": True, "tags": [],
        })["id"]  # fmt: skip
        at = f"/v1/projects/{project}"
        roles = {one["name"]: one["id"] for one in json.loads(admin.get("/v1/roles"))}
        ids = {one["username"]: one["id"] for one in json.loads(admin.get("/v1/users"))}
        for name in PEOPLE:
            admin.post(f"{at}/members", {"user": ids[name], "role": roles["annotator"]})
        colours = {"background_color": "#209cee", "text_color": "#ffffff"}
        labels = {
            label: admin.post(f"{at}/category-types", {"text": label, **colours})["id"]
            for label in LABELS
        }
        rows = "\n".join(json.dumps({"text": text}) for text in TEXTS).encode()
        file = admin.upload("/v1/fp/process/", "in.jsonl", rows)
        done(admin, admin.post(f"{at}/upload", {
            "format": "JSONL", "task": "DocumentClassification", "uploadIds": [file],
            "column_data": "text", "column_label": "label", "encoding": "utf_8", "delimiter": ",",
        }))  # fmt: skip
        examples = json.loads(admin.get(f"{at}/examples?limit=100"))["results"]
        for person, text, label in annotated():
            path = f"{at}/examples/{examples[text]['id']}/categories"
            clients[PEOPLE[person]].post(path, {"label": labels[label]})
        clients["ann"].post(f"{at}/comments?example={examples[0]['id']}", {"text": "Why?"})
        for kind in ("JSONL", "JSON", "CSV", "fastText"):
            told = admin.post(f"{at}/download", {"format": kind, "exportApproved": False})
            done(admin, told)
            place = "read" if kind.startswith("JSON") else "refused"
            export = admin.get(f"{at}/download?taskId={told['task_id']}")
            assert zipfile.is_zipfile(io.BytesIO(export))
            (folder / place / f"{kind}.zip").write_bytes(export)


def done(client: Client, told: dict[str, str]) -> None:
    """Wait for a task of doccano's worker."""
    path = f"/v1/tasks/status/{told['task_id']}"
    until(lambda: bool(json.loads(client.get(path))["ready"]))


def annotate_in_potato_2(folder: Path) -> None:
    """A choice, that one person changes."""
    port, project = free_port(), potato_project(folder, "config.yaml")
    with running([str(BIN / "potato"), "start", "config.yaml", "-p", str(port)], port=port,
                 folder=project) as url:  # fmt: skip
        for person, name in enumerate(PEOPLE):
            client = Client(url)
            client.send("/auth", {"email": name, "pass": ""})
            client.get("/annotate")
            changed = {"instance_id": "i0", "annotations": {"tone:::bad": "bad"}}
            client.post("/updateinstance", changed)
            for who, text, label in annotated():
                if who == person:
                    told = {"instance_id": f"i{text}", "annotations": {f"tone:::{label}": label}}
                    client.post("/updateinstance", told)
    for kind in ("csv", "tsv", "jsonl"):
        place = folder / ("read" if kind == "jsonl" else "refused") / kind
        subprocess.run(
            [sys.executable, "-m", "potato.export", "--config", "config.yaml", "--format", kind,
             "--output", place], cwd=project, check=True, capture_output=True,
        )  # fmt: skip
        shutil.copy(project / "items.jsonl", place)
    shutil.copytree(project / "out", folder / "refused" / "state")
    shutil.copy(project / "items.jsonl", folder / "refused" / "state")


def annotate_in_potato_1(folder: Path) -> None:
    """A choice, as the page's form sends it: by the name of its input, with the key as value."""
    for kind in ("jsonl", "csv"):
        port, project = free_port(), potato_project(folder, "config.yaml", format=kind)
        with running([str(BIN / "potato"), "start", "config.yaml", "-p", str(port)], port=port,
                     folder=project) as url:  # fmt: skip
            for person, name in enumerate(PEOPLE):
                client = Client(url)
                client.send("/login", {"action": "login", "email": name})
                client.send("/annotate", {"email": name, "src": "home"})
                for who, text, label in annotated():
                    if who == person:
                        key = str(LABELS.index(label) + 1)
                        form = {"email": name, "instance_id": text, "src": "go_to", "go_to": text}
                        client.send("/annotate", {**form, f"tone:::{label}": key})
            time.sleep(2)  # it writes the common file in a thread
        shutil.copytree(project / "out", folder / "read" / kind)
        if kind == "csv":
            shutil.copy(project / "out" / "annotated_instances.csv", folder / "refused")


def potato_project(folder: Path, name: str, **more: str) -> Path:
    """A folder with the items and the configuration of both versions."""
    project = folder / f"project{len([*folder.glob('project*')])}"
    project.mkdir()
    items = ({"id": f"i{number}", "text": text} for number, text in enumerate(TEXTS))
    (project / "items.jsonl").write_text("\n".join(map(json.dumps, items)) + "\n")
    scheme = {"annotation_type": "radio", "name": "tone", "description": "Tone?",
              "labels": LABELS, "sequential_key_binding": True}  # fmt: skip
    config = {
        "annotation_task_name": "tone", "server_name": "potato", "task_dir": ".", "port": 8000,
        "output_annotation_dir": "out/", "data_files": ["items.jsonl"],
        "item_properties": {"id_key": "id", "text_key": "text"},
        "user_config": {"allow_all_users": True, "users": []}, "require_password": False,
        "annotation_schemes": [scheme], "site_dir": "default", "secret_key": "x",
        "alert_time_each_instance": 10_000_000,
    }  # fmt: skip
    if kind := more.get("format"):
        config |= {
            "output_annotation_format": kind, "html_layout": "default", "header_file": "default",
            "base_html_template": "default", "annotation_codebook_url": "",
            "login": {"type": "url_direct", "url_argument": "who"},
        }  # fmt: skip
    (project / name).write_text(json.dumps(config))
    return project


def annotate_in_argilla(folder: Path) -> None:
    """Records of the client, as its server is not installed; one response each is a draft."""
    from uuid import UUID

    import argilla
    from argilla.records._io import GenericIO, JsonIO

    people = [UUID(int=number + 1) for number in range(len(PEOPLE))]
    responses: list[list[Any]] = [[] for _ in TEXTS]
    for person, text, label in annotated():
        responses[text].append(argilla.Response("tone", label, people[person], "submitted"))
    records = [
        argilla.Record(id=f"r{number}", fields={"text": text}, responses=responses[number])
        for number, text in enumerate(TEXTS)
    ]
    JsonIO.to_json(records, folder / "read" / "records.json")
    for record in records:
        record.responses.add(argilla.Response("tone", "bad", UUID(int=9), "draft"))
    flat = GenericIO.to_list(records, flatten=True)
    (folder / "read" / "flat.json").write_text(json.dumps(flat))
    (folder / "refused" / "dict.json").write_text(json.dumps(GenericIO.to_dict(records)))


def main(tool: str, folder: Path) -> None:
    for name in ("read", "refused"):
        (folder / name).mkdir(parents=True)
    globals()[f"annotate_in_{tool}"](folder)
    said: dict[str, list[str]] = {text: [] for text in TEXTS}
    for _, text, label in annotated():
        said[TEXTS[text]].append(label)
    (folder / "said.json").write_text(json.dumps(said))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]).absolute())
