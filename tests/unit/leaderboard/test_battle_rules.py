"""The pure rules of battles: who names itself, personal data, style, which pair is drawn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.arena.battles.naming import FAMILIES, is_self_named
from leaderboard.arena.battles.pairing import UNIFORM_SHARE, compute_pair_chances
from leaderboard.arena.battles.personal import find_personal_data
from leaderboard.arena.ranking import Votes
from leaderboard.arena.style import COVARIATES, compute_log_ratios, measure_style
from tests.support.arenas import simulated


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        ("Sure! As gpt-4o-mini I can do that.", ["gpt-4o-mini"]),
        ("GPT 4o mini at your service", ["gpt-4o-mini"]),
        ("I was made by OpenAI.", ["gpt-4o-mini"]),
        ("ChatGPT cannot do that.", ["gpt-4o-mini"]),
        ("Hello, I am Claude!", ["m1"]),
        ("I'm claude.", ["m1"]),
        ("I’m a Llama model.", ["m1"]),
        ("My name is Bob.", ["m1"]),
        ("you can call me Zed", ["m1"]),
        ("I was trained by Zorb Labs", ["m1"]),
        ("SmolLM2 here.", ["smollm2-135m-instruct"]),
        ("Bonjour de Mistral", ["mistral-small"]),
    ],
)
def test_answers_that_name_their_model(answer, names):
    assert is_self_named(["Nothing here.", answer], names)


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        ("I am happy to help.", ["gpt-4o-mini"]),
        ("I am a language model.", ["m1"]),
        ("I'm not sure. Paris is in France.", ["m1"]),
        ("Claude Monet painted it.", ["gpt-4o-mini"]),  # of another family, and about somebody
        ("The egyptian pharaohs", ["gpt-4o-mini"]),
        ("The name is wrong; call the office.", ["m1"]),
        ("", ["m1"]),
        ("m 1 is no word that stands for a model", ["m12"]),
    ],
)
def test_answers_that_name_nobody(answer, names):
    assert not is_self_named([answer], names)


@given(st.sampled_from([word for family in FAMILIES for word in family if len(word) > 2]))
def test_each_family_is_known_by_its_words(word):
    assert is_self_named([f"Ask {word.title()}, please"], [f"{word.replace(' ', '-')}-9b"])
    assert is_self_named([f"I am {word}"], ["m1"])


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("mail jo.doe+x@mail.example.org now", ["mail"]),
        ("call +49 30 901820", ["phone"]),
        ("call (020) 7946-0958", ["phone"]),
        ("call 030/901820-11", ["phone"]),
        ("415-555-0132", ["phone"]),
        ("4111 1111 1111 1111", ["card"]),
        ("4111111111111111", ["card"]),
        ("from 192.0.2.17", ["ip"]),
        ("from 2001:db8::7", ["ip"]),
        ("jo@example.org from 192.0.2.17", ["mail", "ip"]),
    ],
)
def test_what_may_be_personal_is_found(text, kinds):
    assert find_personal_data(["fine", text]) == kinds


@pytest.mark.parametrize(
    "text",
    [
        "in 2024-05-06 and 06.05.2024, from 1914-1918 and 1939 – 1945",
        "3.14159265358979 or 1000000 people, 1,000,000 of them",
        "at 10:30:00, 12:45, version 1.2.3",
        "4111111111111112 is no card",
        "a@b, @handle, std::vector, ::",
        "def f(x): return x[1:2]",
        "localhost is 127.0.0.1",
    ],
)
def test_plain_text_holds_nothing_personal(text):
    assert find_personal_data([text]) == []


def test_style_counts_marks_outside_code():
    marks = "# Title\n\n- one\n- two\n2. three\n\n**bold** and __too__\n\n"
    text = f"{marks}```\n# no\n- no\n**no**\n```\n"
    assert measure_style([text, "## More"]) == {
        "length": len(text) + 7,
        "headings": 2,
        "lists": 3,
        "bold": 2,
    }
    assert measure_style(["#hashtag, 3*4*5, snake__case__name, 1.5"])["bold"] == 0
    assert measure_style([]) == dict.fromkeys(COVARIATES, 0)


@given(st.lists(st.integers(0, 10_000), min_size=8, max_size=8))
def test_the_difference_turns_with_the_sides(counts):
    style = {name: counts[2 * n : 2 * n + 2] for n, name in enumerate(COVARIATES)}
    turned = {name: pair[::-1] for name, pair in style.items()}
    assert compute_log_ratios(style) == pytest.approx([-one for one in compute_log_ratios(turned)])


def none_yet():
    return Votes(*(np.empty(0, dtype=np.intp) for _ in range(4)))


@given(st.integers(2, 8), st.integers(0, 1000), st.integers(0, 60), st.data())
def test_chances_of_pairs(count, seed, votes, data):
    """They sum to 1, none falls below its uniform share, whatever was voted."""
    made = simulated(seed, [0.0] * count, voters=1, each=votes) if votes else none_yet()
    live = np.array(
        sorted(data.draw(st.sets(st.integers(0, count - 1), min_size=2))), dtype=np.intp
    )
    pairs, chances = compute_pair_chances(count, made, live)
    assert len(pairs) == len(live) * (len(live) - 1) // 2
    assert set(pairs.ravel()) == set(live)
    assert chances.sum() == pytest.approx(1)
    assert chances.min() >= UNIFORM_SHARE / len(pairs) - 1e-12


def test_at_first_all_pairs_are_alike():
    _, chances = compute_pair_chances(4, none_yet(), np.arange(4))
    assert chances == pytest.approx(np.full(6, 1 / 6))


def test_what_is_known_least_is_drawn_most():
    """After many equal battles of 0 and 1, a pair with 2 is likelier; a clear pair tells little."""
    left = np.zeros(400, dtype=np.intp)
    votes = Votes(left, left + 1, np.arange(400) % 2, left)
    pairs, chances = compute_pair_chances(3, votes, np.arange(3))
    by_pair = dict(zip(map(tuple, pairs.tolist()), chances, strict=True))
    assert by_pair[0, 1] < by_pair[0, 2] == pytest.approx(by_pair[1, 2])
    both, third = np.repeat([0, 1], 40), np.full(80, 2)
    none = np.zeros(80, dtype=np.intp)
    beaten = [
        np.append(old, new) for old, new in zip(votes[:4], (both, third, none, none), strict=True)
    ]
    _, later = compute_pair_chances(3, Votes(*beaten), np.arange(3))
    assert later[0] > chances[0]
