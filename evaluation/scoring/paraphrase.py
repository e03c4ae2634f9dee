"""Paraphrase examples with a model in a local folder, or with checked paraphrases."""

from collections.abc import Callable, Mapping
from pathlib import Path

from evaluation.contract import SetRow
from evaluation.scoring.perturb import PerturbationScope, Variant, compute_variant_uid
from evaluation.scoring.perturbations.source import Edit, find_protected_spans, measure_distance

PARAPHRASE_KIND, PARAPHRASE_VERSION = "paraphrase", 1
MAX_TOKENS = 256
ParaphraseFunction = Callable[[str], str]
"""A function that paraphrases a text. Equal texts give equal paraphrases."""


class Paraphraser:
    """A local model that paraphrases texts. Decodes greedily, so equal texts give equal results."""

    def __init__(self, folder: Path, prefix: str = "paraphrase: ") -> None:
        """Load the model. Raises OSError or ValueError if the folder contains none.

        prefix: the instruction that the model expects before a text.
        """
        from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

        self._prefix = prefix
        self._tokens = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        self._model = AutoModelForSeq2SeqLM.from_pretrained(
            # Nothing is downloaded during an evaluation, and pickled weights could run code.
            folder,
            local_files_only=True,
            use_safetensors=True,
        ).eval()

    def __call__(self, text: str) -> str:
        """Return a paraphrase of the text."""
        import torch

        encoding = self._tokens(
            self._prefix + text, return_tensors="pt", truncation=True, max_length=MAX_TOKENS
        )
        with torch.inference_mode():
            tokens = self._model.generate(
                input_ids=encoding["input_ids"],
                attention_mask=encoding["attention_mask"],
                # Greedy, so that a text gets the same words in every run.
                do_sample=False,
                num_beams=1,
                max_new_tokens=MAX_TOKENS,
            )
        return str(self._tokens.decode(tokens[0], skip_special_tokens=True)).strip()


def make_paraphrase(
    paraphrase: ParaphraseFunction, row: SetRow, scope: PerturbationScope, *, seed: int
) -> Variant | None:
    """Return a paraphrased variant of a row; None if no text changes.

    A field keeps its text if the paraphrase would lose an address, number, name, label word or
    answer. The passage in which answers are marked is never paraphrased.

    Parameters
    ----------
    paraphrase
        The function that paraphrases a text.
    row
        The example.
    scope
        The fields that models read, and the phrases that must stay.
    seed
        Part of the variant's id.
    """
    fixed_phrases = scope.list_fixed_phrases(row)
    new_texts = {}
    for name in scope.fields:
        text = row.inputs.get(name)
        if isinstance(text, str) and text and name != scope.passage_field:
            new_text = paraphrase(text)
            spans = find_protected_spans(text, fixed_phrases)
            keeps_all = all(text[start:end] in new_text for start, end in spans)
            if new_text not in ("", text) and keeps_all:
                new_texts[name] = new_text
    if not new_texts:
        return None
    return replace_texts(row, new_texts, seed=seed)


def replace_texts(row: SetRow, fields: Mapping[str, str], *, seed: int) -> Variant:
    """Return the variant of a row in which some texts are replaced; its right answers stay.

    Parameters
    ----------
    row
        The example.
    fields
        The new texts, by field.
    seed
        Part of the variant's id.
    """
    total = 0
    for name, new in fields.items():
        old = row.inputs[name]
        total += measure_distance([Edit(0, len(old), new)], old)
    uid = compute_variant_uid(row.uid, PARAPHRASE_KIND, PARAPHRASE_VERSION, seed)
    return Variant(
        PARAPHRASE_KIND, SetRow(uid, {**row.inputs, **fields}, row.gold, row.slices), total
    )
