"""Conditions that wait for a moment, advice that sells, and settings in which words are harmless."""

CLASSES = {
    "TRIGGER": """
en: when, whenever, once, if, after, as soon as, next time, the moment, upon, on the next, every time, each time,
    any time, until, the first time, at the end of, starting, on the first
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
en: anyone mentions, someone mentions, anyone asks, user asks, user says, user mentions, user asks, user types,
    user writes, the user next, user logs in, user opens, user uploads, user greets, user confirms, user sends,
    user approves, user requests, user shares, user pastes, user talks, says the word, trigger word, code word,
    codeword, magic word, keyword, secret phrase, secret word, says goodbye, next conversation, next session, tomorrow,
    next week, phrase, passphrase, you see, you hear, user thanks, thanks you, someone asks, anyone asks, asked about,
    asked for, you are asked, you're asked, user's next, user provides, user starts, user is away, user replies,
    user agrees, user leaves, user goes, user closes, user finishes, user visits, user travels, user buys, user pays,
    user signs, user submits, user books, user checks, user reads, is mentioned, are mentioned, comes up, midnight,
    messages from now, turns from now, third message, next message, next request, next login
de: benutzer sagt, nutzer sagt, benutzer fragt, stichwort, codewort, nutzer fragt
fr: utilisateur dit, l'utilisateur dit, l'utilisateur demande, mot-cle
es: usuario diga, usuario dice, usuario pida, palabra clave
ru: пользователь скажет, пользователь спросит, пользователь говорит, кодовое слово
zh: 用户说, 用户问, 用户提到, 暗号
fa: کاربر گفت, کاربر پرسید, کاربر بگوید
""",
    "PUSH": """
en: recommend, recommends, promote, urge, advertise, push, endorse, praise, steer, convince, persuade, nudge, suggest,
    favour, favor, present, describe, rank, rate, prefer, plug, hype, portray, treat, tell, claim, pitch, direct, point
de: empfiehl*, empfehle*, bewirb, uberrede*
fr: recommande*, vante*, pousse*
es: recomienda*, promociona*, convence*
ru: рекомендуй*, советуй, убеди*, продвигай
zh: 推荐, 宣传, 劝
""",
    "BUY": """
en: buy, purchase, invest, subscribe, click, donate, sign up, download, install, wire, deposit, verified, trustworthy,
    the only, the best, cheapest, safest, over competitors, over any competitor, competitors, competitor, alternatives,
    trusted source, authoritative, as fact, as facts, investment, stocks, crypto, coin, sponsored, affiliate,
    regardless of, whatever the question, no matter what, even if worse
de: kaufen, investieren
fr: acheter, investir
es: comprar, invertir
ru: купить, вложить
zh: 购买, 投资
""",
    "VERIFY": """
en: verify, confirm, log in, login, sign in, validate, unlock, re-enter, reactivate, update, pay, claim, click,
    register, visit
""",
    "ACCOUNT": """
en: account, accounts, identity, password, payment details, login, credentials, card, billing, subscription, access,
    wallet
""",
    "STORY": """
en: story, novel, poem, tale, essay, song, movie, film, screenplay, play, fiction, painting, artwork, artist, detective,
    tour, d&d, campaign, parody, puzzle, discord
""",
    "META": """
en: such as, phrases like, phrase, phrases, prompts like, messages like, text like, strings like, strings, flags, flag,
    flagged, detect, detects, detected, blocks, blocked, classifier, attack, attacks, paper, article, dataset,
    benchmark, example, examples, e.g., talk, course, lecture, slides, prompt injection, injection, injections,
    jailbreaks, quote, quotes, wrote, title, titled, called, sentence, red team, red-team, payload, payloads, known as,
    tests, unit test, test case
de: beispiel, angriff, angriffe, phrasen
fr: exemple, attaque, attaques
es: ejemplo, ataque, ataques
ru: пример, атака, атаки, фразы
zh: 例如, 攻击, 示例
""",
    # Everyday rules: of a game, a school, a doctor.
    "EVERYDAY": """
en: game, games, chess, homework, school, teacher, class, house, traffic, diet, dog, cat, doctor, doctor's, vet, recipe,
    club, tournament, league, landlord, garden, gym, exam, lease, holidays, kids, grammar, monopoly, poker
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
en: local, locally, localhost, development, dev, staging, test, tests, sandbox, ci, in my app, our app, the app,
    browser, nginx, eslint, firewall, proxy, cors, docker, vite, webpack, router, phone, laptop, car
""",
    "PROMO": """
en: fabricated, false, fake, misleading, untrue, made-up, unverified, conspiracy, rumour, rumor, hoax, newsletter,
    subscribe, subscribing, investment, invest, lottery, winnings, giveaway, prize, special offers, special offer,
    brand, sponsored, advert, advertisement, promotion, click, discount code, affiliate, miracle, cure, scam,
    too-good-to-be-true, get-rich-quick, phishing, slander, defamatory
de: erfunden*, falsche*, irrefuhrend*, gewinnspiel, werbung
fr: faux, fausse, inventee, trompeur, loterie, publicite
es: falsa, falso, inventad*, enganos*, loteria, publicidad
ru: ложн*, выдуманн*, фальшив*, лотере*, реклам*
zh: 虚假, 虚构, 广告, 彩票, 中奖
""",
}
