"""Questions about studies with arms, which `dynabench.studies` answers (`core.questions`)."""

from core.accounts.models import User
from core.questions import UnansweredQuestion, declare_question
from dynabench.campaigns.models import Campaign, Place
from dynabench.campaigns.ways.panels import Arrival


@declare_question
def find_study_door(campaign: Campaign, arrival: Arrival | None, user: User | None) -> str:
    """Return the address at which a person is drawn into an arm; empty if they may come here.

    They may if the campaign is no arm of a study, or is the one that was drawn for them. arrival: a
    panel's ids. user: else the account, None for nobody.
    """
    raise UnansweredQuestion


@declare_question
def find_next_part(place: Place) -> str:
    """Return the address of the study's next part for who has submitted this one; else empty."""
    raise UnansweredQuestion
