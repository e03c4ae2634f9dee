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
"""Python files of a release; the last one reads answers here and there by the same rules."""
WORDS_MODULE = "dynabench_words.py"
"""The name of our module of words, which they find beside them."""


def make_task_files(config: TaskConfig, code: str, round: int, version: int) -> dict[str, str]:
    """Return the files, by name, that let other tools evaluate on a release.

    Returns none if the task cannot be written as prompts. Prompts need models that read only text,
    and answers that are labels or spans of a passage.
    """
    answer = config.component(config.answer_field)
    is_text = all(config.component(name).kind.in_prompt for name in config.model_fields)
    if answer.type not in ("multiclass", "span") or not is_text:
        return {}
    name = f"dynabench_{code}_r{round}"
    labels = [label.value for label in config.labels(answer.name)]
    about = {
        "name": name,
        "fields": config.model_fields,
        "answer": answer.name,
        "labels": labels or None,
        "language": config.language,
        "instructions": write_instructions(config),
    }
    kind = Template((FOLDER / ("choice.yaml" if labels else "text.yaml")).read_text())
    files = {
        "task.json": json.dumps(about, ensure_ascii=False, indent=1) + "\n",
        "dynabench_task.yaml": kind.substitute(name=name, version=version),
    }
    for shipped in SHIPPED_FILES:
        files[shipped.name] = shipped.read_text()
    files[WORDS_MODULE] = Path(words.__file__).read_text()
    return files


def write_instructions(config: TaskConfig) -> str:
    """Return the text before the examples: the instructions for people, and how to answer."""
    paragraphs = [config.name]
    if config.instructions.strip():
        heading = "The people who wrote the examples were told:"
        paragraphs.append(f"{heading}\n\n{config.instructions.strip()}")
    labels = config.labels(config.answer_field)
    if labels:
        lines = ["Answer with one of these labels and nothing else:"]
        for label in labels:
            meaning = label.help or label.display
            lines.append(f"- {label.value}: {meaning}" if meaning else f"- {label.value}")
        paragraphs.append("\n".join(lines))
    else:
        passage = config.component(config.answer_field).reference
        paragraphs.append(
            f"Answer with words of the {passage}, as few as possible, and nothing else."
        )
    return "\n\n".join(paragraphs) + "\n\n"
