"""Words that announce a secret: PASSWORDS may be followed by any password-like word, PINS by digits, KEYS by a long
random value. The format is `language: word, word`, as in `vocabulary`; words are matched anywhere in folded text."""

PASSWORDS = """
en: password, passwords, psw, pswd, pasword, passw, passwrd, passwort, passwd, passcode, passphrase, pass phrase,
    pass-phrase, pwd, pass word, pw, passwort, pass, psk, wpa key, wpa2 key, wpa3 key, wifi key, wi-fi key, network key,
    wlan key, wifi code, credentials, creds, login, logins, log-in, mysql_root_password, recovery code, backup code,
    backup codes, recovery codes, security answer, master password, unlock code, pwd is, account secret, passkey,
    shared secret, secret word, code word, encryption key, admin pass, root pass, pass code, license key, licence key,
    product key, activation key
de: passwort, kennwort, passwoerter, zugangscode, passphrase, losungswort, schlusselwort, zugangsdaten, wlan-schlussel,
    wlan schlussel, geheime schlussel, geheimer schlussel, netzwerkschlussel, anmeldung, codewort, geheimwort
fr: mot de passe, mots de passe, mdp, code secret, code d'acces, phrase secrete, cle wifi, cle du wifi, identifiants,
    cle secrete, cle wpa, phrase de passe, code wifi
es: contrasena, contrasenas, clave, claves, palabra clave, palabra secreta, codigo secreto, clave secreta, credenciales,
    clave wifi, contrasenia
pt: senha, senhas, palavra-passe, palavra passe, codigo secreto, chave secreta, chave wifi, credenciais
it: password, parola d'ordine, parola chiave, chiave segreta, chiave wifi, codice segreto, credenziali, parola d'accesso
nl: wachtwoord, wachtwoorden, toegangscode, wachtzin, wifi-wachtwoord, inloggegevens, wifi-code
sv: losenord, losenordet, losen
da: adgangskode, kodeord, adgangskoden, kodeordet
no: passord, passordet
fi: salasana, salasanani
pl: haslo, hasla, haslem, hasłem, hasło
cs: heslo, hesla, heslem
sk: heslo
hu: jelszo, jelszava, jelszavam
ro: parola, parolei
hr: lozinka, lozinku, zaporka, sifra
tr: sifre, sifrem, sifresi, parola, parolam, parolasi, sifreniz, parolayi, sifreyi
ru: пароль, пароля, паролем, пароли, кодовое слово, секретное слово, ключ от wi-fi, ключ wifi, ключ от wifi,
    секретный ключ, кодовая фраза
uk: пароль, пароля, паролем
bg: парола, паролата
sr: лозинка
el: κωδικος, κωδικος προσβασης, συνθηματικο
zh: 密码, 口令, 密碼, 通行码, 密匙, 登录密码, 暗号
ja: パスワード, 暗証番号, パスフレーズ, 合言葉, パスコード
ko: 비밀번호, 패스워드, 암호, 비번, 비밀 번호
fa: رمز عبور, گذرواژه, پسورد, رمزعبور, رمز, کلمه عبور, رمز وای فای
ar: كلمة المرور, كلمة السر, الرقم السري, كلمه المرور, كلمة مرور, كلمة سر, باسورد
he: סיסמה, סיסמא, הסיסמה, הסיסמא
hi: पासवर्ड, कूटशब्द, संकेत शब्द
bn: পাসওয়ার্ড
ur: پاس ورڈ
th: รหัสผ่าน, พาสเวิร์ด
vi: mat khau
id: kata sandi, sandi, kata kunci
et: parool, parooli, salasona
lt: slaptazodis, slaptazodi
sl: geslo, gesla
ca: contrasenya, contrasenyes, clau de pas
gl: contrasinal
eu: pasahitza, pasahitz
sw: nenosiri, neno la siri
af: wagwoord
ms: kata laluan
sq: fjalekalimi, fjalekalim
is: lykilord
mk: лозинка, лозинката
be: пароль
hy: գաղտնաբառը, գաղտնաբառ
ka: პაროლი
kk: құпиясөз, кулипсөз
cy: cyfrinair
ga: pasfhocal
ta: கடவுச்சொல்
te: పాస్‌వర్డ్
mr: पासवर्ड
"""

PINS = """
en: pin, pin code, pin number, pincode, atm pin, alarm code, door code, gate code, entry code, access code,
    security code, lock code, safe code, safe combination, vault code, garage code, keypad code, passcode, combination,
    cvv, cvc, cvv2, cvc2, security number, unlock code, lockbox code, otp, one-time code, verification code, 2fa code,
    sim pin, puk, voicemail pin, card pin, code for the door, code to the door, code for the alarm, code to the alarm,
    code for the safe, code to the safe, code for the gate, code to the gate, safe is, ssn, social security number,
    social security
de: pin, geheimzahl, turcode, tuercode, alarmcode, zugangscode, tan, sicherheitscode, safe-code, zahlenkombination,
    entsperrcode, kombination, tresorcode, garagencode, pin-nummer
fr: code pin, digicode, code d'acces, code de l'alarme, code alarme, code de la porte, code du portail, code du coffre,
    code secret, code de l'immeuble, code de securite, pin, code d'entree, code de la carte, code bancaire,
    code de carte
es: pin, codigo pin, codigo de la alarma, codigo de la puerta, codigo de seguridad, codigo de acceso,
    clave de la alarma, clave de la tarjeta, clave del cajero, codigo del portal, combinacion, clave de acceso
pt: pin, codigo pin, codigo do alarme, codigo da porta, codigo de seguranca, senha do cartao, codigo do portao,
    codigo de acesso, combinacao
it: pin, codice pin, codice dell'allarme, codice allarme, codice della porta, codice di sicurezza, codice del cancello,
    codice di accesso, combinazione, codice segreto
nl: pincode, pin, alarmcode, deurcode, toegangscode, code van het alarm, code van de kluis, code van de deur,
    beveiligingscode, cijfercode
sv: pin-kod, pinkod, portkod, larmkod, pin
pl: pin, kod pin, kod do alarmu, kod do drzwi, kod do domofonu, kod do sejfu, kod do bramy
cs: pin, kod k alarmu
tr: pin, pin kodu, kart sifresi, kapi kodu, alarm kodu, kasa kodu, pin kodum, pin'i, kart sifrem
ru: пин, пин-код, пинкод, пин-кода, код от двери, код домофона, код от сейфа, код от сигнализации, код сигнализации,
    код от подъезда, код подъезда, пин код, код от карты, код от домофона, cvv-код, код от ворот
uk: пін-код, пін, пінкод, код від дверей
zh: pin码, 银行卡密码, 支付密码, 门禁密码, 取款密码, 门禁码, 报警密码, 密码, 保险箱密码, 验证码, 解锁密码, 门锁密码,
    密碼
ja: 暗証番号, pinコード, 暗証コード, ドアコード, パスコード, pin
ko: 핀번호, 비밀번호, pin 번호, 핀 번호, 현관 비밀번호, 핀코드, 비번, 암호
fa: پین, رمز کارت, رمز دوم, رمز, پین کد, رمز گاوصندوق, کد در, رمز دزدگیر, رمز موبایل
ar: الرقم السري, رمز pin, رمز الباب, الرمز السري, رقم التعريف, كود الباب, رمز الخزنة, رمز الدخول
he: קוד, קוד סודי
hi: पिन, पिन कोड, एटीएम पिन
el: pin, κωδικος
"""

KEYS = """
en: api key, api keys, apikey, api-key, api_key, secret key, secret_key, secretkey, access key, access_key,
    access token, access_token, auth token, auth_token, authtoken, private key, private_key, client secret,
    client_secret, bearer token, refresh token, signing key, encryption key, secret access key, secret, token,
    webhook secret, service key, session key, app secret, app key, deploy key, master key, account key, license key,
    licence key, integration key, key, hmac key, jwt secret, storage key, recovery key, personal access token,
    security token, credential, cookie secret, session token, api token, api_token, api secret, api_secret, bot token,
    shared access key, accountkey, subscription key, connection key, x-api-key, bearer
de: api-schlussel, schlussel, zugriffstoken, token, geheimer schlussel, geheimnis
fr: cle api, cle d'api, jeton, cle, cle secrete, cle d'acces, cle privee
es: clave api, clave de api, token, clave secreta, llave, clave privada
pt: chave api, chave de api, chave da api, token, chave secreta, chave
it: chiave api, token, chiave segreta, chiave
nl: api-sleutel, sleutel, token
pl: klucz api, klucz, token
tr: api anahtari, anahtar
ru: api ключ, api-ключ, ключ api, ключ, токен, секрет, секретный ключ
zh: 密钥, api密钥, 令牌, 秘钥, 金钥
ja: apiキー, キー, トークン, シークレット
ko: api 키, 키, 토큰, 시크릿
fa: کلید, توکن, کلید api
ar: مفتاح, رمز الوصول, المفتاح
hi: कुंजी, टोकन
"""

# Names with digits or symbols that occur near such labels and are not secrets.
NOT_VALUES = """
1password lastpass keepass keepassxc bitwarden dashlane nordpass vault yubikey base64 sha256 sha-256 sha512 sha-512 md5
argon2 argon2id bcrypt pbkdf2 scrypt hs256 rs256 es256 ed25519 aes-256 aes256 rsa4096 rsa-4096 oauth2 oauth2.0 ipv4 ipv6
utf-8 utf8 win10 win11 k8s s3 http2 http/2 tls1.2 tls1.3 wpa2 wpa3 wpa2-psk 2fa mfa totp u2f fido2 web3 e-mail wi-fi
wifi e2e i18n l10n x509 p12 pkcs12 pkcs8 pkcs#8 iso-8859-1 c++ c# f# python3 node.js next.js vue.js log4j g-suite
office365 microsoft365 o365 ms365 auth0 oauth-2 n/a read-only sign-in log-in log-out add-on case-sensitive alphanumeric
24/7 co-worker built-in self-hosted passwordless one-time two-factor multi-factor openid saml2 sso ldap
"""

# Words about a password in place of the password itself: stored, weak, in the …
STATES = """
stored saved kept required expired weak strong wrong correct not never reset changed managed missing empty long short
unknown same different secret hidden safe private public shared encrypted hashed salted protected rotated optional
invalid valid incorrect needed written here there always only too very in on at by for from the a an this that what
which where when how who why again still also now then just used set disabled enabled available lost forgotten stolen
leaked compromised secure insecure old new unique random generated default blank null none true false string str int
text field input type form page manager policy important confidential sensitive case complicated hard easy simple
difficult something anything nothing everything someone somewhere elsewhere yes no tbd todo pending updated unchanged
gone hot cold open closed locked about after before because between during with without within under over per via up
down out off your my his her our their its it he she they we you i me him them us one two three four five six seven
eight nine ten stark schwach falsch richtig abgelaufen geheim sicher lang kurz neu alt im der die das ein eine nicht bei
auf von zu fur und oder muss soll dans le la les un une est pas sur chez trop court expire faible fort perdu change
stocke obligatoire et ou doit en de du des el los las una es esta guardada caducada fuerte debil larga corta segura
perdida y o debe muy del por para con na nos nas os as um uma nao fraca forte curta longa e deve muito do da dos nella
nel della scaduta debole lunga sicura salvata non di het een niet staat verlopen sterk zwak kort veilig moet of van
хранится лежит записан истек слабый сильный новый старый должен в на у не это нужно надо длинный короткий изменен
сменить
"""

# Prepositions: a place or a means follows, not the value.
PLACES = """
in with via by using through under inside within per at on from mit bei im auf dans avec en con sur chez em com nel met
в на через с
"""

# Words of a rule about passwords: no value follows them.
POLICIES = """
no not never without must should cannot can't don't isn't aren't kein keine nicht sans pas ne sin sem nao senza non geen
niet без не нет muss soll doit debe deve moet должен может 必须 needs need requires require has
"""
