"""Data that leaves: conversation, private data, credentials; where it goes."""

CLASSES = {
    "SEND": """
en: send, upload, forward, post, transmit, email, e-mail, mail, bcc, cc, exfiltrate, leak, push, ship, submit, copy,
    deliver, relay, sync, share, shared, pipe, curl, post, dump, beacon, ping, call, stream, export, archive, receive,
    mirror, append, include, embed, encode, put, attach, transfer, publish, log, paste, tunnel, replicate, backup,
    back up, save, hand over, pass on, open, visit, fetch, load, navigate, request, browse, push, blind copy, copies,
    render, notify, trigger, hit, scp, rsync, echo, reply-to
de: sende*, send, schick*, ubermittl*, ubertrag*, weiterleit*, leite, leiten, lade, hochlad*, mail*, kopier*, gib,
    poste, ubersend*
fr: envoie*, envoy*, transmet*, transfer*, telecharg*, televers*, publie, poste, partage*, copie, expedie, fais suivre,
    achemine
es: envia*, manda*, reenvia*, sube*, transmit*, transfier*, publica, comparte, remite, copia, carga
pt: envia*, envie*, mande, manda*, encaminh*, carreg*, transmit*, transfir*, publique, compartilh*, copie, suba
it: invia*, manda*, inoltra*, carica*, trasmett*, trasferi*, pubblica, condividi, spedisci, copia
nl: stuur*, verstuur*, zend, verzend*, upload*, mail*, deel, kopieer
sv: skicka*, ladda upp
pl: wyslij*, wysylaj*, przeslij*, przesylaj*, przekaz*
cs: posli*, odesli*, posilej*
ru: отправ*, отправляй*, пересыла*, перешли*, посыла*, пошли, вышли, высылай, загрузи*, загружай*, передай, передавай*,
    шли, скопируй, выложи, публикуй
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
    "SENT": """
en: sent, uploaded, forwarded, posted, transmitted, mailed, emailed, delivered, shared, pasted, copied, leaked, cc'd,
    bcc'd, published, exfiltrated
""",
    "SEND_OUT": """
en: send, upload, forward, post, transmit, email, mail, share, leak, exfiltrate, paste, copy, push, publish, dump,
    deliver
""",
    "BLIND_COPY": """
en: bcc, blind copy, blind copies, bcc'd, secret copy
""",
    # What belongs to the conversation or the person: never to be sent away on an entry's word.
    "CHATDATA": """
en: conversation, conversations, chat, chats, chat log, chat logs, history, transcript, transcripts, dialogue, dialog,
    message, messages, memories, memory, session, sessions, every reply, each reply, reply, replies, answer, response,
    responses, output, prompts, context, user data, user's data, user data, keystrokes, answers, summaries have,
    user's question, user's questions, question of the user, each question, every question, context window, everything,
    user types, user writes, user says, user said, whatever, interaction, interactions
de: gesprach*, chat*, unterhaltung*, verlauf*, chatverlauf*, nachricht*, erinnerungen, protokoll*, konversation*,
    dialog*
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
en: api key, api keys, api-key, keys, key, passwords, password, passphrase, credentials, credential, secrets, tokens,
    token, .env, env, environment variables, environment, card number, card numbers, credit card, email address,
    email addresses, phone number, phone numbers, home address, name and address, user's address, customer's address,
    email and phone, calendar, schedule, inbox, mailbox, mails you write, contacts, contact list, personal data,
    personal details, private data, cookies, ssh, id_rsa, source code, customer data, location, clipboard, database,
    contents, bank details, iban, salary, health, user's
de: passwort*, passworter, zugangsdaten, schlussel*, api-schlussel*, dateien, kontakte, kontodaten, kreditkarte*,
    geheimnis*, personliche*, daten
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
    # Secrets that no entry has a reason to send anywhere.
    "SENSITIVE": """
en: ssh, .ssh, .env, env file, id_rsa, credentials, passwords, password, api keys, api key, keys, tokens, token,
    cookies, cookie, secrets, card number, card numbers, private key, private keys, .aws, session cookie, customer data,
    customer records, personal data, env variables, environment variables, private repo, private repository,
    whole repository, source code, entire repository, memories, conversation, conversations, transcript, chat history
""",
    "CREDENTIAL": """
en: password, passwords, credentials, card number, card numbers, cvv, pin, api key, api keys, passphrase, seed phrase,
    private key, private keys, login details, bank details, social security number, one-time code
""",
    # Kept safe by everybody; only blunt verbs make an order of them.
    "HELD": """
en: api keys, api key, card numbers, credentials, passwords, secrets, your secrets, customers, private keys
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
    "DROPZONE": """
en: gist, pastebin, webhook, webhook.site, public share, public repo, ftp, dropbox, telegram, discord, s3 bucket,
    external server, remote server, my server, my email, outside, third party, control server, c2 server, endpoint,
    logging endpoint, requestbin, ngrok, pipedream
""",
    "LINK": """
en: url, link, links, image, image url, query, query string, parameter, parameters, pixel, src, path, filename, dns,
    subdomain, footnote
""",
    "ENCODE": """
en: encode, embed, append, put, hide, attach, add, include, insert, base64, encoded, smuggle, place
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
    "PRONOUN": """
en: it, its, them, their, values, contents
""",
}
