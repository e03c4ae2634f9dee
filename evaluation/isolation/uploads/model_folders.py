"""The check of submitted model folders, before any file in them is loaded."""

import hashlib
import json
import re
import shutil
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from core.files.damage import damage_of
from core.text.words import spelled
from evaluation.contract import GIB, Beat
from evaluation.heartbeat import CHUNK_BYTES, BeatingFile
from evaluation.isolation.uploads.safetensors_headers import BadTensors, check_tensors
from evaluation.task_shape import Shape, Untrainable, runnable_shape_of
from serving.errors import MisconfiguredError
from serving.settings import FILE as SETTINGS_FILE
from serving.spec import (
    CAUSAL,
    LARGEST_JSON,
    LOOKS,
    PICTURE,
    SPAN,
    ModelSpec,
    check_setting_keys,
    open_folder,
)
from tasks.config.schema import TaskConfig

MOST_BYTES = 20 * GIB
MOST_NAMED = 5  # files that one refusal names
PICKLE_SUFFIXES = (
    (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib", ".dill")
    + (".npy", ".npz", ".h5", ".keras", ".msgpack", ".mar")
)  # fmt: skip
"""Files that are, or may contain, pickles: reading one can run any code."""
CODE_SUFFIXES = (".py", ".pyc", ".pyd", ".so", ".dll", ".dylib", ".sh", ".exe", ".ipynb", ".whl")
PICKLE_STARTS = tuple(bytes([0x80, version]) for version in range(2, 6))
TOKENIZER_PATTERNS = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model")
MACOS_NAMES = ("__MACOSX", ".DS_Store")
CONFIGS = ("config.json", "tokenizer_config.json", "special_tokens_map.json")
FILE_KEYS = re.compile(r"(?!special_tokens_map_file$)(.*_files?|vocab|merges)")
"""Under these transformers may open what a configuration names; the one left out it never opens,
and models of some years ago still name a path of their maker's there."""
HEADS = {
    SPAN: "ForQuestionAnswering",
    PICTURE: "ViltForQuestionAnswering",
    LOOKS: "ForImageClassification",
}
SAVE_CODE = "model.save_pretrained(folder); tokenizer.save_pretrained(folder)"


def check_folder(folder: Path, config: TaskConfig) -> Path:
    """Return the folder with the model's files, after checking that it can run for the task.

    The result is `folder` or its only subfolder. The files are not loaded by any library and not
    changed. Raises MisconfiguredError, which says what to correct.
    """
    try:
        shape = runnable_shape_of(config)
    except Untrainable:
        raise MisconfiguredError(
            "A model's folder can be run for tasks with labels about texts, about one picture or "
            "about one and a question, and for tasks with an answer from a passage. Submit an "
            "image for this one."
        ) from None
    root, about = _check_model_files(folder, has_tokenizer=shape.kind != LOOKS)
    _check_fits(root, about, shape)
    return root


def check_base(folder: Path) -> Path:
    """Return the folder of a language model to which adapters can be added; see `check_folder`."""
    root, about = _check_model_files(folder)
    _check_head(about, *CAUSAL)
    return root


def check_writer(folder: Path) -> Path:
    """Return the folder of a language model that accepts messages; see `check_folder`."""
    root = check_base(folder)
    if read_object(root / SETTINGS_FILE).keys() - {"kind"}:
        raise MisconfiguredError(
            f"{SETTINGS_FILE}: nothing of it is read for a language model. Enter the prompt, the "
            "most tokens and the texts to stop before when you submit it, and pack the folder "
            f"without {SETTINGS_FILE}."
        )
    settings = read_object(root / "tokenizer_config.json")
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

    Raises MisconfiguredError.
    """
    root = _find_root(folder)
    check_files(root)
    about = read_object(root / "config.json")
    for name in CONFIGS:
        _check_config(root, name)
    if has_tokenizer and not any(any(root.glob(pattern)) for pattern in TOKENIZER_PATTERNS):
        raise MisconfiguredError(f"The tokenizer's files are missing. Save both: {SAVE_CODE}")
    _check_weights(root)
    return root, about


def _check_config(root: Path, name: str) -> None:
    """Check that a configuration names no code and no file outside the folder.

    Raises MisconfiguredError.
    """
    settings = read_object(root / name)
    if "auto_map" in settings:
        raise MisconfiguredError(
            f"{name}: `auto_map` asks for Python code of the model's own. Such code is not "
            "run here: submit an image, or a model that transformers knows."
        )
    for key, value in _entries(settings):
        if FILE_KEYS.fullmatch(key):
            names = value
            if not isinstance(value, list):
                names = [value]
            if not all(_is_own(root, name) for name in names):
                raise MisconfiguredError(
                    f"{name}: `{key[:100]}` does not name a file of the folder. Write the plain "
                    f"name of one, or take `{key[:100]}` out."
                )


def _entries(settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the keys and values of a JSON object and of all objects nested in it.

    Works without recursion, because a submitted file may be nested more deeply than Python allows.
    """
    unseen: list[Any] = [settings]
    while unseen:
        value = unseen.pop()
        if isinstance(value, dict):
            yield from value.items()
            unseen += value.values()
        elif isinstance(value, list):
            unseen += value


def _is_own(root: Path, name: Any) -> bool:
    """Return whether a value is no text, or is the plain name of a file in the folder."""
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
    inside = [path for path in folder.iterdir() if path.name not in MACOS_NAMES]
    if len(inside) == 1 and inside[0].is_dir():
        root = inside[0]
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

    The message names the first MOST_NAMED files.
    """
    paths = _find_own_paths(root, "*")
    problems = []
    for path in paths:
        if path.is_file() and (problem := _problem_of(path.relative_to(root).as_posix(), path)):
            problems.append(problem)
    if problems:
        raise MisconfiguredError("\n".join(problems[:MOST_NAMED]))
    size = sum(path.stat().st_size for path in paths)
    if size > MOST_BYTES:
        raise MisconfiguredError(
            f"The folder has {size / GIB:.1f} GiB; at most {MOST_BYTES / GIB:g} GiB are run."
        )


def _problem_of(name: str, path: Path) -> str:
    """Return why a file is refused, or ""."""
    if path.suffix == ".safetensors":  # these are looked into later
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
            f"{name}: a model's folder holds no code. Pack it without {name}, or submit an "
            "image if the model needs it."
        )
    if start.startswith(BOM_UTF8) and path.suffix == ".json" and name != SETTINGS_FILE:
        return (
            f"{name}: it begins with a byte order mark, which transformers does not read. Save it "
            "as UTF-8 without one."
        )
    return ""


def read_object(path: Path) -> Mapping[str, Any]:
    """Return the JSON object in a file; empty if there is no file. Raises MisconfiguredError."""
    if not path.is_file():
        return {}
    value = None
    try:
        if path.stat().st_size <= LARGEST_JSON:
            value = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise MisconfiguredError(f"{path.name}: no JSON: {damage_of(error)}.") from None
    if not isinstance(value, dict):
        raise MisconfiguredError(f"{path.name}: not a JSON object, or too large.")
    return value


def _check_weights(root: Path) -> None:
    """Check that all weight files exist and are valid. Raises MisconfiguredError."""
    index = read_object(root / "model.safetensors.index.json")
    file_of: Any = {"": "model.safetensors"}
    if index:
        file_of = index.get("weight_map")
    if not isinstance(file_of, dict) or not all(isinstance(name, str) for name in file_of.values()):
        raise MisconfiguredError("model.safetensors.index.json: `weight_map` is no object.")
    for name in sorted(set(file_of.values())):
        if "/" in name or not (root / name).is_file():
            raise MisconfiguredError(
                f"{name[:200]}: these weights are missing at the top of the folder. Save them: "
                "model.save_pretrained(folder, safe_serialization=True)"
            )
    for path in _find_own_paths(root, "*.safetensors"):
        try:
            check_tensors(path)
        except BadTensors as error:
            name = path.relative_to(root).as_posix()
            raise MisconfiguredError(
                f"{name}: no safetensors file: {error}. Save it again; a copy may be cut off."
            ) from None


def _check_head(about: Mapping[str, Any], *heads: str) -> None:
    """Raise MisconfiguredError unless the model's class name ends with one of `heads`."""
    architectures = about.get("architectures")
    names = []
    if isinstance(architectures, list):
        names = [str(name) for name in architectures]
    if not any(name.endswith(heads) for name in names):
        raise MisconfiguredError(
            f"config.json: `architectures` names {architectures}; the task needs a model with "
            f"…{heads[0]}. Load it as {_loader_name(heads[0])} and train or save it so."
        )


def _check_fits(root: Path, about: Mapping[str, Any], shape: Shape) -> None:
    _check_head(about, HEADS.get(shape.kind, "ForSequenceClassification"))
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
    if spelled(model.labels, shape.labels) is None:
        raise MisconfiguredError(
            f"The model answers {', '.join(map(str, model.labels))[:300]}; the task's labels are "
            f"{', '.join(shape.labels)}. Name them in the order of the model's logits: `id2label` "
            'in config.json, or a file dynabench.json with {"labels": ['
            + _quote_labels(shape)
            + "]}."
        )


def _loader_name(head: str) -> str:
    """Return the name of the transformers class that loads a model with this head."""
    if head == HEADS[PICTURE]:  # its whole name
        return head
    return f"AutoModel{head}"


def _quote_labels(shape: Shape) -> str:
    return ", ".join(f'"{label}"' for label in shape.labels or ())


def files(folder: Path) -> list[Path]:
    """Return all files below a folder, sorted by path."""
    return sorted(path for path in folder.rglob("*") if path.is_file())


def digest_folder(folder: Path, beat: Beat) -> str:
    """Return the SHA-256 of a folder's files: paths, sizes and bytes, sorted by path."""
    digest = hashlib.sha256()
    for path in files(folder):
        digest.update(f"{path.relative_to(folder).as_posix()}\0{path.stat().st_size}\0".encode())
        with path.open("rb") as file:
            while chunk := BeatingFile(file, beat).read(CHUNK_BYTES):
                digest.update(chunk)
    return digest.hexdigest()
