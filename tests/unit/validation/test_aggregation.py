"""Dawid and Skene's model: their own example, a slow second implementation, and recovery."""

import gzip
import json
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from validation.consensus.dawid_skene.fitting import fit_dawid_skene
from validation.rates.agreement import encode_votes

# Dawid and Skene 1979, table 1: 45 patients, five anaesthetists, of whom the first saw each patient
# three times; seven votes a patient in that order.
PATIENTS = (
    "1111111 3334343 1122122 2223121 2223222 2223322 1222111 3333433 2222223 "
    "2322223 4444444 2223343 1111111 2223212 1211111 1112111 1111111 1111111 "
    "2222221 2221322 2222222 2222221 2223222 2212222 1111111 1111111 2322222 "
    "1111111 1111111 1121121 1111111 3333233 1111111 2222222 2223232 4334343 "
    "2212232 2323233 3333432 1111111 1111111 1212111 2322222 1211111 2222222"
)
OBSERVERS = (1, 1, 1, 2, 3, 4, 5)


def patients():
    return [
        (patient, observer, label)
        for patient, labels in enumerate(PATIENTS.split())
        for observer, label in zip(OBSERVERS, labels, strict=True)
    ]


def slow_em(votes, steps):
    """Maximum likelihood by the equations of the paper, with dictionaries and products."""
    labels = sorted({label for _, _, label in votes})
    by_item = defaultdict(list)
    for item, person, label in votes:
        by_item[item].append((person, label))
    belief = {
        item: {t: sum(x == t for _, x in said) / len(said) for t in labels}
        for item, said in by_item.items()
    }
    for _ in range(steps):
        prior = {t: sum(b[t] for b in belief.values()) / len(belief) for t in labels}
        weight = defaultdict(float)
        for item, person, label in votes:
            for t in labels:
                weight[person, t, label] += belief[item][t]
                weight[person, t] += belief[item][t]
        for item, said in by_item.items():
            joint = dict(prior)
            for person, label in said:
                for t in labels:
                    joint[t] *= weight[person, t, label] / weight[person, t] if joint[t] else 0
            belief[item] = {t: joint[t] / sum(joint.values()) for t in labels}
    return belief


def test_the_published_example():
    """The class shares 0.40, 0.42, 0.11, 0.07 of table 2 and the slow implementation."""
    found = fit_dawid_skene(encode_votes(patients()), pseudo_votes=0)
    assert found.prior.round(2).tolist() == [0.40, 0.42, 0.11, 0.07]
    expected = slow_em(patients(), found.iterations)
    for row, item in enumerate(found.items):
        assert found.get_posterior_of(row) == pytest.approx(expected[item], abs=1e-9)
    assert found.confusion.sum(axis=2) == pytest.approx(np.ones((5, 4)))


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(st.integers(0, 8), st.sampled_from(["p", "q", None]), st.sampled_from("ABC")),
        min_size=1,
        max_size=30,
    ),
    st.floats(0, 10),
)
def test_probabilities_sum_to_one(votes, pseudo_votes):
    coded = encode_votes(votes)
    found = fit_dawid_skene(coded, pseudo_votes=pseudo_votes, max_iterations=30)
    assert found.posterior.shape == (len(coded.items), len(coded.labels))
    assert found.posterior.sum(axis=1) == pytest.approx(np.ones(len(coded.items)))
    assert found.prior.sum() == pytest.approx(1)
    assert found.confusion.shape[0] == len(coded.validators)
    assert np.all((found.reliability >= 0) & (found.reliability <= 1 + 1e-9))
    again = fit_dawid_skene(coded, pseudo_votes=pseudo_votes, max_iterations=30)
    assert np.array_equal(found.posterior, again.posterior)


def crowd(items, accuracies, seed=0, votes=3):
    """Votes of validators who are right as often as said; and the true labels."""
    draw = np.random.default_rng(seed)
    truth = draw.integers(0, 3, items)
    rows = []
    for item in range(items):
        for person in draw.choice(len(accuracies), votes, replace=False):
            right = draw.random() < accuracies[person]
            label = truth[item] if right else (truth[item] + draw.integers(1, 3)) % 3
            rows.append((item, int(person), "ABC"[label]))
    return rows, truth


def test_a_crowd_is_known_again_and_beats_the_majority():
    accuracies = [0.95] * 4 + [0.4] * 6
    rows, truth = crowd(2000, accuracies, votes=5)
    votes = encode_votes(rows)
    found = fit_dawid_skene(votes)
    assert votes.labels == ["A", "B", "C"]
    estimated = dict(zip(found.validators, found.reliability, strict=True))
    for person, accuracy in enumerate(accuracies):
        assert estimated[person] == pytest.approx(accuracy, abs=0.05)
    order = np.array(found.items)
    right = np.mean(found.posterior.argmax(axis=1) == truth[order])
    majority = np.mean(votes.build_table().argmax(axis=1) == truth[order])
    assert right > majority + 0.05
    sure = found.posterior.max(axis=1)
    assert sure.mean() == pytest.approx(right, abs=0.02)
    assert found.warnings == ()


def test_unknown_people_count_as_the_crowd_does():
    """Nobody is known: each vote weighs alike, so two against one win."""
    rows = [(item, None, label) for item in range(40) for label in ("AAB", "BBA")[item % 2]]
    found = fit_dawid_skene(encode_votes(rows))
    best = [found.labels[k] for k in found.posterior.argmax(axis=1)]
    assert best == ["A", "B"] * 20
    assert found.confusion.shape == (0, 2, 2)
    assert found.reliability.shape == (0,)


def test_too_little_to_learn_from_is_said():
    found = fit_dawid_skene(encode_votes([(1, "p", "A"), (1, "q", "B"), (2, "p", "A")]))
    assert "fewer than 3 votes an example" in found.warnings[0]
    assert "fewer than 10 votes a validator" in found.warnings[1]
    stopped = fit_dawid_skene(encode_votes(patients()), max_iterations=1)
    assert "still moved" in stopped.warnings[-1]


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "least"),
    [("dynasent-r1-dev", 0.995), ("dynasent-sst-dev", 0.96), ("anli-dev-sample", 0.995)],
)
def test_it_agrees_with_what_the_sources_released(data, name, least):
    text = gzip.decompress((data / f"{name}.jsonl.gz").read_bytes())
    rows = [json.loads(line) for line in text.splitlines()]
    votes = [(r["uid"], v["worker"], v["label"]) for r in rows for v in r["validations"]]
    found = fit_dawid_skene(encode_votes(votes))
    gold = {row["uid"]: row["metadata"]["gold_label"] for row in rows}
    best = [found.labels[k] for k in found.posterior.argmax(axis=1)]
    same = [
        b == gold[item] for item, b in zip(found.items, best, strict=True) if gold[item] is not None
    ]
    assert np.mean(same) >= least
