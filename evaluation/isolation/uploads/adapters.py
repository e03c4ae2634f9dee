"""The check of submitted LoRA adapters, of which only what is understood is added to weights.

The layout is that of the library peft: adapter_config.json and adapter_model.safetensors.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evaluation.isolation.uploads.model_folders import (
    MACOS_NAMES,
    check_files,
    check_writer,
    read_object,
)
from evaluation.isolation.uploads.safetensors_headers import BadTensors, read_shapes
from serving.errors import MisconfiguredError

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
DOWN, UP = ".lora_A.weight", ".lora_B.weight"
MOST_RANK = 1024
REQUIRED_VALUES = {"peft_type": "LORA", "task_type": "CAUSAL_LM"}
ALLOWED_INITS = (
    True,
    False,
    None,
    "gaussian",
    "orthogonal",
)  # others change the base's weights as well
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
"""What is understood, was only of use in training, or says again which modules the tensors name."""


def is_adapter(folder: Path) -> bool:
    """Return whether a folder, or its only subfolder, contains an adapter."""
    return (_find_root(folder) / CONFIG).is_file()


def check_whole(folder: Path) -> Path:
    """Return the folder with the files of a language model that needs no base.

    Raises MisconfiguredError.
    """
    if is_adapter(folder):
        raise MisconfiguredError("This is an adapter. Name its base when you submit it.")
    return check_writer(folder)


def check_adapter(folder: Path) -> Path:
    """Return the folder with the adapter's files, after checking that it fits a base.

    Raises MisconfiguredError.
    """
    root = _find_root(folder)
    check_files(root)
    about = read_object(root / CONFIG)
    _check_config(about)
    if not (root / WEIGHTS).is_file():
        raise MisconfiguredError(f"{WEIGHTS} is missing. Save it: model.save_pretrained(folder)")
    try:
        shape_of_each = read_shapes(
            root / WEIGHTS
        )  # at least one: a file without tensors is refused
    except BadTensors as error:
        raise MisconfiguredError(f"{WEIGHTS}: no safetensors file: {error}.") from None
    _check_pairs(shape_of_each, about["r"])
    return root


def _find_root(folder: Path) -> Path:
    """Return the folder, or its only subfolder, because people pack either."""
    inside = [path for path in folder.iterdir() if path.name not in MACOS_NAMES]
    if len(inside) == 1 and inside[0].is_dir():
        return inside[0]
    return folder


def _check_config(about: Mapping[str, Any]) -> None:
    """Refuse settings that `merge` does not support and would therefore apply wrongly.

    Raises MisconfiguredError.
    """
    for key, required_value in REQUIRED_VALUES.items():
        if about.get(key) != required_value:
            raise MisconfiguredError(
                f"{CONFIG}: `{key}` is {about.get(key)!r:.80}, not {required_value}."
            )
    unsupported_keys = [key for key, value in about.items() if value and key not in SUPPORTED_KEYS]
    if about.get("bias", "none") != "none":
        unsupported_keys.append("bias")
    if about.get("init_lora_weights") not in ALLOWED_INITS:
        unsupported_keys.append("init_lora_weights")
    if unsupported_keys:
        raise MisconfiguredError(
            f"{CONFIG}: `{unsupported_keys[0]:.80}` is not understood here. Merge the adapter "
            "yourself (merge_and_unload) and submit the whole model."
        )
    rank, alpha = about.get("r"), about.get("lora_alpha")
    if type(rank) is not int or not 0 < rank <= MOST_RANK:
        raise MisconfiguredError(f"{CONFIG}: `r` must be a whole number, 1 to {MOST_RANK}.")
    if not isinstance(alpha, int | float) or isinstance(alpha, bool) or not 0 < alpha < 10**6:
        raise MisconfiguredError(f"{CONFIG}: `lora_alpha` must be a number above 0.")


def _check_pairs(shape_of_each: Mapping[str, tuple[int, ...]], rank: int) -> None:
    """Check that the tensors form pairs of matrices with the rank as their inner size.

    Raises MisconfiguredError.
    """
    for name, shape in shape_of_each.items():
        partner_shape: tuple[int, ...] = ()
        rank_axis = 0
        if name.endswith(DOWN):
            partner_shape = shape_of_each.get(name.removesuffix(DOWN) + UP, ())
        elif name.endswith(UP):
            partner_shape = shape_of_each.get(name.removesuffix(UP) + DOWN, ())
            rank_axis = 1
        if len(shape) != 2 or len(partner_shape) != 2:
            raise MisconfiguredError(
                f"{WEIGHTS}: {name[:200]!r} is no matrix of a pair …{DOWN}, …{UP}."
            )
        if shape[rank_axis] != rank:
            raise MisconfiguredError(f"{WEIGHTS}: {name[:200]!r} does not have the rank {rank}.")
