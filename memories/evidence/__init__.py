"""Evidence: whose words an automatic memory write is based on, and whether it is stored or held; docs/evidence.md.

own_words      which parts of a person's message are their own words
client_texts   what clients write around a person's message, or in the person's place
quotes         finding a quote in a text
instructions   hashes of what clients tell models around a conversation
support        which sentences support a memory
passages       who said what: messages, split where the person's own words end
conversation   where a quote occurs, and whose words are closest to a memory
decision       whether a write is stored or held
proposals      the interface to the app that stores held writes
"""

from memories.evidence.conversation import Conversation
from memories.evidence.decision import EvidenceNotFound, Hold, HoldReason, WriteHeld, decide, evidence_for, scan_doubt
from memories.evidence.passages import Speaker, Utterance
from memories.evidence.proposals import HeldWrites, KnownProposal, Proposal, ProposalStore, proposal_id, proposal_store
