"""Register a model as a target."""

from argparse import ArgumentParser
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from core.web.refusals import raise_as_command_error
from serving.errors import ServingError
from serving.spec import PACKAGE_PREFIX, TEXT_GENERATION, check_setting_keys, open_folder
from tasks.management.lookups import get_round, get_task
from tasks.models import TargetModel, Task
from tasks.rounds.loop import register_target
from tasks.targets.connect import build_serving_settings, build_spec, get_endpoint
from tasks.targets.endpoints.base import EndpointError
from tasks.targets.endpoints.registry import ADAPTERS, parse_option
from tasks.targets.first_contact import try_target
from tasks.targets.gpus import find_gpu_count_problem

COPIED_FIELDS = ("adapter", "url", "source", "revision", "options", "serving", "gpus", "secret_env")


class Command(BaseCommand):
    help = "Register a folder, a hub id (org/name@COMMIT), package:NAME or a URL as a target."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("task", help="the task's code, such as nli")
        parser.add_argument(
            "source", help="a folder, org/name@COMMIT, package:NAME, or http(s)://…"
        )
        parser.add_argument("--name", help="the target's name; default: the last part of source")
        parser.add_argument("--round", type=int, help="put it into this round's loop")
        parser.add_argument(
            "--adapter", choices=sorted(ADAPTERS), help="default: http; openai_chat of a package"
        )
        parser.add_argument("--option", action="append", default=[], metavar="KEY=VALUE",
                            help="of the adapter, such as model=NAME or max_tokens=60; what is no "
                                 "text as JSON: stop='[\".\"]'")  # fmt: skip
        parser.add_argument("--secret-env", default="", help="TARGET_…, contains the bearer secret")
        parser.add_argument("--backend", default="onnx", choices=["onnx", "torch"])
        parser.add_argument(
            "--precision",
            default="",
            choices=["fp32", "int8", "int4", "bf16"],
            help="default: fp32; int8 of a package",
        )
        parser.add_argument("--gpus", type=int, default=0, help="that it is evaluated on: 0 or 1")
        parser.add_argument("--no-ask", dest="ask", action="store_false",
                            help="skip the test call with the task's example")  # fmt: skip
        parser.add_argument("--labels", help="the task's labels in the order of the model's logits")

    def handle(self, *args: Any, **options: Any) -> None:
        task = get_task(options["task"])
        target = self._build_target(task, options)
        self._check_target(target)
        fields = {name: getattr(target, name) for name in COPIED_FIELDS}
        round = None
        if options["round"] is not None:
            round = get_round(task, options["round"])
        with raise_as_command_error():
            registered_target = register_target(task=task, name=target.name, round=round, **fields)
        round_suffix = ""
        if round:
            round_suffix = f" in round {round.number}"
        self.stdout.write(
            f"{target.name} is a target of {task.code}{round_suffix}: {target.base_url}"
        )
        if options["ask"]:
            self._ask_target(registered_target)

    def _ask_target(self, target: TargetModel) -> None:
        """Send the target the task's example, and print its answer or failure."""
        contact = try_target(target, None)
        if contact is None:
            return
        if contact.is_answer:
            self.stdout.write(f"It answered: {contact.words}")
        else:
            self.stderr.write(f"It did not answer the test call. {contact.words}")

    def _build_target(self, task: Task, options: dict[str, Any]) -> TargetModel:
        """Return an unsaved row for the target that the options describe."""
        source, revision, url = options["source"], "", ""
        if source.startswith(("http://", "https://")):
            source, url = "", source.rstrip("/")
        elif Path(source).is_dir():
            source = str(Path(source).resolve())
        else:
            source, _, revision = source.partition("@")
        # The usual name: the last part of the address, hub id or folder.
        last_part = (url or source).removeprefix(PACKAGE_PREFIX).rstrip("/").rsplit("/", 1)[-1]
        default_adapter = "http"
        if source.startswith(PACKAGE_PREFIX):
            default_adapter = "openai_chat"
        adapter = options["adapter"] or default_adapter
        return TargetModel(
            task=task,
            name=options["name"] or last_part.lower().replace(".", "-").replace(":", "-"),
            adapter=adapter,
            url=url,
            source=source,
            revision=revision,
            options=dict(self._parse_option(option, adapter) for option in options["option"]),
            serving={} if url else self._build_serving(task, source, options),
            gpus=options["gpus"],
            secret_env=options["secret_env"],
        )

    def _parse_option(self, text: str, adapter: str) -> tuple[str, Any]:
        key, equals, value = text.partition("=")
        if not equals:
            raise CommandError(f"--option {text!r}: write KEY=VALUE.")
        try:
            return key, parse_option(adapter, key, value)
        except EndpointError as error:
            raise CommandError(str(error)) from None

    def _build_serving(self, task: Task, source: str, options: dict[str, Any]) -> dict[str, Any]:
        """Return the settings with which our model server loads the model.

        The model's folder has the other settings.
        """
        backend, precision = options["backend"], options["precision"]
        if source.startswith(PACKAGE_PREFIX):
            return {"backend": backend, "precision": precision or "int8"}
        settings = build_serving_settings(
            task.config, backend=backend, precision=precision or "fp32"
        )
        if options["labels"]:
            settings["labels"] = options["labels"].split(",")
        return settings

    def _check_target(self, target: TargetModel) -> None:
        """Check the target's settings and its folder before the first call. Raises CommandError."""
        if problem := find_gpu_count_problem(target.gpus, settings.EVALUATION_GPUS):
            raise CommandError(problem)
        if target.gpus and target.url:
            raise CommandError("What answers at an address has its own machine.")
        try:
            target.clean_fields(exclude=["task"])
            get_endpoint(target)
            if not target.source:
                return
            # From anywhere on this machine: whoever runs commands may read its folders.
            folder = open_folder(replace(build_spec(target), below=None))
            check_setting_keys(target.name, folder.path)
        except ValidationError as error:
            raise CommandError(
                "; ".join(f"{k}: {v[0]}" for k, v in error.message_dict.items())
            ) from None
        except (EndpointError, ServingError) as error:
            raise CommandError(str(error)) from None
        if folder.kind == TEXT_GENERATION and target.adapter != "openai_chat":
            raise CommandError("A language model is asked by the adapter openai_chat.")
        config = target.task.config
        task_labels = {label.value for label in config.get_labels(config.answer_field)}
        if folder.labels and set(folder.labels) != task_labels:
            raise CommandError(
                f"The model's labels are {', '.join(folder.labels)}, the task's "
                f"{', '.join(sorted(task_labels))}. Name them with --labels, in the model's order."
            )
