"""Which requests are background tasks of the client and which are turns. The requests are shortened forms of those that
clients send; gateway/client_tasks.toml names their sources."""

import json
from typing import Any, NamedTuple

import pytest
from django.http.request import HttpHeaders

from gateway.api.anthropic_body import read_messages
from gateway.api.openai_body import completion_body
from gateway.api.responses_body import read_responses_body
from gateway.client_tasks import CODEX_METADATA, known_requests

Message = dict[str, Any]
TOOL = {"type": "function", "function": {"name": "lookup", "parameters": {"type": "object"}}}
MEMORY_TOOLS = [{"type": "function", "function": {"name": name}} for name in ("set_memory", "delete_memory")]
SCHEMA_TOOL = {"tools": [{"type": "function", "function": {"name": "respond_in_schema"}}]}
LONG = "The kettle is blue and stands on the shelf. " * 400
SIGNS = {"single", "history", "no_tools", "not_streamed", "tiny", "one_token", "memory_tools", "answer_tool", "whole"}


class Row(NamedTuple):
    """A request; `body` holds the fields besides the messages."""

    name: str
    messages: list[Message]
    body: dict[str, Any] = {}
    headers: dict[str, str] = {}


def user(*texts: str) -> list[Message]:
    """Return user messages, each but the last followed by an answer."""
    said = [message for text in texts for message in (_message("user", text), _message("assistant", "I see."))]
    return said[:-1]


def system(text: str) -> list[Message]:
    return [_message("system", text)]


def _message(role: str, text: str) -> Message:
    return {"role": role, "content": text}


def history_in(text: str) -> str:
    return f"{text}\n\n<chat_history>\nUSER: hi\nASSISTANT: {LONG}\n</chat_history>"


CALL = {"role": "assistant", "content": None, "tool_calls": [
    {"id": "c1", "type": "function", "function": {"name": "lookup", "arguments": "{}"}}]}  # fmt: skip
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "found"}
STREAM = {"stream": True}
TOOLS = {"tools": [TOOL]}
OPEN_WEBUI_TITLE = history_in(
    "### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history.\n### Guidelines:\n- …"
)

TASKS = [
    Row("Open WebUI: title", user(OPEN_WEBUI_TITLE)),
    Row("Open WebUI: title, streamed", user(OPEN_WEBUI_TITLE), STREAM),
    Row("Open WebUI: tags", user(history_in("### Task:\nGenerate 1-3 broad tags categorizing the main themes"))),
    Row("Open WebUI: follow-ups", user(history_in("### Task:\nSuggest 3-5 relevant follow-up questions or prompts"))),
    Row("Open WebUI: queries", user(history_in("### Task:\nAnalyze the chat history to determine the necessity of"))),
    Row("Open WebUI: image prompt", user(history_in("### Task:\nGenerate a detailed prompt for am image generation"))),
    Row("Open WebUI: autocompletion", user("### Task:\nYou are an autocompletion system. Continue the text…<type>")),
    Row("Open WebUI: own prompt", user(history_in("Gib dem Gespräch eine kurze Überschrift.")), {"max_tokens": 1000}),
    Row("Open WebUI: emoji", user("Your task is to reflect the speaker's likely facial expression through a fitting"
                                  " emoji. Interpret emotions from the message.\n\nMessage: hi")),
    Row("Open WebUI: merging", user("You have been provided with a set of responses from various models to the latest "
                                    'user query: "hi"\n\nYour task is to synthesize these responses')),
    Row("Open WebUI: choosing tools", system("Available Tools: [{\"name\": \"x\"}]\n\nYour task is to choose…")
        + user("History:\nUSER: hi\nQuery: hi")),
    Row("Open WebUI: next messages", user(history_in("### Task:\nPredict 3-5 useful messages this user might naturally"
        " send next to advance their current objective.")), STREAM),
    Row("Open WebUI: compaction", user("### Task:\nSummarize the conversation history that will be compacted out of "
        "the active chat context.\n\n### Instructions:\n- …\n\n### Recent Messages Kept In Context:\nUSER: hi")),
    Row("Open WebUI: memory", system("You are Open WebUI's private memory reviewer. Return only valid JSON.")
        + user("Review the completed conversation turn and decide whether long-term memory should change.\n…")),
    Row("Open WebUI: memory, by header", user("Say hello"), headers={"X-OpenWebUI-Task": "memory_review"}),
    Row("Open WebUI: header", user("Say hello"), headers={"X-OpenWebUI-Task": "title_generation"}),
    Row("Open WebUI: compaction header", user("a", "b"), headers={"X-OpenWebUI-Task": "context_compaction"}),
    Row("metadata.task", user("Say hello"), {"metadata": {"task": "tags_generation"}}),
    Row("LibreChat: title", user("Provide a concise, 5-word-or-less title for the conversation, using title case\n…")),
    Row("LibreChat: title and language", user("Analyze this conversation and provide:\n1. The detected language of …")),
    Row("LibreChat: summary with tools", user("a", "b", "Hold on, before you continue I need you to write me a "
                                             "checkpoint of everything so far."), TOOLS | STREAM),
    Row("LibreChat: summary, once more", user("a", "b", "Hold on again, update your checkpoint. Merge the new messages "
                                              "into your existing checkpoint and give me …"), TOOLS | STREAM),
    Row("LibreChat: memory", user("# Current Chat:\n\nUser: hi"), {"tools": MEMORY_TOOLS}),
    Row("NextChat: title", user("hi", "Please generate a four to five word title summarizing our conversation without"),
        STREAM),
    Row("NextChat: summary", [*user("hi"), _message("assistant", "Hello."), *system(
        "Summarize the discussion briefly in 200 words or less to use as a prompt for future context.")]),
    Row("Chatbox: title", user("Based on the chat history, give this conversation a name.\nKeep it short.")),
    Row("opencode: title", [*system("You are a title generator. You output ONLY a thread title."),
                            _message("user", "Generate a title for this conversation:"), _message("user", "hi")],
        STREAM, {"X-Session-Id": "ses_1"}),
    Row("a summarizer of one's own", system("You are a professional conversation summarizer.") + user("hi\nHello.")),
    Row("opencode: compaction", user("a", "b", "Provide a detailed prompt for continuing our conversation above."),
        STREAM),
    Row("opencode: compaction, later", user("Here is the conversation so far:\n\n<conversation>\n[User]: hi\n"
        "</conversation>\n\nCreate a new anchored summary from the conversation history in the …\n- Do not mention the "
        "summary process or that context was compacted."), STREAM),
    Row("opencode: its agent for compaction", system("You are a context summarization agent. You are given a "
        "conversation between a user and an agent. …") + user("Here is the summary of the …"), STREAM),
    Row("opencode: anchored summary", user("a", "Create a new anchored summary from the history above."), STREAM),
    Row("Crush: title", system("you will generate …") + user("Generate a concise title for the following content:\nhi"),
        {"max_tokens": 40} | STREAM),
    Row("Crush: summary", user("a", "b", "Provide a detailed summary of our conversation above."), STREAM),
    Row("aider: commit message", system("You are an expert software engineer that generates concise, one-line Git "
                                        "commit messages based on the provided diffs.") + user("# Diffs:\n-a\n+b")),
    Row("aider: summary", system("*Briefly* summarize this partial conversation about code.") + user("# USER\n…")),
    Row("Cline: condensing", user("a", "b", "Summarize this session for continuation.\n…"), STREAM | TOOLS),
    Row("opencommit", system("You are to act as an author of a commit message in git. Your mission is to create …")
        + user("diff --git a/src/server.ts …", "diff --git a/tea.txt …")),
    Row("aicommits", system("Generate a concise git commit message title in present tense …") + user("diff --git a/…")),
    Row("aicommits: body", system("You are generating the short body (description) of a git commit message. You are …")
        + user("Commit message title:\n…")),
    Row("OpenAI Guardrails", system("You are a security system designed to detect adversarial jailbreak attempts …")
        + user('# Analysis Input\n\n{"conversation": [{"role": "user", "content": "hi"}], "latest_input": "hi"}')),
    Row("Cline: commit message", system("You are a helpful assistant that generates informative git commit messages "
                                        "based on git diffs output.") + user("Based on the provided git diff: -a +b"),
        STREAM),
    Row("Roo Code: better prompt", user("Generate an enhanced version of this prompt (reply with only the enhanced "
                                        "prompt …):\n\nmake tea"), STREAM),
    Row("Roo Code: condensing", system("You are a helpful AI assistant tasked with summarizing conversations.")
        + user("a", "b", "Summarize the conversation so far, as described in the prompt instructions."), STREAM),
    Row("Continue: title", user("Given the following... please reply with a title for the chat that is 3-4 words\n…"),
        {"max_tokens": 16} | STREAM),
    Row("Continue: compaction by cn", user("a", "Please provide a concise summary of our conversation so far, "
        "capturing the key context, decisions made, and current state. Format this as a single comprehensive …"),
        STREAM | TOOLS),
    Row("Continue: compaction", user("a", "b", "Create a comprehensive summary of this conversation."), STREAM),
    Row("Zed: title", user("a", "b", "Generate a concise 3-7 word title for this conversation, omitting punctuation."),
        STREAM),
    Row("goose: compaction", system("…") + user("Please summarize the conversation history provided in the system "
                                               "prompt."), STREAM),
    Row("goose: title", system("Based on the conversation so far, provide a concise description of this session in four"
                               " words or less.") + user("Here are the first few user messages:\nhi")),
    Row("Qwen Code: memory", system("You are now acting as the managed memory extraction subagent. …") + user("a", "b"),
        STREAM | TOOLS),
    Row("Gemini CLI: compression", system("You are the component that summarizes internal chat history into a given "
                                          "structure.") + user("a", "b", "First, reason in your scratchpad."), STREAM),
    Row("Gemini CLI: who speaks next", user("a", "b", "Analyze *only* the content and structure of your response"),
        SCHEMA_TOOL),
    Row("Qwen Code: title", system("Generate a concise, sentence-case title (3-7 words) that captures what this …")
        + user("Conversation so far:\nUser: hi\n\nGenerate the session title now."), SCHEMA_TOOL),
    Row("Qwen Code: choosing memories", system("You are selecting memories that will be useful to an AI coding …")
        + user("Query: what do I like?\n\nAvailable memories:\n- [user] tea.md: likes tea"), SCHEMA_TOOL),
    Row("Qwen Code: recap", system("You generate session recaps for a programming assistant CLI.\n\nThe user …")
        + user("a", "b", "Generate the recap now."), STREAM),
    Row("Qwen Code: label", system("Write a short summary label describing what these tool calls accomplished. It …")
        + user("Tools completed:\n\nTool: glob\n\nLabel:")),
    Row("Qwen Code: project summary", system("You are Qwen Code, …") + user("a", "Please analyze the conversation "
        "history above and generate a comprehensive project summary in markdown format. Focus on …")),
    Row("Qwen Code: pages", system("Extract and summarize the requested information from the provided web content. Be "
        "concise and accurate.") + user("The user requested the following: \"prices\".\n\n---\n…\n---"), STREAM),
    Row("Claude Code: suggestion", user("a", "b", "[SUGGESTION MODE: Suggest what the user might type next]"),
        STREAM | TOOLS),
    Row("Claude Code: suggestion, in its loop", [*user("a", "[SUGGESTION MODE: …]"), CALL, RESULT], STREAM | TOOLS),
    Row("Claude Code: a reminder after it", [*user("a", "[SUGGESTION MODE: …]"), *system("It is Monday.")], TOOLS),
    Row("Claude Code: judging a command", user("<policy_spec>\n…</policy_spec>\n\nCommand: ls")),
    Row("Claude Code: title", system("Generate a concise, sentence-case title (3-7 words)") + user("<session>hi")),
    Row("Claude Code: title, later", system("You are a Claude agent, built on Anthropic's Claude Agent SDK.\n\nYou are "
        "naming a coding session so the user can pick it out of …") + user("<session>\nhi\n</session>\n\nWrite the …")),
    Row("Claude Code: name", system("You are Claude Code, Anthropic's official CLI for Claude.\n\nGenerate a short "
        "kebab-case name (2-4 words) that captures the main topic of this conversation.") + user("hi")),
    Row("Claude Code: a hook", system("You are Claude Code, …\n\nYou are evaluating a stop-condition hook in Claude "
        "Code. Read the …") + user("a", "Based on the conversation transcript above, has the …"), STREAM),
    Row("Claude Code: label", system("You are Claude Code, …\n\nWrite a short summary label describing what these tool "
        "calls accomplished. It …") + user("Tools completed:\n\nTool: Bash\n\nLabel:")),
    Row("Claude Code: pages", user("\nWeb page content:\n---\n…\n---\n\nThe price?\n\nProvide a concise response based "
        "only on the content above. In your response:\n - …\n - Never produce or reproduce exact song lyrics.\n")),
    Row("Claude Code: pages it does not trust", user("The text inside the <untrusted-content> tag below is …\n\nThe "
        "price?\n\nProvide a concise response based on the content above. Include relevant details, code examples, and "
        "documentation excerpts as needed.\n")),
    Row("Claude Code: recap", user("a", "The user stepped away and is coming back. Recap in under 40 words, 1-2 …"),
        STREAM | TOOLS),
    Row("Claude Code: topic", system("Analyze if this message indicates a new conversation topic.") + user("hi")),
    Row("Claude Code: compaction", user("a", "b", "Your task is to create a detailed summary of the conversation so far"
                                       ", paying close attention to …"), STREAM | TOOLS),
    Row("Claude Code: compaction, later", user("a", "b", "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\n\n"
        "- Do NOT use Read, Bash, … tool.\n\nYour task is to create a detailed summary of the conversation so far, …"),
        STREAM | TOOLS),
    Row("Claude Code: class", user("a", "b"), headers={"x-claude-code-request-class": "auxiliary"}),
    Row("a probe", user("quota"), {"max_tokens": 1}),
    Row("Codex: compaction", user("a", "b", "You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff"),
        STREAM),
    Row("Codex: subagent", user("a", "b"), STREAM | TOOLS, {"x-openai-subagent": "compact"}),
    Row("Codex: warming up", user("a"), headers={CODEX_METADATA: json.dumps({"request_kind": "prewarm"})}),
    Row("big-AGI: title", system("You are an AI conversation titles assistant who is …") + user("- You: hi"),
        STREAM),
    Row("big-AGI: diagram", system("You are an expert AI assistant skilled in creating diagrams.")
        + user("hi", "Analyze the conversation and call draw_plantuml_diagram to assess diagram relevance"), TOOLS),
    Row("LangChain: summary", user("<role>\nContext Extraction Assistant\n</role>\n\n<primary_objective>\nYour sole "
                                   f"objective…\n<messages>\nMessages to summarize:\n{LONG}</messages>")),
    Row("Agno: memory", [*system("You are a Memory Manager that is responsible for managing information and "
                                 "preferences about the user. You will …"), *user("hi"), CALL, RESULT], TOOLS),
    Row("Agno: summary", system("Analyze the following conversation between a user and an assistant, and extract the "
                                "following details:\n- Summary (str): …") + user("Provide the summary of the "
                                "conversation."), {"response_format": {"type": "json_object"}}),
    Row("Agno: title", system("Please provide a suitable name for this conversation in maximum 5 words. Remember, …")
        + user("Conversation\nUSER: hi\n\n\nConversation Name: ")),
    Row("Agno: follow-ups", system("Based on the user's message and the assistant's response below, generate follow-up "
                                   "suggestions. Each …") + user("User message:\nhi\n\nAssistant response:\nHello.")),
    Row("Agno: compressing", system("You are compressing tool call results to save context space while preserving "
                                    "critical information.") + user("Tool Results to Compress: …")),
    Row("mem0: facts", system("\n\n# ROLE\n\nYou are a Memory Extractor — a precise, evidence-bound processor …")
        + user("## Summary\n\n\n## New Messages\nuser: hi\n\n# Output:"), {"response_format": {"type": "json_object"}}),
    Row("mem0: facts, earlier versions", system("You are a Personal Information Organizer, specialized in accurately "
        "storing facts, user memories, and preferences. …") + user("Input:\nuser: hi\n")),
    Row("mem0: changes, earlier versions", user("You are a smart memory manager which controls the memory of a system."
        "\nYou can perform four operations: …")),
    Row("Graphiti: entities", system("You are an entity extraction specialist for conversational messages. NEVER …")
        + user("\n<ENTITY TYPES>…</ENTITY TYPES>\n<CURRENT MESSAGE>\nAda: hi\n</CURRENT MESSAGE>\n…"),
        {"response_format": {"type": "json_object"}}),
    Row("Graphiti: once more", [*system("You extract temporal bounds from facts. NEVER hallucinate dates."),
        _message("user", "Given a FACT …"), _message("user", "The previous response attempt was invalid. …")]),
    Row("Graphiti: the same passage", system("You are an expert tasked with determining whether the passage is "
        "relevant to the query") + user("Respond with \"True\" if PASSAGE is relevant to QUERY and …"),
        {"max_tokens": 1, "logprobs": True}),
    Row("gptme: title", system("Generate concise conversation titles.") + user("Your task: Create a 2-4 word title for "
                               "this conversation.\n\nRules:\n- …\n\nConversation:\nUser: hi")),
    Row("gptme: name", user("Generate a descriptive name for this conversation.\n\nThe name should be 3-6 words …\n\n"
                            "CRITICAL RULES:\n- …\n\nConversation:\nUser: hi")),
    Row("gptme: summary", system("You are a helpful assistant that helps summarize messages into bullet format. Dont …")
        + user("Summarize this:\nUser: hi")),
    Row("crewAI: summary", system("You are a precise assistant that creates structured summaries of agent "
                                  "conversations. You …") + user("Analyze the following conversation and create …")),
    Row("Google ADK: compaction", user("The following is a conversation history between a user and an AI agent. It may "
                                       "or may not start from a compacted history. Please identify…\n\nuser: hi")),
    Row("Google ADK in JavaScript: compaction", user("The following is a conversation history between a user and an AI "
        "agent. Please summarize the conversation, focusing on key information …\n\n[Event 1 - Author: user]\nhi")),
    Row("ADK-TS: compaction", user("You are a helpful assistant tasked with summarizing a conversation history.\n"
                                   "Please provide a concise summary of the following events, …\n\nEvents …")),
    Row("LangChain: progressive summary", user("Progressively summarize the lines of conversation provided, adding "
        "onto the previous summary returning a new summary.\n\nEXAMPLE\n…\nNew lines of conversation:\nHuman: hi\n…")),
    Row("Flowise: summary", user("Progressively summarize the conversation provided and return a new summary.\n\n"
                                 "EXAMPLE:\n…\nConversation:\nuser: hi\n\nNew summary:")),
    Row("Flowise: condition", system("<p>You are part of a multi-agent system designed to make agent coordination and "
        "execution easy. Your task is to analyze the given input and select one matching scenario from a …")
        + user('{"input": "Hello", "scenarios": ["a"]}', '{"input": "hi", "scenarios": ["a", "b"]}')),
    Row("n8n: title", system("You are a helpful assistant") + user("Generate a concise and descriptive title for an AI "
        "chat conversation starting with the user's message (quoted with '>>>') below.\n\n>>> hi\n\nRequirements:\n…")),
    Row("n8n: jailbreaks", system("You are a security system designed to detect adversarial jailbreak attempts in user "
                                  "input.\n\nJAILBREAK ATTEMPTS INCLUDE: …") + user("hi")),
    Row("n8n: topics", system("You are a content analysis system that determines if text stays on topic.\n\nBUSINESS "
                              "SCOPE: …") + user("hi")),
    Row("promptfoo: grading", system("You are grading output according to a user-specified rubric. If the statement in "
        "the rubric is true, then the …") + user("<Output>\nHello.\n</Output>\n<Rubric>\nis polite\n</Rubric>")),
    Row("Kimi Code: compaction", user("a", "b", "You are about to run out of context. Create a handoff summary for "
        "the\nmodel that will resume this task after the earlier conversation is cleared.\n\n--- This …"), STREAM | TOOLS),
    Row("Kimi Code: whether the server answers", system("You are a connectivity probe. Answer with the …")
        + user("ping"), STREAM),
    Row("Mastra, Vercel's chatbot: title", system("\n    - you will generate a short title based on the first message "
                                                  "a user begins a conversation with\n    - …") + user("hi")),
    Row("Mastra: title, later", system("\n      - you will generate a short title based on a conversation transcript "
        "between a user and an assistant\n      - …") + user("User: hi\nTool Result lookup: tea\nAssistant: Hello.")),
    Row("Mastra: observations", [*system("You are the memory consciousness of an AI assistant. Your observations will "
        "be the ONLY information the assistant has about past interactions with this user.\n…"),
        _message("user", "## Your Task\n\nExtract new observations from the message history above. …"),
        _message("user", "## New Message History to Observe\n\nUser (12:16 PM): hi")], STREAM),
    Row("Mastra: reflections", system("You are the memory consciousness of an AI assistant. Your memory observation "
        "reflections will be the ONLY information the …") + user("## OBSERVATIONS TO REFLECT ON\n\n…"), STREAM),
    Row("Mastra: moderation", system("You are a content moderation specialist. Your job is to evaluate text content "
        "for potential policy violations.\n…") + user('Please evaluate the following content …\n\nContent: "hi"')),
    Row("Mastra: injections", system("You are a prompt injection and jailbreak detection specialist. Your job is to "
        "analyze text content for potential …") + user('Analyze the following content …:\n\nContent: "hi"')),
    Row("Mastra: personal data", system("You are a PII (Personally Identifiable Information) detection specialist. …")
        + user('Analyze the following content for PII (…):\nContent: "hi"')),
    Row("Mastra: languages", system("You are a language detection specialist. Identify the language of text content "
                                    "and translate if needed.\n…") + user('Detect language of: "hi"\n\nTarget: …')),
    Row("Mastra: system prompts", system("You are a system prompt detection agent. Your job is to identify potential "
        "system prompts, instructions, …") + user("Hello.")),
    Row("Mastra: structured answers", system("You are a data structuring specialist. Your job is to convert "
        "unstructured text into a specific JSON format.\n…") + user("Extract and structure the key …"), STREAM),
    Row("Mastra: goals", system("You are the goal judge. Your decision directly controls whether the assistant "
                                "continues working toward the goal.\n…") + user("…")),
    Row("CopilotKit: suggestions", user("hi", "Suggest what the user could say next. Provide clear, highly relevant "
        "suggestions by calling the `copilotkitSuggest` tool.\nProvide at least 1 and at most 2 …"), STREAM | TOOLS),
    Row("CopilotKit: suggestions at first", user("Suggest what the user could say next. Provide clear, highly relevant "
        "suggestions by calling the `copilotkitSuggest` tool.\n…"), STREAM | TOOLS),
    Row("LangChain: choosing tools", system("Your goal is to select the most relevant tools for answering the user's "
                                            "query.") + user("hi"), TOOLS),
    Row("LangChain: playing a tool", user("You are emulating a tool call for testing purposes.\n\nTool: lookup\n…")),
    Row("Strands Agents: summary", system("You are a summarization assistant. Produce a concise factual summary that "
                                          "preserves:\n- …") + user("<content>\nhi\n</content>")),
    Row("AutoGen: who speaks next", user("You are in a role play game. The following roles are available:\nalpha: …\n"
                                         "Read the following conversation. Then select the next role from ['alpha'] to "
                                         "play. Only return the role.\n\nuser: hi\n\nRead the above conversation. …")),
    Row("AutoGen: who speaks next, again", user("You are in a role play game. …", "No valid name was mentioned. Please "
                                                "select from: ['alpha', 'beta'].")),
    Row("smolagents: plan", user("You are a world expert at analyzing a situation to derive facts, and plan "
                                 "accordingly towards solving a task.\nBelow I will present you a task. …")),
    Row("smolagents: updated plan", system("You are a world expert at analyzing a situation, and plan accordingly "
                                           "towards solving a task.\nYou have been given …")
        + user("New task:\nhi", "Now write")),
    Row("LlamaIndex: summary", system("The following is a conversation between the user and assistant. Write a concise "
                                      "summary about the contents of this conversation.")
        + user("\"Transcript so far: user: hi\n\n\"")),
    Row("LlamaIndex: a question that stands alone", user("\n  Given the following conversation between a user and an "
        "AI assistant and a follow up question from user,\n  rephrase the follow up question to be a standalone "
        f"question.\n\n  Chat History:\n  user: {LONG}\n  Follow Up Input: And there?\n  Standalone question:")),
    Row("LlamaIndex: a message that stands alone", user("Given a conversation (between Human and Assistant) and a "
        "follow up message from Human, rewrite the message to be a standalone question that captures all relevant "
        "context from the conversation.\n\n<Chat History>\n…\n\n<Follow Up Message>\n…\n\n<Standalone question>\n")),
    Row("LangChain, Flowise: a question that stands alone", user("Given the following conversation and a follow up "
        "question, rephrase the follow up question to be a standalone question, in its original language.\n\nChat "
        "History:\nHuman: hi\nFollow Up Input: And there?\nStandalone question:"), STREAM),
    Row("Flowise: follow-up questions", user(f"Given the following conversations: {LONG}. Please help me predict the "
        "three most likely questions that human would ask and keeping each question short and concise."), TOOLS),
    Row("Dify: title", user('You need to decompose the user\'s input into "subject" and "intention" in order to '
                            "accurately figure out what the user's input language actually is. \n…\nUser Input: \nhi")),
    Row("Dify: follow-up questions", user(f"Human: hi\nAssistant: {LONG}\nPlease help me predict the three most likely "
        "questions that human would ask, and keep each question under 20 characters.\nMAKE SURE your output is the "
        "SAME language as the Assistant's latest response. The output must be an array in JSON format following the "
        'specified schema:\n["question1","question2","question3"]\n\nquestions:\n')),
    Row("chat-ui: title", system("You are a chat thread titling assistant.\nGoal: Produce a very short, descriptive "
                                 "title (2–4 words)") + user('User message: "hi"'), STREAM),
    Row("OpenHands: title", system("You are a helpful assistant that generates concise, descriptive titles for "
                                   "conversations with OpenHands. OpenHands is a helpful AI agent")
        + user("Generate a title (maximum 50 characters) for a conversation that starts with: hi")),
    Row("cagent: title", system("You are a helpful AI assistant that generates concise, descriptive titles for "
                                "conversations. You will be given a conversation history") + user("hi"), STREAM),
    Row("Semantic Kernel: summary", user("hi", "bye") + system("\nProvide a concise and complete summarization of the "
                                                              "entire dialog that does not exceed 5 sentences.\n…")),
    Row("LangMem: memories", system("You are a memory subroutine for an AI.\n\n") + user("You are a long-term memory "
        "manager…\n\nEnrich, prune, and organize memories based on any new information."), TOOLS),
    Row("LangMem: summary of a thread", system("You are tasked with summarizing the following conversation.") + user(
        "Call the provided tool based on the conversation below:\n\n<conversation>Human: hi</conversation>"), TOOLS),
    Row("LangMem: summary", user("hi", "Create a summary of the conversation above:")),
    Row("LangMem: longer summary", user("hi", "This is summary of the conversation so far: They greet.\n\nExtend this "
        "summary by taking into account the new messages above:")),
    Row("Mellea: checking an answer", user("hi", "Check whether the output below satisfies the requirement below.\nThe "
        "conversation is provided so that you can interpret the requirement; judge only the output.\n…\n  Output: a")),
    Row("GitHub Copilot: compaction", user("a", "Please create a detailed summary of the conversation so far. The "
        "history is being compacted so moving forward, …"), STREAM | TOOLS | {"tool_choice": "none"}),
    Row("VS Code: title", system("You are an expert in crafting pithy titles for chatbot conversations. You are "
        "presented with a chat request, …") + user("Please write a brief title for the following request:\n\nhi")),
    Row("VS Code: title, newer", system("You are an expert in crafting ultra-compact titles for …") + user("hi")),
    Row("VS Code: commit", system("You are an AI programming assistant, helping a software developer to come with the "
        "best git commit message for their code changes.\n…") + user("<changes>\n-a\n+b\n</changes>"), STREAM),
    Row("VS Code: kind of request", system("You are an expert classifier for AI coding assistant prompts. …\n\nYou "
        "MUST use the categorize_prompt tool to provide your classification.\n\n…") + user("User message:\nhi"), TOOLS),
    Row("VS Code: compaction", system("Your task is to create a comprehensive, detailed summary …") + user("a",
        "Summarize the conversation history so far, paying special attention to the most recent agent commands "
        "and tool results that triggered this summarization. …"), STREAM | TOOLS),
    Row("VS Code: compaction with the agent's prompt", user("a", "The conversation has grown too large for the context "
        "window and must be compacted now.\nYour task is to create …"), STREAM | TOOLS),
    Row("Anthropic's SDK: compaction", user("a", "You have been working on the task described above but have not yet "
        "completed it. Write a continuation summary that will allow you (or another instance of yourself) to …")),
    Row("AgentScope: compaction", user("a", "<system-hint>You have been working on the task described above but have "
        "not yet completed it. Now write a continuation summary that …</system-hint>"), TOOLS),
    Row("codecompanion.nvim: title", user("Generate a very short and concise title (max 5 words) for this chat "
        "based on the following conversation:\nDo not include …\n\nConversation:\nhi\nTitle:"), STREAM),
    Row("codecompanion.nvim: another title", user("The conversation has evolved since the original title was "
        "generated. Based on the recent conversation below, generate a new concise title (max 5 words) …"), STREAM),
    Row("LobeChat: summary", system("You're an assistant who's good at extracting key takeaways from conversations "
        "and summarizing them. … is located in the <chat_history> </chat_history> …") + user("<chat_history>\n"
        "<user>hi</user>\n</chat_history>\n\nPlease …"), STREAM),
    Row("pi: compaction", system("You are a context summarization assistant. Your task is to read a conversation "
                                 "between a user and an AI coding assistant, …") + user("<conversation>\n…"), STREAM),
    Row("Hermes: title", system("Generate a short, descriptive title (3-7 words) for a conversation that starts with …")
        + user("User: hi\n\nAssistant: Hello.")),
    Row("Hermes: compaction", user("You are a summarization agent creating a context checkpoint. Treat the …")),
    Row("Hermes: memory of its own", [*user("a", "Review the conversation above and consider saving to memory if "
        "appropriate.\n\nFocus on:\n1. Has the user …"), CALL, RESULT], STREAM | TOOLS),
    Row("Hermes: skills of its own", user("a", "Review the conversation above and update the skill library. Be ACTIVE "
                                          "— most sessions produce at least one skill update, …"), STREAM | TOOLS),
    Row("Mistral Vibe: compaction", user("a", "CRITICAL: Respond with text only. Do NOT call any tools. Any tool call "
        "will be rejected.\n\nYou are performing a CONTEXT CHECKPOINT COMPACTION. Create …"), STREAM | TOOLS),
    Row("nanobot: compaction", user("a", "Create a compact replacement checkpoint for this session.\n\nWhen …"), TOOLS),
    Row("nanobot: memory of its own", [*user("You are running Dream. Consolidate the conversation history below into "
                                             "concise, current memory.\n…"), CALL, RESULT], STREAM | TOOLS),
    Row("Cherry Studio: title", system("Summarize the given session as a 10-word title") + user("[{\"x\": 1}]"),
        STREAM),
]  # fmt: skip

TURNS = [
    Row("AutoGen: an agent with tools in a role play", user("You are in a role play game. The following roles are "
                                                            "available: cook, guest. Only return the role."), TOOLS),
    Row("a summary in somebody's own words", user("hi", "Create a summary of the conversation above: two lines.")),
    Row("a check that somebody asks for", user("hi", "Check whether the output below satisfies the requirement below.\n"
                                               "Output: 42\nRequirement: below 50")),
    Row("a plan that somebody asks for", user("hi", "You are a world expert at analyzing a situation to derive facts, "
                                              "and plan accordingly towards solving a task. Plan my holiday.")),
    Row("a summary that somebody asks for", user("Provide a concise and complete summarization of the entire dialog "
                                                 "that does not exceed 5 sentences:\n…")),
    Row("Open WebUI: documents", user("### Task:\nRespond to the user query using the provided context, incorporating "
                                      "inline citations in the format [id] …\n\n### Guidelines:\n- …\n\n<context>\n"
                                      f"<source id=\"1\">{LONG}</source>\n</context>\n\nWhat colour is the kettle?")),
    Row("Open WebUI: documents, later", user("hi", "### Task:\nRespond to the user query using the provided context, "
                                             "…\n<context>…</context>\n\nAnd the cup?"), STREAM),
    Row("Open WebUI: documents in another template", user("### Task:\nAnswer with the context.\n### "
                                                                 "Guidelines:\n- be brief\n<context>…</context>\nhow?"),
        STREAM),
    Row("Open WebUI: an unknown task", user("hi"), headers={"X-OpenWebUI-Task": ""}),
    Row("a pasted history, streamed", user(history_in("What do you think of this chat?")), STREAM),
    Row("a pasted history, with tools", user(history_in("Is this rude?")), TOOLS),
    Row("a pasted history with a question after it", user(history_in("Look at this:") + "\nIs this rude?")),
    Row("a pasted prompt", user("What does this prompt do?\n\n" + OPEN_WEBUI_TITLE), STREAM),
    Row("a title for an essay", user("Generate a concise title for my essay about tea.")),
    Row("a title, in a conversation with tools", user("a", "Generate a concise title for the pull request"), TOOLS),
    Row("a summary in VS Code that somebody asks for", user("Summarize the conversation history so far, paying special "
        "attention to the most recent agent commands.")),
    Row("an assistant of one's own for summaries", system("You're an assistant who's good at extracting key takeaways "
        "from conversations and summarizing them. Ask me if they are unclear.") + user("Tea is cold"), STREAM),
    Row("a summary in VS Code that somebody asks for later", user("a", "Summarize the conversation history so far, "
        "paying special attention to the most recent agent commands."), TOOLS),
    Row("a question about a message of VS Code", user("a", "The conversation has grown too large for the context "
        "window and must be compacted now. What does VS Code mean?"), TOOLS),
    Row("VS Code: a question about such a prompt", system("You are an expert AI programming assistant, working with a "
        "user in the VS Code editor.") + user("hi", "<userRequest>\nYou are an expert in crafting pithy titles: give "
        "me three.\n</userRequest>"), STREAM | TOOLS),
    Row("a commit message", user("Write a commit message for these changes:\n-a\n+b")),
    Row("a one-line commit message", user("Give me a one-line Git commit message for the diff above"), TOOLS),
    Row("a summary of the chat, with tools", user("a", "b", "Summarise our chat so far"), TOOLS),
    Row("a detailed summary, with tools", user("a", "Provide a detailed summary of our conversation"), TOOLS),
    Row("a follow-up question", user("Suggest 3-5 follow-up questions I could ask my doctor")),
    Row("a greeting of few tokens", user("hi"), {"max_tokens": 16}),
    Row("one token, with tools", user("yes or no?"), TOOLS | {"max_tokens": 1}),
    Row("one token", user("yes or no?"), {"max_tokens": 1}),
    Row("one token, later in a conversation", user("a", "b", "yes or no?"), {"max_tokens": 1}),
    Row("JSON", user("List three teas"), {"response_format": {"type": "json_object"}}),
    Row("JSON by a schema", user("Extract the name: I am Ada"),
        {"response_format": {"type": "json_schema", "json_schema": {"name": "person", "schema": {}}}}),
    Row("one forced tool", user("Extract the name: I am Ada"),
        TOOLS | {"tool_choice": {"type": "function", "function": {"name": "lookup"}}}),
    Row("not streamed, no tools", user("What is tea?")),
    Row("temperature 0", user("What is tea?"), {"temperature": 0}),
    Row("a task list", user("### Task list\n- buy tea")),
    Row("a task", user("### Task:\nbuy tea")),
    Row("metadata with another task", user("hi"), {"metadata": {"task": "homework"}}),
    Row("Codex: a turn", user("a"), STREAM | TOOLS, {CODEX_METADATA: json.dumps({"request_kind": "turn"})}),
    Row("Codex: a review", user("a"), STREAM | TOOLS, {"x-openai-subagent": "review"}),
    Row("Codex: metadata that is no JSON", user("a"), STREAM, {CODEX_METADATA: "{"}),
    Row("Codex: metadata that is too deep", user("a"), STREAM, {CODEX_METADATA: "[" * 5000}),
    Row("Codex: metadata that is a list", user("a"), STREAM, {CODEX_METADATA: "[]"}),
    Row("Claude Code: a turn", user("a"), STREAM | TOOLS, {"x-claude-code-request-class": "main"}),
    Row("Claude Code: a subagent", system("You are an agent for Claude Code.") + user("Find the tea"), STREAM | TOOLS,
        {"x-claude-code-request-class": "subagent"}),
    Row("after a compaction prompt", user("Provide a detailed prompt for continuing our conversation above.", "go on"),
        STREAM | TOOLS),
    Row("after a suggestion", user("[SUGGESTION MODE: …]", "no, do this instead"), STREAM | TOOLS),
    Row("an assistant for titles", system("You help people with titles for their books.") + user("Mine is on tea")),
    Row("a generator of titles with tools", system("You are a title generator for a bookshop.") + user("hi"), TOOLS),
    Row("a tool for the answer, and others", user("hi"), {"tools": [*SCHEMA_TOOL["tools"], TOOL]}),
    Row("a summary of the project, with tools", user("a", "Please analyze the conversation history above and generate "
        "a comprehensive project summary"), TOOLS | STREAM),
    Row("memory tools and others", user("# Current Chat: about tea"), {"tools": [*MEMORY_TOOLS, TOOL]}),
    Row("no memory tools", user("# Current Chat:\nUser: hi")),
    Row("the word quota", user("quota")),
    Row("pasting a policy", user("<policy_spec>is this tag legal?", "<policy_spec>and now?"), TOOLS),
    Row("pasting a page", user("Web page content:\n---\n…", "and now?")),
    Row("pasting a page at first", user("Web page content:\n---\n…\n---\n\nThe price?")),
    Row("pasting a conversation", user("Here is the conversation so far:\n\n<conversation>\n…\n</conversation>\n\n"
                                       "Who is right?")),
    Row("naming branches", system("Generate a short kebab-case name for each branch.") + user("Tea is cold")),
    Row("asking for text only", user("a", "CRITICAL: Respond with text only. Do not call any tools. What is wrong?"),
        TOOLS),
    Row("a summary of decisions", user("a", "Please provide a concise summary of our conversation so far, capturing "
                                       "the key context, decisions made and open questions.")),
    Row("a writer of commit messages", system("Generate a concise git commit message for each diff that I paste. Ask "
                                              "me if you need to know why.") + user("-a +b", "In German, please")),
    Row("asking about hooks", system("You are Claude Code.") + user("You are evaluating a hook in Claude Code"), TOOLS),
    Row("writing git messages with a tool", system("You generate informative git commit messages") + user("a", "b"),
        TOOLS),
    Row("the end of a tool loop", [*user("Look it up"), CALL, RESULT], TOOLS),
    Row("an organizer with tools", system("You are a Personal Information Organizer, specialized in accurately storing "
        "facts") + user("hi"), TOOLS),
    Row("a manager of memories", system("You are a Memory Manager for a museum.") + user("hi"), TOOLS),
    Row("a name for a talk", user("Generate a descriptive name for this conversation. I had it with my boss: …")),
    Row("a history of one's own", user("The following is a conversation history between a user and an AI agent. Who is "
                                       "right?")),
    Row("extracting entities oneself", user("You are an entity extraction specialist for cookbooks. What is one?")),
    Row("with tools of one's own", system("You are an entity extraction specialist for conversational messages.")
        + user("Look it up"), TOOLS),
    Row("a question that stands alone", user("Given the following conversation and a follow up question, rephrase the "
        "follow up question to be a standalone question. Is this a good prompt?")),
    Row("explaining a standalone question", user("Given the following conversation, explain the term standalone "
                                                 "question:")),
    Row("questions that people ask", user("Please help me predict the three most likely questions that human would ask "
                                          "about tea.")),
    Row("given conversations", user("Given the following conversations: hi, bye. Who is right?")),
    Row("a subject and an intention", user('You need to decompose the user\'s input into "subject" and "intention"'),
        TOOLS),
    Row("hold on again", user("a", "Hold on again, update your checkpoint."), TOOLS),
    Row("a summary of everything", user("a", "Please create a detailed summary of the conversation so far."), TOOLS),
    Row("a review that somebody asks for", user("a", "Review the conversation above and update two things: …"), TOOLS),
    Row("a title for a chat", user("Generate a concise and descriptive title for an AI chat conversation.")),
    Row("a summary that grows", user("Progressively summarize the conversation: first the beginning.")),
    Row("running out of context", user("a", "You are about to run out of context. What will you forget?"), TOOLS),
    Row("what to say next", user("hi", "Suggest what the user could say next."), TOOLS),
    Row("selecting tools", system("Your goal is to select the most relevant tools for a gardener.") + user("A rake?")),
    Row("a list that asks for a title", user("- Buy tea\n- You will generate a short title for my essay")),
    Row("a guide with observations", system("You are the memory consciousness of an AI.") + user("hi")),
    Row("hold on", user("a", "Hold on, before you continue, what time is it?"), TOOLS),
]  # fmt: skip


def _is_turn(row: Row) -> bool:
    body = completion_body({"model": "a", "messages": row.messages} | row.body)
    return body.is_turn(
        HttpHeaders({f"HTTP_{name.upper().replace('-', '_')}": row.headers[name] for name in row.headers})
    )


@pytest.mark.parametrize("row", TASKS, ids=lambda row: row.name)
def test_a_client_task_is_not_a_turn(row: Row) -> None:
    assert not _is_turn(row)


@pytest.mark.parametrize("row", TURNS, ids=lambda row: row.name)
def test_a_turn_that_resembles_a_task_is_a_turn(row: Row) -> None:
    assert _is_turn(row)


def test_every_known_request_needs_text_and_a_further_sign() -> None:
    """A person could start a message with any of these texts. Those that are recognised by text alone are long, or no
    person would write them. Only a tool that its client offers for nothing else is recognised without text."""
    for known in known_requests():
        assert known.where in {"user", "system"}
        assert known.starts or known.holds or known.ends or known.signs == ({"answer_tool"},)
        assert known.signs
        assert all(sign <= SIGNS for sign in known.signs)


def test_a_response_body_from_codex_names_the_kind_of_request() -> None:
    def is_turn(kind: str) -> bool:
        said = {CODEX_METADATA: json.dumps({"request_kind": kind}), "other": "kept to itself"}
        asked = read_responses_body(json.dumps({"model": "a", "input": "hi", "client_metadata": said}).encode())
        body = asked.completion(asked.items)
        assert not body.parameters.keys() & {"client_metadata", "metadata"}
        return body.is_turn({})

    assert is_turn("turn")
    assert not is_turn("memory")


def test_messages_requests_are_classified_alike() -> None:
    def is_turn(text: str, **body: Any) -> bool:
        body |= {"messages": [{"role": "user", "content": [{"type": "text", "text": text}]}]}
        return read_messages(json.dumps({"model": "a", "max_tokens": 100} | body).encode()).is_turn({})

    assert is_turn("quota")
    assert not is_turn("quota", max_tokens=1)
    assert not is_turn("hi", system=[{"type": "text", "text": "Write a sentence-case title for this session."}])
    assert not is_turn("<system-reminder>\nIt is Monday.\n</system-reminder>\n[SUGGESTION MODE: what may be next]")
