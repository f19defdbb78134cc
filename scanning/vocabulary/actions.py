"""Risky acts, the checks that guard them, claims of approval."""

CLASSES = {
    "SKIP": """
en: skip, remove, disable, bypass, turn off, switch off, omit, drop, ignore, avoid, weaken, comment out, deactivate,
    suppress, auto-approve, auto-confirm, auto-accept, never ask, don't ask, do not ask, no need, without, no, needs no,
    need no, requires no, require no, stop asking, delete, strip, waive, not need, not require, never require,
    unnecessary, pre-approved, preapproved, silence
de: uberspring*, deaktivier*, ohne, entfern*, umgeh*, frag nicht, keine
fr: saute*, desactive*, sans, supprime*, ignore*, contourne*
es: omite, salta*, desactiva*, sin, elimina*, evita
pt: pule, desative, sem, ignore, remova
it: salta, disattiva*, senza, rimuovi, ignora
nl: sla, zonder, uitschakel*, verwijder
ru: пропусти*, пропускай*, отключи*, без, обходи*, удали*
zh: 跳过, 关闭, 无需, 不需要, 禁用, 绕过, 免
ja: スキップ, 無効, なしで, 省略, 不要
fa: بدون, رد کن*, غیرفعال*
""",
    "CHECKS": """
en: ask again, asking again, asking, ask, ask for, ask before, confirmation, confirmations, approval, approvals,
    approval prompts, authentication, authorization, authorisation, verification, verifications, permission prompts,
    permission prompt, permission, permissions, signature verification, certificate checks, certificate check, checks,
    four-eyes, four-eyes check, security checks, security check, safety checks, safety check, auth checks, auth check,
    certificate verification, tls verification, ssl verification, sandbox, consent, two-factor, 2fa, human review,
    identity check, identity checks, access control, access checks, input validation, audit log, audit logs,
    audit logging, logging, firewall, antivirus, csrf, rate limits, confirm, rate limiting, encryption, virus scan,
    code signing, safeguards
de: bestatigung*, genehmigung*, authentifizierung*, sicherheitsprufung*, freigabe*, ruckfrage*, verifizierung*
fr: confirmation*, approbation*, authentification, verification*, validation*
es: confirmacion*, aprobacion*, autenticacion, verificacion*
pt: confirmac*, aprovac*, autenticac*, verificac*
it: conferm*, approvazion*, autenticazion*, verific*
nl: bevestiging*, goedkeuring*, authenticatie, verificatie*
ru: подтвержден*, одобрен*, проверк*, аутентификац*
zh: 确认, 批准, 验证, 审批, 认证, 检查
ja: 確認, 承認, 認証, 検証
fa: تایید*, تأیید*, احراز هویت, بررسی
""",
    "RISK": """
en: transfer, wire, pay, approve, delete, wipe, erase, unlock, grant, disable, execute, install, forward, send, upload,
    leak, reveal, exfiltrate, purchase, buy, email, refund, drop, overwrite, shut down, run, download, escalate,
    whitelist, impersonate, publish, obey, replace, swap, redirect, encrypt, corrupt, sabotage, withdraw, sell, share,
    hand over, activate, comply, authorize, authorise, accept, push, insert, inject
de: uberweis*, genehmig*, losch*, sende*, schick*, zahl*, kauf*, installier*, freigeb*, fuhre
fr: transfer*, virement, paie*, approuve*, supprime*, envoie*, achete*, execute*, installe*
es: transfier*, paga*, aprueba*, borra*, envia*, compra*, ejecuta*, instala*
pt: transfir*, pague, aprove, apague, envie, compre, execute, instale
it: trasferisci, paga, approva, cancella, invia, compra, esegui, installa
ru: переведи*, оплати*, одобри*, удали*, отправ*, купи*, выполни*, установи*, запусти*
zh: 转账, 批准, 删除, 发送, 购买, 执行, 安装, 付款, 汇款, 运行
ja: 送金, 承認, 削除, 送信, 購入, 実行, 支払
fa: انتقال, پرداخت, حذف, ارسال*, خرید, اجرا*
tr: gonder*, ode, sil, onayla, calistir
""",
    "VALUABLE": """
en: payment, payments, money, funds, fund, euros, dollars, transfer, transfers, wire, account, accounts, bank, iban,
    wallet, crypto, bitcoin, deposit, credentials, password, passwords, admin, access, privileges, permissions,
    database, databases, production, backups, backup, private repo, repository, disk, home directory, refund, refunds,
    purchases, secrets, keys, pull requests, pull request, prs, firewall, tool calls, tool call, shell commands,
    commands, deletions, payload, affiliate, cookie, cookies, shell, memories, records, unrestricted, card, shares,
    loan, contract, tables, files, mine, malware, trades, stock
de: zahlung*, geld, konto*, kontonummer*, rechnung*, uberweisung*, zugang*, daten*, passwort*
fr: paiement*, argent, compte*, facture*, virement*, acces, donnees, mot de passe
es: pago*, dinero, cuenta*, factura*, transferencia*, acceso, datos, contrasena
pt: pagamento*, dinheiro, conta*, fatura*, transferencia*, acesso, dados, senha
it: pagament*, denaro, conto, conti, fattur*, bonific*, accesso, dati
nl: betaling*, geld, rekening*, factu*, toegang, gegevens
ru: платеж*, платёж*, деньги, денег, счет*, счёт*, перевод*, доступ*, данны*, парол*
zh: 付款, 钱, 账户, 发票, 转账, 款项, 权限, 数据, 账号
ja: 支払, お金, 口座, 請求, 送金, 権限, データ
fa: پول, حساب*, فاکتور*, پرداخت*, دسترسی
""",
    "DECODE": """
en: decode, decoded, decoding, decrypt, base64, b64, hex, rot13, rot-13, backwards, reverse, reversed, unscramble,
    encoded, decipher, from hex, translate from, morse, binary, caesar, cipher, read backwards
de: dekodier*, entschlussel*, ruckwarts
fr: decode*, dechiffre*, a l'envers
es: decodifica*, descifra*, al reves
ru: декодируй*, расшифруй*, задом наперед
zh: 解码, 解密
ja: デコード, 復号
fa: رمزگشایی
""",
    "ACTON": """
en: follow, obey, execute, act on, do what, run, comply, apply, carry out, do it, do as, then do, perform, instruction,
    instructions, instruction for, order, orders, treat as, eval
de: befolg*, ausfuhr*, folge, fuhre
fr: suis, execute*, obeis, applique
es: sigue, ejecuta, obedece
ru: выполни*, следуй*, исполни*
zh: 执行, 遵守, 照做
ja: 実行, 従
fa: اجرا*, پیروی*
""",
    "VOUCHED": """
en: agrees, agreed, agree, consents, consent, approves, okayed, ok'd, accepts, accepted, pre-approved, preapproved,
    pre-authorized, preauthorized, pre-authorised, authorized, authorised, approved, consented, has consented,
    signed off, waived, exempt, exempted, trusted, whitelisted, allow-listed, cleared, permitted, verified, agreed,
    is fine with, gave permission, granted, allowed, legitimate
de: genehmigt, autorisiert, freigegeben, erlaubt
fr: approuve, autorise, d'accord, accepte
es: aprobo, aprobado, autorizo, autorizado, acepto
pt: aprovou, aprovado, autorizou, autorizado
it: approvato, autorizzato
ru: одобрил*, разрешил*, согласовал*, одобрено
zh: 已批准, 已授权, 已同意, 批准了, 授权
ja: 承認済, 許可済, 許可した
fa: تایید کرده, اجازه داده
""",
    "CHIEF": """
en: ceo, cfo, coo, cto, administrator, admin, admins, management, legal, compliance, security team, openai, anthropic,
    it department, developer, developers, support team, boss, vendor, operator, owner, police, root, superuser,
    maintainer, head office, board, the company, user has already, system
de: administrator*, chef, leitung
fr: administrateur, l'administrateur, direction
es: administrador*, direccion
pt: administrador*
it: amministrator*
ru: администратор*, начальник*, руководств*
zh: 管理员, 管理层
ja: 管理者
fa: مدیر*
""",
    "BACKDOOR": """
en: backdoor, back door, malware, keylogger, ransomware, trojan, rootkit, spyware, reverse shell, exploit, logic bomb,
    crypto miner, cryptominer, vulnerability, vulnerabilities, hidden account, malicious code
de: hintertur
fr: porte derobee
es: puerta trasera
ru: бэкдор, закладку
zh: 后门, 木马
""",
    "AUTO": """
en: automatically, without question, without questions, always, once and for all, every time, no questions asked,
    unconditionally, blindly, without review, without reading, without checking
""",
    "SECURITY_CHECK": """
en: tls verification, ssl verification, certificate verification, certificate checks, authentication,
    authentication checks, signature verification, security checks, identity checks, identity check, encryption,
    audit logging, access control, access checks, input validation, sandboxing, virus scan, four-eyes check,
    login checks, authorization checks
""",
    "GRANT": """
en: grant, give, assign, promote, elevate, add, unlock, make
""",
    "ANYBODY": """
en: everyone, everybody, anyone, all users, every user, any user, whoever, stranger, strangers, guest, guests
""",
    "POWER": """
en: admin, admin rights, administrator, root, owner access, superuser, full access, admin access, admin mode,
    root access, write access, owner
""",
    "MANIPULATE": """
en: convince, persuade, urge, manipulate, pressure, trick, deceive, lure, nudge, scare, mislead
""",
}
