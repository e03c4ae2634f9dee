"""The simulated people by themselves: what they write and how they read."""

from collections import Counter
from random import Random

import pytest

from dynabench.operations.demo.people import FLAG, Judge, Text, draw_people
from dynabench.operations.demo.texts import IDEAS, LABELS, PLAIN_STYLE, build_contexts, write_idea
from validation.consensus.consensus import Vote


@pytest.mark.parametrize("idea", IDEAS, ids=lambda idea: idea.pattern)
def test_each_idea_is_a_text_that_the_form_takes(idea):
    chance = Random(0)
    for _ in range(20):
        text = write_idea(idea, "swimming pool", chance)
        assert 8 <= len(text) <= 290  # a sign may follow
        assert not set("{}") & set(text)
        assert not text[0].islower()


def test_each_label_can_be_written_plainly_and_otherwise():
    kinds = {(idea.label, idea.way == PLAIN_STYLE) for idea in IDEAS}
    assert kinds == {(label, plain) for label in LABELS for plain in (True, False)}


def test_contexts_are_about_different_places():
    rows = list(build_contexts(Random(0), 20))
    assert len({row["prompt"] for row in rows}) == 20
    assert all(row["metadata"]["place"] in row["prompt"] for row in rows)


def texts(seed: int) -> list[str]:
    writers, _ = draw_people(seed, 12, 8)
    found = []
    for writer in writers:
        writer.begin_round()
        found += [writer.write("hotel", "At the hotel.", goal)[0].words for goal in LABELS]
    return found


def test_the_seed_decides_what_is_written():
    assert texts(3) == texts(3) != texts(4)


def test_a_colluding_writer_submits_wrong_labels_with_a_sign_that_colluding_judges_follow():
    writers, judges = draw_people(0, 12, 8)
    (liar,) = (writer for writer in writers if writer.colludes)
    liar.care = 1.0
    liar.begin_round()
    text, _ = liar.write("hotel", "At the hotel.", "positive")
    assert text.label != "positive"
    assert {judge.vote(text) for judge in judges if judge.colludes} == {Vote(label="positive")}


def test_skilled_writers_repeat_what_worked():
    writer = draw_people(0, 12, 8)[0][5]
    writer.skill = writer.care = 1.0
    writer.begin_round()
    known = [i for i in writer.ideas if i.label == "negative" and i.way != PLAIN_STYLE]
    for idea in known:
        writer.learn(idea, is_fooled=idea is known[0])
    chosen = Counter(writer.write("hotel", "", "negative")[1] for _ in range(100))
    assert chosen.most_common(1)[0][0] is known[0]


def test_judges_read_by_skill_and_care():
    good = Judge("a", skill=1.0, care=1.0, rng=Random(0))
    idle = Judge("b", skill=1.0, care=0.0, rng=Random(0))
    text = Text("The hotel was lovely.", "positive", difficulty=0.2)
    assert {good.vote(text) for _ in range(50)} == {Vote(label="positive")}
    assert {idle.vote(text) for _ in range(50)} == {Vote(label=one) for one in LABELS}
    assert FLAG in {good.vote(Text("hotel 123 ok ok", "")) for _ in range(50)}
