"""Answer the examples in a file of JSON lines, and print one JSON line per example."""

import json
import sys
from pathlib import Path
from typing import Any

TASK = json.loads(Path(__file__).with_name("task.json").read_text(encoding="utf-8"))


def predict(inputs: dict[str, Any]) -> tuple[Any, dict[str, float] | None]:
    """Return the answer for one example, and probabilities by label or None.

    Put your own model here.
    """
    if TASK["labels"]:
        # A placeholder: all labels are equally likely, and the length of the texts decides.
        labels = TASK["labels"]
        length = sum(len(str(value)) for value in inputs.values())
        return labels[length % len(labels)], {label: 1 / len(labels) for label in labels}
    passage = str(inputs[TASK["fields"][-1]])
    return passage.split(".")[0][:100], None


def main() -> None:
    """Answer each example and write the answer at once, so that the site sees progress."""
    path = sys.argv[1] if len(sys.argv) > 1 else "/input/examples.jsonl"
    with open(path, encoding="utf-8") as examples:
        for line in examples:
            example = json.loads(line)
            answer, prob = predict(example["inputs"])
            output = {TASK["output"]: answer}
            print(json.dumps({"id": example["id"], "output": output, "prob": prob}), flush=True)


if __name__ == "__main__":
    main()
