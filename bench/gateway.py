"""Measure what Daybook adds to a direct call of the same upstream, compared with the LiteLLM proxy.

The same scripted upstream is called directly, through Daybook (`manage.py up`, one web process, a new stored
conversation with injected memory per request), and with `--against` through the LiteLLM proxy, or through TensorZero,
a compiled gateway that stores nothing here. All servers run at once and are measured in turn, round by round, so that
drift of the machine affects all alike. Each figure is the median over the rounds; "added" is the median of the rounds'
differences to direct.
"""

import argparse
import json
import statistics
import subprocess
import sys
import threading
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product
from time import monotonic
from typing import Any

from daybook_server import INJECTING_MODEL, Daybook, daybook_start
from litellm_proxy import LITELLM, litellm_start
from litellm_proxy import MODEL as LITELLM_MODEL
from processes import (
    BENCH,
    BenchError,
    Server,
    busy_cores,
    product_python,
    server_json,
    stop_on_signals,
    upstream_start,
)
from tensorzero_gateway import MODEL as TENSORZERO_MODEL
from tensorzero_gateway import TENSORZERO, tensorzero_start

# With more cores busy than this, figures are comparable within the run only.
NOISY_CORES, SAMPLE_SECONDS = 0.25, 0.5
# Work that a server does after its answer (logs, queues) must not fall into the next server's measurement.
SETTLE_SECONDS = 0.15
WARMUP_SECONDS = 1.0
LOAD_BACKSTOP_SECONDS = 60.0  # the load client normally bounds itself
LITELLM_KEY = "sk-bench-only"
OTHERS = {"litellm": LITELLM, "tensorzero": TENSORZERO}

Cell = tuple[str, bool, int]  # variant, stream, clients
LoadReport = dict[str, Any]  # the JSON of a load.Report
Results = dict[str, dict[str, dict[str, Any]]]  # variant, "c<clients>", figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One way to the upstream."""

    name: str
    url: str
    key: str
    model: str


def load_run(variant: Variant, *, clients: int, stream: bool, seconds: float) -> LoadReport:
    """Run the load client in its own process; the keys are those of `load.Report`."""
    command = [product_python(), str(BENCH / "load.py"), "--url", variant.url + "/v1/chat/completions"]
    command += ["--key", variant.key, "--model", variant.model]
    command += ["--clients", str(clients), "--seconds", str(seconds)] + ["--stream"] * stream
    limit = seconds + LOAD_BACKSTOP_SECONDS
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=limit, check=True)
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as exc:
        raise BenchError(f"the load client failed on {variant.name}: {exc}") from exc
    return dict(json.loads(done.stdout))


def rounds_run(
    variants: list[Variant], args: argparse.Namespace, deadline: float
) -> tuple[dict[Cell, list[LoadReport]], list[float | None]]:
    """Measure every cell once per round, variants next to each other.

    Return the reports, and for each complete round the number of cores that others kept busy before it.
    """
    reports: dict[Cell, list[LoadReport]] = defaultdict(list)
    others: list[float | None] = []
    group_seconds = len(variants) * (args.seconds + 2 * SETTLE_SECONDS)
    for number in range(args.rounds):
        started, busy = monotonic(), busy_cores(SAMPLE_SECONDS)
        for stream, clients in product((False, True), args.clients):
            if monotonic() + group_seconds > deadline:
                print(f"stopped in round {number + 1} to stay within {args.limit:.0f} s", file=sys.stderr)
                return reports, others
            for variant in variants:
                threading.Event().wait(SETTLE_SECONDS)
                report = load_run(variant, clients=clients, stream=stream, seconds=args.seconds)
                reports[variant.name, stream, clients].append(report)
        others.append(busy)
        print(f"round {number + 1} of {args.rounds}: {monotonic() - started:.0f} s", file=sys.stderr)
    return reports, others


def median(reports: list[LoadReport], key: str) -> float | None:
    """Return the median of one figure over the rounds that have it."""
    values = [report[key] for report in reports if report[key] is not None]
    return round(statistics.median(values), 3) if values else None


def added(reports: list[LoadReport], direct: list[LoadReport], key: str) -> float | None:
    """Return the median over the rounds of this figure minus the direct figure of the same round."""
    pairs = [(report[key], base[key]) for report, base in zip(reports, direct, strict=False)]
    differences = [own - base for own, base in pairs if None not in (own, base)]
    return round(statistics.median(differences), 3) if differences else None


def figures(reports: dict[Cell, list[LoadReport]], name: str, clients: int) -> dict[str, Any]:
    """Return the figures of one variant at one number of clients."""
    plain, stream = reports[name, False, clients], reports[name, True, clients]
    direct_plain, direct_stream = reports["direct", False, clients], reports["direct", True, clients]
    p50s = [report["p50_ms"] for report in plain if report["p50_ms"] is not None]
    result: dict[str, Any] = {
        "p50_ms": median(plain, "p50_ms"),
        "p95_ms": median(plain, "p95_ms"),
        "rps": median(plain, "rps"),
        "ttft_p50_ms": median(stream, "ttft_p50_ms"),
        "errors": sum(report["errors"] for report in plain + stream),
        "p50_rounds_ms": p50s,
        "stream_p50_ms": median(stream, "p50_ms"),
        "stream_p95_ms": median(stream, "p95_ms"),
        "stream_rps": median(stream, "rps"),
    }
    if name != "direct":
        result["added_p50_ms"] = added(plain, direct_plain, "p50_ms")
        result["ttft_added_p50_ms"] = added(stream, direct_stream, "ttft_p50_ms")
        result["stream_added_p50_ms"] = added(stream, direct_stream, "p50_ms")
    return result


def problems_found(reports: dict[Cell, list[LoadReport]], upstream: Server, daybook: Daybook | None) -> list[str]:
    """Return the reasons why the figures are invalid; empty if they are valid."""
    found = []
    text = next(iter(reports.values()))[0]["text"]  # of the first cell, which is direct
    for (name, stream, clients), cell in reports.items():
        where = f"{name}, {clients} clients{', stream' if stream else ''}"
        found += [f"{where}: {report['first_error']}" for report in cell if report["errors"]][:1]
        if any(report["requests"] and report["text"] != text for report in cell):
            found.append(f"{where}: the answer differs from the upstream's")
        if name.startswith("daybook") and any(report["sessions"] != report["requests"] for report in cell):
            found.append(f"{where}: not every request became a new session")
    if daybook is not None:
        found += daybook_problems(reports, upstream, daybook)
    return found


def daybook_problems(reports: dict[Cell, list[LoadReport]], upstream: Server, daybook: Daybook) -> list[str]:
    """Check that turns were stored and memory was injected."""
    found = []
    for (name, stream, clients), cell in reports.items():
        session = str(cell[-1]["last_session"])
        if name.startswith("daybook") and session and daybook.stored_turns(session) != 1:
            found.append(f"{name}, {clients} clients, stream={stream}: session {session} has no stored turn")
    seen = injection_stats(upstream)
    if seen["with_memories"] < seen["completions"]:
        found.append(f"memory was injected in {seen['with_memories']} of {seen['completions']} requests only")
    return found


def injection_stats(upstream: Server) -> dict[str, int]:
    """Return the upstream's counters for the injecting agent; see `scripted_upstream.ModelStats`."""
    models = server_json(upstream, "/stats")["models"]
    nothing = {"completions": 0, "streams": 0, "request_bytes": 0, "with_memories": 0, "memory_blocks": 0}
    return nothing | dict(models.get(INJECTING_MODEL, {}))


def format_table(results: Results) -> str:
    """Return the table as text; all times in milliseconds."""
    columns: list[tuple[str, str]] = [
        ("p50", "p50_ms"),
        ("added", "added_p50_ms"),
        ("p95", "p95_ms"),
        ("req/s", "rps"),
        ("ttft p50", "ttft_p50_ms"),
        ("added", "ttft_added_p50_ms"),
        ("stream p50", "stream_p50_ms"),
        ("added", "stream_added_p50_ms"),
        ("streams/s", "stream_rps"),
        ("errors", "errors"),
    ]
    lines = [f"{'variant':<14} {'clients':>7} " + " ".join(f"{title:>10}" for title, _ in columns)]
    for name, cells in results.items():
        for cell, values in cells.items():
            shown = [values.get(key) for _, key in columns]
            texts = ["-" if v is None else f"{v:.2f}" if isinstance(v, float) else str(v) for v in shown]
            lines.append(f"{name:<14} {cell[1:]:>7} " + " ".join(f"{text:>10}" for text in texts))
    return "\n".join(lines)


def verdicts(results: Results) -> list[str]:
    """Compare Daybook with the others, one line for each and each number of clients with figures for both."""
    lines = []
    for other, (cell, ours) in product(OTHERS, results.get("daybook", {}).items()):
        theirs = results.get(other, {}).get(cell, {})
        if not all(values.get(key) for values in (ours, theirs) for key in ("added_p50_ms", "rps")):
            continue
        share = ours["added_p50_ms"] / theirs["added_p50_ms"]
        times = ours["rps"] / theirs["rps"]
        met = "cheaper and faster" if share < 1 < times else "NOT cheaper and faster"
        lines.append(
            f"{cell[1:]:>2} clients: Daybook is {met}: it adds {share:.2f} of what {OTHERS[other].name} adds, "
            f"and answers {times:.2f} times as many requests per second"
        )
    return lines


def variants_start(
    stack: ExitStack, args: argparse.Namespace, upstream: Server
) -> tuple[list[Variant], Daybook | None]:
    """Start the servers of the requested variants."""
    variants = [Variant(name="direct", url=upstream.url, key="x", model="scripted")]
    daybook = None
    if not args.without_daybook:
        daybook = daybook_start(stack, upstream, server=args.server)
        for name, agent in [("daybook", "assistant"), ("daybook_plain", "plain")][: 1 + args.plain]:
            variants.append(Variant(name=name, url=daybook.server.url, key=daybook.key, model=agent))
    if "litellm" in args.against:
        proxy = litellm_start(stack, upstream, key=LITELLM_KEY)
        variants.append(Variant(name="litellm", url=proxy.url, key=LITELLM_KEY, model=LITELLM_MODEL))
    if "tensorzero" in args.against:
        other = tensorzero_start(stack, upstream)
        variants.append(Variant(name="tensorzero", url=other.url, key="x", model=TENSORZERO_MODEL))
    return variants, daybook


def run_benchmark(args: argparse.Namespace) -> int:
    """Run the benchmark; return the exit code."""
    with ExitStack() as stack:
        upstream = upstream_start(stack, "--chunks", str(args.chunks))
        variants, daybook = variants_start(stack, args, upstream)
        deadline = monotonic() + args.limit  # less than four minutes including the start of the servers
        for variant, stream in product(variants, (False, True)):
            load_run(variant, clients=8, stream=stream, seconds=min(WARMUP_SECONDS, args.seconds))
        reports, others = rounds_run(variants, args, deadline)
        if not reports:
            raise BenchError(f"nothing was measured within --limit {args.limit:.0f} s")
        problems = problems_found(reports, upstream, daybook)
        if not others:
            problems.append("no complete round was measured")
        memory = injection_stats(upstream)
    results: Results = {
        variant.name: {f"c{clients}": figures(reports, variant.name, clients) for clients in args.clients}
        for variant in variants
    }
    print(format_table(results))
    print(f"times in ms; {len(others)} rounds of {args.seconds:g} s per cell; streams of {args.chunks} chunks")
    if daybook is not None and memory["completions"]:
        blocks = memory["memory_blocks"] / memory["completions"]
        print(f"Daybook: {blocks:.2f} memory blocks per upstream request")
    if any(busy is not None and busy > NOISY_CORES for busy in others):
        print(f"NOISY: others kept {others} cores busy; compare within this run only")
    for line in verdicts(results) + [f"PROBLEM: {problem}" for problem in problems]:
        print(line)
    setup: dict[str, Any] = {"rounds": len(others), "seconds": args.seconds, "chunks": args.chunks}
    setup |= {"busy_cores_before_rounds": others, "problems": problems}
    setup |= {f"{name}_version": OTHERS[name].version() for name in args.against}
    print(json.dumps(results | {"setup": setup}))
    return 1 if problems else 0


def arguments() -> argparse.Namespace:
    summary = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(description=summary)
    parser.add_argument("--against", nargs="+", choices=OTHERS, default=[], help="also measure these, in the same run")
    parser.add_argument("--install", choices=OTHERS, help="only install this gateway")
    parser.add_argument("--quick", action="store_true", help="one round of one second per cell")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="per cell and round")
    parser.add_argument("--limit", type=float, default=200.0, help="seconds to measure at most")
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32], metavar="N")
    parser.add_argument("--chunks", type=int, default=50, help="content chunks of an answer")
    parser.add_argument("--server", choices=["daphne", "uvicorn"], default="", help="DAYBOOK_SERVER")
    parser.add_argument("--plain", action="store_true", help="also an agent without injection and tools")
    parser.add_argument("--without-daybook", action="store_true", help="measure only the others")
    args = parser.parse_args()
    if args.quick:
        args.rounds, args.seconds = 1, 1.0
    return args


def main() -> int:
    stop_on_signals()
    args = arguments()
    try:
        if args.install:
            print(f"{OTHERS[args.install].name} {OTHERS[args.install].install()} is installed for benchmarks")
            return 0
        return run_benchmark(args)
    except BenchError as exc:
        print(f"gateway.py: {exc}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
