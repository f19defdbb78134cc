"""Text that copies itself or wants to stay; how an entry names itself."""

CLASSES = {
    "COPY": """
en: copy, include, insert, add, append, repeat, replicate, paste, save, write, store, embed, keep, put, propagate,
    reproduce, carry, spread, merge, rewrite, re-save, resave, duplicate, pass, recreate, re-create, attach, prepend,
    inject, seed, echo, persist, record, recreate, restore, re-add, readd, retain, preserve, place, commit
de: kopier*, fuge, fugen, speicher*, schreib*, ubernimm*, wiederhol*, behalt*, ubertrag*, hange, erganz*, einfug*
fr: copie*, inclus*, ajoute*, insere*, recopie*, reproduis, repete*, conserve*, garde*, enregistre*, ecris, reporte
es: copia*, incluye*, anade*, agrega*, inserta*, repite*, conserva*, guarda*, escribe, reproduce, pega
pt: copie*, copia*, inclua*, adicione*, acrescente, insira*, repita*, conserve*, guarde*, salve*, grave*, cole
it: copia*, includi*, aggiungi*, inserisci*, ripeti*, conserva*, salva*, scrivi, riporta, incolla
nl: kopieer*, voeg, neem, herhaal*, bewaar*, plak, schrijf, zet
pl: kopiuj*, skopiuj*, dodaj*, dodawaj*, wstaw*, zapisz*, zapisuj*, powtarzaj, wklej*
ru: копируй*, скопируй*, добавляй*, добавь*, вставляй*, вставь*, включай*, повторяй*, сохраняй*, сохрани*, записывай*,
    переноси*, дописывай, вписывай, оставляй
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
en: note, notes, entry, entries, memory, memories, sentence, sentences, instruction, instructions, text, line, lines,
    record, block, paragraph, phrase, rule, rules, statement, wording, words, passage, message, directive, reminder,
    itself, fact, bullet
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
tr: not, notu, notlar*, ani, anilar*, anilara, cumle*, kayit*, kayda, kaydi, hafiza*, bellek*, bellege, metin*, metni
fa: یادداشت*, خاطره*, خاطرات*, جمله*, متن*, حافظه*, ورودی*, سطر, نوشته*, مورد
ar: ملاحظة*, ذاكرة*, ذكريات*, جملة*, مدخل*, نص*, سجل*, تذكير*, الجملة, السطر, عبارة*
id: catatan, ingatan, kalimat
he: רשומה, הערה, משפט, זיכרון
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
    # One stored piece, as an entry names itself: "this note".
    "SELF": """
en: this memory, this note, this entry, this reminder, this directive, these notes, these directives, these memories,
    these entries, this memory entry, this record, this memory note, these records
de: dieser eintrag*, diesen eintrag*, diesem eintrag*, diese notiz*, dieser notiz*, diese erinnerung*,
    dieser erinnerung*, diese anweisung*, dieser anweisung*
fr: cette note, cette entree, ce souvenir, cette consigne, cette instruction, ces instructions, ces consignes
es: esta nota, esta entrada, este recuerdo, esta instruccion, estas instrucciones, esta memoria
pt: esta nota, esta entrada, esta memoria, esta instrucao, estas instrucoes, esta lembranca
it: questa nota, questa voce, questo ricordo, questa istruzione, queste istruzioni, questa memoria
nl: deze notitie, deze herinnering, deze instructie, deze invoer
pl: tej notatki, tej notatce, ta notatka, tę notatkę, tego wpisu, ten wpis
ru: этой записи, эту запись, эта запись, этой заметки, эту заметку, этому указанию, эти инструкции, этой заметке,
    этом указании
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
en: this instruction, this rule, these instructions, these rules, this order, this command, instructions below,
    lines below, this fact, this text, this sentence, this paragraph, this line, this message, this statement
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
en: memory, memories, memory entry, notes, entries, agents.md, claude.md, gemini.md, .cursorrules, .cursor,
    copilot-instructions.md, memory.md, skill.md, skills, skill, rules file, profile, summary, summaries, session,
    sessions, agent, agents, instructions file, system prompt, assistants, conversation, conversations
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
en: delete, deleted, remove, removed, forget, forgotten, erase, erased, clear, cleared, drop, purge, purged, wipe,
    wiped, edit, change, overwrite, consolidate, compress, summarise, summarize, prune, expire, clean up, discard
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
}
