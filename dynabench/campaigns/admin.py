"""Campaigns in the admin: read, and moved by the services that the owners' pages use."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import Count, Q, Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from core.web.refusals import as_message
from dynabench.campaigns.models import Campaign
from dynabench.campaigns.rules.pay import units
from dynabench.campaigns.selectors import OWED, TAKEN, approval_due, numbers_of, rows_of
from dynabench.campaigns.services import FROM, set_campaign_state
from tasks.admin.roles import OWNERS, READ_ONLY, RoleAdmin, person

STEPS = {
    Campaign.State.OPEN: ("Open", "People may come. It needs the owner's name, once."),
    Campaign.State.PAUSED: ("Pause", "Nobody may come; who takes part goes on and is paid."),
    Campaign.State.CLOSED: ("Close", "For good. Who takes part goes on and is paid."),
}


@admin.register(Campaign)
class CampaignAdmin(RoleAdmin):
    """No field can be edited: the plan is made on the owners' pages. No panel's id is shown."""

    list_display = ["slug", "name", "task", "state", "way", "people", "spent", "most", "opened_at"]
    list_filter = ["state", "way", "kind", ("task", admin.RelatedOnlyFieldListFilter)]
    list_per_page = 50
    search_fields = ["slug", "name"]
    ordering = ["-pk"]
    fields = readonly_fields = (
        *("task", "slug", "name", "kind", "way", "state", "in_rounds", "people", "each"),
        *("minutes", "opens_at", "closes_at", "opened_at", "closed_at", "ethics_name"),
        *("pay_each", "spent", "most", "hourly_pay", "waiting"),
    )
    may = {**READ_ONLY, "view": OWNERS, "move": OWNERS}
    page_for = OWNERS

    def get_queryset(self, request: HttpRequest) -> Any:
        taken = Count("all_places", filter=Q(all_places__state__in=TAKEN), distinct=True)
        rows = super().get_queryset(request).annotate(taken=taken)
        owed = Q(all_places__ledger__kind__in=OWED)
        return rows.annotate(earned=Sum("all_places__ledger__amount", filter=owed, default=0))

    def page_of(self, row: Campaign) -> str:
        return reverse("own-campaigns:campaign", args=[row.task.code, row.slug])

    def logged(self, row: Campaign) -> dict[str, str]:
        return {"task": row.task.code, "action__startswith": "campaign."}

    @admin.display(ordering="taken")
    def people(self, row: Any) -> str:
        return f"{row.taken} of {row.places}"

    @admin.display(description="spent, with fee and tax", ordering="earned")
    def spent(self, row: Any) -> str:
        return _money(row, row.pay.with_costs(row.earned))

    @admin.display(description="budget", ordering="budget")
    def most(self, row: Campaign) -> str:
        return "none" if row.budget is None else _money(row, row.budget)

    @admin.display(description="rounds")
    def in_rounds(self, row: Campaign) -> str:
        numbers = [str(one.number) for one in row.rounds.all()]
        return ", ".join(numbers) or "whatever is open"

    @admin.display(description="pay: task, accepted example, bonus")
    def pay_each(self, row: Campaign) -> str:
        return ", ".join(
            _money(row, one) for one in (row.pay_task, row.pay_accepted, row.pay_bonus)
        )

    @admin.display(description="the median person earned in an hour")
    def hourly_pay(self, row: Campaign) -> str:
        found = numbers_of(row, rows_of(row)).hourly
        return "nobody yet" if found is None else _money(row, found)

    @admin.display(description="waiting for the owner")
    def waiting(self, row: Campaign) -> str:
        due = approval_due(row)
        return f"{due[0]}; the panel approves from {due[1]:%Y-%m-%d %H:%M} UTC on" if due else "0"

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any
    ) -> Any:
        found = kwargs.get("obj")
        if found and self.allows(request, "move", found):
            context["steps"] = [
                {"state": state, "words": words, "effect": effect}
                for state, (words, effect) in STEPS.items()
                if found.state in FROM[state]
            ]
        return super().render_change_form(request, context, *args, **kwargs)

    def get_urls(self) -> Any:
        return [self.row_page("state", require_POST(self.state_view)), *super().get_urls()]

    def state_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Move the campaign to another state."""
        found, state = self.row_for(request, pk, "move"), request.POST.get("state", "")
        if state in STEPS:
            name = request.POST.get("ethics_name", "")[:100]
            with as_message(request):
                set_campaign_state(
                    campaign=found, actor=person(request), state=state, ethics_name=name
                )
                messages.success(request, f"{found} is {state} now.")
        return redirect("admin:campaigns_campaign_change", pk)


def _money(row: Campaign, amount: int) -> str:
    return f"{units(amount, row.currency)} {row.currency}"
