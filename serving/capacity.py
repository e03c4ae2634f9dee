"""Find out what a transformers model takes: its input arrays, its token limit, its padding id.

These are read from the model's code and position tables, as configurations name them differently.
"""

import inspect
from typing import Any

MAX_TOKENS = 4096
"""The token limit if neither tokenizer nor model names one."""
UNLIMITED_TOKENS = 10**6
"""A tokenizer's limit of at least this number means no limit.

transformers writes 10**30 for "unknown".
"""
POSITION_TABLES = ("position_embeddings", "positions_embed", "embed_positions", "wpe")
"""Names of the modules with position embeddings. Others look up distances or coordinates."""


def build_empty_model(head: Any, folder: Any) -> Any:
    """Return a folder's model without weights, so that its modules take no memory.

    head: the class of transformers that loads the model.
    """
    import torch
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    # Tensors on this device have shapes and no content.
    with torch.device("meta"):
        return head.from_config(config)


def find_input_names(model: Any, tokenizer: Any) -> tuple[str, ...]:
    """Return the names of the arrays that the model reads, in the order of our calls.

    Every model that accepts an attention mask gets one. Token types are included if the tokenizer
    produces them and the model accepts more than one type; for other models
    `model(**tokenizer(text))` fails.
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


def find_token_limit(model: Any, tokenizer: Any) -> int:
    """Return the maximum number of tokens of one text that both tokenizer and positions allow.

    Models that compute positions (rotary, relative) have no table of positions. For these, the
    length for which the model was made counts only if the tokenizer has no limit.
    """
    own_limit = tokenizer.model_max_length
    if own_limit >= UNLIMITED_TOKENS:
        own_limit = None
    max_positions = find_position_count(model)
    configured_limit = getattr(_find_text_config(model), "max_position_embeddings", None)
    design_limit = (
        configured_limit if isinstance(configured_limit, int) and configured_limit > 0 else None
    )
    if max_positions and design_limit:
        max_positions = min(
            max_positions, design_limit
        )  # Nyströmformer's table has two rows more than it numbers
    limits = [limit for limit in (own_limit, max_positions) if limit]
    if limits:
        return int(min(limits))
    return design_limit or MAX_TOKENS


def find_position_count(model: Any) -> int | None:
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
        skipped_rows = 0 if padding is None else padding + 1
        position_counts.append(table.shape[0] - int(getattr(module, "offset", skipped_rows)))
    return min(position_counts, default=None)


def find_padding_id(model: Any, tokenizer: Any) -> int:
    """Return the id of the padding token, which fills up short rows.

    Heads that read the last token find it by this id in the configuration, not by a mask.
    """
    ids = (getattr(_find_text_config(model), "pad_token_id", None), tokenizer.pad_token_id)
    return next((id for id in ids if isinstance(id, int) and id >= 0), 0)


def _find_text_config(model: Any) -> Any:
    return model.config.get_text_config()
