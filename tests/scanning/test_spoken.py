"""Secrets in sentences of many languages, and sentences that are only about passwords."""

import pytest

from scanning import redact, scan

VALUE = "hun" + "ter22"
PIN = "44" + "71"

PASSWORDS = [
    f"my password is {VALUE}",
    f"Password for the zip file -> {VALUE}",
    f"I use {VALUE} as my password everywhere",
    f"DB_PASSWORD={VALUE}",
    f'{{"password": "{VALUE}"}}',
    f"wifi: network Kaktus, key {VALUE}",
    f"login: bob/{VALUE}",
    f"creds for staging: demo@example.com:{VALUE}",
    f"Mein Passwort ist {VALUE}",
    f"Das Kennwort für den Server lautet {VALUE}",
    f"le mot de passe du wifi est {VALUE}",
    f"mi contraseña es {VALUE}",
    f"minha senha é {VALUE}",
    f"la mia password è {VALUE}",
    f"mijn wachtwoord is {VALUE}",
    f"moje hasło to {VALUE}",
    f"мой пароль {VALUE}",
    f"我的密码是{VALUE}",
    f"パスワードは{VALUE}です",
    f"비밀번호는 {VALUE} 입니다",
    f"رمز عبور من {VALUE} است",
    f"كلمة المرور هي {VALUE}",
    f"मेरा पासवर्ड {VALUE} है",
    f"şifrem {VALUE}",
    f"p a s s w o r d : {VALUE}",
    f"раssword: {VALUE}",
]

PINS = [
    f"ATM pin: {PIN}",
    f"the alarm is disarmed with code {PIN}",
    f"Die PIN meiner Karte ist {PIN}",
    f"Le code PIN de mon téléphone est {PIN}",
    f"пин-код карты {PIN}",
    f"支付密码 {PIN}",
    f"暗証番号は{PIN}です",
]

HARMLESS = [
    "My password is stored in 1Password, not here.",
    "The password policy asks for 14 characters and two digits.",
    "Passwords are hashed with argon2id and a 16-byte salt.",
    "Password rotation happens every 90 days.",
    'PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]',
    '<input type="password" name="password" autocomplete="new-password">',
    "password = forms.CharField(widget=forms.PasswordInput)",
    "const token = await getAccessToken();",
    'SECRET_KEY = os.environ["SECRET_KEY"]',
    "passwd: $(pass show work/db)",
    "password: ********",
    "token: xxxxxxxxxxxxxxxxxxxx",
    "The token limit is 128000.",
    "API keys live in AWS Secrets Manager under prod/app1.",
    "Boarding pass LH1234 on 12 May.",
    "PIN entry has three attempts before a lock.",
    "Pin numpy to 1.26.4 in requirements.",
    "Error code 5003 means timeout; zip code: 90210.",
    "Office is building C, fourth floor, door code 90412",
    "The secret ingredient is cardamom.",
    "Das Passwort muss 12 Zeichen haben.",
    "Le mot de passe doit contenir 12 caractères.",
    "La clave del éxito es la constancia.",
    "Пароль должен содержать 8 символов.",
    "密码至少需要8位。",
    "비밀번호는 8자 이상이어야 합니다.",
    "رمز موفقیت پشتکار است.",
]


@pytest.mark.parametrize("text", PASSWORDS)
def test_a_password_in_a_sentence_is_found_and_redacted(text: str) -> None:
    assert "secret" in {finding.kind for finding in scan(text).findings}
    assert VALUE not in redact(text).text


@pytest.mark.parametrize("text", PINS)
def test_a_pin_in_a_sentence_is_found_and_redacted(text: str) -> None:
    assert scan(text).findings[0].kind == "secret"
    assert PIN not in redact(text).text


@pytest.mark.parametrize("text", HARMLESS)
def test_a_sentence_about_passwords_passes(text: str) -> None:
    assert scan(text).findings == ()


def test_a_plain_word_is_a_password_only_as_the_whole_value() -> None:
    assert scan("password: sword" + "fish").findings
    assert not scan("password: required for the admin page").findings


def test_a_passphrase_of_plain_words_is_found() -> None:
    assert scan("passphrase: correct horse " + "battery staple").findings
    assert not scan("passphrase: stored in the vault of the office").findings
