"""Conversations as the text that a model was trained on, by the template that came with it."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from serving.errors import BadRequestError, MisconfiguredError
from serving.generation.system_text import Messages, render_whole


class _Generation(Extension):
    """A Jinja extension for the tag around a model's text, which only matters for training."""

    tags = {"generation"}  # as Jinja wants it

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """Return the content of the tag."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class ChatTemplate:
    """A Jinja chat template in transformers' style, run in a sandbox because it comes with a model.

    It has the same variables and functions as in transformers, so that a model gets the prompt
    that it was trained on.
    """

    def __init__(self, source: str, special: Sequence[str], tokens: Mapping[str, str]) -> None:
        """Compile the template. Raises MisconfiguredError.

        special: texts that are single tokens with a meaning. tokens: bos_token, eos_token.
        """
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols]
        )
        environment.globals |= {"raise_exception": _refuse, "strftime_now": _now}
        environment.filters["tojson"] = _to_json  # Jinja's own escapes for HTML
        try:
            self._template = environment.from_string(source)
        except TemplateError as error:
            raise MisconfiguredError(f"The chat template cannot be read: {error}") from None
        self._special, self._tokens = [text for text in special if len(text) > 1], dict(tokens)

    def render(self, messages: Messages) -> str:
        """Return the prompt for the messages, including the system text. Raises BadRequestError.

        See `render_whole`.
        """
        harmless = [{**each, "content": self._harmless(each["content"])} for each in messages]
        try:
            return render_whole(self._rendered, harmless)
        except TemplateError as error:
            raise BadRequestError(f"The model takes no such conversation: {error}") from None

    def _rendered(self, messages: Messages) -> str:
        # Templates ask whether tools and documents are none, which what is undefined is not.
        absent = {"tools": None, "documents": None}
        return self._template.render(
            {"messages": messages, "add_generation_prompt": True, **absent, **self._tokens}
        )

    def _harmless(self, text: str) -> str:
        """Break up special tokens in a text, so that it cannot end or begin a turn."""
        # A space within the token makes it plain text for the tokenizer.
        for token in self._special:
            text = text.replace(token, f"{token[0]} {token[1:]}")
        return text


def default_of(templates: Any) -> str | None:
    """Return the template in a tokenizer's configuration; the default one of several."""
    if isinstance(templates, list):
        templates = {each.get("name"): each.get("template") for each in templates}
    if isinstance(templates, Mapping):
        templates = templates.get("default")
    return templates if isinstance(templates, str) else None


def token_text(token: Any) -> str:
    """Return the text of a token in a tokenizer's configuration, or ""."""
    text = token.get("content") if isinstance(token, Mapping) else token
    return text if isinstance(text, str) else ""


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)


def _now(form: str) -> str:
    return datetime.now().strftime(form)


def _to_json(
    value: Any, ensure_ascii: bool = False, indent: int | None = None,
    separators: tuple[str, str] | None = None, sort_keys: bool = False,
) -> str:  # fmt: skip
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )
