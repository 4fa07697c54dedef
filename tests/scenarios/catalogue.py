"""The faults that are made to happen, and what must hold under each; tests name them in their docstrings."""

from __future__ import annotations

from typing import NamedTuple


class Scenario(NamedTuple):
    fault: str
    holds: str


SCENARIOS = {
    "R1": Scenario(
        "workers killed with -9 under load, also under limits",
        "each task ends with one success, soon after its lease expires; no limit is exceeded or leaks",
    ),
    "R2": Scenario(
        "a kill at every failpoint, also under limits",
        "the state is legal, the task ends, its effect exists once; no limit is exceeded or leaks",
    ),
    "R3": Scenario(
        "a worker frozen past its lease", "renewal, note and outcome are rejected; its handler is told to stop"
    ),
    "R4": Scenario("a worker of the same name takes over a frozen worker's task", "the old lease number is rejected"),
    "R5": Scenario("a task released and claimed many times", "lease numbers only grow, none is reused"),
    "R6": Scenario("a rescue races an outcome", "one of them is accepted, never both"),
    "R7": Scenario("handlers burn CPU or sleep in C for three leases", "their leases are kept"),
    "R8": Scenario("handlers hold all pooled connections", "renewals, claims and sweeps continue"),
    "R9": Scenario("the server killed under load", "nothing acknowledged is lost; workers reconnect"),
    "R10": Scenario("connections cut, including the listening one", "as above, and notifications arrive again"),
    "R11": Scenario("the answer to a commit is lost", "no duplicate; the caller learns the true outcome"),
    "R12": Scenario(
        "a connection that swallows everything", "calls end at their deadline; other workers recover the task"
    ),
    "R13": Scenario("the server down for a while", "the process survives, keeps reconnecting and logs it"),
    "R14": Scenario(
        "the primary dies, its synchronous standby is promoted", "workers find the new primary; nothing is lost"
    ),
    "R15": Scenario("PgBouncer in transaction mode", "everything works; doctor reports that notifications are off"),
    "R16": Scenario("workers' clocks an hour off, both ways", "nothing claimed or fired early, no lease stolen"),
    "R17": Scenario("a claim late in its transaction", "the lease has its full length"),
    "R18": Scenario("the disk is full", "a clear error, nothing acknowledged is lost, and work resumes"),
    "R19": Scenario(
        "an old snapshot held open; 100,000 steps parked behind a limit",
        "work continues beside them; doctor names the holder",
    ),
    "R20": Scenario("many producers and a sleeping worker", "notifications do not delay starts"),
    "R21": Scenario("many workers on many empty tasks", "each runs once; no claim exceeds its batch"),
    "R22": Scenario("one key from many threads", "one task, and all get its number; another payload is rejected"),
    "R23": Scenario("a join of many parents, workers killed", "it runs once, after all of them"),
    "R24": Scenario("a task that kills its worker", "it fails after its tries; the queue continues"),
    "R25": Scenario("a worker without the handler", "the task is not touched, and shown as unserved"),
    "R26": Scenario(
        "a shop with rate limits, errors, lost answers and late writes, and workers killed at every place of a call",
        "at most one net effect per target; counts are those of the shop's log, and what is unknown is listed",
    ),
    "R27": Scenario(
        "items edited between preview and apply", "they are left as they are, and named with what was found"
    ),
    "R28": Scenario(
        "a server answers 429 with Retry-After in every form, or fails",
        "the wait is bounded; the breaker opens, sends one probe and closes",
    ),
    "R29": Scenario(
        "an ingest run: a page twice, a kill or a server crash anywhere, a row that commits late, failed partitions",
        "rows are stored once; the watermark does not move on failure; the late row comes with the next run",
    ),
    "R30": Scenario(
        "schedulers killed in turn; clocks that change, both ways; an outage",
        "each tick is fired once; what was missed is caught up with as the schedule says",
    ),
    "R31": Scenario(
        "SIGTERM, once and twice",
        "no new claims; unfinished tasks are released uncharged, with their slots and tokens; the exit code says how",
    ),
    "R32": Scenario(
        "migrations under load, two at once, with an older worker running",
        "no errors, one winner; it obeys limits that it does not know",
    ),
    "R34": Scenario("logins of two tenants in one database", "neither sees, changes or limits anything of the other"),
    "R35": Scenario("a hijacked search_path, PUBLIC's grants, DML by runtime roles", "rejected; grants are as listed"),
    "R38": Scenario("each role tries to change journal and notes", "rejected"),
    "R40": Scenario("a minute of steady load", "memory, connections and dead rows stay bounded"),
    "guards": Scenario("each guard removed in turn", "the suite fails"),
}
NOT_YET = {
    "R33, R39": "the HTTP API and the console do not exist yet",
    "R36": "webhooks in have their own tests: `tests/ops/test_webhook.py`; webhooks out do not exist yet",
    "R37": "secrets have their own tests: `tests/security/test_canary.py`",
}
