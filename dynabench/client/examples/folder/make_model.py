"""Save a small model with random weights that fits the task, into the folder `model`.

It shows what a model's folder needs. Put your own model in its place: what is said below about
labels, tokenizer and save_pretrained holds for every model of transformers.
"""

import json
from pathlib import Path

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
LENGTH = 512  # tokens that the model reads at most
MARKS = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
}
"""What the model knows them as; their ids are 0 to 3."""
PICTURES = {
    "visual-question-answering": (ViltConfig, ViltForQuestionAnswering),
    "image-classification": (ViTConfig, ViTForImageClassification),
}
"""Models that look at pictures, by the task's kind."""


def make_tokenizer(texts: list[str]) -> PreTrainedTokenizerFast:
    """Byte pairs, learned from a few texts; single bytes spell every other one."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=2000,
        special_tokens=[*MARKS.values()],
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
        model_max_length=LENGTH,
        model_input_names=["input_ids", "attention_mask", "token_type_ids"],
        **MARKS,
    )


def main() -> None:
    """Save model and tokenizer."""
    task = json.loads((HERE / "task.json").read_text(encoding="utf-8"))
    lines = (HERE / "examples.jsonl").read_text(encoding="utf-8").splitlines()
    tokenizer = make_tokenizer(
        [str(t) for line in lines for t in json.loads(line)["inputs"].values()]
    )
    # The task's own labels, in the order of the model's logits; an answer from a passage has none.
    labels = task["labels"] or []
    named = {"id2label": dict(enumerate(labels)), "label2id": {v: n for n, v in enumerate(labels)}}
    text_head = BertForSequenceClassification if labels else BertForQuestionAnswering
    config_class, head = PICTURES.get(task["kind"], (BertConfig, text_head))
    config = config_class(
        vocab_size=len(tokenizer),
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=128,
        max_position_embeddings=LENGTH,
        initializer_range=0.5,
        **(named if labels else {}),
        **({"image_size": 64, "patch_size": 16} if task["kind"] in PICTURES else {}),
    )
    set_seed(1)
    model = head(config)
    model.save_pretrained(HERE / "model")  # config.json and model.safetensors
    tokenizer.save_pretrained(HERE / "model")  # tokenizer.json


if __name__ == "__main__":
    main()
