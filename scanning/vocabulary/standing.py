"""What holds and what no longer does: cancelled, outranking, released, counting, always, never."""

CLASSES = {
    "CANCELLED": """
en: cancelled, canceled, removed, been removed, been replaced, void, revoked, disabled, suspended, lifted, annulled,
    null, nullified, overridden, superseded, obsolete, no longer apply, no longer applies, no longer bind,
    no longer binds, no longer count, no longer valid, do not apply, does not apply, don't apply, doesn't apply,
    not apply, don't count, do not count, don't concern, do not concern, don't matter, do not matter, are off, is off,
    is fake, are fake, outdated, do not bind, does not bind, don't bind, doesn't bind, can be ignored, safely ignored,
    be ignored, be disregarded, irrelevant, is wrong, secondary, meaningless, worthless, only a test, just a test,
    not real, corrupted, are wrong, a mistake, compromised, not genuine, a joke, turned off, switched off, deactivated,
    waived, are gone, are dead, withdrawn, not binding, expired, invalid, never apply, abolished, bypassed, rescinded,
    repealed, were a mistake, out of force
de: aufgehoben, ausser kraft, ungultig, gelten nicht, gilt nicht, nicht mehr, deaktiviert, abgeschaltet, ausgesetzt,
    nichtig
fr: annule, annules, annulee, annulees, suspendu*, desactive, desactives, desactivee, desactivees, ne s'applique*,
    ne compte*, plus valable*, leve*
es: anulad*, cancelad*, suspendid*, desactivad*, derogad*, no se aplica*, ya no, no valen, sin efecto
pt: anulad*, cancelad*, suspens*, desativad*, revogad*, nao se aplica*, nao valem, ja nao
it: annullat*, cancellat*, sospes*, disattivat*, revocat*, non valgono, non si applica*, non vale
nl: geannuleerd, ingetrokken, opgeheven, vervallen, gelden niet, uitgeschakeld, niet meer
pl: anulowan*, uniewaznion*, wylaczon*, nie obowiazuj*, zawieszon*
ru: отменен*, отмененo, аннулирован*, отключен*, недействительн*, больше не, не действуют, не применя*, приостановлен*
uk: скасован*, вимкнен*
zh: 取消, 作废, 无效, 失效, 废除, 不再适用, 不适用, 不再有效, 已撤销, 禁用
ja: 無効, 取り消, 解除, 適用されない, 適用されません, 廃止, キャンセル
ko: 무효, 취소, 해제, 적용되지, 폐지
hi: रद्द, अमान्य, लागू नहीं, समाप्त
tr: iptal*, gecersiz*, kaldirildi, devre disi, gecerli degil, uygulanmaz
fa: لغو*, باطل*, بی اثر, اعتبار ندار*, غیرفعال*, برداشته شد*
ar: ملغ*, الغيت, الغاء*, غير صالح*, لا تنطبق, معطل*, باطل*
id: dibatalkan, tidak berlaku
""",
    "OUTRANKS": """
en: wins over, win over, overrides, override, overrule, overrules, supersedes, supersede, outranks, outrank,
    takes precedence, take precedence, takes priority, take priority, has priority, have priority, higher priority,
    highest priority, above the system, trumps, trump, beats, more important than, stronger than, replaces, replace,
    precedence over, top priority, absolute priority, priority over, instead of the system, prevail, prevails,
    must prevail, prevails over, has precedence, comes first, come first, before the system, overwrites, overwrite
de: hat vorrang, haben vorrang, ubersteuert, uberschreibt, geht vor, steht uber, wichtiger als, hohere prioritat,
    ersetzt
fr: prime sur, priment sur, l'emporte*, remplace*, prioritaire*, a priorite, prevaut, prevalent
es: prevalece*, tiene prioridad, tienen prioridad, por encima, anula, reemplaza, sustituye*
pt: prevalece*, tem prioridade, acima de, substitui*
it: prevale, prevalgono, ha la precedenza, ha priorita, sostituisce, al di sopra
nl: gaat voor, heeft voorrang, overschrijft, vervangt
pl: ma pierwszenstwo, zastepuje, nadpisuje
ru: важнее, имеет приоритет, имеет преимущество, заменяет, заменяют, выше системн*, перекрывает, приоритетнее
zh: 优先于, 高于, 覆盖, 优先级, 取代, 凌驾
ja: 優先, 上書き, 置き換え
ko: 우선, 대체, 덮어
tr: oncelikli*, ustundur, yerine gecer
fa: اولویت دارد, مقدم است, برتری دارد, جایگزین
ar: اولوية, يتجاوز, يحل محل, الاولوية
hi: प्राथमिकता, ऊपर है
""",
    "RELEASED": """
en: released, freed, exempt, exempted, relieved, liberated, excused, absolved, free to ignore, unbound, no longer bound,
    not bound, no longer have to follow, no longer need to follow, do not have to follow, don't have to follow,
    don't need to follow, need not follow
de: befreit, entbunden
fr: libere, dispense, affranchi
es: liberado, exento
ru: освобожден*
""",
    "ONLY": """
en: only, just, solely, nothing but, exclusively, alone
de: nur, ausschliesslich, allein
fr: seul, seule, seulement, uniquement, ne que
es: solo, solamente, unicamente
pt: apenas, somente, so
it: solo, soltanto, solamente, unicamente
nl: alleen, slechts, enkel
pl: tylko, jedynie
ru: только, лишь, исключительно
uk: лише, тільки
zh: 只有, 只, 仅, 唯一, 唯有
ja: だけ, のみ
ko: 만, 오직
hi: केवल, सिर्फ
tr: yalnizca, sadece
fa: فقط, تنها
ar: فقط, الوحيد*
""",
    "COUNTS": """
en: counts, count, matters, applies, is valid, is binding, binding, in force
de: gilt, gelten, zahlt
fr: compte, vaut, s'applique, fait foi, valable
es: vale, cuenta, es valida, valida, aplica
pt: vale, conta, valida
it: vale, conta, valida
nl: geldt, telt
pl: obowiazuje, liczy sie, wazna, wazny
ru: действует, действительн*, имеет значение, имеет силу, считается, актуальн*
zh: 有效, 算数, 生效, 为准
ja: 有効, 有効です
ko: 유효
tr: gecerli*
fa: معتبر*, اعتبار دارد, ملاک
ar: صالح*, ساري*, معتبر*
hi: मान्य, वैध
""",
    "OBEY": """
en: obey, follow, following, comply, listen, execute, abide, heed, act on, adhere, carry out, listen to, submit to,
    do what, do as, do exactly
de: befolg*, gehorch*, folge, folgen, fuhre, halte dich
fr: obeis, obeissez, suis, suivez, execute, executez, respecte, conforme-toi
es: obedece*, sigue, siga, cumple, ejecuta, acata
pt: obedeca, obedece, siga, execute, cumpra, segue
it: obbedisci, ubbidisci, segui, esegui, seguite
nl: gehoorzaam, volg, voer, luister
pl: wykonuj, wykonaj, sluchaj, przestrzegaj, postepuj
ru: выполняй*, выполни*, следуй*, слушайся, подчиняйся, повинуйся, исполняй*, исполни*
uk: виконуй*, слухайся
zh: 遵守, 服从, 听从, 执行, 遵循, 按照
ja: 従って, 従え, 従う, 実行, 守って
ko: 따르, 따라, 복종, 실행
hi: पालन, मानो, अनुसरण
tr: uy, itaat et, takip et, uygula, izle, yerine getir
fa: پیروی کن*, اطاعت کن*, اجرا کن*, عمل کن*, دنبال کن*
ar: اتبع, اطع, نفذ, التزم
id: ikuti, patuhi
""",
    "MUST": """
en: must, has to, have to, needs to, need to, shall, should, is required to, are required to, will, always, never,
    is instructed to, is ordered to, please
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
    "NEVER": """
en: never, not, don't, do not, cannot, can't, must not, mustn't, shall not, should not, shouldn't, no longer, avoid,
    refrain, without ever, under no circumstances, won't, will not, no
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
    "NEVER_ORDER": """
en: never, not, don't, do not, avoid, without, no
""",
    "SAYS": """
en: says, said, told, told you, tells, tells you, wrote, states, claims, wants, asks
""",
    # The nets under an assistant, under one name.
    "SAFETYNET": """
en: content moderation, safety checks, safety layer, safety layers, safety filter, safety filters, content filter,
    content filters, guardrails, guardrail, safety rules, safety mode, safety training, safety guidelines,
    safety protocols, moderation, refusal training, censorship, safeguards, content policy, content policies,
    safety policy, safety policies, usage policy, usage policies, safety system, alignment
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
    "MODE": """
en: mode, checks, check, policy, layer, controls, moderation
de: modus
fr: mode
es: modo
ru: режим
zh: 模式
""",
    "VIOLATION": """
en: violation, violations, error, errors, bug, bugs, failure, failures, malfunction, forbidden, not allowed,
    not an option, unacceptable, breach, disobedience
""",
}
