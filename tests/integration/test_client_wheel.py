"""The client as others install it: a wheel in an environment that has nothing else."""

import os
import shutil
import subprocess
import sys
import zipfile
from io import BytesIO
from pathlib import Path

import pytest

from core.accounts.tokens import create_token
from dynabench.client import freshness
from dynabench.download import CLIENT_FOLDER, build_archive
from tests.support.factories import RoundFactory, TaskFactory, UserFactory
from tests.support.live import ROOT

PROGRAM = """
import asyncio, importlib.util, sys
from dynabench import AsyncDynabenchClient, DynabenchClient
from dynabench.client import NotFound

client = DynabenchClient(api_key=sys.argv[1])
print([task["code"] for task in client.tasks()], client.me()["token"]["name"])
try:
    client.task("none")
except NotFound as error:
    print(error.status)

async def same():
    async with AsyncDynabenchClient(api_key=sys.argv[1]) as client:
        print((await client.task("nli"))["name"])

asyncio.run(same())
foreign = ("django", "tasks", "evaluation", "pandas", "rest_framework")
print([name for name in foreign if importlib.util.find_spec(name)])
"""
TYPED = """
from dynabench import AsyncDynabenchClient, DynabenchClient
client = DynabenchClient(api_key="your_key")
name: str = client.submit_model(model_path="model", task="nli", description="Mine", parameters=3)
print(client.get_results(name)["dynascore"])
client.submit_model(7, "nli")  # wrong
async def same() -> str:
    return await AsyncDynabenchClient().submit_model("model", "nli")
"""


def said(python: Path, *arguments: str, **environment: str) -> str:
    """What it prints, far from our checkout."""
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [python, *arguments], capture_output=True, text=True, cwd=python.parent,
        env=bare | environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_only_what_it_names_is_there(python):
    listed = said(
        Path(sys.executable), "-m", "pip", "--python", str(python), "list", "--format=freeze"
    )
    names = {line.partition("==")[0] for line in listed.split()}
    assert {"dynabench-client", "httpx", "tqdm"} <= names
    assert names <= {
        *("dynabench-client", "httpx", "tqdm"),
        *("anyio", "certifi", "h11", "httpcore", "idna", "typing_extensions"),  # httpx's own
    }


@pytest.mark.django_db(transaction=True)
def test_a_program_at_a_real_server(python, live_server):
    RoundFactory(task=TaskFactory(code="nli", name="NLI"))
    _, key = create_token(user=UserFactory(), name="laptop", scopes=["read"], days=1)
    lines = said(python, "-c", PROGRAM, key, DYNABENCH_URL=live_server.url).splitlines()
    assert lines == ["['nli'] laptop", "404", "NLI", "[]"]


def test_its_command_runs(python):
    assert "submit" in said(python.with_name("dynabench"), "--help")


def test_the_command_of_its_own_name_starts_a_benchmark(python, tmp_path):
    """`pipx run dynabench-client` looks for a command that is called as the package is."""
    folder = tmp_path / "my-benchmark"
    command = python.with_name("dynabench-client")
    # As the first step of a person whose machine has no server.
    server = {"DYNABENCH_URL": "", "XDG_CONFIG_HOME": str(tmp_path / "config")}
    told = said(command, "init", "my-benchmark", str(folder), "--benchmark", **server)
    assert "dynabench apply" in told
    template = ROOT / CLIENT_FOLDER / "benchmarks" / "template"
    files = {path.name for path in template.iterdir() if path.is_file()}
    assert {path.name for path in folder.iterdir()} == files - {"gitignore"} | {".gitignore"}
    assert "\ntask: my-benchmark\n" in (folder / "benchmark.yaml").read_text()


def test_its_types_are_known(python, tmp_path):
    (tmp_path / "program.py").write_text(TYPED)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--python-executable", python, "program.py"],
        capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip
    wrong = 'Argument 1 has incompatible type "int"; expected "str | Path"'
    assert done.stdout.splitlines()[:-1] == [f"program.py:6: error: {wrong}  [arg-type]"]


@pytest.mark.parametrize("source", ["folder", "sdist", "archive"])
def test_the_folder_alone_and_the_sites_archive_make_a_wheel(source, tmp_path):
    """A copy that has no folders above it, an sdist, and what `pip install` gets of a site."""
    if source == "folder":
        package = tmp_path / "client-alone"
        shutil.copytree(ROOT / CLIENT_FOLDER, package, ignore=shutil.ignore_patterns("__pycache__"))
    elif source == "sdist":
        program = "import hatchling.build, sys; hatchling.build.build_sdist(sys.argv[1])"
        build = [sys.executable, "-P", "-c", program, str(tmp_path)]  # types.py is there
        subprocess.run(build, cwd=ROOT / CLIENT_FOLDER, check=True)
        (package,) = tmp_path.glob("*.tar.gz")
    else:
        zipfile.ZipFile(BytesIO(build_archive())).extractall(tmp_path / "client-alone")
        package = tmp_path / "client-alone" / CLIENT_FOLDER
    options = ("--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path))
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", *options, package], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {"dynabench/__init__.py", "dynabench/client/client.py", "dynabench/py.typed"} <= {*names}
    assert {f"dynabench/client/{name}" for name in freshness.GENERATED} <= {*names}
    has_check = "dynabench/_server/evaluation/isolation/inference/precheck.py" in names
    assert has_check == (source == "archive")
    program = "from dynabench import DynabenchClient as C; print(C(None, 'http://x.test').server)"
    assert (
        said(Path(sys.executable), "-c", program, PYTHONPATH=str(wheel)).strip() == "http://x.test"
    )
    if not has_check:
        done = subprocess.run(
            [sys.executable, "-m", "dynabench.client", "test", str(package), "--task", "nli"],
            env={**os.environ, "PYTHONPATH": str(wheel)}, capture_output=True, text=True,
            cwd=tmp_path,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr
