"""Views of the account pages: settings, API tokens, help."""

from allauth.account import views as account_views
from allauth.account.decorators import reauthentication_required
from allauth.account.forms import default_token_generator
from allauth.account.utils import user_pk_to_url_str
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import check_for_language
from django.utils.translation import gettext as _
from django.views import i18n
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from core.accounts.forms import TokenForm
from core.accounts.models import ApiToken, User
from core.accounts.people import get_person
from core.accounts.reauthentication import list_other_methods, redirect_to_provider
from core.accounts.services import (
    get_annotator,
    set_keyboard_mode,
    set_language,
    set_ranking_visibility,
)
from core.accounts.tokens import create_token, revoke_token
from core.accounts.undo_services import find_undo, restore_account
from core.web.guest_text import delete_guest_text
from core.web.htmx import get_form_status, is_htmx_partial, render_page
from core.web.refusals import show_as_form_error, show_as_message


@login_not_required
def sign_out(request: HttpRequest) -> HttpResponse:
    """Sign out through allauth's view, and delete the unsaved text kept in the browser."""
    response: HttpResponse = account_views.logout(request)
    delete_guest_text(response)
    return response


@login_not_required
def choose_language(request: HttpRequest) -> HttpResponse:
    """Set the language of pages and, for a signed-in person, of mails."""
    response = i18n.set_language(request)
    language = request.POST.get("language", "")
    if request.user.is_authenticated and check_for_language(language):
        set_language(user=get_person(request), language=language)
    return response


@login_not_required
def show_help(request: HttpRequest) -> HttpResponse:
    """Show what the site is for and its keyboard shortcuts."""
    _ensure_annotator(request.user)
    return render_page(request, "help.html", {}, block_name="keys")


def show_account(request: HttpRequest) -> HttpResponse:
    """Show the person's account settings, with the tokens that expire soon."""
    _ensure_annotator(request.user)
    own_tokens = ApiToken.objects.filter(user=request.user.pk)
    expiring_names = [token.name for token in own_tokens if token.is_expiring_soon]
    return render(request, "accounts/account.html", {"ending": expiring_names})


@require_POST
def change_keyboard_mode(request: HttpRequest) -> HttpResponse:
    """Switch single-key shortcuts on or off, and return to the previous page.

    For htmx, return only the switch.
    """
    set_keyboard_mode(
        annotator=get_annotator(get_person(request)), is_on=request.POST.get("on") == "1"
    )
    return_url = request.POST.get("next", "")
    if return_url and is_htmx_partial(request):
        return render(request, "components/keys_switch.html", {"back": return_url})
    return _redirect_within_site(request, return_url, "help")


def _redirect_within_site(request: HttpRequest, url: str, fallback: str) -> HttpResponse:
    """Redirect to a URL of this site, or to the named page if it is empty or of another site."""
    # Anybody can write this address: it must not lead to another site.
    is_own_url = url_has_allowed_host_and_scheme(url, {request.get_host()}, request.is_secure())
    return redirect(url if is_own_url else fallback)


@require_POST
def change_ranking_visibility(request: HttpRequest) -> HttpResponse:
    """Join or leave the rankings of people, and return to the previous page."""
    set_ranking_visibility(
        annotator=get_annotator(get_person(request)), is_on=request.POST.get("on") == "1"
    )
    messages.success(request, _("Saved"))
    return _redirect_within_site(request, request.POST.get("next", ""), "account")


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@reauthentication_required(allow_get=True)  # type: ignore[untyped-decorator]
def manage_tokens(request: HttpRequest) -> HttpResponse:
    """Show the person's tokens and a form that creates one, whose key is shown once."""
    form = TokenForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        with show_as_form_error(form):
            token, key = create_token(user=get_person(request), **form.cleaned_data)
            values = {"token": token, "key": key}
            return render(request, "accounts/token_made.html", values, status=201)
    values = {"tokens": ApiToken.objects.filter(user=get_person(request)), "form": form}
    return render(request, "accounts/tokens.html", values, status=get_form_status(form))


@require_http_methods(["GET", "HEAD", "POST"])
def confirm_token_revocation(request: HttpRequest, pk: int) -> HttpResponse:
    """Revoke a token after asking for confirmation."""
    token = get_object_or_404(ApiToken, pk=pk, user=request.user)
    if request.method != "POST":
        return render(request, "accounts/token_revoke.html", {"token": token})
    revoke_token(token=token, actor=get_person(request))
    messages.success(request, _("Token %(token)s revoked.") % {"token": token.name})
    return redirect("tokens")


# allauth asks again before most changes, but not before it sends a link or sets a first password.
manage_addresses = reauthentication_required(allow_get=True)(account_views.email)
set_password = reauthentication_required(allow_get=True)(account_views.password_set)


def reauthenticate(request: HttpRequest) -> HttpResponse:
    """Redirect the person to their provider to authenticate again and then return to `next`.

    People with another method are redirected to allauth's page instead.
    """
    if [method["id"] for method in list_other_methods(get_person(request))] != ["provider"]:
        return redirect("account_reauthenticate")
    return_url = request.GET.get("next", "")
    is_own_url = url_has_allowed_host_and_scheme(
        return_url, {request.get_host()}, request.is_secure()
    )
    response: HttpResponse = redirect_to_provider(
        request, return_url if is_own_url else reverse("account")
    )
    return response


# The address holds the key, so no cache may keep the page.
@never_cache
@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
def undo_change(request: HttpRequest, key: str) -> HttpResponse:
    """Undo a change to how the person signs in, after confirmation, and let them set a password."""
    link = find_undo(key)
    if link is None:
        return render(request, "accounts/undo.html", status=404)
    if request.method == "POST":
        with show_as_message(request):
            user = restore_account(undo=link)
            logout(request)
            messages.success(request, _("Change undone. All sessions and tokens have ended."))
            return redirect(_get_next_url(user))
    return render(request, "accounts/undo.html", {"address": link.address})


def _get_next_url(user: User) -> str:
    """Return the URL for choosing a password if the site allows one, else for signing in."""
    is_provider_required = settings.PASSWORD_SIGN_IN == "administrators"  # noqa: S105
    if not user.is_active or (is_provider_required and not user.is_superuser):
        return reverse("account_login")
    key = default_token_generator.make_token(user)
    return reverse("account_reset_password_from_key", args=[user_pk_to_url_str(user), key])


def _ensure_annotator(user: User | AnonymousUser) -> None:
    if isinstance(user, User):
        get_annotator(user)
