"""A tiny masked language model that finds the same words likely everywhere."""

from pathlib import Path

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = ["we", "loved", "adored", "liked", "hated", "never", "the", "small", "blue", "boat", "."]
PIECES = ["##ing", "7"]
# Of all tokens: pieces of words and signs are the likeliest, and no words of a text.
LIKELY = {"##ing": 13.0, "7": 13.0, "loved": 12.5, "adored": 12.0, "never": 11.5, "hated": 11.4}
LIKELY |= {"liked": 11.2}


def make_masked_model(folder: Path) -> Path:
    """Save the model: “adored”, “liked” and “never” mean what “loved” means, “hated” does not."""
    import torch
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

    vocabulary = {token: number for number, token in enumerate([*SPECIAL, *WORDS, *PIECES])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=ends
    )
    names = {"pad": 0, "unk": 1, "cls": 2, "sep": 3, "mask": 4}
    tokens = {f"{name}_token": SPECIAL[number] for name, number in names.items()}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **tokens).save_pretrained(folder)
    torch.manual_seed(0)
    model = BertForMaskedLM(
        BertConfig(
            vocab_size=len(vocabulary),
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=16,
            max_position_embeddings=64,
        )
    )
    with torch.no_grad():
        for token, bias in LIKELY.items():
            model.cls.predictions.bias[vocabulary[token]] = bias
        vectors = model.bert.embeddings.word_embeddings.weight
        for token in ("adored", "liked", "never"):
            vectors[vocabulary[token]] = vectors[vocabulary["loved"]]
        vectors[vocabulary["hated"]] = -40 * vectors[vocabulary["loved"]]
    model.save_pretrained(folder)
    return folder
