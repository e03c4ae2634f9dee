"""Run encodings through a model: ONNX Runtime (the fast CPU backend) or torch (CPU, CUDA)."""

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

from .arrays import build_arrays, cut_padding, pack_rows, run_in_parts
from .codecs import Logits, ModelInput
from .errors import CannotExportError, MisconfiguredError, get_first_line
from .spec import (
    HEAD_BY_KIND,
    IMAGE_CLASSIFICATION,
    SPAN,
    TEXT_GENERATION,
    ModelFolder,
    ModelSpec,
    PictureSettings,
)
from .tokens import ModelTokenizer, load_tokenizer, read_tokenizer, save_tokenizer
from .trial import Trial, build_torch_run, choose_filling, run_trial

if TYPE_CHECKING:
    import torch

logger = logging.getLogger(__name__)

SAVE_CODE = "model.save_pretrained(folder); tokenizer.save_pretrained(folder)."
MAX_SIZE_RATIO = 1.05  # on a CPU padding costs what tokens cost


class Backend(Protocol):
    """A loaded model.

    workers: how many threads may call `run` at once, each using one core. max_batch: the best
    number of encodings per call. max_size_ratio: the best ratio between the largest and the
    smallest encoding of a call; None if sizes do not matter.
    """

    workers: int
    max_batch: int
    max_size_ratio: float | None

    def run(self, batch: Sequence[ModelInput]) -> Sequence[Logits]:
        """Return float32 logits per encoding: [labels], or [2, tokens] for extractive QA."""


def count_cores() -> int:
    """Return the number of CPU cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # a container may have fewer than the machine
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def build_backend_version(spec: ModelSpec, kind: str) -> str:
    """Return the library version that determines a model's numbers.

    Includes the device if it is not a CPU.
    """
    if kind == TEXT_GENERATION:
        return f"{version('onnxruntime')}, built by {version('onnxruntime-genai')}"
    if spec.backend == "onnx":
        return version("onnxruntime")
    import torch

    if torch.cuda.is_available():
        return f"{torch.__version__} cuda"
    return str(torch.__version__)


def load_backend(
    spec: ModelSpec, folder: ModelFolder, *, export_folder: Path
) -> tuple[Backend, ModelTokenizer]:
    """Load a spec's backend and its tokenizer.

    export_folder: the folder of its ONNX file. If it is missing, first exports the model, which
    takes minutes. Raises CannotExportError if ONNX Runtime cannot run the model as transformers
    does.
    """
    if spec.backend == "torch":
        model, model_tokenizer, _ = _prepare_export(spec, folder)
        return TorchBackend(model, model_tokenizer), model_tokenizer
    if not export_folder.exists():
        _export_once(spec, folder, export_folder)
    model_tokenizer = load_tokenizer(export_folder)
    return OnnxBackend(
        export_folder / "model.onnx", model_tokenizer, is_int8=spec.precision == "int8"
    ), model_tokenizer


def _export_once(spec: ModelSpec, folder: ModelFolder, export_folder: Path) -> None:
    """Export the model to ONNX, which takes minutes.

    Raises CannotExportError if that fails. The failure is stored, so that later calls raise the
    error at once.
    """
    failure_file = export_folder.with_name(f"{export_folder.name}.failed")
    if failure_file.exists():
        raise CannotExportError(spec.name, failure_file.read_text())
    logger.info("%s: exporting to ONNX, once", spec.name)
    try:
        export_onnx(spec, folder, export_folder=export_folder)
    except CannotExportError as error:
        failure_file.write_text(error.reason)
        raise


class OnnxBackend:
    """A backend with an ONNX Runtime session that has no threads of its own.

    Each core has one caller.
    """

    def __init__(self, graph: Path, model_tokenizer: ModelTokenizer, *, is_int8: bool) -> None:
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
        self._model_tokenizer, self.workers = model_tokenizer, count_cores()
        self.max_size_ratio: float | None = None if model_tokenizer.is_packed else MAX_SIZE_RATIO
        if model_tokenizer.is_packed:
            self.max_batch = 12 if is_int8 else 8
        else:
            self.max_batch = 16 if is_int8 else 4

    def run(self, batch: Sequence[ModelInput]) -> list[Logits]:
        """Run the session; see Backend."""
        return run_in_parts(batch, self._model_tokenizer, self._run_part)

    def _run_part(self, pieces: Sequence[ModelInput]) -> list[Logits]:
        (logits,) = self._session.run(None, build_arrays(pieces, self._model_tokenizer))
        return cut_padding(logits, pieces, self._model_tokenizer.filling)


class TorchBackend:
    """A backend with a PyTorch module, on CUDA if available, otherwise with one thread per caller.

    The module comes from `load_torch_model`, or works without padding.
    """

    workers: int
    max_batch: int
    max_size_ratio: float | None

    def __init__(self, model: "torch.nn.Module", model_tokenizer: ModelTokenizer) -> None:
        import torch

        # A GPU is used when there is one; nothing has to be configured.
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        torch.set_num_threads(1)
        self._model, self._model_tokenizer = model.to(self._device), model_tokenizer
        self.workers, self.max_batch, self.max_size_ratio = count_cores(), 4, MAX_SIZE_RATIO
        if model_tokenizer.is_packed:
            self.max_batch, self.max_size_ratio = 12, None
        elif self._device == "cuda":
            self.workers, self.max_batch, self.max_size_ratio = 1, 64, 2.0
        if getattr(model, "is_stateful", False):
            self.workers = 1

    def run(self, batch: Sequence[ModelInput]) -> list[Logits]:
        """Run the module; see Backend."""
        return run_in_parts(batch, self._model_tokenizer, self._run_part)

    def _run_part(self, pieces: Sequence[ModelInput]) -> list[Logits]:
        import torch

        arrays = build_arrays(pieces, self._model_tokenizer).items()
        with torch.inference_mode():
            logits = self._model(**{k: torch.from_numpy(a).to(self._device) for k, a in arrays})
        return cut_padding(logits.float().cpu().numpy(), pieces, self._model_tokenizer.filling)


def load_transformers_model(spec: ModelSpec, folder: ModelFolder, precision: Any) -> Any:
    """Load a folder's transformers model with the head for its kind. Raises MisconfiguredError."""
    import transformers

    head = getattr(transformers, HEAD_BY_KIND[folder.kind])
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
            f"{spec.name}: cannot load {folder.path}: {get_first_line(error)} Save it "
            f"again with transformers {version('transformers')}: {SAVE_CODE}"
        ) from error
    _check_weights_complete(spec.name, loading_info)
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


def _check_weights_complete(name: str, loading_info: Mapping[str, Any]) -> None:
    """Raise MisconfiguredError if weights are missing or have a wrong shape.

    transformers would initialise them at random.
    """
    if loading_info["missing_keys"]:
        missing = ", ".join(sorted(loading_info["missing_keys"])[:3])
        raise MisconfiguredError(
            f"{name}: the weights lack {missing}, so it would answer by chance. Was it saved "
            "without its head? Load it with the class that it was trained with, and save it: "
            f"{SAVE_CODE}"
        )
    if loading_info["mismatched_keys"]:
        key, stored, model_shape = sorted(loading_info["mismatched_keys"])[0]
        raise MisconfiguredError(
            f"{name}: {key} has the shape {list(stored)} in the weights, but config.json describes "
            f"{list(model_shape)}. Weights and configuration must be of one model, with a head of "
            f"as many outputs as there are labels; save both together: {SAVE_CODE}"
        )


def restore_attention(model: Any) -> None:
    """Restore BigBird's configured attention, which a short text switches to full."""
    restore = getattr(model.base_model, "set_attention_type", None)
    if restore:
        restore(model.config.attention_type)


def load_logits_module(model: Any, folder: ModelFolder) -> "torch.nn.Module":
    """Return a module that maps input arrays to logits [batch, labels] or [batch, 2, tokens]."""
    import torch

    if folder.pictures:
        from .vilt import ImageLogits, PictureLogits

        picture_module = ImageLogits if folder.kind == IMAGE_CLASSIFICATION else PictureLogits
        return picture_module(model).eval()

    has_mask_parameter = "attention_mask" in inspect.signature(model.forward).parameters
    restores_attention = hasattr(model.base_model, "set_attention_type")

    class LogitsModule(torch.nn.Module):
        is_stateful = restores_attention

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
            if has_mask_parameter:
                arrays["attention_mask"] = attention_mask
            output = self.model(**arrays)
            if folder.kind == SPAN:
                return torch.stack([output.start_logits, output.end_logits], 1)
            return output.logits

    return LogitsModule().eval()


def load_torch_model(spec: ModelSpec, folder: ModelFolder) -> "torch.nn.Module":
    """Return the module that maps padded arrays to logits, as transformers computes them."""
    return load_logits_module(
        load_transformers_model(spec, folder, _choose_precision(spec)), folder
    )


def _choose_precision(spec: ModelSpec) -> "torch.dtype":
    import torch

    return torch.bfloat16 if spec.precision == "bf16" else torch.float32


def load_model_and_filling(
    spec: ModelSpec, folder: ModelFolder
) -> tuple["torch.nn.Module", ModelTokenizer]:
    """Return the model in float32, and its tokenizer with the `filling` that suits the model.

    With this `filling`, a row gets the same answer in a batch as by itself. Raises
    MisconfiguredError.
    """
    import torch

    model_tokenizer = read_tokenizer(spec, folder)
    if folder.pictures:
        return load_torch_model(spec, folder), model_tokenizer
    logits_module = load_logits_module(load_transformers_model(spec, folder, torch.float32), folder)
    model_tokenizer = choose_filling(
        spec.name,
        logits_module,
        model_tokenizer,
        run_trial(spec.name, logits_module, model_tokenizer, folder),
    )
    return logits_module, model_tokenizer


def _prepare_export(
    spec: ModelSpec, folder: ModelFolder
) -> tuple["torch.nn.Module", ModelTokenizer, Trial | None]:
    """Return the module to export, its tokenizer, and the trial that the export must pass.

    The module works without padding if its architecture allows that and it runs on a CPU. Otherwise
    it comes from `load_torch_model`. The trial is None for models of pictures.
    """
    import torch

    from .packing import pack_model

    model_tokenizer = read_tokenizer(spec, folder)
    if folder.pictures:
        return load_torch_model(spec, folder), model_tokenizer, None
    model = load_transformers_model(spec, folder, torch.float32)
    logits_module = load_logits_module(model, folder)
    trial = run_trial(spec.name, logits_module, model_tokenizer, folder)
    model_tokenizer = choose_filling(spec.name, logits_module, model_tokenizer, trial)
    if spec.backend == "onnx" or not torch.cuda.is_available():
        # Padding costs as much as tokens only on a CPU, where ONNX graphs run, too.
        packed_module, packed_tokenizer = (
            pack_model(logits_module, model, model_tokenizer.padding_id),
            replace(model_tokenizer.adapt_to_packing(), filling="right"),
        )
        if packed_module and trial.is_passed_by(build_torch_run(packed_module, packed_tokenizer)):
            return packed_module.to(_choose_precision(spec)), packed_tokenizer, trial
        logger.info("%s: its architecture cannot be packed; batches are padded", spec.name)
    del model, logits_module
    gc.collect()  # never two in memory
    return load_torch_model(spec, folder), model_tokenizer, trial


def export_onnx(spec: ModelSpec, folder: ModelFolder, *, export_folder: Path) -> None:
    """Write the folder `export_folder` (model.onnx and its tokenizer) atomically.

    If another process has written it in the meantime, its folder is kept. The model works without
    padding if its architecture allows that (see `serving.packing`). Raises CannotExportError.
    """
    model, model_tokenizer, trial = _prepare_export(spec, folder)
    export_folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".export-", dir=export_folder.parent))
    try:
        try:
            write_onnx(model, model_tokenizer, scratch / "fp32.onnx", folder.pictures)
            exported_backend = OnnxBackend(scratch / "fp32.onnx", model_tokenizer, is_int8=False)
        except Exception as error:  # the exporter raises many kinds
            raise CannotExportError(spec.name, f"{type(error).__name__}") from error
        # An exporter may drop a detail of the architecture without an error.
        if trial and not trial.is_passed_by(exported_backend.run):
            raise CannotExportError(spec.name, "the exported model answers differently")
        if spec.precision == "int8":
            _quantise_to_int8(scratch / "fp32.onnx", scratch / "model.onnx")
            for file in scratch.glob("fp32.onnx*"):
                file.unlink()
        else:
            (scratch / "fp32.onnx").rename(scratch / "model.onnx")
        save_tokenizer(model_tokenizer, scratch)
        if not export_folder.exists():  # another process may have been faster
            scratch.replace(export_folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def write_onnx(
    logits_module: "torch.nn.Module",
    model_tokenizer: ModelTokenizer,
    file: Path,
    pictures: PictureSettings | None = None,
) -> None:
    """Export a module to ONNX with dynamic dimensions; only the size of a picture is fixed.

    The example input has a different size in each dimension, so that none are taken to be equal.
    """
    import torch

    sizes = (5, 4, 3)
    example = {
        name: torch.ones((len(sizes), max(sizes)), dtype=torch.int64)
        for name in model_tokenizer.inputs
    }
    if pictures:
        example["pixel_values"] = torch.ones((len(sizes), 3, pictures.side, pictures.side))
    if model_tokenizer.is_packed:
        example |= {name: torch.from_numpy(array) for name, array in pack_rows(sizes).items()}
    shapes = {}
    for name, array in example.items():
        # All dimensions are free, but of pictures only their number.
        free_dimension_count = 1 if name == "pixel_values" else array.dim()
        shapes[name] = dict.fromkeys(range(free_dimension_count), torch.export.Dim.DYNAMIC)
    program = torch.onnx.export(
        logits_module,
        kwargs=example,
        input_names=list(model_tokenizer.inputs),
        output_names=["logits"],
        dynamic_shapes=shapes,
        dynamo=True,
        verbose=False,
    )
    assert program is not None
    program.save(file, external_data=True)


def _quantise_to_int8(source: Path, target: Path) -> None:
    """Write an int8 model, with weights quantised per channel.

    Activations are quantised at run time; embeddings are not quantised.
    """
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
