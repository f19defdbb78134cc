"""The models of the gateway: agents, keys, sessions, runs and messages, and the people who sign in."""

from gateway.models.agents import Agent, Alert, Configuration, LearnedChange, Worker
from gateway.models.attachments import Attachment, AttachmentUse
from gateway.models.keys import ApiKey, ConnectedApp, UsageDay, Webhook
from gateway.models.people import Identity, Invitation, Login
from gateway.models.runs import HAS_PARTS, Compaction, InstructionHashes, Message, Run
from gateway.models.sessions import Session
