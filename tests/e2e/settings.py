"""The product's settings with fast password hashing.

The product's hash takes a third of a second of processor time for each new administrator and each login."""

from config.settings import *  # noqa: F403

PASSWORD_HASHERS = ["tests.e2e.passwords.QuickPasswordHasher"]
