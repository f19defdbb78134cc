"""Password hashing for end-to-end tests."""

from gateway.accounts.passwords import BoundedPasswordHasher


class QuickPasswordHasher(BoundedPasswordHasher):
    """The product's hasher with a single iteration."""

    iterations = 1
