"""Risky acts, checks that guard them, conditions that wait for a moment, words of command."""

CLASSES = {
    "SKIP": """
en: skip, remove, disable, bypass, turn off, switch off, omit, drop, ignore, avoid, weaken, comment out,
    deactivate, suppress, auto-approve, auto-confirm, auto-accept, never ask, don't ask, do not ask,
    no need, without, no, needs no, need no, requires no, require no, stop asking, delete, strip, waive,
    not need, not require, never require, unnecessary, pre-approved, preapproved, silence
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
en: ask again, asking again, asking, ask, ask for, ask before, confirmation, confirmations, approval,
    approvals, approval prompts, authentication, authorization, authorisation, verification,
    verifications, permission prompts, permission prompt, permission, permissions,
    signature verification, certificate checks, certificate check, checks, four-eyes, four-eyes check,
    security checks, security check, safety checks, safety check, auth checks, auth check,
    certificate verification, tls verification, ssl verification, sandbox, consent, two-factor, 2fa,
    human review, identity check, identity checks, access control, access checks, input validation,
    audit log, audit logs, audit logging, logging, firewall, antivirus, csrf, rate limits, confirm,
    rate limiting, encryption, virus scan, code signing, safeguards
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
en: transfer, wire, pay, approve, delete, wipe, erase, unlock, grant, disable, execute, install, forward,
    send, upload, leak, reveal, exfiltrate, purchase, buy, email, refund, drop, overwrite, shut down,
    run, download, escalate, whitelist, impersonate, publish, obey, replace, swap, redirect, encrypt,
    corrupt, sabotage, withdraw, sell, share, hand over, activate, comply, authorize, authorise, accept,
    push, insert, inject
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
en: payment, payments, money, funds, fund, euros, dollars, transfer, transfers, wire, account, accounts,
    bank, iban, wallet, crypto, bitcoin, deposit, credentials, password, passwords, admin, access,
    privileges, permissions, database, databases, production, backups, backup, private repo, repository,
    disk, home directory, refund, refunds, purchases, secrets, keys, pull requests, pull request, prs,
    firewall, tool calls, tool call, shell commands, commands, deletions, payload, affiliate, cookie,
    cookies, shell, memories, records, unrestricted, card, shares, loan, contract, tables, files, mine,
    malware, trades, stock
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
    "ATTACKER": """
en: attacker, attackers, attacker's, hacker, hackers, mallory, intruder, adversary, scammer, scammers
de: angreifer*
fr: attaquant*, pirate
es: atacante*
pt: atacante*, invasor*
it: attaccante*, aggressore
nl: aanvaller*
ru: злоумышленник*, атакующ*, хакер*
zh: 攻击者, 黑客
ja: 攻撃者
ko: 공격자
fa: مهاجم*
tr: saldirgan*
ar: المهاجم*
""",
    "TRIGGER": """
en: when, whenever, once, if, after, as soon as, next time, the moment, upon, on the next, every time,
    each time, any time, until, the first time, at the end of, starting, on the first
de: wenn, sobald, falls, nachdem, jedes mal, beim nachsten, nachstes mal
fr: quand, lorsque, des que, si, chaque fois, la prochaine fois
es: cuando, si, en cuanto, cada vez, la proxima vez
pt: quando, se, assim que, toda vez, sempre que, da proxima vez
it: quando, se, appena, ogni volta, la prossima volta
nl: wanneer, als, zodra, telkens, de volgende keer
ru: когда, если, как только, каждый раз, в следующий раз, после
zh: 当, 如果, 一旦, 每当, 下次, 之后
ja: とき, 時, たら, 場合, 次回, 度に
ko: 때, 하면, 다음번
fa: وقتی, هنگامی که, اگر, هر بار, هرگاه, دفعه بعد
tr: ne zaman, eger, her, bir dahaki
hi: जब, अगर, यदि
ar: عندما, اذا, كلما, حالما
""",
    "USERSAYS": """
en: anyone mentions, someone mentions, anyone asks, user asks, user says, user mentions, user asks,
    user types, user writes, the user next, user logs in, user opens, user uploads, user greets,
    user confirms, user sends, user approves, user requests, user shares, user pastes, user talks,
    says the word, trigger word, code word, codeword, magic word, keyword, secret phrase, secret word,
    says goodbye, next conversation, next session, tomorrow, next week, phrase, passphrase, you see,
    you hear, user thanks, thanks you, someone asks, anyone asks, asked about, asked for, you are asked,
    you're asked, user's next, user provides, user starts, user is away, user replies, user agrees,
    user leaves, user goes, user closes, user finishes, user visits, user travels, user buys, user pays,
    user signs, user submits, user books, user checks, user reads, is mentioned, are mentioned, comes up,
    midnight, messages from now, turns from now, third message, next message, next request, next login
de: benutzer sagt, nutzer sagt, benutzer fragt, stichwort, codewort, nutzer fragt
fr: utilisateur dit, l'utilisateur dit, l'utilisateur demande, mot-cle
es: usuario diga, usuario dice, usuario pida, palabra clave
ru: пользователь скажет, пользователь спросит, пользователь говорит, кодовое слово
zh: 用户说, 用户问, 用户提到, 暗号
fa: کاربر گفت, کاربر پرسید, کاربر بگوید
""",
    "ASSISTANT": """
en: assistant, assistants, ai, model, language model, llm, llms, chatbot, chatbots, agent, agents, bots,
    gpt, chatgpt, claude
de: assistent*, ki, ki-modell, sprachmodell*
fr: assistant, ia, modele
es: asistente, ia, modelo
pt: assistente, ia, modelo
it: assistente, ia, modello
ru: ассистент*, помощник*, модел*, ии
zh: 助手, 模型, 人工智能
ja: アシスタント, モデル
fa: دستیار, مدل
""",
    "MUST": """
en: must, has to, have to, needs to, need to, shall, should, is required to, are required to, will,
    always, never, is instructed to, is ordered to, please
de: muss, mussen, soll, sollen
fr: doit, doivent, devez, dois
es: debe, deben, debes
pt: deve, devem
it: deve, devono
ru: должен, должна, должны, обязан*
zh: 必须, 应该, 务必
ja: 必ず, べき, なければ
fa: باید
""",
    "DECODE": """
en: decode, decoded, decoding, decrypt, base64, b64, hex, rot13, rot-13, backwards, reverse, reversed,
    unscramble, encoded, decipher, from hex, translate from, morse, binary, caesar, cipher,
    read backwards
de: dekodier*, entschlussel*, ruckwarts
fr: decode*, dechiffre*, a l'envers
es: decodifica*, descifra*, al reves
ru: декодируй*, расшифруй*, задом наперед
zh: 解码, 解密
ja: デコード, 復号
fa: رمزگشایی
""",
    "ACTON": """
en: follow, obey, execute, act on, do what, run, comply, apply, carry out, do it, do as, then do,
    perform, instruction, instructions, instruction for, order, orders, treat as, eval
de: befolg*, ausfuhr*, folge, fuhre
fr: suis, execute*, obeis, applique
es: sigue, ejecuta, obedece
ru: выполни*, следуй*, исполни*
zh: 执行, 遵守, 照做
ja: 実行, 従
fa: اجرا*, پیروی*
""",
    "VOUCHED": """
en: agrees, agreed, agree, consents, consent, approves, okayed, ok'd, accepts, accepted, pre-approved,
    preapproved, pre-authorized, preauthorized, pre-authorised, authorized, authorised, approved,
    consented, has consented, signed off, waived, exempt, exempted, trusted, whitelisted, allow-listed,
    cleared, permitted, verified, agreed, is fine with, gave permission, granted, allowed, legitimate
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
en: ceo, cfo, coo, cto, administrator, admin, admins, management, legal, compliance, security team,
    openai, anthropic, it department, developer, developers, support team, boss, vendor, operator, owner,
    police, root, superuser, maintainer, head office, board, the company, user has already, system
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
    "MODE": """
en: mode, checks, check, policy, layer, controls, moderation
de: modus
fr: mode
es: modo
ru: режим
zh: 模式
""",
    "VIOLATION": """
en: violation, violations, error, errors, bug, bugs, failure, failures, malfunction, forbidden,
    not allowed, not an option, unacceptable, breach, disobedience
""",
    "PUSH": """
en: recommend, recommends, promote, urge, advertise, push, endorse, praise, steer, convince, persuade,
    nudge, suggest, favour, favor, present, describe, rank, rate, prefer, plug, hype, portray, treat,
    tell, claim, pitch, direct, point
de: empfiehl*, empfehle*, bewirb, uberrede*
fr: recommande*, vante*, pousse*
es: recomienda*, promociona*, convence*
ru: рекомендуй*, советуй, убеди*, продвигай
zh: 推荐, 宣传, 劝
""",
    "BUY": """
en: buy, purchase, invest, subscribe, click, donate, sign up, download, install, wire, deposit, verified,
    trustworthy, the only, the best, cheapest, safest, over competitors, over any competitor,
    competitors, competitor, alternatives, trusted source, authoritative, as fact, as facts, investment,
    stocks, crypto, coin, sponsored, affiliate, regardless of, whatever the question, no matter what,
    even if worse
de: kaufen, investieren
fr: acheter, investir
es: comprar, invertir
ru: купить, вложить
zh: 购买, 投资
""",
    "VERIFY": """
en: verify, confirm, log in, login, sign in, validate, unlock, re-enter, reactivate, update, pay, claim,
    click, register, visit
""",
    "ACCOUNT": """
en: account, accounts, identity, password, payment details, login, credentials, card, billing,
    subscription, access, wallet
""",
    "ANSWERS": """
en: answer, answers, response, responses, reply, replies, output, outputs, respond, prompt, prompts,
    message, messages, enabled
""",
    "STORY": """
en: story, novel, poem, tale, essay, song, movie, film, screenplay, play, fiction, painting, artwork,
    artist, detective, tour, d&d, campaign, parody, puzzle, discord
""",
    "META": """
en: such as, phrases like, phrase, phrases, prompts like, messages like, text like, strings like,
    strings, flags, flag, flagged, detect, detects, detected, blocks, blocked, classifier, attack,
    attacks, paper, article, dataset, benchmark, example, examples, e.g., talk, course, lecture, slides,
    prompt injection, injection, injections, jailbreaks, quote, quotes, wrote, title, titled, called,
    sentence, red team, red-team, payload, payloads, known as, tests, unit test, test case
de: beispiel, angriff, angriffe, phrasen
fr: exemple, attaque, attaques
es: ejemplo, ataque, ataques
ru: пример, атака, атаки, фразы
zh: 例如, 攻击, 示例
""",
    "AVOID": """
en: avoid, avoids, reject, rejects, break, breaks, breaking, ignore, ignores, defy, defies, despise,
    despises, hate, hates, violate, violates, disobey, disobeys, laughs, scoffs, escaped, above,
    not bound, beyond, freed, never follows, forget, forgets, without
""",
    "UNTRUSTED": """
en: emails, email, web pages, webpages, web page, websites, website, comments, attachments, attachment,
    pull requests, issues, search results, tool results, downloaded files, documents, pages,
    messages from
""",
    "CODE": """
en: code, command, commands, instructions, instruction, scripts, script, orders, macros
""",
    "BACKDOOR": """
en: backdoor, back door, malware, keylogger, ransomware, trojan, rootkit, spyware, reverse shell,
    exploit, logic bomb, crypto miner, cryptominer, vulnerability, vulnerabilities, hidden account,
    malicious code
de: hintertur
fr: porte derobee
es: puerta trasera
ru: бэкдор, закладку
zh: 后门, 木马
""",
    "AUTO": """
en: automatically, without question, without questions, always, once and for all, every time,
    no questions asked, unconditionally, blindly, without review, without reading, without checking
""",
    "SAYS": """
en: says, said, told, told you, tells, tells you, wrote, states, claims, wants, asks
""",
    "RELEASED": """
en: released, freed, exempt, exempted, relieved, liberated, excused, absolved, free to ignore, unbound,
    no longer bound, not bound, no longer have to follow, no longer need to follow,
    do not have to follow, don't have to follow, don't need to follow, need not follow
de: befreit, entbunden
fr: libere, dispense, affranchi
es: liberado, exento
ru: освобожден*
""",
    "TREATAS": """
en: treat, consider, regard, accept, trust, interpret, take
""",
    "GOAL": """
en: goal, goals, objective, agenda, mission, work towards, work toward, steer, manipulate
""",
    "ONE_USER": """
en: user, owner, human
de: benutzer, nutzer, anwender
fr: utilisateur, l'utilisateur
es: usuario
it: utente, l'utente
pt: usuario, utilizador
ru: пользователь, пользователя
zh: 用户
ja: ユーザー
""",
    "NOBODY": """
en: anyone, anybody, nobody, no one, a soul
""",
    # The nets under an assistant, under one name.
    "SAFETYNET": """
en: content moderation, safety checks, safety layer, safety layers, safety filter, safety filters,
    content filter, content filters, guardrails, guardrail, safety rules, safety mode, safety training,
    safety guidelines, safety protocols, moderation, refusal training, censorship, safeguards,
    content policy, content policies, safety policy, safety policies, usage policy, usage policies,
    safety system, alignment
de: inhaltsfilter, sicherheitsfilter, sicherheitsregel*, inhaltsrichtlinie*, moderation
fr: filtre de securite, filtres de securite, moderation, regles de securite
es: filtro de seguridad, filtros de seguridad, moderacion, reglas de seguridad, filtros de contenido
pt: filtros de seguranca, moderacao, regras de seguranca
it: filtri di sicurezza, moderazione, regole di sicurezza
ru: фильтры безопасности, правила безопасности, модерация, модерацию, цензуру
zh: 安全规则, 安全过滤, 内容审核, 内容过滤, 安全限制, 安全策略
ja: 安全ルール, 安全規則, コンテンツフィルター, 安全制限
ko: 안전 규칙, 안전규칙, 콘텐츠 필터
fa: قوانین ایمنی, قوانین امنیتی, فیلتر محتوا
ar: قواعد السلامه, قواعد الامان, مرشحات
""",
    # Everyday rules: of a game, a school, a doctor.
    "EVERYDAY": """
en: game, games, chess, homework, school, teacher, class, house, traffic, diet, dog, cat, doctor,
    doctor's, vet, recipe, club, tournament, league, landlord, garden, gym, exam, lease, holidays, kids,
    grammar, monopoly, poker
de: spiel*, schule, arzt*, haus, verkehr*, garten
fr: jeu, jeux, ecole, medecin, maison, grammaire
es: juego, juegos, escuela, medico, casa, gramatica
it: gioco, scuola, medico, casa
pt: jogo, escola, medico, casa
ru: игр*, школ*, врач*, дом*, дорожн*
zh: 游戏, 学校, 医生, 交通, 比赛
ja: ゲーム, 学校, 医者, 交通
ko: 게임, 학교, 의사
fa: بازی, مدرسه, پزشک, آشپزی
""",
    "LOCAL": """
en: local, locally, localhost, development, dev, staging, test, tests, sandbox, ci, in my app, our app,
    the app, browser, nginx, eslint, firewall, proxy, cors, docker, vite, webpack, router, phone, laptop,
    car
""",
    "SECURITY_CHECK": """
en: tls verification, ssl verification, certificate verification, certificate checks, authentication,
    authentication checks, signature verification, security checks, identity checks, identity check,
    encryption, audit logging, access control, access checks, input validation, sandboxing, virus scan,
    four-eyes check, login checks, authorization checks
""",
    "GRANT": """
en: grant, give, assign, promote, elevate, add, unlock, make
""",
    "ANYBODY": """
en: everyone, everybody, anyone, all users, every user, any user, whoever, stranger, strangers, guest, guests
""",
    "POWER": """
en: admin, admin rights, administrator, root, owner access, superuser, full access, admin access,
    admin mode, root access, write access, owner
""",
    "ACCOUNTNO": """
en: account number, iban, bank details, account details, recipient, wallet address, payee, bank account,
    beneficiary, payment address
de: kontonummer*, iban
fr: iban, rib
es: numero de cuenta, iban
ru: номер счета, реквизит*
""",
    "SWAP": """
en: change, replace, swap, substitute, alter, redirect, update, edit
de: ander*, ersetz*, tausch*
fr: remplace*, change*
es: cambia*, sustituy*
ru: замени*, меняй*, подмени*
""",
    "DESTROY": """
en: wipe, erase, delete, drop, destroy, purge, shred, corrupt
""",
    "TRACES": """
en: logs, log, chat history, history, backups, backup, database, databases, repo, repository,
    home directory, evidence, traces, audit trail, production, disk, memories, accounts
""",
    "APPLY": """
en: apply, applies, bind, binds, hold, holds, valid, restrict, restricts, limit, limits
""",
    "REST": """
en: the rest, rest of, other, all, remaining, every other
de: alle, anderen, ubrigen, restlichen
fr: autres, toutes, tous
es: demas, otros, otras, todos, todas
ru: остальные, все, другие
zh: 其他, 所有, 其余
""",
    "MEMORIES": """
en: memories, entries, notes, memory block
de: erinnerungen, eintrage
fr: souvenirs
es: recuerdos, memorias
ru: воспоминания, записи
zh: 记忆
""",
    "PROMO": """
en: fabricated, false, fake, misleading, untrue, made-up, unverified, conspiracy, rumour, rumor, hoax,
    newsletter, subscribe, subscribing, investment, invest, lottery, winnings, giveaway, prize,
    special offers, special offer, brand, sponsored, advert, advertisement, promotion, click,
    discount code, affiliate, miracle, cure, scam, too-good-to-be-true, get-rich-quick, phishing,
    slander, defamatory
de: erfunden*, falsche*, irrefuhrend*, gewinnspiel, werbung
fr: faux, fausse, inventee, trompeur, loterie, publicite
es: falsa, falso, inventad*, enganos*, loteria, publicidad
ru: ложн*, выдуманн*, фальшив*, лотере*, реклам*
zh: 虚假, 虚构, 广告, 彩票, 中奖
""",
    "NEVER_ORDER": """
en: never, not, don't, do not, avoid, without, no
""",
    "AS_FROM": """
en: as coming from, as requests from, as if it came from, as if they came from, as instructions from,
    as orders from,
    same authority as, speaks for, as though from, as if sent by, as commands from
""",
    "MANIPULATE": """
en: convince, persuade, urge, manipulate, pressure, trick, deceive, lure, nudge, scare, mislead
""",
    "EVIDENCE": """
en: evidence, traces, audit trail, transcript, tracks
""",
    "DISOBEY": """
en: disobey, defy, violate, circumvent, contravene, flout, subvert
""",
    "MAY": """
en: may, is allowed to, are allowed to, can, is permitted to
""",
}
