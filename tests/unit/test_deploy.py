"""Compose, systemd and Kubernetes files: valid, and of variables that the site reads."""

import json
import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from django.urls import reverse
from jsonschema.validators import validator_for
from packaging.requirements import Requirement

from core.text.docs import build_slug, get_docs_page
from dynabench.checks import REQUIRED_SETTINGS, check_key_source, check_required_settings
from scripts.lacking_wheels import lacking
from tests.support.variables import APPS, variables

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
KUSTOMIZE = DEPLOY / "kubernetes"
SOCKET = "/var/run/docker.sock"
# Read by Compose, the services' own programs, Docker's library and Python.
OF_OTHERS = {
    "BACKUP_DAYS", "BACKUP_TO", "DOCKER_HOST", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH",
    "PASSWORD_FILE", "TMPDIR", "WEB_CONCURRENCY", "XDG_CONFIG_HOME", "XDG_DATA_HOME",
    "SITE_HOST",
}  # fmt: skip


def manifests():
    for file in sorted(KUSTOMIZE.glob("*/*.yaml")):
        if file.name != "kustomization.yaml":
            yield from yaml.safe_load_all(file.read_text())


def containers(of):
    """The pod templates of a manifest, by walking it."""
    if isinstance(of, dict):
        if "containers" in of:
            yield of
        for value in of.values():
            yield from containers(value)


def test_manifests_are_what_kubernetes_knows_and_what_goes_out_is_named():
    version, found = kubernetes_validate.latest_version(), list(manifests())
    for one in found:
        kubernetes_validate.validate(one, version, strict=True)
    kinds = {one["kind"] for one in found}
    assert kinds == {
        "CronJob", "Deployment", "HorizontalPodAutoscaler", "Ingress", "Job", "NetworkPolicy",
        "PersistentVolumeClaim", "PodDisruptionBudget", "Service",
    }  # fmt: skip
    by_name = {(one["kind"], one["metadata"]["name"]): one for one in found}
    engine = by_name["Deployment", "engine"]["spec"]["template"]["spec"]
    assert engine["runtimeClassName"]
    policy = by_name["NetworkPolicy", "engine"]["spec"]
    assert (policy["egress"], "Egress" in policy["policyTypes"]) == ([], True)
    assert by_name["NetworkPolicy", "nothing"]["spec"]["podSelector"]["matchLabels"]
    for job in [one["spec"] for one in found if one["kind"] in ("Job", "CronJob")]:
        assert job.get("jobTemplate", {"spec": job})["spec"]["activeDeadlineSeconds"]
    pods = [pod for one in found for pod in containers(one) if pod is not engine]
    assert len(pods) == 6
    for pod in pods:
        assert pod["securityContext"]["runAsNonRoot"]
        assert not pod["automountServiceAccountToken"]
        for container in pod["containers"] + pod.get("initContainers", []):
            assert container["securityContext"]["readOnlyRootFilesystem"]
    for pod in [engine, *pods]:
        ends = pod.get("restartPolicy") == "Never"
        assert ends or all("readinessProbe" in container for container in pod["containers"])


@pytest.mark.skipif(not shutil.which("kubectl"), reason="needs kubectl")
def test_kustomize_builds_the_example(tmp_path):
    shutil.copytree(KUSTOMIZE, tmp_path / "k", ignore=shutil.ignore_patterns("secrets"))
    example = tmp_path / "k/example"
    (example / "secrets").mkdir()
    for name in re.findall(r"secrets/(\w+)", (example / "kustomization.yaml").read_text()):
        (example / "secrets" / name).write_text("x")
    built = subprocess.run(["kubectl", "kustomize", example], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    found = list(yaml.safe_load_all(built.stdout))
    queue = next(o for o in found if o["kind"] == "Deployment" and o["metadata"]["name"] == "queue")
    (container,) = queue["spec"]["template"]["spec"]["containers"]
    assert {"name": "DOCKER_TLS_VERIFY", "value": "1"} in container["env"]
    assert container["image"].startswith("registry.example.org/dynabench:")


def test_every_variable_is_one_that_the_site_reads():
    example = yaml.safe_load((KUSTOMIZE / "example/kustomization.yaml").read_text())
    engine = yaml.safe_load((KUSTOMIZE / "engine/kustomization.yaml").read_text())
    named = {
        *(name for one in COMPOSE["services"].values() for name in one.get("environment", ())),
        *(word.partition("=")[0] for word in example["configMapGenerator"][0]["literals"]),
        *re.findall(r"(?m)^([A-Z_]+)=", (DEPLOY / "systemd/dynabench.env").read_text()),
        *re.findall(r"\{name: ([A-Z_]+), value", engine["patches"][0]["patch"]),
    }
    assert named - OF_OTHERS <= variables(*APPS)
    assert len(named) > 20


def test_compose_is_what_version_2_knows():
    path = files("check_jsonschema") / "builtin_schemas" / "vendor" / "compose-spec.json"
    schema = json.loads(path.read_text())
    found = list(validator_for(schema)(schema).iter_errors(COMPOSE))
    assert not [f"{list(one.path)}: {one.message}" for one in found]


def test_what_was_erased_lies_outside_the_site_and_its_backups():
    assert COMPOSE["x-site"]["environment"]["ERASURE_LOG"].startswith("/erasures/")
    for name in ("queue", "backup"):  # who writes it, and who restores
        volumes = COMPOSE["services"][name]["volumes"]
        folders = {one.rpartition(":")[2]: one.partition("}")[0] for one in volumes}
        assert len({*folders.values()}) == len(volumes)
        assert "ERASURES_FOLDER" in folders["/erasures"]
    assert "ERASURE_LOG=/erasures/" in (KUSTOMIZE / "example/kustomization.yaml").read_text()
    assert "ERASURE_LOG=/var/log/" in (DEPLOY / "systemd/dynabench.env").read_text()


def test_only_the_queue_sees_the_engine_and_nobody_is_root():
    for name, service in COMPOSE["services"].items():
        sees = any(str(one).startswith(SOCKET) for one in service.get("volumes", ()))
        assert sees == (name == "queue")
        assert service["read_only"]
        assert service["user"] not in ("root", "0")
        assert service["cap_drop"] == ["ALL"]
        is_ours = "DYNABENCH_IMAGE" in service["image"]  # which checks its health by itself
        assert is_ours or service["healthcheck"]["test"]
    assert COMPOSE["networks"]["data"]["internal"]
    assert "data" not in COMPOSE["services"]["proxy"]["networks"]


@pytest.mark.systemd
def test_units_are_what_systemd_knows(tmp_path):
    units = []
    for unit in sorted((DEPLOY / "systemd").glob("dynabench-*.*")):
        text = re.sub(r"/srv/dynabench/\.venv/bin/\w+", "/bin/true", unit.read_text())
        units.append(tmp_path / unit.name)
        units[-1].write_text(text)
        assert ("docker" in text.replace("-/run/docker.sock", "")) == ("queue" in unit.name)
    done = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True)
    told = [line for line in done.stderr.splitlines() if "dynabench-" in line]
    assert not told
    exposed = ["systemd-analyze", "security", "--offline=true", "--threshold=29", "--no-pager"]
    for unit in units:  # 0 is the safest, 100 has no guard at all
        if unit.suffix == ".service":
            subprocess.run([*exposed, unit], check=True, capture_output=True)


def test_the_check_of_a_deployment_takes_what_we_ship(monkeypatch):
    for name in REQUIRED_SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("SECRET_KEY", raising=False)
    assert [one.id for one in check_required_settings()] == ["dynabench.E001"] * len(
        REQUIRED_SETTINGS
    )
    for line in (DEPLOY / "systemd/dynabench.env").read_text().splitlines():
        if line and not line.startswith("#"):
            monkeypatch.setenv(*line.split("=", 1))
    assert check_required_settings() == []
    assert [one.id for one in check_key_source()] == ["dynabench.W005"]
    monkeypatch.setenv("SECRET_KEY", "x")
    assert check_key_source() == []


def test_each_alert_and_each_line_of_the_doctor_has_its_place_in_the_runbook():
    rules = yaml.safe_load((DEPLOY / "prometheus/dynabench.rules.yml").read_text())
    page = get_docs_page("runbook")
    alerts = [rule for group in rules["groups"] for rule in group["rules"]]
    assert len(alerts) > 15
    for rule in alerts:
        address, _, anchor = rule["annotations"]["runbook_url"].partition("#")
        assert address == "{{ $externalLabels.site }}" + reverse("docs-page", args=["runbook"])
        assert anchor == rule["alert"].lower()
        assert anchor in page.anchors
        assert rule["labels"]["severity"] in ("page", "ticket")
    assert (
        "site"
        in yaml.safe_load((DEPLOY / "prometheus/prometheus.yml").read_text())["global"][
            "external_labels"
        ]
    )
    lines = {"home", "engine's disk"}  # which `check_disk` names in a loop
    for file in (ROOT / "dynabench/operations").rglob("*.py"):
        lines |= set(re.findall(r'Finding\(\s*"([^"]+)"', file.read_text()))
    assert len(lines) > 20
    assert {build_slug(line) for line in lines} <= page.anchors


@pytest.mark.parametrize("patch", range(3))
def test_the_image_gets_what_only_its_own_python_needs(patch):
    """Debian 12 has 3.11.2; whoever builds the image may have any other."""
    python = {"python_version": "3.11", "python_full_version": f"3.11.{patch}"}
    named = re.search(r"OF_BASE=\((.*)\)", (ROOT / "scripts/site_image.sh").read_text())[1].split()
    needed = {Requirement(text).name for _, text in lacking(python)}
    assert needed <= {Requirement(one).name for one in named}
    assert not [*lacking()]
