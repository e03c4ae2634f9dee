"""Serve transformers models to the site's rounds and to evaluations."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from dynabench.lib.encryption import derived_keys
from dynabench.lib.telemetry.tracing import start_tracing
from tasks.targets.connect import SERVER_KEY, registered_names, registered_spec
from tasks.targets.serving.arguments import parse_model
from tasks.targets.serving.registry import ModelRegistry
from tasks.targets.serving.server import ModelServer
from tasks.targets.serving.spec import ModelSpec


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
        parser.add_argument("--port", type=int, default=8100)
        parser.add_argument("--cache-dir", type=Path, default=settings.HOME / "serving")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            specs = {spec.name: spec for spec in map(parse_model, options["models"])}
        except ValueError as error:
            raise CommandError(str(error)) from None
        if bool(specs) == options["registered"]:
            raise CommandError("Name the models to serve, or say --registered; one of the two.")
        resolve: Callable[[str], ModelSpec | None] = specs.get
        names: Callable[[], Iterable[str]] = specs.keys
        keys: list[bytes] = []
        if options["registered"]:
            resolve, names = registered_spec, registered_names
            keys = derived_keys(SERVER_KEY)
        ModelServer(
            lambda: self._registry(resolve, names, options["cache_dir"]),
            host=options["host"],
            port=options["port"],
            keys=keys,
        ).run()

    def _registry(
        self,
        resolve: Callable[[str], ModelSpec | None],
        names: Callable[[], Iterable[str]],
        cache_dir: Path,
    ) -> ModelRegistry:
        """Made in the process that serves."""
        if settings.HAS_TRACES:
            start_tracing("dynabench-models")
        return ModelRegistry(resolve, names, cache_dir)
