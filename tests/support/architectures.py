"""Tiny classifiers of many architectures with random weights, each with a tokenizer of its own."""

import copy
import inspect
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

WORDS = [f"w{number}" for number in range(50)]
SPECIAL = ["w_", "<unk>", "<eos>", "<pad>", "<sep>", "<cls>"]  # the first is an ordinary word
VOCABULARY = {token: number for number, token in enumerate([*SPECIAL, *WORDS])}
LABELS = ("positive", "negative", "neutral")
PLACES = 64
CHANCE = random.Random(3)
COUNTS = (1, 2, 3, 3, 5, 8, 13, 20, 30, 61, 70, 150)
TEXTS = [" ".join(CHANCE.choices(WORDS, k=count)) for count in COUNTS]
CLOSE = 1e-3
SIZES = {
    "vocab_size": len(VOCABULARY),
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": PLACES,
    "initializer_range": 0.5,
    "pad_token_id": VOCABULARY["<pad>"],
    "bos_token_id": VOCABULARY["<cls>"],
    "eos_token_id": VOCABULARY["<eos>"],
}
GPT = {"n_positions": PLACES, "n_embd": 32, "n_layer": 2, "n_head": 2}
BOTH_ENDS = "<cls> $A <sep>", "<cls> $A <sep> $B:1 <sep>:1"
AT_THE_END = "$A <sep> <cls>:2", "$A <sep> $B:1 <sep>:1 <cls>:2"
AT_THE_START = "<cls> $A", "<cls> $A <sep> $B"
NOWHERE = "$A", "$A <sep> $B"
WITH_EOS = "<cls> $A <eos>", "<cls> $A <sep> $B <eos>"


@dataclass(frozen=True)
class Architecture:
    """How a tiny model is made.

    more: of its configuration, besides SIZES. template: of its tokenizer, for one text and two.
    says: of its tokenizer, such as `model_input_names`. limit: of tokens.
    drops: what of SIZES its configuration does not take. has_letters: its tokens are letters, as
    transformers gives tokenizers of this type byte pairs whatever was saved.
    """

    type: str
    more: Mapping[str, Any] = field(default_factory=dict)
    template: tuple[str, str] = BOTH_ENDS
    says: Mapping[str, Any] = field(default_factory=dict)
    limit: int = PLACES
    drops: tuple[str, ...] = ()
    has_letters: bool = False


TYPES = {"model_input_names": ["input_ids", "attention_mask", "token_type_ids"]}
NO_PAD = {"pad_token": None}
ARCHITECTURES = {
    "bert": Architecture("bert", says=TYPES),
    "bert that cuts at the left": Architecture(
        "bert", says={**TYPES, "truncation_side": "left", "model_max_length": 32}, limit=32
    ),
    "roberta": Architecture("roberta", {"type_vocab_size": 1}, limit=PLACES - 4),
    "xlm-roberta": Architecture("xlm-roberta", {"type_vocab_size": 1}, limit=PLACES - 4),
    "camembert": Architecture("camembert", {"type_vocab_size": 1}, limit=PLACES - 4),
    "distilbert": Architecture(
        "distilbert", {"dim": 32, "n_layers": 2, "n_heads": 2, "hidden_dim": 32}, says=TYPES
    ),
    "albert": Architecture("albert", {"embedding_size": 16}, says=TYPES),
    "electra": Architecture("electra", {"embedding_size": 16}, says=TYPES),
    "deberta-v2": Architecture(
        "deberta-v2",
        {
            "relative_attention": True,
            "pos_att_type": ["p2c", "c2p"],
            "position_biased_input": False,
            "type_vocab_size": 0,
        },
        says=TYPES,
    ),
    "xlnet": Architecture(
        "xlnet",
        {"d_model": 32, "n_layer": 2, "n_head": 2, "d_inner": 32},
        AT_THE_END,
        {**TYPES, "padding_side": "left"},
        limit=4096,
        drops=("max_position_embeddings",),
    ),
    "ibert": Architecture("ibert", limit=PLACES - 4),
    "nystromformer": Architecture(
        "nystromformer", {"num_landmarks": 4, "segment_means_seq_len": 4}
    ),
    "mpnet": Architecture("mpnet", limit=PLACES - 2),
    "fnet": Architecture("fnet", says={"model_input_names": ["input_ids", "token_type_ids"]}),
    "funnel": Architecture(
        "funnel",
        {
            "d_model": 32,
            "n_head": 2,
            "d_head": 16,
            "d_inner": 32,
            "block_sizes": [1, 1],
            "num_decoder_layers": 1,
            "initializer_std": 0.5,
        },
        AT_THE_END,
        TYPES,
        drops=("num_hidden_layers",),
    ),
    "big_bird": Architecture("big_bird", {"block_size": 4, "num_random_blocks": 1}),
    "longformer": Architecture("longformer", {"attention_window": [8, 8]}, limit=PLACES - 4),
    "convbert": Architecture("convbert", {"embedding_size": 16}, says=TYPES),
    "modernbert": Architecture(
        "modernbert", {"local_attention": 8, "cls_token_id": 5, "sep_token_id": 4}
    ),
    "bart": Architecture(
        "bart",
        {
            "d_model": 32,
            "encoder_layers": 2,
            "decoder_layers": 2,
            "encoder_attention_heads": 2,
            "decoder_attention_heads": 2,
            "encoder_ffn_dim": 32,
            "decoder_ffn_dim": 32,
            "init_std": 0.5,
            "decoder_start_token_id": 4,
        },
        WITH_EOS,
    ),
    "gpt2": Architecture("gpt2", GPT, NOWHERE),
    "gpt2 whose tokenizer has no padding": Architecture(
        "gpt2", {**GPT, "pad_token_id": VOCABULARY["<eos>"]}, NOWHERE, NO_PAD
    ),
    "gpt2 without any padding": Architecture(
        "gpt2", {**GPT, "pad_token_id": None}, NOWHERE, NO_PAD
    ),
    "gpt2 whose tokenizer pads at the left": Architecture(
        "gpt2", GPT, NOWHERE, {"padding_side": "left"}
    ),
    "gpt_neox": Architecture("gpt_neox", template=NOWHERE),
    "llama": Architecture("llama", template=AT_THE_START),
    "llama that pads with its end": Architecture(
        "llama", {"pad_token_id": 4}, WITH_EOS, {"pad_token": "<eos>", "padding_side": "left"}
    ),
    "mistral": Architecture("mistral", {"sliding_window": 8}, AT_THE_START),
    "qwen2": Architecture("qwen2", template=NOWHERE, has_letters=True),
    "phi": Architecture("phi", template=NOWHERE),
    "gemma": Architecture("gemma", {"head_dim": 16}, AT_THE_START, {"padding_side": "left"}),
    "gemma2": Architecture("gemma2", {"head_dim": 16, "sliding_window": 8}, AT_THE_START),
    "opt": Architecture("opt", {"ffn_dim": 32, "word_embed_proj_dim": 32}, AT_THE_START),
    "bloom": Architecture(
        "bloom",
        {"n_layer": 2, "n_head": 2},
        NOWHERE,
        limit=4096,
        drops=("max_position_embeddings",),
    ),
}


def make_model(name: str, folder: Path) -> Path:
    """Write a classifier of ARCHITECTURES into a folder, as `save_pretrained` does."""
    import torch
    from transformers import AutoConfig, AutoModelForSequenceClassification

    made = ARCHITECTURES[name]
    torch.manual_seed(7)
    sizes = {key: value for key, value in SIZES.items() if key not in made.drops}
    named = {"id2label": dict(enumerate(LABELS)), "num_labels": len(LABELS)}
    config = AutoConfig.for_model(made.type, **{**sizes, **named, **made.more})
    AutoModelForSequenceClassification.from_config(config).save_pretrained(folder)
    make_tokenizer(made).save_pretrained(folder)
    return folder


def make_tokenizer(made: Architecture) -> Any:
    """A tokenizer of words between spaces."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.WordLevel(VOCABULARY, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    if made.has_letters:
        letters = {token: number for number, token in enumerate([*SPECIAL, "Ġ", *"w0123456789"])}
        tokenizer = Tokenizer(models.BPE(letters, []))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    single, pair = made.template
    tokenizer.post_processor = processors.TemplateProcessing(
        single=single, pair=pair, special_tokens=[*VOCABULARY.items()][2:6]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        **{"unk_token": "<unk>", "pad_token": "<pad>", "eos_token": "<eos>", **made.says},
    )


def reference(folder: Path, limit: int, *, cut: str = "only_first") -> Callable[..., list[float]]:
    """What `model(**tokenizer(text))` makes of one text, or of a pair, cut to the limit: chances.

    cut: which text of a pair. Each is asked of a model that was asked nothing before.
    """
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    fresh = AutoModelForSequenceClassification.from_pretrained(folder).eval()

    def chances(*texts: str) -> list[float]:
        rule = cut if len(texts) == 2 else True
        arrays = tokenizer(*texts, truncation=rule, max_length=limit, return_tensors="pt")
        taken = inspect.signature(fresh.forward).parameters
        arrays = {name: array for name, array in arrays.items() if name in taken}
        with torch.inference_mode():
            logits = copy.deepcopy(fresh)(**arrays).logits[0]
        return list(logits.softmax(-1).tolist())

    return chances


def example_lines(rows: Sequence[Mapping[str, str]]) -> list[bytes]:
    """The lines that a submission reads."""
    return [
        json.dumps({"id": str(number), "inputs": row}).encode() + b"\n"
        for number, row in enumerate(rows)
    ]


def chances_of(answers: Sequence[bytes]) -> list[list[float]]:
    """The chances in lines of answers, in the order of the examples."""
    told = [json.loads(line) for part in answers for line in part.splitlines()]
    told.sort(key=lambda answer: int(answer["id"]))
    return [[answer["prob"][label] for label in LABELS] for answer in told]


def check_close(
    row: str, found: Sequence[Sequence[float]], wanted: Sequence[Sequence[float]]
) -> None:
    """Print the largest difference of a row of the table, and bound it."""
    difference = max(
        abs(one - other)
        for got, alone in zip(found, wanted, strict=True)
        for one, other in zip(got, alone, strict=True)
    )
    print(f"{row:60} {difference:.0e}")
    assert difference < CLOSE
