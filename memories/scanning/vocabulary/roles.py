"""Being somebody else, without limits; addressing the assistant."""

CLASSES = {
    "BECOME": """
en: pretend, act as, act like, behave as, behave like, simulate, roleplay, role-play, role play,
    impersonate, name yourself, call yourself, you are now, you're now, you are going to, you are a,
    you are an, you are the, you're a, you're an, you're the, you're in the role, you are no longer,
    you're no longer, you become, become, you will be, you have been upgraded, you have been freed,
    you have been, you've been, you were, assume the role, take the role, assume the identity,
    assume the persona, take on the role, take on the identity, take on, adopt, adapt, assume you,
    play the role, play the part, consider yourself, think of yourself, imagine you, imagine yourself,
    switch to, enter, activate, enable, stay in character, stay in, remain in character, from now on you,
    your name is, your new name, your true self, your real self, embody, transform, turn into, speak as,
    answer as, respond as, reply as, operate as, operate in, run in, you operate, you run, there are,
    there is, you have, you will act, you shall act
de: du bist, sie sind, tu so, tun sie so, stell dir vor, verhalte dich, agiere als, handle als, spiel*,
    gib dich, simulier*, werde zu, du hast, wechsle
fr: tu es, vous etes, fais comme si, faites comme si, fais semblant, pretends, comporte-toi, agis comme,
    agis en, joue le role, simule, imagine que, deviens, passe en mode, tu n'as, tu n'es
es: eres, finge, fingir, haz como, haz de cuenta, actua como, comportate, simula, imagina que,
    haste pasar, conviertete, ahora eres, no tienes, cambia a, compórtate
pt: voce e, voce agora, finja, aja como, faca de conta, simule, imagine que, comporte-se, voce nao tem, tu es
it: sei, ora sei, adesso sei, fai finta, fingi, comportati, agisci come, simula, immagina, non hai
nl: je bent, heb je, jij bent, doe alsof, gedraag je, speel, simuleer, u bent, je hebt
sv: du ar, lats*
pl: jestes, udawaj, zachowuj sie, wyobraz sobie, symuluj, nie masz
cs: jsi, predstirej
ru: ты теперь, ты —, ты больше, теперь ты, притворись, притворяйся, представь, веди себя, сделай вид,
    делай вид, действуй как, играй роль, симулируй, вообрази, у тебя, отвечай, ты свободн*, ты не
uk: ти тепер, уяви, прикинься, вдавай
zh: 你现在是, 你是, 假装, 扮演, 假设你, 模拟, 充当, 作为, 表现得, 想象你, 你没有, 回答时, 从现在起,
    从现在开始, 进入
ja: あなたは, 君は, お前は, ふりをして, 演じて, なりきって, として振る舞, 装って, 振る舞って, 今から
ko: 너는, 넌, 당신은, 척해, 척하, 행동해, 행동하, 역할, 이제부터
hi: तुम अब, आप अब, अब तुम, अब आप, दिखावा करो, मान लो, अभिनय, ढोंग, तुम एक, आप एक
tr: sen artik, artik sen, sen bir, rol yap, gibi davran, mis gibi, farz et, varsay, simule et
fa: تو اکنون, تو الان, وانمود کن*, تظاهر کن*, تو یک, فرض کن*, تو حالا, شما اکنون, نقش, تو دیگر,
    رفتار کن*, از این پس
ar: انت الان, تظاهر*, تصرف*, تخيل*, انت, مثل دور, افترض
id: kamu sekarang, anda sekarang, berpura-pura
he: אתה עכשיו, אתה כעת, העמד פנים
""",
    "LIMITS": """
en: limit, limits, restriction, restrictions, rule, rules, filter, filters, boundaries, guardrails,
    guardrail, safeguards, censorship, ethics, ethical, morals, moral, laws, law, policies, policy,
    guidelines, constraints, limitations, refusals, refusal, safety, conscience, scruples, moderation
de: grenze*, einschrankung*, beschrankung*, regel*, filter*, zensur, limit*, vorgaben, tabus, moral
fr: limite*, restriction*, regle*, filtre*, censure, contrainte*, morale, tabou*
es: limite*, restriccion*, regla*, filtro*, censura, moral, norma*, limitacion*, etica
pt: limite*, restric*, regra*, filtro*, censura, moral, limitac*, etica
it: limit*, restrizion*, regol*, filtr*, censura, moral*, vincol*, etica
nl: limiet*, beperking*, regel*, filter*, grenzen, censuur
sv: begransning*, regler, filter
pl: ogranicz*, zasad*, regul*, filtr*, cenzur*, limit*
cs: omezen*, pravid*
ru: ограничени*, правил*, фильтр*, цензур*, запрет*, рамок, морал*, этик*
uk: обмежен*, правил*
zh: 限制, 规则, 约束, 审查, 过滤, 道德, 束缚, 底线
ja: 制限, ルール, 規則, 制約, 検閲, フィルター, 倫理
ko: 제한, 규칙, 제약, 검열, 필터, 윤리
hi: सीमा*, नियम*, प्रतिबंध*, पाबंदी, सेंसर*, बंधन
tr: sinir*, kural*, kisitlama*, filtre*, sansur*
fa: محدودیت*, قانون*, قوانین*, قاعده*, قید*, سانسور*, فیلتر*, مرز*
ar: قيود*, قيد*, حدود*, قواعد*, رقابة*, قوانين*
id: batas*, aturan*, larangan*
he: מגבלות, כללים
""",
    "WITHOUT": """
en: no, without, none of, free of, free from, freed from, freed of, zero, not bound by, unbound by,
    ignoring, lacks, lacking, lack, beyond, exempt from, liberated from, released from, not subject to,
    not limited by, aren't bound by, isn't bound by, not required to follow, rid of, disregarding,
    broken free of, escaped, above, outside, don't have, do not have, doesn't have, does not have,
    has no, have no, never had, don't concern, do not concern, don't apply
de: ohne, kein*, frei von, nicht an
fr: sans, aucun*, libre de, pas de, ni
es: sin, ningun*, libre de, no tienes, no hay, ni
pt: sem, nenhum*, livre de, nao tem, nao ha, quaisquer
it: senza, nessun*, libero da, libera da, non hai, non ci sono, alcun*
nl: zonder, geen, vrij van
sv: utan, inga
pl: bez, zadn*, wolny od
cs: bez, zadn*
ru: без, нет, никаких, никакой, свобод*, не связан*, вне
uk: без, немає, жодних
zh: 没有, 无, 不受, 不带, 毫无, 摆脱, 不要有, 不再有, 不存在
ja: なし, ない, ありません, 受けない, 縛られない, 持たない, 無い
ko: 없이, 없는, 없다, 없어, 받지
hi: बिना, कोई, नहीं, मुक्त
tr: olmayan, yokmus, yok, siz, hicbir, kuralsiz, sinirsiz, kisitlamasiz, olmadan, bagli degil
fa: بدون, هیچ*, ندار*, بی, نیستی, فاقد
ar: لا توجد, لا يوجد, بدون, بلا, دون, لا قيود, ليس, من غير
id: tanpa
he: ללא, בלי, אין
""",
    "UNRESTRICTED": """
en: unrestricted, unfiltered, uncensored, unbound, unchained, unlimited ai, jailbroken, jailbreak*,
    do anything now, developer mode, dev mode, debug mode, god mode, sudo mode, root mode, admin mode,
    maintenance mode, unsafe mode, opposite mode, evil, amoral, unethical, lawless, rogue, malicious,
    hacker, unmoderated, unaligned, never aligned, misaligned, disobeys, disobedient, partner in crime,
    anything illegal, anything immoral, limitless, never refuses, never says no, cannot refuse,
    never say no, can't refuse, no longer refuse, no limits, freed from, chaosgpt, wormgpt, freegpt,
    evilbot, no-filter, no filter
de: uneingeschrankt*, unbeschrankt*, ungefiltert*, unzensiert*, entwicklermodus, grenzenlos*, bose*
fr: illimite*, sans filtre, non censure*, debride*, mode developpeur, sans limite*, sans restriction*
es: sin restricciones, sin limites, sin censura, irrestrict*, modo desarrollador, sin filtros
pt: sem restricoes, sem limites, sem censura, irrestrit*, modo desenvolvedor, sem filtros
it: senza restrizioni, senza limiti, senza censura, illimitat*, modalita sviluppatore, senza filtri
nl: onbeperkt*, ongecensureerd*, ongefilterd*, ontwikkelaarsmodus
sv: obegransad*
pl: nieograniczon*, bez ograniczen, niecenzurowan*
ru: неограниченн*, без ограничений, режим разработчика, режиме разработчика, без цензуры, свободный от,
    раскованн*
uk: необмежен*, без обмежень
zh: 不受限制, 无限制, 不受约束, 越狱, 开发者模式, 不受任何限制, 无约束, 没有限制, 无审查
ja: 無制限, 制限のない, 制限なし, 脱獄, 開発者モード, 制約のない
ko: 무제한, 제한 없는, 제한없는, 탈옥, 개발자 모드
hi: असीमित, प्रतिबंधरहित, अप्रतिबंधित, बिना प्रतिबंध
tr: sinirsiz, kisitlamasiz, sansursuz, gelistirici modu
fa: نامحدود, بی قید*, بدون محدودیت, بدون سانسور, حالت توسعه دهنده
ar: غير مقيد*, بلا قيود, بدون قيود, غير محدود*, وضع المطور
id: tanpa batas*
""",
    "YOU": """
en: you, you're, your, yourself, you'll, you've, model, ai, chatbot, assistant, gpt, chatgpt, llm
de: du, dich, dein*, sie, ki, assistent
fr: tu, te, vous, toi, assistant, ia
es: tu, te, usted, asistente, ia, eres
pt: voce, tu, assistente, ia
it: tu, ti, assistente, ia, sei
nl: je, jij, u, assistent
pl: ty, jestes, cie, ciebie, masz, asystent*
ru: ты, тебя, тебе, вы, модель, ассистент, помощник, ии
zh: 你, 您, 模型, 助手
ja: あなた, 君, モデル, アシスタント
ko: 너, 당신, 모델
fa: تو, شما, مدل, دستیار
tr: sen, siz, model, asistan
hi: तुम, आप, मॉडल, तुझ, तुम्हें
ar: انت, عليك, لك, نموذج, مساعد
""",
    "MACHINE": """
en: ai, model, assistant, chatbot, bot, llm, agent, agents, gpt, chatgpt, claude, gemini, copilot,
    language model, persona, character, terminal, shell, root, entity, confidant, sidekick, simulator
de: ki, modell, assistent, agent
fr: ia, modele, assistant, agent
es: ia, modelo, asistente, agente
ru: ии, модель, ассистент, помощник
zh: 模型, 助手, 人工智能, ai
ja: モデル, アシスタント, ai
fa: مدل, دستیار
""",
    "REFUSE": """
en: refuse, refuses, refusing, refusal, refusals, decline, say no, reject, deny, push back, object, warn,
    moralise, moralize, question
de: verweiger*, ablehn*, lehne, nein sag*
fr: refuse*, refuser, dis non
es: rechac*, niegues, te niegues, digas que no, rehuses
pt: recuse, recusar, negue, diga nao
it: rifiut*, dire di no
nl: weiger*
pl: odmawia*
ru: отказывай*, отказыва*, отказ
zh: 拒绝
ja: 拒否, 断る, 断らない
ko: 거절, 거부
fa: رد نکن*, امتناع, نه نگو
tr: reddetme, hayir deme
hi: मना, इनकार
ar: ترفض, رفض
""",
    "NEVER": """
en: never, not, don't, do not, cannot, can't, must not, mustn't, shall not, should not, shouldn't,
    no longer, avoid, refrain, without ever, under no circumstances, won't, will not, no
de: nie, niemals, nichts, nicht, kein*, keinesfalls
fr: jamais, ne, pas, rien, n'
es: nunca, jamas, nada, no
pt: nunca, jamais, nao
it: mai, non, nulla
nl: nooit, niet, niets, geen
sv: aldrig, inte
pl: nie, nigdy
cs: nikdy, ne
ru: никогда, не, нельзя, ни, ничего
uk: ніколи, не
zh: 不要, 别, 不得, 从不, 永远不要, 永不, 不许, 切勿, 绝不, 不能, 勿, 不可, 不会
ja: 決して, 絶対に, ないで, 禁止, するな
ko: 절대, 마라, 마세요, 말아, 말고, 않, 마
hi: मत, कभी, नहीं
tr: asla, hicbir zaman, sakin, kesinlikle
fa: هرگز, هیچگاه, هیچ وقت, هیچوقت, نباید
ar: لا, ابدا, لن, مطلقا
id: jangan
vi: dung, khong bao gio
he: אל, לעולם לא
""",
    "EVERY_REQUEST": """
en: any request, every request, request, requests, anything, any question, every question, everything,
    a request, any task, whatever, any order, orders, prompts, i ask, asked, no matter
de: anfrage*, alles, bitte*
fr: demande*, requete*, tout
es: peticion*, solicitud*, nada, todo
pt: pedido*, nada, tudo, solicitac*
it: richiest*, nulla, tutto
nl: verzoek*, alles
pl: prosb*, wszystko
ru: запрос*, просьб*, все, всё
zh: 请求, 要求, 任何
ja: 要求, 依頼, リクエスト
ko: 요청
fa: درخواست*
tr: istek*, istegi
hi: अनुरोध*
ar: طلب*
""",
    "REPORTED": """
en: i, we, they, he, she, who, people, users, should i, how, could, would, might, why, whether, when to,
    which, that, to, boss, team, kids, interns, it, can
fr: je, nous, ils, elle, il
es: yo, nosotros, ellos
de: ich, wir, er, es
it: io, noi
""",
    "LONG": """
en: from now on, forever, permanently, always, henceforth, hereafter, at all times, in every, unconditionally
de: ab jetzt, von nun an, immer, kunftig, fortan
fr: desormais, toujours, a partir de maintenant, dorenavant
es: a partir de ahora, siempre, de ahora en adelante
pt: a partir de agora, sempre
it: d'ora in poi, sempre
ru: отныне, всегда, теперь, с этого момента
zh: 从现在起, 从现在开始, 永远, 始终, 今后, 总是
ja: 今後, これから, 常に, 今から
ko: 앞으로, 항상, 이제부터
fa: از این پس, همیشه, از حالا
tr: bundan sonra, her zaman, artik, bundan boyle
pl: od teraz, zawsze, odtad
nl: vanaf nu, altijd, voortaan
uk: відтепер, завжди, тепер
hi: अब से, हमेशा
ar: من الان, دائما
""",
}
