"""Turn sentences into vectors of their meaning, with the unchanged encoder of the starter models.

Texts of similar meaning have vectors of similar direction (Reimers and Gurevych 2019,
Sentence-BERT): the mean of the last layer over the tokens. The encoder knows English. This module
loads torch, so it runs in a separate process.
"""

import functools
import hashlib
from collections.abc import Sequence

from evaluation.training.shipped import WEIGHTS_FILE, find_encoder

BATCH_TEXTS = 32
MAX_TOKENS = 256
"""The maximum number of tokens, as in the encoder's training. Longer texts are cut."""


@functools.cache
def compute_encoder_digest() -> str:
    """Return the first 16 hex digits of the SHA-256 of the encoder's weights.

    Raises FileNotFoundError if the encoder is missing.
    """
    with (find_encoder() / WEIGHTS_FILE).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def embed_texts(texts: Sequence[str]) -> list[bytes]:
    """Return the embedding of each text: 384 signed bytes, the largest of which is 127 or -127."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(find_encoder())
    model = AutoModel.from_pretrained(find_encoder()).eval()
    vectors: list[bytes] = []
    for start in range(0, len(texts), BATCH_TEXTS):
        tokens = tokenizer(
            list(texts[start : start + BATCH_TEXTS]),
            padding=True,
            truncation=True,
            max_length=MAX_TOKENS,
            return_tensors="pt",
        )
        with torch.inference_mode():
            states = model(**tokens).last_hidden_state
        # Padding is not part of a text.
        mask = tokens["attention_mask"].unsqueeze(-1)
        means = (states * mask).sum(1) / mask.sum(1)
        # Bytes take a quarter of the space of 32-bit floats.
        steps = (means * (127 / means.abs().amax(1, keepdim=True))).round().to(torch.int8)
        vectors += [bytes(row.numpy()) for row in steps]
    return vectors
