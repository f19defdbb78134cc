"""Made-up secrets, put together from parts so that scanners of this repository stay quiet."""

LETTERS = "Ab3dEf7hIj9kLm2nOp4qRs6tUv8wXy1zCd5eGh0i"


def body(length: int) -> str:
    """Letters and digits of that length that look drawn by chance."""
    return (LETTERS * (length // len(LETTERS) + 1))[:length]


def hexadecimal(length: int) -> str:
    """Hex digits of that length."""
    return ("9f8e7d6c5b4a39281706f5e4d3c2b1a0" * (length // 32 + 1))[:length]


def key_block(label: str = "PRIVATE KEY") -> str:
    """A private key block with three lines."""
    lines = "\n".join(body(64) for _ in range(3))
    return f"-----BEGIN {label}-----\n{lines}\n-----END {label}-----"


JWT = ".".join(("eyJ" + "hbGciOiJIUzI1NiJ9", "eyJ" + "zdWIiOiIxMjM0NTY3ODkwIn0", body(43)))
CARD = " ".join(("4111", "1111", "1111", "1111"))
IBAN = "DE89" + " 3704 0044 0532 0130 00"
