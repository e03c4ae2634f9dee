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


def test_ties_are_named_with_both_sides(client, battles):
    by_id = {row["id"]: row for row in rows(client, "ties")}
    assert {battle: row["winner"] for battle, row in by_id.items()} == {
        battles["tie"]: "tie",
        battles["both_bad"]: "both_bad",
    }
    for row in by_id.values():
        battle = Battle.objects.get(uuid=row["id"])
        assert row["prompt"] == [{"role": "user", "content": "Hello"}]
        assert row["models"] == [battle.get_contestant(side).name for side in ("left", "right")]
        said = {"m1": "One.", "m2": "Two."}
        assert row["completions"] == [
            [{"role": "assistant", "content": said[model]}] for model in row["models"]
        ]


def test_without_consent_nothing_leaves(client, task, voter, battles):
    services.give_consent(voter=voter, task=task, agrees=False)
    assert rows(client, "dpo") == rows(client, "kto") == rows(client, "ties") == []


def test_a_battle_in_which_a_model_named_itself_is_no_training_data(client, battles):
    """Its vote doesn't count in the ranking either."""
    named = [battles[winner] for winner in ("left", "tie", "both_bad")]
    Battle.objects.filter(uuid__in=named).update(names_itself=True)
    assert {row["id"] for row in rows(client, "dpo")} == {battles["right"], battles["long"]}
    wanted = {row["id"].rpartition("-")[0] for row in rows(client, "kto")}
    assert wanted == {battles["right"], battles["long"]}
    assert rows(client, "ties") == []


def test_no_other_format_is_known(client, task):
    assert client.get(URL, {"format": "csv"}).status_code == 400


def load_rows(client, folder, format):
    """Return the file of a format as `datasets` loads it."""
    from datasets import load_dataset

    file = folder / f"{format}.jsonl"
    file.write_bytes(client.get(URL, {"format": format}).getvalue())
    return load_dataset("json", data_files=str(file), cache_dir=str(folder / "cache"))["train"]


def list_labelled_answers(loaded):
    """Return prompts, completions and labels in an order that doesn't depend on the file."""
    columns = ("prompt", "completion", "label")
    return sorted(json.dumps([row[name] for name in columns]) for row in loaded)


def test_trl_reads_the_pairs_that_datasets_loads(client, battles, tmp_path):
    from trl.data_utils import extract_prompt, is_conversational, unpair_preference_dataset

    loaded = load_rows(client, tmp_path, "dpo")
    assert all(is_conversational(row) for row in loaded)
    # TRL makes the same unwanted and wanted answers of our pairs as we do.
    unpaired = unpair_preference_dataset(loaded.select_columns(["prompt", "chosen", "rejected"]))
    assert unpaired.column_names == ["prompt", "completion", "label"]
    kto = load_rows(client, tmp_path, "kto")
    decided = kto.filter(lambda row: not row["id"].startswith(battles["both_bad"]))
    assert len(decided) == 2 * len(loaded)
    assert list_labelled_answers(decided) == list_labelled_answers(unpaired)
    # And it finds our prompt where a conversation has no prompt of its own.
    whole = {name: loaded[0]["prompt"] + loaded[0][name] for name in ("chosen", "rejected")}
    assert extract_prompt(whole)["prompt"] == loaded[0]["prompt"]


def test_trl_reads_the_labelled_answers_that_datasets_loads(client, battles, tmp_path):
    from datasets import Value
    from trl.data_utils import is_conversational

    loaded = load_rows(client, tmp_path, "kto")
    assert loaded.column_names == ["id", "prompt", "completion", "label", "model"]
    assert loaded.features["label"] == Value("bool")
    assert all(is_conversational(row) for row in loaded)


def test_datasets_loads_ties(client, battles, tmp_path):
    loaded = load_rows(client, tmp_path, "ties")
    assert set(loaded["winner"]) == {"tie", "both_bad"}
    assert [len(row) for row in loaded["completions"]] == [2, 2]
