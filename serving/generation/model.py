"""A served language model: prepared on first use, then called through its batch."""

import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from serving.errors import MisconfiguredError, TooLongError, build_wrong_field_error
from serving.generation.batch import Batch
from serving.generation.build import build_decoder
from serving.generation.conversation import Conversation, PieceCallback, create_conversation
from serving.generation.decoder import Decoder
from serving.generation.prompts import ChatTemplate, find_default_template, get_token_text
from serving.generation.sampling import Sampling
from serving.generation.system_text import Messages
from serving.spec import ModelFolder, ModelSpec

logger = logging.getLogger(__name__)

BATCH_ROWS = 8
CONTEXT_TOKENS = 2048
"""The maximum number of tokens of prompt and answer, unless the model's settings say otherwise."""


class LanguageModel:
    """A loaded language model with its queue."""

    def __init__(
        self, spec: ModelSpec, folder: ModelFolder, identity: dict[str, str], export_folder: Path,
        *, max_queued: int,
    ) -> None:  # fmt: skip
        """Load the model. If it is not in `export_folder`, first convert it, which takes seconds.

        Raises MisconfiguredError.
        """
        if not export_folder.exists():
            logger.info("%s: preparing the language model, once", spec.name)
            source = folder.weights[0] if folder.weights[0].suffix == ".gguf" else folder.path
            build_decoder(spec.name, source, export_folder, spec.precision)
        decoder = Decoder(
            export_folder, rows=BATCH_ROWS, max_length=folder.max_length or CONTEXT_TOKENS
        )
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
        self.tokenizer = Tokenizer.from_file(str(export_folder / "tokenizer.json"))
        self._end_tokens = _read_end_tokens(export_folder)
        self._template = _read_template(spec.name, export_folder, self.tokenizer)
        self._batch = Batch(decoder, max_queued=max_queued, name=spec.name)

    def queue_chat(
        self, messages: Messages, sampling: Sampling, on_piece: PieceCallback, deadline: float
    ) -> Conversation:
        """Queue a chat; return its conversation.

        on_piece: called with the pieces, from another thread. deadline: a time of time.monotonic().
        Raises BadRequestError, BusyError, StoppedError.
        """
        return self._submit_conversation(
            self.encode(self._template.render(messages)), sampling, on_piece, deadline
        )

    def queue_completion(
        self,
        ids: Sequence[int],
        sampling: Sampling,
        on_piece: PieceCallback,
        deadline: float,
        *,
        is_prompt_reported: bool,
    ) -> Conversation:
        """Queue a text to continue; return its conversation.

        For parameters and errors, see `queue_chat`. is_prompt_reported: whether to report the
        prompt's tokens, too.
        """
        return self._submit_conversation(
            ids, sampling, on_piece, deadline, is_prompt_reported=is_prompt_reported
        )

    def encode(self, text: str) -> list[int]:
        """Return the tokens of a text. Special tokens in the text are recognised."""
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def close(self) -> None:
        """Stop the model. Running answers end with an error."""
        self._batch.close()

    def _submit_conversation(
        self, ids: Sequence[int], sampling: Sampling, on_piece: PieceCallback, deadline: float,
        *, is_prompt_reported: bool = False,
    ) -> Conversation:  # fmt: skip
        if not ids:
            raise build_wrong_field_error("prompt", "must not be empty.")
        # Callers may send tokens instead of a text.
        if max(ids) >= self.tokenizer.get_vocab_size():
            raise build_wrong_field_error(
                "prompt", f"has {max(ids)}, which is no token of the model."
            )
        if len(ids) >= self.context:
            raise TooLongError(
                f"This model's maximum context length is {self.context} tokens, prompt and answer "
                f"together. The prompt has {len(ids)}. Shorten it."
            )
        room_tokens = self.context - len(ids)
        limited_sampling = replace(sampling, max_tokens=min(sampling.max_tokens, room_tokens))
        new_conversation = create_conversation(
            ids,
            limited_sampling,
            self.tokenizer,
            self._end_tokens,
            on_piece=on_piece,
            deadline=deadline,
            is_prompt_reported=is_prompt_reported,
        )
        self._batch.submit(new_conversation)
        return new_conversation


def _read_end_tokens(export_folder: Path) -> frozenset[int]:
    """Return the ids of the tokens that end an answer."""
    end_tokens = json.loads((export_folder / "genai_config.json").read_text())["model"][
        "eos_token_id"
    ]
    return frozenset(end_tokens if isinstance(end_tokens, list) else [end_tokens])


def _read_template(name: str, export_folder: Path, tokenizer: Tokenizer) -> ChatTemplate:
    settings = json.loads((export_folder / "tokenizer_config.json").read_text())
    file = export_folder / "chat_template.jinja"
    source = (
        file.read_text() if file.exists() else find_default_template(settings.get("chat_template"))
    )
    if source is None:
        raise MisconfiguredError(f"{name}: its tokenizer has no chat template.")
    special_tokens = [token.content for token in tokenizer.get_added_tokens_decoder().values()]
    tokens = {key: get_token_text(settings.get(key)) for key in ("bos_token", "eos_token")}
    return ChatTemplate(source, special_tokens, {key: text for key, text in tokens.items() if text})
