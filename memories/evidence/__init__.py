"""Evidence: whose words an automatic write of a memory rests on, and what becomes of it; docs/evidence.md.

own_words      which parts of a person's message are their own words
answers        answers of models that come back in the person's place
quotes         finding a quote in a text
recalled       the words in what was recalled, without its tags
support        which sentences say what a memory says
conversation   who said what, where a quote stands, whose words a memory is closest to
decision       stored or held
proposals      handing held writes to the app that keeps them
"""

from memories.evidence.conversation import Conversation, Speaker, Spoken
from memories.evidence.decision import Doubt, EvidenceNotFound, Held, Hold, decide, doubt_of, evidence_for
from memories.evidence.proposals import HeldStep, Keeper, Kept, Proposal, held_keeper, proposal_id
