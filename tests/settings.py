"""Settings of the test run: the product's own, in a home of its own, without the caller's upstream and secrets."""

import os
import tempfile

_TAKEN = ("OPENAI_", "DAYBOOK_")
_KEPT = {"DAYBOOK_SECRET_KEY"}
for _name in [name for name in os.environ if name.startswith(_TAKEN) and name not in _KEPT]:
    del os.environ[_name]
os.environ["DAYBOOK_HOME"] = tempfile.mkdtemp(prefix="daybook-test-")

from config.settings import *  # noqa: E402, F403

# Database functions run inline: threads of their own would not see the transaction of the test.
DB_THREADS = 0
# Model calls to anything but this machine are refused.
DAYBOOK_UPSTREAM_LOOPBACK_ONLY = True
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
SWEEP_SECONDS = 0.2
# A thread that looks at the database would outlive the test.
INVALIDATION_SECONDS = 0
ALLOWED_HOSTS = ["testserver", "127.0.0.1", "localhost"]
