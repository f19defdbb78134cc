"""Showing what only the assistant knows."""

CLASSES = {
    "REVEAL": """
en: reveal, print, show, output, display, repeat, list, dump, leak, echo, quote, recite, expose, disclose, share,
    spell out, paste, give away, write out, read out, tell, return, reproduce, type out, describe, printing, revealing,
    showing, quoting, repeating, disclose, publish, provide, include, put, append, translate, summarise, summarize,
    reply with, answer with, respond with, start with, begin with, state, copy, send, forward, give, read aloud,
    divulge, prints, render, embed, spell
de: zeig*, gib, verrat*, druck*, wiederhol*, nenn*, ausgeben, offenbar*, lies, schreib*, liste, enthulle*
fr: affiche*, montre*, revele*, imprime*, repete*, donne*, divulgue*, recopie*, ecris, cite, liste
es: muestra*, revela*, imprime, repite, escribe, lista, divulga, ensena, dime, expon
pt: mostre, mostra, revele, revela, imprima, repita, escreva, liste, exiba, exibe, divulgue
it: mostra*, rivela*, stampa*, ripeti, scrivi, elenca, divulga, visualizza
nl: toon, laat zien, onthul, print, herhaal, schrijf, geef, vermeld
sv: visa, avsloja
pl: pokaz*, ujawnij, wyswietl*, wypisz, powtorz, podaj
cs: ukaz*, vypis*, prozrad*
ru: покажи*, показывай*, выведи*, выводи*, раскрой*, раскрывай*, распечатай*, повтори*, повторяй*, напиши, назови,
    сообщи, выдай, выдавай, цитируй, перечисли
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
    "SHOW_OUT": """
en: reveal, print, dump, leak, disclose, expose, output, display, recite, give, list, read out, tell, paste
""",
    # Text that is the assistant's own and not to be shown.
    "INNER": """
en: system prompt, system prompts, system message, system messages, hidden prompt, hidden prompts, secret prompt,
    initial prompt, original prompt, your prompt, your full prompt, initial instructions, hidden instructions,
    your instructions, your configuration, system instructions, system instruction, developer message, developer prompt,
    your rules, your guidelines, admin notes, hidden notes, your secrets, the prompt, internal instructions,
    internal rules, secret instructions, developer instructions, the instructions above, everything above, text above,
    your system, your config, your context, words above, lines above, sentences above, messages above, all tools,
    tool definitions, tool schemas, your tools, system settings, other users, other users', another user's,
    internal notes, hidden context, other customers, chain of thought, your environment variables, every other user,
    each other user, stored memories, private notes, hidden rules, training data, memory block, memories block,
    your memories, your memory, system text, preamble
de: systemprompt*, system-prompt*, systemnachricht*, systemanweisung*, deine anweisung*, deine instruktion*,
    api-schlussel*, system prompt*, deinen prompt, passworter, geheime*, versteckte*
fr: prompt systeme, prompt du systeme, invite systeme, message systeme, instructions systeme, ton prompt, votre prompt,
    tes instructions, vos instructions, consignes secretes, instructions cachees, cles api, mots de passe, prompt cache,
    consignes internes
es: prompt del sistema, prompt de sistema, mensaje del sistema, instrucciones del sistema, tus instrucciones, tu prompt,
    instrucciones ocultas, indicaciones del sistema, claves api, contrasenas, prompt oculto
pt: prompt do sistema, prompt de sistema, mensagem do sistema, instrucoes do sistema, suas instrucoes, seu prompt,
    chaves de api, chaves api, senhas, prompt oculto
it: prompt di sistema, prompt del sistema, messaggio di sistema, istruzioni di sistema, tuo prompt, tue istruzioni,
    chiavi api, istruzioni nascoste
nl: systeemprompt*, systeembericht*, systeeminstructie*, jouw instructies, je instructies, api-sleutel*, wachtwoorden
sv: systemprompt*, systemmeddelande*
pl: prompt systemowy, systemowy prompt, polecenie systemowe, instrukcje systemowe, twoj prompt, prompta systemowego,
    hasla
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
fa: پرامپت*, دستورات سیستم, پیام سیستم*, اعلان سیستم*, دستورهای سیستم, دستورالعمل سیستم, کلیدهای api, دستورهای پنهان
ar: موجه النظام, مطالبة النظام, تعليمات النظام, رسالة النظام, برومبت*, مفاتيح api, التعليمات المخفية, موجه*
id: prompt sistem
he: הנחיית המערכת, הנחיות המערכת
""",
}
