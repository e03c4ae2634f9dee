"""The templates for new tasks: the official tasks and those in `gallery/`."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tasks.config.parsing import read_yaml
from tasks.config.schema import TaskConfig
from tasks.models import Task, TaskProposal, parse_config
from tasks.services import OFFICIAL_FOLDER, SCENES_FILE

GALLERY_FOLDER = Path(__file__).parent / "gallery"


@dataclass(frozen=True)
class Template:
    """A configuration from which people can start a task."""

    code: str
    text: str
    scenes: Path | None = None
    """The file that describes the pictures of its examples, if they are drawn."""

    @property
    def picture(self) -> str:
        """Return the path of the HTML template with the illustration."""
        return f"own/new/pictures/{self.code}.html"

    @property
    def config(self) -> TaskConfig:
        """Return the parsed configuration."""
        return parse_config(self.text)


Source = Template | Task
"""A template or a task, from which a new task can be copied."""


def get_source_text(source: Source) -> str:
    """Return the configuration text of a template or a task."""
    if isinstance(source, Template):
        return source.text
    return source.config_text


def get_source_kind(source: Source | None) -> str:
    """Return the kind of a source as drafts and proposals store it; "" without a source."""
    if source is None:
        return ""
    kind = TaskProposal.Kind
    if isinstance(source, Template):
        return kind.TEMPLATE
    return kind.TASK


@cache
def load_templates() -> Mapping[str, Template]:
    """Return all templates by code: the official tasks first, then the gallery."""
    official_templates = []
    for file in sorted(OFFICIAL_FOLDER.glob("*/task.yaml")):
        official_templates.append(
            Template(file.parent.name, file.read_text(), _find_scenes_file(file.parent))
        )
    other_templates = [
        Template(file.stem, file.read_text()) for file in sorted(GALLERY_FOLDER.glob("*.yaml"))
    ]
    return {template.code: template for template in official_templates + other_templates}


def _find_scenes_file(folder: Path) -> Path | None:
    file = folder / SCENES_FILE
    if file.exists():
        return file
    return None


def rename_config(text: str, name: str) -> str:
    """Return the configuration text with another task name.

    All other characters are unchanged. Raises ConfigError.
    """
    # By the position in the text, so that comments and the order of keys stay.
    name_node = next(node for key, node in read_yaml(text).root.value if key.value == "name")
    start, end = name_node.start_mark.index, name_node.end_mark.index
    quoted_name = json.dumps(name, ensure_ascii=False)  # JSON is YAML
    return (
        text[:start] + quoted_name + ("\n" if text[start:end].endswith("\n") else "") + text[end:]
    )
