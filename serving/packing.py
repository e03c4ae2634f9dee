"""A transformers encoder that works on no padding.

All but attention treats tokens one by one, so the rows of a batch can stand one after another.
Attention needs lines of equal width; short rows share one, and each token looks only at its own row
(Krell et al. 2021, arXiv 2107.02027). So a batch of any lengths costs what its tokens cost.
"""

import threading
from typing import Any, cast

import torch
from transformers import AttentionInterface, PreTrainedModel

from .arrays import packed_rows

ATTENTION = "dynabench_packed"
SIZES = (7, 4, 3)  # of the rows that try a model; two share a line
TOLERANCE = 1e-3  # of logits, which are of the size of 1 to 10


class _Batch(threading.local):
    """The batch that this thread is processing.

    `shape` is that of its padded ids, `places`, `spots` and `owners` come from `packed_rows`, and
    `tokens` is the index of the token at each position of the lines (any index at empty ones).
    """

    shape: torch.Size
    places: torch.Tensor
    spots: torch.Tensor
    owners: torch.Tensor
    tokens: torch.Tensor
    has_attended: bool
    """Whether layers have called our attention, as only some architectures do."""

    def lay(
        self, ids: torch.Tensor, places: torch.Tensor, spots: torch.Tensor, owners: torch.Tensor
    ) -> None:
        self.shape, self.places, self.spots, self.owners = ids.shape, places, spots, owners
        self.has_attended = False
        none = torch.zeros_like(owners).flatten()
        self.tokens = none.scatter(0, spots, torch.arange(spots.shape[0])).view(owners.shape)

    def pack(self, module: Any, args: Any, hidden: torch.Tensor) -> torch.Tensor:
        """Pack [batch, longest, size] into [1, tokens, size]."""
        return hidden.flatten(0, 1)[self.places].unsqueeze(0)

    def unpack(self, module: Any, args: Any, output: Any) -> Any:
        """Unpack [1, tokens, size] into [batch, longest, size]."""
        hidden = output["last_hidden_state"][0]
        batch, longest = self.shape
        padded = hidden.new_zeros(batch * longest, hidden.shape[1])
        padded = padded.index_copy(0, self.places, hidden)
        output["last_hidden_state"] = padded.view(batch, longest, -1)
        return output

    def attend(
        self,
        module: torch.nn.Module,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attention_mask: torch.Tensor | None,
        scaling: float,
        **options: Any,
    ) -> tuple[torch.Tensor, None]:
        """Compute attention within rows: [1, heads, tokens, size] to [1, tokens, heads, size]."""
        self.has_attended = True
        _, heads, _, size = query.shape
        # One gather lays tokens on lines and brings heads to the front: [lines, heads, width].
        into = self.tokens[:, None, :] * heads + torch.arange(heads)[None, :, None]
        query, key, value = (
            array.transpose(1, 2).reshape(-1, size)[into] for array in (query, key, value)
        )
        is_foreign = self.owners[:, None, None, :] != self.owners[:, None, :, None]
        mask = torch.where(is_foreign, -1e9, 0.0).to(query.dtype)
        scores = query @ key.transpose(-1, -2) * scaling + mask
        attended = (torch.softmax(scores, -1) @ value).transpose(1, 2)
        return attended.flatten(0, 1)[self.spots].unsqueeze(0), None


_batch = _Batch()
AttentionInterface.register(ATTENTION, _batch.attend)


class Packed(torch.nn.Module):
    """A module from padded ids, and the arrays of `packed_rows`, to logits.

    It changes `model` permanently. Raises any exception of an architecture that cannot be packed.
    """

    def __init__(self, logits: torch.nn.Module, model: PreTrainedModel) -> None:
        super().__init__()
        self._logits = logits
        base = cast(Any, model.base_model)
        base.embeddings.register_forward_hook(_batch.pack)
        encoder = base.encoder if hasattr(base, "encoder") else base.transformer
        encoder.register_forward_hook(_batch.unpack)
        model.set_attn_implementation(ATTENTION)

    def forward(
        self,
        input_ids: torch.Tensor,
        token_type_ids: torch.Tensor | None = None,
        *,
        places: torch.Tensor,
        spots: torch.Tensor,
        owners: torch.Tensor,
    ) -> torch.Tensor:
        """Run as `logits` would. The padding's columns of the result are arbitrary."""
        _batch.lay(input_ids, places, spots, owners)
        return cast(torch.Tensor, self._logits(input_ids, None, token_type_ids))


def pack_model(logits: torch.nn.Module, model: PreTrainedModel, pad: int) -> Packed | None:
    """Return the packed module if it gives the logits of the padded one in fp32, else None.

    The model may be changed in either case.
    """
    # A small batch with padding, as a model usually gets it.
    real = torch.arange(max(SIZES)) < torch.tensor(SIZES)[:, None]
    last = model.config.vocab_size - 1  # none of the last ids is the padding's
    ids = torch.where(real, last - torch.arange(real.numel()).view(real.shape), pad)
    layout = {name: torch.from_numpy(array) for name, array in packed_rows(SIZES).items()}
    with torch.inference_mode():
        try:
            padded_logits = logits(ids, real.long())
            packed_model = Packed(logits, model).eval()
            packed_logits = packed_model(ids, **layout)
        except Exception:  # whatever the code of an architecture raises that it does not fit
            return None
        if packed_logits.dim() == 3:  # of spans, columns of padding may contain anything
            padded_logits, packed_logits = (
                padded_logits * real[:, None],
                packed_logits * real[:, None],
            )
        agrees = torch.allclose(padded_logits, packed_logits, rtol=TOLERANCE, atol=TOLERANCE)
    return packed_model if _batch.has_attended and agrees else None
