"""Training: the split by group, spans and windows, equal seeds, folders that appear whole."""

import contextlib
import json
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from dynabench.campaigns.rules.meaning import find_closest_cosines
from evaluation import seeds
from evaluation.seeds import split_by_group
from evaluation.training import fine_tune, sentences, shipped, starters
from evaluation.training.confidence import score_rows
from evaluation.training.data import (
    BATCH_WINDOWS,
    TrainingError,
    draw_batches,
    draw_items,
    find_span,
    run_sorted,
    score_answers,
)
from evaluation.training.fine_tune import (
    TrainingOptions,
    TrainingReport,
    evaluate_folder,
    train,
)
from evaluation.training.folders import make_atomic_folder
from evaluation.training.softening import divide_head
from serving.codecs import Answer, choose_codec
from serving.spec import FIELDS_BY_KIND, OUTPUT_BY_KIND, ModelFolder

WORDS = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "a", "was", "is", "good", "bad", "day", "tea"),
    *("who", "when", "made", "in", "by", "mo", "##li", "##na", "19", "##84", ",", ".", "?", "not"),
]
PASSAGE = "The tea was made in 1984, by Molina. The day was good. The tea was bad."
LABELS = ("entailment", "neutral", "contradiction")


def quiet(done: int, total: int, message: str) -> None:
    assert 0 <= done <= total
    assert message


def wordpieces() -> Tokenizer:
    tokenizer = Tokenizer(
        models.WordPiece({word: n for n, word in enumerate(WORDS)}, unk_token="[UNK]")
    )
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return tokenizer


def codec(kind: str, labels: tuple[str, ...] | None, max_length: int = 64):
    folder = ModelFolder(
        path=Path(),
        weights=(),
        kind=kind,
        fields=FIELDS_BY_KIND[kind],
        output=OUTPUT_BY_KIND[kind],
        labels=labels,
        max_length=max_length,
    )
    return choose_codec(folder, wordpieces(), max_length)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT with random weights: two layers of 16."""
    import torch
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    folder = tmp_path_factory.mktemp("base")
    torch.manual_seed(7)
    config = BertConfig(
        vocab_size=len(WORDS),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    BertModel(config).save_pretrained(folder)
    PreTrainedTokenizerFast(
        tokenizer_object=wordpieces(),
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    ).save_pretrained(folder)
    return folder


def text_rows() -> list[dict[str, object]]:
    return [
        {"group": f"g{n}", "text": f"the {thing} {was} {word}", "label": label}
        for n, (thing, was) in enumerate(
            (thing, was) for thing in ("day", "tea", "a day") for was in ("was", "is")
        )
        for word, label in (("good", "positive"), ("bad", "negative"))
    ]


def pair_rows() -> list[dict[str, object]]:
    return [
        {"group": f"g{n}", "premise": f"the day was {word}", "hypothesis": text, "label": label}
        for n, word in enumerate(("good", "bad", "good tea", "bad tea"))
        for text, label in zip((f"a {word} day", "tea", "a day not made"), LABELS, strict=True)
    ]


def span_rows() -> list[dict[str, object]]:
    asked = (("when was the tea made?", "1984"), ("who made the tea?", "Molina"))
    return [
        {
            "group": f"g{n}",
            "passage": passage,
            "question": question,
            "answer": answer,
            "answer_start": passage.index(answer),
        }
        for n, passage in enumerate((PASSAGE, "A bad day. " + PASSAGE, PASSAGE + " Not a day."))
        for question, answer in asked
    ]


ROWS = {
    "sequence-classification": text_rows,
    "pair-classification": pair_rows,
    "extractive-qa": span_rows,
}
OPTIONS = TrainingOptions(epochs=2, batch_size=4, max_length=64, window=8, trained_on="a test")


def trained(kind: str, base: Path, folder: Path, **changes: object) -> TrainingReport:
    options = TrainingOptions(**{**vars(OPTIONS), **changes})
    rows = ROWS[kind]()
    return train(rows, kind=kind, base=base, output_dir=folder, options=options, progress=quiet)


@given(
    st.lists(st.integers(0, 12), min_size=1, max_size=60),
    st.floats(0.01, 0.6),
    st.text(max_size=3),
    st.randoms(),
)
def test_split_keeps_groups_whole_and_ignores_the_order(
    groups: list[int], share: float, salt: str, chance: random.Random
) -> None:
    rows = [{"group": f"g{group}", "text": str(n)} for n, group in enumerate(groups)]
    rest, held = split_by_group(rows, share=share, salt=salt)
    assert not {row["group"] for row in rest} & {row["group"] for row in held}
    assert len(rest) + len(held) == len(rows)
    assert rest
    assert bool(held) == (len(set(groups)) > 1)
    largest = max(groups.count(group) for group in groups)
    assert len(held) < share * len(rows) + largest
    again = split_by_group(chance.sample(rows, len(rows)), share=share, salt=salt)[1]
    assert {row["group"] for row in again} == {row["group"] for row in held}


def test_rows_without_a_group_stay_with_their_context() -> None:
    rows = [{"premise": f"p{n % 5}", "hypothesis": f"h{n}"} for n in range(20)]
    rest, held = split_by_group(rows, share=0.3, salt="")
    assert not {row["premise"] for row in rest} & {row["premise"] for row in held}


@settings(deadline=None)  # the first call loads the tokenizer
@given(st.integers(0, 10_000), st.integers(4, 40))
def test_a_window_holds_its_answer(seed: int, window: int) -> None:
    span = codec("extractive-qa", None)
    for row in span_rows():
        (item,) = draw_items([row], span, window=window, rng=random.Random(seed))
        first, last = item.target
        ids = item.encoding.ids[first : last + 1]
        assert ids == span.tokenizer.encode(row["answer"], add_special_tokens=False).ids
        assert set(item.encoding.sequence_ids[first : last + 1]) == {1}
        assert item.encoding.sequence_ids.count(1) <= window


def test_spans_are_found_by_characters_and_never_in_the_question() -> None:
    encoding = wordpieces().encode("1984 1984?", "é 1984, 1984.")
    tokens = ["[CLS]", "19", "##84", "19", "##84", "?", "[SEP]", "[UNK]", "19", "##84", ","]
    assert encoding.tokens[: len(tokens)] == tokens
    assert find_span(encoding, 2, 6) == (8, 9)
    assert find_span(encoding, 8, 12) == (11, 12)
    assert find_span(encoding, 8, 13) == (11, 13)
    assert find_span(encoding, 12, 20) is None


def test_a_cut_passage_without_the_whole_answer_is_no_target() -> None:
    passage = "the day was good, the tea was made by molina"
    start = passage.index("tea was made")
    span = codec("extractive-qa", None, max_length=13)
    windows = span.encode({"question": "who?", "passage": passage})
    spans = [find_span(window, start, start + len("tea was made")) for window in windows]
    assert spans[0] is None
    assert windows[0].tokens[-3:-1] == ["tea", "was"]
    found = [w.tokens[s[0] : s[1] + 1] for w, s in zip(windows, spans, strict=True) if s]
    assert found
    assert all(tokens == ["tea", "was", "made"] for tokens in found)


def test_weights_say_how_often_a_row_is_seen() -> None:
    rows = [{**row, "weight": weight} for row, weight in zip(text_rows(), (0, 1, 3), strict=False)]
    seen = draw_items(
        rows,
        codec("sequence-classification", ("negative", "positive")),
        window=0,
        rng=random.Random(0),
    )
    assert [item.target for item in seen] == [(0,), (1,), (1,), (1,)]
    half = [{**text_rows()[0], "weight": 0.5}] * 200
    drawn = draw_items(
        half, codec("sequence-classification", ("positive",)), window=0, rng=random.Random(0)
    )
    assert 70 < len(drawn) < 130


def test_a_text_that_leaves_no_room_is_named() -> None:
    pair = codec("pair-classification", LABELS, max_length=16)
    row = {"premise": "tea", "hypothesis": "the day " * 9, "label": "neutral"}
    with pytest.raises(TrainingError, match=r"hypothesis has 18 tokens.*The row: .*the day"):
        draw_items([row], pair, window=0, rng=random.Random(0))


def test_batches_hold_every_item_once() -> None:
    text = codec("sequence-classification", ("negative", "positive"))
    items = draw_items(text_rows() * 9, text, window=0, rng=random.Random(0))
    made = list(draw_batches(items, 4, random.Random(1)))
    assert sorted(id(item) for batch in made for item in batch) == sorted(map(id, items))
    assert {len(batch) for batch in made} == {4}


@given(st.lists(st.lists(st.integers(1, 60), min_size=1, max_size=4), min_size=1, max_size=30))
def test_what_is_asked_by_length_comes_back_in_the_order_of_its_rows(
    lengths: list[list[int]],
) -> None:
    """A passage's last window is shorter than those before it."""
    windows = [[range(length) for length in some] for some in lengths]
    sizes: list[int] = []

    def run(batch: list[range]) -> list[int]:
        sizes.append(len(batch))
        return [len(window) for window in batch]

    assert run_sorted(windows, run) == lengths
    assert sum(sizes) == sum(map(len, lengths))
    assert max(sizes) <= BATCH_WINDOWS


def test_scores() -> None:
    def said(labels: str) -> list[Answer]:
        return [Answer({"label": label}, None) for label in labels]

    rows = [{"label": label} for label in "aaab"]
    assert score_answers(rows, said("aaab"), kind="sequence-classification") == {
        "accuracy": 1.0,
        "macro_f1": 1.0,
    }
    found = score_answers(rows, said("aaaa"), kind="pair-classification")
    assert found["accuracy"] == 0.75
    assert found["macro_f1"] == pytest.approx((6 / 7 + 0) / 2)
    spans = [Answer({"answer": answer}, None) for answer in ("The tea!", "good tea", "day")]
    found = score_answers([{"answer": "tea"}] * 3, spans, kind="extractive-qa")
    assert found == pytest.approx({"f1": (1 + 2 / 3 + 0) / 3, "exact_match": 1 / 3})


@pytest.mark.parametrize("kind", ROWS)
def test_the_same_seed_gives_the_same_weights(kind: str, base: Path, tmp_path: Path) -> None:
    reports = [trained(kind, base, tmp_path / name) for name in "ab"]
    assert reports[0].weights_sha256 == reports[1].weights_sha256
    other = trained(kind, base, tmp_path / "c", seed=1)
    assert other.weights_sha256 != reports[0].weights_sha256
    report = reports[0]
    rows = ROWS[kind]()
    assert report.rows + report.dev_rows == len(rows)
    assert 1 <= report.best_epoch <= report.epochs == 2
    assert set(report.dev) == set(evaluate_folder(tmp_path / "a", rows))


@pytest.mark.parametrize("kind", ROWS)
def test_a_trained_model_is_no_surer_than_its_dev_rows_allow(
    kind: str, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its head is divided by a temperature, and its answers are those of the undivided one."""
    monkeypatch.setattr(fine_tune, "fit_temperature", lambda rows: 4.0)
    rows, folders = ROWS[kind](), {name: tmp_path / name for name in ("plain", "divided")}
    assert trained(kind, base, folders["divided"]).temperature == 4
    monkeypatch.setattr(fine_tune, "fit_temperature", lambda rows: 1.0)
    assert trained(kind, base, folders["plain"]).temperature == 1
    labels = json.loads((folders["plain"] / "dynabench.json").read_bytes())["labels"]
    reading = fine_tune.Reading(kind, labels and tuple(labels), 64)
    plain, divided = (fine_tune.answer_texts(folder, rows, reading) for folder in folders.values())
    assert [one.output for one in plain] == [one.output for one in divided]
    scores = {name: score_rows(folder, rows) for name, folder in folders.items()}
    for before, after in zip(scores["plain"], scores["divided"], strict=True):
        np.testing.assert_allclose(after.scores * 4, before.scores, atol=0.02)


@pytest.mark.parametrize("outputs", [2, 3])
def test_a_model_without_a_last_layer_of_its_labels_stays_as_it_is(outputs: int) -> None:
    """Something behind the layer squares its scores, or no layer has as many as labels."""
    import torch

    class Odd(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(3, outputs)

        def forward(self, values: "torch.Tensor") -> "torch.Tensor":
            return self.layer(values).square()

    torch.manual_seed(0)
    model, asked = Odd(), torch.ones(1, 3)
    before = model.layer.weight.detach().clone()
    assert not divide_head(model, 2, 2.0, lambda: model(asked))
    assert torch.allclose(model.layer.weight, before)


def test_the_folder_says_how_to_serve_it(base: Path, tmp_path: Path) -> None:
    trained("pair-classification", base, tmp_path / "made", labels=LABELS)
    assert json.loads((tmp_path / "made" / "dynabench.json").read_text()) == {
        "kind": "pair-classification",
        "fields": ["premise", "hypothesis"],
        "output": "label",
        "labels": list(LABELS),
        "max_length": 64,
        "trained_on": "a test",
        "seed": 0,
    }
    config = json.loads((tmp_path / "made" / "config.json").read_text())
    assert config["architectures"] == ["BertForSequenceClassification"]
    assert config["id2label"] == {str(n): label for n, label in enumerate(LABELS)}
    names = {file.name for file in (tmp_path / "made").iterdir()}
    assert {"model.safetensors", "tokenizer.json"} <= names
    assert [child.name for child in tmp_path.iterdir()] == ["made"]


def test_pickled_weights_are_refused(base: Path, tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file

    pickled = shutil.copytree(base, tmp_path / "pickled")
    torch.save(load_file(base / "model.safetensors"), pickled / "pytorch_model.bin")
    (pickled / "model.safetensors").unlink()
    with pytest.raises(OSError, match="safetensors"):
        trained("sequence-classification", pickled, tmp_path / "made")
    assert not (tmp_path / "made").exists()


def test_what_is_learned_can_be_continued(base: Path, tmp_path: Path) -> None:
    """A trained folder is a base too: the next round's target starts from it."""
    trained("sequence-classification", base, tmp_path / "first")
    report = trained("sequence-classification", tmp_path / "first", tmp_path / "second")
    assert report.epochs == 2


def test_training_learns(base: Path, tmp_path: Path) -> None:
    trained(
        "sequence-classification",
        base,
        tmp_path / "made",
        epochs=30,
        patience=30,
        learning_rate=3e-3,
        layer_decay=1.0,
    )
    assert evaluate_folder(tmp_path / "made", text_rows())["accuracy"] == 1.0


@pytest.mark.parametrize("when", [0, 2])
def test_a_killed_training_leaves_nothing(when: int, base: Path, tmp_path: Path) -> None:
    def kill(done: int, total: int, message: str) -> None:
        if done == when:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(
            text_rows(),
            kind="sequence-classification",
            base=base,
            output_dir=tmp_path / "made",
            options=OPTIONS,
            progress=kill,
        )
    assert list(tmp_path.iterdir()) == []


def test_an_existing_folder_is_never_touched(base: Path, tmp_path: Path) -> None:
    with pytest.raises(FileExistsError, match="Choose another folder"):
        trained("sequence-classification", base, tmp_path)
    assert list(tmp_path.iterdir()) == []
    made = tmp_path / "made"
    with contextlib.suppress(OSError), make_atomic_folder(made) as folder:
        (folder / "new").touch()
        made.mkdir()
        (made / "old").touch()
    assert [file.name for file in made.iterdir()] == ["old"]
    assert list(tmp_path.iterdir()) == [made]


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("sequence-classification", {"text": " "}, "row 1: text is missing"),
        ("pair-classification", {"hypothesis": None}, "row 1: hypothesis is missing"),
        ("pair-classification", {"label": "maybe"}, "label 'maybe' is none of"),
        ("extractive-qa", {"answer_start": 3}, "row 1: the passage does not have the answer"),
        ("extractive-qa", {"answer_start": None}, "counted in characters from 0"),
        ("images", {}, "kind 'images' is none of"),
    ],
)
def test_bad_rows_are_named(
    kind: str, change: dict[str, object], message: str, tmp_path: Path
) -> None:
    rows = ROWS.get(kind, text_rows)()
    rows[0] |= change
    labels = LABELS if kind == "pair-classification" else None
    with pytest.raises(TrainingError, match=message):
        train(
            rows,
            kind=kind,
            base=tmp_path,
            output_dir=tmp_path / "made",
            options=TrainingOptions(labels=labels),
            progress=quiet,
        )


def test_rows_of_one_author_are_kept_apart_by_their_texts() -> None:
    rows = [
        {"group": "ada", "passage": f"Passage {n % 3}.", "question": f"Question {n}?"}
        for n in range(12)
    ]
    part, dev = fine_tune.split_dev_rows(rows, OPTIONS)
    assert part
    assert dev
    assert not {row["passage"] for row in part} & {row["passage"] for row in dev}


def test_one_text_is_not_enough(tmp_path: Path) -> None:
    rows = [{**row, "text": "A good day."} for row in text_rows()[:2]]
    with pytest.raises(TrainingError, match="one text"):
        train(
            rows,
            kind="sequence-classification",
            base=tmp_path,
            output_dir=tmp_path / "made",
            options=OPTIONS,
            progress=quiet,
        )


def check_temperature_is_divided_by_once(calm: Path, home: Path) -> None:
    """A head that is far too sure says the same after calibration, less surely; the next
    calibration changes no byte."""
    target = shipped.find_shipped_folder("sentiment")
    parts = load_file(target / shipped.DELTA_FILE)
    for name in ("whole/classifier.weight", "whole/classifier.bias"):
        parts[name] = parts[name] * 1000
    save_file(parts, target / shipped.DELTA_FILE)
    report = shipped.read_report(target)
    del report["calibration"]
    (target / shipped.REPORT_FILE).write_text(json.dumps(report))
    assert not starters.is_starter_calibrated("sentiment")
    starters.train_and_install_starters(home, "sentiment", force=False, as_json=True)
    assert starters.is_starter_calibrated("sentiment")
    calibration = shipped.read_report(target)["calibration"]
    assert calibration["temperature"] > 1
    assert calibration["after"]["nll"] < calibration["before"]["nll"]
    mended = shipped.install_starter("sentiment", home)
    assert mended != calm
    reading = fine_tune.Reading("sequence-classification", ("negative", "positive"), 64)
    said = [fine_tune.answer_texts(folder, text_rows(), reading) for folder in (calm, mended)]
    assert [one.output for one in said[0]] == [one.output for one in said[1]]
    files = {file.name: file.read_bytes() for file in target.iterdir()}
    starters.calibrate_starter("sentiment", target)
    assert files == {file.name: file.read_bytes() for file in target.iterdir()}


@pytest.fixture
def small_starters(monkeypatch: pytest.MonkeyPatch, base: Path, tmp_path: Path) -> Path:
    """The official tasks shrunk to a few rows on the random encoder; the home for their models."""
    folder = tmp_path / "official" / "sentiment"
    folder.mkdir(parents=True)
    rows = "".join(json.dumps(row) + "\n" for row in text_rows())
    (folder / "seed.jsonl").write_text(rows, encoding="utf-8")
    starter = starters.Starter("sequence-classification", OPTIONS)
    monkeypatch.setattr(seeds, "OFFICIAL_TASKS_FOLDER", tmp_path / "official")
    monkeypatch.setattr(starters, "STARTERS", {"sentiment": starter})
    for module in (starters, shipped):
        monkeypatch.setattr(module, "find_encoder", lambda: base)
    return tmp_path / "home"


def test_a_starter_is_trained_shipped_and_installed(small_starters: Path) -> None:
    steps: list[int] = []
    target = shipped.find_shipped_folder("sentiment")
    starters.train_starter("sentiment", target, lambda done, *_: steps.append(done))
    assert steps
    assert starters.is_starter_fresh("sentiment")
    folder = shipped.install_starter("sentiment", small_starters)
    report = shipped.read_report(folder)
    assert report["task"] == "sentiment"
    assert set(report["held_out"]) == {"accuracy", "macro_f1"}
    assert report["rows"] + report["dev_rows"] + report["held_out_rows"] == len(text_rows())
    assert set(report) >= {"dev", "epochs", "best_epoch", "seconds"}
    assert report["weights_sha256"].startswith(folder.name)
    held = seeds.split_held_out(text_rows())[1]
    assert evaluate_folder(folder, held) == report["held_out"]
    assert starters.is_starter_calibrated("sentiment")
    assert report["calibration"]["rows"] == report["dev_rows"]
    check_temperature_is_divided_by_once(folder, small_starters)
    seed = seeds.OFFICIAL_TASKS_FOLDER / "sentiment" / "seed.jsonl"
    extra = {"group": "new", "text": "tea", "label": "positive"}
    seed.write_text(seed.read_text() + json.dumps(extra) + "\n")
    assert not starters.is_starter_fresh("sentiment")


def test_a_training_that_failed_leaves_what_was_shipped(
    small_starters: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("oom")

    old = shipped.find_shipped_folder("sentiment")
    old.mkdir()
    monkeypatch.setattr(starters, "evaluate_folder", fail)
    with pytest.raises(RuntimeError, match="oom"):
        starters.train_starter("sentiment", old, quiet)
    assert old.exists()
    assert list(old.iterdir()) == []


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a report of each starter; those of qa and nli were trained by another recipe."""
    monkeypatch.setattr(starters, "is_starter_fresh", lambda code: code not in {"qa", "nli"})
    monkeypatch.setattr(starters, "is_starter_calibrated", lambda code: True)
    monkeypatch.setattr(starters, "install_starter", lambda code, home: home / code)
    for code in starters.STARTER_CODES:
        report = {"task": code, "held_out_rows": 7, "held_out": {"accuracy": 0.5}}
        (tmp_path / code).mkdir()
        (tmp_path / code / "report.json").write_text(json.dumps(report))
    return tmp_path


@pytest.mark.parametrize(
    ("task", "force", "wanted"),
    [
        (None, False, ["nli", "qa"]),
        (None, True, list(starters.STARTER_CODES)),
        ("sentiment", False, []),
        ("sentiment", True, ["sentiment"]),
    ],
)
def test_what_is_trained_and_reported(
    installed: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    task: str | None,
    force: bool,
    wanted: list[str],
) -> None:
    trained: list[str] = []
    monkeypatch.setattr(starters, "_train_all", trained.extend)
    starters.train_and_install_starters(installed, task, force=force, as_json=True)
    assert trained == wanted
    reported = [report["task"] for report in json.loads(capsys.readouterr().out)]
    assert reported == ([task] if task else list(starters.STARTER_CODES))


def test_the_starter_that_failed_is_named() -> None:
    with pytest.raises(RuntimeError, match="of unknown failed"):
        starters._train_all(["unknown"])


@pytest.mark.parametrize("code", starters.STARTERS)
def test_the_shipped_seeds_can_be_trained_on(code: str) -> None:
    starter = starters.STARTERS[code]
    rows = seeds.read_seed_rows(code)
    fine_tune.check_rows(rows, kind=starter.kind, labels=starter.options.labels)
    held = seeds.split_held_out(rows)[1]
    assert 0.08 < len(held) / len(rows) < 0.15
    assert (shipped.find_encoder() / "model.safetensors").is_file()
    if starter.options.labels:
        assert {row["label"] for row in held} == set(starter.options.labels)


def test_sentences_of_like_meaning_have_vectors_of_like_direction() -> None:
    texts = [
        "A lady plays guitar on stage.",
        "A woman is playing the guitar on a stage.",
        "It rained.",
    ]
    found = sentences.embed_texts(texts)
    assert [max(map(abs, np.frombuffer(one, np.int8).tolist())) for one in found] == [127] * 3
    near = find_closest_cosines(dict(enumerate(found)), [1, 2])
    assert near[1] > 0.85 > 0.5 > near[2]
    assert len(sentences.compute_encoder_digest()) == 16
