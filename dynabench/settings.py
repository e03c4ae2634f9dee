"""All settings. Whatever differs between installations comes from environment variables."""

import os
from pathlib import Path
from typing import Any

from django.urls import reverse_lazy
from whitenoise.compress import Compressor

from core.env import (
    LOGGED_MAIL_BACKEND,
    EnvError,
    build_site_url,
    is_real_mail_backend,
    make_folder,
    parse_database_url,
    read_cache_address,
    read_env_bool,
    read_env_choice,
    read_env_class,
    read_env_currency,
    read_env_file,
    read_env_host,
    read_env_hosts,
    read_env_int,
    read_env_list,
    read_env_networks,
    read_env_origins,
    read_env_private_hosts,
    read_env_roles,
    read_env_secret,
    read_env_sender,
    read_env_storage,
    read_env_url,
    read_or_make_secret,
    read_ray_address,
)
from core.text.languages import list_languages
from core.web.enum_names import ENUM_NAMES
from dynabench.log_settings import build_log_settings

BASE_DIR = Path(__file__).resolve().parent.parent
# Database, models, secrets and uploads of a plain installation live below one folder.
HOME = Path(os.environ.get("DYNABENCH_HOME") or BASE_DIR / "var").resolve()
make_folder("DYNABENCH_HOME", HOME)  # SQLite's files are made for all to read

DEBUG = read_env_bool("DEBUG")
# HTTPS=1 says that people reach the site by https: secure cookies, HSTS, redirect from http.
HTTPS = read_env_bool("HTTPS")
SECRET_KEY = read_env_secret("SECRET_KEY") or read_or_make_secret(HOME / "secret_key")
# Former ones, which still read what was signed or encrypted with them.
SECRET_KEY_FALLBACKS = read_env_secret("SECRET_KEY_FALLBACKS").replace(",", " ").split()
ALLOWED_HOSTS = read_env_hosts("ALLOWED_HOSTS") or ["localhost", "127.0.0.1", "[::1]"]
CSRF_TRUSTED_ORIGINS = read_env_origins("CSRF_TRUSTED_ORIGINS")

INSTALLED_APPS = [
    "core.accounts",
    "dynabench",
    "dynabench.operations",
    "core.jobs",
    "dynabench.people",
    "dynabench.webhooks",
    "dynabench.notices",
    "dynabench.campaigns",
    "dynabench.studies",
    "dynabench.communities",
    "dynabench.catches",
    "dynabench.adversaries",
    "tasks",
    "annotation",
    "validation",
    "evaluation",
    "leaderboard",
    "dynabench.operations.demo",
    "dynabench.operations.backups",
    "dynabench.admin_app.SiteAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.humanize",  # for allauth's list of sessions
    "django.forms",
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.mfa",
    "allauth.usersessions",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_htmx",
    "template_partials",
    "django_q",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "dynabench.middleware.assign_request_id",
    "dynabench.middleware.send_content_security_policy",
    "dynabench.campaigns.session.FrameMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "dynabench.middleware.LanguageMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "dynabench.middleware.replace_htmx_redirects",
    "dynabench.middleware.OutageMiddleware",
    "dynabench.middleware.mark_private_pages",
    "core.web.bodies.BodyLimitMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "dynabench.middleware.LoginMiddleware",
    "dynabench.campaigns.session.PanelParticipantMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "allauth.usersessions.middleware.UserSessionsMiddleware",
]

# Who may read /metrics: a bearer token, or networks. Without either there is no such page.
METRICS_TOKEN = read_env_secret("METRICS_TOKEN")
METRICS_NETWORKS = read_env_networks("METRICS_NETWORKS")
if METRICS_TOKEN or METRICS_NETWORKS:
    MIDDLEWARE.insert(0, "django_prometheus.middleware.PrometheusBeforeMiddleware")
    MIDDLEWARE.append("dynabench.operations.watching.middleware.CountRequests")

ROOT_URLCONF = "dynabench.urls"
WSGI_APPLICATION = "dynabench.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
            "builtins": [
                "django.templatetags.i18n",
                "dynabench.templatetags.components",
                "dynabench.templatetags.icons",
            ],
        },
    }
]
FORM_RENDERER = "core.web.form_renderer.FieldRenderer"

DATABASES = {
    "default": parse_database_url(
        read_env_secret("DATABASE_URL") or f"sqlite:///{HOME}/db.sqlite3",
        has_prepared_statements=read_env_bool("PREPARE_STATEMENTS"),
        is_pooled=read_env_bool("POOLER"),
    )
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Several web processes need a shared cache (breakers, sign-in limits): CACHE_URL=redis://…
CACHE_URL = read_cache_address()
CACHES: dict[str, dict[str, Any]] = {
    "default": (
        # What is kept names its classes, whose modules moved in 0.4: no release reads the other's.
        {"BACKEND": "core.data.shared_cache.SharedCache", "LOCATION": CACHE_URL, "VERSION": 2}
        if CACHE_URL
        else {
            "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
            "OPTIONS": {"MAX_ENTRIES": 10_000},  # the limits of so many people
        }
    )
}

# People
AUTH_USER_MODEL = "accounts.User"
# Sessions keep this name. Whoever is signed in stays so while releases before and after 0.4 serve.
AUTHENTICATION_BACKENDS = ["dynabench.accounts.backends.Backend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = reverse_lazy("home")
ACCOUNT_ADAPTER = "dynabench.sign_in.Adapter"
SOCIALACCOUNT_ADAPTER = "dynabench.sign_in.ProviderAdapter"
ACCOUNT_LOGOUT_REDIRECT_URL = reverse_lazy("home")
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
ACCOUNT_EMAIL_NOTIFICATIONS = True
ACCOUNT_REAUTHENTICATION_REQUIRED = True
ACCOUNT_FORMS = {
    "login": "core.accounts.forms.LoginForm",
    "signup": "core.accounts.forms.SignupForm",
    "reauthenticate": "core.accounts.forms.ReauthenticateForm",
    "change_password": "core.accounts.forms.ChangePasswordForm",
    "set_password": "core.accounts.forms.SetPasswordForm",
    "reset_password": "core.accounts.forms.ResetPasswordForm",
    "reset_password_from_key": "core.accounts.forms.ResetPasswordKeyForm",
}
ACCOUNT_RATE_LIMITS = {"signup": "20/m/ip", "login": "30/m/ip"}
ALLAUTH_TRUSTED_PROXY_COUNT = read_env_int("TRUSTED_PROXY_COUNT", 0, maximum=100)
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
# Browsers allow passkeys on http only for localhost; so does this setting.
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not HTTPS
MFA_ADAPTER = "core.accounts.adapter.MfaAdapter"
MFA_FORMS = {
    "authenticate": "core.accounts.forms.CodeForm",
    "reauthenticate": "core.accounts.forms.CodeAgainForm",
    "activate_totp": "core.accounts.forms.ActivateCodeForm",
    "add_webauthn": "core.accounts.forms.AddKeyForm",
}
USERSESSIONS_TRACK_ACTIVITY = False

# Sign-in by an organisation's OpenID Connect provider, which makes accounts as people come.
OIDC_ISSUER = read_env_url("OIDC_ISSUER")
OIDC_NAME = os.environ.get("OIDC_NAME") or "OpenID Connect"
OIDC_GROUPS_CLAIM = os.environ.get("OIDC_GROUPS_CLAIM") or "groups"
OIDC_ROLES = read_env_roles("OIDC_ROLES")
# `administrators`: everybody else comes by the provider. They have passwords, should it be down.
PASSWORD_SIGN_IN = read_env_choice("PASSWORD_SIGN_IN", "everybody", "administrators")
# By a link: a form that is sent elsewhere in the end is stopped by browsers (`form-action`).
SOCIALACCOUNT_LOGIN_ON_GET = True
SOCIALACCOUNT_PROVIDERS = {
    "openid_connect": {
        "provider_class": "core.accounts.openid.Provider",
        "OAUTH_PKCE_ENABLED": True,
        "SCOPE": read_env_list("OIDC_SCOPES") or ["openid", "profile", "email"],
        # Who has an account with an address that the provider confirms has it from now on by both.
        "EMAIL_AUTHENTICATION": True,
        "EMAIL_AUTHENTICATION_AUTO_CONNECT": True,
        "APPS": [
            {
                "provider_id": "oidc",
                "name": OIDC_NAME,
                "client_id": os.environ.get("OIDC_CLIENT_ID", ""),
                "secret": read_env_secret("OIDC_CLIENT_SECRET"),
                "settings": {"server_url": OIDC_ISSUER},
            }
        ]
        if OIDC_ISSUER
        else [],
    }
}

LOG_FORMAT = read_env_choice("LOG_FORMAT", "line", "json")
PRINTED_MAILS = "django.core.mail.backends.console.EmailBackend"
EMAIL_BACKEND = read_env_class(
    "EMAIL_BACKEND", LOGGED_MAIL_BACKEND if LOG_FORMAT == "json" else PRINTED_MAILS
)
MAIL_TRANSPORT = EMAIL_BACKEND
if is_real_mail_backend(EMAIL_BACKEND):
    EMAIL_BACKEND = "core.mail.transport.LimitedBackend"  # a server that hangs takes few threads
# Where addresses need not be confirmed, sign-up must tell that there is an account with an address.
VERIFICATIONS = ("mandatory", "optional", "none")  # the first is taken where none is named
ACCOUNT_EMAIL_VERIFICATION = read_env_choice(
    "EMAIL_VERIFICATION",
    *(
        VERIFICATIONS
        if is_real_mail_backend(EMAIL_BACKEND)
        else VERIFICATIONS[1:] + VERIFICATIONS[:1]
    ),
)
# Whether votes decide of people who signed in without a confirmed address.
UNCONFIRMED_VOTES = read_env_bool("UNCONFIRMED_VOTES")
EMAIL_HOST = read_env_host("EMAIL_HOST", "localhost")
EMAIL_PORT = read_env_int("EMAIL_PORT", 25, minimum=1, maximum=65535)
EMAIL_HOST_USER = os.environ.get("EMAIL_HOST_USER", "")
EMAIL_HOST_PASSWORD = read_env_secret("EMAIL_HOST_PASSWORD")
EMAIL_USE_TLS = read_env_bool("EMAIL_USE_TLS")
# Of django-anymail's backends: ANYMAIL_MAILGUN_API_KEY becomes MAILGUN_API_KEY.
ANYMAIL: dict[str, Any] = {
    name.removeprefix("ANYMAIL_").removesuffix("_FILE"): read_env_secret(name.removesuffix("_FILE"))
    for name in os.environ
    if name.startswith("ANYMAIL_")
}
EMAIL_TIMEOUT = 5  # seconds; somebody waits for the page meanwhile
ANYMAIL.setdefault("REQUESTS_TIMEOUT", EMAIL_TIMEOUT)
# Where people reach the site; for links in mails that no request asks for.
WEB_CONCURRENCY = read_env_int(
    "WEB_CONCURRENCY", 1, minimum=1, maximum=1000
)  # gunicorn reads it itself
PORT = read_env_int("PORT", 8000, minimum=1, maximum=65535)  # of `./run`
SITE_URL = read_env_url("SITE_URL", is_bare=True) or build_site_url(
    ALLOWED_HOSTS[0], is_https=HTTPS, port=PORT
)
# A file in Markdown: who stores what about people, on which grounds, and whom they may ask.
PRIVACY_TEXT = read_env_file("PRIVACY_TEXT")
DEFAULT_FROM_EMAIL = read_env_sender("DEFAULT_FROM_EMAIL", "dynabench@localhost")

# Who may make tasks, besides superusers. Owners use the site's processors and speak to everybody in
# its name, so an administrator says yes to each task.
NEW_TASKS = read_env_choice("NEW_TASKS", "approval", "everybody", "nobody")
NEW_TASKS_AT_ONCE = read_env_int("NEW_TASKS_AT_ONCE", 5)  # of a person, before a round was opened

# Security headers. The shape of SECURE_CSP is Django 6's, whose middleware will replace ours.
SECURE_CSP = {
    "default-src": ["'none'"],
    "script-src": ["'self'"],
    "style-src": ["'self'"],
    "img-src": ["'self'", "data:"],
    "media-src": ["'self'"],
    "font-src": ["'self'"],
    "connect-src": ["'self'"],
    "frame-src": ["'self'"],
    "form-action": ["'self'"],
    "frame-ancestors": ["'none'"],
    "base-uri": ["'none'"],
}
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SESSION_ENGINE = "core.accounts.sessions"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = HTTPS
LANGUAGE_COOKIE_SECURE = HTTPS
SECURE_REDIRECT_EXEMPT = [r"^metrics$"]  # asked from inside, past the proxy
SECURE_HSTS_SECONDS = 31536000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS
if read_env_bool("BEHIND_PROXY"):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

# Text, time, files
LANGUAGE_CODE = "en"
LOCALE_PATHS = [BASE_DIR / "locale"]
LANGUAGES = list_languages(LOCALE_PATHS[0])
FORMAT_MODULE_PATH = "core.text.formats"
LANGUAGE_COOKIE_AGE = 365 * 86400
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True
STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
# The container image has them already, for its file system is read-only.
STATIC_ROOT = Path(os.environ.get("STATIC_ROOT") or HOME / "static")
WHITENOISE_KEEP_ONLY_HASHED_FILES = True  # nothing asks for the others, and compressing takes long
WHITENOISE_SKIP_COMPRESS_EXTENSIONS = [*Compressor.SKIP_COMPRESS_EXTENSIONS, "map"]
# Uploads, releases, models and media: a folder, or a bucket that all machines reach.
STORAGE_URL = os.environ.get("STORAGE_URL")
STORAGES = {
    "default": read_env_storage("STORAGE_URL"),
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}
MEDIA_ROOT = HOME / "media"
# What was erased, so that no older backup brings it back: on another disk than the database.
ERASURE_LOG = os.environ.get("ERASURE_LOG") or HOME / "erasures.log"
# Where what arrives lies until it is stored; the janitor takes away what a killed process left.
SPOOL = FILE_UPLOAD_TEMP_DIR = HOME / "spool"
make_folder("DYNABENCH_HOME", SPOOL)
# What uploads leave free on the disk.
DISK_RESERVE_BYTES = read_env_int("DISK_RESERVE_GIB", 1) * 2**30

# The API
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "core.accounts.authentication.TokenAuthentication",  # the first one says "Bearer"
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": [
        "core.accounts.authentication.HasScope",
        "core.web.api.KnownQueryPermission",
    ],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "core.web.api.Negotiation",
    "DEFAULT_THROTTLE_CLASSES": ["core.web.throttles.ScopeThrottle"],
    # Of one token, person or address in one web process; a shared cache counts all processes.
    "DEFAULT_THROTTLE_RATES": {
        "read": "600/min",
        "write": "300/min",
        "predict": "60/min",  # asks a target model
        "submit": "60/hour",
        "export": "30/min",
    },
    "NUM_PROXIES": ALLAUTH_TRUSTED_PROXY_COUNT,
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["core.web.api.LimitedJSONParser"],
    "DEFAULT_PAGINATION_CLASS": "core.web.api.Pages",
    "DEFAULT_VERSIONING_CLASS": "rest_framework.versioning.NamespaceVersioning",
    "DEFAULT_SCHEMA_CLASS": "core.web.schema.OperationSchema",
    "EXCEPTION_HANDLER": "core.web.api.build_error_response",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Dynabench",
    "DESCRIPTION": "Everything the pages offer researchers and task owners.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.1",
    "COMPONENT_SPLIT_REQUEST": True,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "dynabench.api.add_error_responses",
    ],
    "ENUM_NAME_OVERRIDES": ENUM_NAMES,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "SERVE_INCLUDE_SCHEMA": False,
}

# The queue is only a doorbell, and its workers are ours: docs/architecture.md, "The queue".
Q_CLUSTER: dict[str, Any] = {
    "name": "dynabench",
    "orm": "default",
    "workers": read_env_int("QUEUE_WORKERS", 1, minimum=1, maximum=1000),
    "save_limit": 100,
    "catch_up": False,
    "timeout": 60,  # our workers use neither; django-q2 warns where they are not set
    "retry": 60,
}
# They take minutes or hours, so workers answer all other messages first.
LONG_JOBS = {
    "evaluation.jobs.evaluate_next",
    "evaluation.jobs.evaluate_short",
    "evaluation.jobs.run_training",
    "evaluation.jobs.choose_ruler",
    "dynabench.operations.demo.jobs.fill",
}
# They take as long, in slices of at most ten minutes. Workers do these and long jobs by turns.
SLICED_JOBS = {
    "dynabench.adversaries.jobs.attack",
    "dynabench.adversaries.jobs.check_transfer",
}
# They last as long as people ask, so a process does nothing else meanwhile.
PRACTICE_JOB = "evaluation.jobs.serve_practice"
PRACTICE_MODELS = read_env_int(
    "PRACTICE_MODELS", 1
)  # submitted models that people try at once; 0: none

# Live target models
MODEL_SERVER_URL = read_env_url("MODEL_SERVER_URL", "http://127.0.0.1:8100")
MODELS_HOME = HOME / "models"
# Hosts and networks of targets that may be private addresses (the model server's own always may).
TARGET_PRIVATE_HOSTS = read_env_private_hosts("TARGET_PRIVATE_HOSTS")
LIVE_CALLS = read_env_int(
    "LIVE_CALLS", 8, minimum=1, maximum=1000
)  # at once in a web process; keep below its threads
LIVE_WAIT_SECONDS = 5  # then the page answers 202 and asks again
LIVE_DEADLINE_SECONDS = 90  # then the attempt has failed and does not count

# Submitted models
LARGEST_UPLOAD_BYTES = read_env_int("LARGEST_UPLOAD_GIB", 20, minimum=1) * 2**30
# Of a person, in uploads and in files of models; without a confirmed address.
QUOTA_BYTES = read_env_int("QUOTA_GIB", 100) * 2**30
UNCONFIRMED_QUOTA_BYTES = read_env_int("UNCONFIRMED_QUOTA_GIB", 1) * 2**30
# Read where a model is run, also without these settings; here, so that a slip stops the start.
SANDBOX_REQUIRED = read_env_bool("SANDBOX_REQUIRED")
SUBMISSIONS_PER_DAY = read_env_int(
    "SUBMISSIONS_PER_DAY", 3
)  # accepted ones of a person, for a task
REFUSED_SUBMISSIONS_PER_DAY = read_env_int("REFUSED_SUBMISSIONS_PER_DAY", 10, minimum=1)
# Hosts of submitted endpoints that may be private and be asked without TLS.
SUBMISSION_PRIVATE_HOSTS = read_env_private_hosts("SUBMISSION_PRIVATE_HOSTS")
# Hosts of webhooks that may be private and be called without TLS.
WEBHOOK_PRIVATE_HOSTS = read_env_private_hosts("WEBHOOK_PRIVATE_HOSTS")
# Panels that campaigns pay by; hosts that may be private and be asked without TLS, as of tests.
PROLIFIC_URL = read_env_url("PROLIFIC_URL", "https://api.prolific.com")
MTURK_URL = read_env_url("MTURK_URL", "https://mturk-requester.us-east-1.amazonaws.com")
PANEL_PRIVATE_HOSTS = read_env_private_hosts("PANEL_PRIVATE_HOSTS")
RETENTION_APPEAL_DAYS = read_env_int("RETENTION_APPEAL_DAYS", 365, minimum=1)  # after the answer
# Where a worker keeps models at hand, and how many bytes of them.
MODEL_CACHE = Path(os.environ.get("MODEL_CACHE") or HOME / "model-cache")
# The SentencePiece file of FLORES-200, for tasks that are scored by sp_bleu.
SP_BLEU_MODEL = Path(os.environ.get("SP_BLEU_MODEL") or HOME / "flores200.model")
MODEL_CACHE_BYTES = read_env_int("MODEL_CACHE_GIB", 50, minimum=1) * 2**30

# What is kept for how many days: docs/operators.md, "How long data is kept".
SESSION_COOKIE_AGE = read_env_int("KEEP_SESSIONS_DAYS", 14, minimum=1, maximum=3650) * 86400
KEEP_UPLOADS_DAYS = read_env_int("KEEP_UPLOADS_DAYS", 3, minimum=1)
KEEP_LOG_DAYS = read_env_int("KEEP_LOG_DAYS", 365, minimum=1)
KEEP_LEASES_DAYS = read_env_int("KEEP_LEASES_DAYS", 90, minimum=1)
KEEP_MODELS_DAYS = read_env_int("KEEP_MODELS_DAYS", 0)  # 0: for ever
MODELS_BYTES = (
    read_env_int("MODELS_GIB", 0) * 2**30
)  # of everybody's uploads and models; 0: no limit

# Evaluations: what a model may use on a set
EVALUATION_SECONDS = read_env_int("EVALUATION_SECONDS", 3600, minimum=1)
EVALUATION_MEMORY_GIB = read_env_int("EVALUATION_MEMORY_GIB", 8, minimum=1)
EVALUATION_CPUS = read_env_int("EVALUATION_CPUS", 2, minimum=1)
HUB_ENDPOINT = read_env_url("HF_ENDPOINT", "https://huggingface.co")
# Where releases are published, by `manage.py publish` alone.
HUB_TOKEN = read_env_secret("HF_TOKEN")
ZENODO_URL = read_env_url("ZENODO_URL", "https://zenodo.org")
ZENODO_TOKEN = read_env_secret("ZENODO_TOKEN")
EVALUATION_GPUS = read_env_int("EVALUATION_GPUS", 0)
# A Ray cluster for them (docs/cluster.md), and how many examples of a set one of its shards has.
RAY_ADDRESS = read_ray_address()
RAY_SHARD_EXAMPLES = read_env_int("RAY_SHARD_EXAMPLES", 2048, minimum=1)
# Of rounds and of calls to models; each campaign has its own.
CURRENCY = read_env_currency("CURRENCY", "EUR")
EVALUATION_CPU_HOUR_CENTS = read_env_int("EVALUATION_CPU_HOUR_CENTS", 0)  # 0: costs are not shown

# Traces go where OpenTelemetry's own variables say, if this one is set.
HAS_TRACES = bool(read_env_url("OTEL_EXPORTER_OTLP_ENDPOINT"))
if HAS_TRACES:
    trace_index = MIDDLEWARE.index("dynabench.middleware.assign_request_id") + 1
    MIDDLEWARE.insert(trace_index, "dynabench.middleware.trace_requests")

LOG_LEVEL = read_env_choice("LOG_LEVEL", "INFO", "DEBUG", "WARNING", "ERROR", "CRITICAL")
LOGGING = build_log_settings(LOG_FORMAT, LOG_LEVEL)
if SENTRY_DSN := read_env_secret("SENTRY_DSN"):
    from core.telemetry.reports import start_error_reports

    try:
        start_error_reports(SENTRY_DSN)
    except ValueError as error:
        raise EnvError(f"SENTRY_DSN is not a valid Sentry DSN: {error}.") from None
