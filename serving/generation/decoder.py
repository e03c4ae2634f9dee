"""Runs a decoder that onnxruntime-genai's builder made: many conversations in one batch."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from serving.backends import cores
from serving.generation.sampling import Logits

Cache = list[NDArray[np.float32]]


class Decoder:
    """A decoder with the keys and values of `rows` conversations of at most `max_length` tokens.

    A row's memory is allocated as its tokens come: 2 x layers x heads x head size x 4 bytes per
    token. Not thread-safe.
    """

    def __init__(self, folder: Path, *, rows: int, max_length: int | None) -> None:
        import onnxruntime

        about = json.loads((folder / "genai_config.json").read_text())["model"]
        shape = about["decoder"]
        limit = int(about["context_length"])
        # The model cannot look at more tokens than its context has.
        self.rows, self.max_length = rows, min(max_length or limit, limit)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = cores(), 1
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
        )
        names = []
        for layer in range(shape["num_hidden_layers"]):
            names.append((f"past_key_values.{layer}.key", f"present.{layer}.key"))
            names.append((f"past_key_values.{layer}.value", f"present.{layer}.value"))
        size = (rows, shape["num_key_value_heads"], self.max_length, shape["head_size"])
        # The model reads the past from these arrays and writes the present into the same.
        self._memory = {name: np.zeros(size, np.float32) for name in names}
        self._bound: dict[tuple[int, int], Any] = {}

    def warm_up(self) -> None:
        """Write one token into every row, which allocates the memory of the widest batch.

        Otherwise the first simultaneous conversations would wait for that. The content is
        overwritten before it is read.
        """
        self.step([0] * self.rows, [0] * self.rows)

    def read(self, row: int, ids: Sequence[int], start: int) -> Logits:
        """Append tokens to a row's first `start` tokens; return logits [tokens, vocabulary]."""
        width = start + len(ids)
        mask = np.ones((1, width), np.int64)
        logits: Logits = self._run(row, row + 1, np.array([ids], np.int64), mask)[0]
        return logits

    def step(self, ids: Sequence[int], lengths: Sequence[int]) -> Logits:
        """Run one more token for each of the first rows; return logits [rows, vocabulary].

        lengths: the number of tokens that each row has already.
        """
        taken = np.array(lengths)[:, None]
        # Each row looks at its own tokens and the new one.
        mask = (np.arange(taken.max() + 1) <= taken).astype(np.int64)
        logits: Logits = self._run(0, len(ids), np.array(ids, np.int64)[:, None], mask)[:, -1]
        return logits

    def move(self, source: int, target: int, length: int) -> None:
        """Copy the first tokens of a row to another row."""
        for memory in self._memory.values():
            memory[target, :, :length] = memory[source, :, :length]

    def copy_of(self, row: int, length: int) -> Cache:
        """Return a copy of the first tokens of a row."""
        return [memory[row, :, :length].copy() for memory in self._memory.values()]

    def put(self, row: int, cache: Cache, length: int) -> None:
        """Fill a row with the first tokens of a copy."""
        for memory, copy in zip(self._memory.values(), cache, strict=True):
            memory[row, :, :length] = copy[:, :length]

    def _run(self, first: int, end: int, ids: NDArray[Any], mask: NDArray[Any]) -> NDArray[Any]:
        # The arrays are bound once for each range of rows.
        binding = self._bound.get((first, end)) or self._bind(first, end)
        binding.bind_cpu_input("input_ids", ids)
        binding.bind_cpu_input("attention_mask", mask)
        binding.bind_output("logits", "cpu")
        self._session.run_with_iobinding(binding)
        logits: NDArray[Any] = binding.get_outputs()[-1].numpy()
        return logits

    def _bind(self, first: int, end: int) -> Any:
        binding = self._bound[first, end] = self._session.io_binding()
        for (past, present), memory in self._memory.items():
            rows = memory[first:end]
            place = ("cpu", 0, np.float32, rows.shape, rows.ctypes.data)
            binding.bind_input(past, *place)
            binding.bind_output(present, *place)
        return binding
