"""Check submitted model folders, before any file in them is loaded."""

import hashlib
import json
import re
import shutil
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from core.files.damage import describe_damage
from core.text.words import order_labels_by_names
from evaluation.contract import GIB, BeatCallback
from evaluation.heartbeat import CHUNK_BYTES, BeatingFile
from evaluation.isolation.uploads.safetensors_headers import BadTensors, read_tensor_names
from evaluation.task_shape import TaskShape, UntrainableTask, build_runnable_shape
from serving.errors import MisconfiguredError
from serving.settings import SETTINGS_FILE
from serving.spec import (
    CAUSAL_HEADS,
    IMAGE_CLASSIFICATION,
    MAX_JSON_BYTES,
    SPAN,
    VISUAL_QUESTION_ANSWERING,
    ModelSpec,
    check_setting_keys,
    open_folder,
)
from tasks.config.schema import TaskConfig

MAX_FOLDER_BYTES = 20 * GIB
MAX_NAMED_FILES = 5  # files that a refusal lists
PICKLE_SUFFIXES = (
    (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib", ".dill")
    + (".npy", ".npz", ".h5", ".keras", ".msgpack", ".mar")
)  # fmt: skip
"""Suffixes of files that are, or may contain, pickles. Reading a pickle can run any code."""
CODE_SUFFIXES = (".py", ".pyc", ".pyd", ".so", ".dll", ".dylib", ".sh", ".exe", ".ipynb", ".whl")
PICKLE_STARTS = tuple(bytes([0x80, version]) for version in range(2, 6))
TOKENIZER_PATTERNS = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model")
MACOS_NAMES = ("__MACOSX", ".DS_Store")
CONFIG_FILES = ("config.json", "tokenizer_config.json", "special_tokens_map.json")
FILE_KEY_PATTERN = re.compile(r"(?!special_tokens_map_file$)(.*_files?|vocab|merges)")
"""Matches keys whose values transformers may open as files.

The value of the excluded key is never opened. In older models, it is a path on their maker's
machine.
"""
HEAD_BY_KIND = {
    SPAN: "ForQuestionAnswering",
    VISUAL_QUESTION_ANSWERING: "ViltForQuestionAnswering",
    IMAGE_CLASSIFICATION: "ForImageClassification",
}
SAVE_CODE = "model.save_pretrained(folder); tokenizer.save_pretrained(folder)"


def check_model_folder(folder: Path, config: TaskConfig) -> Path:
    """Return the folder with the model's files, after checking that it can run for the task.

    The result is `folder` or its only subfolder. The files are not loaded by any library and not
    changed. Raises MisconfiguredError, which says what to correct.
    """
    try:
        shape = build_runnable_shape(config)
    except UntrainableTask:
        raise MisconfiguredError(
            "A model's folder can be run for tasks with labels about texts, about one picture or "
            "about one and a question, and for tasks with an answer from a passage. Submit an "
            "image for this one."
        ) from None
    root, model_config = _check_model_files(
        folder, has_tokenizer=shape.kind != IMAGE_CLASSIFICATION
    )
    _check_model_fits(root, model_config, shape)
    return root


def check_base_model(folder: Path) -> Path:
    """Return the folder of a language model that can have adapters; see `check_model_folder`.

    Raises MisconfiguredError.
    """
    root, model_config = _check_model_files(folder)
    _check_head(model_config, *CAUSAL_HEADS)
    return root


def check_language_model(folder: Path) -> Path:
    """Return the folder of a language model that accepts messages; see `check_model_folder`.

    Raises MisconfiguredError, for instance if the tokenizer has no chat template.
    """
    root = check_base_model(folder)
    if read_json_object(root / SETTINGS_FILE).keys() - {"kind"}:
        raise MisconfiguredError(
            f"{SETTINGS_FILE}: nothing of it is read for a language model. Enter the prompt, the "
            "most tokens and the texts to stop before when you submit it, and pack the folder "
            f"without {SETTINGS_FILE}."
        )
    settings = read_json_object(root / "tokenizer_config.json")
    if not settings.get("chat_template") and not (root / "chat_template.jinja").is_file():
        raise MisconfiguredError(
            "The tokenizer has no chat template (`chat_template` in tokenizer_config.json, or "
            "chat_template.jinja). Set tokenizer.chat_template to the one that the model was "
            "trained with, and save the tokenizer again."
        )
    return root


def _check_model_files(
    folder: Path, *, has_tokenizer: bool = True
) -> tuple[Path, Mapping[str, Any]]:
    """Check a model's files; return its folder and the contents of config.json.

    has_tokenizer: whether the files of a tokenizer are required. Raises MisconfiguredError.
    """
    root = _find_root(folder)
    check_files(root)
    model_config = read_json_object(root / "config.json")
    for name in CONFIG_FILES:
        _check_config(root, name)
    if has_tokenizer and not any(any(root.glob(pattern)) for pattern in TOKENIZER_PATTERNS):
        raise MisconfiguredError(f"The tokenizer's files are missing. Save both: {SAVE_CODE}")
    _check_weights(root)
    return root, model_config


def _check_config(root: Path, name: str) -> None:
    """Check that a configuration names no code and no file outside the folder.

    Raises MisconfiguredError.
    """
    settings = read_json_object(root / name)
    if "auto_map" in settings:
        raise MisconfiguredError(
            f"{name}: `auto_map` asks for Python code of the model's own. Such code is not "
            "run here: submit an image, or a model that transformers knows."
        )
    for key, value in _iterate_entries(settings):
        if FILE_KEY_PATTERN.fullmatch(key):
            names = value
            if not isinstance(value, list):
                names = [value]
            if not all(_is_own_file_name(root, name) for name in names):
                raise MisconfiguredError(
                    f"{name}: `{key[:100]}` does not name a file of the folder. Write the plain "
                    f"name of one, or take `{key[:100]}` out."
                )


def _iterate_entries(settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the keys and values of a JSON object and of all objects nested in it.

    Works without recursion, because a submitted file may be nested more deeply than Python allows.
    """
    unvisited_values: list[Any] = [settings]
    while unvisited_values:
        value = unvisited_values.pop()
        if isinstance(value, dict):
            yield from value.items()
            unvisited_values += value.values()
        elif isinstance(value, list):
            unvisited_values += value


def _is_own_file_name(root: Path, name: Any) -> bool:
    """Return whether a value is not a text, or is the plain name of a file in the folder."""
    if not isinstance(name, str):
        return True
    is_plain = name == Path(name).name and len(name) < 256 and "\0" not in name
    return is_plain and (root / name).is_file()


def remove_macos_files(folder: Path) -> None:
    """Delete the files that macOS adds to archives."""
    for name in MACOS_NAMES:
        for path in list(folder.rglob(name)):  # all of them, before the first is removed
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()


def _find_root(folder: Path) -> Path:
    """Return the folder with config.json: `folder` or its only subfolder.

    Raises MisconfiguredError.
    """
    root = folder
    entries = [path for path in folder.iterdir() if path.name not in MACOS_NAMES]
    if len(entries) == 1 and entries[0].is_dir():
        root = entries[0]
    if not (root / "config.json").is_file():
        raise MisconfiguredError(
            "config.json is missing. Pack the folder that transformers wrote, so that config.json "
            f"is at its top or in one single folder: {SAVE_CODE}"
        )
    return root


def _find_own_paths(root: Path, pattern: str) -> list[Path]:
    """Return the paths at any depth that match `pattern`, except files that macOS adds."""
    own_paths = []
    for path in sorted(root.rglob(pattern)):
        if not set(path.relative_to(root).parts) & set(MACOS_NAMES):
            own_paths.append(path)
    return own_paths


def check_files(root: Path) -> None:
    """Raise MisconfiguredError if the folder contains pickles or code, or too many bytes.

    The message names the first MAX_NAMED_FILES files.
    """
    paths = _find_own_paths(root, "*")
    problems = []
    for path in paths:
        if path.is_file() and (problem := _find_problem(path.relative_to(root).as_posix(), path)):
            problems.append(problem)
    if problems:
        raise MisconfiguredError("\n".join(problems[:MAX_NAMED_FILES]))
    size = sum(path.stat().st_size for path in paths)
    if size > MAX_FOLDER_BYTES:
        raise MisconfiguredError(
            f"The folder has {size / GIB:.1f} GiB; at most {MAX_FOLDER_BYTES / GIB:g} GiB are run."
        )


def _find_problem(name: str, path: Path) -> str:
    """Return why a file is refused, or ""."""
    if path.suffix == ".safetensors":  # these are checked later
        return ""
    # By content, too: a pickle may have any name.
    with path.open("rb") as file:
        start = file.read(4)
    if (
        path.suffix.lower() in PICKLE_SUFFIXES
        or start[:2] in PICKLE_STARTS
        or start == b"PK\x03\x04"
    ):
        return (
            f"{name}: pickled files can run code and are refused. Save the weights as "
            "safetensors (model.save_pretrained(folder, safe_serialization=True)) and pack "
            f"the folder without {name}."
        )
    if path.suffix.lower() in CODE_SUFFIXES or start == b"\x7fELF":
        return (
            f"{name}: a model folder contains no code. Pack it without {name}, or submit an image "
            "if the model needs it."
        )
    if start.startswith(BOM_UTF8) and path.suffix == ".json" and name != SETTINGS_FILE:
        return (
            f"{name}: it begins with a byte order mark, which transformers does not read. Save it "
            "as UTF-8 without one."
        )
    return ""


def read_json_object(path: Path) -> Mapping[str, Any]:
    """Return the JSON object in a file; empty if there is no file. Raises MisconfiguredError."""
    if not path.is_file():
        return {}
    value = None
    try:
        if path.stat().st_size <= MAX_JSON_BYTES:
            value = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise MisconfiguredError(f"{path.name}: no JSON: {describe_damage(error)}.") from None
    if not isinstance(value, dict):
        raise MisconfiguredError(f"{path.name}: not a JSON object, or too large.")
    return value


def _check_weights(root: Path) -> None:
    """Check that all weight files exist and are valid. Raises MisconfiguredError."""
    index = read_json_object(root / "model.safetensors.index.json")
    file_by_tensor: Any = {"": "model.safetensors"}
    if index:
        file_by_tensor = index.get("weight_map")
    if not isinstance(file_by_tensor, dict) or not all(
        isinstance(name, str) for name in file_by_tensor.values()
    ):
        raise MisconfiguredError("model.safetensors.index.json: `weight_map` isn't an object.")
    for name in sorted(set(file_by_tensor.values())):
        if "/" in name or not (root / name).is_file():
            raise MisconfiguredError(
                f"{name[:200]}: these weights are missing at the top of the folder. Save them: "
                "model.save_pretrained(folder, safe_serialization=True)"
            )
    for path in _find_own_paths(root, "*.safetensors"):
        try:
            read_tensor_names(path)
        except BadTensors as error:
            name = path.relative_to(root).as_posix()
            raise MisconfiguredError(
                f"{name}: no safetensors file: {error}. Save it again; a copy may be cut off."
            ) from None


def _check_head(model_config: Mapping[str, Any], *heads: str) -> None:
    """Raise MisconfiguredError unless the model's class name ends with one of `heads`."""
    architectures = model_config.get("architectures")
    names = []
    if isinstance(architectures, list):
        names = [str(name) for name in architectures]
    if not any(name.endswith(heads) for name in names):
        raise MisconfiguredError(
            f"config.json: `architectures` names {architectures}; the task needs a model with "
            f"…{heads[0]}. Load it as {_get_loader_name(heads[0])} and train or save it so."
        )


def _check_model_fits(root: Path, model_config: Mapping[str, Any], shape: TaskShape) -> None:
    _check_head(model_config, HEAD_BY_KIND.get(shape.kind, "ForSequenceClassification"))
    spec = ModelSpec("The model", str(root), fields=shape.fields, output=shape.answer)
    check_setting_keys("The model", root)
    try:
        model = open_folder(spec)
    except (TypeError, ValueError, AttributeError):
        raise MisconfiguredError(
            "config.json or dynabench.json: a value of the wrong kind. Save the model again."
        ) from None
    if (model.labels is None) != (shape.labels is None):
        raise MisconfiguredError(
            f"dynabench.json: the kind {model.kind} does not fit the task; write {shape.kind}."
        )
    if shape.labels is None or model.labels is None:
        return
    if order_labels_by_names(model.labels, shape.labels) is None:
        raise MisconfiguredError(
            f"The model answers {', '.join(map(str, model.labels))[:300]}; the task's labels are "
            f"{', '.join(shape.labels)}. Name them in the order of the model's logits: `id2label` "
            'in config.json, or a file dynabench.json with {"labels": ['
            + _quote_labels(shape)
            + "]}."
        )


def _get_loader_name(head: str) -> str:
    """Return the name of the transformers class that loads a model with this head."""
    if head == HEAD_BY_KIND[VISUAL_QUESTION_ANSWERING]:  # the full name of the kind
        return head
    return f"AutoModel{head}"


def _quote_labels(shape: TaskShape) -> str:
    return ", ".join(f'"{label}"' for label in shape.labels or ())


def list_files(folder: Path) -> list[Path]:
    """Return all files below a folder, sorted by path."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


def digest_folder(folder: Path, beat: BeatCallback) -> str:
    """Return the SHA-256 of a folder's files: paths, sizes and bytes, sorted by path."""
    digest = hashlib.sha256()
    for path in list_files(folder):
        digest.update(f"{path.relative_to(folder).as_posix()}\0{path.stat().st_size}\0".encode())
        with path.open("rb") as file:
            while chunk := BeatingFile(file, beat).read(CHUNK_BYTES):
                digest.update(chunk)
    return digest.hexdigest()
