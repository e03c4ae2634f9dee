"""The tokenizer of a model, as transformers builds it, kept next to its ONNX file."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from .errors import MisconfiguredError
from .spec import LOOKS, ModelFolder, ModelSpec

LONGEST = 512  # tokens, for tokenizers that name no limit
PACKED = ("places", "spots", "owners")  # see arrays.packed_rows


@dataclass(frozen=True)
class Tokens:
    """A tokenizer and what the model takes: the names of its arrays, in order, the id that fills
    short rows, and the most tokens at once."""

    tokenizer: Tokenizer
    inputs: tuple[str, ...]
    pad: int
    limit: int

    @property
    def is_packed(self) -> bool:
        """Whether the model takes batches without padding."""
        return "owners" in self.inputs

    def packed(self) -> "Tokens":
        """The same for the packed model: where tokens stand instead of which are padding."""
        kept = [name for name in self.inputs if name != "attention_mask"]
        return replace(self, inputs=(*kept, *PACKED))


def read_tokens(spec: ModelSpec, model: ModelFolder) -> Tokens:
    """The tokenizer of a model's folder; imports transformers. Raises MisconfiguredError.

    A model that only looks at pictures has none, and gets one that is never asked.
    """
    if model.kind == LOOKS:
        return Tokens(Tokenizer(WordLevel({"": 0}, "")), ("pixel_values",), 0, LONGEST)
    from transformers import AutoTokenizer

    folder = model.path
    try:
        tokenizer = AutoTokenizer.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False
        )
    except Exception as error:  # transformers raises many kinds
        raise MisconfiguredError(f"{spec.name}: no tokenizer in {folder}: {error}") from error
    if not tokenizer.is_fast:
        raise MisconfiguredError(
            f"{spec.name}: {folder} has no tokenizer.json. Save its tokenizer as a fast one."
        )
    segments = ("token_type_ids",) if "token_type_ids" in tokenizer.model_input_names else ()
    pictures = ("pixel_values",) if model.pictures else ()
    return Tokens(
        tokenizer=tokenizer.backend_tokenizer,
        inputs=("input_ids", "attention_mask", *segments, *pictures),
        pad=tokenizer.pad_token_id or 0,
        limit=tokenizer.model_max_length if tokenizer.model_max_length < 10**6 else LONGEST,
    )


def keep_tokens(tokens: Tokens, folder: Path) -> None:
    """Write them into a folder."""
    tokens.tokenizer.save(str(folder / "tokenizer.json"))
    about = {"inputs": tokens.inputs, "pad": tokens.pad, "limit": tokens.limit}
    (folder / "tokens.json").write_text(json.dumps(about))


def kept_tokens(folder: Path) -> Tokens:
    """Read them back, without transformers and torch: a second faster, some 500 MB less."""
    about = json.loads((folder / "tokens.json").read_text())
    return Tokens(
        tokenizer=Tokenizer.from_file(str(folder / "tokenizer.json")),
        inputs=tuple(about["inputs"]),
        pad=about["pad"],
        limit=about["limit"],
    )
