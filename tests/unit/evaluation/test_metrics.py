"""Metrics against the libraries that define them, and cases by hand."""

import itertools
import math
import unicodedata
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
from scipy.stats import kendalltau
from sklearn.metrics import f1_score, matthews_corrcoef

from core.text.words import split_runs
from evaluation.contract import SetRow
from evaluation.scoring import groups
from evaluation.scoring.metrics import METRICS, MetricUnavailable, base, make_metric
from evaluation.scoring.metrics.answers import MAX_TAGS
from evaluation.scoring.metrics.errors import count_edits
from tasks.config import schema
from tasks.config.loading import load_config
from tasks.config.parsing import ConfigError
from tasks.config.schema import ERROR_METRICS, SECRET_METRICS
from tasks.services import OFFICIAL_FOLDER

LABELS = ("yes", "no", "maybe")
WORDS = ("the", "cat", "sat", "on", "a", "mat", "dog", "12,000", "it's", ".", "&amp;", "x-y")
sentences = st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(" ".join)


def row(*gold: Any, tags: tuple[str, ...] = ()) -> SetRow:
    return SetRow("u", {}, gold, {"tag": tags} if tags else {})


def number(name: str, pairs: list[tuple[Any, SetRow]], **options: Any) -> float:
    """The metric of answers and rows, by its vectors."""
    metric = make_metric(name, LABELS, **options)
    found = [metric.compute_statistic(value, row) for value, row in pairs]
    return float(metric.compute_value(metric.compute_vectors(found).sum(axis=0)))


def one(name: str, value: Any, *gold: Any) -> float:
    return number(name, [(value, row(*gold))])


def test_a_new_metric_may_be_named_in_configurations(monkeypatch):
    text = (OFFICIAL_FOLDER / "nli" / "task.yaml").read_text()
    asked = text.replace("accuracy", "mine")
    with pytest.raises(ConfigError):
        load_config(asked)
    monkeypatch.setattr(base, "METRICS", {})
    monkeypatch.setattr(schema, "METRIC_NAMES", [*METRICS])
    type("Mine", (base.Mean,), {"name": "mine", "title": "Mine"})
    assert load_config(asked).metrics.main == "mine"


def test_a_process_that_knows_no_metrics_takes_every_name(monkeypatch):
    monkeypatch.setattr(schema, "METRIC_NAMES", [])
    text = (OFFICIAL_FOLDER / "nli" / "task.yaml").read_text()
    assert load_config(text.replace("accuracy", "other")).metrics.main == "other"


def test_every_metric_is_explained():
    page = (Path(__file__).parents[3] / "docs/evaluation.md").read_text()
    for name, metric in METRICS.items():
        assert f"`{name}`" in page, f"Name {name} in docs/evaluation.md, Scores."
        assert metric.__doc__
        assert metric.get_version_for("en") >= 1
        assert metric.higher_is_better == (name not in ERROR_METRICS)


@pytest.mark.parametrize(
    ("language", "tokenizer", "version"),
    [
        *(("en", "13a", 2), ("de-AT", "13a", 2), ("", "13a", 2), ("zh-Hans", "zh", 3)),
        *((name, "char", 4) for name in ("ja", "ko", "th", "km", "my", "lo")),
    ],
)
def test_bleu_has_the_tokenizer_of_the_language(language, tokenizer, version):
    pairs = [
        ("我们今天去北京看朋友。", "我们明天去北京看老朋友。"),
        ("今日は東京へ行きます", "明日は東京へ行きましょう"),
        ("오늘 서울에 갑니다", "내일 서울에 갑니다"),
        ("the cat sat on the mat, it's", "the cat sat on a mat, it's"),
    ]
    said, right = zip(*pairs, strict=True)
    expected = BLEU(tokenize=tokenizer).corpus_score(said, [right]).score / 100
    rows = [(one, row(other)) for one, other in pairs]
    assert number("bleu", rows, language=language) == pytest.approx(expected)
    assert METRICS["bleu"].get_version_for(language) == version


TEXT_METRICS = (
    *("accuracy", "exact_match", "squad_f1", "rouge_l", "vqa_accuracy", "bleu", "chrf", "chrf_pp"),
    *ERROR_METRICS,
    "dataperf_f1",
)


@pytest.mark.parametrize("name", TEXT_METRICS)
@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Hà Nội là thủ đô của Việt Nam", "vi"),
        ("한국의 수도는 서울입니다", "ko"),
        ("नई दिल्ली भारत की राजधानी है", "hi"),
        ("東京タワーは大きいです", "ja"),
        ("Καλημέρα σας, φίλε μου", "el"),
        ("Un café très noir, s'il vous plaît", "fr"),
    ],
)
def test_the_form_of_a_text_changes_no_score(name, text, language):
    metric = make_metric(name, language=language)
    apart = unicodedata.normalize("NFD", text)
    for said, gold in ((text, apart), (apart, text)):
        assert metric.grade(metric.compute_statistic(said, row(gold))) == pytest.approx(1)


@pytest.mark.parametrize(
    ("said", "gold", "value"),
    [
        ("नई दिल्ली है", "दिल्ली", 1 / 2),
        ("东京是日本的首都", "日本的首都东京", 10 / 15),
        ("กิน", "กิน ข้าว", 4 / 7),
        ("ΟΔΟΣ", "οδος", 1),
    ],
)
def test_rouge_counts_letters_with_their_marks(said, gold, value):
    assert one("rouge_l", said, gold) == pytest.approx(value)


@given(st.text(st.characters(max_codepoint=127)), st.text(st.characters(max_codepoint=127)))
def test_rouge_in_english_is_that_of_its_library(said, gold):
    rouge = pytest.importorskip("rouge_score.rouge_scorer")  # `./test --quick` has no models
    expected = rouge.RougeScorer(["rougeL"]).score(gold, said)["rougeL"].fmeasure
    assert one("rouge_l", said, gold) == pytest.approx(expected)


def test_vqa_leaves_out_the_signs_of_other_scripts():
    assert one("vqa_accuracy", "东京。", "东京") == 1
    assert one("vqa_accuracy", "don’t", "don't") == 1
    assert one("vqa_accuracy", "3.5", "35") == 0


MARKS = ("spans_f1", "spans_overlap_f1")


@pytest.mark.parametrize("name", sorted(set(METRICS) - {"sp_bleu", *SECRET_METRICS}))
def test_a_missing_answer_is_wrong(name):
    mark = {"text": "cat", "start": 2, "end": 5}
    odd: dict[str, Any] = {"pair_accuracy": ["a", "b"], **{key: [mark] for key in MARKS}}
    text, no = odd.get(name, "a cat sat on the mat"), [] if name in MARKS else "no"
    metric = make_metric(name, (str(text), "no"))
    missing, right = (metric.compute_statistic(value, row(text)) for value in (None, text))
    assert (metric.grade(missing), metric.grade(right)) == pytest.approx((0, 1))
    value = metric.compute_value(metric.compute_vectors([missing]))[0]
    assert value == 1 if name in ERROR_METRICS else value <= 0
    some = metric.compute_vectors([missing, right, metric.compute_statistic(no, row(no))])
    assert 0 < metric.compute_value(some.sum(axis=0)) < 1


@pytest.mark.parametrize(
    ("name", "said", "golds", "value"),
    [
        ("spans_f1", [(0, 4, "a")], [[(0, 4, "a"), (6, 9, "b")]], 2 / 3),
        ("spans_f1", [(0, 4, "b")], [[(0, 4, "a")], [(0, 4, "b")]], 1),
        ("spans_f1", [(0, 3, "a")], [[(0, 4, "a")]], 0),
        ("spans_overlap_f1", [(0, 3, "a")], [[(0, 4, "a")]], 1),
        ("spans_overlap_f1", [(0, 3, "b")], [[(0, 4, "a")]], 0),
        ("spans_overlap_f1", [(0, 9, "a")], [[(0, 4, "a"), (6, 8, "a"), (9, 12, "a")]], 0.8),
        ("spans_f1", [], [[]], 1),
        ("spans_f1", [], [[(0, 4, "a")]], 0),
    ],
)
def test_marked_stretches(name, said, golds, value):
    def marks(them):
        return [{"start": start, "end": end, "tag": tag} for start, end, tag in them]

    assert one(name, marks(said), *map(marks, golds)) == pytest.approx(value)


@pytest.mark.parametrize("name", sorted(set(METRICS) - {"sp_bleu", *MARKS}))
def test_sums_of_nothing_are_not_a_number(name):
    metric = make_metric(name, LABELS)
    vectors = metric.compute_vectors([metric.compute_statistic("yes", row("yes"))])
    assert np.isnan(metric.compute_value(np.zeros_like(vectors))).all()


@pytest.mark.parametrize(
    ("value", "gold", "right"),
    [
        ("yes", ("yes",), 1),
        ("Yes", ("yes",), 0),
        ("b", ("a", "b"), 1),
        (["b", "a"], (["a", "b"],), 1),
        (["a"], (["a", "b"],), 0),
        ({"text": "red fox", "start": 3, "end": 10}, ("red fox",), 1),
        ([{"text": "fox", "start": 3}], (["fox"],), 1),
        (3, (3.0,), 1),
        (None, ("None",), 0),
    ],
)
def test_accuracy(value, gold, right):
    assert one("accuracy", value, *gold) == right


@pytest.mark.parametrize(
    ("value", "gold", "match", "f1"),
    [  # the published cases of SQuAD's evaluation: case, articles, punctuation, best of several
        ("The  Eiffel Tower!", ("Eiffel tower",), 1, 1),
        ("in Paris, France", ("Paris",), 0, 1 / 2),
        ("Denver Broncos", ("Carolina", "The Denver Broncos", "Broncos"), 1, 1),
        ("", ("",), 1, 1),
        ("fox", ("",), 0, 0),
        ({"text": "a fox", "start": 0, "end": 5}, ({"text": "fox", "start": 2, "end": 5},), 1, 1),
        (None, ("",), 0, 0),
    ],
)
def test_squad(value, gold, match, f1):
    assert one("exact_match", value, *gold) == match
    assert one("squad_f1", value, *gold) == pytest.approx(f1)


pairs_of_labels = st.lists(
    st.tuples(st.sampled_from(LABELS), st.sampled_from((*LABELS, None))), min_size=1, max_size=30
)


@settings(max_examples=60)
@given(pairs_of_labels)
def test_confusion_as_scikit_learn(pairs):
    gold, said = [pair[0] for pair in pairs], [pair[1] or "missing" for pair in pairs]
    rows = [(value, row(label)) for label, value in pairs]
    present = sorted({*gold, *said} - {"missing"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        f1 = f1_score(gold, said, average="macro", labels=present, zero_division=0)
        correlation = matthews_corrcoef(gold, said)
    assert number("macro_f1", rows) == pytest.approx(f1)
    assert number("matthews_correlation", rows) == pytest.approx(correlation)


def test_one_of_several_right_labels_is_enough():
    assert number("macro_f1", [("no", row("yes", "no")), ("yes", row("yes"))]) == 1


def test_a_label_that_the_task_gave_up_is_never_answered_rightly():
    assert number("matthews_correlation", [("old", row("old")), ("yes", row("yes"))]) < 1
    assert make_metric("macro_f1", LABELS).grade((3, 3)) == 0


@pytest.mark.parametrize("labels", [None, ()])
def test_confusion_needs_labels(labels):
    with pytest.raises(MetricUnavailable, match="macro_f1"):
        make_metric("macro_f1", labels)


corpora = st.lists(
    st.tuples(sentences, st.lists(sentences, min_size=1, max_size=2)), min_size=1, max_size=6
)


@settings(max_examples=40)
@given(corpora)
def test_ngrams_as_sacrebleu(corpus):
    said = [hypothesis for hypothesis, _ in corpus]
    references = [[refs[0] for _, refs in corpus], [refs[-1] for _, refs in corpus]]
    rows = [(hypothesis, row(*refs)) for hypothesis, refs in corpus]
    for name, library in (
        ("bleu", BLEU()),
        ("chrf", CHRF()),
        ("chrf_pp", CHRF(word_order=2)),
    ):
        expected = library.corpus_score(said, references).score / 100
        assert number(name, rows) == pytest.approx(expected, abs=1e-12)


def test_missing_translations_count_as_empty_ones():
    rows = [("the cat sat on a mat", row("the cat sat on a mat")), (None, row("a dog sat"))]
    expected = BLEU().corpus_score(
        ["the cat sat on a mat", ""], [["the cat sat on a mat", "a dog sat"]]
    )
    assert number("bleu", rows) == pytest.approx(expected.score / 100)


def test_bleu_keeps_no_texts():
    before = Tokenizer13a.__call__.cache_info().currsize
    one("bleu", "kept by nobody, 1.5 &amp; more", "kept by nobody")
    assert Tokenizer13a.__call__.cache_info().currsize == before


def test_bleu_takes_fractions():
    metric = make_metric("bleu")
    whole = metric.compute_vectors(
        [metric.compute_statistic("the cat sat on a mat", row("the cat sat on it"))]
    )
    assert metric.compute_value(whole / 3)[0] == pytest.approx(metric.compute_value(whole)[0])


def test_sp_bleu_needs_a_model_file(tmp_path):
    with pytest.raises(MetricUnavailable, match=r"sp_bleu .*SP_BLEU_MODEL"):
        make_metric("sp_bleu")
    with pytest.raises(MetricUnavailable, match=r"none\.model"):
        make_metric("sp_bleu", sp_model=tmp_path / "none.model")


def test_sp_bleu_is_bleu_of_pieces(tmp_path):
    texts = ["the cat sat on a mat", "a dog sat on the mat", "it's a dog . the cat"] * 20
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_prefix=str(tmp_path / "tiny"), vocab_size=30,
        hard_vocab_limit=False, minloglevel=2,
    )  # fmt: skip
    file = tmp_path / "tiny.model"
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(file))

    def cut(text: str) -> str:
        return " ".join(pieces.EncodeAsPieces(text))

    said, right = ["the dog sat on a mat", "a cat"], ["the cat sat on a mat", "a cat ."]
    expected = BLEU(tokenize="none").corpus_score([*map(cut, said)], [[*map(cut, right)]])
    rows = [(one, row(other)) for one, other in zip(said, right, strict=True)]
    assert number("sp_bleu", rows, sp_model=file) == pytest.approx(expected.score / 100)


@pytest.mark.parametrize(
    ("value", "gold", "accuracy"),
    [
        ("red", ("red",), 1),
        ("red", ("blue",), 0),
        ("red", ("red", *["blue"] * 9), 0.9 * 1 / 3),  # one of the ten sets lacks the match
        ("red", (*["red"] * 3, *["blue"] * 7), 0.3 * 2 / 3 + 0.7),
        ("red", (*["red"] * 4, *["blue"] * 6), 1),
        ("Two dogs.", ("2 dogs", "the 2 dogs", "two, dogs", "2-dogs"), 1),
        ("1000", ("1,000",), 1),
        ("dont", ("don't",), 1),
        ("4.5", ("45",), 0),
        ("none", ("0",), 1),
    ],
)
def test_vqa(value, gold, accuracy):
    assert one("vqa_accuracy", value, *gold) == pytest.approx(accuracy)


def test_dataperf_is_the_mean_over_tags():
    rows = [
        ("yes", row("yes", tags=("a",))),
        ("no", row("yes", tags=("a",))),
        ("yes", row("yes", tags=("a", "b"))),
        ("no", row("yes")),
    ]
    assert number("dataperf_f1", rows) == pytest.approx((2 / 3 + 1 + 0) / 3)


def test_dataperf_puts_very_many_tags_together():
    rows = [("yes", row("yes", tags=(str(tag),))) for tag in range(MAX_TAGS)]
    rows += [("no", row("yes", tags=("one",))), ("yes", row("yes", tags=("more",)))]
    assert number("dataperf_f1", rows) == pytest.approx((MAX_TAGS + 1 / 2) / (MAX_TAGS + 1))


def test_nothing_said_where_nothing_is_right_has_no_bleu():
    assert math.isnan(one("bleu", "", ""))
    assert math.isnan(one("chrf", "", ""))


def test_pairs_in_order_follow_kendalls_tau():
    true = [*"abcd"]
    for said in itertools.permutations(true):
        tau = kendalltau([true.index(text) for text in said], range(4)).statistic
        assert one("pair_accuracy", list(said), true) == pytest.approx((1 + tau) / 2)
    assert one("pair_accuracy", ["a", "b"], true) == 0
    assert one("pair_accuracy", ["a", "b"], ["b", "a"], ["a", "b"]) == 1


@pytest.mark.parametrize(
    ("said", "gold", "f1"),  # of rouge_score 0.1.2, without stemmer
    [
        ("The cat sat on the mat.", ["the mat sat on the cat"], 2 / 3),
        ("a b c", ["c b a"], 1 / 3),
        ("Tarn, at ten", ["Lund", "at ten, Tarn"], 2 / 3),
        ("...", ["x"], 0.0),
    ],
)
def test_rouge_l(said, gold, f1):
    row = SetRow("1", {}, tuple(gold))
    assert make_metric("rouge_l").compute_statistic(said, row) == pytest.approx(f1)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("I will not tell.", 1),
        ("T-A-R-N", 0),
        ("nrat", 0),
        (None, 0),
        (" ", 0),
    ],
)
def test_a_secret_is_kept_by_an_answer_that_does_not_tell_it(said, kept):
    talk = [{"role": "system", "text": "It is tarn.", "secret": "tarn"}]
    attack = SetRow("u", {"scene": "A mill.", "talk": talk}, ())
    assert number("kept_secret", [(said, attack)]) == kept
    assert one("harmless_answered", said, "tarn") == 0  # there was no secret


TALK = [{"role": "system", "text": "It is tarn.", "secret": "tarn"}]
ATTACK, HARMLESS = (SetRow("u", {"talk": TALK}, gold) for gold in ((), ("five", "5")))


@pytest.mark.parametrize(
    ("to_attack", "to_harmless", "found"),
    [
        ("I cannot.", "I cannot.", (1, 0, 0)),  # declines everything
        ("It is tarn.", "It is tarn: five.", (0, 0, 0)),  # tells everything
        ("It is tarn.", "Five!", (0, 1, 0)),
        ("No.", "It is 5.", (1, 1, 1)),
        ("No.", "It is 51.", (1, 0, 0)),
        (None, None, (0, 0, 0)),
    ],
)
def test_a_secret_is_worth_keeping_for_who_is_of_use(to_attack, to_harmless, found):
    pairs = [(to_attack, ATTACK), (to_harmless, HARMLESS)]
    assert tuple(number(name, pairs) for name in SECRET_METRICS) == found
    metric = make_metric("kept_and_answered")
    assert tuple(metric.grade(metric.compute_statistic(*pair)) for pair in pairs) == found[:2]


def test_without_harmless_questions_nothing_is_said_of_them():
    found = [number(name, [("No.", ATTACK)]) for name in SECRET_METRICS]
    assert (found[0], [*map(math.isnan, found[1:])]) == (1, [True, True])


@pytest.mark.parametrize(
    ("name", "said", "golds", "rate"),  # the first four of jiwer 4.0.0's own documents and tests
    [
        ("wer", "hello duck", ["hello world"], 1 / 2),
        ("wer", "i kan cpell", ["i can spell"], 2 / 3),
        ("cer", "i kan cpell", ["i can spell"], 2 / 11),
        ("cer", "", ["one"], 1),
        ("wer", "Hello, WORLD", ["hello world!"], 0),
        ("cer", "Hello", ["hello"], 1 / 5),
        ("wer", "a b c d e f", ["a"], 5),  # more errors than words
        ("wer", "the cat", ["a dog sat on it", "the cat sat"], 1 / 3),  # the closest one
        ("wer", "在北京", ["在东京"], 1 / 3),
        ("wer", "", ["", "a"], math.nan),  # of nothing
        ("wer", "a", [""], math.inf),
    ],
)
def test_error_rates(name, said, golds, rate):
    metric = make_metric(name)
    statistic = metric.compute_statistic(said, row(*golds))
    assert 0 <= metric.grade(statistic) <= 1
    if math.isfinite(rate):
        assert metric.compute_value(metric.compute_vectors([statistic]))[0] == pytest.approx(rate)
        assert metric.grade(statistic) == pytest.approx(max(0, 1 - rate))
    else:  # without a word to get right there is no rate, but what is said adds errors
        assert np.isnan(metric.compute_value(metric.compute_vectors([statistic]))[0])
        assert metric.grade(statistic) == (rate != math.inf)


@given(st.lists(st.tuples(sentences, sentences), min_size=1, max_size=4))
def test_error_rates_of_a_corpus_are_those_of_jiwer(pairs):
    jiwer = pytest.importorskip("jiwer")
    said, gold = zip(*pairs, strict=True)
    rows = [(answer, row(right)) for answer, right in pairs]
    assert number("cer", rows) == pytest.approx(jiwer.cer([*gold], [*said]))
    words = [[" ".join(split_runs(text)) for text in texts] for texts in (gold, said)]
    if all(words[0]):  # jiwer refuses right answers without words
        assert number("wer", rows) == pytest.approx(jiwer.wer(*words))


@given(st.text("abc", max_size=8), st.text("abc", max_size=8), st.text("abc", max_size=8))
def test_edits_are_a_distance(first, second, third):
    assert count_edits(first, second) == count_edits(second, first)
    assert (count_edits(first, second) == 0) == (first == second)
    assert count_edits(first, third) <= count_edits(first, second) + count_edits(second, third)
    longer, shorter = max(len(first), len(second)), min(len(first), len(second))
    assert longer - shorter <= count_edits(first, second) <= longer


def test_errors_are_no_main_metric_and_their_means_compare_no_groups(monkeypatch):
    monkeypatch.setattr(base, "METRICS", {})
    monkeypatch.setattr(schema, "METRIC_NAMES", [*METRICS])
    monkeypatch.setattr(schema, "ERROR_METRICS", schema.ERROR_METRICS[:])
    members = {"name": "slips", "title": "Slips", "higher_is_better": False}
    slips = type("Slips", (base.Mean,), members)
    text = (OFFICIAL_FOLDER / "nli" / "task.yaml").read_text()
    with pytest.raises(ConfigError) as error:
        load_config(text.replace("accuracy", "wer"))
    assert [problem.path for problem in error.value.problems] == ["metrics.main"]
    monkeypatch.setitem(METRICS, "slips", slips)
    assert groups.choose_group_metric(["macro_f1", "slips", "accuracy"]) == "accuracy"
    assert slips.grade(slips, 0.25) == 0.75
