"""What this app needs of the apps above it. It may not import them, so they register it when Django starts."""

from typing import Generic, TypeVar

T = TypeVar("T")


class Registered(Generic[T]):
    """One thing that an app above registers, in its AppConfig's ready(); call this to get it."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._value: T | None = None

    def register(self, value: T) -> None:
        self._value = value

    def __call__(self) -> T:
        if self._value is None:
            raise LookupError(f"no app has registered {self._what}")
        return self._value
