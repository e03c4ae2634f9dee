"""Run a decoder from onnxruntime-genai's builder: many conversations in one batch."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from serving.backends import count_cores
from serving.generation.sampling import Logits

Cache = list[NDArray[np.float32]]


class Decoder:
    """A decoder with the keys and values of `rows` conversations of at most `max_length` tokens.

    A row's memory is allocated as tokens are added: 2 x layers x heads x head size x 4 bytes per
    token. Not thread-safe.
    """

    def __init__(self, folder: Path, *, rows: int, max_length: int | None) -> None:
        import onnxruntime

        config = json.loads((folder / "genai_config.json").read_text())["model"]
        decoder_config = config["decoder"]
        limit = int(config["context_length"])
        # The model cannot look at more tokens than its context has.
        self.rows, self.max_length = rows, min(max_length or limit, limit)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = count_cores(), 1
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
        )
        names = []
        for layer in range(decoder_config["num_hidden_layers"]):
            names.append((f"past_key_values.{layer}.key", f"present.{layer}.key"))
            names.append((f"past_key_values.{layer}.value", f"present.{layer}.value"))
        memory_shape = (
            rows,
            decoder_config["num_key_value_heads"],
            self.max_length,
            decoder_config["head_size"],
        )
        # The model reads the past from these arrays and writes the present into the same.
        self._memory = {name: np.zeros(memory_shape, np.float32) for name in names}
        self._bindings: dict[tuple[int, int], Any] = {}

    def warm_up(self) -> None:
        """Write one token into every row, so that the memory for the largest batch is allocated.

        Otherwise the first simultaneous conversations would have to wait for the allocation. The
        tokens are overwritten before they are read.
        """
        self.append_tokens([0] * self.rows, [0] * self.rows)

    def read_tokens(self, row: int, token_ids: Sequence[int], start: int) -> Logits:
        """Append tokens after a row's first `start` tokens; return logits [tokens, vocabulary]."""
        width = start + len(token_ids)
        mask = np.ones((1, width), np.int64)
        logits: Logits = self._run_session(row, row + 1, np.array([token_ids], np.int64), mask)[0]
        return logits

    def append_tokens(self, token_ids: Sequence[int], lengths: Sequence[int]) -> Logits:
        """Append one token to each of the first rows; return logits [rows, vocabulary].

        lengths: the number of tokens that each row already has.
        """
        token_counts = np.array(lengths)[:, None]
        # Each row looks at its own tokens and the new one.
        mask = (np.arange(token_counts.max() + 1) <= token_counts).astype(np.int64)
        logits: Logits = self._run_session(
            0, len(token_ids), np.array(token_ids, np.int64)[:, None], mask
        )[:, -1]
        return logits

    def copy_to_row(self, source: int, target: int, length: int) -> None:
        """Copy the first `length` tokens of a row to another row."""
        for memory in self._memory.values():
            memory[target, :, :length] = memory[source, :, :length]

    def copy_row(self, row: int, length: int) -> Cache:
        """Return a copy of the state of the first `length` tokens of a row."""
        return [memory[row, :, :length].copy() for memory in self._memory.values()]

    def restore_row(self, row: int, cache: Cache, length: int) -> None:
        """Fill a row with the first `length` tokens of a copy made by `copy_row`."""
        for memory, copy in zip(self._memory.values(), cache, strict=True):
            memory[row, :, :length] = copy[:, :length]

    def _run_session(
        self, first: int, end: int, ids: NDArray[Any], mask: NDArray[Any]
    ) -> NDArray[Any]:
        # The arrays are bound once for each range of rows.
        binding = self._bindings.get((first, end)) or self._bind_buffers(first, end)
        binding.bind_cpu_input("input_ids", ids)
        binding.bind_cpu_input("attention_mask", mask)
        binding.bind_output("logits", "cpu")
        self._session.run_with_iobinding(binding)
        logits: NDArray[Any] = binding.get_outputs()[-1].numpy()
        return logits

    def _bind_buffers(self, first: int, end: int) -> Any:
        binding = self._bindings[first, end] = self._session.io_binding()
        for (past, present), memory in self._memory.items():
            rows = memory[first:end]
            buffer = ("cpu", 0, np.float32, rows.shape, rows.ctypes.data)
            binding.bind_input(past, *buffer)
            binding.bind_output(present, *buffer)
        return binding
