"""Site map."""

from django.contrib import admin
from django.contrib.auth.decorators import login_not_required
from django.urls import include, path
from django.views.generic import RedirectView

from core.accounts import views
from dynabench import download, health, help_pages, pages, styleguide, task_pages
from dynabench.manage import new, proposals
from dynabench.notices.views import off as digest_off
from dynabench.notices.views import page as news
from dynabench.notices.views import uninvited
from dynabench.operations.watching import status as site_status
from dynabench.operations.watching.metrics import metrics
from dynabench.people import joining, personal
from tasks.contexts.media.views import media_file

handler403 = "dynabench.pages.not_allowed"
handler404 = "dynabench.pages.not_found"
handler500 = "dynabench.api.server_error"
of_group = login_not_required(RedirectView.as_view(pattern_name="communities:community"))

urlpatterns = [
    path("", pages.home, name="home"),
    path("t/<slug:code>/", task_pages.overview, name="task"),
    path("t/<slug:code>/rounds/", task_pages.task_rounds, name="task-rounds"),
    path("t/<slug:code>/data/", task_pages.task_data, name="task-data"),
    path("g/<slug:slug>/", of_group),  # of the groups that became communities
    path("t/<slug:code>/numbers.csv", task_pages.numbers_file, {"kind": "csv"}, name="numbers-csv"),
    path(
        "t/<slug:code>/numbers.json", task_pages.numbers_file, {"kind": "json"}, name="numbers-json"
    ),
    path("media/<slug:digest>/", media_file, name="media"),
    path("", include("annotation.urls")),
    path("", include("validation.urls")),
    path("", include("evaluation.urls")),
    path("", include("leaderboard.urls")),
    path("me/", include("dynabench.people.urls")),
    path("join/<str:key>/", joining.join, name="join"),
    path("own/<slug:code>/campaigns/", include("dynabench.campaigns.own_urls")),
    path("own/<slug:code>/", include("dynabench.manage.urls")),
    path("c/<slug:slug>/", include("dynabench.campaigns.urls")),
    path("personal/<str:key>/", personal.personal, name="personal"),
    path("personal/<str:key>/delete/", personal.delete_personal_data, name="personal-delete"),
    path("personal/<str:key>/download/", personal.download_personal_data, name="personal-download"),
    path("communities/", include("dynabench.communities.urls")),
    path("new/", new.gallery, name="new"),
    path("new/draft/", include("dynabench.manage.wizard.urls")),
    path("new/proposals/", proposals.list_proposals, name="proposals"),
    path("new/proposals/<int:pk>/", proposals.decide_proposal, name="proposal"),
    path("new/proposals/<int:pk>/withdraw/", new.withdraw_request, name="proposal-withdraw"),
    path("new/<slug:kind>/<slug:code>/", new.new_task, name="new-task"),
    path("new/<slug:kind>/<slug:code>/preview/", new.new_preview, name="new-preview"),
    path("demo/", include("dynabench.operations.demo.urls")),
    path("account/", views.account, name="account"),
    path("account/keyboard-mode/", views.keyboard_mode, name="keyboard-mode"),
    path("account/ranking/", views.ranking, name="ranking"),
    path("account/tokens/", views.tokens, name="tokens"),
    path("account/tokens/<int:pk>/revoke/", views.token_revoke, name="token-revoke"),
    path("account/reauthenticate/", views.reauthenticate, name="reauthenticate"),
    path("account/undo/<str:key>/", views.undo_change, name="undo"),
    path("account/webhooks/", include("dynabench.webhooks.urls")),
    path("me/news/", news, name="news"),
    path("invitations/off/<str:token>/", uninvited, name="uninvited"),
    path("notices/<str:token>/", digest_off, name="notices-off"),
    path("help/", views.help_page, name="help"),
    path("privacy/", pages.privacy, name="privacy"),
    path("help/numbers/", pages.numbers, name="numbers"),
    path("help/docs/", help_pages.docs_list, name="docs"),
    path("help/docs/<slug:name>/", help_pages.docs_one, name="docs-page"),
    path("help/pictures/<str:name>", help_pages.docs_picture, name="docs-picture"),
    path("dynabench-client.zip", download.client_zip, name="client"),
    path("status/", site_status.site_status, name="status"),
    path("status/incident/", site_status.incident, name="incident"),
    path("styleguide/", styleguide.styleguide, name="styleguide"),
    path("favicon.ico", pages.favicon),
    path("healthz/", health.healthz, name="healthz"),
    path("metrics", metrics, name="prometheus"),
    path("readyz/", health.readyz, name="readyz"),
    path("i18n/", views.choose_language, name="set_language"),
    path("api/v1/", include(("dynabench.api", "v1"), namespace="v1")),
    path("accounts/logout/", views.sign_out, name="account_logout"),
    path("accounts/email/", views.addresses, name="account_email"),
    path("accounts/password/set/", views.password_set, name="account_set_password"),
    path("accounts/", include("allauth.urls")),
    path("admin/", admin.site.urls),
]
