"""Numbers that give access or identify a person: one-time and recovery codes, national bank accounts, and numbers of
passports, tax files and identity cards. A number counts only with a label; numbers are searched first, since most texts
have few."""

from __future__ import annotations

import re
from collections.abc import Iterator

from scanning.provider_keys import Span

_BEFORE = 60  # characters before a number that may contain its label
_AFTER = 50
_NUMBER = re.compile(
    r"(?<![A-Za-z0-9.])(?:(?!ID|NO|NR)[A-Z]{2} (?=\d\d ))?(?=[A-Z]{0,8}\d)[A-Z0-9]{1,20}"
    r"(?:[ .\-/]{1,2}(?=[A-Z]{0,4}\d|[A-Z]\b)[A-Z0-9]{1,12}){0,9}(?![A-Za-z0-9])"
)
# Text that may separate a label and its number.
_LINK = (
    r"(?:[\s:：=#№.,\-–—*\"'(]|numbers?\b|num\b|no\b|nr\b|nummer|nº|n°|numéro|número|numero|numer\b|номер|серия"
    r"|is\b|was\b"
    r"|ist\b|lautet|est\b|es\b|è\b|é\b|to\b|je\b|er\b|on\b|var\b|ar\b|card\b|code\b|codes\b|است|هو|هي|号码|号"
    r"|番号|번호|は|是|为|는|은|\d{4}(?= номер)|now\b|still\b|your\b|my\b|شما|من){0,10}$"
)
_CODE_LABELS = (
    r"(?:verification|confirmation|authentication|authenticator|one-?time|two-?factor|2fa|mfa|log-?in|sign-?in|security"
    r"|activation|unlock|sms)[ \-](?:pass)?(?:code|password|pin|token)|\botp"
    r"|(?:bestätigungs|verifizierungs|sicherheits|anmelde|einmal|freischalt|aktivierungs)(?:code|passwort"
    r"|kennwort)|\bm?tan|code (?:de (?:vérification|confirmation|sécurité|connexion|validation)|à usage unique)"
    r"|código de (?:verifica\w+|confirma\w+|seguran\w+|seguridad|acceso|acesso)|códig\w de uso único"
    r"|codi de verificació|codice (?:di (?:verifica|conferma|sicurezza|accesso)|otp|usa e getta)"
    r"|(?:verificatie|bevestigings|inlog|beveiligings|eenmalige )code|(?:verifierings|bekræftelses|bekreftelses"
    r"|engångs|engangs)kode?"
    r"|vahvistuskoodi|kod\w{0,3} (?:weryfikacyjn\w+|potwierdz\w+|autoryzacyjn\w+|sms)|ověřovací kód|overovací kód"
    r"|(?:ellenőrző|megerősítő) kód|cod(?:ul)? de (?:verificare|confirmare)|(?:doğrulama|onay|güvenlik) kod\w{0,5}"
    r"|код\w{0,3} (?:подтвержд\w+|доступа|авторизац\w+|верификац\w+|из смс|підтвердж\w+)|одноразов\w+ (?:код|пароль)"
    r"|κωδικός (?:επαλήθευσης|επιβεβαίωσης)|رمز (?:التحقق|یکبار مصرف|یک‌بار مصرف|پویا)|کد (?:تأیید|تایید|فعال‌سازی)"
    r"|קוד (?:אימות|חד פעמי)|सत्यापन कोड|ओटीपी|mã (?:xác (?:minh|nhận|thực)|otp)|kode (?:verifikasi|otp)"
    r"|รหัส(?:ยืนยัน| ?otp)"
    r"|验证码|驗證碼|动态码|動態密碼|校验码|認証コード|確認コード|ワンタイムパスワード|인증번호|인증 ?코드"
)
_BANK_LABELS = (
    r"routing|\baba\b|sort code|\bbsb\b|(?:bank|checking|savings|current) (?:account|a/c)|\bifsc\b|\bclabe\b"
    r"|kontonummer"
    r"|konto-?nr|bankleitzahl|\bblz\b|numéro de compte|\brib\b|número de (?:cuenta|conta)|cuenta (?:bancaria|corriente)"
    r"|conta (?:corrente|bancária)|numero (?:di|del) conto|rekeningnummer|num\w+ (?:konta|rachunku)|kontonumm?er"
    r"|(?:номер\w? |расч[её]тн\w+ )сч[её]та?|hesap (?:no|numara\w+)|银行(?:卡|账|帐)(?:号|户)|银行账号|口座番号"
    r"|계좌 ?번호|شماره (?:حساب|کارت|شبا)|رقم الحساب|מספר חשבון|số tài khoản|nomor rekening"
)
_IDENTITY_LABELS = (
    r"passport|reisepass|passeport|pasaporte|passaport[eo]|paspoort|paszport\w{0,3}|pasaport\w{0,3}"
    r"|паспорт\w{0,3}|护照|護照|パスポート"
    r"|여권|گذرنامه|جواز السفر|דרכון|hộ chiếu|\bpaspor\b|driver'?s?'? licen[cs]e|driving licen[cs]e|führerschein"
    r"|permis de conduire|\bssn\b|social security|national insurance|\bnino\b|social insurance|tax (?:id|identification"
    r"|file)\w{0,10}|taxpayer id\w{0,12}"
    r"|steuer-?id\w{0,30}|steuernummer|steuerliche identifikations|sécurité sociale|numéro fiscal|codice fiscale"
    r"|código fiscal"
    r"|(?<![a-z])(?:dni|nie|nif|cpf|bsn|pesel|sin|tfn|ein|itin|pan|curp|cuit|cuil|cnp|egn|amka|cccd|nik|rut|nss"
    r"|snils)(?![a-z])"
    r"|aadhaa?r|आधार|персональн\w+ номер|(?<!\w)инн(?!\w)|снилс|身份证|身份證|居民身份|주민등록|マイナンバー"
    r"|個人番号|kimlik|کد ملی"
    r"|شماره ملی|رقم الهوية|الرقم القومي|תעודת זהות|personnummer|fødselsnummer|cpr-?nummer|henkilötunnus"
    r"|rodné číslo|cédula"
    r"|personalausweis|ausweis|identity card|id card|national id\w{0,10}|carte d'identité|carta d'identità"
    r"|ahv-?(?:nummer|nr)"
)
_CODE = re.compile(rf"(?:{_CODE_LABELS}){_LINK}", re.IGNORECASE)
_BANK = re.compile(rf"(?:{_BANK_LABELS})(?:{_LINK[:-1]}|(?<=\D)[^\d\n]{{0,3}}$)", re.IGNORECASE)
_BANK_NEAR = re.compile(_BANK_LABELS, re.IGNORECASE)
_ACCOUNT = re.compile(rf"(?:account|acct|a/c|konto|compte|cuenta|conta|conto|rachunek|сч[её]т){_LINK}", re.IGNORECASE)
_IDENTITY = re.compile(rf"(?:{_IDENTITY_LABELS}){_LINK}", re.IGNORECASE)
_IDENTITY_SHORT = re.compile(
    r"(?:passport|reisepass|passeport|pasaporte|passaport|paspoort|paszport|pasaport|паспорт|护照|護照"
    r"|パスポート|여권|licen[cs]e|führerschein)",
    re.IGNORECASE,
)
_YOUR_CODE = re.compile(
    r"^ (?:is|ist|est|es|è|é|to|je|er|är|on) (?:your|my|dein|deine|ihr|ihre|votre|ton|tu|su|il tuo|seu|uw|je|din"
    r"|twój|ваш|твой)"
    r" (?:[\w\-]{1,20} ){0,3}?(?!zip|post|area|country|promo|discount|dress|error|customer)(?:[\w\-]{1,20} )?"
    r"(?:[\w\-]{0,20}code|código|codice|kod|код|otp|pin)\b",
    re.IGNORECASE,
)
_NO_ACCESS = re.compile(
    r"(?:zip|post(?:al)?|area|country|promo|discount|dress|error|customer|source) ?-?code", re.IGNORECASE
)
_TO_CONFIRM = re.compile(r"^ to (?:confirm|verify|sign in|log in|complete|finish|reset|authenticate)\b", re.IGNORECASE)
_USE = re.compile(r"\b(?:use|enter|type)(?: the)?(?: code)? $", re.IGNORECASE)
_DIGITS_CODE = re.compile(r"\d{4,8}|\d{3}[ \-]\d{3}")
_UNIT = re.compile(
    r"^\s?(?:%|digits?|characters?|seconds?|minutes?|hours?|days?|years?|times|users?|people|lines?|km|kg|€|\$"
    r"|usd|eur|zeichen|stellen|ziffern|sekunden|minuten|chiffres|cifras|dígitos|cifre|cijfers|знак|цифр|位|桁|자리)",
    re.IGNORECASE,
)
_DATE = re.compile(
    r"\d{1,2}[./\- ]\d{1,2}[./\- ]\d{2,4}|(?:19|20)\d{2}[./\- ]\d{1,2}[./\- ]\d{1,2}|(?:19|20)\d{2}[\-/–](?:19"
    r"|20)?\d{2}"
)
_RECOVERY = re.compile(
    r"(?:(?:backup|back-up|recovery|emergency|scratch|rescue)[ \-]codes?|(?:wiederherstellungs|notfall|backup)-?codes?"
    r"|codes? de (?:secours|récupération)|códigos? de (?:respaldo|recupera\w+|backup|seguridad)"
    r"|codic[ei] di (?:backup|recupero)"
    r"|herstelcodes?|kody (?:zapasowe|odzyskiwania)|резервны\w{1,8} код\w{0,8}|код\w{0,3} восстановления"
    r"|(?:恢复|备用)(?:代码|码)|(?:バックアップ|リカバリー)コード|(?:복구|백업) ?코드)"
    r"[^\n\d]{0,40}?[\s:：]{1,4}(?:[\-•*] "
    r"|\d{1,2}[.)] )?(?P<v>{ONE}(?:{GAP}{ONE}){0,30})".replace(
        "{ONE}",
        r"(?:\d{8,12}|(?=[a-z\-]{0,20}\d)[a-z0-9]{4,8}(?:-[a-z0-9]{4,8}){1,6}"
        r"|(?=[a-z]{0,15}\d)(?=\d{0,15}[a-z])[a-z0-9]{8,16})(?![\w])",
    ).replace("{GAP}", r"[\s,;]{1,4}(?:(?:and|und|et|y|e|en|и|i) )?(?:[\-•*] |\d{1,2}[.)] )?"),
    re.IGNORECASE,
)
_RECOVERY_HINT = re.compile("cod|kod|код|恢复|备用|コード|코드")  # in lower case
_DISK_KEY = re.compile(r"(?<!\d)\d{6}(?:-\d{6}){7}(?!\d)")
_DIGIT = re.compile(r"\d")


def number_spans(text: str) -> Iterator[Span]:
    """Yield codes, bank accounts and document numbers in a text with its original case."""
    if not _DIGIT.search(text):
        return
    for match in _NUMBER.finditer(text):
        yield from _classified(text, match)
    if _RECOVERY_HINT.search(text.lower()):
        for match in _RECOVERY.finditer(text):
            yield *match.span("v"), "pin"
    if text.count("-") >= 7:
        yield from ((*match.span(), "private_key") for match in _DISK_KEY.finditer(text))


def _classified(text: str, match: re.Match[str]) -> Iterator[Span]:
    value = match.group()
    digits = sum(char.isdigit() for char in value)
    if digits < 2:
        return
    compact = [char for char in value if char.isalnum()]
    before = text[max(0, match.start() - _BEFORE) : match.start()].rpartition("\n")[2]
    after = text[match.end() : match.end() + _AFTER]
    if _DIGITS_CODE.fullmatch(value) and _is_code(before, after):
        yield *match.span(), "pin"
    elif digits >= 6 and not _DATE.fullmatch(value) and _is_account(before, after, len(compact)):
        yield *match.span(), "bank_account"
    elif 6 <= len(compact) <= 22 and not _DATE.fullmatch(value) and (label := _IDENTITY.search(before)):
        short = bool(_IDENTITY_SHORT.match(label.group()))
        if short or (len(compact) >= 8 and digits >= 4):
            yield *match.span(), "identity_number"


def _is_code(before: str, after: str) -> bool:
    if _UNIT.match(after):
        return False
    if _CODE.search(before):
        return True
    if _YOUR_CODE.match(after):
        return not _NO_ACCESS.search(after)
    return bool(_USE.search(before) and _TO_CONFIRM.match(after))


def _is_account(before: str, after: str, length: int) -> bool:
    if length < 6 or length > 28:
        return False
    if _BANK.search(before):
        return True
    return bool(_ACCOUNT.search(before) and (_BANK_NEAR.search(before) or _BANK_NEAR.search(after)))
