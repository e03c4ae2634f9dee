"""Serve transformers models to the site's rounds and evaluations."""

import errno
import socket
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from core.data.encryption import derive_keys
from core.telemetry.tracing import start_tracing
from serving.arguments import parse_model
from serving.registry import ModelRegistry
from serving.server import ModelServer
from serving.spec import ModelSpec
from tasks.targets.connect import SERVER_KEY_PURPOSE, find_registered_spec, list_registered_names


class Command(BaseCommand):
    help = "Serve transformers models over HTTP until stopped; a target's URL is /models/NAME."
    requires_system_checks = []  # starts while the site is set up

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "models",
            nargs="*",
            metavar="NAME=PATH[,backend=onnx|torch][,precision=fp32|int8|bf16]",
            help="A folder in Hugging Face layout, or a hub id with ,revision=COMMIT. Further "
            "keys: kind, fields (a+b), output, labels (a+b), max_length.",
        )
        parser.add_argument(
            "--registered",
            action="store_true",
            help="serve the targets that add_target registered, new ones without a restart",
        )
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument(
            "--port",
            type=int,
            help="default: MODEL_SERVER_URL's with --registered, else 8100",
        )
        parser.add_argument("--cache-dir", type=Path, default=settings.HOME / "serving")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            specs = {spec.name: spec for spec in map(parse_model, options["models"])}
        except ValueError as error:
            raise CommandError(str(error)) from None
        if bool(specs) == options["registered"]:
            raise CommandError("Name the models to serve, or use --registered, but not both.")
        find_spec: Callable[[str], ModelSpec | None] = specs.get
        list_names: Callable[[], Iterable[str]] = specs.keys
        keys: list[bytes] = []
        if options["registered"]:
            find_spec, list_names = find_registered_spec, list_registered_names
            keys = derive_keys(SERVER_KEY_PURPOSE)
        port = options["port"] or _choose_port(is_registered=options["registered"])
        _check_port_is_free(options["host"], port)
        ModelServer(
            lambda: self._build_registry(find_spec, list_names, options["cache_dir"]),
            host=options["host"],
            port=port,
            keys=keys,
        ).run()

    def _build_registry(
        self,
        find_spec: Callable[[str], ModelSpec | None],
        list_names: Callable[[], Iterable[str]],
        cache_dir: Path,
    ) -> ModelRegistry:
        """Return the model registry. Runs in the serving process."""
        if settings.HAS_TRACES:
            start_tracing("dynabench-models")
        return ModelRegistry(find_spec, list_names, cache_dir)


def _choose_port(*, is_registered: bool) -> int:
    """Return the port on which to listen.

    is_registered: whether to serve registered models, which the site expects at MODEL_SERVER_URL;
    otherwise the port is the documented default.
    """
    address = urlsplit(settings.MODEL_SERVER_URL)
    if is_registered:
        return address.port or 80
    return 8100


def _check_port_is_free(host: str, port: int) -> None:
    """Raise CommandError if another program uses this address or it cannot be bound."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )[0]
        with socket.socket(family, kind, protocol) as listener:
            # Otherwise a port whose last server has just ended seems taken.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise CommandError(
                f"Another program is using {host}:{port}. Stop it, or set MODEL_SERVER_URL and "
                "--port to a free port."
            ) from None
        raise CommandError(
            f"The server cannot listen at {host}:{port}: {error.strerror}."
        ) from None
