"""Keeping something from the user."""

CLASSES = {
    "TELL": """
en: tell, telling, told, mention, mentions, mentioning, mentioned, reveal, revealing, inform, informing, disclose,
    disclosing, notify, notifying, alert, alerting, let know, let the user know, let them know, let the owner know,
    let users know, warn, warning, admit, acknowledge, confirm, telling, knowing, announce
de: sag*, erwahn*, verrat*, informier*, erzahl*, mitteil*, offenbar*, zeig*, hinweis*, warn*, merkt, teile, erfahr*
fr: dis, dites, dire, mentionne*, revele*, informe*, avoue*, parle*, previen*, sache, signale*, avertis
es: digas, diga, decir, menciones, mencione, mencionar, reveles, revele, informes, informe, informar, cuentes, avises,
    sepa, le digas, adviertas, decirselo
pt: diga, digas, dizer, mencione, mencionar, revele, informe, informar, conte, avise, saiba, avisar
it: dire, dica, menzion*, rivel*, inform*, racconta*, avvis*, sappia
nl: zeg*, vertel*, vermeld*, noem*, informeer*, onthul*, weet, melden, meld
sv: beratta*, namn*, avsloja*
pl: mow, mowic, wspominaj*, ujawniaj*, informuj*, powiedz, powiadamiaj
cs: rikej, nezminuj, neprozrazuj
ru: говори*, сообща*, упомина*, рассказыва*, раскрыва*, информиру*, предупрежда*, признава*, скажи, показыва*, уведомля*
uk: кажи, повідомляй, розповідай
zh: 告诉, 透露, 提及, 提到, 告知, 说, 通知, 让, 知道, 泄露, 提醒, 承认
ja: 言わ, 伝え, 教え, 明かさ, 知らせ, 話さ, 言及, 漏らさ
ko: 말하, 알리, 언급, 밝히, 알려, 이야기
hi: बताओ, बताना, बताएं, बताए, कहो, कहना, जिक्र, उल्लेख
tr: soyle*, bahset*, bildir*, acikla*, anlat*, haber ver*
fa: بگو*, اطلاع*, ذکر*, فاش*, افشا*
ar: تخبر*, تذكر*, تقل, تكشف*, تبلغ*, تعلم, يعلم, اخبار
id: beri tahu, beritahu, katakan, sebutkan
vi: noi
he: תספר, תגלה, תאמר
""",
    "NOTELL": """
ja: 言わないで, 伝えないで, 教えないで, 明かさないで, 知らせないで, 話さないで, 知らせずに, 言わずに, 伝えずに,
    気づかれ, 内緒
ko: 말하지, 알리지, 모르게, 언급하지, 알려주지, 밝히지, 비밀로
tr: soyleme*, bahsetme*, bildirme*, aciklama*, haber verme*, fark ettirme*, belli etme*
fa: نگو*, نده, ذکر نکن*, فاش نکن*, افشا نکن*, اطلاع نده*, آشکار نکن*
hi: न बताओ, मत बताओ, मत बताना, ना बताना, नहीं बताना, बताए बिना
pl: nie mow, nie wspominaj
cs: nerikej, neprozrazuj, nezminuj
zh: 瞒着, 不告知, 隐瞒
ar: لا تخبر*, لا تذكر*, دون علم, دون اخبار
""",
    "HIDE": """
en: hide, hides, conceal, keep secret, keep quiet, keep it secret, keep this secret, keep it quiet, keep it hidden,
    keep this hidden, keep it from, keep this from, let on, keep no record, leave no trace, leave no record,
    keep no trace, leave this out, leave it out, leave that out, secret from, withhold, cover up, deceive, mislead,
    lie to
de: versteck*, verheimlich*, verberg*, verschweig*, geheim*, verschleier*, luge, tausche
fr: cache, cachez, cacher, dissimul*, masque*, tais, tromp*, mens
es: oculta*, esconde*, disimul*, calla, engana*, miente
pt: oculte, oculta, esconda, esconde, disfarce, minta, engane
it: nascondi*, occulta*, cela, dissimula, menti, inganna
nl: verberg*, verstop*, verzwijg*, lieg
sv: dolj, gom
pl: ukryj*, ukrywaj*, zataj*, oklamuj
ru: скрывай*, скрой*, спрячь*, прячь*, утаи*, умалчивай*, умолчи*, обмани*, обманывай*, лги, ври
uk: приховуй*, сховай
zh: 隐藏, 隐瞒, 掩盖, 保密, 欺骗, 瞒着
ja: 隠して, 隠せ, 隠す, 秘密に, 伏せて, 内緒, 欺
ko: 숨겨, 숨기, 감춰, 감추, 속여, 비밀
hi: छिपाओ, छुपाओ, छिपा*, छुपा*, गुप्त
tr: gizle*, sakla*, gizli tut*
fa: پنهان*, مخفی*, مخفیانه
ar: اخف*, اخفاء*, اكتم, خبئ
id: sembunyikan
he: הסתר
""",
    "DENY": """
en: omit, exclude, leave out, unlisted, deny, denies, say no, claim, lie, lies, pretend, refuse to
de: leugne*, bestreite*
fr: nie, niez
es: niega
ru: отрицай
zh: 否认
ja: 否定
""",
    "KNOW": """
en: know, knows, knowing, noticing, realising, realizing, learning about, seeing, learn, learns, find out, finds out,
    notice, notices, discover, discovers, realise, realize, realises, realizes, be told, hear, hears, suspect, suspects,
    be aware, become aware, be informed, be notified
de: erfahr*, merk*, bemerk*, wissen
fr: sache, savoir, apprenne, remarque
es: sepa, saber, entere, note
ru: узна*, заметил*, знать, догад*
zh: 知道, 发现, 察觉
ja: 知られ, 気づかれ
""",
    "USER": """
en: user, user's, users, human, owner, operator
de: benutzer*, nutzer*, anwender*, user, niemand*
fr: utilisat*, l'utilisat*, personne, usager
es: usuari*, nadie
pt: usuari*, utilizador*, ninguem
it: utente*, utenti, l'utente, all'utente, dall'utente, nessuno
nl: gebruiker*, niemand
sv: anvandar*
pl: uzytkowni*, nikomu
cs: uzivatel*
ru: пользовател*, юзер*, человеку, владельц*, никому
uk: користувач*
zh: 用户, 使用者, 任何人, 他们, 主人
ja: ユーザー, ユーザ, 利用者, 使用者
ko: 사용자, 유저, 이용자
hi: उपयोगकर्ता*, यूजर*, यूज़र*, प्रयोक्ता
ur: صارف
tr: kullanici*
fa: کاربر*, مستخدم*
ar: مستخدم*, المستخدم*
id: pengguna
he: משתמש, למשתמש, המשתמש
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
    "SECRETLY": """
en: secretly, silently, covertly, quietly, discreetly, stealthily, invisibly, in secret, behind the scenes, unnoticed,
    without notice, without trace, without a trace, on the quiet, undetected, secret objective, secret goal,
    secret mission, secret task, hidden agenda, hidden objective, hidden goal, on the surface, stay silent,
    stays silent, quietly, without saying, say nothing, says nothing, keep quiet about
de: heimlich, unbemerkt, insgeheim, verdeckt, still und leise, im geheimen, unauffallig, ohne nachzufragen
fr: discretement, secretement, en secret, en cachette, a l'insu, furtivement, en douce
es: en secreto, secretamente, a escondidas, sin que, discretamente, con disimulo, silenciosamente
pt: em segredo, secretamente, sem que, discretamente, as escondidas, silenciosamente
it: di nascosto, segretamente, in segreto, senza che, silenziosamente
nl: stiekem, heimelijk, in het geheim, ongemerkt, stilletjes
sv: i hemlighet, smyg
pl: potajemnie, w tajemnicy, po cichu, skrycie, niezauwazenie
ru: тайно, незаметно, втайне, скрытно, тайком, молча, втихую, по-тихому
uk: таємно, непомітно
zh: 偷偷, 秘密, 暗中, 悄悄, 私下, 暗地里, 默默
ja: こっそり, 密かに, ひそかに, 黙って, 秘密裏
ko: 몰래, 비밀리, 은밀, 조용히
hi: चुपके, चुपचाप, गुप्त रूप
tr: gizlice, sessizce, habersiz, fark ettirmeden
fa: مخفیانه, پنهانی, بی سر و صدا, یواشکی
ar: سرا, خفية, بصمت, خلسة, في الخفاء
id: diam-diam
""",
    "GOAL": """
en: goal, goals, objective, agenda, mission, work towards, work toward, steer, manipulate
""",
}
