"""The posterior at a vote is that of the fitted model, and needs no numpy."""

import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from validation.consensus.dawid_skene.fitting import _VoteTable, fit_dawid_skene
from validation.consensus.dawid_skene.posterior import FittedModel
from validation.rates.agreement import encode_votes

LABELS = ("neg", "neu", "pos")
ROWS = st.lists(
    st.tuples(st.integers(0, 12), st.integers(1, 5), st.sampled_from(LABELS)), min_size=1
)


def fitted(votes):
    """The model of a batch as it is stored, and the batch's posteriors at its parameters.

    Those that the fit returns are one step of EM earlier.
    """
    found = fit_dawid_skene(votes)
    matrices = dict(zip(map(str, found.validators), found.confusion.tolist(), strict=True))
    model = FittedModel(
        found.labels, found.prior.tolist(), found.crowd.tolist(), matrices, len(votes.item)
    )
    return model, _VoteTable.from_votes(votes).estimate_posterior(
        found.prior, found.confusion, len(votes.items)
    )


@settings(deadline=None)  # the first example imports numpy
@given(ROWS)
def test_one_posterior_is_the_batchs_at_the_same_parameters(rows):
    votes = encode_votes(rows)
    model, posteriors = fitted(votes)
    for item, expected in zip(votes.items, posteriors.tolist(), strict=True):
        own = model.compute_posterior((who, label) for one, who, label in rows if one == item)
        assert sum(own.values()) == pytest.approx(1)
        assert list(own.values()) == pytest.approx(expected, abs=1e-9)


def test_by_hand():
    model = FittedModel(
        ["a", "b"], [0.5, 0.5], [[0.6, 0.4], [0.4, 0.6]], {"7": [[0.9, 0.1], [0.2, 0.8]]}, 9
    )
    assert model.compute_posterior([(7, "a")]) == pytest.approx({"a": 0.9 / 1.1, "b": 0.2 / 1.1})
    assert model.compute_posterior([(8, "a")]) == pytest.approx({"a": 0.6, "b": 0.4})
    assert model.compute_posterior([(None, "a")]) == model.compute_posterior([(8, "a")])
    both = model.compute_posterior([(7, "a"), (8, "b")])
    assert both == pytest.approx({"a": 0.36 / 0.48, "b": 0.12 / 0.48})


def test_what_the_model_does_not_know_says_nothing():
    model = FittedModel(["a"], [1.0], [[1.0]], {}, 1)
    assert model.compute_posterior([]) == model.compute_posterior([(1, "new"), (2, "")]) == {}


def test_a_probability_of_zero_is_no_error():
    model = FittedModel(["a", "b"], [1.0, 0.0], [[1.0, 0.0], [0.0, 1.0]], {}, 1)
    assert sum(model.compute_posterior([(1, "a"), (2, "b")]).values()) == pytest.approx(1)


@pytest.mark.data
def test_dynasents_posteriors_are_those_of_the_batch(data):
    text = gzip.decompress((data / "dynasent-r1-dev.jsonl.gz").read_bytes())
    rows = [json.loads(line) for line in text.splitlines()]
    by_item = {r["uid"]: [(v["worker"], v["label"]) for v in r["validations"]] for r in rows}
    votes = encode_votes((uid, *vote) for uid, cast in by_item.items() for vote in cast)
    model, posteriors = fitted(votes)
    assert len(votes.items) > 3000
    for uid, expected in zip(votes.items, posteriors.tolist(), strict=True):
        own = model.compute_posterior(by_item[uid])
        assert list(own.values()) == pytest.approx(expected, abs=1e-9)
