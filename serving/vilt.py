"""Models for square pictures of one size, as modules that can be exported."""

from typing import Any

import torch


class PictureLogits(torch.nn.Module):
    """A module that maps tokens and pixels [batch, 3, side, side] to logits [batch, labels].

    To support pictures of many sizes, transformers shuffles the patches, which no graph can
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
        image_embeddings = embed_pictures(self.model, pixel_values)
        mask = torch.ones_like(image_embeddings[:, :, 0], dtype=torch.int64)
        types = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        return self.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            image_embeds=image_embeddings,
            pixel_mask=mask,
            **types,
        ).logits


class ImageLogits(torch.nn.Module):
    """A module that maps pixels [batch, 3, side, side] to logits [batch, labels]."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, pixel_values: torch.Tensor) -> Any:
        """Return logits; see the class."""
        return self.model(pixel_values=pixel_values).logits


def embed_pictures(model: Any, pixel_values: torch.Tensor) -> torch.Tensor:
    """Return the patch embeddings of pictures with their positions, [batch, 1 + patches, size]."""
    layer = model.vilt.embeddings
    patches = layer.patch_embeddings(pixel_values.to(layer.cls_token.dtype))
    patches = patches.flatten(2).transpose(1, 2)
    class_token = layer.cls_token.expand(patches.shape[0], -1, -1)
    positioned_patches: torch.Tensor = (
        torch.cat([class_token, patches], 1) + layer.position_embeddings
    )
    return positioned_patches
