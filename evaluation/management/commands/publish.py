"""Write a released version to where others find it: a folder, the Hugging Face Hub, or Zenodo."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from core.files.whole import UNFINISHED_SUFFIX
from core.web.refusals import raise_as_command_error
from evaluation.dataset_releases.publishing.files import list_public_files, write_release_file
from evaluation.dataset_releases.publishing.to_hub import publish_to_hub
from evaluation.dataset_releases.publishing.to_zenodo import publish_to_zenodo
from evaluation.dataset_releases.publishing.zenodo import UnknownOutcome, Zenodo, ZenodoError
from evaluation.models import Dataset, DatasetFile
from tasks.management.lookups import get_round, get_task

PLACES = ("folder", "hub", "zenodo")
RESUME_HINT = "Run the same command again to resume."


class Command(BaseCommand):
    help = "Publish a released version of a round's data (docs/datasets.md)."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("code", help="the task's code, such as nli")
        parser.add_argument("number", type=int, help="the round's number")
        parser.add_argument("--to", choices=PLACES, default=PLACES[0], help="where to")
        parser.add_argument("--output", type=Path, help="folder: the folder to write to")
        parser.add_argument("--repository", help="hub: its id, such as lab/nli-round1")
        parser.add_argument("--of-version", type=int, help="of the data; default: the newest")

    @raise_as_command_error()
    def handle(self, *args: Any, **options: Any) -> None:
        dataset = _find_dataset(options["code"], options["number"], options["of_version"])
        if options["to"] == "folder":
            self._write_folder(dataset, options["output"])
            return
        # A DOI is permanent, and rows invented by programs are not data to cite.
        if dataset.round.task.is_simulated:
            raise CommandError("The data of this task is simulated. Publish it to a folder only.")
        if options["to"] == "hub":
            self._publish_to_hub(dataset, options["repository"])
        else:
            self._publish_to_zenodo(dataset)

    def _write_folder(self, dataset: Dataset, folder: Path | None) -> None:
        """Write the whole release. A second run writes only what is missing or damaged."""
        if folder is None:
            raise CommandError("Name the folder: --output DIR.")
        # Labels that the owner keeps private stay here, even for the operator's own folder.
        files = list_public_files(dataset)
        _refuse_other_files(folder, files)
        written_count = 0
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for file in files:
                written_count += write_release_file(file, folder / file.name)
        except OSError as error:
            raise CommandError(f"{dataset} is not complete in {folder}: {error}") from error
        self.stdout.write(
            f"{dataset}: {len(files)} files are in {folder}, {written_count} of them newly written."
        )
        if not any(file.name == "eval.yaml" for file in files):
            self.stdout.write("It has no eval.yaml: the task has no prompts, or it is an old one.")

    def _publish_to_hub(self, dataset: Dataset, repository: str | None) -> None:
        from httpx2 import HTTPError
        from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled

        if not repository:
            raise CommandError("Name the repository: --repository lab/nli-round1.")
        if not settings.HUB_TOKEN:
            raise CommandError("Set HF_TOKEN to a token of the hub that may write.")
        try:
            publication = publish_to_hub(
                dataset,
                repository,
                endpoint=settings.HUB_ENDPOINT,
                token=settings.HUB_TOKEN,
                report=self.stdout.write,
            )
        except OfflineModeIsEnabled as error:
            raise CommandError("HF_HUB_OFFLINE forbids to ask the hub. Unset it.") from error
        except (HfHubHTTPError, OSError) as error:
            raise CommandError(f"{dataset} is not on the hub: {error}. {RESUME_HINT}") from error
        except HTTPError as error:
            # If the answer to the commit is lost, the files may be there.
            raise CommandError(f"The hub did not answer: {error}. {RESUME_HINT}") from error
        self.stdout.write(f"{dataset} is at {publication.url}, tag v{dataset.version}.")

    def _publish_to_zenodo(self, dataset: Dataset) -> None:
        if not settings.ZENODO_TOKEN:
            raise CommandError(
                "Set ZENODO_TOKEN to a token with deposit:write and deposit:actions."
            )
        zenodo = Zenodo(settings.ZENODO_URL, settings.ZENODO_TOKEN)
        try:
            publication = publish_to_zenodo(dataset, zenodo, self.stdout.write)
        except UnknownOutcome as error:
            raise CommandError(
                f"{error} It may be published. Run the same command again to find out."
            ) from error
        except (ZenodoError, OSError) as error:
            raise CommandError(f"{error} Nothing is published yet. {RESUME_HINT}") from error
        self.stdout.write(f"{dataset}: https://doi.org/{publication.doi}")


def _find_dataset(code: str, number: int, version: int | None) -> Dataset:
    """Return a finished version of a round. Raises CommandError if there is none."""
    round = get_round(get_task(code), number)
    datasets = round.datasets.filter(state=Dataset.State.DONE).order_by("version")
    versions = list(datasets.values_list("version", flat=True))
    if not versions:
        raise CommandError(f"{round} is not released. Use release_round first.")
    number = versions[-1] if version is None else version
    if number not in versions:
        known_versions = ", ".join(map(str, versions))
        raise CommandError(f"{round} has no version {number}. Versions: {known_versions}.")
    return datasets.select_related("round__task").get(version=number)


def _refuse_other_files(folder: Path, files: list[DatasetFile]) -> None:
    """Raise CommandError if the folder has other files, which would seem to be published too."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise CommandError(f"{folder} is not a folder.")
    other_names = {path.name for path in folder.iterdir()} - {file.name for file in files}
    # A stopped run leaves an unfinished file.
    other_names -= {f"{file.name}{UNFINISHED_SUFFIX}" for file in files}
    if other_names:
        raise CommandError(
            f"{folder} has other files, such as {min(other_names)}. Use an empty one."
        )
