"""Examples in other words, by a model in a local folder or by one that people have checked."""

from collections.abc import Callable, Mapping
from pathlib import Path

from evaluation.contract import SetRow
from evaluation.scoring.perturb import Reading, Variant, variant_uid
from evaluation.scoring.perturbations.source import Edit, distance, protected

KIND, VERSION = "paraphrase", 1
MOST_TOKENS = 256
Paraphrase = Callable[[str], str]
"""Says a text in other words, always the same ones."""


class Paraphraser:
    """A model that says a text in other words: greedily, so always in the same ones."""

    def __init__(self, folder: Path, prefix: str = "paraphrase: ") -> None:
        """prefix: what the model wants to read before a text.

        Raises OSError or ValueError where there is no model.
        """
        from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

        self._prefix = prefix
        self._tokens = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        self._model = AutoModelForSeq2SeqLM.from_pretrained(
            folder, local_files_only=True, use_safetensors=True
        ).eval()

    def __call__(self, text: str) -> str:
        """The text in other words."""
        import torch

        read = self._tokens(
            self._prefix + text, return_tensors="pt", truncation=True, max_length=MOST_TOKENS
        )
        with torch.inference_mode():
            said = self._model.generate(
                input_ids=read["input_ids"],
                attention_mask=read["attention_mask"],
                do_sample=False,
                num_beams=1,
                max_new_tokens=MOST_TOKENS,
            )
        return str(self._tokens.decode(said[0], skip_special_tokens=True)).strip()


def paraphrased(
    paraphrase: Paraphrase, row: SetRow, reading: Reading, *, seed: int
) -> Variant | None:
    """The variant of a row in other words; None where nothing changes.

    A field whose addresses, numbers, names, label words or answers would not all stay keeps its
    text. So does the passage in which answers are marked.
    """
    kept = reading.kept(row)
    found = {}
    for name in reading.fields:
        text = row.inputs.get(name)
        if isinstance(text, str) and text and name != reading.passage_field:
            new = paraphrase(text)
            spans = protected(text, kept)
            if new not in ("", text) and all(text[start:end] in new for start, end in spans):
                found[name] = new
    return reworded(row, found, seed=seed) if found else None


def reworded(row: SetRow, fields: Mapping[str, str], *, seed: int) -> Variant:
    """The variant of a row whose fields have these texts instead; its right answers stay."""
    total = sum(
        distance([Edit(0, len(row.inputs[name]), new)], row.inputs[name])
        for name, new in fields.items()
    )
    uid = variant_uid(row.uid, KIND, VERSION, seed)
    return Variant(KIND, SetRow(uid, {**row.inputs, **fields}, row.gold, row.slices), total)
