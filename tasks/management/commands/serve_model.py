"""Serve transformers models to the site's rounds and to evaluations."""

from pathlib import Path
from typing import Any, ClassVar

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from tasks.serving.arguments import parse_model
from tasks.serving.registry import ModelRegistry
from tasks.serving.server import ModelServer


class Command(BaseCommand):
    help = "Serve transformers models over HTTP until stopped; a target's URL is /models/NAME."
    requires_system_checks: ClassVar[list[str]] = []  # needs no database and no queue

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "models",
            nargs="+",
            metavar="NAME=PATH[,backend=onnx|torch][,precision=fp32|int8|bf16]",
            help="A folder in Hugging Face layout, or a hub id with ,revision=COMMIT. Further "
            "keys: kind, fields (a+b), output, labels (a+b), max_length.",
        )
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8100)
        parser.add_argument("--threads", type=int, default=96, help="requests served at once")
        parser.add_argument("--cache-dir", type=Path, default=settings.HOME / "serving")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            specs = {spec.name: spec for spec in map(parse_model, options["models"])}
        except ValueError as error:
            raise CommandError(str(error)) from None
        ModelServer(
            lambda: ModelRegistry(specs.get, specs.keys, options["cache_dir"]),
            host=options["host"],
            port=options["port"],
            threads=options["threads"],
            preload=tuple(specs),
        ).run()
