"""The site's middleware: request ids, languages, the content security policy and more."""

import logging
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from django.conf import settings
from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.http import HttpRequest, HttpResponse
from django.middleware.locale import LocaleMiddleware
from django.shortcuts import render, resolve_url
from django.utils import translation
from django.utils.deprecation import MiddlewareMixin
from django_htmx.http import HttpResponseClientRedirect

from core.telemetry.logs import current_request
from core.telemetry.tracing import open_span
from core.web.outages import respond_unavailable

Handler = Callable[[HttpRequest], HttpResponse]
logger = logging.getLogger(__name__)


def assign_request_id(get_response: Handler) -> Handler:
    """Assign an id to each request, which error pages and log lines show."""

    def middleware(request: HttpRequest) -> HttpResponse:
        request.id = uuid.uuid4().hex[:12]  # type: ignore[attr-defined]
        context_token = current_request.set(request)
        try:
            response = get_response(request)
            response["X-Request-Id"] = request.id  # type: ignore[attr-defined]
            if response.status_code >= 500:
                details = (response["X-Request-Id"], getattr(response, "reason_logged", ""))
                logger.warning("%s %s %s %s", response.status_code, request.path, *details)
            return response
        finally:
            current_request.reset(context_token)

    return middleware


def trace_requests(get_response: Handler) -> Handler:
    """Create a tracing span for each request, named after its route, if traces are enabled."""

    def middleware(request: HttpRequest) -> HttpResponse:
        with open_span(request.method or "", request_id=request.id) as current_span:  # type: ignore[attr-defined]
            response = get_response(request)
            if current_span:
                # The route and not the path, so that spans of one page have one name.
                route = ""
                if request.resolver_match:
                    route = request.resolver_match.route
                current_span.update_name(f"{request.method} /{route}")
                current_span.set_attribute("http.response.status_code", response.status_code)
            return response

    return middleware


class LanguageMiddleware(LocaleMiddleware):
    """A middleware that activates the language chosen by the person or the browser.

    The API is always in English, except for its documentation pages.
    """

    def process_request(self, request: HttpRequest) -> None:
        super().process_request(request)
        path = request.path_info
        if path.startswith("/api/") and not path.endswith(("/docs/", "/docs/try/")):
            translation.activate(settings.LANGUAGE_CODE)
            request.LANGUAGE_CODE = settings.LANGUAGE_CODE


def build_policy_header(**changes: Sequence[str]) -> str:
    """Return settings.SECURE_CSP as a header value.

    changes: directives to replace, such as `frame_ancestors=["'self'"]`.
    """
    changed_directives = {name.replace("_", "-"): sources for name, sources in changes.items()}
    directives = {**settings.SECURE_CSP, **changed_directives}
    return "; ".join(f"{name} {' '.join(sources)}" for name, sources in directives.items())


def send_content_security_policy(get_response: Handler) -> Handler:
    """Send settings.SECURE_CSP in a header, unless the view has set this header.

    To be replaced with Django 6's own middleware.
    """
    policy_header = build_policy_header()

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response.headers.setdefault("Content-Security-Policy", policy_header)
        return response

    return middleware


def mark_private_pages(get_response: Handler) -> Handler:
    """Prevent caches from storing responses to signed-in people, so that none outlives a sign-out.

    A view's own Cache-Control is kept. No user is looked up: if nothing asked who the person is,
    the response is the same for everybody.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        user = getattr(request, "_cached_user", None)  # Django's, once `request.user` was read
        if (user and user.is_authenticated) or "Authorization" in request.headers:
            response.headers.setdefault("Cache-Control", "private, no-store")
        return response

    return middleware


class LoginMiddleware(LoginRequiredMiddleware):
    """Django's login middleware, without the user lookup on public pages.

    Public pages therefore work without a database.
    """

    def process_view(self, request: HttpRequest, view_func: Any, *args: Any) -> Any:
        """Return a redirect to the sign-in page, or None."""
        if not getattr(view_func, "login_required", True):
            return None
        return super().process_view(request, view_func, *args)


class OutageMiddleware(MiddlewareMixin):
    """A middleware that responds to outages, such as an unavailable database or a lock timeout.

    The status is the outage's, usually 503. Handles exceptions raised by views;
    `dynabench.api.server_error` handles those raised by middleware.
    """

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Return a page with Retry-After, or None for all other exceptions."""
        return respond_unavailable(request, exception)


def replace_htmx_redirects(get_response: Handler) -> Handler:
    """Replace the redirect of an htmx request with a response that htmx can handle.

    Browsers follow a 3xx silently, so htmx would insert the sign-in page into a panel. A redirect
    to the sign-in page becomes 401 with a notice; any other becomes a full navigation.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        if not request.htmx or not 300 <= response.status_code < 400:  # type: ignore[attr-defined]
            return response
        target = response.get("Location", "")
        if target.split("?")[0] == resolve_url(settings.LOGIN_URL):
            return render(request, "signed_out.html", {"login_url": target}, status=401)
        return HttpResponseClientRedirect(target)

    return middleware
