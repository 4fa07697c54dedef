"""How each section is timed, as the report explains it, in the report's order."""

HOW = {
    "drain": "No-op tasks are started first, tables vacuumed, a checkpoint made. The worker processes load and wait for each other; "
    "the clock runs from the first handler call until the store holds nothing unfinished (redis: until the last handler call).",
    "bulk": "Tasks a second through the engine's best call for many at once, until that call has committed.",
    "steady": "Every start is a commit of its own and so is every acknowledgement. The drain rate in this mode is measured first; "
    "then producers send 70 % of it (asked) to the same worker, and the tasks that began while the load lasted are counted (held). Pickup is from the "
    "call that starts a task to the handler's first line. Dead tuples and growth on disk are read right afterwards, with autovacuum on.",
    "trickle": "20 tasks a second to one worker that waits: milliseconds from the call that starts a task to the handler's first line.",
    "growth": "The drain rate of a part of the due tasks, with ever more finished ones beside them. The finished rows are "
    "clones of what the engine wrote itself when it finished some.",
    "retention": "The drain rate of a part of the due tasks beside a million that ended long ago: alone, and while they are removed in chunks, "
    "as a worker does it.",
    "snapshot": "A drain by one process, without and with another connection that holds a `repeatable read` snapshot open all the while.",
    "diamonds": "Runs of seven no-op steps: one, then five side by side, then one. Steps a second from the first handler call "
    "until every run is finished. absurd runs the seven steps in turn inside one task; dbos is measured both ways. "
    "With context and results: each step takes a field of the flow's context and what its parents gave.",
    "fan": "One flow of no-op steps beside each other and one that waits for them all. Steps a second from the first handler call until the run is "
    "finished. absurd runs the steps in turn inside one task; dbos is measured both ways. Where a flow is one process's there is no figure for two. "
    "As a map, the flow's first step gives the list and a worker plans the steps, which is part of the time.",
    "chain": "Flows of no-op steps, each of which waits for the one before: one flow alone, where nothing but the time from a step's end to its "
    "child's beginning counts, and a hundred at the same time. Steps a second, by one process. A chain inside absurd or dbos is a loop in one process.",
    "widths": "The same number of no-op steps in flows of ten to ten thousand beside each other, each with a join: what a step costs to start (the run "
    "planned by one call) and how many are done in a second by one process.",
    "subscribers": "Maps over 100, 1 000 and 10 000 items, the same number of no-op steps each time: without a subscriber, with one to "
    "`flow.run.completed`, and with one to every event. Seconds from the first handler call until every run is finished, by one process; a ratio is the "
    "time with the subscriber to the time without, inside one round.",
    "limits": "Drains as above, by `holdfast worker` under limits. First without a limit and under a concurrency and a bucket that never bind, with one and "
    "with two processes. Then tasks of 1 000 keys with a concurrency of 1 each, at `--concurrency 200`, against no limit at the same setting, named queues "
    "of graphile-worker and locks of procrastinate. Then free tasks alone and behind ten times as many that are parked on a limit. At last four workers "
    "share a rate of 100 a second: handlers that began, counted at their first lines over a minute, after the burst.",
    "shell": "A program prints many lines: through `ctx.shell` into the events of its run, and with `cat` through a pipe into a file.",
    "targets": "One run of very many steps is started, against a bare COPY of the same rows into a table of the baseline.",
    "rules": "A table of prices is previewed by a process of its own, against bare COPYs of the rows that this writes, one table after the other, into tables "
    "of the same shape with the same indexes. An apply by one worker, from its first claim to its end, against its two parts one after the other: the same "
    "UPDATEs by hand and a drain of as many no-op steps with a batch handler. A run of 100 targets alone and beside the large run, from its apply to its end. "
    "After a pause or a stop the seconds until the last target ended that had begun. The same apply to a simulated shop, whose calls are made by hand with the "
    "channel itself, one after the other; a rollback of it, and a pass over it against its reads by hand. Four workers share a limit of 50 calls a second to a "
    "shop that refuses more, counted from its log after the first second. The newest change of each item is looked up as a pass does, beside as many changes as "
    "items and beside a hundred times as many.",
    "hot": "The same loop calls the functions of both, 500 steps a batch, the next claim overlapping the last settle: "
    "the SQL by itself, no worker around it.",
    "cost": "The loop of the section above on databases which the bench has altered for itself: without the guard, without the journal, "
    "without both. The product has no such switch.",
    "producers": "32 connections start tasks one by one, each start a commit of its own, beside a worker that slept until the first; against the same on a "
    "database in which the bench has taken hints out. The worst case is a worker that is marked asleep and never wakes: then every start sends a hint.",
    "own": "One connection of the caller's, in a transaction: microseconds of a start by `task.options(conn=...)`, against the same SQL function "
    "called through that library itself. Blocks of 50 take turns, and a figure is the median of its blocks.",
    "masked": "The drain above by one process, without secrets and with three that are looked for in all that leaves the worker.",
    "ops": "The functions of document 002 against the document's own, completed where it leaves something out, on plain tables in the same database. "
    "Blocks of 50 calls take turns on one connection, each call a commit of its own, with a thousand runs queued; a figure is the median of its blocks. "
    "Eight claimers empty a queue, and each run must be claimed once. The 99th percentile of a claim is measured with a thousand runs queued and nothing "
    "else there, and with many queued beside many finished. `logs -f` follows a run that prints slowly: seconds from the call that appends a line until it "
    "is printed, by the slowest of ten.",
    "ingest": "A feed of a table of another database, full, against loops written by hand on one connection: pages by COPY and INSERT ... SELECT ... ON "
    "CONFLICT with a commit each, pages of 30 by arrays with a cursor, and batches of 2 000 with the same mapping function and upserts of 100. Ours is "
    "`holdfast worker` with one, two and eight processes, which have all connected before the run is started; times are those of the run's own events. The log is what the server wrote during a first run and "
    "during another over the same rows. The query is document 001's of the last 24 hours, beside many runs of 30 partitions.",
    "feeds": "The same feed with one worker process. A record's cost is the time of pages and batches over the number of records, once with few and once "
    "with many; memory is the most that the worker's processes ever held. The example is document 001's: 500 000 records in at most 30 partitions, in pages "
    "of 30, whose run may take 15 minutes. The tables of the feed, with their indexes, are measured after that run and after four more over the same rows, "
    "with autovacuum on.",
    "pulls": "The rows of a source table into a table of another database, mapped by one Python function: a full run of one worker process, and dlt "
    "(merge by upsert) at each of its settings, of which the fastest counts. dlt with columns mapped by Arrow, without the function, is shown for comparison. "
    "The CPU is that of the client's processes, their start included.",
    "ticks": "Schedules with a tick at the same moment, and one worker that slept until then: seconds from that moment until the tasks of all ticks "
    "are queued, by the database's clock.",
    "idle": "Statements that reach the server in a minute from one worker that has had nothing to do for a while, counted in the server's log. Ours has "
    "two schedules with ticks in an hour and later.",
    "batches": "No-op tasks by one process: one by one, by a handler that takes 250 at a time, and by one whose tasks have a key each. Rows: a batch handler inserts one row "
    "per task in `batch.transaction()`; for the baseline a loop by hand claims 250 steps with SKIP LOCKED, then inserts their rows and settles them in one "
    "transaction.",
    "pause": "One run of a million steps, of which 5 000 are due at a time, and one of 10 000: milliseconds of the calls that queue, pause, "
    "resume and stop them (the median of five for pause and resume). Then a worker with handlers of 50 ms works on the large run, and the last handler "
    "call after a pause and after a stop is timed from the call's answer. A run of 100 is started beside it and alone. Memory is the worker's while it "
    "drains the large run.",
    "cancel": "One idle worker moves the steps of a cancelled run, and those of a failed run that is retried, until none is left. Meanwhile "
    "another connection locks the next step to be moved, and the run, again and again: its longest wait.",
    "memory": "Resident memory of one worker process with its children, at shares of a long drain.",
}
