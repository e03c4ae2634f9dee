"""A server of buckets: OpenStack Swift by its S3 interface."""

import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.parts import free_port

PYTHON = "/usr/bin/python3"
SERVER = Path(__file__).with_name("swift_server.py")
KEYS = {"STORAGE_ACCESS_KEY": "test:tester", "STORAGE_SECRET_KEY": "testing"}


def are_installed() -> bool:
    """Whether a server can be started."""
    return Path("/usr/lib/python3/dist-packages/swift").is_dir()


class BucketServer(str):
    """The address of a server in a process of its own."""

    process: subprocess.Popen

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Its port takes connections, and nobody answers."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)


@contextmanager
def bucket_server() -> Iterator[BucketServer]:
    """The address of a server with an empty bucket `site`, as long as the context lasts."""
    with tempfile.TemporaryDirectory() as folder:
        port = free_port()
        command = [PYTHON, str(SERVER), folder, str(port)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout.readline() == "ready\n"
                address = BucketServer(f"http://127.0.0.1:{port}")
                address.process = server
                make_bucket(address, "site")
                yield address
            finally:
                server.kill()


def make_bucket(address: str, name: str) -> None:
    import boto3

    keys = dict(zip(("aws_access_key_id", "aws_secret_access_key"), KEYS.values(), strict=True))
    boto3.client("s3", endpoint_url=address, region_name="us-east-1", **keys).create_bucket(
        Bucket=name
    )
