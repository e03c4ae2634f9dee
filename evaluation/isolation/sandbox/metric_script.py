"""Score answers with a file that a task's owners wrote, in a container of its own.

Standard library only. Prints one line for each example, `{"value": 0.5}`. At the first error,
prints `{"error": "ZeroDivisionError: division by zero", "line": 12}` and stops.

    python3 metric_script.py FILE INPUT
"""

import json
import sys
import traceback
from collections.abc import Callable
from typing import Any

METRIC_FILE = "metric.py"  # the name of the owner's file in errors
NO_FUNCTION_MESSAGE = "The file has no function score(gold, answer, example)."


def load_score(source: str) -> Callable[[Any, Any, Any], Any]:
    """Return the function `score` from a file's source.

    Raises TypeError if there is none. Propagates exceptions of the file.
    """
    namespace: dict[str, Any] = {"__name__": "metric"}
    exec(compile(source, METRIC_FILE, "exec"), namespace)  # noqa: S102 (what the container is for)
    score = namespace.get("score")
    if not callable(score):
        raise TypeError(NO_FUNCTION_MESSAGE)
    return score  # type: ignore[no-any-return]


def check_value(value: Any) -> float:
    """Return a metric's value as a float. Raises ValueError unless it is a number from 0 to 1."""
    if not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError(f"score returned {value!r:.80}, which is no number from 0 to 1.")
    return float(value)


def describe_error(error: BaseException) -> dict[str, Any]:
    """Return an error's text and the line of the owner's file that raised it, or None."""
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == METRIC_FILE
    ]
    if isinstance(error, SyntaxError):
        lines = [error.lineno]
    line = None
    if lines:
        line = lines[-1]  # the innermost one in the owner's file
    return {"error": f"{type(error).__name__}: {error}"[:500], "line": line}


def main(file: str, inputs: str) -> None:
    """Print the score of each example in the file `inputs`, in order.

    After an error, print the error and stop.
    """
    try:
        with open(file, encoding="utf-8") as source_file:
            score = load_score(source_file.read())
        with open(inputs, encoding="utf-8") as lines:
            for row in map(json.loads, lines):
                value = check_value(score(row["gold"], row["answer"], row["example"]))
                print(json.dumps({"value": value}))
    except BaseException as error:  # a file may also call sys.exit
        print(json.dumps(describe_error(error)))


if __name__ == "__main__":
    main(*sys.argv[1:])
