"""A language model that is served: prepared on first use, then asked through its batch."""

import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from serving.errors import MisconfiguredError, TooLongError, wrong_field
from serving.generation.batch import Batch
from serving.generation.build import build_decoder
from serving.generation.conversation import Conversation, Tell, conversation
from serving.generation.decoder import Decoder
from serving.generation.prompts import ChatTemplate, default_of, token_text
from serving.generation.sampling import Sampling
from serving.generation.system_text import Messages
from serving.spec import ModelFolder, ModelSpec

logger = logging.getLogger(__name__)

ROWS = 8
CONTEXT = 2048
"""Tokens of prompt and answer together, where the model's settings name no `max_length`."""


class LanguageModel:
    """A loaded language model with its queue."""

    def __init__(
        self, spec: ModelSpec, folder: ModelFolder, identity: dict[str, str], exports: Path,
        *, max_queued: int,
    ) -> None:  # fmt: skip
        """Load the model. If `exports` lacks it, it is first converted, which takes some seconds.

        Raises MisconfiguredError.
        """
        if not exports.exists():
            logger.info("%s: preparing the language model, once", spec.name)
            source = folder.weights[0] if folder.weights[0].suffix == ".gguf" else folder.path
            build_decoder(spec.name, source, exports, spec.precision)
        decoder = Decoder(exports, rows=ROWS, max_length=folder.max_length or CONTEXT)
        decoder.warm_up()
        self.context = decoder.max_length
        self.digest = identity["digest"]
        self.info: dict[str, Any] = {
            "name": spec.name,
            "kind": folder.kind,
            "labels": None,
            "fields": list(folder.fields),
            "fingerprint": identity,
        }
        self.tokenizer = Tokenizer.from_file(str(exports / "tokenizer.json"))
        self._ends = _ends(exports)
        self._template = _template(spec.name, exports, self.tokenizer)
        self._batch = Batch(decoder, max_queued=max_queued, name=spec.name)

    def chat(
        self, messages: Messages, sampling: Sampling, tell: Tell, deadline: float
    ) -> Conversation:
        """Queue a chat; return its conversation. `tell` gets the pieces, from another thread.

        Raises BadRequestError, BusyError, StoppedError.
        """
        return self._submit(self.encode(self._template.render(messages)), sampling, tell, deadline)

    def complete(
        self, ids: Sequence[int], sampling: Sampling, tell: Tell, deadline: float, *, echo: bool
    ) -> Conversation:
        """Queue a text to be continued; return its conversation. Calls `tell` as `chat` does."""
        return self._submit(ids, sampling, tell, deadline, echo=echo)

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text. Special tokens written in it are recognised."""
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def close(self) -> None:
        """Stop the model. Running answers end with an error."""
        self._batch.close()

    def _submit(
        self, ids: Sequence[int], sampling: Sampling, tell: Tell, deadline: float,
        *, echo: bool = False,
    ) -> Conversation:  # fmt: skip
        if not ids:
            raise wrong_field("prompt", "must not be empty.")
        # Callers may send tokens instead of a text.
        if max(ids) >= self.tokenizer.get_vocab_size():
            raise wrong_field("prompt", f"has {max(ids)}, which is no token of the model.")
        if len(ids) >= self.context:
            raise TooLongError(
                f"This model's maximum context length is {self.context} tokens, prompt and answer "
                f"together. The prompt has {len(ids)}. Shorten it."
            )
        left = self.context - len(ids)
        limited = replace(sampling, max_tokens=min(sampling.max_tokens, left))
        new_conversation = conversation(
            ids, limited, self.tokenizer, self._ends, tell=tell, deadline=deadline, echo=echo
        )
        self._batch.submit(new_conversation)
        return new_conversation


def _ends(exports: Path) -> frozenset[int]:
    """Return the ids of the tokens that end an answer."""
    ends = json.loads((exports / "genai_config.json").read_text())["model"]["eos_token_id"]
    return frozenset(ends if isinstance(ends, list) else [ends])


def _template(name: str, exports: Path, tokenizer: Tokenizer) -> ChatTemplate:
    settings = json.loads((exports / "tokenizer_config.json").read_text())
    file = exports / "chat_template.jinja"
    source = file.read_text() if file.exists() else default_of(settings.get("chat_template"))
    if source is None:
        raise MisconfiguredError(f"{name}: its tokenizer has no chat template.")
    special = [token.content for token in tokenizer.get_added_tokens_decoder().values()]
    tokens = {key: token_text(settings.get(key)) for key in ("bos_token", "eos_token")}
    return ChatTemplate(source, special, {key: text for key, text in tokens.items() if text})
