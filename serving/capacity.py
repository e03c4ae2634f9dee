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
    """Return the model of a folder without its weights: its modules take no memory."""
    import torch
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    # Tensors on this device have shapes and no content.
    with torch.device("meta"):
        return head.from_config(config)


def input_names(model: Any, tokenizer: Any) -> tuple[str, ...]:
    """Return the arrays that the model reads, in the order of our calls.

    The attention mask goes to every model that takes one. Token types go where the tokenizer makes
    them, the model takes them and knows more than one: `model(**tokenizer(text))` fails elsewhere.
    """
    takes = inspect.signature(model.forward).parameters
    names = ["input_ids"]
    if "attention_mask" in takes:
        names.append("attention_mask")
    has_types = getattr(model.config, "type_vocab_size", None) not in (0, 1)
    if has_types and "token_type_ids" in takes and "token_type_ids" in tokenizer.model_input_names:
        names.append("token_type_ids")
    return tuple(names)


def token_limit(model: Any, tokenizer: Any) -> int:
    """Return the most tokens of one text: the least of the tokenizer's limit and the positions.

    Positions that are computed (rotary, relative) have no table; the length that the model was
    made for then counts only where the tokenizer names no limit.
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
    """Return how many tokens the table of learnt positions has room for; None without a table.

    RoBERTa's kind counts from the padding's id on, so its first rows belong to no token; OPT's
    kind adds an `offset`.
    """
    counts = []
    for name, module in model.named_modules():
        table = getattr(module, "weight", None)
        # Other tables look up words, distances or coordinates.
        if name.rpartition(".")[2] not in POSITION_TABLES or table is None:
            continue
        padding = getattr(module, "padding_idx", None)
        skipped = 0 if padding is None else padding + 1
        counts.append(table.shape[0] - int(getattr(module, "offset", skipped)))
    return min(counts, default=None)


def padding_id(model: Any, tokenizer: Any) -> int:
    """Return the id that fills short rows: the one that the model's code takes for padding.

    Heads that read the last token find it by the configuration's id, and by no mask.
    """
    ids = (getattr(_text_config(model), "pad_token_id", None), tokenizer.pad_token_id)
    return next((id for id in ids if isinstance(id, int) and id >= 0), 0)


def _text_config(model: Any) -> Any:
    return model.config.get_text_config()
