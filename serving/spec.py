"""Which model is served and how: from the caller, the folder's dynabench.json and config.json."""

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

from core.files.damage import damage_of
from core.text.words import label_text

from .errors import MisconfiguredError, ServingError
from .folders import resolve_below
from .hub import bound_waiting, hub_failure
from .settings import FILE, Settings, check_keys, order_fields, read_settings

logger = logging.getLogger(__name__)

SEQUENCE, PAIR, SPAN = "sequence-classification", "pair-classification", "extractive-qa"
PICTURE, WRITES = "visual-question-answering", "text-generation"
LOOKS = "image-classification"
FIELDS = {
    SEQUENCE: ("text",),
    PAIR: ("premise", "hypothesis"),
    SPAN: ("question", "passage"),
    PICTURE: ("image", "question"),
    LOOKS: ("image",),
}
HEADS = {
    SEQUENCE: "AutoModelForSequenceClassification",
    PAIR: "AutoModelForSequenceClassification",
    SPAN: "AutoModelForQuestionAnswering",
    PICTURE: "ViltForQuestionAnswering",
    LOOKS: "AutoModelForImageClassification",
    WRITES: "AutoModelForCausalLM",
}
"""The class of transformers that loads a model of a kind."""
OUTPUTS = {SEQUENCE: "label", PAIR: "label", SPAN: "answer", PICTURE: "answer", LOOKS: "label"}
PRECISIONS = {"onnx": ("fp32", "int8"), "torch": ("fp32", "bf16")}
WRITING_PRECISIONS = ("int4", "int8", "fp32")
PACKAGE = "package:"
"""Before the name of an installed package whose GGUF file is the model."""
PICKLE = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
# Weights without code in them, and what a tokenizer needs; nothing else is fetched from a hub.
HUB_FILES = ["*.json", "*.safetensors", "*.txt", "*.model", "*.jinja"]
HUB_ID = re.compile(r"[\w-][\w.-]*/[\w.-]+")
LARGEST_JSON = 8 * 2**20  # of a model's configuration, settings or list of weights


@dataclass(frozen=True)
class ModelSpec:
    """A model to serve. None means that dynabench.json in the model's folder decides.

    `source` is a local folder, a hub id (`org/name`) with the full commit as `revision`, or
    `package:NAME`. `precision` "": int8 for a package, else fp32. `below`: the folder that must
    contain a local one; None for any. `task`: the id of the task that may call it; None for
    everybody.
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
        default = "int8" if self.source.startswith(PACKAGE) else "fp32"
        object.__setattr__(self, "precision", self.precision or default)

    @property
    def is_private(self) -> bool:
        """Return whether an error would reveal to an owner which files this machine has."""
        return self.below is not None and not HUB_ID.fullmatch(self.source)


@dataclass(frozen=True)
class PictureSettings:
    """A model's picture format: `side` x `side` pixels, channels normalised as (x - mean) / std."""

    side: int
    mean: tuple[float, ...]
    std: tuple[float, ...]


@dataclass(frozen=True)
class ModelFolder:
    """A model's files on this machine with complete settings.

    `labels` are in the order of the logits, None for extractive QA. `max_length` counts tokens,
    None for the model's own limit. `fields` are in the order in which the model reads them: for QA
    the second is the passage, for questions on pictures the first is the picture. `context` names
    the field of a pair that is truncated, "" for the first. `pictures` is set for kinds that read
    one.
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
    def cut_field(self) -> str:
        """Return the name of the field that is truncated if the texts are too long together."""
        if self.kind == SPAN:
            return self.fields[1]
        return self.context or self.fields[0]


def shown_error(spec: ModelSpec, error: Exception) -> ServingError:
    """Return the error to show a caller if a model cannot be loaded; the log has the original.

    Every problem with a folder or package of this machine gives the same message.
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
    """Return the folder of a spec, after fetching it if it is on a hub.

    Raises MisconfiguredError and HubAwayError.
    """
    try:
        return _opened(spec)
    except MisconfiguredError as error:
        raise shown_error(spec, error) from None


def _opened(spec: ModelSpec) -> ModelFolder:
    if spec.source.startswith(PACKAGE):
        return _writes(spec, *_packaged(spec), Settings())
    path, weights = _found(spec)
    config = _read(spec, path / "config.json", is_needed=True)
    settings = read_settings(spec.name, _read(spec, path / FILE, is_needed=False))
    kind = spec.kind or settings.kind or _kind_of(spec, config)
    if kind == WRITES:
        return _writes(spec, path, weights, settings)
    if spec.precision not in PRECISIONS.get(spec.backend, ()):
        raise MisconfiguredError(
            f"{spec.name}: backend {spec.backend!r} with precision {spec.precision!r} is not "
            "served. Choose onnx with fp32 or int8, or torch with fp32 or bf16."
        )
    if kind not in FIELDS:
        kinds = ", ".join([*FIELDS, WRITES])
        raise MisconfiguredError(f"{spec.name}: kind {kind!r} is none of {kinds}.")
    return ModelFolder(
        path=path,
        weights=weights,
        kind=kind,
        output=_output(spec, settings, kind),
        labels=None if kind == SPAN else _labels(spec, settings, config),
        max_length=spec.max_length or settings.max_length,
        pictures=_pictures(spec, path, config, kind) if "image" in FIELDS[kind] else None,
        **_fields(spec, settings, kind),
    )


def _fields(spec: ModelSpec, settings: Settings, kind: str) -> dict[str, Any]:
    """Return `fields` in the order in which the model reads them, and `context` for a pair.

    Raises MisconfiguredError.
    """
    usual_fields = FIELDS[kind]
    fields = order_fields(spec.name, settings.fields, spec.fields, usual_fields)
    is_usual = spec.fields is None and set(fields) == set(usual_fields)
    first = spec.fields or (usual_fields if is_usual else fields)
    if kind != PAIR and fields != tuple(first):
        raise MisconfiguredError(
            f"{spec.name}: {FILE}: {kind} reads {' first, then '.join(first)}. Write `fields` in "
            "this order, or take it out."
        )
    return {"fields": fields, "context": "" if fields[0] == first[0] else first[0]}


def _output(spec: ModelSpec, settings: Settings, kind: str) -> str:
    """Return the name of the answer field. Raises MisconfiguredError if the file differs."""
    # The file may be written with the kind's usual name or with the task's.
    usual_name = OUTPUTS[kind]
    if spec.output and settings.output not in (None, spec.output, usual_name):
        raise MisconfiguredError(
            f"{spec.name}: {FILE}: `output` names {settings.output}, but the task's answer is "
            f"{spec.output}. Write that, or take `output` out."
        )
    return spec.output or settings.output or usual_name


def _writes(
    spec: ModelSpec, path: Path, weights: tuple[Path, ...], settings: Settings
) -> ModelFolder:
    """Return the folder of a language model. Raises MisconfiguredError."""
    if spec.backend != "onnx" or spec.precision not in WRITING_PRECISIONS:
        raise MisconfiguredError(
            f"{spec.name}: backend {spec.backend!r} with precision {spec.precision!r} writes no "
            f"text. Choose onnx with {', '.join(WRITING_PRECISIONS)}."
        )
    max_length = spec.max_length or settings.max_length
    return ModelFolder(path, weights, WRITES, ("messages",), "text", None, max_length)


def not_installed(spec: ModelSpec) -> MisconfiguredError:
    """Return the error for a model whose Python package is not installed on the model server."""
    return MisconfiguredError(
        f"{spec.name}: the package {spec.source.removeprefix(PACKAGE)} is not installed. ./run "
        "fetches the one that requirements-language-model.txt pins; elsewhere docs/operators.md "
        "(Install) says how."
    )


def _packaged(spec: ModelSpec) -> tuple[Path, tuple[Path, ...]]:
    """Return the folder of an installed package's GGUF file, and the file. Reads nothing else."""
    name = spec.source.removeprefix(PACKAGE)
    try:
        package_files = files(name) or []
    except PackageNotFoundError:
        raise not_installed(spec) from None
    weights = [Path(str(file.locate())) for file in package_files if file.suffix == ".gguf"]
    if len(weights) != 1:
        raise MisconfiguredError(f"{spec.name}: {name} has {len(weights)} GGUF files; one is read.")
    return weights[0].parent, (weights[0],)


def check_setting_keys(name: str, path: Path) -> None:
    """Raise MisconfiguredError for an unknown key in a folder's dynabench.json."""
    check_keys(name, _read(ModelSpec(name, str(path)), path / FILE, is_needed=False))


def find_weights(spec: ModelSpec) -> tuple[Path, tuple[Path, ...]]:
    """Return the folder of a spec, after fetching it if it is on a hub, and its weights.

    Raises MisconfiguredError, also for pickled weights, and HubAwayError.
    """
    try:
        return _found(spec)
    except MisconfiguredError as error:
        raise shown_error(spec, error) from None


def _found(spec: ModelSpec) -> tuple[Path, tuple[Path, ...]]:
    path = _local_folder(spec) or fetch(spec)
    weights = tuple(sorted(path.glob("*.safetensors")))
    if not weights:
        pickled_names = []
        for pattern in PICKLE:
            pickled_names += [file.name for file in path.glob(pattern)]
        content = (
            f"only pickled weights ({', '.join(pickled_names)})" if pickled_names else "no weights"
        )
        raise MisconfiguredError(
            f"{spec.name}: {path} has {content}. Save the model as safetensors "
            "(save_pretrained does); pickled weights can run code and are refused."
        )
    return path, weights


def _local_folder(spec: ModelSpec) -> Path | None:
    """Return the local folder that a spec names; None if it may not be read or does not exist."""
    path: Path | None = Path(spec.source)
    if spec.below is not None:
        path = resolve_below(spec.source, spec.below)
    return path if path and path.is_dir() else None


def fetch(spec: ModelSpec) -> Path:
    """Fetch a hub id at its commit, only HUB_FILES, and return the folder.

    Raises MisconfiguredError and HubAwayError.
    """
    check_pinned(spec)
    from huggingface_hub import snapshot_download

    bound_waiting()
    try:
        return Path(
            snapshot_download(spec.source, revision=spec.revision, allow_patterns=HUB_FILES)
        )
    except Exception as error:  # the hub's client raises many kinds
        failure = hub_failure(spec.name, spec.source, error)
        if failure is None:
            raise
        raise failure from error


def check_pinned(spec: ModelSpec) -> None:
    """Raise MisconfiguredError unless the source is a hub id at a full commit."""
    if spec.source.startswith(PACKAGE):
        raise not_installed(spec)
    if not HUB_ID.fullmatch(spec.source):
        raise MisconfiguredError(f"{spec.name}: there is no folder {spec.source}.")
    if not re.fullmatch(r"[0-9a-f]{40}", spec.revision or ""):
        raise MisconfiguredError(
            f"{spec.name}: there is no folder {spec.source}. If it is a hub id, pin its revision "
            "to a full commit (40 hex digits), so that the model cannot change unseen."
        )


def _read(spec: ModelSpec, path: Path, *, is_needed: bool) -> Mapping[str, Any]:
    try:
        # A stranger's file could otherwise fill the memory.
        if path.stat().st_size > LARGEST_JSON:
            raise MisconfiguredError(f"{spec.name}: {path} has more than {LARGEST_JSON:,} bytes.")
        value = json.loads(path.read_bytes())
    except FileNotFoundError:
        if not is_needed:
            return {}
        raise MisconfiguredError(f"{spec.name}: {path} is missing.") from None
    except (ValueError, RecursionError) as error:
        raise MisconfiguredError(f"{spec.name}: {path} is not JSON: {damage_of(error)}") from None
    if not isinstance(value, dict):
        raise MisconfiguredError(f"{spec.name}: {path} must hold a JSON object.")
    return value


CAUSAL = ("ForCausalLM", "GPT2LMHeadModel", "OpenAIGPTLMHeadModel")
"""Parts of the names of language models; the two oldest are named otherwise."""


def _kind_of(spec: ModelSpec, config: Mapping[str, Any]) -> str:
    """Return the kind inferred from the architecture, which does not distinguish pairs."""
    architecture = " ".join(config.get("architectures") or [])
    if "ViltForQuestionAnswering" in architecture:
        return PICTURE
    if "ForImageClassification" in architecture:
        return LOOKS
    if "ForQuestionAnswering" in architecture:
        return SPAN
    if "ForSequenceClassification" in architecture:
        return PAIR if spec.fields and len(spec.fields) == 2 else SEQUENCE
    if any(name in architecture for name in CAUSAL):
        return WRITES
    raise MisconfiguredError(
        f"{spec.name}: architecture {architecture or 'unknown'!r} is no classifier of texts or "
        "pictures, no extractive question answerer, no ViLT for questions on pictures and no "
        "language model. Save it by its class, such as AutoModelForSequenceClassification, or "
        "submit an image."
    )


def _pictures(spec: ModelSpec, path: Path, config: Mapping[str, Any], kind: str) -> PictureSettings:
    """Return the picture format in config.json and preprocessor_config.json; ViLT's by default."""
    preprocessor = _read(spec, path / "preprocessor_config.json", is_needed=False)
    side = config.get("image_size") or _side(preprocessor)
    # Questions on pictures are answered only by ViLT; the others just need a size.
    is_known = kind != PICTURE or config.get("model_type") == "vilt"
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


def _side(preprocessor: Mapping[str, Any]) -> Any:
    """Return the picture size in a preprocessor's configuration, or None."""
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


UNNAMED = ("LABEL_0", "LABEL_1")
"""Two labels that nobody named: transformers leaves these out of config.json."""


def _labels(spec: ModelSpec, settings: Settings, config: Mapping[str, Any]) -> tuple[str, ...]:
    label_by_number = {int(number): name for number, name in (config.get("id2label") or {}).items()}
    if sorted(label_by_number) != list(range(len(label_by_number))):
        raise MisconfiguredError(
            f"{spec.name}: `id2label` in config.json numbers its labels "
            f"{sorted(label_by_number)}. Number them from 0 to "
            f"{len(label_by_number) - 1}, in the order of the model's logits."
        )
    in_config = tuple(label_by_number[number] for number in sorted(label_by_number))
    names = spec.labels or settings.labels or in_config or UNNAMED
    labels = tuple(label_text(name) or str(name) for name in names)  # 0 may be a label's name
    if len(labels) < 2 or len(set(labels)) != len(labels):
        raise MisconfiguredError(
            f"{spec.name}: needs two or more different labels, not {', '.join(labels)}. "
            "Name them in the order of the logits: `labels` in dynabench.json, or `id2label` in "
            "config.json. A head of one output is a regression, which is not scored."
        )
    if in_config and len(in_config) != len(labels):
        raise MisconfiguredError(
            f"{spec.name}: {len(labels)} labels are named, but the model has {len(in_config)}. "
            "Name one for each, in the order of the logits: `labels` in dynabench.json."
        )
    return labels
