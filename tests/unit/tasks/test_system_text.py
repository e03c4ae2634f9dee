"""No template loses the system text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving.errors import BadRequestError
from serving.generation.prompts import ChatTemplate
from serving.generation.system_text import move_system_text, render_with_system_text

TURNS = [
    {"role": "system", "content": "Decide."},
    {"role": "user", "content": "A heron?"},
    {"role": "assistant", "content": "Yes."},
    {"role": "user", "content": "Sure?"},
]
WHOLE = "{% for turn in messages %}<{{ turn.role }}>{{ turn.content }}{% endfor %}"
SILENT = (
    "{% for turn in messages %}{% if turn.role != 'system' %}<{{ turn.role }}>{{ turn.content }}"
    "{% endif %}{% endfor %}"
)
REFUSING = "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}"


@pytest.mark.parametrize("template", [SILENT, REFUSING + WHOLE])
def test_what_a_template_drops_or_refuses_goes_before_the_first_question(template):
    prompt = ChatTemplate(template, [], {}).render(TURNS)
    assert prompt == "<user>Decide.\n\nA heron?<assistant>Yes.<user>Sure?"


def test_a_template_that_knows_system_texts_is_left_alone():
    prompt = ChatTemplate(WHOLE, [], {}).render(TURNS)
    assert prompt == "<system>Decide.<user>A heron?<assistant>Yes.<user>Sure?"


def test_what_no_form_of_the_messages_pleases_is_refused():
    with pytest.raises(BadRequestError):
        ChatTemplate("{{ raise_exception('never') }}", [], {}).render(TURNS)
    with pytest.raises(BadRequestError):
        ChatTemplate("{{ raise_exception('never') }}", [], {}).render(TURNS[1:])


def test_a_system_text_without_a_question_is_one():
    assert move_system_text(TURNS[:1]) == [{"role": "user", "content": "Decide."}]
    assert move_system_text(TURNS[1:]) == TURNS[1:]


def test_parts_stay_parts():
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
    (question,) = move_system_text([TURNS[0], {"role": "user", "content": [picture]}])
    assert question["content"] == [{"type": "text", "text": "Decide."}, picture]


@given(
    system=st.text(min_size=1),
    texts=st.lists(st.text(), min_size=1, max_size=4),
    drops=st.booleans(),
)
def test_the_prompt_holds_the_system_text_whatever_the_template_does(system, texts, drops):
    def render(messages):
        roles = ("user",) if drops else ("user", "system")
        return " | ".join(m["content"].strip() for m in messages if m["role"] in roles)

    turns = [{"role": "user", "content": text} for text in texts]
    prompt = render_with_system_text(render, [{"role": "system", "content": system}, *turns])
    assert " ".join(system.split()) in " ".join(prompt.split())
