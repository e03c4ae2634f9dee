"""The model server, for as long as the demo needs one where no site runs."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from django.conf import settings


@contextmanager
def model_server() -> Iterator[None]:
    """A server answers at MODEL_SERVER_URL, or soon will: the site's, or one until the end."""
    url = urlsplit(settings.MODEL_SERVER_URL)
    host, port = url.hostname or "127.0.0.1", url.port or 80
    with socket.socket() as probe:
        runs = probe.connect_ex((host, port)) == 0
    if runs:
        yield
        return
    log = settings.HOME / "logs" / "models.log"
    log.parent.mkdir(exist_ok=True)
    command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "serve_model"]
    command += ["--registered", "--host", host, "--port", str(port)]
    with log.open("ab") as file:
        process = subprocess.Popen(
            command, cwd=settings.BASE_DIR, stdout=file, stderr=subprocess.STDOUT
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait()
