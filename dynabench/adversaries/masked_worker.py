"""The process that runs a masked language model: words that could stand in place of another one.

    python -m dynabench.adversaries.masked_worker FOLDER

It reads one JSON object a line, `{"text", "start", "end", "count"}`, and writes `{"words": […]}`
for each. The web never imports this module, because it loads torch.
"""

import json
import sys
from collections.abc import Mapping
from typing import Any

MIN_SHARE = 0.05
"""The least probability of a word, as a share of the best one's: the constraint of grammar."""
MIN_LIKENESS = 0.85
"""The least cosine of the two texts' mean hidden states: the constraint of meaning."""
MAX_CANDIDATES = 60
MAX_CHARS = 2000
"""Only so much of the text around the word is read, half on each side."""


class MaskedModel:
    """A masked language model of transformers with its tokenizer."""

    def __init__(self, folder: str) -> None:
        import torch
        from transformers import AutoModelForMaskedLM, AutoTokenizer

        torch.set_num_threads(1)
        # A folder of the operator's, and still no code of it is run.
        options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
        self._torch = torch
        self._tokenizer = AutoTokenizer.from_pretrained(folder, **options)
        self._model = AutoModelForMaskedLM.from_pretrained(
            folder, use_safetensors=True, dtype=torch.float32, **options
        ).eval()
        if self._tokenizer.mask_token is None:
            raise ValueError("The tokenizer has no mask token.")
        limit = getattr(self._model.config, "max_position_embeddings", 512)
        # Some models, such as RoBERTa, count positions from the padding's on, so two are no room.
        self._max_tokens = min(self._tokenizer.model_max_length, limit - 2)

    def find_words(self, text: str, start: int, end: int, count: int) -> list[str]:
        """Return at most `count` words that fit in place of text[start:end], the likeliest first.

        They are whole words, other than the present one, whose probability and whose effect on the
        text's meaning keep to MIN_SHARE and MIN_LIKENESS.
        """
        # The nearest words say most of what fits, and long texts cost time.
        before, after = text[:start][-MAX_CHARS // 2 :], text[end:][: MAX_CHARS // 2]
        masked_text = f"{before}{self._tokenizer.mask_token}{after}"
        encoded = self._encode(masked_text)
        is_mask = encoded["input_ids"][0] == self._tokenizer.mask_token_id
        positions = is_mask.nonzero().flatten().tolist()
        if len(positions) != 1:  # cut off, or the text itself has a mask
            return []
        with self._torch.no_grad():
            logits = self._model(**encoded).logits[0, positions[0]]
        best = logits.softmax(-1).topk(min(MAX_CANDIDATES, len(logits)))
        least = float(best.values[0]) * MIN_SHARE
        found_words: list[str] = []
        # The same model judges the meaning, so that operators install only one.
        old_vector = self._embed(before + text[start:end] + after)
        for chance, token in zip(best.values.tolist(), best.indices.tolist(), strict=True):
            # They come by probability, so all that follow are too unlikely as well.
            if chance < least or len(found_words) == count:
                break
            word = self._read_word(token)
            if not word or word.casefold() == text[start:end].casefold():
                continue
            vector = self._embed(before + word + after)
            likeness = self._torch.nn.functional.cosine_similarity(old_vector, vector, dim=0)
            if float(likeness) >= MIN_LIKENESS:
                found_words.append(word)
        return found_words

    def _encode(self, text: str) -> Any:
        return self._tokenizer(
            text, return_tensors="pt", truncation=True, max_length=self._max_tokens
        )

    def _embed(self, text: str) -> Any:
        """Return the mean of the last hidden states, a vector of the model's width."""
        with self._torch.no_grad():
            output = self._model(**self._encode(text), output_hidden_states=True)
        return output.hidden_states[-1][0].mean(0)

    def _read_word(self, token: int) -> str:
        """Return the word that a token is; "" if it is a piece of one, a sign or a number."""
        piece = self._tokenizer.convert_ids_to_tokens(token)
        word = self._tokenizer.decode([token]).strip()
        # Tokenizers mark either the pieces inside words (##) or the beginnings of words (Ġ, ▁).
        marks_beginnings = any(mark in self._tokenizer.get_vocab() for mark in ("Ġ", "▁"))
        is_whole = piece[:1] in "Ġ▁" if marks_beginnings else not piece.startswith("##")
        return word if is_whole and word.isalpha() else ""


def answer_line(model: MaskedModel, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to a request."""
    return {
        "words": model.find_words(
            request["text"], request["start"], request["end"], request["count"]
        )
    }


def main() -> None:
    model = MaskedModel(sys.argv[1])
    # Loading takes long, so the caller waits for this with another deadline.
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer_line(model, json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
