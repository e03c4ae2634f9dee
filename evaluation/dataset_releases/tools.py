"""Export a round as the file of another annotation tool; `tasks.formats` has the layouts."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from annotation.models import Example
from core.errors import Refused
from evaluation.dataset_releases.reading import export_rows
from evaluation.dataset_releases.rows import to_json, to_text
from tasks.config.components import FIELD_TYPES
from tasks.config.schema import TaskConfig
from tasks.formats import TOOL_FORMATS, write_tool_file
from tasks.formats.base import VERDICTS, Format, Item, LeftOutCounts, Vote, pop_correction
from tasks.models import Round, Task
from validation.consensus.claims import find_label_field, is_about_model

Row = Mapping[str, Any]
ANSWER_TYPES = ("multiclass", "text", "long_text", "span")
OWNER_MODE = "owner"
AUTHOR_VERDICT = {Example.Outcome.FOOLED: "incorrect", Example.Outcome.NOT_FOOLED: "correct"}


def select_tools(task: Task) -> dict[str, Format]:
    """Return the tools, by name, whose format can hold the task's fields."""
    fields: set[str] = set()
    if task.config.kind == "examples":
        fields = set(task.config.model_fields)
    return {name: form for name, form in TOOL_FORMATS.items() if fields.issuperset(form.needs)}


def export_for_tool(
    round: Round, tool: str, left_out: LeftOutCounts | None = None
) -> Iterator[str]:
    """Stream a file with all examples that were not withdrawn, for an annotation tool.

    tool: a key of `tasks.formats.TOOL_FORMATS`. left_out: counts the rows that the format
    cannot hold. Raises Refused if the format does not support the task's answers or fields.
    """
    config = round.task.config
    kind = config.component(config.answer_field).type
    if kind not in ANSWER_TYPES:
        raise Refused(
            f"The answers of {round.task.code} are of the type {kind}; for other tools go out "
            f"{', '.join(ANSWER_TYPES)}. Take the JSON lines."
        )
    missing_fields = set(TOOL_FORMATS[tool].needs) - set(config.model_fields)
    if missing_fields:
        raise Refused(
            f"{TOOL_FORMATS[tool].title} has the fields {', '.join(TOOL_FORMATS[tool].needs)}; "
            f"{round.task.code} lacks {', '.join(sorted(missing_fields))}."
        )
    return write_tool_file((_make_item(row, config) for row in export_rows(round)), tool, left_out)


def _make_item(row: Row, config: TaskConfig) -> Item:
    """Return a row as an item for tools: texts to judge, votes, and JSON for our import."""
    answer = config.answer_field
    context, inputs = json.loads(row["context"]["context_json"]), json.loads(row["input_json"])
    metadata = json.loads(row["metadata_json"])
    own_answer = inputs.pop(answer, None)
    label = own_answer
    # Our import reads the text as the label, and its place from the metadata.
    if isinstance(own_answer, dict):  # a marked span
        label = own_answer["text"]
        if own_answer["start"] is not None:
            metadata[f"{answer}_start"] = own_answer["start"]
    model, prediction = _read_prediction(row, answer)
    labels = [option.value for option in config.labels(answer)]
    votes = list(_read_votes(row, labels))
    # The row as our own import reads it. Tools carry it along unchanged.
    imported_row = {
        "uid": row["uid"],
        "round": row["round"],
        "context": context,
        "input": inputs,
        "author": row["anon_uid"],
        "author_label": label,
        "model_prediction": prediction,
        "validations": list(map(_describe_vote, votes)),
        "metadata": metadata,
    }
    # Where authors give no answer, they say by their outcome whether the model's is right.
    if own_answer is None and prediction and row["outcome"] in AUTHOR_VERDICT:
        imported_row["author_verdict"] = AUTHOR_VERDICT[row["outcome"]]
    texts = _display_texts({**context, **inputs}, config)
    return Item(
        uid=row["uid"],
        texts=texts | _display_answer(row, config, label, prediction),
        answer=answer,
        label=row["label"] if row["validated"] else None,
        model=model,
        prediction=prediction["label"] if prediction else None,
        votes=votes,
        row_json=to_json(imported_row),
        is_choice=bool(labels),
    )


def _display_texts(values: Row, config: TaskConfig) -> dict[str, str]:
    """Return the texts that judges read, by field; a conversation becomes one line per turn."""
    talks = {each.name: each for each in (*config.context, *config.input) if each.type == "chat"}
    texts = {}
    for name, value in values.items():
        if value is None:
            continue
        if name in talks:
            texts[name] = FIELD_TYPES["chat"].display(talks[name], value)
        else:
            texts[name] = to_text(value)
    return texts


def _display_answer(
    row: Row, config: TaskConfig, label: str | None, prediction: Mapping[str, Any] | None
) -> dict[str, str]:
    """Return the answer to be judged and its question, by name; empty if judges choose labels."""
    if find_label_field(config):
        return {}
    if prediction and (label is None or is_about_model(config, row["outcome"])):
        label = prediction["label"]
    if label is None:
        return {}
    texts = {f"{config.answer_field}_given": label}
    if config.validation.question and config.validation.asks != "attempt":
        texts[f"{config.answer_field}_question"] = _write_question(config)
    return texts


def _write_question(config: TaskConfig) -> str:
    """Return the task's question to judges, with the meanings of `correct` and `incorrect`."""
    validation = config.validation
    if not validation.answers:
        return str(validation.question)
    words = f"correct: {validation.answers.correct}; incorrect: {validation.answers.incorrect}"
    return f"{validation.question} ({words})"


def _read_prediction(row: Row, answer: str) -> tuple[str | None, dict[str, Any] | None]:
    """Return the first target's name, as in imported data, and its answer.

    Both are None if no target answered.
    """
    if row["output_json"] is None:
        return None, None
    output = json.loads(row["output_json"])
    model = row["model_endpoint_name"].removeprefix(f"{row['task']}_")
    label, probs = to_text(output.get(answer, "")), output.get("prob")
    # Imported outputs may call something else `prob`. Only numbers by label can be read back.
    if not isinstance(probs, dict) or not all(isinstance(p, int | float) for p in probs.values()):
        probs = None
    return model, {"model": model, "label": label, "probs": probs}


def _read_votes(row: Row, labels: Sequence[str]) -> Iterator[Vote]:
    """Yield the votes on a row with their corrections, without decisions of owners."""
    corrections = [(typed["validator"], typed["answer"]) for typed in row["corrections"]]
    for label, mode, validator in row["validations"]:
        # Decisions of owners are no votes: an import would count them twice.
        if mode == OWNER_MODE:
            continue
        correction = ""
        if label == "incorrect":
            correction = pop_correction(corrections, validator)
        yield Vote(validator, label, label in VERDICTS and label not in labels, correction)


def _describe_vote(vote: Vote) -> dict[str, str | None]:
    """Return a vote in the format of our import."""
    kind = "verdict" if vote.is_verdict else "label"
    row = {"worker": vote.who, kind: vote.label}
    if vote.correction:
        row["correction"] = vote.correction
    return row
