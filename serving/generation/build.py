"""Convert a model's files to the decoder's format, in a separate process.

    python -m serving.generation.build SOURCE TARGET PRECISION

SOURCE is a folder in Hugging Face layout, or a GGUF file. torch and transformers are loaded here
and not in the model server, so that their memory is freed when the process ends.
"""

import runpy
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import distribution
from pathlib import Path

from serving.errors import MisconfiguredError

CODE_FOLDER = Path(__file__).resolve().parents[2]
"""The folder that contains our packages."""


def build_decoder(name: str, source: Path, target: Path, precision: str) -> None:
    """Convert a model in a separate process, and write the folder `target` atomically.

    Raises MisconfiguredError.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".build-", dir=target.parent.resolve()))
    built_folder = scratch / "made"
    command = [sys.executable, "-m", __name__, str(source.resolve()), str(built_folder), precision]
    try:
        # Python finds this module from the folder of the code, wherever the server was started.
        result = subprocess.run(
            command, cwd=CODE_FOLDER, capture_output=True, text=True, errors="replace"
        )
        # The last line of a traceback names the error.
        if result.returncode:
            lines = result.stderr.strip().splitlines() or ["it said nothing"]
            raise MisconfiguredError(f"{name}: {source} cannot be prepared: {lines[-1]}")
        if not target.exists():  # another process may have been faster
            built_folder.replace(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def main(source: Path, target: Path, precision: str) -> None:
    """Run onnxruntime-genai's builder on a model. Unpack a GGUF file first."""
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        plain_folder = source if source.is_dir() else unpack_gguf(source, Path(scratch))
        builder_folder = Path(
            str(distribution("onnxruntime-genai").locate_file("onnxruntime_genai/models"))
        )
        sys.path.insert(0, str(builder_folder))  # it is a program of several files, not a package
        sys.argv = ["builder.py", "-m", source.stem, "-i", str(plain_folder), "-o", str(target)]
        sys.argv += ["-p", precision, "-e", "cpu", "-c", scratch]
        runpy.run_path(str(builder_folder / "builder.py"), run_name="__main__")


def unpack_gguf(source: Path, folder: Path) -> Path:
    """Write the weights of a GGUF file as float32 to a folder, and return the folder.

    transformers cannot save quantised models.
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer

    load_options = {"gguf_file": source.name, "local_files_only": True}
    tokenizer = AutoTokenizer.from_pretrained(source.parent, **load_options)
    model = AutoModelForCausalLM.from_pretrained(source.parent, dtype="float32", **load_options)
    # An equal model without quantisation takes over the numbers.
    plain_model = AutoModelForCausalLM.from_config(model.config)
    plain_model.load_state_dict(model.state_dict())
    del plain_model.config.quantization_config
    plain_model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
