"""Campaigns in the admin: read-only pages, and buttons that change the state."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import Count, Q, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from core.text.money import format_units
from core.web.refusals import show_as_message
from dynabench.campaigns.models import Campaign
from dynabench.campaigns.rules.pay import OWED_KINDS
from dynabench.campaigns.selectors import (
    TAKEN_STATES,
    calculate_numbers,
    find_next_approval,
    list_place_rows,
)
from dynabench.campaigns.services import ALLOWED_STATES_BEFORE, set_campaign_state
from tasks.admin.roles import OWNERS, READ_ONLY_PERMISSIONS, RoleAdmin, get_person

STEP_BY_ACTION = {
    Campaign.State.OPEN: (
        "Open",
        ("People can join. The first time, opening needs the owner's name."),
    ),
    Campaign.State.PAUSED: (
        "Pause",
        ("Nobody new can join. Current participants continue and are paid."),
    ),
    Campaign.State.CLOSED: (
        "Close",
        ("Closes for good. Current participants continue and are paid."),
    ),
}


@admin.register(Campaign)
class CampaignAdmin(RoleAdmin):
    """The admin pages of campaigns, read-only because the plan is edited on the owners' pages.

    They never show panel ids.
    """

    list_display = [
        "slug",
        "name",
        "task",
        "state",
        "way",
        "people",
        "spent",
        "budget_amount",
        "opened_at",
    ]
    list_filter = ["state", "way", "kind", ("task", admin.RelatedOnlyFieldListFilter)]
    list_per_page = 50
    search_fields = ["slug", "name"]
    ordering = ["-pk"]
    fields = readonly_fields = (
        *("task", "slug", "name", "kind", "way", "state", "round_numbers", "people", "each"),
        *("minutes", "opens_at", "closes_at", "opened_at", "closed_at", "ethics_name"),
        *("pay_each", "spent", "budget_amount", "hourly_pay", "next_approval"),
    )
    roles_by_action = {**READ_ONLY_PERMISSIONS, "view": OWNERS, "move": OWNERS}
    page_roles = OWNERS

    def get_queryset(self, request: HttpRequest) -> Any:
        """Return the campaigns with their taken places and earned money, for the list's columns."""
        # distinct, as the join with the ledger below repeats each place.
        taken_count = Count(
            "all_places", filter=Q(all_places__state__in=TAKEN_STATES), distinct=True
        )
        rows = super().get_queryset(request).annotate(taken=taken_count)
        is_owed = Q(all_places__ledger__kind__in=OWED_KINDS)
        return rows.annotate(earned=Sum("all_places__ledger__amount", filter=is_owed, default=0))

    def get_page_url(self, row: Campaign) -> str:
        """Return the address of the campaign's page for owners."""
        return reverse("own-campaigns:campaign", args=[row.task.code, row.slug])

    def describe_for_log(self, row: Campaign) -> dict[str, str]:
        """Return the query parameters that show the campaign's entries in the audit log."""
        return {"task": row.task.code, "action__startswith": "campaign."}

    @admin.display(ordering="taken")
    def people(self, row: Any) -> str:
        """Return the number of taken places out of all places, such as "3 of 10"."""
        return f"{row.taken} of {row.places}"

    @admin.display(description="spent, including fees and tax", ordering="earned")
    def spent(self, row: Any) -> str:
        """Return the money that people have earned, with fee and tax."""
        return _format_money(row, row.pay.add_costs(row.earned))

    @admin.display(description="budget", ordering="budget")
    def budget_amount(self, row: Campaign) -> str:
        """Return the campaign's budget."""
        return "none" if row.budget is None else _format_money(row, row.budget)

    @admin.display(description="rounds")
    def round_numbers(self, row: Campaign) -> str:
        """Return the numbers of the rounds whose work counts."""
        numbers = [str(round.number) for round in row.rounds.all()]
        return ", ".join(numbers) or "all open rounds"

    @admin.display(description="pay: task, accepted example, bonus")
    def pay_each(self, row: Campaign) -> str:
        """Return the pay for the task and for an accepted example, and the bonus for a catch."""
        amounts = (row.pay_task, row.pay_accepted, row.pay_bonus)
        return ", ".join(_format_money(row, amount) for amount in amounts)

    @admin.display(description="median hourly earnings")
    def hourly_pay(self, row: Campaign) -> str:
        """Return the median of the participants' hourly earnings."""
        hourly = calculate_numbers(row, list_place_rows(row)).hourly
        return "no data yet" if hourly is None else _format_money(row, hourly)

    @admin.display(description="awaiting the owner's decision")
    def next_approval(self, row: Campaign) -> str:
        """Return how many submissions await a decision, and when the panel approves them."""
        next_approval = find_next_approval(row)
        if next_approval is None:
            return "0"
        waiting_count, approves_at = next_approval
        return f"{waiting_count}; the panel approves from {approves_at:%Y-%m-%d %H:%M} UTC on"

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """Render the form, with buttons for the states that the person may choose."""
        campaign = kwargs.get("obj")
        # Only steps that the service would take.
        if campaign and self.is_allowed(request, "move", campaign):
            context["steps"] = [
                {"state": state, "words": words, "effect": effect}
                for state, (words, effect) in STEP_BY_ACTION.items()
                if campaign.state in ALLOWED_STATES_BEFORE[state]
            ]
        return super().render_change_form(request, context, *args, **kwargs)

    def get_urls(self) -> Any:
        """Return the default admin URLs, and the one to which the state buttons post."""
        urls = super().get_urls()
        # Before the admin's own, whose last pattern takes every address.
        urls.insert(0, self.build_row_page("state", require_POST(self.state_view)))
        return urls

    def state_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Move the campaign to another state."""
        campaign = self.get_permitted_row(request, pk, "move")
        state = request.POST.get("state", "")
        if state in STEP_BY_ACTION:
            # Cut to the column's length, as no form has checked it.
            name = request.POST.get("ethics_name", "")[:100]
            with show_as_message(request):
                set_campaign_state(
                    campaign=campaign, actor=get_person(request), state=state, ethics_name=name
                )
                messages.success(request, f"{campaign} is {state} now.")
        return redirect("admin:campaigns_campaign_change", pk)


def _format_money(row: Campaign, amount: int) -> str:
    """Format an amount, given in the smallest unit of the campaign's currency."""
    return f"{format_units(amount, row.currency)} {row.currency}"
