"""What docs/threat-model.md promises and no attack of another file shows."""

import ast
import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from allauth.account.adapter import get_adapter
from django.utils import timezone

from annotation.writing.result_panel import round_chances
from core.accounts.services import get_annotator
from core.web import throttles
from evaluation.contract import Runnable
from evaluation.isolation.sandbox import containers
from evaluation.isolation.sandbox.containers import DockerRunner
from evaluation.isolation.sandbox.engine import Engine
from evaluation.isolation.sandbox.limits import Limits
from evaluation.jobs import serve_practice
from evaluation.models import PracticeRun
from evaluation.submissions.practice import serve
from evaluation.submissions.practice.services import record_host, start_run
from tests.support.evaluations import accepted_model
from tests.support.factories import UserFactory, scripted_target
from tests.support.judging import write
from tests.support.practice import scripted_engine
from tests.support.variables import APPS
from tests.support.writing import URL, open_form, stored
from tests.web.conftest import HTMX
from validation.models import Gold, GoldAnswer, Validation

ROOT = Path(__file__).parents[2]
VISITOR = "203.0.113.9"
HALF_AN_HOUR = timedelta(minutes=30)


class Cache(dict):
    """A cache that remembers for how long each of its entries was to be kept."""

    def add(self, key: str, value: int, timeout: int) -> None:
        self.setdefault(key, (value, timeout))

    def incr(self, key: str) -> int:
        value, timeout = self[key]
        self[key] = (value + 1, timeout)
        return value + 1


def test_a_visitors_address_is_kept_as_a_keyed_hash_for_an_hour(monkeypatch):
    cache = Cache()
    monkeypatch.setattr(throttles, "cache", cache)
    used_up = [throttles.is_used_up("try-out", VISITOR) for _ in range(21)]
    assert used_up == [False] * 20 + [True]
    ((key, (count, seconds)),) = cache.items()
    assert (count, seconds) == (21, 3600)
    assert VISITOR not in key
    throttles.is_used_up("try-out", "203.0.113.10")
    assert len(cache) == 2


@pytest.mark.parametrize(("proxies", "address"), [(0, VISITOR), (1, "198.51.100.7")])
def test_nobody_chooses_the_address_that_is_counted(rf, settings, proxies, address):
    """What a visitor writes stands before what our proxies add, and is not read."""
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = proxies
    forwarded = "192.0.2.1, 198.51.100.7"
    request = rf.get("/", REMOTE_ADDR=VISITOR, HTTP_X_FORWARDED_FOR=forwarded)
    assert get_adapter().get_client_ip(request) == address


def test_metrics_name_nobody(client, as_alice, alice, nli, settings):
    settings.METRICS_TOKEN = "let me see"
    scripted_target(nli, label="neutral")
    example = stored(as_alice)
    page = client.get("/metrics", headers={"Authorization": "Bearer let me see"}).text
    assert "dynabench_live_call_seconds_count" in page
    for told in (alice.email, get_annotator(alice).pseudonym, str(example.uuid)):
        assert told not in page


def test_rounded_chances_have_no_second_digit(as_alice, nli):
    task = nli.task
    task.config_text = task.config_text.replace("show_confidence: full", "show_confidence: rounded")
    task.save()
    assert task.config.limits.show_confidence == "rounded"
    chances = {"entailment": 0.91, "neutral": 0.09, "contradiction": 0}
    assert round_chances(chances, "rounded") == {
        "entailment": 0.9,
        "neutral": 0.1,
        "contradiction": 0,
    }
    scripted_target(nli, label="entailment", prob=chances)
    page = as_alice.post(URL, open_form(as_alice), **HTMX).text
    assert "90" in page
    assert not re.search(r"\b(0\.)?91\b", re.sub(r'value="[^"]*"|/attempt/[^"]*', "", page))


def test_a_download_names_no_gold_item_and_no_single_vote_of_others(as_alice, alice, bob, nli):
    me, carol = get_annotator(alice), get_annotator(UserFactory())
    judged, known = write(nli, bob), write(nli, bob, 1)
    Validation.objects.create(example=judged, validator=me, label="neutral")
    gold = Gold.objects.create(example=known, label="entailment", explanation="It is gold.")
    GoldAnswer.objects.create(gold=gold, validator=me, label="neutral", is_correct=False)
    mine = write(nli, alice, 2)
    Validation.objects.create(
        example=mine, validator=carol, label="contradiction", comment="Carol's comment."
    )
    text = b"".join(as_alice.get("/me/data/download/").streaming_content).decode()
    vote, answer = json.loads(text)["judgements"]
    assert {vote["example_uuid"], answer["example_uuid"]} == {str(judged.uuid), str(known.uuid)}
    assert vote.keys() == answer.keys()
    for told in ("is_correct", gold.explanation, "Carol's comment.", carol.pseudonym):
        assert told not in text


@pytest.fixture
def options(monkeypatch, tmp_path):
    """What the engine is asked for: the options of a stranger's image."""
    engine = Engine("28", "2", "amd64", has_runsc=False, has_seccomp=True, cpus=8, root="/x")
    monkeypatch.setattr(containers, "find_engine", lambda: engine)
    image = SimpleNamespace(attrs={"Config": {"Volumes": {"/data": {}}}})
    model = Runnable(image="sha256:1")
    return DockerRunner("a")._build_options(image, model, tmp_path / "examples.jsonl", Limits())


def test_a_container_has_neither_network_nor_rights_nor_secrets(options):
    assert (options["network_mode"], options["network_disabled"]) == ("none", True)
    assert options["user"] == "65534:65534"
    assert options["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in options["security_opt"]
    (seccomp,) = (one for one in options["security_opt"] if one.startswith("seccomp="))
    assert json.loads(seccomp.partition("=")[2])["defaultAction"] == "SCMP_ACT_ERRNO"
    assert options["environment"].keys() == {"HOME", "LANG", "OMP_NUM_THREADS"}
    (mount,) = options["mounts"]
    assert (mount["Target"], mount["ReadOnly"]) == ("/input/examples.jsonl", True)


def test_a_container_writes_nothing_to_disk_and_dies_before_anything_of_ours(options):
    assert options["read_only"]
    assert options["log_config"]["Type"] == "none"
    assert options["tmpfs"]["/data"].startswith("ro,")
    assert "size=" in options["tmpfs"]["/tmp"]
    assert options["memswap_limit"] == options["mem_limit"]
    assert options["oom_score_adj"] > 0


def test_what_people_try_ends_after_half_an_hour(nli, monkeypatch):
    record_host("here")
    scripted_engine(monkeypatch)
    given = []

    def run(self, model, inputs, limits, **calls):
        given.append(limits.seconds)
        raise serve.RunEnded

    monkeypatch.setattr("tests.support.practice.Engine.run", run)
    begun = start_run(accepted_model(nli.task, is_published=True))
    assert begun.deadline_at <= timezone.now() + HALF_AN_HOUR
    serve_practice(begun.pk)
    assert PracticeRun.objects.get().state == "done"
    assert given == [HALF_AN_HOUR.total_seconds()]


SAFE = {"trust_remote_code": False, "use_safetensors": True}
"""What loaders of weights must be told, where they are told anything of it."""


def unsafe_loads(tree: ast.AST) -> Iterator[str]:
    """Name what would run a stranger's code.

    >>> [*unsafe_loads(ast.parse("f(trust_remote_code=True); {'use_safetensors': x}"))]
    ['trust_remote_code', 'use_safetensors']
    >>> [*unsafe_loads(ast.parse("torch.load(x); f(use_safetensors=True)"))]
    ['torch.load']
    """
    for node in ast.walk(tree):
        pairs: list[tuple[str | None, ast.expr]] = []
        if isinstance(node, ast.Call):
            pairs = [(one.arg, one.value) for one in node.keywords]
            if ast.unparse(node.func) in ("torch.load", "joblib.load"):
                yield ast.unparse(node.func)
        elif isinstance(node, ast.Dict):
            named = zip(node.keys, node.values, strict=True)
            pairs = [(key.value, value) for key, value in named if isinstance(key, ast.Constant)]
        for name, value in pairs:
            if name in SAFE and ast.unparse(value) != str(SAFE[name]):
                yield name


def test_no_code_of_a_model_is_trusted():
    files = [file for app in APPS for file in (ROOT / app).rglob("*.py")]
    texts = {file: file.read_text() for file in files}
    assert sum("trust_remote_code=False" in text for text in texts.values()) >= 2
    for file, text in texts.items():
        assert [*unsafe_loads(ast.parse(text))] == [], file
