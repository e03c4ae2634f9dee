"""The tokenizer of a model, as transformers builds it, kept next to its ONNX file."""

import json
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from .capacity import LONGEST, UNLIMITED, bare_model, input_names, padding_id, token_limit
from .codecs import Codec, Side, codec_for
from .errors import MisconfiguredError, first_words
from .spec import HEADS, LOOKS, ModelFolder, ModelSpec

PICTURE_TOKENS = 512  # of a question on a picture, for tokenizers that name no limit
PACKED = ("places", "spots", "owners")  # see arrays.packed_rows
Fill = Literal["right", "left", "equal", "alone"]
"""How rows share a batch: short ones filled at their end or at their start; only rows of equal
length; none."""


@dataclass(frozen=True)
class Tokens:
    """A tokenizer with the model's input format.

    inputs: names of the arrays, in order. pad: the id that pads short rows. limit: maximum number
    of tokens. fill: how rows share a batch. cut_side: where long texts are truncated.
    """

    tokenizer: Tokenizer
    inputs: tuple[str, ...]
    pad: int
    limit: int
    fill: Fill = "right"
    cut_side: Side = "right"

    @property
    def is_packed(self) -> bool:
        """Return whether the model takes batches without padding."""
        return "owners" in self.inputs

    def packed(self) -> "Tokens":
        """Return these tokens with the arrays of `packed_rows` instead of a mask."""
        inputs = [name for name in self.inputs if name != "attention_mask"]
        inputs += PACKED
        return replace(self, inputs=tuple(inputs))


def read_tokens(spec: ModelSpec, model: ModelFolder) -> Tokens:
    """Read the tokenizer of a model's folder. Imports transformers. Raises MisconfiguredError.

    A model that reads only pictures gets a tokenizer that is never used. `fill` is decided later,
    by `trial.choose_filling`.
    """
    if model.kind == LOOKS:
        return Tokens(Tokenizer(WordLevel({"": 0}, "")), ("pixel_values",), 0, LONGEST)
    import transformers

    folder = model.path
    how = {"local_files_only": True, "trust_remote_code": False}
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **how)
    except Exception as error:  # transformers raises many kinds
        raise MisconfiguredError(
            f"{spec.name}: no tokenizer in {folder}: {first_words(error)} Save the model's own "
            "there: tokenizer.save_pretrained(folder)."
        ) from error
    # Only fast tokenizers can be used by several threads and kept without transformers.
    if not tokenizer.is_fast:
        raise MisconfiguredError(
            f"{spec.name}: {folder} has no tokenizer.json. Save its tokenizer as a fast one: "
            "AutoTokenizer.from_pretrained(…, use_fast=True).save_pretrained(folder)."
        )
    if model.pictures:
        types = ("token_type_ids",) if "token_type_ids" in tokenizer.model_input_names else ()
        names = ("input_ids", "attention_mask", *types, "pixel_values")
        limit = tokenizer.model_max_length
        if limit >= UNLIMITED:
            limit = PICTURE_TOKENS
        return Tokens(tokenizer.backend_tokenizer, names, tokenizer.pad_token_id or 0, limit)
    try:
        unloaded_model = bare_model(getattr(transformers, HEADS[model.kind]), folder)
    except Exception as error:  # transformers raises many kinds
        raise MisconfiguredError(
            f"{spec.name}: config.json describes no model that transformers "
            f"{version('transformers')} can make: {first_words(error)} Save it again with that "
            "version, model.save_pretrained(folder), or submit an image."
        ) from error
    return Tokens(
        tokenizer=tokenizer.backend_tokenizer,
        inputs=input_names(unloaded_model, tokenizer),
        pad=padding_id(unloaded_model, tokenizer),
        limit=token_limit(unloaded_model, tokenizer),
        cut_side=tokenizer.truncation_side,
    )


def codec_of(folder: ModelFolder, tokens: Tokens) -> Codec:
    """Return the codec of a model. Texts are truncated at the model's or the settings' limit."""
    limit = min(folder.max_length or tokens.limit, tokens.limit)
    return codec_for(folder, tokens.tokenizer, limit, tokens.cut_side)


def keep_tokens(tokens: Tokens, folder: Path) -> None:
    """Write the tokens into a folder."""
    tokens.tokenizer.save(str(folder / "tokenizer.json"))
    about = {
        "inputs": tokens.inputs,
        "pad": tokens.pad,
        "limit": tokens.limit,
        "fill": tokens.fill,
        "cut_side": tokens.cut_side,
        "splits_special": tokens.tokenizer.encode_special_tokens,  # tokenizer.json lacks it
    }
    (folder / "tokens.json").write_text(json.dumps(about))


def kept_tokens(folder: Path) -> Tokens:
    """Read the tokens that `keep_tokens` wrote.

    This needs neither transformers nor torch, which saves a second and about 500 MB. Settings that
    shipped models lack get the values of their encoder.
    """
    about = json.loads((folder / "tokens.json").read_text())
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.encode_special_tokens = about.get("splits_special", False)
    return Tokens(
        tokenizer=tokenizer,
        inputs=tuple(about["inputs"]),
        pad=about["pad"],
        limit=about["limit"],
        fill=about.get("fill", "right"),
        cut_side=about.get("cut_side", "right"),
    )
