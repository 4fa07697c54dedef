-- Makes or replaces a schedule of a tenant: it starts `target` of `face` by `cron` (five fields, in `timezone`),
-- `every` interval, or once `at` a time. No tick comes before `starts_at` or after `ends_at`. `missed` says what
-- becomes of ticks that nobody fired in time: skip, one (the newest) or all, up to 100 that are no older than
-- `missed_window`. `overlap` says what becomes of a tick while the work of the previous one is not over: allow, skip or
-- cancel (that work). `spread` shifts all ticks by a fixed time below it. Ticks go on where they were if only other
-- things change; a pause stays. Defining the same again changes nothing. A definition `from_code` may have ended by
-- now.
create or replace function holdfast.define_schedule(
  name text, target text, face text default 'work', input jsonb default '{}', options jsonb default '{}',
  cron text default null, every interval default null, at timestamptz default null, timezone text default 'UTC',
  starts_at timestamptz default null, ends_at timestamptz default null, missed text default 'one',
  missed_window interval default null, overlap text default 'allow', spread interval default '0',
  tenant text default 'default', actor text default null, from_code boolean default false)
returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  clock constant timestamptz := holdfast.clock();
  wanted holdfast.schedules;
  present holdfast.schedules;
begin
  perform holdfast.check_name('the name of a schedule', coalesce(define_schedule.name, ''));
  perform holdfast.check_tenant(define_schedule.tenant);  -- guard: tenant
  perform holdfast.check_name('actor', define_schedule.actor);
  perform pg_advisory_xact_lock(hashtextextended(  -- two workers that start together define it one after the other
    format('holdfast.schedule %s %s', define_schedule.tenant, define_schedule.name), 0));
  select s.* into present from holdfast.schedules s
   where s.tenant = define_schedule.tenant and s.name = define_schedule.name
     for update;
  wanted := present;
  wanted.tenant := define_schedule.tenant;
  wanted.name := define_schedule.name;
  wanted.face := define_schedule.face;
  wanted.target := define_schedule.target;
  wanted.input := coalesce(define_schedule.input, '{}');
  wanted.options := coalesce(define_schedule.options, '{}');
  wanted.cron := regexp_replace(btrim(define_schedule.cron), '\s+', ' ', 'g');
  wanted.every := define_schedule.every;
  wanted.at := define_schedule.at;
  wanted.timezone := define_schedule.timezone;
  wanted.starts_at := define_schedule.starts_at;
  wanted.ends_at := define_schedule.ends_at;
  wanted.missed := define_schedule.missed;
  wanted.missed_window := define_schedule.missed_window;
  wanted.overlap := define_schedule.overlap;
  wanted.spread := define_schedule.spread;
  if present.id is not null and wanted = present then
    return;  -- each worker defines it at its start; only what is new is written
  end if;
  perform holdfast.check_schedule(wanted, case when not coalesce(define_schedule.from_code, false) then clock end);
  wanted.shift := holdfast.schedule_shift(wanted.tenant, wanted.name, wanted.spread);
  wanted.version := coalesce(present.version, 0) + 1;
  wanted.broken := null;
  wanted.ended_at := null;
  wanted.defined_at := clock;
  if present.id is null
     or (present.cron, present.every, present.at, present.timezone, present.starts_at)
        is distinct from (wanted.cron, wanted.every, wanted.at, wanted.timezone, wanted.starts_at) then
    wanted.words := null;
    wanted.after_at := case
      when wanted.at <= clock then wanted.at  -- it is over before it began
      when wanted.at is not null then wanted.at - interval '1 microsecond'
      when wanted.cron is not null then greatest(clock, wanted.starts_at - interval '1 microsecond')
      when wanted.starts_at is null then date_trunc('second', clock)
      else greatest(wanted.starts_at - wanted.every,
                    holdfast.tick_before(wanted.starts_at, wanted.every, clock)) end;
  end if;
  wanted.upcoming := '{}';
  wanted.is_planned := false;
  wanted.next_at := null;
  wanted.wake_at := case when wanted.paused_at is null then clock end;
  if present.id is null then
    insert into holdfast.schedules (
      tenant, name, face, target, input, options, cron, every, at, timezone, starts_at, ends_at, missed, missed_window,
      overlap, spread, shift, version, after_at, wake_at, defined_at)
    values (wanted.tenant, wanted.name, wanted.face, wanted.target, wanted.input, wanted.options, wanted.cron,
            wanted.every, wanted.at, wanted.timezone, wanted.starts_at, wanted.ends_at, wanted.missed,
            wanted.missed_window, wanted.overlap, wanted.spread, wanted.shift, wanted.version, wanted.after_at,
            wanted.wake_at, wanted.defined_at)
    returning * into wanted;
  else
    update holdfast.schedules s
       set face = wanted.face, target = wanted.target, input = wanted.input, options = wanted.options,
           cron = wanted.cron, every = wanted.every, at = wanted.at, timezone = wanted.timezone,
           starts_at = wanted.starts_at, ends_at = wanted.ends_at, missed = wanted.missed,
           missed_window = wanted.missed_window, overlap = wanted.overlap, spread = wanted.spread,
           shift = wanted.shift, words = wanted.words, version = wanted.version, after_at = wanted.after_at,
           upcoming = wanted.upcoming, is_planned = wanted.is_planned, next_at = wanted.next_at,
           wake_at = wanted.wake_at, ended_at = wanted.ended_at, broken = wanted.broken, defined_at = wanted.defined_at
     where s.id = present.id;
  end if;
  perform holdfast.note_schedule(wanted.tenant, wanted.name, 'defined', 'user', define_schedule.actor, null,
                                 holdfast.schedule_definition(wanted));
  if wanted.cron is null then
    perform holdfast.store_plan(holdfast.plan_by_interval(wanted, clock), clock);
  end if;
  perform holdfast.wake_for_schedules();
end
$$;
grant execute on function holdfast.define_schedule to hf_worker, hf_operator;
