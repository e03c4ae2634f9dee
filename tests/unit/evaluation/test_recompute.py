"""Scores that `dynabench verify` recomputes: those of the site, from lines of answers."""

import orjson
import pytest

from evaluation.contract import Answer, SetRow
from evaluation.scoring import recompute
from evaluation.scoring.bootstrap import compute_scores
from tasks.config.loading import load_config
from tests.unit.tasks.config_texts import MINIMAL

ROWS = [SetRow(f"u{n}", {"text": f"Text {n}."}, (str(n % 3),), {}) for n in range(2400)]
ALL_METRICS = "{main: exact_match, also: [squad_f1, bleu]}"
CONFIG = load_config(MINIMAL.replace("{main: bleu}", ALL_METRICS))


def lines_of(models):
    """The lines of a file of answers. models: the answers by the model's id."""
    for number, (model, answers) in enumerate(models.items()):
        yield orjson.dumps({"model": model, "seed": number, "answers": len(answers)}) + b"\n"
        for uid, answer in answers:
            yield orjson.dumps({"id": uid, "answer": answer}) + b"\n"


def answers_of(step):
    return [(row.uid, None if n % 50 == 0 else str(n % step)) for n, row in enumerate(ROWS)]


@pytest.mark.parametrize("kept_bytes", [0, 3000 * recompute.ENTRY_BYTES, recompute.MAX_KEPT_BYTES])
@pytest.mark.parametrize("with_intervals", [False, True])
def test_scores_are_those_of_the_site(monkeypatch, kept_bytes, with_intervals):
    """Whatever is kept of the lines, of models with equal and with other answers."""
    monkeypatch.setattr(recompute, "MAX_KEPT_BYTES", kept_bytes)
    models = {"a": answers_of(3), "b": answers_of(4), "c": answers_of(3)}
    found = list(
        recompute.recompute_scores(CONFIG, ROWS, lines_of(models), with_intervals=with_intervals)
    )
    assert [one.model for one in found] == list(models)
    for seed, one in enumerate(found):
        answers = [None if said is None else Answer(said) for _, said in models[one.model]]
        numbers = compute_scores(
            zip(ROWS, answers, strict=True),
            metrics=CONFIG.metrics.computed_names, labels=None, slices=(), seed=seed,
            draws=None if with_intervals else 1,
        )  # fmt: skip

        def ends(each):
            # That of BLEU needs resampling.
            shows = with_intervals or each.metric != "bleu"
            return (each.low, each.high) if shows else (None, None)

        assert one.scores == {each.metric: (each.value, *ends(each)) for each in numbers}
    assert found[0].scores["exact_match"][0] > 0.9


@pytest.mark.parametrize("change", ["missing", "added", "order", "no JSON"])
def test_other_answers_are_named_and_the_next_model_is_read(change):
    wrong = answers_of(3)
    if change == "missing":
        wrong.pop()
    elif change == "added":
        wrong += [("u9999", "1"), ("u10000", "1")]
    else:
        wrong[5:7] = reversed(wrong[5:7])
    lines = list(lines_of({"a": answers_of(3), "b": wrong, "c": answers_of(3)}))
    if change == "no JSON":
        lines[len(ROWS) + 4] = b"{\n"
    a, b, c = recompute.recompute_scores(CONFIG, ROWS, lines)
    assert (a.error, b.scores, c.error) == ("", {}, "")
    assert b.error
    assert a.scores == c.scores
