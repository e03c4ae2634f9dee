"""The skill for coding agents: its form, its commands, its tools and its configuration are true."""

import argparse
import asyncio
import json
import re
import shlex

import pytest
import yaml
from mcp import Client

from dynabench.client.agents.access import Access
from dynabench.client.agents.server import build_server
from dynabench.client.commands import make_parser
from tasks.config.loading import check_config
from tests.support.live import ROOT

FOLDER = ROOT / "skills" / "dynabench-benchmark"
TEXT = (FOLDER / "SKILL.md").read_text()
_, FRONT, BODY = TEXT.split("---\n", 2)
PAGE = (ROOT / "docs" / "mcp.md").read_text()
COMMANDS = re.findall(r"(?m)^dynabench .*$", BODY) + re.findall(r"(?m)^dynabench .*$", PAGE)
CONFIG = FOLDER / "assets" / "task.yaml"


async def _look():
    async with Client(build_server(Access("http://site.test", folder=ROOT))) as client:
        return await client.list_tools(), await client.list_resources()


@pytest.fixture(scope="module")
def offered():
    """The tools by name, and the addresses of resources."""
    tools, resources = asyncio.run(_look())
    return {one.name: one for one in tools.tools}, {str(one.uri) for one in resources.resources}


def test_the_front_matter_is_as_the_format_asks():
    front = yaml.safe_load(FRONT)
    assert front.keys() <= {
        "name", "description", "license", "compatibility", "metadata", "allowed-tools",
    }  # fmt: skip
    assert front["name"] == FOLDER.name
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", front["name"])
    assert 0 < len(front["description"]) <= 1024
    assert len(front["compatibility"]) <= 500
    assert len(BODY.splitlines()) < 500
    assert all(isinstance(one, str) for one in front["metadata"].values())


@pytest.mark.parametrize("command", COMMANDS)
def test_its_commands_and_options_exist(command):
    assert make_parser().parse_args(shlex.split(command, comments=True)[1:]).do


def test_commands_in_its_sentences_exist():
    (commands,) = (
        action.choices
        for action in make_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    named = set(re.findall(r"`dynabench ([a-z]+)", BODY + PAGE))
    assert named
    assert named <= commands.keys()


def test_its_tools_and_resources_exist(offered):
    tools, resources = offered
    called = set(re.findall(r"`([a-z]+_[a-z_]+)`", BODY))
    others = {
        *("is_over", "config_text", "new_code", "exact_match", "served_models", "secret_from"),
    }
    assert called - others <= tools.keys()
    assert set(re.findall(r"dynabench://[a-z/-]+", BODY + PAGE)) <= resources


def test_its_files_are_there():
    for name in re.findall(r"\]\(([\w/.-]+)\)", BODY):
        assert (FOLDER / name).is_file(), name


def test_its_configuration_is_accepted_without_a_warning():
    config, problems = check_config(CONFIG.read_text())
    assert config is not None
    assert problems == []


def test_the_page_names_each_tool_once_with_its_scope(offered):
    tools, _ = offered
    rows = re.findall(r"(?m)^\| `(\w+)` \| (\w+) \|", PAGE)
    assert dict(rows) == {name: tool.meta["dynabench/scope"] for name, tool in tools.items()}
    assert len(rows) == len(tools)


def test_the_settings_in_the_page_start_the_command():
    for block in re.findall(r"```json\n(.*?)```", PAGE, re.S):
        if "mcpServers" in block:
            (server,) = json.loads(block)["mcpServers"].values()
            assert server["command"] == "dynabench"
            assert make_parser().parse_args(server["args"]).do
