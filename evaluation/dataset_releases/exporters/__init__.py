"""Tasks that let others evaluate on a release: for lm-evaluation-harness and for Inspect.

The Python files are the same in every release. What people wrote goes into `task.json`, which they
read as data; the YAML names nothing but the task.
"""

import json
from pathlib import Path
from string import Template

from core.text import words
from tasks.config.schema import TaskConfig
from tasks.targets.endpoints import answer_reader

FOLDER = Path(__file__).parent
SHIPPED_FILES = (
    FOLDER / "dynabench_task.py",
    FOLDER / "inspect_task.py",
    Path(str(answer_reader.__file__)),
)
"""Python files that every release contains. Our site reads answers with the last one, too."""
WORDS_MODULE = "dynabench_words.py"
"""The name that our module for comparing texts has in a release."""


def make_task_files(config: TaskConfig, code: str, round: int, version: int) -> dict[str, str]:
    """Return the files, by name, that let other tools evaluate on a release.

    Empty if the task cannot be written as prompts. Its models must read only text, and its answers
    must be labels or spans of a passage.
    """
    answer = config.get_component(config.answer_field)
    reads_only_text = all(
        config.get_component(name).kind.can_be_in_prompt for name in config.model_fields
    )
    if answer.type not in ("multiclass", "span") or not reads_only_text:
        return {}
    name = f"dynabench_{code}_r{round}"
    labels = [label.value for label in config.get_labels(answer.name)]
    task_info = {
        "name": name,
        "fields": config.model_fields,
        "answer": answer.name,
        "labels": labels or None,
        "language": config.language,
        "instructions": build_instructions(config),
    }
    template = Template((FOLDER / ("choice.yaml" if labels else "text.yaml")).read_text())
    files = {
        "task.json": json.dumps(task_info, ensure_ascii=False, indent=1) + "\n",
        "dynabench_task.yaml": template.substitute(name=name, version=version),
    }
    for shipped_file in SHIPPED_FILES:
        files[shipped_file.name] = shipped_file.read_text()
    files[WORDS_MODULE] = Path(words.__file__).read_text()
    return files


def build_instructions(config: TaskConfig) -> str:
    """Return the text before the examples: the instructions for people, and how to answer."""
    paragraphs = [config.name]
    if config.instructions.strip():
        heading = "The people who wrote the examples were told:"
        paragraphs.append(f"{heading}\n\n{config.instructions.strip()}")
    labels = config.get_labels(config.answer_field)
    if labels:
        lines = ["Answer with one of these labels and nothing else:"]
        for label in labels:
            meaning = label.help or label.display
            lines.append(f"- {label.value}: {meaning}" if meaning else f"- {label.value}")
        paragraphs.append("\n".join(lines))
    else:
        passage = config.get_component(config.answer_field).reference
        paragraphs.append(
            f"Answer with words of the {passage}, as few as possible, and nothing else."
        )
    return "\n\n".join(paragraphs) + "\n\n"
