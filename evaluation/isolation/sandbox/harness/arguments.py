"""The command lines of the harness and the shim: written by the runners, read in the sandbox."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from evaluation.contract import PLAN_PART, REST_PART, Runnable

STDIN = "-"
"""The path that means standard input. Each example is then answered as soon as it arrives."""
PORTS = {"dynalab": 8080, "dynabench2": 80}  # ports of their own images


def build_command_line(
    model: Runnable, *, folder: str, inputs: str, threads: int, lora: str = ""
) -> list[str]:
    """Return the harness's arguments for a model.

    folder, inputs, lora: paths on the machine or in the sandbox where the harness runs.
    """
    arguments = [
        f"--model={folder}",
        f"--input={inputs}",
        f"--threads={threads}",
        f"--output={model.output}",
    ]
    arguments += [f"--field={name}" for name in model.fields]
    arguments += [f"--label={label}" for label in model.labels or ()]
    if lora:
        arguments.append(f"--lora={lora}")
    if model.writing_settings:
        arguments.append(f"--max-tokens={model.writing_settings.max_tokens}")
        arguments += [f"--stop={text}" for text in model.writing_settings.stop]
    if model.part:
        arguments.append(f"--part={model.part}")
    return arguments


def build_shim_command(
    model: Runnable, image: Mapping[str, Any], *, shim: str, inputs: str
) -> tuple[list[str], list[str]]:
    """Return the entrypoint and command that run our shim in an image built for Dynabench.

    image: its `Config` as the engine reports it, with its own entrypoint, command and ports.
    """
    ports = [int(name.split("/")[0]) for name in image.get("ExposedPorts") or ()]
    default_port = PORTS[model.adapter]
    port = default_port
    if default_port not in ports:
        port = min(ports, default=default_port)
    own_command = list(image.get("Entrypoint") or ()) + list(image.get("Cmd") or ())
    return ["python3", shim, model.adapter, str(port), inputs, model.output], own_command


def read_command_line(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse arguments made by `build_command_line`. arguments: None for this process's own."""
    parser = argparse.ArgumentParser(
        prog="evaluation.isolation.sandbox.harness",
        description="Answer the examples in a JSONL file with a model in Hugging Face's layout.",
    )
    parser.add_argument("--model", required=True, help="the model's folder")
    parser.add_argument("--input", required=True, help='lines of {"id": …, "inputs": {…}}, or -')
    parser.add_argument("--threads", type=int, default=1, help="each on a core of its own")
    parser.add_argument("--output", required=True, help="the field that is answered")
    parser.add_argument(
        "--field", required=True, action="append", help="what the model reads, in order"
    )
    parser.add_argument("--label", action="append", help="what it may answer; none for spans")
    parser.add_argument("--max-tokens", type=int, help="it writes texts of so many tokens at most")
    parser.add_argument(
        "--part", choices=[PLAN_PART, REST_PART], help="of a set that is cut into shards"
    )
    parser.add_argument("--lora", help="the folder of an adapter that is added to the weights")
    parser.add_argument("--stop", action="append", default=[], help="text before which it stops")
    return parser.parse_args(arguments)
