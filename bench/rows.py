"""The same steps for the baseline and for holdfast, made in the server: (engine, work) to statements; {n} is how many.

Fans and chains, which holdfast starts by its own calls, are the baseline's alone: {runs} of them, {n} steps wide or long.
"""

from __future__ import annotations

_RUN = "('00000000-0000-7000-8000-' || lpad(to_hex(r), 12, '0'))::uuid"
_ONE_RUN = "'00000000-0000-7000-8000-000000000001'"
_DIAMONDS = "generate_series(0, {n} / 7 - 1) r"
# A diamond of seven: one, five beside each other, one.
_WAITS = "(array[0, 1, 1, 1, 1, 1, 5])[k + 1]"
_EDGES = "(values (1, 2), (1, 3), (1, 4), (1, 5), (1, 6), (2, 7), (3, 7), (4, 7), (5, 7), (6, 7)) e (a, b)"
# As a start does: a claim looks only where a queue is known.
_QUEUE = "insert into holdfast.queues (queue, created_at) values ('default', now()) on conflict do nothing"

_FLOWS = "generate_series(0, {runs} - 1) r"
_STEP = "insert into baseline.steps (id, run_id, machine, kind, state, due_at, waits, input) overriding system value"

LOADS = {
    ("baseline", "tasks"): [
        """insert into baseline.steps (machine, kind, state, due_at, input)
           select 'work.task', 'noop', 'pending', now(), jsonb_build_object('x', g) from generate_series(1, {n}) g""",
    ],
    ("holdfast", "tasks"): [
        _QUEUE,
        """insert into holdfast.steps (machine, kind, state, due_at, created_at, input)
           select 'work.task', 'noop', 'pending', now(), now(), jsonb_build_object('x', g)
             from generate_series(1, {n}) g""",
    ],
    ("baseline", "one run"): [
        f"insert into baseline.runs (id, total) values ({_ONE_RUN}, {{n}})",
        f"""insert into baseline.steps (run_id, machine, kind, state, due_at, input)
            select {_ONE_RUN}, 'flow.step', 'noop', 'pending', now(), jsonb_build_object('x', g)
              from generate_series(1, {{n}}) g""",
    ],
    ("holdfast", "one run"): [
        _QUEUE,
        f"""insert into holdfast.runs (id, machine, name, state, total, live, created_at)
            values ({_ONE_RUN}, 'flow.task', 'bench', 'pending', {{n}}, {{n}}, now())""",
        f"""insert into holdfast.steps (run_id, machine, kind, state, due_at, created_at, input)
            select {_ONE_RUN}, 'flow.step', 'noop', 'pending', now(), now(), jsonb_build_object('x', g)
              from generate_series(1, {{n}}) g""",
    ],
    ("baseline", "diamonds"): [
        f"insert into baseline.runs (id, total) select {_RUN}, 7 from {_DIAMONDS}",
        f"""insert into baseline.steps (id, run_id, machine, kind, state, due_at, waits, input) overriding system value
            select r * 7 + k + 1, {_RUN}, 'flow.step', 'noop', 'pending', case when k = 0 then now() end, {_WAITS},
                   jsonb_build_object('x', k)
              from {_DIAMONDS}, generate_series(0, 6) k""",
        f"insert into baseline.edges select r * 7 + e.a, r * 7 + e.b from {_DIAMONDS}, {_EDGES}",
    ],
    ("holdfast", "diamonds"): [
        _QUEUE,
        f"""insert into holdfast.runs (id, machine, name, state, total, live, created_at)
            select {_RUN}, 'flow.task', 'bench', 'pending', 7, 1, now() from {_DIAMONDS}""",
        f"""insert into holdfast.steps (id, run_id, machine, kind, state, due_at, waits, created_at, input)
            select r * 7 + k + 1, {_RUN}, 'flow.step', 'noop', 'pending', case when k = 0 then now() end, {_WAITS}, now(),
                   jsonb_build_object('x', k)
              from {_DIAMONDS}, generate_series(0, 6) k""",
        f"insert into holdfast.edges select r * 7 + e.a, r * 7 + e.b from {_DIAMONDS}, {_EDGES}",
    ],
    ("baseline", "fan"): [
        f"insert into baseline.runs (id, total) select {_RUN}, {{n}} + 1 from {_FLOWS}",
        f"""{_STEP}
            select r * ({{n}} + 1) + k, {_RUN}, 'flow.step', 'noop', 'pending', case when k <= {{n}} then now() end,
                   case when k <= {{n}} then 0 else {{n}} end, jsonb_build_object('x', k)
              from {_FLOWS}, generate_series(1, {{n}} + 1) k""",
        f"""insert into baseline.edges
            select r * ({{n}} + 1) + k, (r + 1) * ({{n}} + 1) from {_FLOWS}, generate_series(1, {{n}}) k""",
    ],
    ("baseline", "chain"): [
        f"insert into baseline.runs (id, total) select {_RUN}, {{n}} from {_FLOWS}",
        f"""{_STEP}
            select r * {{n}} + k, {_RUN}, 'flow.step', 'noop', 'pending', case when k = 1 then now() end,
                   case when k = 1 then 0 else 1 end, jsonb_build_object('x', k)
              from {_FLOWS}, generate_series(1, {{n}}) k""",
        f"insert into baseline.edges select r * {{n}} + k, r * {{n}} + k + 1 from {_FLOWS}, generate_series(1, {{n}} - 1) k",
    ],
}
