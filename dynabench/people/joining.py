"""The page of an invitation to a task: what the task is, and the button that accepts."""

from allauth.account.adapter import get_adapter
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from core.accounts.adapter import INVITATION_KEY
from core.accounts.people import get_person
from core.web.refusals import show_as_message
from core.web.throttles import is_used_up
from tasks.members.invitation_services import accept_invitation, find_invitation
from tasks.models import TaskMember


@never_cache
@login_not_required
@require_http_methods(["GET", "HEAD", "POST"])
def show_invitation(request: HttpRequest, key: str) -> HttpResponse:
    """Show the invitation and let the person become a member.

    People who are not signed in sign up or sign in first. Then they are led back here, if
    necessary by a cookie.
    """
    user = request.user
    # Counted, so that nobody finds an invitation by trying keys.
    client_key = get_adapter().get_client_ip(request)
    if user.is_authenticated:
        client_key = user.pk
    if is_used_up("joining", client_key):
        return render(request, "me/join.html", {"is_busy": True}, status=429)
    if request.method == "POST" and user.is_authenticated:
        with show_as_message(request):
            task = accept_invitation(key=key, user=get_person(request))
            messages.success(request, _("Welcome! You are now a member of this task."))
            redirect_response = redirect("task", task.code)
            redirect_response.delete_cookie(INVITATION_KEY)
            return redirect_response
    invitation = find_invitation(key)
    if invitation is None:
        response = render(request, "me/join.html", status=410)
        response.delete_cookie(INVITATION_KEY)
        return response
    role = TaskMember.Role(invitation.role)
    response = render(request, "me/join.html", {"invitation": invitation, "role": role.label})
    if not user.is_authenticated:
        # Signing up may take place in another tab, or end in a mail: the cookie leads back here.
        is_secure = settings.SESSION_COOKIE_SECURE
        response.set_signed_cookie(
            INVITATION_KEY, key, max_age=24 * 3600, secure=is_secure, httponly=True, samesite="Lax"
        )
    return response
