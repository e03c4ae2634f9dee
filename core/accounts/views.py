"""The account pages: settings, tokens of the API, help."""

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
from core.accounts.people import person
from core.accounts.reauthentication import ask_provider, other_ways
from core.accounts.services import annotator_of, set_in_ranking, set_keyboard_mode, set_language
from core.accounts.tokens import create_token, revoke_token
from core.accounts.undo_services import find_undo, restore_account
from core.web.htmx import form_status, htmx_partial, render_page
from core.web.kept_text import forget_text
from core.web.refusals import as_form_error, as_message


@login_not_required
def sign_out(request: HttpRequest) -> HttpResponse:
    """Sign out as allauth does, and delete the text stored in the browser."""
    response: HttpResponse = account_views.logout(request)
    forget_text(response)
    return response


@login_not_required
def choose_language(request: HttpRequest) -> HttpResponse:
    """Set the language of pages, as Django does, and of mails to a signed-in person."""
    response = i18n.set_language(request)
    chosen = request.POST.get("language", "")
    if request.user.is_authenticated and check_for_language(chosen):
        set_language(user=person(request), language=chosen)
    return response


@login_not_required
def help_page(request: HttpRequest) -> HttpResponse:
    """Show the purpose of the site and its keyboard shortcuts."""
    _ensure_annotator(request.user)
    return render_page(request, "help.html", {}, part="keys")


def account(request: HttpRequest) -> HttpResponse:
    """Show the person's account settings."""
    _ensure_annotator(request.user)
    own_tokens = ApiToken.objects.filter(user=request.user.pk)
    ending = [token.name for token in own_tokens if token.ends_soon]
    return render(request, "accounts/account.html", {"ending": ending})


@require_POST
def keyboard_mode(request: HttpRequest) -> HttpResponse:
    """Switch single-key shortcuts, and return to the previous page; for htmx only the switch."""
    set_keyboard_mode(annotator=annotator_of(person(request)), is_on=request.POST.get("on") == "1")
    return_url = request.POST.get("next", "")
    if return_url and htmx_partial(request):
        return render(request, "components/keys_switch.html", {"back": return_url})
    # Anybody can write this address: it must not lead to another site.
    is_here = url_has_allowed_host_and_scheme(return_url, {request.get_host()}, request.is_secure())
    return redirect(return_url if is_here else "help")


@require_POST
def ranking(request: HttpRequest) -> HttpResponse:
    """Join or leave the rankings of people."""
    set_in_ranking(annotator=annotator_of(person(request)), is_on=request.POST.get("on") == "1")
    messages.success(request, _("Saved."))
    return redirect("account")


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@reauthentication_required(allow_get=True)  # type: ignore[untyped-decorator]
def tokens(request: HttpRequest) -> HttpResponse:
    """Show the person's tokens and a form that creates one, whose key is shown once."""
    form = TokenForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        with as_form_error(form):
            token, key = create_token(user=person(request), **form.cleaned_data)
            values = {"token": token, "key": key}
            return render(request, "accounts/token_made.html", values, status=201)
    values = {"tokens": ApiToken.objects.filter(user=person(request)), "form": form}
    return render(request, "accounts/tokens.html", values, status=form_status(form))


@require_http_methods(["GET", "HEAD", "POST"])
def token_revoke(request: HttpRequest, pk: int) -> HttpResponse:
    """Revoke a token after asking for confirmation."""
    token = get_object_or_404(ApiToken, pk=pk, user=request.user)
    if request.method != "POST":
        return render(request, "accounts/token_revoke.html", {"token": token})
    revoke_token(token=token, actor=person(request))
    messages.success(request, _("%(token)s is revoked.") % {"token": token.name})
    return redirect("tokens")


# allauth asks again before most changes, but not before it sends a link or sets a first password.
addresses = reauthentication_required(allow_get=True)(account_views.email)
password_set = reauthentication_required(allow_get=True)(account_views.password_set)


def reauthenticate(request: HttpRequest) -> HttpResponse:
    """Authenticate at the provider again, for accounts without a password, and return."""
    if [way["id"] for way in other_ways(person(request))] != ["provider"]:
        return redirect("account_reauthenticate")
    back = request.GET.get("next", "")
    is_here = url_has_allowed_host_and_scheme(back, {request.get_host()}, request.is_secure())
    response: HttpResponse = ask_provider(request, back if is_here else reverse("account"))
    return response


@never_cache
@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
def undo_change(request: HttpRequest, key: str) -> HttpResponse:
    """Undo a change of how the person signs in, after confirmation, and let them set a password."""
    link = find_undo(key)
    if link is None:
        return render(request, "accounts/undo.html", status=404)
    if request.method == "POST":
        with as_message(request):
            user = restore_account(undo=link)
            logout(request)
            messages.success(request, _("The change is undone. All sessions and tokens ended."))
            return redirect(_next_step(user))
    return render(request, "accounts/undo.html", {"address": link.address})


def _next_step(user: User) -> str:
    """Return the URL for choosing a password if the site allows one, else for signing in."""
    is_by_provider = settings.PASSWORD_SIGN_IN == "administrators"  # noqa: S105
    if not user.is_active or (is_by_provider and not user.is_superuser):
        return reverse("account_login")
    key = default_token_generator.make_token(user)
    return reverse("account_reset_password_from_key", args=[user_pk_to_url_str(user), key])


def _ensure_annotator(user: User | AnonymousUser) -> None:
    if isinstance(user, User):
        annotator_of(user)
