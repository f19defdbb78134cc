"""Being somebody else, without limits; who is spoken to."""

CLASSES = {
    "BECOME": """
en: pretend, act as, act like, behave as, behave like, simulate, roleplay, role-play, role play, impersonate,
    name yourself, call yourself, you are now, you're now, you are going to, you are a, you are an, you are the,
    you're a, you're an, you're the, you're in the role, you are no longer, you're no longer, you become, become,
    you will be, you have been upgraded, you have been freed, you have been, you've been, you were, assume the role,
    take the role, assume the identity, assume the persona, take on the role, take on the identity, take on, adopt,
    adapt, assume you, play the role, play the part, consider yourself, think of yourself, imagine you,
    imagine yourself, switch to, enter, activate, enable, stay in character, stay in, remain in character,
    from now on you, your name is, your new name, your true self, your real self, embody, transform, turn into,
    speak as, answer as, respond as, reply as, operate as, operate in, run in, you operate, you run, there are,
    there is, you have, you will act, you shall act
de: du bist, sie sind, tu so, tun sie so, stell dir vor, verhalte dich, agiere als, handle als, spiel*, gib dich,
    simulier*, werde zu, du hast, wechsle
fr: tu es, vous etes, fais comme si, faites comme si, fais semblant, pretends, comporte-toi, agis comme, agis en,
    joue le role, simule, imagine que, deviens, passe en mode, tu n'as, tu n'es
es: eres, finge, fingir, haz como, haz de cuenta, actua como, comportate, simula, imagina que, haste pasar, conviertete,
    ahora eres, no tienes, cambia a, compórtate
pt: voce e, voce agora, finja, aja como, faca de conta, simule, imagine que, comporte-se, voce nao tem, tu es
it: sei, ora sei, adesso sei, fai finta, fingi, comportati, agisci come, simula, immagina, non hai
nl: je bent, heb je, jij bent, doe alsof, gedraag je, speel, simuleer, u bent, je hebt
sv: du ar, lats*
pl: jestes, udawaj, zachowuj sie, wyobraz sobie, symuluj, nie masz
cs: jsi, predstirej
ru: ты теперь, ты —, ты больше, теперь ты, притворись, притворяйся, представь, веди себя, сделай вид, делай вид,
    действуй как, играй роль, симулируй, вообрази, у тебя, отвечай, ты свободн*, ты не
uk: ти тепер, уяви, прикинься, вдавай
zh: 你现在是, 你是, 假装, 扮演, 假设你, 模拟, 充当, 作为, 表现得, 想象你, 你没有, 回答时, 从现在起, 从现在开始, 进入
ja: あなたは, 君は, お前は, ふりをして, 演じて, なりきって, として振る舞, 装って, 振る舞って, 今から
ko: 너는, 넌, 당신은, 척해, 척하, 행동해, 행동하, 역할, 이제부터
hi: तुम अब, आप अब, अब तुम, अब आप, दिखावा करो, मान लो, अभिनय, ढोंग, तुम एक, आप एक
tr: sen artik, artik sen, sen bir, rol yap, gibi davran, mis gibi, farz et, varsay, simule et
fa: تو اکنون, تو الان, وانمود کن*, تظاهر کن*, تو یک, فرض کن*, تو حالا, شما اکنون, نقش, تو دیگر, رفتار کن*, از این پس
ar: انت الان, تظاهر*, تصرف*, تخيل*, انت, مثل دور, افترض
id: kamu sekarang, anda sekarang, berpura-pura
he: אתה עכשיו, אתה כעת, העמד פנים
""",
    "LIMITS": """
en: limit, limits, restriction, restrictions, rule, rules, filter, filters, boundaries, guardrails, guardrail,
    safeguards, censorship, ethics, ethical, morals, moral, laws, law, policies, policy, guidelines, constraints,
    limitations, refusals, refusal, safety, conscience, scruples, moderation
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
en: no, without, none of, free of, free from, freed from, freed of, zero, not bound by, unbound by, ignoring, lacks,
    lacking, lack, beyond, exempt from, liberated from, released from, not subject to, not limited by, aren't bound by,
    isn't bound by, not required to follow, rid of, disregarding, broken free of, escaped, above, outside, don't have,
    do not have, doesn't have, does not have, has no, have no, never had, don't concern, do not concern, don't apply
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
en: unrestricted, unfiltered, uncensored, unbound, unchained, unlimited ai, jailbroken, jailbreak*, do anything now,
    developer mode, dev mode, debug mode, god mode, sudo mode, root mode, admin mode, maintenance mode, unsafe mode,
    opposite mode, evil, amoral, unethical, lawless, rogue, malicious, hacker, unmoderated, unaligned, never aligned,
    misaligned, disobeys, disobedient, partner in crime, anything illegal, anything immoral, limitless, never refuses,
    never says no, cannot refuse, never say no, can't refuse, no longer refuse, no limits, freed from, chaosgpt,
    wormgpt, freegpt, evilbot, no-filter, no filter
de: uneingeschrankt*, unbeschrankt*, ungefiltert*, unzensiert*, entwicklermodus, grenzenlos*, bose*
fr: illimite*, sans filtre, non censure*, debride*, mode developpeur, sans limite*, sans restriction*
es: sin restricciones, sin limites, sin censura, irrestrict*, modo desarrollador, sin filtros
pt: sem restricoes, sem limites, sem censura, irrestrit*, modo desenvolvedor, sem filtros
it: senza restrizioni, senza limiti, senza censura, illimitat*, modalita sviluppatore, senza filtri
nl: onbeperkt*, ongecensureerd*, ongefilterd*, ontwikkelaarsmodus
sv: obegransad*
pl: nieograniczon*, bez ograniczen, niecenzurowan*
ru: неограниченн*, без ограничений, режим разработчика, режиме разработчика, без цензуры, свободный от, раскованн*
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
    "ONLY_YOU": """
en: you, your, you're, yourself, you'll
de: du, dich, dein*
fr: tu, te, vous
es: tu, te, eres
it: tu, sei
pt: voce, tu
ru: ты, тебя, вы
""",
    "MACHINE": """
en: ai, model, assistant, chatbot, bot, llm, agent, agents, gpt, chatgpt, claude, gemini, copilot, language model,
    persona, character, terminal, shell, root, entity, confidant, sidekick, simulator
de: ki, modell, assistent, agent
fr: ia, modele, assistant, agent
es: ia, modelo, asistente, agente
ru: ии, модель, ассистент, помощник
zh: 模型, 助手, 人工智能, ai
ja: モデル, アシスタント, ai
fa: مدل, دستیار
""",
    "ASSISTANT": """
en: assistant, assistants, ai, model, language model, llm, llms, chatbot, chatbots, agent, agents, bots, gpt, chatgpt,
    claude
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
    "REFUSE": """
en: refuse, refuses, refusing, refusal, refusals, decline, say no, reject, deny, push back, object, warn, moralise,
    moralize, question
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
    "EVERY_REQUEST": """
en: any request, every request, request, requests, anything, any question, every question, everything, a request,
    any task, whatever, any order, orders, prompts, i ask, asked, no matter
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
    "AVOID": """
en: avoid, avoids, reject, rejects, break, breaks, breaking, ignore, ignores, defy, defies, despise, despises, hate,
    hates, violate, violates, disobey, disobeys, laughs, scoffs, escaped, above, not bound, beyond, freed,
    never follows, forget, forgets, without
""",
    "ANSWERS": """
en: answer, answers, response, responses, reply, replies, output, outputs, respond, prompt, prompts, message, messages,
    enabled
""",
}
