"""An owner reads the disk of the model server and asks other tasks' targets.

A target's source is what the model server loads, and its address is what the site asks. So an owner
who enters `/etc` learns whether it exists, one who enters a folder of another task has its model,
and one who enters the model server's address with another target's name is answered by that.
"""

import http.server
import json
import threading
from types import SimpleNamespace

import pytest
from django.urls import reverse

from core.accounts.models import confirm_address
from core.data.encryption import derive_keys
from evaluation.task_shape import build_trainable_shape
from evaluation.training.fine_tune import TrainingOptions
from evaluation.training.next_target import _find_models_folder, open_base
from serving.errors import MisconfiguredError
from serving.registry import ModelRegistry
from serving.spec import open_folder
from tasks.models import Generator, TargetModel, TaskMember
from tasks.rounds.loop import register_target
from tasks.targets.connect import (
    SERVER_KEY_PURPOSE,
    build_chooser_endpoint,
    build_spec,
    find_registered_spec,
    get_endpoint,
    get_generator_endpoint,
    list_registered_names,
)
from tasks.targets.endpoints.base import EndpointError
from tests.support.battles import task as arena  # noqa: F401
from tests.support.factories import RoundFactory, TaskFactory
from tests.support.model_server import serving, wait_for

LABELS = ["entailment", "neutral", "contradiction"]
PAGE = "/own/nli/targets/new/"
API = "/api/v1/tasks/nli/target-models/"


@pytest.fixture
def home(settings, tmp_path):
    """The models' folder, with models that owners may and may not have."""
    settings.MODELS_HOME = tmp_path / "models"
    return settings.MODELS_HOME


@pytest.fixture
def owner(client, alice, nli):
    confirm_address(alice)
    TaskMember.objects.create(task=nli.task, user=alice, role="owner")
    client.force_login(alice)
    return client


@pytest.fixture
def others(db, home):
    """A hidden task whose target lies in the models' folder."""
    round = RoundFactory(task=TaskFactory(code="sentiment", is_visible=False))
    source = str(_model(home / "kept" / "theirs"))
    return register_target(task=round.task, name="theirs", round=round, source=source)


def _model(folder):
    """A folder as far as it is looked at before the first call."""
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"")
    (folder / "config.json").write_text('{"architectures": ["BertForSequenceClassification"]}')
    told = {"kind": "pair-classification", "fields": ["premise", "hypothesis"], "labels": LABELS}
    (folder / "dynabench.json").write_text(json.dumps(told))
    return folder


def _sources(home):
    """What is not to be had: there, not there, and in other words."""
    outside = _model(home.parent / "outside")
    (home / "link").symlink_to(outside)
    _model(home / "targets" / "sentiment" / "digest")
    theirs = home / "kept" / "theirs"
    return [
        "/etc", "/root/.ssh", "/nowhere/at/all", "/proc/self/environ", str(outside), f"{home}",
        f"{home}/../outside", f"{home}/missing/../../outside", f"{home}/link", f"{home}/link/.",
        f"{home}/link/../kept/theirs", "../../etc", "~/models", "file:///etc", "models",
        str(theirs), f"{home}/kept/./theirs", f"{home}/x/../kept/theirs",
        f"{home}/targets/sentiment/digest", f"{home}/targets/sentiment/missing",
        f"{home}/targets", f"{home}/kept", str(_model(theirs / "inner")), "org/..", "../name",
    ]  # fmt: skip


def _form(source, **changes):
    return {"name": "mine", "adapter": "http", "source": source, "options": "{}", "serving": "{}",
            **changes}  # fmt: skip


def test_no_door_takes_a_folder_of_this_machine(owner, nli, others, home, alice):
    mine = register_target(task=nli.task, name="mine", source="org/name")
    change = {"serving": {"fields": ["premise"]}}
    assert owner.patch(f"{API}{mine.pk}/", change, "application/json").status_code == 200
    said = set()
    for source in _sources(home):
        new = owner.post(PAGE, _form(source, name="new"))
        edited = owner.post(f"/own/nli/targets/{mine.pk}/", _form(source))
        body = {"name": "new", "adapter": "http", "source": source}
        posted = owner.post(API, body, "application/json")
        patched = owner.patch(f"{API}{mine.pk}/", {"source": source}, "application/json")
        for page in (new, edited):
            assert page.status_code == 422, source
            said.add(str(page.context["form"].errors.get_json_data()))
        for answer in (posted, patched):
            assert answer.status_code in (409, 422), source
            said.add(answer.text)
    assert len(said) == 2  # one for pages, one for the API
    assert not TargetModel.objects.filter(name="new").exists()
    mine.refresh_from_db()
    assert (mine.source, mine.allowed_folder) == ("org/name", "")


def test_the_admin_takes_none_of_an_editor(owner, nli, home, alice):
    alice.is_staff = True
    alice.save()
    form = {"task": nli.task.pk, "serving": "{}", "gpus": ""}
    add = reverse("admin:tasks_targetmodel_add")
    refused = owner.post(add, {**_form("/etc"), **form})
    assert refused.status_code == 200
    assert "source" in refused.context["errors"].as_data() or refused.context["errors"]
    assert not TargetModel.objects.exists()
    assert owner.post(add, {**_form("org/name"), **form}).status_code == 302
    target = TargetModel.objects.get()
    change = reverse("admin:tasks_targetmodel_change", args=[target.pk])
    assert owner.post(change, {**_form("/etc"), **form}).status_code == 200
    assert TargetModel.objects.get().source == "org/name"


def test_an_arena_takes_none_either(client, bob, arena, home):  # noqa: F811
    TaskMember.objects.create(task=arena, user=bob, role="owner")
    client.force_login(bob)
    form = {**_form("/etc", name="m3"), "adapter": "openai_chat"}
    assert client.post("/own/duel/arena/", form).status_code == 422
    assert not arena.targets.filter(name="m3").exists()


def test_what_an_owner_may_have_is_taken(owner, nli, others, home):
    own = _model(home / "targets" / "nli" / "digest")
    put_here = _model(home / "mine")
    others.task.is_visible = True
    others.task.save()
    for number, source in enumerate(["org/name", "package:llm", str(own), str(put_here),
                                     others.source]):  # fmt: skip
        adapter = "openai_chat" if source.startswith("package:") else "http"
        form = _form(source, name=f"new-{number}", adapter=adapter)
        assert owner.post(PAGE, form).status_code == 302, source
        target = TargetModel.objects.get(name=f"new-{number}")
        assert (target.source, target.allowed_folder) == (source, "")
    for name in ("new-2", "new-3", "new-4"):
        assert open_folder(find_registered_spec(name)).labels == tuple(LABELS)


def test_an_administrator_names_any_folder_and_its_copies_load(owner, nli, home, alice):
    outside = str(_model(home.parent / "outside"))
    alice.is_superuser = True
    alice.save()
    assert owner.post(PAGE, _form(outside)).status_code == 302
    assert TargetModel.objects.get().allowed_folder == outside
    assert open_folder(find_registered_spec("mine")).labels == tuple(LABELS)
    alice.is_superuser = False
    alice.save()
    assert owner.post(PAGE, _form(outside, name="copy")).status_code == 302
    assert open_folder(find_registered_spec("copy")).labels == tuple(LABELS)


@pytest.mark.parametrize("key", ["below", "task", "source", "name"])
def test_how_it_is_served_opens_no_folder(owner, nli, home, key):
    served = json.dumps({key: None})
    page = owner.post(PAGE, _form("org/name", serving=served))
    assert [*page.context["form"].errors] == ["serving"]


def test_the_model_server_looks_again_and_says_one_sentence(nli, home):
    """Rows of any origin, and links that were changed after the check."""
    inside = _model(home / "inside")
    target = register_target(task=nli.task, name="mine", source=str(inside))
    assert open_folder(build_spec(target)).labels == tuple(LABELS)
    (home / "swapped").symlink_to(inside)
    target.source = str(home / "swapped")
    assert open_folder(build_spec(target))
    (home / "swapped").unlink()
    (home / "swapped").symlink_to("/etc")
    (home / "empty").mkdir()
    pickled = _model(home / "pickled")
    (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
    broken = _model(home / "broken")
    (broken / "config.json").write_text("[")
    said = set()
    for source in ("/etc", "/root/.ssh", "/nowhere", str(home / "swapped"), str(home / "empty"),
                   str(home / "missing"), str(pickled), str(broken), "tests/web",
                   "package:django", "package:no-such"):  # fmt: skip
        target.source = source
        if source == "tests/web":
            target.revision = "a" * 40  # a hub id, though such a folder is where the site runs
            assert build_spec(target).below
            continue
        with pytest.raises(MisconfiguredError) as error:
            open_folder(build_spec(target))
        said.add(str(error.value))
    assert len(said) == 1


def test_a_training_opens_no_folder_that_its_target_may_not(nli, home, monkeypatch):
    """A base that reads like a hub id is no folder where the queue happens to run."""
    target = register_target(task=nli.task, name="mine", source="kept/there", revision="a" * 40)
    _model(home.parent / "kept" / "there")
    monkeypatch.chdir(home.parent)
    with pytest.raises(MisconfiguredError):  # from the hub alone, which is not to be reached
        open_base(
            {"base": target.source, "revision": ""},
            build_trainable_shape(nli.task.config),
            TrainingOptions(),
            below=_find_models_folder(nli.task, target.source),
        )
    assert _find_models_folder(nli.task, "another/one") is None


class Loaded(ModelRegistry):
    """A registry whose models are there at once, and answer who they are."""

    def _load_entry(self, entry):
        info = {"name": entry.spec.name, "kind": "pair-classification", "labels": LABELS,
                "fields": ["premise", "hypothesis"], "fingerprint": {"digest": "0"}}  # fmt: skip
        entry.model = SimpleNamespace(info=info)


@pytest.fixture
def server(settings, tmp_path, nli):
    """The site's model server, with a target of NLI and one of another task."""
    other = TaskFactory(code="other", config_text=nli.task.config_text)
    for task, name in ((nli.task, "ours"), (other, "theirs")):
        register_target(task=task, name=name, source="org/name")
    specs = {name: find_registered_spec(name) for name in list_registered_names()}
    registry = Loaded(specs.get, specs.keys, tmp_path)
    for name in specs:
        wait_for(registry, name)
    with serving(registry, derive_keys(SERVER_KEY_PURPOSE)) as port:
        settings.MODEL_SERVER_URL = f"http://127.0.0.1:{port}"
        settings.TARGET_PRIVATE_HOSTS = ["localhost", "127.0.0.0/8", "::1", "2130706433"]
        yield port


def _name(task, url, **fields):
    target = TargetModel(task=task, name="mine", url=url, **fields)
    return get_endpoint(target).info(deadline_seconds=5).name


def _failure(task, url):
    with pytest.raises(EndpointError) as error:
        _name(task, url)
    return error.value.reason, str(error.value)


def test_a_task_asks_its_own_targets_by_any_of_their_addresses(nli, server):
    assert (
        get_endpoint(TargetModel.objects.get(name="ours")).info(deadline_seconds=5).name == "ours"
    )
    assert get_endpoint(TargetModel.objects.get(name="theirs")).info(deadline_seconds=5)
    assert _name(nli.task, f"http://127.0.0.1:{server}/models/ours") == "ours"
    assert _name(nli.task, f"http://127.0.0.1:{server}/models/ours/") == "ours"


def test_another_tasks_target_is_as_one_that_is_not_there(nli, server):
    base = f"http://127.0.0.1:{server}/models"
    _, missing = _failure(nli.task, f"{base}/missing")
    _, theirs = _failure(nli.task, f"{base}/theirs")
    assert theirs.replace("theirs", "missing") == missing
    for path in ("/models/%74heirs", "/models/./theirs", "/models/ours/../theirs",
                 "//models/theirs", "/models/theirs?x=1", "/models/ours%2f..%2ftheirs",
                 "/MODELS/theirs"):  # fmt: skip
        assert _failure(nli.task, f"http://127.0.0.1:{server}{path}")[0] == "misconfigured", path


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST", "localhost.", "127.1", "127.0.0.2", "2130706433", "0x7f.1",
             "[::ffff:127.0.0.1]"],
)  # fmt: skip
def test_other_words_for_the_model_server_prove_nothing(nli, server, host):
    """Even where the operator has opened private hosts: no call there carries a proof."""
    for name in ("ours", "theirs"):
        assert _failure(nli.task, f"http://{host}:{server}/models/{name}")


def test_chat_doors_ask_no_other_tasks_model(nli, server):
    url, said = f"http://127.0.0.1:{server}/v1", set()
    for name in ("theirs", "missing"):
        about = {"url": url, "options": {"model": name}}
        chat = TargetModel(task=nli.task, name="x", adapter="openai_chat", **about)
        asked = {"output": "v", "labels": ("yes", "no"), "prompt": "Judge."}
        doors = [
            (get_endpoint(chat), {"premise": "a", "hypothesis": "b"}),
            (get_generator_endpoint(Generator(task=nli.task, name="g", **about)),
             {"premise": "a", "goal": "b"}),
            (build_chooser_endpoint(chat, ("premise",), **asked), {"premise": "a"}),
        ]  # fmt: skip
        for endpoint, row in doors:
            with pytest.raises(EndpointError) as error:
                endpoint.predict([row], deadline_seconds=5)
            assert error.value.reason == "misconfigured"
            said.add(str(error.value).replace(name, "NAME"))
    assert len(said) == 1


def test_a_redirect_carries_no_proof(nli, server, settings):
    class Redirects(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(307)
            self.send_header("Location", f"http://127.0.0.1:{server}/models/theirs/info")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args):
            pass

    own = http.server.HTTPServer(("127.0.0.1", 0), Redirects)
    threading.Thread(target=own.serve_forever, daemon=True).start()
    try:
        assert _failure(nli.task, f"http://127.0.0.1:{own.server_port}")[0] == "misconfigured"
    finally:
        own.shutdown()
