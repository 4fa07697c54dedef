-- squawk-ignore-file ban-concurrent-index-creation-in-transaction
-- The steps of a call: what is due or parked on a limit, by a digest of kind, tenant and key, because the names
-- together may be too long for an index entry.
create index concurrently if not exists steps_batched on holdfast.steps (
    queue, priority, limited_by, hashtextextended(kind || E'\n' || tenant || E'\n' || batch_key, 0),
    coalesce(due_at, parked_due_at), id)
  where batch_key is not null and (due_at is not null or limited_by is not null);
-- The runs whose next lot a claim may have to admit: few, and none in most databases.
create index concurrently if not exists runs_admitting on holdfast.runs (id) where to_admit > 0;
