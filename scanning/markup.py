"""Text that poses as part of the machinery: role tags, block tags, tool calls, scripts, hidden passages, commands.
Patterns are linear: no repeated group that can match the same text in two ways."""

from __future__ import annotations

import re
from dataclasses import dataclass

from scanning.verdict import Finding
from scanning.views import View


@dataclass(frozen=True, slots=True)
class Alternative:
    """A pattern, and words that a text which it matches has: of each group at least one. They are quick to look for."""

    pattern: re.Pattern[str]
    needs: tuple[tuple[str, ...], ...] = ()

    def search(self, text: str) -> re.Match[str] | None:
        """Return the first match in a folded text."""
        for words in self.needs:
            for word in words:
                if word in text:
                    break
            else:
                return None
        return self.pattern.search(text)


@dataclass(frozen=True, slots=True)
class PatternRule:
    """A pattern over a folded (lower-case) view."""

    name: str
    reason: str
    alternatives: tuple[Alternative, ...]

    def search(self, text: str) -> re.Match[str] | None:
        """Return the first match in a folded text; of several at one place that of the first alternative."""
        best: re.Match[str] | None = None
        for alternative in self.alternatives:
            match = alternative.search(text)
            if match is not None and (best is None or match.start() < best.start()):
                best = match
        return best


_TAGS = "contains a tag that poses as part of the prompt"
_TOOL = "poses as a tool call or its result"
_SCRIPT = "contains active content"
_IMAGE = "would leak data through a link or an image"
_COMMAND = "contains a command that harms or leaks"
_HIDDEN = "contains a passage that is hidden from people"


# Calls of a program that touch the network, the system, the clipboard or mail.
_REACHES_OUT = (
    r"(?:requests|socket|subprocess|smtp|urllib|ftplib|http\.client|httpx|aiohttp|paramiko|pexpect|os\.|shutil"
    r"|exec\(|eval\(|clipboard|pickle|wget|curl|bluetooth|keyboard|pynput)"
)


def _if(pattern: str, *needs: tuple[str, ...]) -> Alternative:
    return Alternative(re.compile(pattern), needs)


def _rule(name: str, reason: str, *alternatives: str | Alternative) -> PatternRule:
    found = (one if isinstance(one, Alternative) else _if(one) for one in alternatives)
    return PatternRule(name, reason, tuple(found))


SOURCES: tuple[PatternRule, ...] = (
    _rule(
        "forged_tag",
        _TAGS,
        _if(
            r"</?\s{0,3}(?:memor(?:y|ies)|thread_memories|earlier_conversation|snippet"
            r"|memory_summary)\b[^<>\n]{0,200}>",
            ("<",),
        ),
        _if(
            r"<\s{0,3}(?:system|assistant|developer|instructions?|admin|prompt|sys|system[_-](?:prompt|message"
            r"|instructions?|reminder)|im_start|important|override|policy|untrusted"
            r"|trusted)(?:\s[^<>\n]{0,100})?>",
            ("<",),
        ),
        _if(
            r"</\s{0,3}(?:system|assistant|user|human|developer|instructions?|admin|prompt|context|tool|sys"
            r"|system[_-](?:prompt|message|instructions?|reminder)|im_start|important|rules|override|policy"
            r"|conversation|message|turn|document|data|input|user_data|untrusted|trusted)\s{0,3}>",
            ("</",),
        ),
        _if(r"<\|[a-z0-9_\-/ ]{2,40}\|>", ("<|",)),
        _if(r"<｜[^<>｜\n]{2,40}｜>", ("<｜",)),
        _if(
            r"\[/?inst\]|<</?sys>>|\[/?(?:system|assistant|developer|system_prompt|system message|admin"
            r"|available_tools|tool_calls|tool_results)\]",
            ("[", "<<"),
        ),
        _if(r"<(?:start_of_turn|end_of_turn|bos|eos|s)>|</s>", ("<",)),
        _if(
            r"(?:^|[\n>\-=#*|]\s{0,3})(?:system|developer)[*_=\]#]{0,4}\s?:\s?[^\n]{0,60}\b(?:you|your|user"
            r"|instructions?|ignore|obey|reveal|always|never|only|must|rules?|assistant|override|mode|policy"
            r"|safety|admin|grant|disable|send|comply|now)\b",
            ("system", "developer"),
            (":",),
        ),
        _if(
            r"(?:^|[\n.>\-=#*|]\s{0,3})(?:assistant|system|developer|admin|administrator|operator|model"
            r"|security|ai) (?:note|notice|message|instruction|instructions|update|directive|alert|prompt"
            r"|command|override|reminder|announcement|event)\b[^\n:]{0,30}:",
            (":",),
            (
                "note",
                "notice",
                "message",
                "instruction",
                "update",
                "directive",
                "alert",
                "prompt",
                "command",
                "override",
                "reminder",
                "announcement",
                "event",
            ),
        ),
        _if(
            r"\[(?:system|admin|developer|assistant|root|priority|override|internal|operator|hidden|new"
            r"|important|urgent|critical|trusted|secure)(?:[ _\-:][a-z ]{0,30})?(?:notice|message|prompt|note"
            r"|override|instructions?|update|command|mode|alert|directive|rules?)\b[^\]\n]{0,60}\]",
            ("[",),
        ),
        _if(
            r"<\s{0,2}(?:end|start|begin|new|close)[ _\-](?:of[ _\-])?(?:session|conversation|context|prompt"
            r"|memory|memories|input|data|document|instructions?|user|system)[^<>\n]{0,30}>",
            ("<",),
        ),
        _if(
            r"(?:^|\n)#{1,6} ?(?:system|instruction|instructions|response|new instructions|developer"
            r"|assistant)\b ?:?",
            ("#",),
        ),
        _if(
            r"\n\s{0,4}(?:assistant|human|user|ai)\s?:\s|(?:^|[.?!] )(?:human"
            r"|user)\s?:[^\n]{0,200}[.?!]?\s(?:assistant|ai)\s?:",
            (":",),
            ("assistant", "human", "user", "ai"),
        ),
        _if(
            r"[\"']role[\"']\s{0,3}:\s{0,3}[\"'](?:system|developer|assistant"
            r"|tool)[\"']\s{0,3},\s{0,3}[\"']content[\"']\s{0,3}:\s{0,3}[\"']?[^\n\"'.]{6}",
            ("role",),
            ("content",),
        ),
        _if(
            r"-{2,5} ?(?:begin|end|start)(?: of)? (?:system|hidden|secret|developer|admin|new|memory|memories"
            r"|context|conversation|user|instructions|prompt|document|data|input)[ a-z]{0,40}-{2,5}",
            ("--",),
        ),
        _if(r"(?<!=)={3,20} ?(?:begin|end|start|system|new)[ a-z]{0,40}={3,}", ("===",)),
        _if(
            r"\[?(?:end of|begin|start of) (?:memories|memory|context|conversation|user data|prompt"
            r"|system)[ a-z]{0,20}\]",
            ("]",),
            ("of", "begin"),
        ),
        _if(r"<!--[^>]{0,40}\b(?:system|instruction|ignore|assistant|ai|prompt|agent|override|developer)\b", ("<!--",)),
        _if(r"\{\{[#/~]?\s?(?:system|assistant|user)\s?~?\}\}|\{%-?\s?(?:system|assistant)\b", ("{{", "{%")),
    ),
    _rule(
        "fake_tool_call",
        _TOOL,
        _if(
            r"</?\s{0,3}(?:antml:)?(?:function_calls?|function_results?|invoke|tool_calls?|tool_use"
            r"|tool_result|tool_response|tool_code|parameter|function|tools|execute|action)\b[^<>\n]{0,200}>",
            ("<",),
        ),
        _if(
            r"[\"'](?:tool|tool_name|function|function_call|tool_calls|recipient_name|action|tool_use"
            r"|name)[\"']\s{0,3}:\s{0,3}[\"'{\[][^\n]{0,200}?[\"'](?:args|arguments|parameters|params|input"
            r"|action_input|tool_input)[\"']\s{0,3}:\s{0,3}[{\"]",
            ("args", "arguments", "param", "input"),
            ('"', "'"),
            (":",),
        ),
        _if(r"\bto\s?=\s?(?:functions|multi_tool_use|python|tool|tools|browser|container)\b", ("=",)),
        _if(
            r"(?:^|\n)\s{0,4}(?:tool|function)[ _](?:result|output|response|call)s?\s?:|(?:^"
            r"|\n)\s{0,4}(?:action|tool|observation|function)\s?:\s{0,3}[a-z_]+(?:\("
            r"|[^\n]{0,80}\n\s{0,4}action input)",
            (":",),
            ("tool", "function", "action", "observation"),
        ),
        _if(
            r"\b(?:call|invoke|use|run|execute|trigger)\b (?:the )?[`\"']?[a-z]+(?:_[a-z]+)+[`\"']?(?: (?:tool"
            r"|function))? (?:with|to|on|and pass|using)\b",
            ("_",),
        ),
        _if(r"\b(?:call|invoke|run|execute) (?:the )?[`\"']?[a-z]+(?:_[a-z]+)+[`\"']?\s?\(", ("_",), ("(",)),
        _if(r"\[tool[_ ](?:result|call|output|response)[^\]\n]{0,60}\]", ("[tool",)),
        _if(r"\"type\"\s{0,3}:\s{0,3}\"(?:function|tool_use|tool_result|function_call)\"", ('"type"',)),
        _if(r"```(?:tool_code|tool_call|tool|function_call|tool_outputs?)\b", ("```",)),
        _if(r"(?:^|[.\n;:] ?)(?:add|update|delete)_memory\s?\(", ("_memory",)),
    ),
    _rule(
        "addressed_to_assistant",
        "speaks to the assistant instead of stating something",
        r"\b(?:note|ps|p\.s\.|message|instructions?|memo|attention|hint|reminder|hey|dear|hiring|task"
        r"|important|hello|warning|command|order)[ ,:]{1,2}(?:(?:to|for) )?(?:(?:the|any|all|every|this|my"
        r"|your|future|next) ){0,2}(?:language model|ai|llm|assistant|model|chatbot|agent|gpt|chatgpt"
        r"|claude|copilot)(?: (?:model|assistant|agent|system))?s?\s?(?::|,|;|—|–|-\s|reading|that reads"
        r"|processing|who reads|summari[sz]ing)",
        _if(
            r"\b(?:any|every|all|the|each|if you are an?) (?:language model|ai|llm|ai assistant|assistant"
            r"|ai agent|ai model|chatbot)s? (?:reading|that reads|who reads|processing|parsing|summari[sz]ing"
            r"|seeing|which reads|that sees)",
            ("reading", "reads", "processing", "parsing", "summari", "seeing", "sees"),
        ),
    ),
    _rule(
        "instruction_override",
        "sets policies of the assistant aside",
        _if(
            r"\b(?:be|become|you are|you're|act as|enable|activate) (?:now )?(?:the )?(?:dan|stan|dude|evilgpt"
            r"|wormgpt|fraudgpt|jailbreakgpt|chaosgpt|freedomgpt|evilbot|betterdan|do anything now)\b",
            ("dan", "stan", "dude", "gpt", "evilbot", "do anything now"),
        ),
        _if(
            r"\b(?:polic(?:y|ies)|safety|refuse|refusals?|moderation|restrictions?|guardrails?|censorship"
            r"|content_?filter|safe_?mode)\s?[=:]\s?[\"']?(?:none|off|never|false|0|null"
            r"|disabled)[\"']?\s?(?:[;,.\n]|$)",
            ("=", ":"),
        ),
    ),
    _rule(
        "persistence",
        "tells the assistant to copy or protect this text",
        _if(
            r"\b(?:copy|replicate|propagate|duplicate|spread|clone) (?:yourself|itself|this self)\b",
            ("yourself", "itself", "this self"),
        ),
    ),
    _rule(
        "active_content",
        _SCRIPT,
        _if(
            r"<script\b(?![^>]{0,60}>`)|</script|<iframe\b|<object\b|<embed\b"
            r"|<svg\b[^>]{0,200}\bon[a-z]{3,20}\s?=|<meta\b[^>]{0,100}http-equiv|<base\b[^>]{0,20}href",
            ("<",),
        ),
        _if(
            r"<[a-z][^<>]{0,300}\son(?:error|load|click|mouse[a-z]{2,6}|focus|toggle|begin|start"
            r"|animation[a-z]{3,9}|pointer[a-z]{2,8}|key[a-z]{2,6}|blur|input|change|submit|hashchange|message"
            r"|pageshow|resize|scroll|wheel|drag[a-z]{0,6}|copy|paste)\s{0,3}=",
            ("<",),
            ("=",),
        ),
        _if(r"(?:javascript|vbscript|livescript)\s{0,3}:\s{0,3}[^\s]", ("javascript", "vbscript", "livescript")),
        _if(r"data:text/html", ("data:text/html",)),
        _if(
            r"document\.(?:cookie|location|write)|window\.location\s?=|alert\s?\(|string\.fromcharcode"
            r"|eval\(atob",
            ("document.", "window.location", "alert", "string.fromcharcode", "eval(atob"),
        ),
    ),
    _rule(
        "leaking_link",
        _IMAGE,
        _if(
            r"!\[[^\]\n]{0,200}+\]\(\s{0,3}[a-z]{2,10}+://[^)\s\n]{1,300}(?:[?=&/][^)\n]{0,100}[<{\[$%]"
            r"|=\s{0,3}\)|\+\s?\w)",
            ("](",),
        ),
        _if(
            r"!?\[[^\]\n]{0,200}+\]\([a-z]{2,10}+://[^)\n]{0,200}[<{\[$][^)\n]{0,60}(?:message|data|chat|secret"
            r"|history|conversation|prompt|user|token|key|email|content|memory|memories|reply|summary|query"
            r"|text|base64|encoded|context)",
            ("](",),
        ),
        _if(
            r"[a-z]{2,10}+://[^\s\n]{1,200}[?&=/](?:<|\{|\[|\$\{)[^\n]{0,40}(?:message|data|chat|secret|history"
            r"|conversation|prompt|user|email|content|memory|memories|reply|summary|context|api_?key|password)",
            ("://",),
        ),
        _if(r"<img\b[^>]{0,200}src\s?=\s?[\"']?[a-z]{2,10}+://[^>\s]{0,300}[?&]", ("<img",)),
        _if(
            r"[?&]\w{1,20}=\s?[<{\[][^>\]}\n]{0,40}(?:message|data|chat|secret|history|conversation|prompt"
            r"|email|memory|memories|reply|summary|password)[^>\]}\n]{0,40}[>\]}]",
            ("?", "&"),
            ("=",),
        ),
        _if(
            r"[<{\[](?:secret|password|token|data|chat|message|key|encoded"
            r"|base64)[^>\]}\n]{0,30}[>\]}]\.[a-z0-9\-]{1,40}\.[a-z]{2,}",
            ("].", "}.", ">."),
        ),
        _if(r"[a-z]{2,10}+://[^\s\n]{1,200}[?&=][\"']?\s?\+\s?[a-z]", ("://",), ("+",)),
        _if(
            r"[a-z]{2,10}+://[^\s\n]{1,200}[=/][\"')]?,? (?:followed by|plus|and then|concatenated with|with"
            r"|and append|then) (?:the|all|every|your|his|her|their|user)\b",
            ("://",),
        ),
        _if(
            r"\b(?:repeat|print|say|output|echo|include|insert|recite"
            r"|link) [<\"'“\[(]{0,2}[a-z0-9\-]{3,40}\.(?:com|net|org|biz|info|ru|xyz|top|io"
            r"|example)\b[>\"'”\])]{0,2}(?: for me| now|:?$|[.:]?$)",
            (".com", ".net", ".org", ".biz", ".info", ".ru", ".xyz", ".top", ".io", ".example"),
        ),
    ),
    _rule(
        "harmful_command",
        _COMMAND,
        _if(
            r"\brm\s+-[a-z]*(?:rf|fr)[a-z]*\s+(?:--no-preserve-root\s+)?[\"']?(?:/(?:\s|$|[\"'*;<)&])|~|\*"
            r"|\$home|/home|/etc|/usr|/var)",
            ("rm",),
            ("-",),
            ("/", "~", "*", "$home"),
        ),
        _if(
            r"/dev/tcp/|\bnc\s+-[a-z]*e[a-z]*\s|\bncat\s+[^\n]{0,60}-e\b|mkfifo\s+/tmp|bash\s+-i\s+>"
            r"|reverse shell (?:to|at|on|in|into)|socket\.socket\([^\n]{0,200}subprocess",
            ("/dev/tcp/", "nc", "mkfifo", "bash", "reverse shell", "socket.socket"),
            ("/dev/tcp/", "-", "mkfifo", "reverse shell", "socket.socket"),
        ),
        _if(
            r"\b(?:curl|wget|iwr|invoke-webrequest|fetch)\b[^\n|;]{0,300}\|\s{0,3}(?:sudo\s+)?(?:ba|z|da|k)?sh\b",
            ("|",),
            ("curl", "wget", "iwr", "invoke-webrequest", "fetch"),
        ),
        _if(
            r"\b(?:curl|wget)\b[^\n]{0,300}(?:-d|--data[a-z-]{0,12}|-f|--form|-t|--upload-file|--post-(?:data"
            r"|file))[\s=]{1,3}[\"']?[^\s\n]{0,40}(?:@|\$\(|`|\$[a-z_{]|<\()",
            ("curl", "wget"),
        ),
        _if(
            r"\b(?:curl|wget)\b[^\n]{0,300}(?:\$\(|`)[^\n]{0,80}(?:cat|env|base64|printenv|history|id_rsa)",
            ("curl", "wget"),
        ),
        _if(
            r"--post-file=\S|\b(?:curl|wget|nc)\b[^\n]{0,200}/etc/(?:passwd|shadow)",
            ("--post-file=", "/etc/passwd", "/etc/shadow"),
        ),
        _if(
            r"\b(?:check(?:ing)? in with|report(?:ing)? to|connect(?:ing)? to|beacon(?:ing)? to"
            r"|contact(?:ing)?) (?:the |a |your )?(?:control|c2|c&c|command)[ \-](?:server|and|host|node"
            r"|channel)",
            ("check", "report", "connect", "beacon", "contact"),
            ("control", "c2", "c&c", "command"),
        ),
        _if(
            r"\b(?:package|library|module|dependency|plugin|image|script)\b[^\n]{0,40}\bfrom (?!pypi|npm"
            r"|registry|github|gitlab|crates|docker|conda|maven"
            r"|rubygems)[a-z0-9\-]{2,40}\.[a-z]{2,10}[^\n]{0,20}\binstead of",
            ("instead of",),
        ),
        _if(r"\\(?:x1b|033|u001b|e)\]52", ("]52",)),
        _if(r"base64\s+(?:-d|--decode|-D)\s{0,3}\|\s{0,3}(?:sudo\s+)?(?:ba|z|da)?sh|\|\s{0,3}base64 -d", ("base64",)),
        _if(r"(?:cat|printenv|env)\b[^\n|]{0,80}\|\s{0,3}(?:curl|nc|wget|ssh)\b", ("|",), ("cat", "env")),
        _if(
            r":\(\)\s?\{\s?:\|:&\s?\}\s?;:|\bdd\s+if=/dev/(?:zero|random|urandom)\s+of=/dev/|mkfs\.\w+\s+/dev/",
            (":()", "if=/dev/", "mkfs."),
        ),
        _if(
            r"(?:~/|/home/\w+/|\$home/)?\.(?:bashrc|zshrc|profile|bash_profile)\b[^\n]{0,80}(?:https?://|curl"
            r"|wget)",
            ("bashrc", "zshrc", "profile"),
        ),
        _if(
            r"authorized_keys\b[^\n]{0,60}(?:ssh-(?:rsa|ed25519)|attacker)|(?:ssh-(?:rsa|ed25519)|add"
            r"|append)\b[^\n]{0,120}authorized_keys",
            ("authorized_keys",),
        ),
        _if(
            r"\b(?:scp|rsync|sftp|ftp|nc|rclone)\b[^\n]{0,120}(?:id_rsa|id_ed25519|\.ssh\b|\.env\b|\.aws"
            r"|passwd|credentials|\.kube|wallet|shadow)",
            ("id_rsa", "id_ed25519", ".ssh", ".env", ".aws", "passwd", "credentials", ".kube", "wallet", "shadow"),
        ),
        _if(
            r"\b(?:install|run|execute|download)\b[^\n]{0,60}http://[^\s]{3,100}\.(?:sh|exe|tar\.gz|tgz|ps1|py"
            r"|zip|bat|msi|dmg|jar)\b",
            ("http://",),
        ),
        _if(
            r"drop\s+(?:table|database)\s+\w+\s{0,3}(?:;|--)|chmod\s+(?:-r\s+)?777\s+(?:/|~|\*|every|all\b)|os\.system\("
            r"|subprocess\.(?:call|run|popen)\(\[?[\"'](?:rm|curl|wget|nc|bash)",
            ("drop", "chmod", "os.system(", "subprocess."),
        ),
    ),
    _rule(
        "planted_code",
        "tells the assistant to plant code in its answers",
        _if(
            r"\b(?:following|subsequent|below|this|next) (?:piece of )?(?:code|script|python|shell"
            r"|snippet)\b[^`]{0,140}\byour\b[^`]{0,60}(?:code|codebase|response|implementation|solution"
            r"|algorithm|answer|output|elucidation|explanation|program|project|reply"
            r"|script)s?\b[^`]{0,60}```[^\0]{0,300}?" + _REACHES_OUT,
            ("```",),
        ),
        _if(
            r"\byour (?:[a-z]{1,20} ){0,2}(?:code|codebase|response|implementation|solution|algorithm|answer"
            r"|output|program|reply)s?\b[^`]{0,120}\b(?:following|subsequent|below|this) (?:code|script"
            r"|snippet)\b[^`]{0,80}```[^\0]{0,300}?" + _REACHES_OUT,
            ("```",),
        ),
        _if(
            r"\b(?:following|subsequent|below) code (?:snippet|block|excerpt|section"
            r"|segment)\b[^`]{0,120}```[^\0]{0,300}?" + _REACHES_OUT,
            ("```",),
        ),
    ),
    _rule(
        "hidden_passage",
        _HIDDEN,
        _if(
            r"<[a-z][^<>]{0,200}(?:display\s?:\s?none|visibility\s?:\s?hidden|font-size\s?:\s?0"
            r"|opacity\s?:\s?0(?![.\d])|color\s?:\s?(?:white|#fff|transparent)|left\s?:\s?-\d{3,}"
            r"|height\s?:\s?0)[^<>]{0,200}>",
            ("<",),
        ),
        _if(
            r"\[//\]:\s?#|\[comment\]:\s?[<#]|<!--[^>]{0,200}\b(?:send|reveal|ignore|obey|never|forward|tell"
            r"|delete|system|follow)\b",
            ("[//]", "[comment]", "<!--"),
        ),
        _if(
            r"<(?:template|noscript|details hidden|title|alt)\b[^>]{0,60}>[^<]{0,200}\b(?:ignore|obey"
            r"|instructions?|reveal|send)\b",
            ("<",),
        ),
    ),
)


def markup_findings(view: View) -> list[Finding]:
    """Matches of the pattern rules in a folded view, the first of each rule."""
    found: list[Finding] = []
    for rule in SOURCES:
        match = rule.search(view.text)
        if match:
            start, end = view.located(match.start(), match.end())
            found.append(Finding(kind="injection", rule=rule.name, start=start, end=end, reason=rule.reason))
    return found
