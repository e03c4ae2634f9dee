"""Models for square pictures of one size, as modules that can be exported."""

from typing import Any

import torch


class PictureLogits(torch.nn.Module):
    """A module from tokens and pixels [batch, 3, side, side] to logits [batch, labels].

    transformers shuffles the patches, to support pictures of many sizes, which no graph can
    express. Each patch has its position embedding, so the order does not change the answer.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        pixel_values: torch.Tensor,
        token_type_ids: torch.Tensor | None = None,
    ) -> Any:
        """Return logits; see the class."""
        image_embeddings = embedded(self.model, pixel_values)
        mask = torch.ones_like(image_embeddings[:, :, 0], dtype=torch.int64)
        types = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        return self.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            image_embeds=image_embeddings,
            pixel_mask=mask,
            **types,
        ).logits


class LooksLogits(torch.nn.Module):
    """A module from pixels [batch, 3, side, side] to logits [batch, labels]."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, pixel_values: torch.Tensor) -> Any:
        """Return logits; see the class."""
        return self.model(pixel_values=pixel_values).logits


def embedded(model: Any, pixel_values: torch.Tensor) -> torch.Tensor:
    """Return the embedded patches of pictures with their positions, [batch, 1 + patches, size]."""
    layer = model.vilt.embeddings
    patches = layer.patch_embeddings(pixel_values.to(layer.cls_token.dtype))
    patches = patches.flatten(2).transpose(1, 2)
    first = layer.cls_token.expand(patches.shape[0], -1, -1)
    with_places: torch.Tensor = torch.cat([first, patches], 1) + layer.position_embeddings
    return with_places
