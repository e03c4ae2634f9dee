"""A Ray cluster on this machine, each node with a raylet of its own, and a model that waits."""

import ipaddress
import json
import os
import secrets
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from evaluation.contract import MIB, BeatCallback, Ending, LineCallback, Outcome, Runnable, Usage
from evaluation.isolation.sandbox.limits import Limits

SECONDS = 0.02  # that the waiting model takes for an example
LIMITS = Limits(cpus=1, memory_bytes=512 * MIB)
NODE = {
    "num_cpus": 1,
    "memory": 1024 * MIB,
    "object_store_memory": 80 * MIB,
    "include_log_monitor": False,
}


class Nodes:
    """The cluster; `address` as of `ray.init`."""

    def __init__(self, count: int) -> None:
        from ray.cluster_utils import Cluster

        head = {**NODE, "include_dashboard": False}
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        self.address = self._cluster.address
        self.others: list[Any] = []
        for _ in range(count - 1):
            self.add()

    def add(self) -> None:
        self.others.append(self._cluster.add_node(**NODE, resources={"other": 1}))

    def kill(self) -> None:
        """kill -9 of the node that was added first."""
        self.others.pop(0).kill_raylet()

    def close(self) -> None:
        self._cluster.shutdown()


@contextmanager
def nodes(count: int, cache: Path) -> Iterator[Nodes]:
    """A cluster with a token and TLS, on one interface of this machine."""
    told = {
        **_tls(cache),
        "MODEL_CACHE": str(cache),
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_worker_niceness": "0",
        # A second without an answer and a node is dead, so that tests need not wait for it.
        "RAY_health_check_initial_delay_ms": "500",
        "RAY_health_check_period_ms": "250",
        "RAY_health_check_failure_threshold": "4",
        "PYTHONPATH": str(Path(__file__).parents[2]),
    }
    before = {name: os.environ.get(name) for name in told}
    os.environ.update(told)
    try:
        started = Nodes(count)
        try:
            yield started
        finally:
            started.close()
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _tls(folder: Path) -> dict[str, str]:
    """What makes Ray's processes trust each other and nobody else; set before Ray is imported."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as finding:
        finding.connect(("192.0.2.1", 9))  # nothing is sent: it finds the address that Ray takes
        address = finding.getsockname()[0]
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "nodes")])
    here = [x509.IPAddress(ipaddress.ip_address(address))]
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(here), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    folder.mkdir(exist_ok=True)
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    (folder / "cert.pem").write_bytes(made.public_bytes(pem))
    secret = key.private_bytes(pem, form, serialization.NoEncryption())
    (folder / "key.pem").write_bytes(secret)
    files = {"SERVER_CERT": "cert.pem", "SERVER_KEY": "key.pem", "CA_CERT": "cert.pem"}
    named = {f"RAY_TLS_{what}": str(folder / name) for what, name in files.items()}
    return {"RAY_USE_TLS": "1", **named}


def dies_once(mark: str) -> Iterator[Any]:
    """An errand at whose first try its node is killed, in the middle."""
    if not Path(mark).exists():
        Path(mark).touch()
        yield b"lost "
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(60)
    yield b"whole"
    yield "done"


class WaitingRunner:
    """Takes SECONDS for an example, and no processor."""

    name = "waiting"

    def run(
        self,
        model: Runnable,
        inputs: Path,
        limits: Limits,
        *,
        take: LineCallback,
        beat: BeatCallback,
    ) -> Ending:
        """See `Runner`."""
        began = time.monotonic()
        examples = [json.loads(line) for line in inputs.read_text().splitlines()]
        for example in examples:
            time.sleep(SECONDS)
            take(json.dumps({"id": example["id"], "output": {"label": "yes"}}).encode())
        return Ending(Outcome.OK, Usage(time.monotonic() - began, answers=len(examples)))


def waiting(model: Runnable, key: str, name: str | None) -> WaitingRunner:
    """As `choose_runner`."""
    return WaitingRunner()
