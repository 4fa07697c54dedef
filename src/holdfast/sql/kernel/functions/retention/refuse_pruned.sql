-- Raises the error for a step or run that retention has removed; does nothing for any other id. A face that has ids of
-- its own passes the one that its users know.
create or replace function holdfast.refuse_pruned(id text, known_as text default null)
returns void
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  gone record;
begin
  select p.* into gone from holdfast.pruned(refuse_pruned.id) p;
  if gone.id is not null then
    perform holdfast.refuse(
      'RN012',
      format('%s %s was pruned: it ended as %s at %s%s', gone.label, coalesce(refuse_pruned.known_as, gone.id),
             coalesce(gone.outcome, gone.state),
             to_char(gone.finished_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS"Z"'),
             ', and the rule "' || gone.rule || '" removed it'),
      format('see its history: holdfast runs show %s; see the rules: holdfast retention show', gone.id),
      coalesce(refuse_pruned.known_as, gone.id));
  end if;
end
$$;
