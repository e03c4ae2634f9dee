"""Runs encodings through a model: ONNX Runtime (the fast CPU backend) or torch (CPU or CUDA)."""

import gc
import inspect
import logging
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from .arrays import arrays_of, cut_padding, packed_rows, run_in_parts
from .codecs import Logits, Piece
from .errors import CannotExportError, MisconfiguredError, first_words
from .spec import HEADS, LOOKS, SPAN, WRITES, ModelFolder, ModelSpec, PictureSettings
from .tokens import Tokens, keep_tokens, kept_tokens, read_tokens
from .trial import Trial, choose_filling, torch_run, try_alone

if TYPE_CHECKING:
    import torch

logger = logging.getLogger(__name__)

SAVE = "model.save_pretrained(folder); tokenizer.save_pretrained(folder)."
ALIKE = 1.05  # on a CPU padding costs what tokens cost


class Backend(Protocol):
    """A loaded model. `run` may be called by `workers` threads at once, each using one core.

    `max_batch` and `similar` are the best number of encodings per call and the best ratio of their
    sizes; `similar` is None if sizes do not matter.
    """

    workers: int
    max_batch: int
    similar: float | None

    def run(self, batch: Sequence[Piece]) -> Sequence[Logits]:
        """Return logits per encoding, float32: [labels], or [2, tokens] for extractive QA."""


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):  # a container may have fewer than the machine
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def backend_version(spec: ModelSpec, kind: str) -> str:
    """Return the version that determines the numbers, with the device unless it is the CPU."""
    if kind == WRITES:
        return f"{version('onnxruntime')}, built by {version('onnxruntime-genai')}"
    if spec.backend == "onnx":
        return version("onnxruntime")
    import torch

    if torch.cuda.is_available():
        return f"{torch.__version__} cuda"
    return str(torch.__version__)


def load_backend(spec: ModelSpec, folder: ModelFolder, *, exports: Path) -> tuple[Backend, Tokens]:
    """Load a spec's backend, and the tokens for its inputs.

    exports: the folder for its ONNX file. Raises CannotExportError if ONNX Runtime cannot run the
    model as transformers does.
    """
    if spec.backend == "torch":
        model, tokens, _ = _prepared(spec, folder)
        return TorchBackend(model, tokens), tokens
    if not exports.exists():
        _export_once(spec, folder, exports)
    tokens = kept_tokens(exports)
    return OnnxBackend(exports / "model.onnx", tokens, int8=spec.precision == "int8"), tokens


def _export_once(spec: ModelSpec, folder: ModelFolder, exports: Path) -> None:
    """Export the model unless that failed before: it takes minutes. Raises CannotExportError."""
    failure_file = exports.with_name(f"{exports.name}.failed")
    if failure_file.exists():
        raise CannotExportError(spec.name, failure_file.read_text())
    logger.info("%s: exporting to ONNX, once", spec.name)
    try:
        export_onnx(spec, folder, exports=exports)
    except CannotExportError as error:
        failure_file.write_text(error.reason)
        raise


class OnnxBackend:
    """An ONNX Runtime session without threads of its own, called by one thread per core."""

    def __init__(self, graph: Path, tokens: Tokens, *, int8: bool) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        # Each thread of the batcher runs on one core.
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            str(graph),
            options,
            providers=["CPUExecutionProvider"],
            # The fused kernel takes a tenth of an int8 model's time, adding and normalising less.
            disabled_optimizers=["SkipLayerNormFusion"],
        )
        self._tokens, self.workers = tokens, cores()
        self.similar: float | None = None if tokens.is_packed else ALIKE
        if tokens.is_packed:
            self.max_batch = 12 if int8 else 8
        else:
            self.max_batch = 16 if int8 else 4

    def run(self, batch: Sequence[Piece]) -> list[Logits]:
        """Run the session; see Backend."""
        return run_in_parts(batch, self._tokens, self._run_part)

    def _run_part(self, part: Sequence[Piece]) -> list[Logits]:
        (logits,) = self._session.run(None, arrays_of(part, self._tokens))
        return cut_padding(logits, part, self._tokens.fill)


class TorchBackend:
    """A PyTorch module, on CUDA if there is a device, else with one thread per caller.

    The module comes from `torch_model`, or works without padding.
    """

    workers: int
    max_batch: int
    similar: float | None

    def __init__(self, model: "torch.nn.Module", tokens: Tokens) -> None:
        import torch

        # A GPU is used when there is one; nothing has to be configured.
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        torch.set_num_threads(1)
        self._model, self._tokens = model.to(self._device), tokens
        self.workers, self.max_batch, self.similar = cores(), 4, ALIKE
        if tokens.is_packed:
            self.max_batch, self.similar = 12, None
        elif self._device == "cuda":
            self.workers, self.max_batch, self.similar = 1, 64, 2.0
        if getattr(model, "is_stateful", False):
            self.workers = 1

    def run(self, batch: Sequence[Piece]) -> list[Logits]:
        """Run the module; see Backend."""
        return run_in_parts(batch, self._tokens, self._run_part)

    def _run_part(self, part: Sequence[Piece]) -> list[Logits]:
        import torch

        arrays = arrays_of(part, self._tokens).items()
        with torch.inference_mode():
            logits = self._model(**{k: torch.from_numpy(a).to(self._device) for k, a in arrays})
        return cut_padding(logits.float().cpu().numpy(), part, self._tokens.fill)


def read_model(spec: ModelSpec, folder: ModelFolder, precision: Any) -> Any:
    """Load a folder's transformers model with its head. Raises MisconfiguredError."""
    import transformers

    head = getattr(transformers, HEADS[folder.kind])
    try:
        model, loading_info = head.from_pretrained(
            folder.path,
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            dtype=precision,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # they are refused below, by name
        )
    except Exception as error:  # transformers raises many kinds
        raise MisconfiguredError(
            f"{spec.name}: cannot load {folder.path}: {first_words(error)} Save it "
            f"again with transformers {version('transformers')}: {SAVE}"
        ) from error
    _check_complete(spec.name, loading_info)
    # Otherwise an answer could be a label that the head never learned.
    if folder.labels is not None and model.config.num_labels != len(folder.labels):
        raise MisconfiguredError(
            f"{spec.name}: {len(folder.labels)} labels are named, but its head has "
            f"{model.config.num_labels} outputs. Name one label for each, in `labels` of "
            "dynabench.json or `id2label` of config.json, or train a head of the task's labels."
        )
    # safetensors leaves weights as pages of their file, which nobody's memory is charged for.
    for parameter in model.parameters():
        parameter.data = parameter.data.clone()
    return model


def _check_complete(name: str, loading_info: Mapping[str, Any]) -> None:
    """Raise MisconfiguredError for missing weights, which transformers initialised at random."""
    if loading_info["missing_keys"]:
        missing = ", ".join(sorted(loading_info["missing_keys"])[:3])
        raise MisconfiguredError(
            f"{name}: the weights lack {missing}, so it would answer by chance. Was it saved "
            "without its head? Load it with the class that it was trained with, and save it: "
            f"{SAVE}"
        )
    if loading_info["mismatched_keys"]:
        key, stored, model_shape = sorted(loading_info["mismatched_keys"])[0]
        raise MisconfiguredError(
            f"{name}: {key} has the shape {list(stored)} in the weights, but config.json describes "
            f"{list(model_shape)}. Weights and configuration must be of one model, with a head of "
            f"as many outputs as there are labels; save both together: {SAVE}"
        )


def restore_attention(model: Any) -> None:
    """Restore BigBird's configured attention, which its first short text changes to full."""
    restore = getattr(model.base_model, "set_attention_type", None)
    if restore:
        restore(model.config.attention_type)


def logits_of(model: Any, folder: ModelFolder) -> "torch.nn.Module":
    """Return a module from the input arrays to logits [batch, labels] or [batch, 2, tokens]."""
    import torch

    if folder.pictures:
        from .vilt import LooksLogits, PictureLogits

        picture_module = LooksLogits if folder.kind == LOOKS else PictureLogits
        return picture_module(model).eval()

    takes_mask = "attention_mask" in inspect.signature(model.forward).parameters
    restores = hasattr(model.base_model, "set_attention_type")

    class Logits(torch.nn.Module):
        is_stateful = restores

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(
            self,
            input_ids: torch.Tensor,
            attention_mask: torch.Tensor | None = None,
            token_type_ids: torch.Tensor | None = None,
        ) -> Any:
            restore_attention(model)
            arrays = {"input_ids": input_ids}
            if token_type_ids is not None:
                arrays["token_type_ids"] = token_type_ids
            if takes_mask:
                arrays["attention_mask"] = attention_mask
            output = self.model(**arrays)
            if folder.kind == SPAN:
                return torch.stack([output.start_logits, output.end_logits], 1)
            return output.logits

    return Logits().eval()


def torch_model(spec: ModelSpec, folder: ModelFolder) -> "torch.nn.Module":
    """Return the model as transformers runs it, in its precision, from padded arrays to logits."""
    return logits_of(read_model(spec, folder, _choose_precision(spec)), folder)


def _choose_precision(spec: ModelSpec) -> "torch.dtype":
    import torch

    return torch.bfloat16 if spec.precision == "bf16" else torch.float32


def settled_model(spec: ModelSpec, folder: ModelFolder) -> tuple["torch.nn.Module", Tokens]:
    """Return the model in float32, and tokens with which a row in a batch is answered as alone.

    Raises MisconfiguredError.
    """
    import torch

    tokens = read_tokens(spec, folder)
    if folder.pictures:
        return torch_model(spec, folder), tokens
    logits = logits_of(read_model(spec, folder, torch.float32), folder)
    tokens = choose_filling(spec.name, logits, tokens, try_alone(spec.name, logits, tokens, folder))
    return logits, tokens


def _prepared(
    spec: ModelSpec, folder: ModelFolder
) -> tuple["torch.nn.Module", Tokens, Trial | None]:
    """Return the module to run, the tokens for its inputs, and the trial of its answers.

    The module works without padding if its architecture allows that and it runs on a CPU;
    otherwise it is `torch_model`. The trial is None for models of pictures.
    """
    import torch

    from .packing import pack_model

    tokens = read_tokens(spec, folder)
    if folder.pictures:
        return torch_model(spec, folder), tokens, None
    model = read_model(spec, folder, torch.float32)
    logits = logits_of(model, folder)
    trial = try_alone(spec.name, logits, tokens, folder)
    tokens = choose_filling(spec.name, logits, tokens, trial)
    if spec.backend == "onnx" or not torch.cuda.is_available():
        # Padding costs as much as tokens only on a CPU, where ONNX graphs run, too.
        packed, feed = pack_model(logits, model, tokens.pad), replace(tokens.packed(), fill="right")
        if packed and trial.agrees(torch_run(packed, feed)):
            return packed.to(_choose_precision(spec)), feed, trial
        logger.info("%s: its architecture cannot be packed; batches are padded", spec.name)
    del model, logits
    gc.collect()  # never two in memory
    return torch_model(spec, folder), tokens, trial


def export_onnx(spec: ModelSpec, folder: ModelFolder, *, exports: Path) -> None:
    """Write the folder `exports` (model.onnx and its tokens) atomically.

    The model is packed if its architecture allows that. Raises CannotExportError.
    """
    model, tokens, trial = _prepared(spec, folder)
    exports.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".export-", dir=exports.parent))
    try:
        try:
            write_onnx(model, tokens, scratch / "fp32.onnx", folder.pictures)
            exported_backend = OnnxBackend(scratch / "fp32.onnx", tokens, int8=False)
        except Exception as error:  # the exporter raises many kinds
            raise CannotExportError(spec.name, f"{type(error).__name__}") from error
        # An exporter may drop a detail of the architecture without an error.
        if trial and not trial.agrees(exported_backend.run):
            raise CannotExportError(spec.name, "the exported model answers differently")
        if spec.precision == "int8":
            _quantise(scratch / "fp32.onnx", scratch / "model.onnx")
            for file in scratch.glob("fp32.onnx*"):
                file.unlink()
        else:
            (scratch / "fp32.onnx").rename(scratch / "model.onnx")
        keep_tokens(tokens, scratch)
        if not exports.exists():  # another process may have been faster
            scratch.replace(exports)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def write_onnx(
    logits: "torch.nn.Module",
    tokens: Tokens,
    file: Path,
    pictures: PictureSettings | None = None,
) -> None:
    """Export the module with an example whose dimensions all differ and are dynamic.

    Only the size of a picture is fixed.
    """
    import torch

    sizes = (5, 4, 3)
    example = {
        name: torch.ones((len(sizes), max(sizes)), dtype=torch.int64) for name in tokens.inputs
    }
    if pictures:
        example["pixel_values"] = torch.ones((len(sizes), 3, pictures.side, pictures.side))
    if tokens.is_packed:
        example |= {name: torch.from_numpy(array) for name, array in packed_rows(sizes).items()}
    shapes = {}
    for name, array in example.items():
        # All dimensions are free, but of pictures only their number.
        free = 1 if name == "pixel_values" else array.dim()
        shapes[name] = dict.fromkeys(range(free), torch.export.Dim.DYNAMIC)
    program = torch.onnx.export(
        logits,
        kwargs=example,
        input_names=list(tokens.inputs),
        output_names=["logits"],
        dynamic_shapes=shapes,
        dynamo=True,
        verbose=False,
    )
    assert program is not None
    program.save(file, external_data=True)


def _quantise(source: Path, target: Path) -> None:
    """Write int8 weights per channel. Activations are quantised at run time, embeddings not."""
    import onnx
    from onnxruntime.quantization import QuantType, quantize_dynamic

    graph = onnx.load(source)
    del graph.graph.value_info[:]  # the quantiser's shape inference disagrees with torch's names
    quantize_dynamic(
        graph,
        target,
        per_channel=True,
        weight_type=QuantType.QInt8,
        op_types_to_quantize=["MatMul", "Gemm"],
        use_external_data_format=graph.ByteSize() > 2**30,
    )
