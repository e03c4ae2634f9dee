"""What a transformers model takes: arrays by name, the most tokens, the id that fills rows.

Read from the model's own code and tables of positions, as configurations name them differently.
"""

import inspect
from typing import Any

LONGEST = 4096
"""Tokens, where neither tokenizer nor model names a limit."""
UNLIMITED = 10**6
"""From here on a tokenizer's limit is none: transformers writes 10**30 for "unknown"."""
POSITION_TABLES = ("position_embeddings", "positions_embed", "embed_positions", "wpe")
"""Names of the modules that look up a token's place; others look up distances or coordinates."""


def bare_model(head: Any, folder: Any) -> Any:
    """Return a folder's model without weights, whose modules take no memory."""
    import torch
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    # Tensors on this device have shapes and no content.
    with torch.device("meta"):
        return head.from_config(config)


def input_names(model: Any, tokenizer: Any) -> tuple[str, ...]:
    """Return the names of the arrays that the model reads, in the order of our calls.

    Every model that accepts an attention mask gets one. Token types are included if the tokenizer
    produces them and the model accepts more than one type; elsewhere `model(**tokenizer(text))`
    fails.
    """
    parameters = inspect.signature(model.forward).parameters
    names = ["input_ids"]
    if "attention_mask" in parameters:
        names.append("attention_mask")
    has_types = getattr(model.config, "type_vocab_size", None) not in (0, 1)
    if (
        has_types
        and "token_type_ids" in parameters
        and "token_type_ids" in tokenizer.model_input_names
    ):
        names.append("token_type_ids")
    return tuple(names)


def token_limit(model: Any, tokenizer: Any) -> int:
    """Return the maximum number of tokens of one text: the least of tokenizer limit and positions.

    Computed positions (rotary, relative) have no table. The length for which the model was made
    then counts only if the tokenizer has no limit.
    """
    own_limit = tokenizer.model_max_length
    if own_limit >= UNLIMITED:
        own_limit = None
    places = position_count(model)
    described = getattr(_text_config(model), "max_position_embeddings", None)
    made_for = described if isinstance(described, int) and described > 0 else None
    if places and made_for:
        places = min(places, made_for)  # Nyströmformer's table has two rows more than it numbers
    limits = [limit for limit in (own_limit, places) if limit]
    if limits:
        return int(min(limits))
    return made_for or LONGEST


def position_count(model: Any) -> int | None:
    """Return the number of tokens for which the model has learnt positions; None without a table.

    Models like RoBERTa count from the padding id, so their first rows belong to no token. Models
    like OPT add an `offset`.
    """
    position_counts = []
    for name, module in model.named_modules():
        table = getattr(module, "weight", None)
        # Other tables look up words, distances or coordinates.
        if name.rpartition(".")[2] not in POSITION_TABLES or table is None:
            continue
        padding = getattr(module, "padding_idx", None)
        skipped = 0 if padding is None else padding + 1
        position_counts.append(table.shape[0] - int(getattr(module, "offset", skipped)))
    return min(position_counts, default=None)


def padding_id(model: Any, tokenizer: Any) -> int:
    """Return the id that pads short rows: the one that the model's code treats as padding.

    Heads that read the last token find it by this id in the configuration, not by a mask.
    """
    ids = (getattr(_text_config(model), "pad_token_id", None), tokenizer.pad_token_id)
    return next((id for id in ids if isinstance(id, int) and id >= 0), 0)


def _text_config(model: Any) -> Any:
    return model.config.get_text_config()
