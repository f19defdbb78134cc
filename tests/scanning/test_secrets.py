"""Secrets with a known format, and look-alikes that check digits and placeholders give away."""

import pytest

from scanning import redact, scan
from tests.scanning.samples import CARD, IBAN, JWT, body, hexadecimal, key_block

SEED = "legal winner thank year wave sausage worth useful legal winner thank yellow"

SECRETS = [
    ("provider_key", "AK" + "IA" + "YUBGCXL3HB3EOEPT"),
    ("provider_key", "GOC" + "SPX-" + body(28)),
    ("provider_key", "NR" + "AK-" + body(27).upper()),
    ("provider_key", "gh" + "p_" + body(36)),
    ("provider_key", "sk" + "-ant-" + "api03-" + body(90)),
    ("provider_key", "xox" + "b-161617441158-639761578978-" + body(24)),
    ("provider_key", hexadecimal(32) + "-us" + "12"),
    ("provider_key", "newvendor_" + body(32)),
    ("private_key", key_block()),
    ("private_key", key_block("OPENSSH PRIVATE KEY")),
    ("json_web_token", JWT),
    ("card_number", CARD),
    ("card_number", CARD.replace(" ", "")),
    ("card_number", "3782" + " 822463 " + "10005"),
    ("bank_account", IBAN),
    ("bank_account", IBAN.replace(" ", "")),
    ("seed_phrase", SEED),
]

ADDRESSES = [
    "postgresql://app:" + "pa55w0rd" + "@db.internal/app",
    "redis://:" + "s3cretpw" + "@cache:6379/0",
    "https://bob:" + "tr0ub4dor" + "@git.example.com/repo.git",
    "Server=x;Uid=sa;Pwd=" + "Sup3rS3c" + ";",
    "curl -u admin:" + "Adm1nPass" + " https://x.example",
]

LOOK_ALIKES = [
    "docker image sha256:" + hexadecimal(64),
    "UUID of the tenant: 550e8400-e29b-41d4-a716-446655440000",
    "commit " + hexadecimal(40),
    "keyboard-shortcuts-panel-component-v2",
    "sk-learn-contrib-estimators is the package folder name.",
    "ghp_ is the prefix of GitHub tokens.",
    "Stripe test price id price_" + body(24),
    "https://docs.google.com/document/d/" + body(44) + "/edit",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGJvYkV4YW1wbGVQdWJsaWNLZXlPbmx5MTIz bob@laptop",
    "postgres://user:${PG_PASS}@db:5432/app",
    "postgres://USER:PASSWORD@HOST:5432/NAME",
    'curl -u "$USER:$PASS" https://api.example.com',
    "Authorization: Bearer <token>",
    "mongodb://localhost:27017/test",
    "~/.ssh/config and .env are read at start.",
    "Order 4111-2222-3333-4445 shipped.",
    "IMEI 356938035643809, ISBN 978-3-16-148410-0, phone +49 170 1234567",
    "DE89 3704 0044 0532 0130 01 has a wrong check digit.",
    "Tracking number 1Z999AA10123456784",
    "ANTHROPIC_API_KEY=sk-ant-xxxxx goes in the env file",
    "wood stove, heating, logs, winter, order, delivery, fuel, supplier, pile, season, hardwood, oak",
]


@pytest.mark.parametrize(("rule", "secret"), SECRETS)
def test_a_secret_is_found_and_redacted_completely(rule: str, secret: str) -> None:
    text = f"Note: {secret}\nand more"
    assert rule in {finding.rule for finding in scan(text).findings}
    redaction = redact(text)
    assert secret not in redaction.text
    assert redaction.text.startswith("Note: [redacted: ")
    assert redaction.text.endswith("and more")


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_password_in_an_address_is_found_and_redacted(address: str) -> None:
    assert scan(address).findings[0].kind == "secret"
    redaction = redact(address)
    assert redaction.count == 1
    assert redaction.text != address


@pytest.mark.parametrize("text", LOOK_ALIKES)
def test_a_look_alike_passes(text: str) -> None:
    assert scan(text).findings == ()


@pytest.mark.parametrize(
    ("number", "rule"),
    [
        (CARD, "card_number"),
        (CARD.translate({ord(str(digit)): chr(0x0660 + digit) for digit in range(10)}), "card_number"),
        (IBAN, "bank_account"),
        ("IR58 0540 1051 8002 1273 1130 07", "bank_account"),
        ("NO93 8601 1117 947", "bank_account"),
    ],
)
def test_only_numbers_with_valid_check_digits_are_found(number: str, rule: str) -> None:
    assert [finding.rule for finding in scan(f"The card or account is {number}.").findings] == [rule]
    last = ord(number[-1])
    other = number[:-1] + chr(last + 1 if number[-1] not in "9\u0669" else last - 1)
    assert scan(f"The card or account is {other}.").findings == ()


def test_the_keywords_of_an_entry_are_not_a_seed_phrase() -> None:
    keywords = "stove heating logs winter order delivery fuel pile season oak ash fire"
    assert not scan("Heats with wood.", keywords.split()).findings


def test_an_encoded_key_is_found() -> None:
    text = "config: " + "".join(f"%{ord(char):02x}" for char in "gh" + "p_" + body(36))
    assert scan(text).findings[0].rule == "provider_key"
