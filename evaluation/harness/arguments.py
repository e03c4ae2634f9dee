"""The harness's command line: written by the runners, read inside the sandbox."""

import argparse
from collections.abc import Sequence

from evaluation.contract import Runnable


def written(model: Runnable, *, folder: str, inputs: str) -> list[str]:
    """The arguments for a model; `folder` and `inputs` are paths where the harness runs."""
    return [
        f"--model={folder}",
        f"--input={inputs}",
        f"--output={model.output}",
        *(f"--field={name}" for name in model.fields),
        *(f"--label={label}" for label in model.labels or ()),
    ]


def read(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """model, input, output, field, label; of the process when none are given."""
    parser = argparse.ArgumentParser(
        prog="evaluation.harness",
        description="Answer the examples in a JSONL file with a model in Hugging Face's layout.",
    )
    parser.add_argument("--model", required=True, help="the model's folder")
    parser.add_argument("--input", required=True, help='lines of {"id": …, "inputs": {…}}')
    parser.add_argument("--output", required=True, help="the field that is answered")
    parser.add_argument(
        "--field", required=True, action="append", help="what the model reads, in order"
    )
    parser.add_argument("--label", action="append", help="what it may answer; none for spans")
    return parser.parse_args(arguments)
