"""Save a small model with random weights that fits the task, in the folder `model`.

It shows what a model's folder needs. Replace it with your own model: the comments about labels,
the tokenizer and save_pretrained apply to every model of transformers.
"""

import json
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    BertConfig,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    PreTrainedTokenizerFast,
    ViltConfig,
    ViltForQuestionAnswering,
    ViTConfig,
    ViTForImageClassification,
    set_seed,
)

HERE = Path(__file__).parent
MAX_TOKENS = 512  # tokens that the model reads at most
SPECIAL_TOKENS = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
}
"""The special tokens by their names in the tokenizer. Their ids are 0 to 3."""
PICTURE_MODELS = {
    "visual-question-answering": (ViltConfig, ViltForQuestionAnswering),
    "image-classification": (ViTConfig, ViTForImageClassification),
}
"""The configuration and class of models for pictures, by the task's kind."""


def make_tokenizer(texts: list[str]) -> PreTrainedTokenizerFast:
    """Train a byte-pair tokenizer on a few texts.

    The tokenizer encodes unknown texts as single bytes.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=2000,
        special_tokens=list(SPECIAL_TOKENS.values()),
        initial_alphabet=alphabet,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=MAX_TOKENS,
        model_input_names=["input_ids", "attention_mask", "token_type_ids"],
        **SPECIAL_TOKENS,
    )


def main() -> None:
    """Create and save a model and its tokenizer."""
    task = json.loads((HERE / "task.json").read_text(encoding="utf-8"))
    lines = (HERE / "examples.jsonl").read_text(encoding="utf-8").splitlines()
    texts: list[str] = []
    for line in lines:
        texts += map(str, json.loads(line)["inputs"].values())
    tokenizer = make_tokenizer(texts)
    options: dict[str, Any] = {}
    # The task's own labels, in the order of the model's logits; an answer from a passage has none.
    labels = task["labels"] or []
    if labels:
        options["id2label"] = dict(enumerate(labels))
        options["label2id"] = {label: number for number, label in enumerate(labels)}
    if task["kind"] in PICTURE_MODELS:
        options |= {"image_size": 64, "patch_size": 16}
    text_head = BertForSequenceClassification if labels else BertForQuestionAnswering
    config_class, head = PICTURE_MODELS.get(task["kind"], (BertConfig, text_head))
    config = config_class(
        vocab_size=len(tokenizer),
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=128,
        max_position_embeddings=MAX_TOKENS,
        initializer_range=0.5,
        **options,
    )
    set_seed(1)
    model = head(config)
    model.save_pretrained(HERE / "model")  # config.json and model.safetensors
    tokenizer.save_pretrained(HERE / "model")  # tokenizer.json


if __name__ == "__main__":
    main()
