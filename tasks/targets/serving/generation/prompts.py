"""Conversations as the text that a model was trained on, by the template that came with it."""

from collections.abc import Mapping, Sequence
from typing import NoReturn

from jinja2 import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from tasks.targets.serving.errors import BadRequestError, MisconfiguredError
from tasks.targets.serving.generation.system_text import Messages, render_whole


class ChatTemplate:
    """A Jinja template of transformers' kind, run in a sandbox: it came with a model's files."""

    def __init__(self, source: str, special: Sequence[str], tokens: Mapping[str, str]) -> None:
        """`special`: texts that are single tokens with a meaning; `tokens`: bos_token, eos_token.

        Raises MisconfiguredError.
        """
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        environment.globals["raise_exception"] = _refuse
        try:
            self._template = environment.from_string(source)
        except TemplateError as error:
            raise MisconfiguredError(f"The chat template cannot be read: {error}") from None
        self._special, self._tokens = [text for text in special if len(text) > 1], dict(tokens)

    def render(self, messages: Messages) -> str:
        """Return the prompt that the answer follows, with the system text. Raises BadRequestError.

        See `render_whole`.
        """
        shown = [{**m, "content": self._harmless(m["content"])} for m in messages]
        try:
            return render_whole(self._rendered, shown)
        except TemplateError as error:
            raise BadRequestError(f"The model takes no such conversation: {error}") from None

    def _rendered(self, messages: Messages) -> str:
        return self._template.render(
            {"messages": messages, "add_generation_prompt": True, **self._tokens}
        )

    def _harmless(self, text: str) -> str:
        """A text in which nothing ends a turn or begins another."""
        for token in self._special:
            text = text.replace(token, f"{token[0]} {token[1:]}")
        return text


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)
