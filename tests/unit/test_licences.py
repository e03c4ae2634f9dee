"""The page and the bill of materials name all that is shipped or installed, as it is now."""

import json
import re

import pytest

from scripts import licences

PAGE = (licences.ROOT / "docs/licences.md").read_text()
BILL = json.loads((licences.ROOT / "docs/licences.cdx.json").read_text())
MEND = "run `python scripts/licences.py`"


def test_each_pin_is_on_the_page_and_in_the_bill():
    pins = {(name.lower(), version) for name, version, _ in licences.pins()}
    rows = re.findall(r"(?m)^\| ([\w.-]+) \| ([\w.+-]+) \| [^|]+ \| <https?://", PAGE)
    components = [part for part in BILL["components"] if part["type"] == "library"]
    assert pins == {(name.lower(), version) for name, version in rows}, MEND
    assert pins == {(part["name"].lower(), part["version"]) for part in components}, MEND


def test_everything_has_a_licence_and_a_source():
    assert (BILL["bomFormat"], BILL["specVersion"]) == ("CycloneDX", "1.6")
    for part in BILL["components"]:
        (licence,) = part["licenses"]
        # An identifier of SPDX or an expression of them; words alone stand in `name`.
        named = licence.get("expression") or licence["license"].get("id")
        assert named, part["name"]
        assert part["externalReferences"], part["name"]


def test_files_of_others_are_where_the_page_says():
    for one in licences.SHIPPED:
        for path in re.findall(r"`([^`]+)`", one.where):
            assert (licences.ROOT / path).exists(), path
    assert {one.name for one in licences.SHIPPED} <= {part["name"] for part in BILL["components"]}


@pytest.mark.parametrize(
    ("words", "identifier"),
    [
        ("License :: OSI Approved :: BSD License", "BSD-3-Clause"),
        ("License :: OSI Approved :: Apache Software License", "Apache-2.0"),
        ("License :: OSI Approved :: MIT License", "MIT"),
        (
            "License :: OSI Approved :: GNU Lesser General Public License v3 (LGPLv3)",
            "LGPL-3.0-only",
        ),
    ],
)
def test_older_metadata_are_read_by_their_words(words, identifier):
    from email.message import Message

    fields = Message()
    fields["Classifier"] = words
    assert licences.licence_by_words(fields) == identifier
