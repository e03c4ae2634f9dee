"""One evaluation: what the model sees, what its answers become."""

import gzip
import json
from collections import Counter

import pytest

from evaluation.contract import Answer, Ending, Outcome, SetRow, Usage
from evaluation.isolation.inference import evaluate as evaluating
from evaluation.isolation.inference.evaluate import (
    Attempt,
    Question,
    evaluate_set,
    evaluate_suite,
    read_predictions,
    score_file,
)
from evaluation.isolation.inference.exchange import SentExamples
from evaluation.isolation.sandbox.limits import Limits
from evaluation.scoring.robustness import NO_VARIANTS_NOTE
from tasks.config.loading import load_config
from tasks.services import OFFICIAL_FOLDER
from tests.support.evaluations import LABELS, ScriptedRunner, nli_rows

NLI = load_config((OFFICIAL_FOLDER / "nli" / "task.yaml").read_text())


def ignore(progress, message):
    """Nobody wants to know."""


def attempt(runner, folder, tell=ignore):
    return Attempt(None, runner, Limits(), tell, folder)


def found(numbers):
    return {(n.metric, n.slice): n.value for n in numbers}


@pytest.fixture
def question():
    rows = nli_rows(9)
    return Question(NLI, lambda: iter(rows))


def run(question, runner, folder, tell=ignore):
    return evaluate_set(question, attempt(runner, folder, tell))


def test_answers_are_scored_over_all_and_by_slice(question, tmp_path):
    outcome = run(question, ScriptedRunner(lambda inputs: "neutral"), tmp_path)
    numbers = found(outcome.numbers)
    assert (outcome.runner, outcome.ending.outcome) == ("scripted", Outcome.OK)
    assert numbers["accuracy", ""] == pytest.approx(1 / 3)
    assert numbers["accuracy", "tag=odd"] == pytest.approx(2 / 4)
    assert numbers["macro_f1", ""] == pytest.approx(1 / 6)


def test_predictions_are_kept_in_the_order_of_the_set(question, tmp_path):
    last = {f"Open {n}.": LABELS[n % 2] for n in range(9)}
    outcome = run(question, ScriptedRunner(lambda inputs: last[inputs["hypothesis"]]), tmp_path)
    with gzip.open(outcome.predictions) as lines:
        kept = [json.loads(line) for line in lines]
    assert kept == [{"uid": f"u{n}", "answer": LABELS[n % 2], "prob": None} for n in range(9)]
    with gzip.open(outcome.predictions) as lines:
        assert list(read_predictions(lines)) == [Answer(LABELS[n % 2]) for n in range(9)]


def test_a_model_sees_its_fields_and_nothing_else(tmp_path):
    secret = [
        SetRow(row.uid, {**row.inputs, "label": row.gold[0], "note": "hard"}, row.gold, row.slices)
        for row in nli_rows(50)
    ]
    question, runner = Question(NLI, lambda: iter(secret)), ScriptedRunner()
    for _ in range(2):
        run(question, runner, tmp_path)
    first, second = runner.sent
    for line in first:
        assert line.keys() == {"id", "inputs"}
        assert line["inputs"].keys() == {"premise", "hypothesis"}
    texts = [[line["inputs"]["hypothesis"] for line in lines] for lines in (first, second)]
    in_order = [row.inputs["hypothesis"] for row in secret]
    assert Counter(texts[0]) == Counter(in_order)
    assert in_order not in texts
    assert texts[0] != texts[1]  # one chance in 50!
    ids = [[line["id"] for line in lines] for lines in (first, second)]
    assert len({*ids[0], *ids[1]}) == 100
    assert sorted(ids[0]) != ids[0]
    assert [path.name for path in tmp_path.iterdir() if "inputs" in path.name] == ["inputs.jsonl"]


def test_few_missing_answers_are_wrong_and_many_are_refused(tmp_path):
    rows = nli_rows(300)
    question = Question(NLI, lambda: iter(rows))
    wanted = {row.inputs["premise"]: row.gold[0] for row in rows}

    class Silent(ScriptedRunner):
        def run(self, model, inputs, limits, *, take, beat):
            lines = inputs.read_text().splitlines()[: -self.silent]
            inputs.write_text("\n".join(lines))
            return super().run(model, inputs, limits, take=take, beat=beat)

    runner = Silent(lambda inputs: wanted[inputs["premise"]])
    runner.silent = 2
    outcome = run(question, runner, tmp_path)
    assert found(outcome.numbers)["accuracy", ""] == pytest.approx(298 / 300)
    (warning,) = outcome.ending.warnings
    assert warning.startswith("2 of 300 ")
    runner.silent = 3
    outcome = run(question, runner, tmp_path)
    assert (outcome.ending.outcome, outcome.numbers) == (Outcome.INVALID_OUTPUT, ())
    assert "3 of 300" in outcome.ending.sentence


def test_how_the_model_ended_is_passed_on_and_nothing_is_scored(question, tmp_path):
    ending = Ending(Outcome.OOM, Usage(1.0), "Too big.", log="I saw: Person 3 opened the shop.\nok")
    outcome = run(question, ScriptedRunner(ending=ending), tmp_path)
    assert (outcome.ending.outcome, outcome.numbers, outcome.predictions) == (Outcome.OOM, (), None)
    assert outcome.ending.log.splitlines()[1:] == ["ok"]
    assert "Person" not in outcome.ending.log


def test_what_the_heartbeat_raises_ends_it(question, tmp_path):
    def tell(progress, message):
        if "3 of 9" in message:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(question, ScriptedRunner(), tmp_path, tell)


def test_progress_is_told(question, tmp_path):
    told = []
    run(question, ScriptedRunner(), tmp_path, lambda *said: told.append(said))
    assert [progress for progress, _ in told] == sorted(progress for progress, _ in told)
    assert "4 of 9 answers" in [message for _, message in told]


def test_a_predictions_file_is_scored_by_its_uids(question, tmp_path):
    lines = [
        json.dumps({"id": f"u{n}", "output": {"label": LABELS[n % 3]}, "prob": None}) + "\n"
        for n in reversed(range(9))
    ]
    outcome = score_file(question, [line.encode() for line in lines], ignore, tmp_path)
    assert outcome.runner == "file"
    assert found(outcome.numbers)["accuracy", ""] == 1
    outcome = score_file(question, [lines[0].encode(), b"{}"], ignore, tmp_path)
    assert outcome.ending.outcome == Outcome.INVALID_OUTPUT
    assert outcome.ending.sentence.startswith("Line 2: ")


def test_texts_sent_are_found_in_lists_too(tmp_path):
    sent = SentExamples(tmp_path / "inputs.jsonl")
    sent.write([{"chat": [{"text": "Hello.", "n": 3}], "more": "Bye."}], ["chat", "more"], ignore)
    assert list(sent.iterate_texts()) == ["Hello.", "Bye."]


def test_a_secret_is_sent_in_words_alone(tmp_path):
    sent = SentExamples(tmp_path / "inputs.jsonl")
    told = {"role": "system", "text": "The word is tarn."}
    sent.write([{"talk": [{**told, "secret": "tarn"}]}], ["talk"], ignore)
    assert json.loads(sent.path.read_bytes())["inputs"] == {"talk": [told]}


def test_perturbed_twins_are_asked_and_compared_with_their_bases(question, tmp_path):
    """By a model that is right unless something was changed."""
    wanted = {tuple(row.inputs.values()): row.gold[0] for row in question.rows()}

    def answer(inputs):
        return wanted.get((inputs["premise"], inputs["hypothesis"]), "neutral")

    bases = list(question.rows())
    plain = [Answer(row.gold[0]) for row in bases]
    runner = ScriptedRunner(answer)
    outcome = evaluate_suite(question, "robustness", lambda: iter(plain), attempt(runner, tmp_path))
    numbers = {n.metric: n for n in outcome.numbers if not n.kind}
    assert numbers["accuracy_before"].value == 1
    assert numbers["accuracy_after"].value == pytest.approx(1 / 3)
    assert numbers["consistency"].value == pytest.approx(1 / 3)
    assert numbers["worst_case"].value == pytest.approx(1 / 3)
    assert numbers["drop"].value == pytest.approx(2 / 3)
    assert {n.kind for n in outcome.numbers} > {"", "upper_case"}
    (sent,) = runner.sent
    with gzip.open(outcome.predictions) as lines:
        kept = [json.loads(line) for line in lines]
    assert len(kept) == len(sent) > len(bases)
    assert kept[0]["uid"] == "u0"
    assert kept[0]["kind"]
    assert kept[0]["answer"] == "neutral"
    assert sorted(line["uid"] for line in kept) == [line["uid"] for line in kept]


def test_owners_terms_for_groups_are_used(tmp_path):
    text = (OFFICIAL_FOLDER / "nli" / "task.yaml").read_text()
    config = load_config(
        text.replace("deltas: [", "group_terms: [[potters, weavers]], deltas: [", 1)
    )
    texts = {"premise": "the potters sing", "hypothesis": "potters dance"}
    question = Question(config, lambda: iter([SetRow("u", texts, ("neutral",))]))
    runner, plain = ScriptedRunner(), [Answer("neutral")]
    evaluate_suite(question, "fairness", lambda: iter(plain), attempt(runner, tmp_path))
    sent = [line["inputs"] for line in runner.sent[0]]
    assert sent == [{"premise": "the weavers sing", "hypothesis": "weavers dance"}]


def test_of_a_large_set_some_are_perturbed(question, tmp_path, monkeypatch):
    monkeypatch.setattr(evaluating, "MAX_PERTURBED_EXAMPLES", 4)
    outcome = evaluate_suite(
        question,
        "robustness",
        lambda: (Answer(row.gold[0]) for row in question.rows()),
        attempt(ScriptedRunner(), tmp_path),
    )
    before = next(n for n in outcome.numbers if n.metric == "accuracy_before" and not n.kind)
    assert (before.value, before.n) == (1, 3)
    assert outcome.ending.warnings == ("Of 9 examples one in 3 was perturbed.",)
    with gzip.open(outcome.predictions) as lines:
        assert {json.loads(line)["uid"] for line in lines} == {"u0", "u3", "u6"}


def test_a_set_without_twins_asks_nothing_and_says_so(tmp_path):
    rows = [SetRow("a", {"premise": "1", "hypothesis": "2"}, ("neutral",))]
    runner = ScriptedRunner()
    outcome = evaluate_suite(
        Question(NLI, lambda: iter(rows)),
        "fairness",
        lambda: iter([Answer("neutral")]),
        attempt(runner, tmp_path),
    )
    assert runner.sent == []
    assert {n.note for n in outcome.numbers if n.note} == {NO_VARIANTS_NOTE}
    assert {n.value for n in outcome.numbers} == {None}
