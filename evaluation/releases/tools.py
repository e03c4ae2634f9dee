"""A round as the file of another annotation tool; `tasks.formats` has the layouts."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from annotation.models import Example
from core.errors import Refused
from evaluation.releases.reading import standing_rows
from evaluation.releases.rows import as_text, to_json
from tasks.config.components import FIELD_TYPES
from tasks.config.schema import TaskConfig
from tasks.formats import TOOLS, written
from tasks.formats.base import VERDICTS, Format, Item, Left, Vote, taken_correction
from tasks.models import Round, Task
from validation.rules.claims import is_about_model, label_field

Row = Mapping[str, Any]
ANSWERS = ("multiclass", "text", "long_text", "span")
OF_OWNER = "owner"
OWN_VERDICT = {Example.Outcome.FOOLED: "incorrect", Example.Outcome.NOT_FOOLED: "correct"}


def tools_for(task: Task) -> dict[str, Format]:
    """The tools whose layout has a place for the task's fields, by name."""
    fields = {*task.config.model_fields} if task.config.kind == "examples" else set()
    return {name: form for name, form in TOOLS.items() if {*form.needs} <= fields}


def tool_file(round: Round, tool: str, left: Left | None = None) -> Iterator[str]:
    """Every example of a round that stands, for a tool of `tasks.formats.TOOLS`; streams.

    left: counts the rows that have no place in its layout.

    Raises Refused where the tool has no such answers.
    """
    config = round.task.config
    kind = config.component(config.answer_field).type
    if kind not in ANSWERS:
        raise Refused(
            f"The answers of {round.task.code} are of the type {kind}; for other tools go out "
            f"{', '.join(ANSWERS)}. Take the JSON lines."
        )
    if missing := {*TOOLS[tool].needs} - {*config.model_fields}:
        raise Refused(
            f"{TOOLS[tool].title} has the fields {', '.join(TOOLS[tool].needs)}; "
            f"{round.task.code} lacks {', '.join(sorted(missing))}."
        )
    return written((_item(row, config) for row in standing_rows(round)), tool, left)


def _item(row: Row, config: TaskConfig) -> Item:
    answer = config.answer_field
    context, given = json.loads(row["context"]["context_json"]), json.loads(row["input_json"])
    own = given.pop(answer, None)
    label, start = (own["text"], own["start"]) if isinstance(own, dict) else (own, None)
    model, prediction = _prediction(row, answer)
    labels = [one.value for one in config.labels(answer)]
    votes = [*_votes(row, labels)]
    kept = {
        "uid": row["uid"],
        "round": row["round"],
        "context": context,
        "input": given,
        "author": row["anon_uid"],
        "author_label": label,
        "model_prediction": prediction,
        "validations": [_vote(vote) for vote in votes],
        "metadata": {
            **json.loads(row["metadata_json"]),
            **({} if start is None else {f"{answer}_start": start}),
        },
    }
    if own is None and prediction and row["outcome"] in OWN_VERDICT:
        kept["author_verdict"] = OWN_VERDICT[row["outcome"]]
    return Item(
        uid=row["uid"],
        texts=_texts({**context, **given}, config) | _judged(row, config, label, prediction),
        answer=answer,
        label=row["label"] if row["validated"] else None,
        model=model,
        prediction=prediction["label"] if prediction else None,
        votes=votes,
        row_json=to_json(kept),
        is_choice=bool(labels),
    )


def _texts(values: Row, config: TaskConfig) -> dict[str, str]:
    """What judges read, by field; a conversation as the lines of its turns."""
    talks = {one.name: one for one in (*config.context, *config.input) if one.type == "chat"}
    return {
        name: FIELD_TYPES["chat"].display(talks[name], value) if name in talks else as_text(value)
        for name, value in values.items()
        if value is not None
    }


def _judged(
    row: Row, config: TaskConfig, label: str | None, prediction: Mapping[str, Any] | None
) -> dict[str, str]:
    """The answer that people judge, where they choose no label."""
    if label_field(config):
        return {}
    if prediction and (label is None or is_about_model(config, row["outcome"])):
        label = prediction["label"]
    if label is None:
        return {}
    asked = config.validation
    has_question = asked.question and asked.asks != "attempt"
    own = {f"{config.answer_field}_question": _question(config)} if has_question else {}
    return {f"{config.answer_field}_given": label, **own}


def _question(config: TaskConfig) -> str:
    """Return the task's question to judges, with what `correct` and `incorrect` stand for in it."""
    asked = config.validation
    if not asked.answers:
        return str(asked.question)
    words = f"correct: {asked.answers.correct}; incorrect: {asked.answers.incorrect}"
    return f"{asked.question} ({words})"


def _prediction(row: Row, answer: str) -> tuple[str | None, dict[str, Any] | None]:
    """The first target, under the name that the import gave it, and its answer."""
    if row["output_json"] is None:
        return None, None
    said = json.loads(row["output_json"])
    model = row["model_endpoint_name"].removeprefix(f"{row['task']}_")
    label, probs = as_text(said.get(answer, "")), said.get("prob")
    is_known = isinstance(probs, dict) and all(isinstance(p, int | float) for p in probs.values())
    known = probs if is_known else None
    return model, {"model": model, "label": label, "probs": known}


def _votes(row: Row, labels: Sequence[str]) -> Iterator[Vote]:
    """The votes on a row with their corrections, without what an owner decided."""
    typed = [(one["validator"], one["answer"]) for one in row["corrections"]]
    for said, mode, who in row["validations"]:
        if mode == OF_OWNER:
            continue
        correction = taken_correction(typed, who) if said == "incorrect" else ""
        yield Vote(who, said, said in VERDICTS and said not in labels, correction)


def _vote(vote: Vote) -> dict[str, str | None]:
    said = {"worker": vote.who, "verdict" if vote.is_verdict else "label": vote.label}
    return {**said, "correction": vote.correction} if vote.correction else said
