"""All settings. Everything that differs between installations comes from the environment."""

import os
from pathlib import Path
from typing import Any

from django.urls import reverse_lazy
from whitenoise.compress import Compressor

from core.env import (
    LOGGED_MAILS,
    EnvError,
    cache_address,
    database,
    env_bool,
    env_choice,
    env_class,
    env_file,
    env_host,
    env_hosts,
    env_int,
    env_list,
    env_networks,
    env_origins,
    env_private_hosts,
    env_roles,
    env_secret,
    env_sender,
    env_storage,
    env_url,
    kept_secret,
    make_folder,
    ray_address,
    sends_mail,
    site_url,
)
from core.text.languages import languages
from core.web.enum_names import ENUM_NAMES
from dynabench.log_settings import build_log_settings

BASE_DIR = Path(__file__).resolve().parent.parent
# Database, models, secrets and uploads of a plain installation live below one folder.
HOME = Path(os.environ.get("DYNABENCH_HOME") or BASE_DIR / "var").resolve()
make_folder("DYNABENCH_HOME", HOME)  # SQLite's files are made for all to read

DEBUG = env_bool("DEBUG")
# HTTPS=1 says that people reach the site by https: secure cookies, HSTS, redirect from http.
HTTPS = env_bool("HTTPS")
SECRET_KEY = env_secret("SECRET_KEY") or kept_secret(HOME / "secret_key")
# Former ones, which still read what was signed or encrypted with them.
SECRET_KEY_FALLBACKS = env_secret("SECRET_KEY_FALLBACKS").replace(",", " ").split()
ALLOWED_HOSTS = env_hosts("ALLOWED_HOSTS") or ["localhost", "127.0.0.1", "[::1]"]
CSRF_TRUSTED_ORIGINS = env_origins("CSRF_TRUSTED_ORIGINS")

INSTALLED_APPS = [
    "core.accounts",
    "dynabench",
    "dynabench.operations",
    "core.jobs",
    "dynabench.people",
    "dynabench.webhooks",
    "dynabench.notices",
    "dynabench.campaigns",
    "dynabench.communities",
    "tasks",
    "annotation",
    "validation",
    "evaluation",
    "leaderboard",
    "dynabench.operations.demo",
    "dynabench.operations.backups",
    "dynabench.admin_app.DeskConfig",
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
    "dynabench.middleware.request_id",
    "dynabench.middleware.content_security_policy",
    "dynabench.campaigns.session.Frames",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "dynabench.middleware.Language",
    "django_htmx.middleware.HtmxMiddleware",
    "dynabench.middleware.no_redirect_for_htmx",
    "dynabench.middleware.Outages",
    "dynabench.middleware.private_pages",
    "core.web.bodies.Bodies",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "dynabench.middleware.LoginRequired",
    "dynabench.campaigns.session.PanelPeople",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "allauth.usersessions.middleware.UserSessionsMiddleware",
]

# Who may read /metrics: a bearer token, or networks. Without either there is no such page.
METRICS_TOKEN = env_secret("METRICS_TOKEN")
METRICS_NETWORKS = env_networks("METRICS_NETWORKS")
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
            "builtins": ["django.templatetags.i18n", "dynabench.templatetags.components"],
        },
    }
]
FORM_RENDERER = "core.web.form_renderer.FieldRenderer"

DATABASES = {
    "default": database(
        env_secret("DATABASE_URL") or f"sqlite:///{HOME}/db.sqlite3",
        prepared=env_bool("PREPARE_STATEMENTS"),
        pooled=env_bool("POOLER"),
    )
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Several web processes need a shared cache (breakers, sign-in limits): CACHE_URL=redis://…
CACHE_URL = cache_address()
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
    "reauthenticate": "core.accounts.forms.ReauthenticateForm",
    "change_password": "core.accounts.forms.ChangePasswordForm",
    "reset_password": "core.accounts.forms.ResetPasswordForm",
}
ACCOUNT_RATE_LIMITS = {"signup": "20/m/ip", "login": "30/m/ip"}
ALLAUTH_TRUSTED_PROXY_COUNT = env_int("TRUSTED_PROXY_COUNT", 0, maximum=100)
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
# Browsers allow passkeys on http only for localhost; so does this setting.
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not HTTPS
MFA_ADAPTER = "core.accounts.adapter.MfaAdapter"
MFA_FORMS = {
    "authenticate": "core.accounts.forms.CodeForm",
    "reauthenticate": "core.accounts.forms.CodeAgainForm",
    "activate_totp": "core.accounts.forms.ActivateCodeForm",
}
USERSESSIONS_TRACK_ACTIVITY = False

# Sign-in by an organisation's OpenID Connect provider, which makes accounts as people come.
OIDC_ISSUER = env_url("OIDC_ISSUER")
OIDC_NAME = os.environ.get("OIDC_NAME") or "OpenID Connect"
OIDC_GROUPS_CLAIM = os.environ.get("OIDC_GROUPS_CLAIM") or "groups"
OIDC_ROLES = env_roles("OIDC_ROLES")
# `administrators`: everybody else comes by the provider. They have passwords, should it be down.
PASSWORD_SIGN_IN = env_choice("PASSWORD_SIGN_IN", "everybody", "administrators")
# By a link: a form that is sent elsewhere in the end is stopped by browsers (`form-action`).
SOCIALACCOUNT_LOGIN_ON_GET = True
SOCIALACCOUNT_PROVIDERS = {
    "openid_connect": {
        "provider_class": "core.accounts.openid.Provider",
        "OAUTH_PKCE_ENABLED": True,
        "SCOPE": env_list("OIDC_SCOPES") or ["openid", "profile", "email"],
        # Who has an account with an address that the provider confirms has it from now on by both.
        "EMAIL_AUTHENTICATION": True,
        "EMAIL_AUTHENTICATION_AUTO_CONNECT": True,
        "APPS": [
            {
                "provider_id": "oidc",
                "name": OIDC_NAME,
                "client_id": os.environ.get("OIDC_CLIENT_ID", ""),
                "secret": env_secret("OIDC_CLIENT_SECRET"),
                "settings": {"server_url": OIDC_ISSUER},
            }
        ]
        if OIDC_ISSUER
        else [],
    }
}

LOG_FORMAT = env_choice("LOG_FORMAT", "line", "json")
PRINTED_MAILS = "django.core.mail.backends.console.EmailBackend"
EMAIL_BACKEND = env_class("EMAIL_BACKEND", LOGGED_MAILS if LOG_FORMAT == "json" else PRINTED_MAILS)
MAIL_TRANSPORT = EMAIL_BACKEND
if sends_mail(EMAIL_BACKEND):
    EMAIL_BACKEND = "core.mail.transport.LimitedBackend"  # a server that hangs takes few threads
# Where addresses need not be confirmed, sign-up must tell that there is an account with an address.
VERIFICATIONS = ("mandatory", "optional", "none")  # the first is taken where none is named
ACCOUNT_EMAIL_VERIFICATION = env_choice(
    "EMAIL_VERIFICATION",
    *(VERIFICATIONS if sends_mail(EMAIL_BACKEND) else VERIFICATIONS[1:] + VERIFICATIONS[:1]),
)
# Whether votes decide of people who signed in without a confirmed address.
UNCONFIRMED_VOTES = env_bool("UNCONFIRMED_VOTES")
EMAIL_HOST = env_host("EMAIL_HOST", "localhost")
EMAIL_PORT = env_int("EMAIL_PORT", 25, minimum=1, maximum=65535)
EMAIL_HOST_USER = os.environ.get("EMAIL_HOST_USER", "")
EMAIL_HOST_PASSWORD = env_secret("EMAIL_HOST_PASSWORD")
EMAIL_USE_TLS = env_bool("EMAIL_USE_TLS")
# Of django-anymail's backends: ANYMAIL_MAILGUN_API_KEY becomes MAILGUN_API_KEY.
ANYMAIL: dict[str, Any] = {
    name.removeprefix("ANYMAIL_").removesuffix("_FILE"): env_secret(name.removesuffix("_FILE"))
    for name in os.environ
    if name.startswith("ANYMAIL_")
}
EMAIL_TIMEOUT = 5  # seconds; somebody waits for the page meanwhile
ANYMAIL.setdefault("REQUESTS_TIMEOUT", EMAIL_TIMEOUT)
# Where people reach the site; for links in mails that no request asks for.
WEB_CONCURRENCY = env_int("WEB_CONCURRENCY", 1, minimum=1, maximum=1000)  # gunicorn reads it itself
PORT = env_int("PORT", 8000, minimum=1, maximum=65535)  # of `./run`
SITE_URL = env_url("SITE_URL", is_bare=True) or site_url(ALLOWED_HOSTS[0], https=HTTPS, port=PORT)
# A file in Markdown: who stores what about people, on which grounds, and whom they may ask.
PRIVACY_TEXT = env_file("PRIVACY_TEXT")
DEFAULT_FROM_EMAIL = env_sender("DEFAULT_FROM_EMAIL", "dynabench@localhost")

# Who may make tasks, besides superusers. Owners use the site's processors and speak to everybody in
# its name, so an administrator says yes to each task.
NEW_TASKS = env_choice("NEW_TASKS", "approval", "everybody", "nobody")
NEW_TASKS_AT_ONCE = env_int("NEW_TASKS_AT_ONCE", 5)  # of a person, before a round was opened

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
if env_bool("BEHIND_PROXY"):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

# Text, time, files
LANGUAGE_CODE = "en"
LOCALE_PATHS = [BASE_DIR / "locale"]
LANGUAGES = languages(LOCALE_PATHS[0])
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
    "default": env_storage("STORAGE_URL"),
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
DISK_RESERVE_BYTES = env_int("DISK_RESERVE_GIB", 1) * 2**30

# The API
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "core.accounts.authentication.TokenAuthentication",  # the first one says "Bearer"
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": [
        "core.accounts.authentication.HasScope",
        "core.web.api.KnownQuery",
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
    "DEFAULT_PARSER_CLASSES": ["core.web.api.Json"],
    "DEFAULT_PAGINATION_CLASS": "core.web.api.Pages",
    "DEFAULT_VERSIONING_CLASS": "rest_framework.versioning.NamespaceVersioning",
    "DEFAULT_SCHEMA_CLASS": "core.web.schema.Operation",
    "EXCEPTION_HANDLER": "core.web.api.answer_error",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Dynabench",
    "DESCRIPTION": "Everything that the pages do for researchers and owners.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.1",
    "COMPONENT_SPLIT_REQUEST": True,
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "dynabench.api.with_errors",
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
    "workers": env_int("QUEUE_WORKERS", 1, minimum=1, maximum=1000),
    "save_limit": 100,
    "catch_up": False,
    "timeout": 60,  # our workers use neither; django-q2 warns where they are not set
    "retry": 60,
}
# They take minutes or hours, so workers answer all other messages first.
LONG_JOBS = {
    "evaluation.jobs.evaluate_next",
    "evaluation.jobs.run_training",
    "dynabench.operations.demo.jobs.fill",
}
# They last as long as people ask, so a process does nothing else meanwhile.
PRACTICE_JOB = "evaluation.jobs.serve_practice"
PRACTICE_MODELS = env_int("PRACTICE_MODELS", 1)  # submitted models that people try at once; 0: none

# Live target models
MODEL_SERVER_URL = env_url("MODEL_SERVER_URL", "http://127.0.0.1:8100")
MODELS_HOME = HOME / "models"
# Hosts and networks of targets that may be private addresses (the model server's own always may).
TARGET_PRIVATE_HOSTS = env_private_hosts("TARGET_PRIVATE_HOSTS")
LIVE_CALLS = env_int(
    "LIVE_CALLS", 8, minimum=1, maximum=1000
)  # at once in a web process; keep below its threads
LIVE_WAIT_SECONDS = 5  # then the page answers 202 and asks again
LIVE_DEADLINE_SECONDS = 90  # then the attempt has failed and does not count

# Submitted models
LARGEST_UPLOAD_BYTES = env_int("LARGEST_UPLOAD_GIB", 20, minimum=1) * 2**30
# Of a person, in uploads and in files of models; without a confirmed address.
QUOTA_BYTES = env_int("QUOTA_GIB", 100) * 2**30
UNCONFIRMED_QUOTA_BYTES = env_int("UNCONFIRMED_QUOTA_GIB", 1) * 2**30
# Read where a model is run, also without these settings; here, so that a slip stops the start.
SANDBOX_REQUIRED = env_bool("SANDBOX_REQUIRED")
SUBMISSIONS_PER_DAY = env_int("SUBMISSIONS_PER_DAY", 3)  # accepted ones of a person, for a task
REFUSED_SUBMISSIONS_PER_DAY = env_int("REFUSED_SUBMISSIONS_PER_DAY", 10, minimum=1)
# Hosts of submitted endpoints that may be private and be asked without TLS.
SUBMISSION_PRIVATE_HOSTS = env_private_hosts("SUBMISSION_PRIVATE_HOSTS")
# Hosts of webhooks that may be private and be called without TLS.
WEBHOOK_PRIVATE_HOSTS = env_private_hosts("WEBHOOK_PRIVATE_HOSTS")
# Panels that campaigns pay by; hosts that may be private and be asked without TLS, as of tests.
PROLIFIC_URL = env_url("PROLIFIC_URL", "https://api.prolific.com")
MTURK_URL = env_url("MTURK_URL", "https://mturk-requester.us-east-1.amazonaws.com")
PANEL_PRIVATE_HOSTS = env_private_hosts("PANEL_PRIVATE_HOSTS")
RETENTION_APPEAL_DAYS = env_int("RETENTION_APPEAL_DAYS", 365, minimum=1)  # after the answer
# Where a worker keeps models at hand, and how many bytes of them.
MODEL_CACHE = Path(os.environ.get("MODEL_CACHE") or HOME / "model-cache")
# The SentencePiece file of FLORES-200, for tasks that are scored by sp_bleu.
SP_BLEU_MODEL = Path(os.environ.get("SP_BLEU_MODEL") or HOME / "flores200.model")
MODEL_CACHE_BYTES = env_int("MODEL_CACHE_GIB", 50, minimum=1) * 2**30

# What is kept for how many days: docs/operators.md, "How long data is kept".
SESSION_COOKIE_AGE = env_int("KEEP_SESSIONS_DAYS", 14, minimum=1, maximum=3650) * 86400
KEEP_UPLOADS_DAYS = env_int("KEEP_UPLOADS_DAYS", 3, minimum=1)
KEEP_LOG_DAYS = env_int("KEEP_LOG_DAYS", 365, minimum=1)
KEEP_LEASES_DAYS = env_int("KEEP_LEASES_DAYS", 90, minimum=1)
KEEP_MODELS_DAYS = env_int("KEEP_MODELS_DAYS", 0)  # 0: for ever
MODELS_BYTES = env_int("MODELS_GIB", 0) * 2**30  # of everybody's uploads and models; 0: no limit

# Evaluations: what a model may use on a set
EVALUATION_SECONDS = env_int("EVALUATION_SECONDS", 3600, minimum=1)
EVALUATION_MEMORY_GIB = env_int("EVALUATION_MEMORY_GIB", 8, minimum=1)
EVALUATION_CPUS = env_int("EVALUATION_CPUS", 2, minimum=1)
HUB_ENDPOINT = env_url("HF_ENDPOINT", "https://huggingface.co")
EVALUATION_GPUS = env_int("EVALUATION_GPUS", 0)
# A Ray cluster for them (docs/cluster.md), and how many examples of a set one of its shards has.
RAY_ADDRESS = ray_address()
RAY_SHARD_EXAMPLES = env_int("RAY_SHARD_EXAMPLES", 2048, minimum=1)
EVALUATION_CPU_HOUR_CENTS = env_int("EVALUATION_CPU_HOUR_CENTS", 0)  # 0: costs are not shown

# Traces go where OpenTelemetry's own variables say, if this one is set.
HAS_TRACES = bool(env_url("OTEL_EXPORTER_OTLP_ENDPOINT"))
if HAS_TRACES:
    after_id = MIDDLEWARE.index("dynabench.middleware.request_id") + 1
    MIDDLEWARE.insert(after_id, "dynabench.middleware.trace")

LOG_LEVEL = env_choice("LOG_LEVEL", "INFO", "DEBUG", "WARNING", "ERROR", "CRITICAL")
LOGGING = build_log_settings(LOG_FORMAT, LOG_LEVEL)
if SENTRY_DSN := env_secret("SENTRY_DSN"):
    from core.telemetry.reports import report_to

    try:
        report_to(SENTRY_DSN)
    except ValueError as error:
        raise EnvError(f"SENTRY_DSN is not an address of Sentry: {error}.") from None
