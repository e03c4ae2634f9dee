"""Hard texts at each gate of files, models and forms: all store the same one."""

import csv
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from openpyxl import Workbook

from annotation.writing.forms import ComponentForm
from core.text.words import compose
from evaluation.isolation.inference.elsewhere import read_lines
from evaluation.isolation.inference.exchange import CollectedAnswers
from evaluation.test_sets.parsing import SetRow, read_set
from tasks.config.components import Component
from tasks.config.field_types.chat import Chat
from tasks.config.loading import load_config
from tasks.config.values import normalise_values
from tasks.contexts.files import summarise_file
from tasks.targets.endpoints.answers import read_output
from tasks.targets.endpoints.base import EndpointConfig
from tests.support.hard_texts import HARD
from validation.imports.rows import parse_line

CONFIG = load_config("""
version: 1
name: Gates
goal: {text: Write}
context:
  - {name: passage, type: long_text}
input:
  - {name: question, type: long_text}
  - {name: answer, type: long_text}
output: [answer]
verdict: {type: string_f1, field: answer}
metrics: {main: squad_f1}
""")
HISTORY = {
    "task": "gates", "uid": "u", "round": 1, "outcome": None, "author": None, "created_at": None,
}  # fmt: skip


def in_file(name: str, data: bytes) -> str:
    (row,) = summarise_file(data, name, CONFIG, stored_digests=()).rows
    return str(row.values["passage"])


def as_table(text: str, dialect: str = "excel") -> str:
    table = io.StringIO()
    csv.writer(table, dialect).writerows([["passage", "tag"], [text, "t"]])
    return table.getvalue()


def as_sheet(text: str) -> bytes:
    book, file = Workbook(), io.BytesIO()
    book.active.append(["passage"])  # type: ignore[union-attr]
    book.active.append([text])  # type: ignore[union-attr]
    book.active.cell(2, 1).data_type = "s"  # type: ignore[union-attr]  (a text, also where it begins with =)
    book.save(file)
    return file.getvalue()


def in_set(text: str, folder: Path) -> Mapping[str, Any]:
    path = folder / "set.jsonl"
    path.write_text(json.dumps({"passage": text, "question": text, "answer": text}))
    (row,) = read_set(path, path.name, CONFIG)
    assert isinstance(row, SetRow)
    return row.inputs | {"answer": row.gold[0]}


def in_form(text: str, _: Path) -> str:
    field = Component(name="it", type="long_text")
    form = ComponentForm([field], {"it": text})
    assert form.is_valid(), form.errors
    return str(form.inputs["it"])


def in_history(text: str, _: Path) -> Mapping[str, Any]:
    row = parse_line(json.dumps({"passage": text, "question": text}).encode(), "gates", ["passage"])
    return {**row.context, **row.input}


def in_predictions(text: str, folder: Path) -> str:
    path, answers = folder / "answers.jsonl", CollectedAnswers("answer", None, ["e"])
    path.write_text(json.dumps({"id": "e", "output": {"answer": text}}) + "\r\n\r\n", newline="")
    for line in read_lines(path):
        answers.take(line)
    (found,) = answers.iterate_in_order()
    assert found is not None
    return str(found.value)


def from_target(text: str, _: Path) -> str:
    config = EndpointConfig(url="http://model", fields=("question",), output="answer")
    return str(read_output(config, {"question": "?"}, {"answer": text})["answer"])


def in_turns(text: str, _: Path) -> str:
    talk = Component(name="it", type="chat")
    (turn,) = Chat().normalise(talk, [{"role": "user", "text": text}])
    return str(turn["text"])


GATES: dict[str, Callable[[str, Path], Any]] = {
    "jsonl": lambda text, _: in_file("a.jsonl", json.dumps({"passage": text}).encode()),
    "csv": lambda text, _: in_file("a.csv", as_table(text).encode()),
    "csv in UTF-16": lambda text, _: in_file("a.csv", as_table(text).encode("utf-16")),
    "xlsx": lambda text, _: in_file("a.xlsx", as_sheet(text)),
    "set": in_set,
    "form": in_form,
    "row to be judged": in_history,
    "predictions": in_predictions,
    "target": from_target,
    "conversation": in_turns,
    "api": lambda text, _: normalise_values(CONFIG.input, {"question": text})["question"],
}


@pytest.mark.parametrize("gate", GATES)
def test_every_gate_stores_the_same_text(gate: str, tmp_path: Path) -> None:
    assert len(HARD) == 26
    for text in HARD:
        found = GATES[gate](text, tmp_path)
        stored = {*found.values()} if isinstance(found, Mapping) else {found}
        assert stored == {compose(text)}
        assert "\r" not in compose(text)
