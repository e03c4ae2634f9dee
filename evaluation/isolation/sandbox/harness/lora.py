"""Adds a low-rank adapter to the weights of its base."""

import json
from pathlib import Path
from typing import Any

from serving.errors import MisconfiguredError

PREFIX = "base_model.model."


def merge(model: Any, folder: Path) -> None:
    """Add s·B·A to W in place for each pair of the adapter.

    s is alpha / r, or alpha / √r for rsLoRA (Hu et al., LoRA (2021), equation 3; Kalajdzievski,
    rsLoRA (2023)). The folder was checked by `evaluation.isolation.uploads.adapters`. Raises
    MisconfiguredError if a pair does not fit the base.
    """
    import torch
    from safetensors.torch import load_file

    about = json.loads((folder / "adapter_config.json").read_text())
    tensors = load_file(folder / "adapter_model.safetensors")
    rank, alpha = about["r"], about["lora_alpha"]
    scale = alpha / rank
    if about.get("use_rslora"):
        scale = alpha / rank**0.5
    embeddings = model.get_input_embeddings().weight
    with torch.no_grad():
        for name in [name for name in tensors if name.endswith(".lora_A.weight")]:
            place = name.removesuffix(".lora_A.weight").removeprefix(PREFIX)
            down, up = tensors[name].float(), tensors[name.replace("lora_A", "lora_B")].float()
            weight = _weight(model, place)
            update = scale * up @ down
            if about.get("fan_in_fan_out"):
                update = update.T
            if weight is embeddings:  # the update would change the embeddings as well
                raise MisconfiguredError(f"{place} shares its weights with the embeddings.")
            if weight.shape != update.shape:
                raise MisconfiguredError(
                    f"The adapter changes {place} by {tuple(update.shape)} numbers, but the base "
                    f"has {tuple(weight.shape)} there. Was it trained on another base?"
                )
            weight += update


def _weight(model: Any, place: str) -> Any:
    try:
        return model.get_submodule(place).weight
    except AttributeError:
        raise MisconfiguredError(
            f"The adapter changes {place}, which the base does not have. Was it trained on another "
            "base?"
        ) from None
