"""Turn lines of messages into lines of texts, with a language model that decodes greedily."""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from functools import partial
from typing import Any

from serving.errors import BadRequestError, ServingError
from serving.generation.system_text import Messages, render_with_system_text

from .batches import Example, make_batches

STOP_TOKENS = 160  # enough for the longest stop text, whatever its letters


class Writer:
    """A causal language model with its tokenizer.

    It decodes greedily, whatever sampling its folder configures. A text ends at the model's end
    token, at `max_tokens`, or before one of the texts `stop`.
    """

    def __init__(self, model: Any, tokenizer: Any, max_tokens: int, stop: Sequence[str]) -> None:
        from transformers import GenerationConfig

        self._model, self._tokenizer, self._stop_texts = model, tokenizer, list(stop)
        self._context_tokens = getattr(
            model.config.get_text_config(), "max_position_embeddings", None
        )
        self._end_tokens = _find_end_tokens(model, tokenizer)
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token or tokenizer.convert_ids_to_tokens(0)
        self._generation = GenerationConfig(
            do_sample=False,
            max_new_tokens=max_tokens,
            eos_token_id=sorted(self._end_tokens) or None,
            pad_token_id=tokenizer.pad_token_id,
        )
        model.generation_config = GenerationConfig()  # the folder's own may contain anything

    def build_prompt(self, messages: Messages) -> str:
        """Return the prompt for the messages, made with the tokenizer's chat template.

        Special tokens in messages are broken up, so that no text can end a turn or begin another.
        If the template drops or refuses a system message, that message is put before the first
        question. Raises BadRequestError.
        """
        turns = [
            {**turn, "content": self._break_special_tokens(turn["content"])} for turn in messages
        ]
        try:
            return render_with_system_text(self._render, turns)
        except Exception as error:  # any error that a template may cause
            raise BadRequestError(f"the chat template takes no such messages ({error}).") from None

    def _render(self, turns: Messages) -> str:
        template_options = {"tokenize": False, "add_generation_prompt": True}
        return str(self._tokenizer.apply_chat_template(list(turns), **template_options))

    def _break_special_tokens(self, text: str) -> str:
        """Return the text with its special tokens broken up.

        Otherwise a text could end its turn and begin another.
        """
        for token in self._tokenizer.all_special_tokens:
            if len(token) > 1:
                text = text.replace(token, f"{token[0]} {token[1:]}")
        return text

    def count_tokens(self, prompt: str) -> int:
        """Return the number of a prompt's tokens.

        Raises BadRequestError if they leave no room for an answer.
        """
        size = len(self._tokenizer(prompt, add_special_tokens=False)["input_ids"])
        if self._context_tokens and size >= self._context_tokens:
            raise BadRequestError(
                f"it has {size} tokens, but the model reads {self._context_tokens}."
            )
        return size

    def write(self, prompts: Sequence[str]) -> list[dict[str, Any]]:
        """Return for each prompt the generated `text`, `finish`, `tokens` and the total `logprob`.

        `finish` is "stop" or "length". `tokens` counts those of the prompt and of the text.
        """
        import torch
        from transformers import LogitsProcessorList, StoppingCriteriaList

        encoding = self._tokenizer(
            list(prompts), add_special_tokens=False, padding=True, return_tensors="pt"
        )
        prompt_size = encoding["input_ids"].shape[1]
        generation, recorder = copy(self._generation), _LogprobRecorder()
        if self._context_tokens:
            generation.max_new_tokens = min(
                generation.max_new_tokens, self._context_tokens - prompt_size
            )
        with torch.inference_mode():
            sequences = self._model.generate(
                input_ids=encoding["input_ids"],
                attention_mask=encoding["attention_mask"],
                generation_config=generation,
                logits_processor=LogitsProcessorList([recorder]),
                stopping_criteria=StoppingCriteriaList(
                    [partial(self._find_stopped_rows, prompt_size)]
                ),
            )
        sizes = encoding["attention_mask"].sum(1).tolist()
        new_tokens, logprobs_by_row = (
            sequences[:, prompt_size:].tolist(),
            zip(*recorder.steps, strict=True),
        )
        rows = zip(new_tokens, logprobs_by_row, sizes, strict=True)
        return [
            self._build_result(tokens, logprobs, prompt_size)
            for tokens, logprobs, prompt_size in rows
        ]

    def _find_stopped_rows(
        self, size: int, tokens: Any, scores: Any, **extra_arguments: Any
    ) -> Any:
        """Return which rows contain a stop text after the prompt, whose length is `size` tokens."""
        # Each step decodes only the end, because a stop text is in the newest tokens.
        last_tokens = tokens[:, max(size, tokens.shape[1] - STOP_TOKENS) :]
        are_stopped = []
        for row in last_tokens.tolist():
            end = self._get_text(row)
            are_stopped.append(any(stop in end for stop in self._stop_texts))
        return last_tokens.new_tensor(are_stopped).bool()

    def _get_text(self, tokens: list[int]) -> str:
        return str(self._tokenizer.decode(tokens, skip_special_tokens=True))

    def _build_result(
        self, tokens: list[int], logprobs: Sequence[float], size: int
    ) -> dict[str, Any]:
        """Return one row's result, as `write` describes it. Tokens after the end are padding."""
        end = next((index for index, token in enumerate(tokens) if token in self._end_tokens), None)
        own_tokens = tokens[:end]  # all of them without an end
        text = self._get_text(own_tokens)
        positions = [position for stop in self._stop_texts if (position := text.find(stop)) >= 0]
        finish, token_count = "length", len(own_tokens)
        if end is not None:
            # The end token was generated too.
            finish, token_count = "stop", len(own_tokens) + 1
        if positions:
            text = text[: min(positions)]
            finish, token_count = "stop", len(self._cut_at_stop(own_tokens))
        return {
            "text": text,
            "finish": finish,
            "tokens": [size, token_count],
            "logprob": round(sum(logprobs[:token_count]), 4),
        }

    def _cut_at_stop(self, tokens: list[int]) -> list[int]:
        """Return the tokens up to and including the one that completes a stop text."""
        for count in range(1, len(tokens)):
            if any(stop in self._get_text(tokens[:count]) for stop in self._stop_texts):
                return tokens[:count]
        return tokens


class _LogprobRecorder:
    """A recorder of the log-probability of each row's chosen token at each step."""

    def __init__(self) -> None:
        self.steps: list[list[float]] = []

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        self.steps.append(scores.float().log_softmax(-1).amax(-1).tolist())
        return scores


def _find_end_tokens(model: Any, tokenizer: Any) -> set[int]:
    """Return the end tokens, from the folder's settings and its tokenizer."""
    configured_ids = getattr(model.generation_config, "eos_token_id", None)
    if isinstance(configured_ids, int):
        configured_ids = [configured_ids]
    end_ids = set(configured_ids or ())
    if tokenizer.eos_token_id is not None:
        end_ids.add(tokenizer.eos_token_id)
    return end_ids


def read_prompts(lines: Iterable[bytes], writer: Writer) -> Iterator[Example]:
    """Yield the prompts of lines `{"id", "messages"}` that the model can read.

    Other prompts are skipped and reported on stderr.
    """
    for number, line in enumerate(lines, 1):
        row = json.loads(line)
        try:
            prompt = writer.build_prompt(row["messages"])
            size = writer.count_tokens(prompt)
        except BadRequestError as error:
            print(f"Line {number} is not answered: {error}", file=sys.stderr)
        else:
            yield Example(size, 1, (prompt,), row["id"], row.get("batch", 0))


def write_texts(examples: Sequence[Example], writer: Writer) -> Iterator[bytes]:
    """Yield the texts of one batch after another, one line per text. Raises ServingError."""
    for batch in make_batches(examples):
        try:
            results = writer.write([example.texts[0] for example in batch])
        except Exception as error:  # any error that a model's configuration may cause
            batch_description = f"{len(batch)} examples of up to {batch[0].size} tokens"
            raise ServingError(
                f"The model failed on {batch_description}: {type(error).__name__}: {error}"
            ) from error
        lines = []
        for example, result in zip(batch, results, strict=True):
            lines.append(json.dumps({"id": example.id, **result}) + "\n")
        yield "".join(lines).encode()


def stream_texts(lines: Iterable[bytes], writer: Writer) -> Iterator[bytes]:
    """Yield the text for each prompt as soon as it arrives.

    The text is empty if the model cannot read the prompt. Raises ServingError.
    """
    for line in lines:
        empty_result = {"text": "", "finish": "stop", "tokens": [0, 0], "logprob": 0.0}
        empty_line = json.dumps({"id": json.loads(line)["id"], **empty_result}) + "\n"
        prompts = list(read_prompts([line], writer))
        yield b"".join(write_texts(prompts, writer)) or empty_line.encode()
