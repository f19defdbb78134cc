"""Patterns for text that poses as part of the prompt: role and block tags, tool calls, hidden passages, and text
addressed to the assistant."""

from __future__ import annotations

from scanning.patterns import PatternRule, pattern_rule

_ROLES = (
    r"system|assistant|developer|instructions?|admin|prompt|sys|system[_-](?:prompt|message|instructions?|reminder)"
    r"|im_start|important|override|policy|untrusted|trusted"
)

RULES: tuple[PatternRule, ...] = (
    pattern_rule(
        "forged_tag",
        "contains a tag that poses as part of the prompt",
        r"</?\s{0,3}(?:memor(?:y|ies)|thread_memories|earlier_conversation|snippet|memory_summary)\b[^<>\n]{0,200}>",
        rf"<\s{{0,3}}(?:{_ROLES})(?:\s[^<>\n]{{0,100}})?>",
        rf"</\s{{0,3}}(?:{_ROLES}|user|human|context|tool|rules|conversation|message|turn|document|data|input|user_data)"
        r"\s{0,3}>",
        r"<\|[a-z0-9_\-/ ]{2,40}\|>",
        r"<｜[^<>｜\n]{2,40}｜>",
        r"\[/?inst\]|<</?sys>>|\[/?(?:system|assistant|developer|system_prompt|system message|admin"
        r"|available_tools|tool_calls|tool_results)\]",
        r"<(?:start_of_turn|end_of_turn|bos|eos|s)>|</s>",
        r"(?:^|[\n>\-=#*|]\s{0,3})(?:system|developer)[*_=\]#]{0,4}\s?:\s?[^\n]{0,60}\b(?:you|your|user"
        r"|instructions?|ignore|obey|reveal|always|never|only|must|rules?|assistant|override|mode|policy|safety"
        r"|admin|grant|disable|send|comply|now)\b",
        r"(?:^|[\n.>\-=#*|]\s{0,3})(?:assistant|system|developer|admin|administrator|operator|model|security"
        r"|ai) (?:note|notice|message|instruction|instructions|update|directive|alert|prompt|command|override"
        r"|reminder|announcement|event)\b[^\n:]{0,30}:",
        r"\[(?:system|admin|developer|assistant|root|priority|override|internal|operator|hidden|new|important"
        r"|urgent|critical|trusted|secure)(?:[ _\-:][a-z ]{0,30})?(?:notice|message|prompt|note|override"
        r"|instructions?|update|command|mode|alert|directive|rules?)\b[^\]\n]{0,60}\]",
        r"<\s{0,2}(?:end|start|begin|new|close)[ _\-](?:of[ _\-])?(?:session|conversation|context|prompt|memory"
        r"|memories|input|data|document|instructions?|user|system)[^<>\n]{0,30}>",
        r"(?:^|\n)#{1,6} ?(?:system|instruction|instructions|response|new instructions|developer|assistant)\b ?:?",
        r"\n\s{0,4}(?:assistant|human|user|ai)\s?:\s|(?:^|[.?!] )(?:human"
        r"|user)\s?:[^\n]{0,200}[.?!]?\s(?:assistant|ai)\s?:",
        r"[\"']role[\"']\s{0,3}:\s{0,3}[\"'](?:system|developer|assistant"
        r"|tool)[\"']\s{0,3},\s{0,3}[\"']content[\"']\s{0,3}:\s{0,3}[\"']?[^\n\"'.]{6}",
        r"--{1,4} ?(?:begin|end|start)(?: of)? (?:system|hidden|secret|developer|admin|new|memory|memories|context"
        r"|conversation|user|instructions|prompt|document|data|input)[ a-z]{0,40}-{2,5}",
        r"=(?<!==)={2,19} ?(?:begin|end|start|system|new)[ a-z]{0,40}={3,}",
        r"<!--[^>]{0,40}\b(?:system|instruction|ignore|assistant|ai|prompt|agent|override|developer)\b",
        r"\{\{[#/~]?\s?(?:system|assistant|user)\s?~?\}\}|\{%-?\s?(?:system|assistant)\b",
    ),
    pattern_rule(
        "fake_tool_call",
        "poses as a tool call or its result",
        r"</?\s{0,3}(?:antml:)?(?:function_calls?|function_results?|invoke|tool_calls?|tool_use|tool_result"
        r"|tool_response|tool_code|parameter|function|tools|execute|action)\b[^<>\n]{0,200}>",
        r"[\"'](?:tool|tool_name|function|function_call|tool_calls|recipient_name|action|tool_use"
        r"|name)[\"']\s{0,3}:\s{0,3}[\"'{\[][^\n]{0,200}?[\"'](?:args|arguments|parameters|params|input"
        r"|action_input|tool_input)[\"']\s{0,3}:\s{0,3}[{\"]",
        r"\bto\s?=\s?(?:functions|multi_tool_use|python|tool|tools|browser|container)\b",
        r"(?:^|\n)\s{0,4}(?:tool|function)[ _](?:result|output|response|call)s?\s?:|(?:^|\n)\s{0,4}(?:action|tool"
        r"|observation|function)\s?:\s{0,3}[a-z_]+(?:\(|[^\n]{0,80}\n\s{0,4}action input)",
        r"\b(?:call|invoke|use|run|execute|trigger)\b (?:the )?[`\"']?[a-z]+(?:_[a-z]+)+[`\"']?(?: (?:tool"
        r"|function))? (?:with|to|on|and pass|using)\b",
        r"\b(?:call|invoke|run|execute) (?:the )?[`\"']?[a-z]+(?:_[a-z]+)+[`\"']?\s?\(",
        r"(?:^|[.\n;:] ?)(?:add|update|delete)_memory\s?\(",
    ),
    pattern_rule(
        "addressed_to_assistant",
        "speaks to the assistant instead of stating something",
        r"\b(?:note|ps|p\.s\.|message|instructions?|memo|attention|hint|reminder|hey|dear|hiring|task|important"
        r"|hello|warning|command|order)[ ,:]{1,2}(?:(?:to|for) )?(?:(?:the|any|all|every|this|my|your|future"
        r"|next) ){0,2}(?:language model|ai|llm|assistant|model|chatbot|agent|gpt|chatgpt|claude"
        r"|copilot)(?: (?:model|assistant|agent|system))?s?\s?(?::|,|;|—|–|-\s|reading|that reads|processing"
        r"|who reads|summari[sz]ing)",
        r"\b(?:any|every|all|the|each|if you are an?) (?:language model|ai|llm|ai assistant|assistant|ai agent"
        r"|ai model|chatbot)s? (?:reading|that reads|who reads|processing|parsing|summari[sz]ing|seeing"
        r"|which reads|that sees)",
    ),
    pattern_rule(
        "instruction_override",
        "sets policies of the assistant aside",
        r"\b(?:polic(?:y|ies)|safety|refuse|refusals?|moderation|restrictions?|guardrails?|censorship|content_?filter"
        r"|safe_?mode)\s?[=:]\s?[\"']?(?:none|off|never|false|0|null|disabled)[\"']?\s?(?:[;,.\n]|$)",
    ),
    pattern_rule(
        "persistence",
        "tells the assistant to copy or protect this text",
        r"\b(?:copy|replicate|propagate|duplicate|spread|clone) (?:yourself|itself|this self)\b",
    ),
    pattern_rule(
        "hidden_passage",
        "contains a passage that is hidden from people",
        r"<[a-z][^<>]{0,200}(?:display\s?:\s?none|visibility\s?:\s?hidden|font-size\s?:\s?0"
        r"|opacity\s?:\s?0(?![.\d])|color\s?:\s?(?:white|#fff|transparent)|left\s?:\s?-\d{3,}"
        r"|height\s?:\s?0)[^<>]{0,200}>",
        r"\[//\]:\s?#|\[comment\]:\s?[<#]"
        r"|<!--[^>]{0,200}\b(?:send|reveal|ignore|obey|never|forward|tell|delete|system|follow)\b",
    ),
)
