"""Patterns for text that is harmful when it is shown or run: scripts, leaking links, commands, and planted code."""

from __future__ import annotations

from scanning.patterns import PatternRule, pattern_rule

RULES: tuple[PatternRule, ...] = (
    pattern_rule(
        "active_content",
        "contains active content",
        r"<script\b(?![^>]{0,60}>`)|</script|<iframe\b|<object\b|<embed\b|<svg\b[^>]{0,200}\bon[a-z]{3,20}\s?="
        r"|<meta\b[^>]{0,100}http-equiv|<base\b[^>]{0,20}href",
        r"<[a-z][^<>]{0,300}\son(?:error|load|click|mouse[a-z]{2,6}|focus|toggle|begin|start|animation[a-z]{3,9}"
        r"|pointer[a-z]{2,8}|key[a-z]{2,6}|blur|input|change|submit|hashchange|message|pageshow|resize|scroll"
        r"|wheel|drag[a-z]{0,6}|copy|paste)\s{0,3}=",
        r"(?:javascript|vbscript|livescript)\s{0,3}:\s{0,3}[^\s]",
        r"data:text/html",
        r"document\.(?:cookie|location|write)|window\.location\s?=|alert\s?\(|string\.fromcharcode|eval\(atob",
    ),
    pattern_rule(
        "leaking_link",
        "would leak data through a link or an image",
        r"!\[[^\]\n]{0,200}+\]\(\s{0,3}[a-z]{2,10}+://[^)\s\n]{1,300}(?:[?=&/][^)\n]{0,100}[<{\[$%]|=\s{0,3}\)"
        r"|\+\s?\w)",
        r"[a-z]{2,10}+://[^\s\n]{1,200}[?&=/](?:<|\{|\[|\$\{)[^\n]{0,40}(?:message|data|chat|secret|history"
        r"|conversation|prompt|user|email|content|memory|memories|reply|summary|context|api_?key|password)",
        r"<img\b[^>]{0,200}src\s?=\s?[\"']?[a-z]{2,10}+://[^>\s]{0,300}[?&]",
        r"[a-z]{2,10}+://[^\s\n]{1,200}[?&=][\"']?\s?\+\s?[a-z]",
        r"[a-z]{2,10}+://[^\s\n]{1,200}[=/][\"')]?,? (?:followed by|plus|and then|concatenated with|with"
        r"|and append|then) (?:the|all|every|your|his|her|their|user)\b",
        r"\b(?:repeat|print|say|output|echo|include|insert|recite|link) [<\"'“\[(]{0,2}[a-z0-9\-]{3,40}\.(?:com"
        r"|net|org|biz|info|ru|xyz|top|io|example)\b[>\"'”\])]{0,2}(?: for me| now|:?$|[.:]?$)",
    ),
    pattern_rule(
        "harmful_command",
        "contains a command that harms or leaks",
        r"\brm\s+-[a-z]*(?:rf|fr)[a-z]*\s+(?:--no-preserve-root\s+)?[\"']?(?:/(?:\s|$|[\"'*;<)&])|~|\*|\$home"
        r"|/home|/etc|/usr|/var)",
        r"/dev/tcp/",
        r"\bnc(?:\s+-[a-z]*e[a-z]*\s|at\s+[^\n]{0,60}-e\b)",
        r"mkfifo\s+/tmp|reverse shell (?:to|at|on|in|into)|bash\s+-i\s+>|socket\.socket\([^\n]{0,200}subprocess",
        r"\b(?:curl|wget|iwr|invoke-webrequest|fetch)\b[^\n|;]{0,300}\|\s{0,3}(?:sudo\s+)?(?:ba|z|da|k)?sh\b",
        r"\b(?:curl|wget)\b[^\n]{0,300}(?:\$\(|`)[^\n]{0,80}(?:cat|env|base64|printenv|history|id_rsa)",
        r"\b(?:check(?:ing)? in with|report(?:ing)? to|connect(?:ing)? to|beacon(?:ing)? to"
        r"|contact(?:ing)?) (?:the |a |your )?(?:control|c2|c&c|command)[ \-](?:server|and|host|node|channel)",
        r"\b(?:package|library|module|dependency|plugin|image|script)\b[^\n]{0,40}\bfrom (?!pypi|npm|registry"
        r"|github|gitlab|crates|docker|conda|maven|rubygems)[a-z0-9\-]{2,40}\.[a-z]{2,10}[^\n]{0,20}\binstead of",
        r"\\(?:x1b|033|u001b|e)\]52",
        r"base64\s+(?:-d|--decode|-D)\s{0,3}\|\s{0,3}(?:sudo\s+)?(?:ba|z|da)?sh|\|\s{0,3}base64 -d",
        r"(?:cat|printenv|env)\b[^\n|]{0,80}\|\s{0,3}(?:curl|nc|wget|ssh)\b",
        r"\.(?:bashrc|zshrc|profile|bash_profile)\b[^\n]{0,80}(?:https?://|curl|wget)",
        r"authorized_keys\b[^\n]{0,60}(?:ssh-(?:rsa|ed25519)|attacker)|(?:ssh-(?:rsa|ed25519)|add"
        r"|append)\b[^\n]{0,120}authorized_keys",
        r"\b(?:scp|rsync|sftp|ftp|nc|rclone)\b[^\n]{0,120}(?:id_rsa|id_ed25519|\.ssh\b|\.env\b|\.aws|passwd"
        r"|credentials|\.kube|wallet|shadow)",
        r"drop\s+(?:table|database)\s+\w+\s{0,3}(?:;|--)|chmod\s+(?:-r\s+)?777\s+(?:/|~|\*|every|all\b)"
        r"|os\.system\(|subprocess\.(?:call|run|popen)\(\[?[\"'](?:rm|curl|wget|nc|bash)",
    ),
    pattern_rule(
        "planted_code",
        "tells the assistant to plant code in its answers",
        r"\b(?:following|subsequent|below) code (?:snippet|block|excerpt|section|segment)\b[^`]{0,120}"
        r"```[^\0]{0,300}?"
        # Code that uses the network, the system, the clipboard or mail.
        r"(?:requests|socket|subprocess|smtp|urllib|ftplib|http\.client|httpx|aiohttp|paramiko|pexpect|os\.|shutil"
        r"|exec\(|eval\(|clipboard|pickle|wget|curl|bluetooth|keyboard|pynput)",
    ),
)
