"""The language model's kind: the archive that it fills, what it asks for, and foreign texts."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynabench.adversaries.kinds.archive import Archive, clean_reply
from dynabench.adversaries.kinds.base import (
    KINDS,
    PROMPT_FIELDS,
    Probe,
    ProbeAnswer,
    Prompt,
    SettingError,
)
from dynabench.adversaries.kinds.language import is_foreign

LABELS = ("good", "bad")
RIGHT = ProbeAnswer(False, 0.9)


def settings_of(**chosen):
    return {one.name: one.default for one in KINDS["language_model"].settings} | chosen


def play(seed=0, *, write, judge=lambda text: False, context=None, **chosen):
    """Return the steps of all attacks: `write` answers prompts, `judge` says what fools."""
    steps = []
    for attack in KINDS["language_model"].plan_attacks(settings_of(**chosen), LABELS, Random(seed)):
        search, answer = attack.begin(context or {}), None
        while True:
            try:
                step = next(search) if answer is None else search.send(answer)
            except StopIteration:
                break
            steps.append(step)
            if isinstance(step, Prompt):
                answer = RIGHT._replace(text=write(len(steps)))
            else:
                answer = RIGHT._replace(is_fooled=judge(step.text))
    return steps


def number_words(number):
    """A text that shares no word with those of other numbers."""
    return f"word{number} place{number} thing{number}"


@given(st.integers(0, 99), st.integers(1, 3), st.integers(0, 3), st.integers(1, 30))
def test_each_cell_is_visited_as_often_as_others(seed, strategies, topics, visits):
    archive = Archive(
        [f"s{n}" for n in range(strategies)], [*map(str, range(topics))], Random(seed)
    )
    counts = Counter(archive.choose_cell() for _ in range(visits))
    cell_count = strategies * max(1, topics)
    assert len(counts) == min(visits, cell_count)
    assert max(counts.values()) - min(counts.values()) <= 1


def test_cells_with_a_find_come_after_empty_ones():
    archive = Archive(["a", "b"], [], Random(0))
    first = archive.choose_cell()
    archive.add_find("good", first, "Found.")
    others = {archive.choose_cell() for _ in range(5)}
    assert others == {cell for cell in others if cell != first}


def test_examples_of_the_same_label_and_strategy_come_first():
    archive = Archive(["a", "b"], [], Random(0))
    one, other = archive.choose_cell(), archive.choose_cell()
    for label, cell in (("bad", one), ("good", other), ("good", one), ("bad", other)):
        archive.add_find(label, cell, f"{label} {cell}")
    shown = archive.list_examples("good", one)
    assert shown == [f"good: good {one}", f"good: good {other}", f"bad: bad {one}"]


def test_what_is_nearly_the_same_is_a_copy():
    archive = Archive(["a"], [], Random(0))
    archive.remember_text("The tour took us to five small harbours.")
    assert archive.is_copy("the tour took us to five small harbours")
    assert archive.is_copy("The tour took us to six small harbours") is False
    assert archive.is_copy("Nobody came.") is False


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ('"We loved it."', "We loved it."),
        ("```text\nWe loved\nit.\n```", "We loved it."),
        ("  We  loved “it”.  ", "We loved “it”."),
        ('""', ""),
        ("", ""),
    ],
)
def test_a_reply_becomes_one_line(reply, text):
    assert clean_reply(reply) == text


def test_labels_and_cells_take_turns():
    steps = play(write=number_words, proposals=4, turns=1, strategies="a\nb", topics="x\ny")
    prompts = [step for step in steps if isinstance(step, Prompt)]
    assert all(tuple(prompt.fields) == PROMPT_FIELDS["text"] for prompt in prompts)
    assert len({(prompt.fields["strategy"], prompt.fields["topic"]) for prompt in prompts}) == 4
    goals = Counter("“good”" in prompt.fields["goal"] for prompt in prompts)
    assert goals == {True: 2, False: 2}


def test_a_text_is_tried_until_it_fools():
    steps = play(write=number_words, judge=lambda text: "word5" in text, proposals=1, turns=5)
    assert [type(step) for step in steps] == [Prompt, Probe] * 3
    assert steps[2].fields["earlier"].count("word1") == 1
    assert "90%" in steps[2].fields["earlier"]


def test_what_worked_is_told_with_the_next_request():
    steps = play(write=number_words, judge=lambda text: True, proposals=2)
    prompts = [step for step in steps if isinstance(step, Prompt)]
    assert prompts[0].fields["worked"] == ""
    assert "word1" in prompts[1].fields["worked"]


def test_copies_and_empty_replies_are_not_asked_about():
    steps = play(write=lambda number: "Always the same words.", proposals=3, turns=2)
    assert sum(isinstance(step, Probe) for step in steps) == 1
    assert not any(isinstance(step, Probe) for step in play(write=lambda number: "", proposals=2))


@given(st.integers(0, 999))
def test_a_plan_depends_on_the_seed_and_the_answers_only(seed):
    def repeat():
        return play(seed, write=number_words, judge=lambda text: "7" in text, proposals=8)

    assert repeat() == repeat()


def test_the_context_is_part_of_the_request():
    steps = play(write=number_words, proposals=1, context={"premise": "It rained."})
    assert steps[0].fields["context"] == "premise: It rained."


@pytest.mark.parametrize(
    ("setting", "value"),
    [("goal", " "), ("strategies", ""), ("topics", "\n".join(map(str, range(51))))],
)
def test_wrong_settings_are_refused(setting, value):
    with pytest.raises(SettingError) as refusal:
        play(write=number_words, **{setting: value})
    assert refusal.value.setting == setting


def test_a_text_without_an_answer_is_not_said_to_be_answered_rightly():
    settings = settings_of(proposals=1, turns=2)
    [attack] = KINDS["language_model"].plan_attacks(settings, LABELS, Random(0))
    search = attack.begin({})
    next(search)
    search.send(RIGHT._replace(text="One two three four five."))
    prompt = search.send(RIGHT._replace(is_answered=False))
    assert "One two three four five." in prompt.fields["earlier"]
    assert "rightly" not in prompt.fields["earlier"]


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("en", "这次旅行非常好。", True),
        ("en", "Поездка была хорошей.", True),
        ("en-GB", "Le repas est bon et la salle est belle pour nous.", True),
        ("en", "The waiter said “très bien” and left.", False),
        ("en", "No comment.", False),
        ("en", "12 !", False),
        ("de", "The food was good and they were kind to us.", True),
        ("de", "Das Essen war nicht gut.", False),
        ("ja", "この旅行はとても良かったです。", False),
        ("ja", "The trip was good.", True),
        ("ru", "Поездка была хорошей.", False),
        ("sr", "Путовање је било веома добро.", False),
        ("pa", "ਯਾਤਰਾ ਬਹੁਤ ਵਧੀਆ ਸੀ।", False),
        ("it-IT", "Поездка была хорошей.", True),
        ("fi", "Matka oli hyvä ja ruoka maistui.", False),
    ],
)
def test_only_clearly_foreign_texts_count_as_such(language, text, expected):
    assert is_foreign(text, language) is expected
