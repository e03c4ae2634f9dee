"""The URLs of the site."""

from django.contrib import admin
from django.contrib.auth.decorators import login_not_required
from django.urls import include, path
from django.views.generic import RedirectView

from core.accounts import views
from dynabench import download, health, help_pages, pages, styleguide, task_pages
from dynabench.catches.round_views import show_round
from dynabench.manage import my_tasks, new, proposals
from dynabench.notices.views import show_news, stop_invitations, switch_emails
from dynabench.operations.watching import status as site_status
from dynabench.operations.watching.metrics import show_metrics
from dynabench.people import joining, personal
from tasks.contexts.media.views import serve_media_file

handler403 = "dynabench.pages.show_access_denied"
handler404 = "dynabench.pages.show_not_found"
handler500 = "dynabench.api.server_error"
redirect_to_docs = login_not_required(RedirectView.as_view(pattern_name="docs", permanent=True))
redirect_to_docs_page = login_not_required(
    RedirectView.as_view(pattern_name="docs-page", permanent=True)
)
# Until 0.4 the rounds of a task had a page beside that of its data.
redirect_to_task_data = login_not_required(
    RedirectView.as_view(pattern_name="task-data", permanent=True)
)
redirect_to_community = login_not_required(
    RedirectView.as_view(pattern_name="communities:community")
)

urlpatterns = [
    path("", pages.show_home, name="home"),
    path("t/<slug:code>/", task_pages.show_overview, name="task"),
    path("t/<slug:code>/rounds/", redirect_to_task_data, name="task-rounds"),
    path("t/<slug:code>/data/", task_pages.show_task_data, name="task-data"),
    path(
        "t/<slug:code>/chart/<slug:name>.<slug:format>",
        task_pages.send_task_chart,
        name="task-chart",
    ),
    path("g/<slug:slug>/", redirect_to_community),  # of the groups that became communities
    path(
        "t/<slug:code>/numbers.csv", task_pages.export_numbers, {"kind": "csv"}, name="numbers-csv"
    ),
    path(
        "t/<slug:code>/numbers.json",
        task_pages.export_numbers,
        {"kind": "json"},
        name="numbers-json",
    ),
    path("t/<slug:code>/rounds/<int:number>/", show_round, name="round"),
    path("t/<slug:code>/catches/", include("dynabench.catches.urls")),
    path("media/<slug:digest>/", serve_media_file, name="media"),
    path("", include("annotation.urls")),
    path("", include("validation.urls")),
    path("", include("evaluation.urls")),
    path("", include("leaderboard.urls")),
    path("me/", include("dynabench.people.urls")),
    path("join/<str:key>/", joining.show_invitation, name="join"),
    path("manage/", my_tasks.show_my_tasks, name="manage"),
    path("own/<slug:code>/campaigns/", include("dynabench.campaigns.own_urls")),
    path("own/<slug:code>/adversaries/", include("dynabench.adversaries.own_urls")),
    path("own/<slug:code>/weak-spots/", include("dynabench.failures.own_urls")),
    path("own/<slug:code>/studies/", include("dynabench.studies.own_urls")),
    path("own/<slug:code>/rounds/<int:number>/arms/", include("dynabench.mixed_rounds.own_urls")),
    path("own/<slug:code>/", include("dynabench.manage.urls")),
    path("c/<slug:slug>/", include("dynabench.campaigns.urls")),
    path("s/<slug:slug>/", include("dynabench.studies.urls")),
    path("personal/<str:key>/", personal.show_personal_data, name="personal"),
    path("personal/<str:key>/delete/", personal.delete_personal_data, name="personal-delete"),
    path("personal/<str:key>/download/", personal.download_personal_data, name="personal-download"),
    path("communities/", include("dynabench.communities.urls")),
    path("new/", new.show_gallery, name="new"),
    path("new/draft/", include("dynabench.manage.wizard.urls")),
    path("new/study/", include("dynabench.studies.new_urls")),
    path("new/proposals/", proposals.list_proposals, name="proposals"),
    path("new/proposals/<int:pk>/", proposals.decide_proposal, name="proposal"),
    path("new/proposals/<int:pk>/withdraw/", new.withdraw_request, name="proposal-withdraw"),
    path("new/<slug:kind>/<slug:code>/", new.show_new_task, name="new-task"),
    path("new/<slug:kind>/<slug:code>/preview/", new.preview_template, name="new-preview"),
    path("demo/", include("dynabench.operations.demo.urls")),
    path("account/", views.show_account, name="account"),
    path("account/keyboard-mode/", views.change_keyboard_mode, name="keyboard-mode"),
    path("account/ranking/", views.change_ranking_visibility, name="ranking"),
    path("account/tokens/", views.manage_tokens, name="tokens"),
    path("account/tokens/<int:pk>/revoke/", views.confirm_token_revocation, name="token-revoke"),
    path("account/reauthenticate/", views.reauthenticate, name="reauthenticate"),
    path("account/undo/<str:key>/", views.undo_change, name="undo"),
    path("account/webhooks/", include("dynabench.webhooks.urls")),
    path("me/news/", show_news, name="news"),
    path("invitations/off/<str:token>/", stop_invitations, name="uninvited"),
    path("notices/<str:token>/", switch_emails, name="notices-off"),
    path("help/", views.show_help, name="help"),
    path("privacy/", pages.show_privacy_notice, name="privacy"),
    path("help/numbers/", pages.show_number_definitions, name="numbers"),
    path("docs/", help_pages.show_docs_list, name="docs"),
    path("docs/<slug:name>/", help_pages.show_docs_page, name="docs-page"),
    path("docs/pictures/<str:name>", help_pages.send_docs_picture, name="docs-picture"),
    # The earlier addresses of the documents.
    path("help/docs/", redirect_to_docs),
    path("help/docs/<slug:name>/", redirect_to_docs_page),
    path("dynabench-client.zip", download.send_client_archive, name="client"),
    path("status/", site_status.show_site_status, name="status"),
    path("status/incident/", site_status.publish_incident, name="incident"),
    path("styleguide/", styleguide.show_styleguide, name="styleguide"),
    path("favicon.ico", pages.redirect_to_favicon),
    path("healthz/", health.show_health, name="healthz"),
    path("metrics", show_metrics, name="prometheus"),
    path("readyz/", health.show_readiness, name="readyz"),
    path("i18n/", views.choose_language, name="set_language"),
    path("api/v1/", include(("dynabench.api", "v1"), namespace="v1")),
    path("accounts/logout/", views.sign_out, name="account_logout"),
    path("accounts/email/", views.manage_addresses, name="account_email"),
    path("accounts/password/set/", views.set_password, name="account_set_password"),
    path("accounts/", include("allauth.urls")),
    path("admin/", admin.site.urls),
]
