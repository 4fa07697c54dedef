-- Makes the kernel's run of a preview, under the run `parent_run_id` if there is one.
create or replace function rules.begin_preview(run_id uuid, rule_id text, parent_run_id uuid, actor text, tenant text)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  -- Locked, so that retention leaves the parent in place.
  perform from holdfast.runs r
    where r.id = begin_preview.parent_run_id and r.tenant = begin_preview.tenant for key share;
  if begin_preview.parent_run_id is not null and not found then
    perform holdfast.refuse('RN004', format('there is no run %s of tenant %s', begin_preview.parent_run_id,
                                            begin_preview.tenant), 'rules.rule_runs lists them',
                            begin_preview.parent_run_id::text);
  end if;
  perform holdfast.set_actor('api', begin_preview.actor);
  perform holdfast.make_run(begin_preview.run_id, 'rules.run', begin_preview.rule_id, 'rules.target', '[]', '{}',
                            begin_preview.tenant, begin_preview.parent_run_id);
  perform holdfast.set_actor();
end
$$;
