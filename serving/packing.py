"""Run a transformers encoder without computing on padding.

All parts but attention treat tokens one by one, so the rows of a batch can be concatenated.
Attention needs lines of equal width; short rows share one, and each token sees only its own row
(Krell et al. 2021, arXiv 2107.02027). The cost of a batch is then proportional to its tokens.
"""

import threading
from typing import Any, cast

import torch
from transformers import AttentionInterface, PreTrainedModel

from .arrays import pack_rows

ATTENTION_NAME = "dynabench_packed"
TRIAL_ROW_TOKENS = (7, 4, 3)  # of the rows that try a model; two share a line
LOGIT_TOLERANCE = 1e-3  # of logits, which are of the size of 1 to 10


class _Batch(threading.local):
    """The batch that this thread is processing.

    `shape` is the shape of its padded ids. `places`, `spots` and `owners` come from `pack_rows`.
    `tokens` is the index of the token at each position of the lines (any index at empty positions).
    """

    shape: torch.Size
    places: torch.Tensor
    spots: torch.Tensor
    owners: torch.Tensor
    tokens: torch.Tensor
    has_attended: bool
    """Whether the model's layers have called our attention, as only some architectures do."""

    def set_layout(
        self, ids: torch.Tensor, places: torch.Tensor, spots: torch.Tensor, owners: torch.Tensor
    ) -> None:
        self.shape, self.places, self.spots, self.owners = ids.shape, places, spots, owners
        self.has_attended = False
        zeros = torch.zeros_like(owners).flatten()
        self.tokens = zeros.scatter(0, spots, torch.arange(spots.shape[0])).view(owners.shape)

    def pack(self, module: Any, args: Any, hidden: torch.Tensor) -> torch.Tensor:
        """Pack hidden states [batch, longest, size] into [1, tokens, size]."""
        return hidden.flatten(0, 1)[self.places].unsqueeze(0)

    def unpack(self, module: Any, args: Any, output: Any) -> Any:
        """Unpack the output's hidden states [1, tokens, size] into [batch, longest, size]."""
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
        """Compute attention within rows.

        query, key, value: [1, heads, tokens, size]. Returns [1, tokens, heads, size] and None.
        """
        self.has_attended = True
        _, heads, _, size = query.shape
        # One gather lays tokens on lines and brings heads to the front: [lines, heads, width].
        token_indices = self.tokens[:, None, :] * heads + torch.arange(heads)[None, :, None]
        query, key, value = (
            array.transpose(1, 2).reshape(-1, size)[token_indices] for array in (query, key, value)
        )
        is_foreign = self.owners[:, None, None, :] != self.owners[:, None, :, None]
        mask = torch.where(is_foreign, -1e9, 0.0).to(query.dtype)
        scores = query @ key.transpose(-1, -2) * scaling + mask
        attended = (torch.softmax(scores, -1) @ value).transpose(1, 2)
        return attended.flatten(0, 1)[self.spots].unsqueeze(0), None


_batch = _Batch()
AttentionInterface.register(ATTENTION_NAME, _batch.attend)


class PackedModule(torch.nn.Module):
    """A module that maps padded ids and the arrays of `pack_rows` to logits.

    Creating one changes `model` permanently. If the architecture cannot be packed, it raises an
    exception of any kind.
    """

    def __init__(self, logits_module: torch.nn.Module, model: PreTrainedModel) -> None:
        super().__init__()
        self._logits_module = logits_module
        base = cast(Any, model.base_model)
        base.embeddings.register_forward_hook(_batch.pack)
        encoder = base.encoder if hasattr(base, "encoder") else base.transformer
        encoder.register_forward_hook(_batch.unpack)
        model.set_attn_implementation(ATTENTION_NAME)

    def forward(
        self,
        input_ids: torch.Tensor,
        token_type_ids: torch.Tensor | None = None,
        *,
        places: torch.Tensor,
        spots: torch.Tensor,
        owners: torch.Tensor,
    ) -> torch.Tensor:
        """Return the logits for padded ids. The columns of padding are arbitrary."""
        _batch.set_layout(input_ids, places, spots, owners)
        return cast(torch.Tensor, self._logits_module(input_ids, None, token_type_ids))


def pack_model(
    logits_module: torch.nn.Module, model: PreTrainedModel, padding_id: int
) -> PackedModule | None:
    """Return the packed module if its fp32 logits agree with those of the padded model, else None.

    They may differ by LOGIT_TOLERANCE. None, too, if the architecture cannot be packed. The model
    may be changed in either case.
    """
    # A small batch with padding, as a model usually gets it.
    is_token = torch.arange(max(TRIAL_ROW_TOKENS)) < torch.tensor(TRIAL_ROW_TOKENS)[:, None]
    last_id = model.config.vocab_size - 1  # none of the last ids is the padding's
    ids = torch.where(
        is_token, last_id - torch.arange(is_token.numel()).view(is_token.shape), padding_id
    )
    layout = {name: torch.from_numpy(array) for name, array in pack_rows(TRIAL_ROW_TOKENS).items()}
    with torch.inference_mode():
        try:
            padded_logits = logits_module(ids, is_token.long())
            packed_model = PackedModule(logits_module, model).eval()
            packed_logits = packed_model(ids, **layout)
        except Exception:  # whatever the code of an architecture raises that it does not fit
            return None
        if packed_logits.dim() == 3:  # of spans, columns of padding may contain anything
            padded_logits, packed_logits = (
                padded_logits * is_token[:, None],
                packed_logits * is_token[:, None],
            )
        is_equal = torch.allclose(
            padded_logits, packed_logits, rtol=LOGIT_TOLERANCE, atol=LOGIT_TOLERANCE
        )
    return packed_model if _batch.has_attended and is_equal else None
