"""The tokenizer of a model, as transformers builds it, stored next to its ONNX file."""

import json
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from .capacity import (
    MAX_TOKENS,
    UNLIMITED_TOKENS,
    build_empty_model,
    find_input_names,
    find_padding_id,
    find_token_limit,
)
from .codecs import Codec, Side, choose_codec
from .errors import MisconfiguredError, get_first_line
from .spec import HEAD_BY_KIND, IMAGE_CLASSIFICATION, ModelFolder, ModelSpec

PICTURE_QUESTION_TOKENS = 512  # of a question on a picture, for tokenizers that name no limit
PACKED_INPUTS = ("places", "spots", "owners")  # see arrays.pack_rows
Filling = Literal["right", "left", "equal", "alone"]
"""How rows share a batch.

right, left: short rows are padded at this end. equal: only rows of equal length share a batch.
alone: no rows do.
"""


@dataclass(frozen=True)
class ModelTokenizer:
    """A tokenizer with the model's input format.

    inputs: the names of the input arrays, in order. padding_id: the id of the token that pads short
    rows. token_limit: the maximum number of tokens. filling: how rows share a batch. cut_side: the
    end at which long texts are truncated.
    """

    tokenizer: Tokenizer
    inputs: tuple[str, ...]
    padding_id: int
    token_limit: int
    filling: Filling = "right"
    cut_side: Side = "right"

    @property
    def is_packed(self) -> bool:
        """Return whether the model takes batches without padding."""
        return "owners" in self.inputs

    def adapt_to_packing(self) -> "ModelTokenizer":
        """Return this tokenizer for a packed model: the arrays of `pack_rows` replace the mask."""
        inputs = [name for name in self.inputs if name != "attention_mask"]
        inputs += PACKED_INPUTS
        return replace(self, inputs=tuple(inputs))


def read_tokenizer(spec: ModelSpec, model: ModelFolder) -> ModelTokenizer:
    """Read the tokenizer of a model's folder. Imports transformers. Raises MisconfiguredError.

    A model that reads only pictures gets a tokenizer that is never used. `filling` is set later,
    by `trial.choose_filling`.
    """
    if model.kind == IMAGE_CLASSIFICATION:
        return ModelTokenizer(Tokenizer(WordLevel({"": 0}, "")), ("pixel_values",), 0, MAX_TOKENS)
    import transformers

    folder = model.path
    load_options = {"local_files_only": True, "trust_remote_code": False}
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **load_options)
    except Exception as error:  # transformers raises many kinds
        raise MisconfiguredError(
            f"{spec.name}: no tokenizer in {folder}: {get_first_line(error)} Save the model's own "
            "there: tokenizer.save_pretrained(folder)."
        ) from error
    # Only fast tokenizers can be used by several threads and kept without transformers.
    if not tokenizer.is_fast:
        raise MisconfiguredError(
            f"{spec.name}: {folder} has no tokenizer.json. Save its tokenizer as a fast one: "
            "AutoTokenizer.from_pretrained(…, use_fast=True).save_pretrained(folder)."
        )
    if model.pictures:
        type_names = ("token_type_ids",) if "token_type_ids" in tokenizer.model_input_names else ()
        names = ("input_ids", "attention_mask", *type_names, "pixel_values")
        limit = tokenizer.model_max_length
        if limit >= UNLIMITED_TOKENS:
            limit = PICTURE_QUESTION_TOKENS
        return ModelTokenizer(
            tokenizer.backend_tokenizer, names, tokenizer.pad_token_id or 0, limit
        )
    try:
        unloaded_model = build_empty_model(getattr(transformers, HEAD_BY_KIND[model.kind]), folder)
    except Exception as error:  # transformers raises many kinds
        raise MisconfiguredError(
            f"{spec.name}: config.json describes no model that transformers "
            f"{version('transformers')} can make: {get_first_line(error)} Save it again with that "
            "version, model.save_pretrained(folder), or submit an image."
        ) from error
    return ModelTokenizer(
        tokenizer=tokenizer.backend_tokenizer,
        inputs=find_input_names(unloaded_model, tokenizer),
        padding_id=find_padding_id(unloaded_model, tokenizer),
        token_limit=find_token_limit(unloaded_model, tokenizer),
        cut_side=tokenizer.truncation_side,
    )


def build_codec(folder: ModelFolder, model_tokenizer: ModelTokenizer) -> Codec:
    """Return the codec of a model. Texts are truncated at the lower of both limits on tokens."""
    limit = min(folder.max_length or model_tokenizer.token_limit, model_tokenizer.token_limit)
    return choose_codec(folder, model_tokenizer.tokenizer, limit, model_tokenizer.cut_side)


def save_tokenizer(model_tokenizer: ModelTokenizer, folder: Path) -> None:
    """Write the tokenizer and its settings to a folder."""
    model_tokenizer.tokenizer.save(str(folder / "tokenizer.json"))
    token_settings = {
        "inputs": model_tokenizer.inputs,
        "pad": model_tokenizer.padding_id,
        "limit": model_tokenizer.token_limit,
        "fill": model_tokenizer.filling,
        "cut_side": model_tokenizer.cut_side,
        # tokenizer.json lacks it.
        "splits_special": model_tokenizer.tokenizer.encode_special_tokens,
    }
    (folder / "tokens.json").write_text(json.dumps(token_settings))


def load_tokenizer(folder: Path) -> ModelTokenizer:
    """Read the tokenizer and settings that `save_tokenizer` wrote.

    This needs neither transformers nor torch, which saves a second and about 500 MB. Settings that
    older files lack get default values.
    """
    token_settings = json.loads((folder / "tokens.json").read_text())
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.encode_special_tokens = token_settings.get("splits_special", False)
    return ModelTokenizer(
        tokenizer=tokenizer,
        inputs=tuple(token_settings["inputs"]),
        padding_id=token_settings["pad"],
        token_limit=token_settings["limit"],
        filling=token_settings.get("fill", "right"),
        cut_side=token_settings.get("cut_side", "right"),
    )
