"""Django settings. Only this module knows whether Daybook runs embedded or at scale."""

import os
import tomllib
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from django.http.request import split_domain_port, validate_host

from config.accounts import ignored_variables, mail, oidc, passwords_allowed
from config.admin_site import UNFOLD  # noqa: F401 - the theme reads it here
from config.databases import database
from config.environment import (
    ConfigurationError,
    allowed_hosts,
    is_readable_folder,
    load_environment,
    split_list,
    unknown_variables,
)
from config.logs import logging_config
from config.messaging import channel_layer, queue
from config.oauth import OAUTH2_PROVIDER  # noqa: F401 - django-oauth-toolkit reads it here
from config.secret_key import secret_key
from config.serving.cors import CORS_ANSWER_HEADERS, CORS_REQUEST_HEADERS
from config.storages import attachments_storage
from config.upstreams import upstreams
from gateway.web_addresses import is_web_address

os.umask(0o077)  # files and folders are private, regardless of the shell's umask (see config.permissions)
BASE_DIR = Path(__file__).resolve().parent.parent
VERSION: str = tomllib.loads((BASE_DIR / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
ENV = load_environment()
UNKNOWN_VARIABLES = unknown_variables()
IGNORED_VARIABLES = list(ignored_variables(ENV))

DAYBOOK_HOME = (ENV.home if ENV.home.is_absolute() else BASE_DIR / ENV.home).resolve()
try:
    DAYBOOK_HOME.mkdir(parents=True, exist_ok=True, mode=0o700)
except OSError as error:
    raise ConfigurationError(
        f"DAYBOOK_HOME is '{DAYBOOK_HOME}'; it must be a writable folder ({error.strerror})."
    ) from None

SECRET_KEY = secret_key(ENV, DAYBOOK_HOME)
# Whether it comes from the environment. Otherwise it is stored in the home, and backups include it.
SECRET_KEY_GIVEN = bool(ENV.secret_key.get_secret_value())
SECRET_KEY_FALLBACKS = split_list(ENV.secret_key_fallbacks)
DEBUG = False
ALLOWED_HOSTS = allowed_hosts(ENV.allowed_hosts, ENV.host)
TRUSTED_ORIGINS = split_list(ENV.trusted_origins)
# Those at which this Daybook is reached; the others are other sites and apps.
OWN_ORIGINS = [
    origin
    for origin in TRUSTED_ORIGINS
    if is_web_address(origin) and validate_host(split_domain_port(urlsplit(origin).netloc)[0], ALLOWED_HOSTS)
]
CSRF_TRUSTED_ORIGINS = TRUSTED_ORIGINS
# Pages of trusted origins may use the APIs with a key, but never with this host's cookies.
CORS_ALLOWED_ORIGINS = TRUSTED_ORIGINS
CORS_URLS_REGEX = r"^/((api|v1|mcp)(/|$)|\.well-known/oauth-|oauth/(register|token|revoke)/?$)"
CORS_ALLOW_HEADERS = CORS_REQUEST_HEADERS
CORS_EXPOSE_HEADERS = CORS_ANSWER_HEADERS

INSTALLED_APPS = [
    "unfold",
    "unfold.contrib.filters",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "channels",
    "ninja",
    "django_q",
    "django_htmx",
    "axes",
    "corsheaders",
    "oauth2_provider",
    "memories",
    "gateway",
    "reviews",
    "config",
]

# Django's middlewares cost a thread switch each under ASGI; in the subclasses used here, API requests skip them.
MIDDLEWARE = [
    "config.serving.middleware.RequestBoundary",
    "corsheaders.middleware.CorsMiddleware",
    "config.serving.middleware.PageSecurity",
    "config.serving.middleware.PageStatic",
    "config.serving.middleware.PageCompression",
    "config.serving.middleware.PageSessions",
    "config.serving.middleware.PageCommon",
    "config.serving.middleware.PageCsrf",
    "config.serving.middleware.PageAuthentication",
    "config.serving.middleware.PageMessages",
]

ROOT_URLCONF = "config.urls"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "gateway.chat.pages.page",
            ]
        },
    }
]

# The library's default models. Its migrations require these settings.
OAUTH2_PROVIDER_APPLICATION_MODEL = "oauth2_provider.Application"
OAUTH2_PROVIDER_GRANT_MODEL = "oauth2_provider.Grant"
OAUTH2_PROVIDER_ACCESS_TOKEN_MODEL = "oauth2_provider.AccessToken"  # noqa: S105 - a model
OAUTH2_PROVIDER_REFRESH_TOKEN_MODEL = "oauth2_provider.RefreshToken"  # noqa: S105 - a model
OAUTH2_PROVIDER_ID_TOKEN_MODEL = "oauth2_provider.IDToken"  # noqa: S105 - a model
OAUTH2_PROVIDER_DEVICE_GRANT_MODEL = "oauth2_provider.DeviceGrant"

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
REDIS_URL = ENV.redis_url.get_secret_value()

DATABASES = {"default": database(ENV, DAYBOOK_HOME)}

Q_CLUSTER = queue(ENV)
CHANNEL_LAYERS = {"default": channel_layer(ENV, DAYBOOK_HOME)}

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
PASSWORD_HASHERS = ["gateway.accounts.passwords.BoundedPasswordHasher"]
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",  # refuses after too many failures, before the password is checked
    "django.contrib.auth.backends.ModelBackend",
]
AXES_HANDLER = "gateway.accounts.sign_in.AttemptsHandler"
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = timedelta(minutes=15)
# The order is that of AttemptsHandler.get_failures.
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"], "ip_address", "username"]
AXES_RESET_ON_SUCCESS = True
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_USERNAME_CALLABLE = "gateway.accounts.sign_in.account_name"
AXES_CLIENT_IP_CALLABLE = "gateway.requests.counted_address"
AXES_DISABLE_ACCESS_LOG = True  # the audit log records sign-ins
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False
PASSWORDS = passwords_allowed(ENV)
OIDC = oidc(ENV)
MAIL = mail(ENV)  # None if no mail server is configured
globals().update(MAIL or {})
PASSWORD_RESET_TIMEOUT = 3600
LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/login/"
SESSION_COOKIE_NAME = "daybook_session"
CSRF_COOKIE_NAME = "daybook_csrf"
CSRF_FAILURE_VIEW = "config.serving.middleware.page_csrf_failed"
# Cookies are secure if every address of this Daybook uses https.
_SECURE = bool(OWN_ORIGINS) and all(origin.startswith("https:") for origin in OWN_ORIGINS)
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _SECURE
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if _SECURE else None
# HSTS for a year, as Django's check recommends.
SECURE_HSTS_SECONDS = 31_536_000 if _SECURE else 0

SILENCED_SYSTEM_CHECKS = [
    # Django looks for three middlewares by name. Daybook uses subclasses, which API requests skip.
    "security.W001",
    "security.W002",
    "security.W003",
    # Apps on a person's computer have redirect URIs at http://127.0.0.1; gateway.oauth refuses other http.
    "oauth2_provider.W008",
    # The middleware of django-axes only answers a refused sign-in, which gateway.accounts.sign_in does, on the page.
    "axes.W002",
]

DAYBOOK_TRUSTED_PROXIES = ENV.trusted_proxies
DAYBOOK_MAX_BODY = ENV.max_body
BODY_SECONDS = ENV.body_seconds
BODY_SILENCE_SECONDS = ENV.body_silence_seconds
BODY_BUDGET = max(ENV.body_budget, ENV.max_body)
DAYBOOK_MAX_MESSAGE = ENV.max_message
DATA_UPLOAD_MAX_MEMORY_SIZE = ENV.max_body

LANGUAGE_CODE = "en"
USE_I18N = False
FORMAT_MODULE_PATH = "config.formats"
TIME_ZONE = "UTC"

# numpy is used on small arrays only: more threads of its linear algebra would just take the cores from other turns.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# The scanner's compiled rules belong with the other data, not in the user's cache folder.
os.environ.setdefault("KF_RULE_CACHE_DIR", str(DAYBOOK_HOME / "cache"))

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATICFILES_FINDERS = [
    "config.serving.joined_files.JoinedFinder",
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
]
# Prepared by config.serving.assets.
STATIC_ROOT = str(ENV.static or DAYBOOK_HOME / "cache" / "static")
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "attachments": attachments_storage(ENV, DAYBOOK_HOME),
    "staticfiles": {"BACKEND": "config.serving.assets.AssetStorage", "OPTIONS": {"file_permissions_mode": 0o600}},
}
SERVESTATIC_KEEP_ONLY_HASHED_FILES = True
SERVESTATIC_ALLOW_ALL_ORIGINS = False
LOGGING = logging_config(ENV.log)

# ---- Daybook -------------------------------------------------------------------------------------------------------
DAYBOOK_SERVER = ENV.server
DAYBOOK_HOST = ENV.host
DAYBOOK_PORT = ENV.port
DAYBOOK_MODEL = ENV.model
DAYBOOK_AGENTS = ENV.agents
DAYBOOK_PROMPTS = ENV.prompts or DAYBOOK_HOME / "prompts"
if ENV.prompts and not is_readable_folder(ENV.prompts):
    raise ConfigurationError(f"DAYBOOK_PROMPTS is '{ENV.prompts}'; it must be a folder that can be read.")
DAYBOOK_PACKAGED_AGENTS = BASE_DIR / "agents.yaml"
DAYBOOK_ADMIN_USER = ENV.admin_user
DAYBOOK_ADMIN_PASSWORD = ENV.admin_password.get_secret_value()
DAYBOOK_API_KEY = ENV.api_key.get_secret_value()
DAYBOOK_UPSTREAMS = upstreams(ENV)
if ENV.embedding_upstream and ENV.embedding_upstream not in DAYBOOK_UPSTREAMS:
    raise ConfigurationError(
        f"DAYBOOK_EMBEDDING_UPSTREAM is '{ENV.embedding_upstream}'; no upstream has this name: allowed are "
        f"{', '.join(sorted(DAYBOOK_UPSTREAMS)) or 'none, since no upstream is set'}."
    )
DB_THREADS = ENV.db_threads
DB_READ_THREADS = ENV.db_read_threads
DB_BUSY_SECONDS = ENV.db_busy_seconds
SWEEP_SECONDS = ENV.sweep_seconds
RUN_SECONDS = ENV.run_seconds
RUN_STEPS = ENV.run_steps
ANSWER_BYTES = ENV.answer_bytes
UPSTREAM_CONNECT_SECONDS = ENV.upstream_connect_seconds
UPSTREAM_IDLE_SECONDS = ENV.upstream_idle_seconds
UPSTREAM_FIRST_BYTE_SECONDS = ENV.upstream_first_byte_seconds
DETACH_SECONDS = ENV.detach_seconds
SNAPSHOT_BYTES = ENV.snapshot_bytes
SNAPSHOT_SESSIONS = ENV.snapshot_sessions
SNAPSHOT_IDLE_SECONDS = ENV.snapshot_idle_seconds
# How often a process with caches polls for invalidations by others; 0: never (tests).
INVALIDATION_SECONDS = 0.5
# How often a process reads the sessions that open pages show.
SESSION_WATCH_SECONDS = 1.0
UPSTREAM_READ_SECONDS = 30.0
WEBHOOKS_PRIVATE = ENV.webhooks_private
NOTIFICATION_DAYS = ENV.notification_days
UNDO_DAYS = ENV.undo_days
SESSION_DAYS = ENV.session_days
RUN_DETAIL_DAYS = ENV.run_detail_days
REVISION_DAYS = ENV.revision_days
REVOKED_KEY_DAYS = ENV.revoked_key_days
MAX_ENTRY = ENV.max_entry
BOOKS_PER_OWNER = ENV.books_per_owner
METRICS = ENV.metrics
# Deadlines of recall, in seconds.
RECALL_LANE_SECONDS = ENV.recall_lane_seconds
KEYWORDS_SECONDS = ENV.keywords_seconds
PUSH_POLL_SECONDS = ENV.push_poll_seconds
REVIEW_TOKENS = ENV.review_tokens
REVIEW_STEPS = ENV.review_steps
REVIEW_ATTEMPTS = ENV.review_attempts
ALERTS_MAIL = split_list(ENV.alerts_mail)
ALERTS_URL = ENV.alerts_url.get_secret_value()
ALERTS_SECRET = ENV.alerts_secret.get_secret_value()
REVIEWS_PER_DAY = ENV.reviews_per_day
REVIEW_TOKENS_PER_DAY = ENV.review_tokens_per_day
APPROVAL_DAYS = ENV.approval_days
COMPACTION_SECONDS = ENV.compaction_seconds
MEMORY_PROVIDERS = split_list(ENV.memory_providers)
PROVIDER_SECONDS = ENV.provider_seconds
EMBEDDING_PATH = ENV.embedding_path and ENV.embedding_path.resolve()
EMBEDDING_MODEL = ENV.embedding_model or (EMBEDDING_PATH.name if EMBEDDING_PATH else "")
EMBEDDING_UPSTREAM = ENV.embedding_upstream
EMBEDDING_SECONDS = ENV.embedding_seconds
