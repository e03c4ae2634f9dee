"""The plan from which a new study starts: valid, with comments on what to change. Pure."""

from collections.abc import Sequence

STARTER = """\
version: 1
# The last part of the link that people open: small letters, digits and hyphens.
study: {code}
title: Do suggestions help people?
question: Do people with suggestions find more errors of the model?

# Each person is drawn into one arm. Each arm needs a campaign of its own.
arms:
  - name: alone
    differs: People write without help
    campaign: {first}
  - name: helped
    differs: People see suggestions and can change them
    campaign: {second}
design: between

# What you measure, and the mean that you assume without an effect.
outcomes:
  - name: catches
    measure: caught
    assume: {{mean: 0.2}}
  - name: valid_examples
    measure: valid
    assume: {{mean: 0.75}}

# What you expect. Everything else in the report is called exploratory.
hypotheses:
  - {{arm: helped, compared_with: alone, outcome: catches, expected: higher}}

# Whom you leave out: people whose mean is lower, here of seconds per example.
exclude:
  - {{measure: seconds, below: 10}}

# people: in all arms. each: examples per person. contexts: different texts.
# effect: the smallest one of interest, in standard deviations. power: how often you would find it.
size: {{people: 200, each: 8, contexts: 120, effect: 0.2, power: 0.8}}
"""
PLACEHOLDERS = ("first-campaign", "second-campaign")
"""What stands in a plan for the campaigns that a task does not have yet."""


def write_starter_plan(code: str, campaigns: Sequence[str]) -> str:
    """Return a commented plan in YAML.

    code: the code of the study. campaigns: the addresses of campaigns for its arms, if there are
    any; the first two are used.
    """
    # A placeholder is refused when the plan is saved, so that nobody forgets to replace it.
    first, second = (*campaigns, *PLACEHOLDERS[len(campaigns) :])[:2]
    return STARTER.format(code=code, first=first, second=second)
