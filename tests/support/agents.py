"""`dynabench mcp` in a process of its own, asked by the official client."""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests.support.live import ROOT

COMMAND = ["-m", "dynabench.client", "mcp"]
TRANSPORTS = ["stdio", "http"]


def environment(folder, server, key=None) -> dict[str, str]:
    """The variables of a person at a machine where nobody else has logged in."""
    kept = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "HOME": str(folder)}
    known = {"XDG_CONFIG_HOME": str(folder / "config"), "DYNABENCH_URL": server}
    return kept | known | ({"DYNABENCH_API_KEY": key} if key else {})


@contextmanager
def http_server(folder, server, *options, key=None) -> Iterator[str]:
    """Gives the address. key: one that the process has, and must not lend."""
    process = subprocess.Popen(
        [sys.executable, *COMMAND, "--http", "0", *options],
        env=environment(folder, server, key), stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        first = process.stderr.readline()
        yield re.search(r"http://\S+/mcp", first.replace(server, "")).group()
    finally:
        process.terminate()
        process.communicate(timeout=20)


@asynccontextmanager
async def http_client(address, key=None, mode="auto") -> AsyncIterator[Client]:
    """A client at an address, whose requests have this key. mode: of which protocol, see Client."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(address, http_client=http), mode=mode) as client,
    ):
        yield client


class Agent:
    """What an agent can do at a site over one transport."""

    def __init__(self, transport, folder, server) -> None:
        self.transport, self.folder, self.server = transport, folder, server

    def run(self, do: Callable[[Client], Awaitable], key=None, *options: str):
        """Connect, do it, and give what it gives."""
        return asyncio.run(self._run(do, key, options))

    async def _run(self, do, key, options):
        if self.transport == "stdio":
            parameters = StdioServerParameters(
                command=sys.executable, args=[*COMMAND, *options],
                env=environment(self.folder, self.server, key),
            )  # fmt: skip
            async with Client(parameters) as client:
                return await do(client)
        with http_server(self.folder, self.server, *options) as address:
            async with http_client(address, key) as client:
                return await do(client)


async def ask(client, tool, **arguments):
    """What a tool gives that must succeed; its text says the same."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content[0].text
    text = result.content[0].text
    assert json.loads(text[text.index("{") :]) == result.structured_content
    return result.structured_content


async def refused(client, tool, **arguments):
    """The error of a tool that must fail."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.structured_content
    error = result.structured_content["error"]
    assert error["message"]
    assert error == json.loads(result.content[0].text)["error"]
    return error
