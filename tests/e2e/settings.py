"""The product's settings, but for what a hash of a password costs: a third of a second of processor time, for the first
administrator of each new storage and for each who signs in."""

from config.settings import *  # noqa: F403

PASSWORD_HASHERS = ["tests.e2e.passwords.QuickPasswordHasher"]
