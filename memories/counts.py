"""What this process counts of memory, in plain counters that only grow; gateway.metrics shows them."""

from collections import Counter

recall_lanes: Counter[tuple[str, str]] = Counter()  # (lane, outcome)
scan_blocks: Counter[str] = Counter()  # rule
