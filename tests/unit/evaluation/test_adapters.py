"""LoRA adapters: what is refused, and that merged weights are those of the library peft."""

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from evaluation.isolation.sandbox.harness.loading import load_writer
from evaluation.isolation.uploads.adapters import check_adapter, is_adapter
from serving.errors import MisconfiguredError
from tests.support.adapters import sound_adapter, write_tensors
from tests.support.serving_models import tiny_writer


@pytest.fixture(autouse=True)
def threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading says in the environment that OpenMP has one thread: not to the tests after these."""
    monkeypatch.setenv("OMP_NUM_THREADS", "2")  # put back afterwards


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_writer(tmp_path_factory.mktemp("models") / "base")


def adapter(base: Path, folder: Path, **told: Any) -> Any:
    """An adapter with random numbers, saved by peft; the model with it, merged by peft."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    torch.manual_seed(1)
    settings = {"r": 3, "lora_alpha": 5, "target_modules": ["q_proj", "up_proj"]} | told
    model = get_peft_model(
        AutoModelForCausalLM.from_pretrained(base), LoraConfig(task_type="CAUSAL_LM", **settings)
    )
    for name, weights in model.named_parameters():
        if "lora_" in name:
            torch.nn.init.normal_(weights)
    model.save_pretrained(folder)
    return model.merge_and_unload()


def loaded(base: Path, lora: Path | None) -> Any:
    chosen = str(lora) if lora else None
    asked = Namespace(model=str(base), lora=chosen, threads=1, max_tokens=4, stop=())
    return load_writer(asked)._model


@pytest.mark.parametrize("use_rslora", [False, True])
def test_what_is_merged_answers_as_with_peft(base: Path, tmp_path: Path, use_rslora: bool) -> None:
    import torch

    oracle = adapter(base, tmp_path / "lora", use_rslora=use_rslora)
    assert check_adapter(tmp_path / "lora") == tmp_path / "lora"
    tokens = torch.arange(7).unsqueeze(0) + 2000
    models = (oracle, loaded(base, tmp_path / "lora"), loaded(base, None))
    with torch.inference_mode():
        theirs, ours, plain = (model(tokens).logits for model in models)
    assert torch.allclose(ours, theirs, atol=1e-3, rtol=1e-3)
    assert not torch.allclose(ours, plain, atol=0.1)


def test_an_adapter_of_another_base_is_refused(base: Path, tmp_path: Path) -> None:
    adapter(base, tmp_path / "lora", target_modules=["q_proj"])
    with pytest.raises(MisconfiguredError, match="another base"):
        loaded(tiny_writer(tmp_path / "other", hidden_size=32), tmp_path / "lora")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return sound_adapter(tmp_path / "archive" / "lora")


@pytest.mark.parametrize(
    "told",
    [
        {"use_dora": True},
        {"modules_to_save": ["lm_head"]},
        {"rank_pattern": {"q_proj": 4}},
        {"bias": "all"},
        {"init_lora_weights": "pissa"},
        {"peft_type": "IA3"},
        {"task_type": "SEQ_CLS"},
        {"r": 0},
        {"r": 3},
        {"r": True},
        {"lora_alpha": "4"},
        {"of_tomorrow": 1},
    ],
)
def test_what_is_not_understood_is_refused(folder: Path, told: dict[str, Any]) -> None:
    assert is_adapter(folder.parent)
    assert check_adapter(folder.parent) == folder
    path = folder / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | told))
    with pytest.raises(MisconfiguredError):
        check_adapter(folder)


@pytest.mark.parametrize(
    "shapes",
    [
        {"m.q_proj.lora_A.weight": [2, 3]},
        {"m.q_proj.lora_A.weight": [2, 3], "m.k_proj.lora_B.weight": [4, 2]},
        {"m.q_proj.lora_A.weight": [2, 3], "m.q_proj.lora_B.weight": [4, 3]},
        {"m.embed.lora_embedding_A": [2, 3], "m.embed.lora_embedding_B": [4, 2]},
    ],
)
def test_other_tensors_than_pairs_are_refused(folder: Path, shapes: dict[str, list[int]]) -> None:
    write_tensors(folder, shapes)
    with pytest.raises(MisconfiguredError):
        check_adapter(folder)


def test_files_of_an_adapter_are_looked_through(folder: Path) -> None:
    (folder / "adapter_model.safetensors").write_bytes(b"no")
    with pytest.raises(MisconfiguredError, match="no safetensors file"):
        check_adapter(folder)
    (folder / "adapter_model.safetensors").unlink()
    with pytest.raises(MisconfiguredError, match="missing"):
        check_adapter(folder)
    (folder / "adapter_model.bin").write_bytes(b"PK")
    with pytest.raises(MisconfiguredError, match="pickled"):
        check_adapter(folder)
