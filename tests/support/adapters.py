"""Folders of LoRA adapters, made without a library."""

import json
from pathlib import Path


def sound_adapter(folder: Path) -> Path:
    """An adapter of rank 2 that changes one module of nothing by nothing."""
    folder.mkdir(parents=True)
    about = {"peft_type": "LORA", "task_type": "CAUSAL_LM", "r": 2, "lora_alpha": 4}
    about |= {"bias": "none", "init_lora_weights": True, "target_modules": ["q_proj"]}
    (folder / "adapter_config.json").write_text(json.dumps(about))
    write_tensors(folder, {"m.q_proj.lora_A.weight": [2, 3], "m.q_proj.lora_B.weight": [4, 2]})
    return folder


def write_tensors(folder: Path, shapes: dict[str, list[int]]) -> None:
    """Its weights: zeros of these shapes."""
    header, end = {}, 0
    for name, (rows, columns) in shapes.items():
        size = 4 * rows * columns
        header[name] = {"dtype": "F32", "shape": [rows, columns], "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    data = len(text).to_bytes(8, "little") + text + bytes(end)
    (folder / "adapter_model.safetensors").write_bytes(data)
