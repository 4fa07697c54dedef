"""What the catalog says about rights: who owns what, who may call what, and that nobody writes a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from holdfast.kernel import sources
from holdfast.testing import Template
from scenarios.proof import Proof

DB = Connection[Any]
RUNTIME = ["hf_producer", "hf_worker", "hf_reader", "hf_operator"]

# The manifest: what each role may call. A function that is not named here is for the kernel alone.
READING = {
    "allowed_tenants", "backoff", "chance", "clock", "error_text", "is_due", "is_live", "is_live_worker",
    "is_own_worker", "is_success", "live_workers", "matches", "matches_any", "partitions_ahead", "policy_of",
    "ops.step_of_run", "ingest.allowed_feeds", "ingest.events_by", "ingest.planning_step", "ingest.run_summary",
    "run_events", "run_machine", "run_results", "run_status", "step_events", "step_policy", "step_results",
    "step_status", "worker_standing", "history_rule", "old_months", "pruned", "pruned_steps", "rule_text",
    "sweep_state", "is_probed", "is_ready", "limit_family", "limit_rule", "bucket_level", "tokens_at", "would_admit",
    "flow.calculate_dependency_levels", "flow.get_step_readiness_status",
    "flow.get_step_readiness_status_batch", "flow.get_system_health_counts", "flow.get_task_execution_context",
    "flow.get_task_execution_context_batch", "flow.result_in_run", "flow.states_from_history", "flow.step_outcomes",
    "rules.error_class", "rules.is_included", "rules.is_retryable", "rules.states_from_history",
    "rules.validate_run_state",
    "flow.closed_tasks", "flow.judge_counts", "flow.settled_tasks", "flow.step_surroundings", "flow.touched_tasks",
}  # fmt: skip
STARTING = {
    "reserve_step_ids", "stage_steps", "start_run", "start_step", "start_task", "start_tasks", "take_staged",
    "flow.initialize_task", "flow.start_task", "ingest.start", "ops.queue_push", "ops.queue_run", "ops.record_delivery",
    "rules.stage_targets", "rules.take_preview", "rules.write_event",
}  # fmt: skip
WORKING = {
    "add_awaited",
    "charge_limit",
    "claim_steps",
    "drop_month",
    "enlist_worker",
    "fire_schedules",
    "halted_runs",
    "leases_left",
    "lost_leases",
    "mark_asleep",
    "measured_upkeep",
    "move_chunk",
    "namesakes",
    "note",
    "plan_schedules",
    "renew_leases",
    "rescue_steps",
    "retire_worker",
    "retry_waits",
    "settle_batch",
    "settle_steps",
    "settle_whole",
    "sweep",
    "upkeep",
    "work.claim_next_task",
    "work.recover_expired_leases",
    "ops.add_artifact",
    "ops.append_event",
    "ops.append_output",
    "ops.cancel_if_stale",
    "ops.cancel_stale_runs",
    "ops.claim_next_run",
    "ops.expire_claimed",
    "ops.finish_run",
    "ops.heartbeat",
    "ops.retry_in_place",
    "ops.sweep_runs",
    "ingest.absent_keys",
    "ingest.batch_rows",
    "ingest.begin_consolidation",
    "ingest.check_consolidated",
    "ingest.create_run",
    "ingest.delete_absent",
    "ingest.mark_consolidated",
    "ingest.put_page",
    "ingest.quarantine_records",
    "ingest.start_to_plan",
    "rules.stop_failing",
    "rules.apply_scheduled",
    "rules.correct",
    "rules.page_targets",
    "rules.pass_mismatches",
    "rules.record_page",
    "rules.revert",
    "rules.scheduled_task",
    "rules.target_inputs",
    "rules.turn_page",
}
DEFINING = {
    "define_kind", "define_limit", "define_policy", "define_schedule", "flow.define_flow", "rules.define_channel",
    "rules.define_rule", "ingest.define_feed",
}  # fmt: skip
OPERATING = {
    "cancel", "drop_month", "forget_limit", "forget_retention", "park_steps", "pause_limit", "pause_queue", "prunable",
    "reset_limit", "resolve", "resume_limit", "resume_queue", "retry", "set_retention", "sweep_now", "unpark_steps",
    "pause_run", "queue_run", "resume_run", "retry_steps", "stop_run",
    "violations",
    "backfill_schedule", "forget_schedule", "pause_schedule", "resume_schedule", "run_schedule",
    "flow.adjust_step", "flow.retry_from", "flow.safe_transition_to",
    "ops.cancel_if_stale", "ops.cancel_run", "ops.cancel_stale_runs", "ops.decide_approval", "ops.define_environment",
    "ops.retry_step",
    "ingest.cancel_run", "ingest.define_price", "ingest.force", "ingest.forget_price", "ingest.move_offset",
    "ingest.resume_consolidation", "ingest.retry_partitions", "ingest.retry_run", "ingest.set_watermark",
    "rules.apply", "rules.apply_at", "rules.dlq_report", "rules.resolve", "rules.retry_all", "rules.reconcile",
    "rules.retry_failed", "rules.rollback",
    "ops.define_project", "ops.retry_run", "ops.rollback_run", "ops.set_strict_projects", "ops.sweep_runs",
}  # fmt: skip
MANIFEST = {
    "hf_reader": READING,
    "hf_producer": READING
    | STARTING
    | {
        "cancel",
        "ingest.cancel_run",
        "ingest.retry_partitions",
        "ops.cancel_run",
        "ops.retry_run",
        "ops.retry_step",
        "ops.rollback_run",
    }
    | {"pause_run", "queue_run", "resume_run", "stop_run"},
    "hf_worker": READING | STARTING | DEFINING | WORKING,
    "hf_operator": READING | STARTING | DEFINING | OPERATING,
}
# Tables that a runtime role reads; the others it does not even see.
READABLE = {
    "edges", "installed", "journal", "kinds", "limit_changes", "limit_list", "limit_states", "limits",
    "machine_moves", "machine_states", "machines", "migrations",
    "note_keys", "notes", "policies", "queue_pauses", "queues", "run_changes", "run_steps", "runs", "steps", "workers",
    "retention_changes", "retention_list", "retention_rules",
    "dead_steps", "queue_list", "run_list", "step_list", "step_story", "worker_list",
    "schedule_changes", "schedule_list", "schedule_ticks", "schedules", "ticks",
    "audit_logs", "tasks",
    "approvals", "artifacts", "deliveries", "environments", "known_environments", "known_projects", "projects",
    "event_list", "queue_depth", "resolutions", "run_approvals", "run_artifacts", "run_durations", "run_events",
    "run_facts",
    "settings", "success_rate", "webhook_deliveries", "worker_utilization",
    "event_log", "feed_watermarks", "feeds", "known_feeds", "messages", "partition_progress", "partitions",
    "payloads", "prices", "pricing_rules", "quarantine", "quarantined", "run_metadata", "sightings", "starts",
    "watermarks", "worker_runs",
    "channels", "events", "exceptions", "figures", "findings", "known_channels", "ledger",
    "metrics", "mismatches", "pass_parts", "passes", "plans", "reconciliations", "price_changes", "refusals",
    "refused_items", "rule_list", "rule_runs", "rule_targets", "rule_versions", "stored_events", "target_marks",
    "target_values",
    "definitions", "step_dag", "step_templates", "step_transitions", "task_transitions",
}  # fmt: skip


@pytest.fixture(scope="module")
def db(template: Template) -> Iterator[DB]:
    """One database for them all: they only read."""
    with template.clone() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


def names(db: DB, query: str, *arguments: Any) -> list[str]:
    """Run a query about our schemas, `:ours` in its text; return its only column."""
    ours = f"'{{{','.join(sources.schemas())}}}'::regnamespace[]"
    return [name for (name,) in db.execute(query.replace(":ours", ours), arguments)]


@pytest.mark.parametrize("role", RUNTIME)
def test_each_role_may_call_what_the_manifest_says(db: DB, role: str, proof: Proof) -> None:
    """R35 X-15"""
    allowed = names(
        db,
        """select replace(p.pronamespace::regnamespace || '.' || p.proname, 'holdfast.', '') from pg_proc p
            where p.pronamespace = any (:ours)
              and has_function_privilege(%s, p.oid, 'execute')""",
        role,
    )

    proof.add(rounds=len(allowed))
    assert sorted(allowed) == sorted(MANIFEST[role])


def test_nobody_may_call_a_function_because_everybody_may(db: DB) -> None:
    """R35: EXECUTE is revoked from PUBLIC, also for functions that are made later."""
    with db.transaction(force_rollback=True):
        db.execute("set local role hf_owner")
        db.execute("create function holdfast.made_later() returns int language sql as 'select 1'")
        public = names(
            db,
            """select p.oid::regprocedure::text
                 from pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
                where p.pronamespace = any (:ours) and a.grantee = 0""",
        )

    assert public == []


def test_a_function_that_acts_as_its_owner_pins_its_search_path(db: DB) -> None:
    """R35: and so does every plpgsql function, which looks its names up when it runs."""
    unpinned = names(
        db,
        """select p.oid::regprocedure::text from pg_proc p join pg_language l on l.oid = p.prolang
            where p.pronamespace = any (:ours)
              and (p.prosecdef or l.lanname = 'plpgsql')
              and not coalesce(p.proconfig, '{}') @> array['search_path=pg_catalog, pg_temp']""",
    )

    assert unpinned == []


def test_a_function_without_a_pinned_path_was_bound_when_it_was_made(db: DB) -> None:
    """R35: its body is parsed (BEGIN ATOMIC), so that no search path changes what it means."""
    loose = names(
        db,
        """select p.oid::regprocedure::text from pg_proc p
            where p.pronamespace = any (:ours) and p.prosqlbody is null
              and not coalesce(p.proconfig, '{}') @> array['search_path=pg_catalog, pg_temp']""",
    )

    assert loose == []


def test_the_owner_owns_everything_and_cannot_log_in(db: DB) -> None:
    """X-15: and is neither a superuser nor past row-level security."""
    owners = names(
        db,
        """select pg_get_userbyid(o.owner) from (
             select c.relowner from pg_class c where c.relnamespace = any (:ours)
             union select p.proowner from pg_proc p where p.pronamespace = any (:ours)
             union select t.typowner from pg_type t where t.typnamespace = any (:ours)
             union select n.nspowner from pg_namespace n where n.oid = any (:ours)) o (owner)""",
    )
    owner = db.execute(
        """select r.rolsuper, r.rolcanlogin, r.rolbypassrls, r.rolcreaterole, r.rolcreatedb
             from pg_roles r where r.rolname = 'hf_owner'"""
    ).fetchone()

    assert owners == ["hf_owner"]
    assert owner == (False, False, False, False, False)


def test_the_roles_cannot_log_in_and_are_not_in_the_owner(db: DB) -> None:
    """X-15: a login is made by whoever runs the server, and put into one of them."""
    able = names(
        db,
        """select r.rolname from pg_roles r where r.rolname = any (%s)
              and (r.rolcanlogin or r.rolsuper or r.rolbypassrls or pg_has_role(r.oid, 'hf_owner', 'member'))""",
        RUNTIME,
    )

    assert able == []


@pytest.mark.parametrize("role", [*RUNTIME, "public"])
def test_no_runtime_role_may_change_a_table(db: DB, role: str) -> None:
    """R35: nor a view, a partition, a column or a sequence's value. A view that refuses every write takes none."""
    writable = names(
        db,
        """select c.relname from pg_class c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) a
            where c.relnamespace = any (:ours) and not (c.relkind = 'v' and 28 = (
                    select bit_or(t.tgtype & 28) from pg_trigger t  -- instead of insert, delete and update
                     where t.tgrelid = c.oid and t.tgtype & 65 = 65 and t.tgfoid in (
                       'work.refuse_write'::regproc, 'flow.refuse_write'::regproc, 'flow.take_adjustment'::regproc)))
              and a.privilege_type not in ('SELECT', 'USAGE')
              and a.grantee = coalesce((select r.oid from pg_roles r where r.rolname = %s), 0)
           union all
           select c.relname || '.' || f.attname
             from pg_class c join pg_attribute f on f.attrelid = c.oid, aclexplode(f.attacl) a
            where c.relnamespace = any (:ours)""",
        role,
    )

    assert writable == []


@pytest.mark.parametrize("role", RUNTIME)
def test_a_runtime_role_reads_what_the_manifest_says(db: DB, role: str) -> None:
    """R34: no partition by its own name, for only the parent's policies are asked; no keys, no role's tenants."""
    readable = names(
        db,
        """select c.relname from pg_class c
            where c.relnamespace = any (:ours) and c.relkind in ('r', 'p', 'v', 'm')
              and has_table_privilege(%s, c.oid, 'select')""",
        role,
    )

    assert set(readable) == READABLE


def test_every_view_asks_for_its_readers_rights(db: DB) -> None:
    """R34: a view that read as its owner would show all tenants."""
    views = names(
        db,
        """select c.relname from pg_class c
            where c.relnamespace = any (:ours) and c.relkind = 'v'
              and not coalesce(c.reloptions, '{}') @> array['security_invoker=true']""",
    )

    assert views == []


def test_every_table_with_a_tenant_has_forced_row_security(db: DB) -> None:
    """R34 X-14: and so has what is read of a run or a step. Of partitions only the parent is ever granted."""
    unprotected = {
        column: names(
            db,
            """select c.relname from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = %s
                where c.relnamespace = any (:ours)
                  and c.relkind in ('r', 'p') and not c.relispartition
                  and not (c.relrowsecurity and c.relforcerowsecurity
                           and exists (select from pg_policy p where p.polrelid = c.oid))""",
            column,
        )
        for column in ("tenant", "step_id", "run_id")
    }

    assert unprotected["tenant"] == ["role_tenants"]  # which nobody may read at all
    assert READABLE.isdisjoint(unprotected["step_id"] + unprotected["run_id"])
