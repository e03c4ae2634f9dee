"""Battles as preference data: what counts as preferred, and that others' tools read it."""

# ruff: noqa: F811  (fixtures are named where they are used)

import json

import pytest

from leaderboard.arena.battles import services
from leaderboard.models import Battle
from tests.support.battles import agreed, fight, send, task, voter  # noqa: F401

URL = "/t/duel/conversations.jsonl"
pytestmark = pytest.mark.django_db


@pytest.fixture
def battles(task, voter, agreed):
    """Released battles by their outcome; the last one has two messages."""
    found = {winner: fight(task, voter, winner) for winner in ("left", "right", "tie", "both_bad")}
    send(task, voter, "First")
    battle = send(task, voter, "Second").battle
    battle.task = task
    found["long"] = services.cast_vote(battle=battle, winner="left", turns=2)
    return {winner: str(battle.uuid) for winner, battle in found.items()}


def rows(client, format):
    response = client.get(URL, {"format": format})
    return [json.loads(line) for line in response.getvalue().decode().splitlines()]


def test_dpo_has_the_decided_battles_alone(client, battles):
    by_id = {row["id"]: row for row in rows(client, "dpo")}
    assert set(by_id) == {battles["left"], battles["right"], battles["long"]}
    for winner in ("left", "right"):
        battle = Battle.objects.get(uuid=battles[winner])
        row, loser = by_id[battles[winner]], {"left": "right", "right": "left"}[winner]
        assert row["chosen_model"] == battle.get_contestant(winner).name
        assert row["rejected_model"] == battle.get_contestant(loser).name
        said = {"m1": "One.", "m2": "Two."}
        assert row["chosen"][-1] == {"role": "assistant", "content": said[row["chosen_model"]]}
        assert row["rejected"][-1]["content"] == said[row["rejected_model"]]
        assert row["prompt"] == [{"role": "user", "content": "Hello"}]
    long = by_id[battles["long"]]
    assert [message["role"] for message in long["chosen"]] == ["assistant", "user", "assistant"]


def test_kto_has_each_side_that_is_wanted_or_not(client, battles):
    wanted = {}
    for row in rows(client, "kto"):
        battle, _, side = row["id"].rpartition("-")
        wanted.setdefault(battle, {})[side] = row["label"]
    assert wanted == {
        battles["left"]: {"left": True, "right": False},
        battles["right"]: {"left": False, "right": True},
        battles["both_bad"]: {"left": False, "right": False},
        battles["long"]: {"left": True, "right": False},
    }


def test_without_consent_nothing_leaves(client, task, voter, battles):
    services.give_consent(voter=voter, task=task, agrees=False)
    assert rows(client, "dpo") == rows(client, "kto") == []


def test_no_other_format_is_known(client, task):
    assert client.get(URL, {"format": "csv"}).status_code == 400


@pytest.mark.parametrize("format", ["dpo", "kto"])
def test_trl_reads_the_files_that_datasets_loads(client, battles, tmp_path, format):
    from datasets import load_dataset
    from trl.data_utils import extract_prompt, is_conversational, unpair_preference_dataset

    file = tmp_path / f"{format}.jsonl"
    file.write_bytes(client.get(URL, {"format": format}).getvalue())
    loaded = load_dataset("json", data_files=str(file), cache_dir=str(tmp_path / "cache"))["train"]
    assert is_conversational(loaded[0])
    if format == "dpo":
        # TRL makes the same unwanted and wanted answers of our pairs as we do.
        unpaired = unpair_preference_dataset(
            loaded.select_columns(["prompt", "chosen", "rejected"])
        )
        assert unpaired.column_names == ["prompt", "completion", "label"]
        assert sum(unpaired["label"]) == len(loaded)
        # And it finds our prompt where a conversation has no prompt of its own.
        whole = {name: loaded[0]["prompt"] + loaded[0][name] for name in ("chosen", "rejected")}
        assert extract_prompt(whole)["prompt"] == loaded[0]["prompt"]
