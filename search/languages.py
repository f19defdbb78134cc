"""Function words by language, the stemmers of scripts, and other word lists."""

from __future__ import annotations

from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FUNCTION_WORDS: Final[dict[str, frozenset[str]]] = {
    "english": _words(
        """a an the and or but nor so if then than that this these those there here of in on at to from for with
        without by about into onto over under up down out off as is am are was were be been being do does did doing
        done have has had having i me my mine we us our ours you your yours he him his she her hers it its they them
        their theirs one ones will would shall should can could may might must not no yes too very just also only
        own same such both each all any some more most other another again once now still yet ever i'm i've i'd i'll
        it's that's there's don't doesn't didn't won't can't isn't aren't wasn't let's im ive dont didnt doesnt cant
        hows whats thats who whom whose what which when where why how"""
    ),
    "german": _words(
        """der die das den dem des ein eine einen einem einer eines und oder aber doch nicht kein keine keinen ist sind
        war waren bin bist sein hat habe haben hatte ich mich mir mein meine meinen meinem meiner du dich dir dein
        deine er sie es wir uns unser unsere ihr euch ihm ihn ihnen sich zu zum zur mit von vom für auf an am im in
        aus bei nach über unter um als auch wie wo was wer wen wem wann warum wieso welche welcher welches welchen
        noch nur schon so dann dass wenn weil man kann können muss soll will wird werden wurde bis seit jetzt gibt"""
    ),
    "french": _words(
        """le la les un une des du de et ou mais ne pas ni je me moi mon ma mes tu te toi ton ta tes il elle on nous
        notre nos vous votre vos ils elles leur leurs se sa son ses ce cet cette ces que qui quoi dont où quand
        comment pourquoi quel quelle quels quelles est sont était suis es êtes être ai as a avons avez ont avait
        avoir à au aux en dans sur sous avec sans pour par chez plus très y fait faire peut dois doit"""
    ),
    "spanish": _words(
        """el la los las un una unos unas de del y o u pero no ni yo me mi mis mí tú te ti tu tus él ella se su sus nos
        nuestro nuestra nuestros vosotros os le les lo que qué quién quien cuál cual cuándo cuando dónde donde cómo
        como cuánto cuántos por para con sin en a al es son era soy eres está están estoy hay ha han he tiene tengo
        muy más ya este esta estos estas ese esa eso hacer puedo debo"""
    ),
    "portuguese": _words(
        """o a os as um uma de do da dos das e ou mas não nem eu me meu minha meus minhas tu te teu tua você ele ela
        nós nosso nossa se seu sua que quem qual quando onde como porque por para com sem em no na nos nas ao à é
        são era sou está estou há tem tenho muito mais já este esta isso"""
    ),
    "italian": _words(
        """il lo la i gli le un uno una di del della dei delle e o ma non né io mi mio mia miei mie tu ti tuo tua lui
        lei noi nostro nostra voi si suo sua che chi quale quando dove come perché per con senza in nel nella a al
        alla da dal è sono era sei ha ho hanno molto più già questo questa"""
    ),
    "dutch": _words(
        """de het een en of maar niet geen ik me mij mijn jij je jou jouw hij zij ze we wij ons onze u uw hun zich dat
        die dit deze wie wat waar wanneer waarom hoe welke welk is zijn was waren ben bent heb heeft hebben had te
        tot van voor met zonder op aan in uit bij naar over om als ook nog al er kan moet wil wordt worden"""
    ),
    "russian": _words(
        """и а но или не ни в во на с со к ко о об от до из у за по под над для при без через я меня мне мной мой моя
        моё мое мои моего моей моих ты тебя тебе твой твоя мы нас нам наш наша наши вы вас вам ваш он она оно они
        его её ее их ему ей им себя свой это этот эта эти тот та те что кто где когда куда откуда как почему какой
        какая какие каким каком сколько чей ли же бы уже ещё еще только был была были быть есть там тут так то все
        всё"""
    ),
    "persian": _words(
        """و یا اما در به از با برای تا که را این آن هم نیز من ما تو شما او آنها ایشان خود است هست بود شد می نمی ها های
        ای یک چه چی کی کجا چرا چطور چگونه کدام آیا چند باید هستم دارم دارد کنم کند کن بر روی هر پیش ام ات اش مان"""
    ),
}

ENGLISH_ONLY: Final = _words(
    """the and with without from into about this that these those there here their theirs they them his she who whom
        whose which what when where why how you your yours would should could might does did doing been being were has
        having each both other another again only such than very always never every"""
)
"""Frequent English words that no other common language in Latin script has: "her" is Danish, "to" Polish, "are"
Romanian, "my" Afrikaans."""

CHINESE_FUNCTION_WORDS: Final = _words(
    "什么时候 什么 时候 怎么 怎样 多少 哪里 哪儿 哪个 哪些 为什么 是否 我们 你们 他们 可以 能不能 应该 请问 现在 这个 "
    "那个 一个 吗 呢 吧 的 了 是 我 你 他 她 它 在 和 与 或 有 也 都 就 要 会 请 把 被 给 谁 几 个"
)

SCRIPT_STEMMERS: Final[dict[str, str]] = {
    "cyrillic": "russian",
    "arabic": "persian",
    "greek": "greek",
    "devanagari": "hindi",
    "armenian": "armenian",
    "tamil": "tamil",
}

FIRST_PERSON: Final = _words(
    """i me my mine myself we us our ours ourselves i'm i've i'd i'll im ive ich mich mir mein meine meinen meinem
        meiner meines wir uns unser unsere unseren unserem unserer hab habe je j moi mon ma mes nous notre nos yo mi
        mis mí nosotros nuestro nuestra nuestros nuestras tengo debo puedo voy quiero necesito estoy soy eu meu
        minha meus minhas nosso nossa nossos nossas tenho posso devo vou quero preciso estou tô sou io mio mia miei
        mie ho vado voglio ik mij mijn ons onze wij я меня мне мной мой моя моё мое мои моего моей моих моему моим
        мою мы нас нам наш наша наше наши нашего нашей нашим наших могу хочу من ما خودم مال mam mnie moja moje mój
        mogę muszę jestem chcę jag mig mitt mina oss jeg meg saya aku tôi benim bana bizim мені мене мій أنا عندي
        εγώ μου"""
)
"""Words with which a message refers to its writer, or to what is theirs."""

POLITE_FRAMES: Final = (
    r"\b(?:tell|give|show|help|teach|write|explain|let|make|find|send|draw|read|ask)(?:\s+to)?\s+(?:me|us)\b"
    r"|\b(?:sag|erklär|zeig|gib|hilf|schreib|nenn|erzähl)\w*\s+(?:mir|uns)\b"
    r"|\b(?:dis|donne|montre|explique|aide|écris|raconte)[z]?[- ](?:moi|nous)\b"
    r"|\b(?:скажи|расскажи|объясни|покажи|дай|помоги|напиши|подскажи)\w*\s+(?:мне|нам)\b"
    r"|(?:告诉|帮|教|给)我"
)
"""Phrases in which a first-person word only asks for an answer ("tell me a riddle")."""

FRAME_WORDS: Final = _words("me us mir uns moi nous мне нам")
FRAME_PART: Final = "我"
"""The first-person words that end these phrases, and the character that does so in scripts without spaces."""

OWN_FAMILY: Final = _words(
    """mum mom mam dad mummy mommy daddy grandma granny grandpa grandad granddad nana mama mami papa papi oma opa maman
        mamie tonton mamá papá abuela abuelo mãe pai vovó vovô vó vô mamma papà babbo nonna nonno babcia dziadek мама
        маму маме мамы мамой папа папу папе папы папой бабушка бабушке бабушку дедушка дедушке дедушку annem babam
        abim ablam kardeşim eşim مامان مامانم بابا بابام"""
)
"""Names for members of one's own family that need no possessive."""

OTHERS_FAMILY: Final = _words(
    """a an another any every each the your his her their this that one new single ein eine einer einem einen jede jeder
        der die das dein deine deiner une un una uma um"""
)
"""Words that, before such a name, make it someone else's or anybody's family."""

FIRST_PERSON_PARTS: Final = ("我", "咱", "私", "僕", "俺", "妈", "爸", "奶奶", "爷爷", "मेर", "मुझ", "मैं", "हमार")
"""The same for scripts without spaces, matched as substrings."""
