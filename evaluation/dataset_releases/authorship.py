"""Who wrote and judged the rows of a release: people, people with help, programs, or nobody here.

Counted from the rows. The dataset card, the benchmark card, Croissant and the Hub's metadata all
take their words from here, so that none of them says anything else.
"""

from dataclasses import dataclass

from annotation.models import Attempt, Example, Suggestion
from evaluation.models import Dataset
from tasks.models import TargetModel
from validation.models import Validation


@dataclass(frozen=True)
class Authorship:
    """The numbers of rows and votes by who made them.

    has_rows_to_judge: the task's owners brought in all texts, and people only judge.
    person_rows: written on the site by people, `helped_rows` of them after a suggestion by a model.
    program_rows: by programs that held tokens of people. brought_rows: from other platforms.
    models: the names of the models that answered, empty if there are none.
    """

    is_simulated: bool
    has_rows_to_judge: bool
    person_rows: int
    helped_rows: int
    program_rows: int
    brought_rows: int
    person_votes: int
    program_votes: int
    models: str = ""

    @property
    def has_synthetic_rows(self) -> bool:
        """Return whether programs wrote any of the texts, or suggested them."""
        return self.is_simulated or bool(self.program_rows or self.helped_rows)

    @property
    def language_creators(self) -> list[str]:
        """Return who wrote the texts, in the words of the Hub's metadata."""
        if self.is_simulated:
            return ["machine-generated"]
        creators = []
        if self.has_rows_to_judge or self.brought_rows:
            creators.append("found")
        if self.person_rows and not self.has_rows_to_judge:
            creators.append("crowdsourced")
        if self.has_synthetic_rows:
            creators.append("machine-generated")
        return creators or ["crowdsourced"]

    @property
    def origin_tags(self) -> list[str]:
        """Return the Hub's tags on who made the rows."""
        tags = [] if self.is_simulated else ["human-in-the-loop"]
        if self.has_synthetic_rows:
            tags.append("synthetic")
        return tags

    @property
    def annotations_creators(self) -> list[str]:
        """Return who judged, in the words of the Hub's metadata."""
        if self.is_simulated:
            return ["machine-generated"]
        creators = ["machine-generated"] if self.program_votes else []
        if self.person_votes or not creators:
            creators.insert(0, "crowdsourced")
        return creators

    @property
    def judges(self) -> str:
        """Return who judged, as the subject or object of a sentence."""
        if self.is_simulated or (self.program_votes and not self.person_votes):
            return "programs"
        return "people and programs" if self.program_votes else "people"

    @property
    def other_judges(self) -> str:
        """Return who judged beside the authors, as the beginning of a sentence."""
        return self.judges.replace("people", "other people", 1).capitalize()

    @property
    def counted_judges(self) -> str:
        """Return whose votes a release's numbers count: those of people, or of simulated ones."""
        return "programs" if self.is_simulated else "people"

    @property
    def goal(self) -> str:
        """Return what the rows are for, as a sentence."""
        if self.is_simulated:
            return "Try this site. Simulated rows say nothing about models or people."
        if self.has_rows_to_judge:
            return "Measure models on texts that people judged."
        if not self.models:
            return "Measure models on examples that were written for this task."
        writers = "people" if self.person_rows else "programs"
        if self.person_rows and self.program_rows:
            writers = "people and programs"
        return f"Measure models on examples that {writers} wrote to fool a model in the loop."

    def describe_writers(self) -> str:
        """Return who wrote the rows, as sentences with their numbers."""
        if self.is_simulated:
            return "Simulated: programs wrote all rows, to try the site."
        if self.has_rows_to_judge:
            return "The task's owners brought the texts in."
        sentences = []
        if self.person_rows:
            against = f"against {self.models}" if self.models else "without a model that answers"
            sentences.append(f"People wrote {self.person_rows} rows on the site, {against}.")
        if self.helped_rows:
            sentences.append(f"For {self.helped_rows} of them, they used a model's suggestion.")
        if self.program_rows:
            sentences.append(
                f"Programs with tokens of people wrote {self.program_rows} rows, which are in the "
                "split program alone."
            )
        if self.brought_rows:
            sentences.append(f"{self.brought_rows} rows were brought in from elsewhere.")
        return " ".join(sentences) or "No row is left."

    def describe_judging(self) -> str:
        """Return who judged the rows and what they saw, as a sentence."""
        if self.is_simulated:
            return "Programs judged them, too."
        if not (self.person_votes or self.program_votes):
            return "Nobody judged them on the site."
        return f"{self.other_judges} judged them, without seeing the author's label or a model's."


def find_model_names(dataset: Dataset) -> str:
    """Return a text with the names of the round's targets and of the models in imported rows.

    Empty if there are none. Two queries.
    """
    entries = dataset.round.round_targets.select_related("target")
    target_names = [entry.target.name for entry in entries]
    # Imported rows were written against models that this round does not have.
    answering_models = TargetModel.objects.filter(targetoutput__example__round=dataset.round)
    other_models = answering_models.exclude(name__in=target_names).distinct()
    return ", ".join([*target_names, *other_models.values_list("name", flat=True)])


def read_authorship(dataset: Dataset) -> Authorship:
    """Count a release's rows and votes by who made them. Eight queries."""
    task = dataset.round.task
    rows = Example.objects.filter(dataset_items__dataset=dataset, retracted_at=None).distinct()
    program_row_count = rows.filter(by_program=True).count()
    written_rows = rows.filter(by_program=False)
    # Imported rows keep the id that they had elsewhere.
    brought_row_count = written_rows.filter(uid__isnull=False).count()
    helped_attempts = Attempt.objects.filter(
        example__in=written_rows, assignment__suggestions__action__in=Suggestion.USED_ACTIONS
    )
    votes = Validation.objects.filter(example__in=rows)
    program_vote_count = votes.filter(by_program=True).count()
    return Authorship(
        is_simulated=task.is_simulated,
        has_rows_to_judge=task.config.has_rows_to_judge,
        person_rows=written_rows.count() - brought_row_count,
        helped_rows=helped_attempts.values("example").distinct().count(),
        program_rows=program_row_count,
        brought_rows=brought_row_count,
        person_votes=votes.count() - program_vote_count,
        program_votes=program_vote_count,
        models=find_model_names(dataset),
    )
