"""Render conversations as prompts, by the chat template that comes with a model."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from serving.errors import BadRequestError, MisconfiguredError
from serving.generation.system_text import Messages, render_with_system_text


class _GenerationTag(Extension):
    """A Jinja extension for the tag around a model's own text. Only training uses the tag."""

    tags = {"generation"}  # as Jinja wants it

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """Return the content of the tag."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class ChatTemplate:
    """A Jinja chat template in transformers' style, run in a sandbox because it comes with a model.

    It has the same variables and functions as in transformers, so that a model gets the prompts
    it was trained on.
    """

    def __init__(
        self, source: str, special_tokens: Sequence[str], tokens: Mapping[str, str]
    ) -> None:
        """Compile the template. Raises MisconfiguredError.

        special_tokens: texts of special tokens. tokens: the texts of `bos_token` and `eos_token`.
        """
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[_GenerationTag, loopcontrols]
        )
        environment.globals |= {
            "raise_exception": _raise_template_error,
            "strftime_now": _format_now,
        }
        environment.filters["tojson"] = _format_json  # Jinja's own escapes for HTML
        try:
            self._template = environment.from_string(source)
        except TemplateError as error:
            raise MisconfiguredError(f"The chat template cannot be read: {error}") from None
        self._special_tokens, self._token_texts = (
            [text for text in special_tokens if len(text) > 1],
            dict(tokens),
        )

    def render(self, messages: Messages) -> str:
        """Return the prompt for the messages, including the system text. Raises BadRequestError.

        Special tokens in the messages are broken up. See also `render_with_system_text`.
        """
        safe_messages = [
            {**message, "content": self._remove_control_tokens(message["content"])}
            for message in messages
        ]
        try:
            return render_with_system_text(self._render_template, safe_messages)
        except TemplateError as error:
            raise BadRequestError(f"The model takes no such conversation: {error}") from None

    def _render_template(self, messages: Messages) -> str:
        # Templates ask whether tools and documents are none, which what is undefined is not.
        absent = {"tools": None, "documents": None}
        return self._template.render(
            {"messages": messages, "add_generation_prompt": True, **absent, **self._token_texts}
        )

    def _remove_control_tokens(self, text: str) -> str:
        """Break up special tokens in a text, so that it cannot end or begin a turn."""
        # A space within the token makes it plain text for the tokenizer.
        for token in self._special_tokens:
            text = text.replace(token, f"{token[0]} {token[1:]}")
        return text


def find_default_template(templates: Any) -> str | None:
    """Return the chat template in a tokenizer's configuration, or the default one of several.

    None if there is none.
    """
    if isinstance(templates, list):
        templates = {each.get("name"): each.get("template") for each in templates}
    if isinstance(templates, Mapping):
        templates = templates.get("default")
    return templates if isinstance(templates, str) else None


def get_token_text(token: Any) -> str:
    """Return the text of a token in a tokenizer's configuration, or ""."""
    text = token.get("content") if isinstance(token, Mapping) else token
    return text if isinstance(text, str) else ""


def _raise_template_error(message: str) -> NoReturn:
    raise TemplateError(message)


def _format_now(date_format: str) -> str:
    return datetime.now().strftime(date_format)


def _format_json(
    value: Any, ensure_ascii: bool = False, indent: int | None = None,
    separators: tuple[str, str] | None = None, sort_keys: bool = False,
) -> str:  # fmt: skip
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )
