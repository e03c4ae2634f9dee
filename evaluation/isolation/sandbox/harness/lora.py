"""Add a low-rank adapter to the weights of its base."""

import json
from pathlib import Path
from typing import Any

from serving.errors import MisconfiguredError

WEIGHT_PREFIX = "base_model.model."


def merge_adapter(model: Any, folder: Path) -> None:
    """Add s·B·A to the base's weight W in place, for each pair of matrices A and B in the folder.

    s is alpha / r, or alpha / √r for rsLoRA (Hu et al., LoRA (2021), equation 3; Kalajdzievski,
    rsLoRA (2023)). The folder must have been checked by `evaluation.isolation.uploads.adapters`.
    Raises MisconfiguredError if a pair does not fit the base.
    """
    import torch
    from safetensors.torch import load_file

    adapter_config = json.loads((folder / "adapter_config.json").read_text())
    tensors = load_file(folder / "adapter_model.safetensors")
    rank, alpha = adapter_config["r"], adapter_config["lora_alpha"]
    scale = alpha / rank
    if adapter_config.get("use_rslora"):
        scale = alpha / rank**0.5
    embeddings = model.get_input_embeddings().weight
    with torch.no_grad():
        for name in [name for name in tensors if name.endswith(".lora_A.weight")]:
            layer = name.removesuffix(".lora_A.weight").removeprefix(WEIGHT_PREFIX)
            down, up = tensors[name].float(), tensors[name.replace("lora_A", "lora_B")].float()
            weight = _find_weight(model, layer)
            update = scale * up @ down
            if adapter_config.get("fan_in_fan_out"):
                update = update.T
            if weight is embeddings:  # the update would also change the embeddings
                raise MisconfiguredError(f"{layer} shares its weights with the embeddings.")
            if weight.shape != update.shape:
                raise MisconfiguredError(
                    f"The adapter changes {layer} by {tuple(update.shape)} numbers, but the base "
                    f"has {tuple(weight.shape)} there. Was it trained on another base?"
                )
            weight += update


def _find_weight(model: Any, layer: str) -> Any:
    try:
        return model.get_submodule(layer).weight
    except AttributeError:
        raise MisconfiguredError(
            f"The adapter changes {layer}, which the base does not have. Was it trained on another "
            "base?"
        ) from None
