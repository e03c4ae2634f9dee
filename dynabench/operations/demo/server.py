"""A model server and a silent queue for the demo, in case the site is not running."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from django.conf import settings

from core.jobs.queue import silence_queue


@contextmanager
def open_site_or_substitute() -> Iterator[None]:
    """Ensure that a model server runs at MODEL_SERVER_URL: the site's, or else a temporary one.

    With a temporary one, no messages are queued for workers that may start later.
    """
    url = urlsplit(settings.MODEL_SERVER_URL)
    host, port = url.hostname or "127.0.0.1", url.port or 80
    # The site's own server; it loads the demo's targets, too.
    if is_port_taken(host, port):
        yield
        return
    log_path = settings.HOME / "logs" / "models.log"
    log_path.parent.mkdir(exist_ok=True)
    command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "serve_model"]
    command += ["--registered", "--host", host, "--port", str(port)]
    with log_path.open("ab") as file:
        process = subprocess.Popen(
            command, cwd=settings.BASE_DIR, stdout=file, stderr=subprocess.STDOUT
        )
    try:
        with silence_queue():
            yield
    finally:
        process.terminate()
        # So that its port is free when the command has ended.
        process.wait()


def is_port_taken(host: str, port: int) -> bool:
    """Return whether a program listens at the address."""
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0
