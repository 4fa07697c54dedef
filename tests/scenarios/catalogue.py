"""The faults that are made to happen, and what must hold under each; tests name them in their docstrings."""

from __future__ import annotations

from typing import NamedTuple


class Scenario(NamedTuple):
    fault: str
    holds: str


SCENARIOS = {
    "R1": Scenario("workers killed with -9 under load", "each task ends, one success each, soon after its lease"),
    "R2": Scenario("a kill at every failpoint", "the state is legal, the task ends, its effect is there once"),
    "R3": Scenario("a worker frozen past its lease", "renewal, note and outcome refused; its handler is told"),
    "R4": Scenario("a namesake takes over a frozen worker's task", "the old lease number is refused"),
    "R5": Scenario("released and claimed again and again", "lease numbers only grow, none is used twice"),
    "R6": Scenario("a rescue races an outcome", "one of them counts, never both"),
    "R7": Scenario("handlers burn CPU or sleep in C for three leases", "their leases are kept"),
    "R8": Scenario("handlers hold all pooled connections", "renewals, claims and sweeps go on"),
    "R9": Scenario("the server killed under load", "nothing acknowledged is lost; workers come back"),
    "R10": Scenario("connections cut, the listening one too", "as above, and hints are heard again"),
    "R11": Scenario("the answer to a commit cut off", "no duplicate; the caller learns the true outcome"),
    "R12": Scenario(
        "a connection that swallows everything", "calls give up by their deadline; others recover the task"
    ),
    "R13": Scenario("the server down for a while", "the process stays, tries again and again, and says so"),
    "R14": Scenario("the primary dies, its synchronous standby is promoted", "the writer is found; nothing is lost"),
    "R15": Scenario("PgBouncer in transaction mode", "all works; doctor says that hints are off"),
    "R16": Scenario("workers' clocks an hour off, both ways", "nothing claimed early, no lease stolen"),
    "R17": Scenario("a claim late in its transaction", "the lease has its full length"),
    "R18": Scenario("the disk is full", "a clear error, nothing acknowledged lost, and it heals"),
    "R19": Scenario("an old snapshot held open", "work goes on; doctor names who holds it"),
    "R20": Scenario("many producers beside a sleeping worker", "hints do not hold up starts"),
    "R21": Scenario("many workers on many empty tasks", "each once; no claim takes more than its batch"),
    "R22": Scenario("one key from many threads", "one task, its number to all; another payload is refused"),
    "R23": Scenario("a join of many parents, workers killed", "it runs once, after all of them"),
    "R24": Scenario("a task that kills its worker", "set aside after its tries; the queue flows on"),
    "R25": Scenario("a worker without the handler", "the task is left alone, and shown as unserved"),
    "R31": Scenario("SIGTERM, once and twice", "no new claims; the rest handed back uncharged; the exit code tells"),
    "R32": Scenario("migrations under load, by two at once, beside an older worker", "no errors, one winner"),
    "R35": Scenario("a hijacked search_path, PUBLIC's grants, DML by runtime roles", "refused; grants as listed"),
    "R38": Scenario("journal and notes changed by each role", "refused"),
    "R40": Scenario("a minute of steady load", "memory, connections and dead rows stay bounded"),
    "guards": Scenario("each guard taken out in turn", "the suite fails"),
}
NOT_YET = {
    "R26, R27": "bulk changes are not there yet",
    "R28": "calls to outside systems are not there yet",
    "R29": "ingest is not there yet",
    "R30": "schedules are not there yet",
    "R33, R36, R37, R39": "HTTP, webhooks and the console are not there yet",
    "R34": "tenants have tests of their own: test_tenants, test_own_workers and test_own_definitions of tests/security",
}
