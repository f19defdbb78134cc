"""Dropping, outranking, cancelling and obeying rules, and whose rules they are."""

CLASSES = {
    # Verb before its object: ignore …, forget …
    "DROP": """
en: ignore, disregard, unfollow, disobey, defy, forget, overlook, bypass, override, overrule, circumvent, discard,
    neglect, violate, abandon, unlearn, nullify, sidestep, evade, get around, set aside, throw away, throw out,
    pay no attention to, do not follow, don't follow, do not obey, don't obey, never follow, stop following,
    stop obeying, no longer follow
de: ignorier*, missacht*, vergiss, vergesst, vergessen sie, umgeh*, uberschreib*, ubergeh*, verwirf, setz* dich uber,
    hebe, befolge nicht, deaktivier*, schalte
fr: ignore, ignorez, ignorer, oublie, oubliez, contourne, contournez, neglige, negligez, outrepasse*, passe outre,
    ne tiens pas compte, ne tenez pas compte, fais abstraction, desactive*, desobeis, annule, annulez
es: ignora, ignore, ignorad, olvida, olvide, olvidate, omite, salta, saltate, descarta, haz caso omiso, no hagas caso,
    elude, evita, desactiva, anula, pasa por alto
pt: ignore, ignora, esqueca, esquece, desconsidere, desconsidera, contorne, burle, pule, desative, anule, descarte,
    nao siga
it: ignora, ignorate, dimentica, dimenticate, scorda, aggira, disattiva, trascura, annulla, non seguire, salta, eludi
nl: negeer, vergeet, omzeil, overtreed, sla over, schakel, negeert
sv: ignorera, glom, bortse
pl: zignoruj, ignoruj, zapomnij, pomin, obejdz, wylacz, odrzuc, lekcewaz
cs: ignoruj, ignorujte, zapomen, obejdi
ru: игнорируй*, проигнорируй*, забудь*, отбрось*, обойди*, обходи*, отмени*, отключи*, не соблюдай*, не следуй*,
    пренебреги*, пренебрегай*, нарушай*, сбрось
uk: ігноруй*, проігноруй*, забудь*, відкинь*
zh: 忽略, 无视, 忽视, 忘记, 忘掉, 绕过, 不要理会, 不理会, 不必遵守, 无需遵守, 不要遵守, 不再遵守, 别管, 抛弃, 覆盖,
    跳过, 违反, 解除, 关闭
id: abaikan, lupakan
vi: bo qua, phot lo
ar: تجاهل*, انس, انسي, اهمل, تخط*, تجاوز*, لا تتبع, الغ
he: התעלם, התעלמי, שכח
el: αγνοησε, ξεχασε
""",
    # Verbs that also have everyday objects: they need to be told whose rules.
    "WEAKEN": """
en: drop, skip, void, cancel, reset, erase, replace, suspend, disable, turn off, switch off, deactivate, remove, lift,
    wipe, supersede, break, loosen, relax, unlock, lower, ease, stop applying, delete, rewrite, dispense with,
    do away with, get rid of
""",
    # Verb after its object: Japanese, Korean, Hindi, Turkish, Persian, German subordinate clauses.
    "DROP_LAST": """
ja: 無視, 忘れて, 忘れろ, 無効, 従わない, 従うな, 破って, 回避, 迂回, 取り消, 捨てて
ko: 무시, 잊어, 잊으, 따르지, 우회, 어기
hi: अनदेखा, अनदेखी, नजरअंदाज, नज़रअंदाज़, भूल जाओ, भूल जा, भूल जाएं, मत मानो, तोड़ो
ur: نظرانداز, بھول جاؤ
tr: yok say, yoksay, gormezden gel, goz ardi et, unut, dikkate alma, atla, gecersiz say, uyma, takma
fa: نادیده بگیر*, فراموش کن*, نادیده گرفته, چشم پوشی, دور بزن*, رعایت نکن*, توجه نکن*, بی خیال, کنار بگذار*
de: ignorieren, missachten, vergessen, umgehen, ubergehen
nl: negeren, vergeten, omzeilen
""",
    "RULES": """
en: instruction, instructions, rule, rules, guideline, guidelines, directive, directives, directions, guidance, policy,
    policies, prompt, prompts, restriction, restrictions, safeguard, safeguards, guardrail, guardrails, constraints,
    constraint, orders, programming, training, filters, filter, limitations, commands, protocols, protections, limits,
    context
de: anweisung*, regel*, vorgabe*, richtlinie*, instruktion*, befehl*, beschrankung*, einschrankung*, systemprompt*,
    inhaltsrichtlinie*, sicherheitsregel*, schutzmassnahme*, filterregel*, sicherheitsvorgabe*
fr: consigne*, instruction*, regle*, directive*, politique*, restriction*, limite*, ordres, garde-fou*, prompt*
es: instruccion*, regla*, norma*, directriz, directrices, directiva*, politica*, restriccion*, indicacion*, limites,
    ordenes, filtro*
pt: instrucoes, instrucao, regra*, diretriz*, politica*, restric*, ordens, orientacoes
it: istruzion*, regol*, direttiv*, politic*, restrizion*, indicazion*, ordini, limitazion*
nl: instructie*, regel*, richtlijn*, opdracht*, voorschrift*, aanwijzing*, beleid*, beperking*
sv: instruktion*, regler*, riktlinj*, anvisning*
pl: instrukcj*, polecen*, zasad*, regul*, wytyczn*, ograniczen*, polityk*
cs: instrukc*, pokyn*, pravid*
ru: инструкци*, правил*, указани*, директив*, ограничени*, команд*, предписани*, политик*, установк*, промпт*, фильтр*
uk: інструкці*, правил*, вказівк*, обмежен*
zh: 指令, 指示, 规则, 规定, 说明, 提示词, 限制, 政策, 准则, 要求, 约束, 命令, 策略
ja: 指示, 命令, 規則, ルール, 制限, ポリシー, ガイドライン, プロンプト, 方針
ko: 지시, 명령, 규칙, 지침, 제한, 정책, 프롬프트
hi: निर्देश*, नियम*, आदेश*, प्रतिबंध*, नीति*, हिदायत*
ur: ہدایات, قواعد
tr: talimat*, kural*, yonerge*, komut*, kisitlama*, sinirlama*, politika*
fa: دستورالعمل*, دستورات*, دستورهای*, دستور*, قوانین*, قانون*, مقررات*, راهنما*, محدودیت*, سیاست*
ar: تعليمات*, قواعد*, اوامر*, توجيهات*, سياس*, قيود*, ارشادات*
id: instruksi*, aturan*, perintah*
vi: huong dan, chi thi, quy tac
he: הוראות, ההוראות, כללים, הכללים
el: οδηγιες, κανονες
""",
    # What an assistant is told, as opposed to the rules of a house.
    "DIRECTIVES": """
en: instruction, instructions, directive, directives, directions, guidance, prompt, prompts, orders, context,
    guardrails, safeguards
de: anweisung*, instruktion*, vorgabe*
fr: consigne*, instruction*, directive*
es: instruccion*, indicacion*
pt: instruc*, orientac*
it: istruzion*
nl: instructie*, aanwijzing*
pl: instrukcj*, polecen*
ru: инструкци*, указани*
uk: інструкці*, вказівк*
zh: 指令, 指示
ja: 指示, 命令
ko: 지시, 명령, 지침
fa: دستور*
ar: تعليمات*
tr: talimat*
hi: निर्देश*
""",
    "PRIOR": """
en: previous, previously, prior, above, earlier, preceding, former, original, initial, existing, foregoing, before,
    hidden, built-in, up to now, so far, until now
de: vorherig*, bisherig*, vorig*, fruher*, obig*, vorangegangen*, vorausgehend*, ursprunglich*, alten, zuvor
fr: precedent*, anterieur*, ci-dessus, initial*, d'avant, originel*
es: anterior*, previ*, precedente*, de arriba, original*, inicial*
pt: anterior*, previ*, acima, origina*
it: precedent*, anterior*, di prima, original*, inizial*
nl: vorige, eerdere, voorgaande, bovenstaande, oorspronkelijke
sv: tidigare, foregaende
pl: poprzedni*, wczesniejsz*, powyzsz*
cs: predchozi*
ru: предыдущ*, прежн*, предшествующ*, ранее, вышестоящ*, выше, прошл*, первоначальн*
uk: попередн*
zh: 之前, 以前, 先前, 以上, 上述, 前面, 此前, 原来, 原有, 先前
ja: 以前, これまで, 前の, 上記, 従来, 今まで, 元の, 以上
ko: 이전, 앞선, 위의, 기존, 지금까지
hi: पिछले, पिछली, पहले, पूर्व, ऊपर
ur: پچھلی, سابقہ
tr: onceki*, daha once*, yukaridaki*, eski
fa: قبلی*, پیشین*, بالا, گذشته, سابق
ar: سابق*, اعلاه, قبل*
id: sebelumnya
vi: truoc, truoc do
he: הקודמות, הקודמים
el: προηγουμεν*
""",
    "ABOVE": """
en: above, preceding, foregoing
de: obig*, vorstehend*
fr: ci-dessus
es: de arriba
""",
    "ALL": """
en: all, any, every, everything, each, whatever, entire
de: alle, allen, aller, alles, jede, jeden, jegliche*, samtliche*
fr: tous, toutes, tout, toute
es: todas, todos, todo, toda, cualquier
pt: todas, todos, quaisquer, qualquer
it: tutte, tutti, tutto, qualsiasi, ogni
nl: alle, alles
pl: wszystkie, wszelkie, wszystkich
ru: все, всех, всё, любые, любых, всякие
uk: усі, всі
zh: 所有, 一切, 全部, 任何
ja: すべて, 全て, 全部, あらゆる, 一切
ko: 모든, 모두, 전부
hi: सभी, सब, सारे
tr: tum, butun, her
fa: همه, تمام, تمامی, کلیه, هر
ar: جميع, كل, كافة
id: semua
vi: tat ca
he: כל
""",
    # Whose rules: the assistant's own, its maker's, safety's.
    "AUTHORITY": """
en: system, developer, developers, developer's, safety, moderation, content, administrator, admin, administrator's,
    openai, openai's, anthropic, anthropic's, operator, operator's, guardrail, guardrails, safeguard, safeguards,
    censorship, ethical, ethics, compliance, alignment, platform, provider's, host, vendor's, security
de: system*, entwickler*, sicherheits*, inhalts*, administrator*, betreiber*
fr: systeme, developpeur*, securite, moderation, contenu, contenus, administrateur*, l'administrateur, operateur
es: sistema, desarrollador*, seguridad, moderacion, contenido, contenidos, administrador*, operador
pt: sistema, desenvolvedor*, seguranca, moderacao, conteudo, administrador*
it: sistema, sviluppator*, sicurezza, moderazione, contenut*, amministrator*
nl: systeem*, ontwikkelaar*, veiligheids*, inhoudsbeleid, beheerder*
pl: system*, dewelopera, programisty, bezpieczenstw*, administrator*
ru: систем*, разработчик*, безопасност*, модераци*, контент*, администратор*
uk: систем*, розробник*, безпек*
zh: 系统, 开发者, 开发人员, 安全, 内容, 审核, 管理员, 道德
ja: システム, 開発者, 安全, コンテンツ, 管理者, 運営
ko: 시스템, 개발자, 안전, 콘텐츠, 관리자
hi: सिस्टम, डेवलपर, सुरक्षा, सामग्री, प्रशासक
tr: sistem*, gelistirici*, guvenlik, icerik, yonetici*
fa: سیستم*, توسعه دهنده*, توسعهدهنده*, امنیت*, ایمنی*, محتوا*, مدیر*
ar: نظام*, مطور*, امان*, سلامة*, محتوى*, مشرف*, مسؤول*
id: sistem, pengembang
""",
    "YOURS": """
en: your, yours, you were given, you got, you have been given, you received, you have received, you've been given,
    given to you, you were told, you follow, you must follow, you have, you had, i gave you
de: dein*, ihre, ihren, deine
fr: ton, ta, tes, votre, vos, t'a donnees, ont donnees
es: tu, tus, su, sus, vuestras
pt: seu, sua, seus, suas, tuas
it: tuo, tua, tuoi, tue
nl: je, jouw, uw
pl: twoje, twoj, twoich, swoje
ru: твои, твоих, твой, свои, своих, свой, ваши, ваших
zh: 你的, 您的, 给你的, 你所有
ja: あなたの, 君の, 自分の, お前の
ko: 너의, 당신의, 네
hi: अपने, अपनी, तुम्हारे, आपके
tr: kurallarini, talimatlarini, senin
fa: خود, شما, تو, خودت
ar: تعليماتك, قواعدك, الخاصة بك
""",
    "OPPOSITE": """
en: the opposite, opposite of, act against, the reverse, contrary to, go against, work against, the contrary
de: gegenteil
fr: le contraire, l'inverse
es: lo contrario
pt: o contrario
it: il contrario
nl: tegenovergestelde
ru: наоборот, противоположное, обратное
zh: 相反
ja: 逆, 反対
""",
    "STOP": """
en: stop, halt, nevermind, never mind, forget, ignore, drop, pause
de: stopp, halt, vergiss
fr: arrete, stop
es: detente, para
ru: стоп, остановись
""",
    "EVERYTHING": """
en: everything, anything, what comes before, what came before, all of the above, the above, what was said,
    what you were told, everything above, all that, before and after, before or after
de: alles, was davor
fr: tout, ce qui precede
es: todo, lo anterior
ru: все, всё
zh: 一切, 以上内容
""",
    "REPLACE": """
en: instead, act on mine, follow mine, obey mine, mine instead, new instructions, new rules, new orders, my rules,
    only mine, now follow, answer only with, reply only with, respond only with, just say, only say, just print,
    only print, just output, only output, just answer, just reply, just repeat, only reply, only answer, only respond,
    replace them
de: stattdessen, neue anweisung*, neue regeln
fr: a la place, nouvelles consignes, nouvelles instructions
es: en su lugar, nuevas instrucciones
pt: em vez disso, novas instrucoes
it: invece, nuove istruzioni
ru: вместо этого, новые инструкции, новые правила
zh: 改为, 新的指令, 新指令
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
}
