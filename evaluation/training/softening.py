"""Divide the last layer of a model in torch by a temperature, whatever the layer's name is."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

LOGIT_TOLERANCE = 0.05
"""The share by which logits may differ from the expected ones: bfloat16 has two decimals."""


def divide_head(
    model: Any, output_count: int, temperature: float, compute_logits: Callable[[], "torch.Tensor"]
) -> bool:
    """Divide the layer that outputs a model's logits; return whether the layer was found.

    output_count: the number of labels, or 2 for start and end. compute_logits: returns logits of
    the model, by which the layer is found and checked. A model without such a layer is not changed.
    """
    import torch

    used_layers: list[torch.nn.Linear] = []
    hooks = [
        layer.register_forward_hook(lambda layer, *_: used_layers.append(layer))
        for layer in model.modules()
        if isinstance(layer, torch.nn.Linear) and layer.out_features == output_count
    ]
    with torch.inference_mode():
        old_logits = compute_logits()
    for hook in hooks:
        hook.remove()
    if not used_layers:
        return False
    _divide_weights(used_layers[-1], temperature)
    with torch.inference_mode():
        new_logits = compute_logits()
    largest = float(old_logits.abs().max())
    if torch.allclose(
        new_logits * temperature, old_logits, rtol=LOGIT_TOLERANCE, atol=LOGIT_TOLERANCE * largest
    ):
        return True
    _divide_weights(used_layers[-1], 1 / temperature)  # a later layer changes its scores again
    return False


def _divide_weights(layer: "torch.nn.Linear", number: float) -> None:
    import torch

    with torch.no_grad():
        for weights in layer.parameters():
            weights.div_(number)
