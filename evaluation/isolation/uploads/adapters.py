"""Check submitted LoRA adapters, so that only supported changes are made to weights.

The layout is that of the library peft: adapter_config.json and adapter_model.safetensors.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluation.isolation.uploads.model_folders import (
    MACOS_NAMES,
    check_files,
    check_language_model,
    read_json_object,
)
from evaluation.isolation.uploads.safetensors_headers import BadTensors, read_shapes
from serving.errors import MisconfiguredError

CONFIG_FILE, WEIGHTS_FILE = "adapter_config.json", "adapter_model.safetensors"
DOWN_SUFFIX, UP_SUFFIX = ".lora_A.weight", ".lora_B.weight"
MAX_RANK = 1024
REQUIRED_VALUES = {"peft_type": "LORA", "task_type": "CAUSAL_LM"}
ALLOWED_INITS = (
    True,
    False,
    None,
    "gaussian",
    "orthogonal",
)  # other values also change the base's weights
SUPPORTED_KEYS = set(REQUIRED_VALUES) | {
    "r",
    "lora_alpha",
    "use_rslora",
    "fan_in_fan_out",
    "init_lora_weights",
    "bias",
    "base_model_name_or_path",
    "revision",
    "auto_mapping",
    "peft_version",
    "inference_mode",
    "target_modules",
    "exclude_modules",
    "layers_to_transform",
    "layers_pattern",
    "lora_dropout",
    "megatron_core",
    "qalora_group_size",
}
"""Keys that are supported, matter only in training, or repeat which modules the tensors name."""


def is_adapter(folder: Path) -> bool:
    """Return whether a folder, or its only subfolder, contains an adapter."""
    return (_find_root(folder) / CONFIG_FILE).is_file()


def check_whole_model(folder: Path) -> Path:
    """Return the folder with the files of a language model that needs no base.

    Raises MisconfiguredError.
    """
    if is_adapter(folder):
        raise MisconfiguredError("This is an adapter. Name its base when you submit it.")
    return check_language_model(folder)


def check_adapter(folder: Path) -> Path:
    """Return the folder with the adapter's files, after checking its settings and its matrices.

    Whether it fits its base shows only when both are merged. Raises MisconfiguredError.
    """
    root = _find_root(folder)
    check_files(root)
    adapter_config = read_json_object(root / CONFIG_FILE)
    _check_config(adapter_config)
    if not (root / WEIGHTS_FILE).is_file():
        raise MisconfiguredError(
            f"{WEIGHTS_FILE} is missing. Save it: model.save_pretrained(folder)"
        )
    try:
        shape_by_name = read_shapes(
            root / WEIGHTS_FILE
        )  # at least one: a file without tensors is refused
    except BadTensors as error:
        raise MisconfiguredError(f"{WEIGHTS_FILE}: no safetensors file: {error}.") from None
    _check_pairs(shape_by_name, adapter_config["r"])
    return root


def _find_root(folder: Path) -> Path:
    """Return the folder, or its only subfolder, because people pack either."""
    entries = [path for path in folder.iterdir() if path.name not in MACOS_NAMES]
    if len(entries) == 1 and entries[0].is_dir():
        return entries[0]
    return folder


def _check_config(adapter_config: Mapping[str, Any]) -> None:
    """Refuse settings that `merge_adapter` does not support and would therefore apply wrongly.

    Raises MisconfiguredError.
    """
    for key, required_value in REQUIRED_VALUES.items():
        if adapter_config.get(key) != required_value:
            raise MisconfiguredError(
                f"{CONFIG_FILE}: `{key}` is {adapter_config.get(key)!r:.80}, not {required_value}."
            )
    unsupported_keys = [
        key for key, value in adapter_config.items() if value and key not in SUPPORTED_KEYS
    ]
    if adapter_config.get("bias", "none") != "none":
        unsupported_keys.append("bias")
    if adapter_config.get("init_lora_weights") not in ALLOWED_INITS:
        unsupported_keys.append("init_lora_weights")
    if unsupported_keys:
        raise MisconfiguredError(
            f"{CONFIG_FILE}: `{unsupported_keys[0]:.80}` is not understood here. Merge the adapter "
            "yourself (merge_and_unload) and submit the whole model."
        )
    rank, alpha = adapter_config.get("r"), adapter_config.get("lora_alpha")
    if type(rank) is not int or not 0 < rank <= MAX_RANK:
        raise MisconfiguredError(f"{CONFIG_FILE}: `r` must be a whole number, 1 to {MAX_RANK}.")
    if not isinstance(alpha, int | float) or isinstance(alpha, bool) or not 0 < alpha < 10**6:
        raise MisconfiguredError(f"{CONFIG_FILE}: `lora_alpha` must be a number above 0.")


def _check_pairs(shape_by_name: Mapping[str, tuple[int, ...]], rank: int) -> None:
    """Check that the tensors form pairs of matrices with the rank as their inner size.

    Raises MisconfiguredError.
    """
    for name, shape in shape_by_name.items():
        partner_shape: tuple[int, ...] = ()
        rank_axis = 0
        if name.endswith(DOWN_SUFFIX):
            partner_shape = shape_by_name.get(name.removesuffix(DOWN_SUFFIX) + UP_SUFFIX, ())
        elif name.endswith(UP_SUFFIX):
            partner_shape = shape_by_name.get(name.removesuffix(UP_SUFFIX) + DOWN_SUFFIX, ())
            rank_axis = 1
        if len(shape) != 2 or len(partner_shape) != 2:
            raise MisconfiguredError(
                f"{WEIGHTS_FILE}: {name[:200]!r} is no matrix of a pair "
                f"…{DOWN_SUFFIX}, …{UP_SUFFIX}."
            )
        if shape[rank_axis] != rank:
            raise MisconfiguredError(
                f"{WEIGHTS_FILE}: {name[:200]!r} does not have the rank {rank}."
            )
