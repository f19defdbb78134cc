"""Passwords of end-to-end tests."""

from gateway.accounts.passwords import BoundedPasswordHasher


class QuickPasswordHasher(BoundedPasswordHasher):
    """The product's hasher, but a hash takes no time."""

    iterations = 1
