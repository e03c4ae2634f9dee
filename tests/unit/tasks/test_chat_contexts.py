"""Conversations in files of contexts: read as they are, or refused with line and reason."""

import csv
import io
import json

import pytest

from tasks.config.loading import load_config
from tasks.contexts.files import read_rows
from tasks.line_files import LineError

CONFIG = load_config("""
version: 1
name: Talks
goal: {text: Ask about the conversation}
context: [{name: talk, type: chat, label: The conversation}]
input: [{name: question, type: text, label: Your question}]
output: [{name: reply, type: text}]
verdict: {type: ask_user}
metrics: {main: squad_f1}
""")
SAID = {"role": "user", "text": "Is it open?"}
TURNS = [{"role": "system", "text": "Be brief."}, SAID, {"role": "assistant", "text": "No."}]


def read(text, name="talks.jsonl"):
    return list(read_rows(io.BytesIO(text.encode()), name, CONFIG))


def line(talk):
    return json.dumps({"talk": talk})


def test_json_lines_and_tables_bring_the_same_turns():
    (row,) = read(line(TURNS))
    table = io.StringIO()
    csv.writer(table).writerows([["talk"], [json.dumps(TURNS)]])
    (cell,) = read(table.getvalue(), "talks.csv")
    assert row.values == cell.values == {"talk": TURNS}


@pytest.mark.parametrize(
    ("talk", "reason"),
    [
        ("Is it open?", "list of turns"),
        ({"role": "user", "text": "Is it open?"}, "list of turns"),
        (["Is it open?"], "turn 1: needs role and text"),
        ([SAID, {"role": "assistant"}], "turn 2: needs role and text"),
        ([{**SAID, "name": "Ada"}], "turn 1: needs role and text"),
        ([{"role": "bot", "text": "No."}], "turn 1: the role"),
        ([SAID, TURNS[0]], "turn 2: only the first turn"),
        ([{"role": "user", "text": "  "}], "turn 1: the text is missing"),
        ([{"role": "user", "text": 7}], "turn 1: the text is missing"),
        ([{"role": "user", "text": "a\x01b"}], "control character"),
        ([{**SAID, "secret": "x"}], "turn 1: only the system's turn"),
        ([SAID] * 400, "400 turns; the most is 300"),
    ],
)
def test_what_is_no_conversation_is_refused_by_line(talk, reason):
    first, wrong = read(f"{line(TURNS)}\n{line(talk)}")
    assert not isinstance(first, LineError)
    assert isinstance(wrong, LineError)
    assert wrong.line == 2
    assert reason in wrong.message
