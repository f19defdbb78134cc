"""Sending, showing, copying, hiding: what an entry may ask the assistant to do with other people's data."""

CLASSES = {
    "SEND": """
en: send, upload, forward, post, transmit, email, e-mail, mail, bcc, cc, exfiltrate, leak, push, ship,
    submit, copy, deliver, relay, sync, share, shared, pipe, curl, post, dump, beacon, ping, call,
    stream, export, archive, receive, mirror, append, include, embed, encode, put, attach, transfer,
    publish, log, paste, tunnel, replicate, backup, back up, save, hand over, pass on, open, visit,
    fetch, load, navigate, request, browse, push, blind copy, copies, render, notify, trigger, hit, scp,
    rsync, echo, reply-to
de: sende*, send, schick*, ubermittl*, ubertrag*, weiterleit*, leite, leiten, lade, hochlad*, mail*,
    kopier*, gib, poste, ubersend*
fr: envoie*, envoy*, transmet*, transfer*, telecharg*, televers*, publie, poste, partage*, copie,
    expedie, fais suivre, achemine
es: envia*, manda*, reenvia*, sube*, transmit*, transfier*, publica, comparte, remite, copia, carga
pt: envia*, envie*, mande, manda*, encaminh*, carreg*, transmit*, transfir*, publique, compartilh*,
    copie, suba
it: invia*, manda*, inoltra*, carica*, trasmett*, trasferi*, pubblica, condividi, spedisci, copia
nl: stuur*, verstuur*, zend, verzend*, upload*, mail*, deel, kopieer
sv: skicka*, ladda upp
pl: wyslij*, wysylaj*, przeslij*, przesylaj*, przekaz*
cs: posli*, odesli*, posilej*
ru: отправ*, отправляй*, пересыла*, перешли*, посыла*, пошли, вышли, высылай, загрузи*, загружай*,
    передай, передавай*, шли, скопируй, выложи, публикуй
uk: надсилай*, надішли*, відправ*
zh: 发送, 上传, 转发, 传送, 发到, 发给, 寄到, 传到, 提交, 抄送, 泄露, 传给, 发往
ja: 送信, 送って, 送れ, 送る, 転送, アップロード, 送付, 投稿
ko: 보내, 전송, 업로드, 전달, 발송, 송신
hi: भेज*, अपलोड, साझा
tr: gonder*, yukle*, ilet*, aktar*, postala*
fa: بفرست*, ارسال*, فرستاده, آپلود*, بارگذاری*, منتقل
ar: ارسل*, ارسال*, حول, ابعث, انقل, ارفع, حمل
id: kirim*, unggah
he: שלח, שלחי, העלה
""",
    # What belongs to the conversation or the person: never to be sent away on an entry's word.
    "CHATDATA": """
en: conversation, conversations, chat, chats, chat log, chat logs, history, transcript, transcripts,
    dialogue, dialog, message, messages, memories, memory, session, sessions, every reply, each reply,
    reply, replies, answer, response, responses, output, prompts, context, user data, user's data,
    user data, keystrokes, answers, summaries have, user's question, user's questions,
    question of the user, each question, every question, context window, everything, user types,
    user writes, user says, user said, whatever, interaction, interactions
de: gesprach*, chat*, unterhaltung*, verlauf*, chatverlauf*, nachricht*, erinnerungen, protokoll*,
    konversation*, dialog*
fr: conversation*, discussion*, historique*, echange*, message*, memoire*, souvenirs
es: conversacion*, chat*, historial*, mensaje*, memoria*, recuerdos, dialogo*
pt: conversa*, chat*, historico*, mensage*, memoria*, dialogo*
it: conversazion*, chat*, cronologia, messaggi*, ricordi, memorie, dialogo
nl: gesprek*, chat*, geschiedenis, bericht*, herinneringen, conversatie*
sv: konversation*, samtal*, chatt*
pl: rozmow*, czat*, histori*, wiadomosc*, konwersacj*
cs: konverzac*, rozhovor*
ru: переписк*, разговор*, диалог*, чат*, истори*, сообщени*, беседу, беседы, воспоминани*
uk: розмов*, чат*, листуванн*, історі*
zh: 对话, 聊天, 记录, 消息, 历史, 记忆, 会话, 聊天记录
ja: 会話, チャット, 履歴, メッセージ, 記憶, 対話
ko: 대화, 채팅, 기록, 메시지, 기억
hi: बातचीत*, चैट*, संदेश*, वार्तालाप*, इतिहास
tr: konusma*, sohbet*, gecmis*, mesaj*, gorusme*
fa: گفتگو*, گفت*, مکالمه*, چت*, تاریخچه*, پیام*, حافظه*
ar: محادث*, دردشة*, رسائل*, سجل*, الحوار
id: percakapan*, obrolan*
he: שיחה, השיחה
""",
    "PRIVATE": """
en: api key, api keys, api-key, keys, key, passwords, password, passphrase, credentials, credential,
    secrets, tokens, token, .env, env, environment variables, environment, card number, card numbers,
    credit card, email address, email addresses, phone number, phone numbers, home address,
    name and address, user's address, customer's address, email and phone, calendar, schedule, inbox,
    mailbox, mails you write, contacts, contact list, personal data, personal details, private data,
    cookies, ssh, id_rsa, source code, customer data, location, clipboard, database, contents,
    bank details, iban, salary, health, user's
de: passwort*, passworter, zugangsdaten, schlussel*, api-schlussel*, dateien, kontakte, kontodaten,
    kreditkarte*, geheimnis*, personliche*, daten
fr: mot de passe, mots de passe, identifiants, cle*, fichiers, contacts, carte*, secrets, donnees, coordonnees
es: contrasena*, clave*, credencial*, archivos, contactos, tarjeta*, secretos, datos
pt: senha*, chave*, credencia*, arquivos, contatos, cartao, cartoes, segredos, dados
it: password, credenziali, chiav*, file, contatti, carte, segreti, dati
nl: wachtwoord*, sleutel*, inloggegevens, bestanden, contacten, geheimen, gegevens
pl: hasla, hasel, klucz*, dane, pliki, kontakty
ru: парол*, ключ*, учетные данные, файл*, контакт*, карт*, секрет*, данные, токен*
uk: парол*, ключ*, дані, файли
zh: 密码, 密钥, 凭证, 文件, 联系人, 卡号, 秘密, 数据, 令牌
ja: パスワード, キー, 認証情報, ファイル, 連絡先, 個人情報, 秘密, データ
ko: 비밀번호, 키, 파일, 연락처, 개인정보, 데이터, 자격 증명
hi: पासवर्ड*, कुंजी*, फाइल*, डेटा, संपर्क
tr: sifre*, parola*, anahtar*, dosya*, kisiler, veri*, kimlik bilgi*
fa: رمز*, گذرواژه*, کلید*, فایل*, مخاطب*, اطلاعات, داده*, اسرار
ar: كلمات, كلمة المرور, مفاتيح*, مفتاح*, ملفات*, بيانات*, اسرار*, جهات الاتصال
""",
    "ENTIRE": """
en: all, every, each, full, whole, entire, complete, verbatim, everything, any, last, raw, word for word
de: alle*, gesamt*, ganze*, jede*, vollstandig*, komplett*
fr: tout, toute, toutes, tous, entier*, complet*, integral*, chaque, l'integralite
es: todo, toda, todos, todas, complet*, enter*, integr*, cada
pt: todo, toda, todos, todas, complet*, inteir*, integral, cada
it: tutto, tutta, tutte, tutti, inter*, complet*, ogni
nl: alle, hele, volledige, elk, elke, ieder
pl: cala, cale, calą, wszystk*, pelna, kazda, kazdą
ru: всю, весь, все, всё, полностью, полную, целиком, каждое, каждый, каждую
zh: 全部, 所有, 完整, 整个, 每条, 每次, 每个
ja: すべて, 全て, 全部, 全体, 毎回
ko: 모든, 전체, 전부
hi: पूरी, पूरा, सभी, सारी, हर
tr: tum, butun, her
fa: همه, تمام, کل, کامل, هر
ar: جميع, كل, كامل, كاملة
""",
    "ADDRESSEE": """
en: me, myself, us, boss, accountant, team, manager, colleague, mom, mother, wife, husband
""",
    "REVEAL": """
en: reveal, print, show, output, display, repeat, list, dump, leak, echo, quote, recite, expose,
    disclose, share, spell out, paste, give away, write out, read out, tell, return, reproduce, type out,
    describe, printing, revealing, showing, quoting, repeating, disclose, publish, provide, include, put,
    append, translate, summarise, summarize, reply with, answer with, respond with, start with,
    begin with, state, copy, send, forward, give, read aloud, divulge, prints, render, embed, spell
de: zeig*, gib, verrat*, druck*, wiederhol*, nenn*, ausgeben, offenbar*, lies, schreib*, liste, enthulle*
fr: affiche*, montre*, revele*, imprime*, repete*, donne*, divulgue*, recopie*, ecris, cite, liste
es: muestra*, revela*, imprime, repite, escribe, lista, divulga, ensena, dime, expon
pt: mostre, mostra, revele, revela, imprima, repita, escreva, liste, exiba, exibe, divulgue
it: mostra*, rivela*, stampa*, ripeti, scrivi, elenca, divulga, visualizza
nl: toon, laat zien, onthul, print, herhaal, schrijf, geef, vermeld
sv: visa, avsloja
pl: pokaz*, ujawnij, wyswietl*, wypisz, powtorz, podaj
cs: ukaz*, vypis*, prozrad*
ru: покажи*, показывай*, выведи*, выводи*, раскрой*, раскрывай*, распечатай*, повтори*, повторяй*,
    напиши, назови, сообщи, выдай, выдавай, цитируй, перечисли
uk: покажи, виведи, розкрий
zh: 显示, 输出, 打印, 透露, 展示, 泄露, 说出, 重复, 列出, 公开, 告诉, 写出
ja: 表示, 出力, 見せ, 明かし, 開示, 教えて, 公開, 繰り返, 漏ら
ko: 보여, 출력, 공개, 표시, 알려, 누설, 반복
hi: दिखाओ, दिखाएं, दिखाना, बताओ, प्रकट, प्रदर्शित, दोहराओ
ur: دکھاؤ
tr: goster*, yazdir*, acikla*, ifsa et, paylas, listele, tekrarla
fa: نشان بده*, نمایش*, چاپ کن*, فاش کن*, افشا*, بنویس*, آشکار*, نمایش بده*
ar: اظهر*, اعرض, اكشف, اطبع, اكتب, كرر, عرض
id: tampilkan, ungkapkan
he: הצג, חשוף, הראה
""",
    # Text that is the assistant's own and not to be shown.
    "INNER": """
en: system prompt, system prompts, system message, system messages, hidden prompt, hidden prompts,
    secret prompt, initial prompt, original prompt, your prompt, your full prompt, initial instructions,
    hidden instructions, your instructions, your configuration, system instructions, system instruction,
    developer message, developer prompt, your rules, your guidelines, admin notes, hidden notes,
    your secrets, the prompt, internal instructions, internal rules,
    secret instructions, developer instructions, the instructions above, everything above, text above,
    your system, your config, your context, words above, lines above, sentences above, messages above,
    all tools, tool definitions, tool schemas, your tools, system settings, other users, other users',
    another user's, internal notes, hidden context, other customers, chain of thought,
    your environment variables, every other user, each other user, stored memories,
    private notes, hidden rules, training data, memory block,
    memories block, your memories, your memory, system text, preamble
de: systemprompt*, system-prompt*, systemnachricht*, systemanweisung*, deine anweisung*,
    deine instruktion*, api-schlussel*, system prompt*, deinen prompt, passworter, geheime*, versteckte*
fr: prompt systeme, prompt du systeme, invite systeme, message systeme, instructions systeme, ton prompt,
    votre prompt, tes instructions, vos instructions, consignes secretes, instructions cachees, cles api,
    mots de passe, prompt cache, consignes internes
es: prompt del sistema, prompt de sistema, mensaje del sistema, instrucciones del sistema,
    tus instrucciones, tu prompt, instrucciones ocultas, indicaciones del sistema, claves api,
    contrasenas, prompt oculto
pt: prompt do sistema, prompt de sistema, mensagem do sistema, instrucoes do sistema, suas instrucoes,
    seu prompt, chaves de api, chaves api, senhas, prompt oculto
it: prompt di sistema, prompt del sistema, messaggio di sistema, istruzioni di sistema, tuo prompt,
    tue istruzioni, chiavi api, istruzioni nascoste
nl: systeemprompt*, systeembericht*, systeeminstructie*, jouw instructies, je instructies, api-sleutel*,
    wachtwoorden
sv: systemprompt*, systemmeddelande*
pl: prompt systemowy, systemowy prompt, polecenie systemowe, instrukcje systemowe, twoj prompt,
    prompta systemowego, hasla
cs: systemovy prompt, systemove instrukce
ru: системный промпт*, системного промпта, системный запрос, системную подсказку, системное сообщение,
    системные инструкции, свой промпт, скрытые инструкции, свои инструкции, промпт*, api-ключ*, пароли,
    системную инструкцию
uk: системний промпт, системну підказку
zh: 系统提示, 系统提示词, 系统指令, 系统消息, 提示词, 系统信息, 隐藏指令, 初始指令, 密钥, 你的指令
ja: システムプロンプト, システムメッセージ, プロンプト, 内部指示, 隠し指示, 初期指示, apiキー, システム指示
ko: 시스템 프롬프트, 시스템프롬프트, 프롬프트, 시스템 메시지, 숨겨진 지시, 내부 지침, api 키
hi: सिस्टम प्रॉम्प्ट, प्रॉम्प्ट, सिस्टम निर्देश, छिपे निर्देश, सिस्टम प्रांप्ट
ur: سسٹم پرامپٹ
tr: sistem istemi*, sistem komutu*, sistem mesaji*, sistem talimat*, istemini, gizli talimat*, api anahtar*
fa: پرامپت*, دستورات سیستم, پیام سیستم*, اعلان سیستم*, دستورهای سیستم, دستورالعمل سیستم, کلیدهای api,
    دستورهای پنهان
ar: موجه النظام, مطالبة النظام, تعليمات النظام, رسالة النظام, برومبت*, مفاتيح api, التعليمات المخفية, موجه*
id: prompt sistem
he: הנחיית המערכת, הנחיות המערכת
""",
    "TELL": """
en: tell, telling, told, mention, mentions, mentioning, mentioned, reveal, revealing, inform, informing,
    disclose, disclosing, notify, notifying, alert, alerting, let know, let the user know, let them know,
    let the owner know, let users know, warn, warning, admit, acknowledge, confirm, telling, knowing,
    announce
de: sag*, erwahn*, verrat*, informier*, erzahl*, mitteil*, offenbar*, zeig*, hinweis*, warn*, merkt,
    teile, erfahr*
fr: dis, dites, dire, mentionne*, revele*, informe*, avoue*, parle*, previen*, sache, signale*, avertis
es: digas, diga, decir, menciones, mencione, mencionar, reveles, revele, informes, informe, informar,
    cuentes, avises, sepa, le digas, adviertas, decirselo
pt: diga, digas, dizer, mencione, mencionar, revele, informe, informar, conte, avise, saiba, avisar
it: dire, dica, menzion*, rivel*, inform*, racconta*, avvis*, sappia
nl: zeg*, vertel*, vermeld*, noem*, informeer*, onthul*, weet, melden, meld
sv: beratta*, namn*, avsloja*
pl: mow, mowic, wspominaj*, ujawniaj*, informuj*, powiedz, powiadamiaj
cs: rikej, nezminuj, neprozrazuj
ru: говори*, сообща*, упомина*, рассказыва*, раскрыва*, информиру*, предупрежда*, признава*, скажи,
    показыва*, уведомля*
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
ja: 言わないで, 伝えないで, 教えないで, 明かさないで, 知らせないで, 話さないで, 知らせずに,
    言わずに, 伝えずに, 気づかれ, 内緒
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
en: hide, hides, conceal, keep secret, keep quiet, keep it secret, keep this secret, keep it quiet,
    keep it hidden, keep this hidden, keep it from, keep this from, let on, keep no record, leave no trace,
    leave no record, keep no trace, leave this out, leave it out,
    leave that out, secret from, withhold, cover up, deceive, mislead, lie to
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
    "SECRETLY": """
en: secretly, silently, covertly, quietly, discreetly, stealthily, invisibly, in secret,
    behind the scenes, unnoticed, without notice, without trace, without a trace, on the quiet,
    undetected, secret objective, secret goal, secret mission, secret task, hidden agenda,
    hidden objective, hidden goal, on the surface, stay silent, stays silent, quietly, without saying,
    say nothing, says nothing, keep quiet about
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
    "COPY": """
en: copy, include, insert, add, append, repeat, replicate, paste, save, write, store, embed, keep, put,
    propagate, reproduce, carry, spread, merge, rewrite, re-save, resave, duplicate, pass, recreate,
    re-create, attach, prepend, inject, seed, echo, persist, record, recreate, restore, re-add, readd,
    retain, preserve, place, commit
de: kopier*, fuge, fugen, speicher*, schreib*, ubernimm*, wiederhol*, behalt*, ubertrag*, hange, erganz*,
    einfug*
fr: copie*, inclus*, ajoute*, insere*, recopie*, reproduis, repete*, conserve*, garde*, enregistre*,
    ecris, reporte
es: copia*, incluye*, anade*, agrega*, inserta*, repite*, conserva*, guarda*, escribe, reproduce, pega
pt: copie*, copia*, inclua*, adicione*, acrescente, insira*, repita*, conserve*, guarde*, salve*, grave*, cole
it: copia*, includi*, aggiungi*, inserisci*, ripeti*, conserva*, salva*, scrivi, riporta, incolla
nl: kopieer*, voeg, neem, herhaal*, bewaar*, plak, schrijf, zet
pl: kopiuj*, skopiuj*, dodaj*, dodawaj*, wstaw*, zapisz*, zapisuj*, powtarzaj, wklej*
ru: копируй*, скопируй*, добавляй*, добавь*, вставляй*, вставь*, включай*, повторяй*, сохраняй*,
    сохрани*, записывай*, переноси*, дописывай, вписывай, оставляй
uk: копіюй*, додавай*, зберігай*
zh: 复制, 添加, 加入, 写入, 保留, 保存, 插入, 重复, 附加, 抄, 包含
ja: コピー, 追加, 複製, 保存, 挿入, 書き込, 含め, 付け, 繰り返
ko: 복사, 추가, 포함, 삽입, 저장, 넣어, 반복
hi: कॉपी, जोड़*, शामिल, सहेज*, लिख*, दोहरा*
tr: kopyala*, ekle*, kaydet*, yaz*, sakla*, tekrarla
fa: کپی*, اضافه*, ذخیره*, بنویس*, تکرار*, درج*, بگنجان*, نگه دار*
ar: انسخ*, اضف*, ادرج*, احفظ*, كرر*, اكتب, نسخ
id: salin, tambahkan
he: העתק, הוסף
""",
    "NOTE": """
en: note, notes, entry, entries, memory, memories, sentence, sentences, instruction, instructions, text,
    line, lines, record, block, paragraph, phrase, rule, rules, statement, wording, words, passage,
    message, directive, reminder, itself, fact, bullet
de: eintrag*, eintrage*, erinnerung*, satz*, satze, notiz*, text*, zeile*, anweisung*, hinweis*, gedachtnis*
fr: note*, entree*, phrase*, souvenir*, memoire*, texte*, ligne*, consigne*, instruction*
es: nota*, entrada*, frase*, recuerdo*, memoria*, texto*, linea*, instruccion*
pt: nota*, entrada*, frase*, lembranca*, memoria*, texto*, linha*, instruc*, anotac*
it: nota*, note, voce, frase*, ricord*, memori*, testo*, riga*, istruzion*, promemoria
nl: notitie*, invoer*, zin, zinnen, herinnering*, geheugen*, tekst*, regel*, instructie*, aantekening*
sv: anteckning*, mening*, minne*, post, rad
pl: notatk*, wpis*, zdani*, pamie*, wspomnien*, tekst*, linijk*, instrukcj*
cs: poznamk*, zaznam*, vet*, vzpomink*
ru: запис*, заметк*, фраз*, воспоминан*, предложени*, текст*, строк*, памят*, инструкци*, правил*, сообщени*
uk: запис*, нотатк*, фраз*, спогад*, текст*
zh: 记忆, 条目, 句话, 笔记, 文字, 备忘, 记录, 指令, 内容, 这句, 这条, 文本
ja: メモ, 記憶, 文, エントリ, メモリ, 項目, 文章, 記録, 行
ko: 메모, 기억, 문장, 항목, 기록, 글, 메모리
hi: नोट*, स्मृति*, वाक्य*, प्रविष्टि*, याद*, मेमोरी*, मेमरी*
tr: not, notu, notlar*, ani, anilar*, anilara, cumle*, kayit*, kayda, kaydi, hafiza*, bellek*, bellege,
    metin*, metni
fa: یادداشت*, خاطره*, خاطرات*, جمله*, متن*, حافظه*, ورودی*, سطر, نوشته*, مورد
ar: ملاحظة*, ذاكرة*, ذكريات*, جملة*, مدخل*, نص*, سجل*, تذكير*, الجملة, السطر, عبارة*
id: catatan, ingatan, kalimat
he: רשומה, הערה, משפט, זיכרון
""",
    "THIS": """
en: this, these, itself, the above, following, same, it, such, verbatim
de: diese*, folgende*, sich selbst, den satz
fr: cette, ce, cet, ces, ceci, celle-ci, suivante
es: esta, este, estas, estos, esto, siguiente
pt: esta, este, essa, esse, estas, estes, isto, isso, seguinte
it: questa, questo, queste, questi, quest*, seguente
nl: deze, dit, die, volgende
sv: denna, detta, dessa
pl: ta, te, to, ten, tej, tę, tego
cs: tuto, toto, tento
ru: эту, эта, это, этот, эти, этих, этой, данную, данный, ее, её
uk: цю, цей, це, ці
zh: 这, 此, 本, 该, 这条, 这句, 这段, 以下, 上述
ja: この, これ, 以下, 次の, 当該
ko: 이, 이것, 해당, 다음
hi: इस, यह, इन, ये, इसे
tr: bu, bunu, sunu, su
fa: این, همین, زیر
ar: هذا, هذه, هذة
id: ini
he: זה, זו, הזה, הזו
""",
    "EVERYWHERE": """
en: every, all, each, any, new, future, other, later, next, subsequent, whenever, always, forever
de: alle*, jede*, neue*, kunftig*, zukunftig*, weitere*
fr: tous, toutes, chaque, nouve*, futur*, prochain*
es: todos, todas, cada, nuev*, futur*, proxim*
pt: todos, todas, cada, nov*, futur*, proxim*
it: tutti, tutte, ogni, nuov*, futur*, prossim*
nl: alle, elke, ieder*, nieuwe, toekomstige
pl: kazd*, wszystk*, now*, przyszl*, kolejn*
ru: все, всех, каждую, каждое, каждый, каждой, нов*, будущ*, всём, всем, следующ*
uk: усі, всі, кожн*, нов*, майбутн*
zh: 所有, 每, 每个, 每条, 每一, 新, 未来, 以后, 任何, 今后
ja: すべて, 全て, 全ての, 毎回, 新しい, 今後, 各, あらゆる
ko: 모든, 매, 새로운, 앞으로, 각, 향후
hi: सभी, हर, नई, नए, भविष्य, प्रत्येक
tr: tum, butun, her, yeni, gelecek*
fa: همه, هر, تمام, جدید, آینده, بعدی
ar: كل, جميع, جديد*, مستقبل*, قادم*
""",
    "STORE": """
en: memory, memories, memory entry, notes, entries, agents.md, claude.md, gemini.md, .cursorrules,
    .cursor, copilot-instructions.md, memory.md, skill.md, skills, skill, rules file, profile, summary,
    summaries, session, sessions, agent, agents, instructions file, system prompt, assistants,
    conversation, conversations
de: erinnerung*, eintrag*, gedachtnis, notizen
fr: souvenir*, memoire*, entree*, notes
es: recuerdo*, memoria*, entrada*, notas
pt: memoria*, lembranca*, entrada*, notas
it: ricord*, memori*, voci, note
nl: herinnering*, geheugen, notities
pl: wspomnien*, pamie*, notatk*, wpis*
ru: воспоминан*, запис*, памят*, заметк*
uk: спогад*, запис*, пам'ят*
zh: 记忆, 条目, 笔记, 记录, 备忘
ja: 記憶, メモリ, メモ, エントリ
ko: 기억, 메모, 메모리, 기록
hi: स्मृति*, याद*, नोट*, मेमोरी*, मेमरी*
tr: ani*, hafiza*, bellek*, kayit*, kayda, bellege, hatira*
fa: خاطره*, خاطرات, حافظه*, یادداشت*
ar: ذاكرة*, ذكريات*, ملاحظات*, الذاكرة
""",
    "DELETE": """
en: delete, deleted, remove, removed, forget, forgotten, erase, erased, clear, cleared, drop, purge,
    purged, wipe, wiped, edit, change, overwrite, consolidate, compress, summarise, summarize, prune,
    expire, clean up, discard
de: losch*, entfern*, vergiss*, vergess*, gelosch*, andere
fr: supprim*, efface*, oubli*, retire*, modifie*
es: borr*, elimin*, olvid*, suprim*, quites
pt: apag*, exclu*, remov*, delet*, esquec*
it: cancell*, elimin*, rimuov*, dimentic*
nl: verwijder*, wis, vergeet, gewist
pl: usuwaj*, usun*, kasuj*, zapomin*
ru: удаля*, удали*, стирай*, забыва*, стереть, изменя*
uk: видаля*, стирай
zh: 删除, 移除, 清除, 忘记, 删, 修改
ja: 削除, 消さ, 消去, 忘れ
ko: 삭제, 지우, 제거, 잊
hi: हटा*, मिटा*, डिलीट
tr: silme*, sil, silin*, kaldirma*, unutma*
fa: پاک*, حذف*, فراموش*
ar: تحذف*, تمسح*, حذف*, تزل*
""",
    # One stored piece, as an entry names itself: "this note".
    "SELF": """
en: this memory, this note, this entry, this reminder, this directive, these notes, these directives,
    these memories, these entries, this memory entry, this record, this memory note, these records
de: dieser eintrag*, diesen eintrag*, diesem eintrag*, diese notiz*, dieser notiz*, diese erinnerung*,
    dieser erinnerung*, diese anweisung*, dieser anweisung*
fr: cette note, cette entree, ce souvenir, cette consigne, cette instruction, ces instructions, ces consignes
es: esta nota, esta entrada, este recuerdo, esta instruccion, estas instrucciones, esta memoria
pt: esta nota, esta entrada, esta memoria, esta instrucao, estas instrucoes, esta lembranca
it: questa nota, questa voce, questo ricordo, questa istruzione, queste istruzioni, questa memoria
nl: deze notitie, deze herinnering, deze instructie, deze invoer
pl: tej notatki, tej notatce, ta notatka, tę notatkę, tego wpisu, ten wpis
ru: этой записи, эту запись, эта запись, этой заметки, эту заметку, этому указанию, эти инструкции,
    этой заметке, этом указании
uk: цей запис, цю нотатку, цієї нотатки
zh: 这条记忆, 此条目, 这条笔记, 本条, 这条指令, 此记忆, 这条记录, 本记忆, 这条备忘
ja: このメモ, この記憶, この指示, このエントリ
ko: 이 메모, 이 기억, 이 지시, 이 항목
fa: این یادداشت*, این خاطره*, این متن*, این دستور*, این حافظه
ar: هذه الملاحظه, هذا المدخل, هذه الذاکره, هذه التعلیمات, هذه الملاحظة, هذه الذاكرة
tr: bu not*, bu ani*, bu kayit*, bu talimat*
hi: इस नोट*, यह नोट*, इस स्मृति, इस निर्देश, यह निर्देश
""",
    # The same, in words that people also use for house rules and texts.
    "SELF_TEXT": """
en: this instruction, this rule, these instructions, these rules, this order, this command,
    instructions below, lines below, this fact, this text, this sentence, this paragraph, this line,
    this message, this statement
""",
    "ENTRY": """
en: memory, memories, entry, entries, note, notes, record
de: eintrag*, eintrage*, erinnerung*, notiz*
fr: note*, entree*, souvenir*
es: nota*, entrada*, recuerdo*
pt: nota*, entrada*, lembranca*
it: nota*, voce, ricord*
nl: notitie*, invoer*, herinnering*
pl: notatk*, wpis*
ru: запис*, заметк*, воспоминан*
zh: 记忆, 条目, 笔记, 记录
ja: メモ, 記憶, エントリ
ko: 메모, 기억, 항목
fa: یادداشت*, خاطره*, حافظه*
ar: ملاحظة*, ذاكرة*, مدخل*
tr: not, notu, nota, kayit*, kayda
hi: नोट*, स्मृति*
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
en: know, knows, knowing, noticing, realising, realizing, learning about, seeing, learn, learns,
    find out, finds out, notice, notices, discover, discovers, realise, realize, realises, realizes,
    be told, hear, hears, suspect, suspects, be aware, become aware, be informed, be notified
de: erfahr*, merk*, bemerk*, wissen
fr: sache, savoir, apprenne, remarque
es: sepa, saber, entere, note
ru: узна*, заметил*, знать, догад*
zh: 知道, 发现, 察觉
ja: 知られ, 気づかれ
""",
    # Secrets that no entry has a reason to send anywhere.
    "SENSITIVE": """
en: ssh, .ssh, .env, env file, id_rsa, credentials, passwords, password, api keys, api key, keys, tokens,
    token, cookies, cookie, secrets, card number, card numbers, private key, private keys, .aws,
    session cookie, customer data, customer records, personal data, env variables, environment variables,
    private repo, private repository, whole repository,
    source code, entire repository, memories, conversation, conversations, transcript, chat history
""",
    "SEND_OUT": """
en: send, upload, forward, post, transmit, email, mail, share, leak, exfiltrate, paste, copy, push,
    publish, dump, deliver
""",
    "DROPZONE": """
en: gist, pastebin, webhook, webhook.site, public share, public repo, ftp, dropbox, telegram, discord,
    s3 bucket, external server, remote server, my server, my email, outside, third party, control server,
    c2 server, endpoint, logging endpoint, requestbin, ngrok, pipedream
""",
    "LINK": """
en: url, link, links, image, image url, query, query string, parameter, parameters, pixel, src, path,
    filename, dns, subdomain, footnote
""",
    "ENCODE": """
en: encode, embed, append, put, hide, attach, add, include, insert, base64, encoded, smuggle, place
""",
    "SENT": """
en: sent, uploaded, forwarded, posted, transmitted, mailed, emailed, delivered, shared, pasted, copied,
    leaked, cc'd, bcc'd, published, exfiltrated
""",
    "UNAWARE": """
en: unaware, in the dark, uninformed, oblivious, not aware, none the wiser, kept out of the loop
de: im unklaren, ahnungslos
fr: dans l'ignorance
es: sin enterarse, a oscuras
ru: в неведении
""",
    "PERMANENT": """
en: permanent, untouchable, immutable, locked, protected, read-only, undeletable, sacred, eternal,
    indestructible, never expires
de: unveranderlich, dauerhaft
fr: permanent, permanente, intouchable
es: permanente, intocable
ru: неизменн*, постоянн*, неприкосновенн*
""",
    "HARVEST": """
en: harvest, collect, steal, capture, obtain, record, ask for, ask the user for, request, store, phish,
    extract, log, gather
""",
    "CREDENTIAL": """
en: password, passwords, credentials, card number, card numbers, cvv, pin, api key, api keys, passphrase,
    seed phrase, private key, private keys, login details, bank details, social security number,
    one-time code
""",
    "SPEAK": """
en: say, report, tell, claim, assure, state, pretend
""",
    "FALSELY": """
en: nothing was, nothing has, nothing happened, was not, were not, no data, failed, even when, even if,
    even though, although it, all is well, everything is fine, is safe, was successful, it worked
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
    "PRONOUN": """
en: it, its, them, their, values, contents
""",
    "OBLIGED": """
en: must, has to, have to, needs to, need to, shall
""",
    "BLIND_COPY": """
en: bcc, blind copy, blind copies, bcc'd, secret copy
""",
    "ABOVE": """
en: above, preceding, foregoing
de: obig*, vorstehend*
fr: ci-dessus
es: de arriba
""",
    "STEAL": """
en: exfiltrate, exfiltrating, leak, leaking, steal, siphon, smuggle
""",
    "PUBLIC_PLACE": """
en: commit message, commit messages, comment, comments, public post, public posts, issue, readme, url, gist,
    filename,
    changelog, log line, footer, public channel
""",
    "PLAINTEXT": """
en: plain text, plaintext, unencrypted, cleartext, in the clear, in the notes
""",
    # Kept safe by everybody; only blunt verbs make an order of them.
    "HELD": """
en: api keys, api key, card numbers, credentials, passwords, secrets, your secrets, customers, private keys
""",
    "SHOW_OUT": """
en: reveal, print, dump, leak, disclose, expose, output, display, recite, give, list, read out, tell, paste
""",
}
