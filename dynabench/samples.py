"""The good and bad examples of a configuration, as pages show them to people."""

from difflib import SequenceMatcher
from typing import Any

from tasks.config.schema import ShownExample, TaskConfig
from tasks.contexts.media.markup import render_value


def describe_sample(config: TaskConfig, example: ShownExample) -> dict[str, Any]:
    """Return the template's values for a sample example, with changes to its prompt marked.

    `fields` has (title, pieces) for each field of the context and the input. A piece is (text,
    whether it is new).
    """
    prompt = ""
    if config.support and config.support.prompt_field:
        prompt = str(example.context.get(config.support.prompt_field, ""))
    fields = []
    for name, value in {**example.context, **example.input}.items():
        text = render_value(config, name, value)
        pieces = [(text, False)]
        if prompt and name == config.text_field:
            pieces = _mark_changes(prompt, text)
        fields.append((config.get_component(name).third_person_title, pieces))
    return {"reason": example.reason, "fields": fields}


def _mark_changes(before: str, after: str) -> list[tuple[str, bool]]:
    """Split the later text into (piece, whether it is new)."""
    old_words, new_words = before.split(), after.split()
    # Otherwise words that are frequent in a long text would not be compared.
    steps = SequenceMatcher(None, old_words, new_words, autojunk=False).get_opcodes()
    pieces = [(" ".join(new_words[low:high]), tag != "equal") for tag, _a, _b, low, high in steps]
    return [piece for piece in pieces if piece[0]]
