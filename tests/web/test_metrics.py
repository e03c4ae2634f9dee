"""`/metrics`: who may read it, what it tells, and that alerts and the board name nothing else."""

import json
import os
import re
import subprocess
import sys
from ipaddress import ip_network
from pathlib import Path

import pytest
from django.core.cache import cache
from django.db import OperationalError
from django_prometheus.middleware import Metrics as DjangoMetrics
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from core.jobs.services import record_job_success
from dynabench.operations.watching import metrics
from evaluation.models import TrainingRun
from serving import measures  # noqa: F401  (in the model server's own /metrics)
from tasks.targets.circuit_breaker.breaker import FAILURES_TO_OPEN, Breaker
from tasks.targets.endpoints.base import EndpointError
from tests.support.factories import RoundFactory, scripted_target
from tests.support.writing import stored

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).parents[2]
TOKEN = {"Authorization": "Bearer let me see"}


@pytest.fixture
def _asked_for(settings):
    settings.METRICS_TOKEN = "let me see"
    cache.clear()


def figures(client) -> dict[tuple[str, ...], float]:
    """Each value by the metric's name and the values of its labels."""
    text = client.get("/metrics", headers=TOKEN).content.decode()
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_who_may_read(client, settings):
    assert client.get("/metrics", headers=TOKEN).status_code == 404
    settings.METRICS_TOKEN = "let me see"
    assert client.get("/metrics", headers=TOKEN).status_code == 200
    assert client.get("/metrics").status_code == 403
    assert client.get("/metrics", headers={"Authorization": "Bearer é"}).status_code == 403
    settings.METRICS_TOKEN, settings.METRICS_NETWORKS = "", [ip_network("127.0.0.0/8")]
    assert client.get("/metrics").status_code == 200
    assert client.get("/metrics", REMOTE_ADDR="10.0.0.1").status_code == 403
    assert client.get("/metrics", REMOTE_ADDR="::1").status_code == 403


@pytest.mark.usefixtures("_asked_for")
def test_what_it_tells(client, django_assert_max_num_queries):
    round = RoundFactory(state="open")
    target = scripted_target(round, "slowpoke")
    TrainingRun.objects.create(task=round.task, options={})
    with record_job_success("sweep"):
        pass
    for _ in range(FAILURES_TO_OPEN):
        Breaker(cache, str(target.pk)).note_failed_call(EndpointError("It is away.", reason="down"))
    with django_assert_max_num_queries(23):
        found = figures(client)
    assert found["dynabench_database_up",] == 1
    assert found["dynabench_queue_waiting", "trainingrun"] == 1
    assert found["dynabench_queue_oldest_seconds", "trainingrun"] < 60
    assert found["dynabench_queue_running", "evaluationrun"] == 0
    assert found["dynabench_breaker_open", "slowpoke"] == 1
    assert found["dynabench_last_success_timestamp_seconds", "sweep"] > 1e9
    with django_assert_max_num_queries(0):
        figures(client)


@pytest.mark.usefixtures("_asked_for")
def test_calls_of_models_are_counted_by_target(client, as_alice, nli):
    def calls():
        return figures(client).get(("dynabench_live_call_seconds_count", "ok", "scripted"), 0)

    scripted_target(nli, label="neutral")
    before = calls()
    stored(as_alice)
    after = figures(client)
    assert calls() == before + 1
    assert after["dynabench_live_calls_open",] == 0
    assert not [key for key in after if "alice" in str(key)]


@pytest.mark.usefixtures("_asked_for")
def test_without_a_database_it_says_so(client, monkeypatch):
    def fails():
        raise OperationalError("connection refused")

    monkeypatch.setattr(metrics, "count_facts", fails)
    found = figures(client)
    assert found["dynabench_database_up",] == 0
    assert ("dynabench_queue_waiting", "trainingrun") not in found


TWO_PROCESSES = """
import os
from dynabench.wsgi import application
from django.test import Client
client = Client(headers={"host": "localhost", "authorization": "Bearer let me see"})
if child := os.fork():
    os.waitpid(child, 0)
client.generic("ODD", "/healthz/")
if child:
    import sys
    assert "opentelemetry.sdk" not in sys.modules, "traces cost time where nobody wants them"
    print(client.get("/metrics").content.decode())
"""


@pytest.mark.django_db(databases=[])
def test_processes_of_a_server_count_together(tmp_path, monkeypatch):
    gone = tmp_path / "metrics" / f"{os.uname().nodename}-{2**22 + 1}"
    gone.mkdir(parents=True)
    monkeypatch.setenv("METRICS_TOKEN", "let me see")
    monkeypatch.setenv("DYNABENCH_HOME", str(tmp_path))
    monkeypatch.setenv("DATABASE_URL", f"sqlite:///{tmp_path}/none.sqlite3")
    done = subprocess.run(
        [sys.executable, "-c", TWO_PROCESSES], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert 'total_by_status_total{status="200"} 2.0' in done.stdout
    assert "ODD" not in done.stdout
    assert "dynabench_database_up 0.0" in done.stdout
    assert not gone.exists()


def test_alerts_and_the_board_ask_for_what_is_exported():
    DjangoMetrics.get_instance()
    rows = list(metrics.SiteCollector().collect())
    exported = set(REGISTRY._names_to_collectors) | {one.name for one in rows}
    labelled = [*rows, *REGISTRY._collector_to_names]
    labels = {name for one in labelled for name in getattr(one, "_labelnames", ())}
    assert not labels & {"job", "instance"}  # which Prometheus sets, and renames ours
    for file in ("prometheus/dynabench.rules.yml", "grafana/dynabench.json"):
        text = (ROOT / "deploy" / file).read_text()
        named = set(re.findall(r"\b(?:dynabench|django)_\w+", text))
        assert named, file
        assert named - exported == set(), file
        asked = re.findall(r"\bby \(([^)]*)\)|_\w+\{(\w+)[=!]", text)
        by = {name for pair in asked for name in re.findall(r"\w+", " ".join(pair))}
        assert by - labels == {"le", "instance"} & by, file


@pytest.mark.promtool
def test_prometheus_knows_the_rules_and_what_the_board_asks(tmp_path):
    board = json.loads((ROOT / "deploy/grafana/dynabench.json").read_text())
    asked = [one["expr"] for panel in board["panels"] for one in panel["targets"]]
    rules = [{"record": f"board:{number}", "expr": one} for number, one in enumerate(asked)]
    (tmp_path / "board.yml").write_text(json.dumps({"groups": [{"name": "b", "rules": rules}]}))
    files = [ROOT / "deploy/prometheus/dynabench.rules.yml", tmp_path / "board.yml"]
    done = subprocess.run(["promtool", "check", "rules", *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"{len(asked)} rules found" in done.stdout
