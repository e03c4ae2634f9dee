"""Released choices and rankings as preference data: the pairs, who gets them, and that TRL reads.

Battles have theirs in tests/web/test_preferences.py.
"""

import json

import pytest

from annotation.models import Example
from core.accounts.models import Annotator
from evaluation.dataset_releases.preference_pairs import write_pair_lines
from evaluation.models import Dataset
from tasks.config.loading import load_config
from tasks.models import Round, Task
from tests.support.factories import ContextFactory
from tests.support.releases import content, released
from tests.support.writing import ok
from validation.decisions.consensus_rows import derive_consensus

URL = "/t/replies/rounds/1/data/1/train.jsonl"
OFFERS = ["By bus.", "On foot.", "By boat."]
QUESTION = "How do I get to Tarn?"
TURNS = [
    {"role": "user", "text": "Hello"},
    {"role": "assistant", "text": "Where to?"},
    {"role": "user", "text": "Tarn."},
]
pytestmark = pytest.mark.django_db


def config_of(*, rank=False, ask_type="text"):
    """A task in which people choose among texts, or rank them."""
    field = {"name": "best", "type": "candidates", "reference": "offers"}
    return json.dumps(
        {
            "version": 1,
            "name": "Replies",
            "goal": {"text": "Choose"},
            "context": [
                {"name": "ask", "type": ask_type},
                {"name": "offers", "type": "candidates"},
            ],
            "input": [field | {"rank": rank} if rank else field],
            "output": ["best"],
            "verdict": {"type": "rank", "field": "best"}
            if rank
            else {"type": "exact_match", "fields": ["best"]},
            "metrics": {"main": "pair_accuracy" if rank else "accuracy"},
            "validation": {"votes": {"needed": 1}},
        }
    )


@pytest.fixture
def release(settings, tmp_path):
    """A function that releases one confirmed and one unjudged answer of a task."""
    settings.MEDIA_ROOT = tmp_path

    def make(answer, ask=QUESTION, **kind):
        task = Task.objects.create(code="replies", name="Replies", config_text=config_of(**kind))
        round = Round.objects.create(task=task, number=1, state="closed")
        context = ContextFactory(round=round, fields={"ask": ask, "offers": OFFERS})
        author, judging = [
            Annotator.objects.create(pseudonym=f"{task.code}-{number}") for number in range(2)
        ]
        for number, outcome in enumerate(("fooled", "not_fooled")):
            example = Example.objects.create(
                round=round,
                context=context,
                annotator=author,
                inputs={"best": answer},
                digest=str(number),
                outcome=outcome,
            )
            if outcome == "fooled":
                example.validations.create(validator=judging, author=author, verdict="correct")
                derive_consensus(example, list(example.validations.all()))
        return released(round, dev=0, test=0)

    return make


def read_pairs(client):
    response = ok(client.get(URL, {"format": "dpo"}))
    return [json.loads(line) for line in response.getvalue().splitlines()]


def test_a_choice_is_better_than_each_other_text(client, release):
    dataset = release("On foot.")
    rows = [json.loads(line) for line in content(dataset, "train.jsonl").splitlines()]
    (confirmed,) = [row["uid"] for row in rows if row["validated"]]
    assert len(rows) == 2  # nobody judged the other
    assert read_pairs(client) == [
        {
            "id": f"{confirmed}-2-{worse}",
            "prompt": [{"role": "user", "content": QUESTION}],
            "chosen": [{"role": "assistant", "content": "On foot."}],
            "rejected": [{"role": "assistant", "content": OFFERS[worse - 1]}],
        }
        for worse in (1, 3)
    ]
    # Whoever read a part of it has used the release.
    assert Dataset.objects.get().downloaded_at


def test_a_ranking_gives_each_pair_of_its_texts(client, release):
    release(["By boat.", "By bus.", "On foot."], rank=True)
    pairs = [
        (row["chosen"][0]["content"], row["rejected"][0]["content"]) for row in read_pairs(client)
    ]
    assert pairs == [("By boat.", "By bus."), ("By boat.", "On foot."), ("By bus.", "On foot.")]


@pytest.mark.parametrize("label", ["", "by air", "3", '["By bus."]', "[[1], 2, 3]"])
@pytest.mark.parametrize("rank", [False, True])
def test_an_answer_that_is_none_of_the_texts_prefers_nothing(label, rank):
    config = load_config(config_of(rank=rank))
    row = {
        "uid": "u1",
        "withdrawn": False,
        "validated": True,
        "label": label,
        "context": {"context_json": json.dumps({"ask": QUESTION, "offers": OFFERS})},
        "input_json": "{}",
    }
    assert not [*write_pair_lines([json.dumps(row).encode()], config)]


def test_a_conversation_stays_one(client, release):
    release("By bus.", TURNS, ask_type="chat")
    said = [(message["role"], message["content"]) for message in read_pairs(client)[0]["prompt"]]
    assert said == [(turn["role"], turn["text"]) for turn in TURNS]


def test_no_pairs_of_what_the_reader_may_not_read(client, release):
    dataset = release("By bus.")
    for name in ("train.parquet", "croissant.json"):
        address = f"/t/replies/rounds/1/data/1/{name}"
        assert client.get(address, {"format": "dpo"}).status_code == 404
    assert client.get(URL, {"format": "csv"}).status_code == 404
    # As the labels of a private test split.
    dataset.files.filter(name="train.jsonl").update(is_public=False)
    assert client.get(URL, {"format": "dpo"}).status_code == 404


def test_trl_reads_what_datasets_loads(client, release, tmp_path):
    from datasets import load_dataset
    from trl.data_utils import is_conversational, unpair_preference_dataset

    release("On foot.")
    file = tmp_path / "pairs.jsonl"
    file.write_bytes(ok(client.get(URL, {"format": "dpo"})).getvalue())
    loaded = load_dataset("json", data_files=str(file), cache_dir=str(tmp_path / "cache"))["train"]
    assert all(is_conversational(row) for row in loaded)
    unpaired = unpair_preference_dataset(loaded.select_columns(["prompt", "chosen", "rejected"]))
    wanted = {row["completion"][0]["content"]: row["label"] for row in unpaired}
    assert wanted == {"On foot.": True, "By bus.": False, "By boat.": False}
