-- Refuses a cron that has not five fields, or a field that is out of its range. Whether the five ever meet (not on the
-- 30th of February) is for the worker that plans its ticks.
create or replace function holdfast.check_cron(cron text)
returns void
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  names constant text[] := array['minute', 'hour', 'day-of-month', 'month', 'day-of-week'];
  least_values constant int[] := array[0, 0, 1, 1, 0];
  most_values constant int[] := array[59, 23, 31, 12, 7];
  months constant text[] := '{JAN,FEB,MAR,APR,MAY,JUN,JUL,AUG,SEP,OCT,NOV,DEC}';
  days constant text[] := '{SUN,MON,TUE,WED,THU,FRI,SAT}';
  fields constant text[] := regexp_split_to_array(upper(check_cron.cron), ' ');
  place int;
  part text;
  bounds int[];
  step int;
begin
  if check_cron.cron is null then
    return;
  end if;
  if cardinality(fields) <> 5 or length(check_cron.cron) > 200 then
    perform holdfast.refuse('RN005', format('a cron has five fields, got %s: %s', cardinality(fields),
                                            to_json(left(check_cron.cron, 50))),
                            'minute, hour, day of month, month, day of week: 0 2 * * *; for seconds use every', 'cron');
  end if;
  for place in 1 .. 5 loop
    foreach part in array string_to_array(fields[place], ',') loop
      step := case when part ~ '/[0-9]{1,4}$' then split_part(part, '/', 2)::int end;
      part := case when step is null then part else split_part(part, '/', 1) end;
      if place = 4 then
        part := (select coalesce(string_agg(coalesce(array_position(months, w.word)::text, w.word), '-'
                                            order by w.n), '')
                   from regexp_split_to_table(part, '-') with ordinality w (word, n));
      elsif place = 5 then
        part := (select coalesce(string_agg(coalesce((array_position(days, w.word) - 1)::text, w.word), '-'
                                            order by w.n), '')
                   from regexp_split_to_table(regexp_replace(part, '#[1-5]$|(?<=[0-9])L$', ''), '-')
                        with ordinality w (word, n));
      end if;
      bounds := case when part ~ '^[0-9]{1,2}(-[0-9]{1,2})?$' then regexp_split_to_array(part, '-')::int[] end;
      if not coalesce(
           step is distinct from 0
           and (part = '*' or (place = 3 and part in ('L', 'LW'))
                or (bounds[1] >= least_values[place] and bounds[cardinality(bounds)] <= most_values[place]
                    and bounds[1] <= bounds[cardinality(bounds)])), false) then
        perform holdfast.refuse('RN005', format('the %s of a cron must be %s to %s, got %s', names[place],
                                                least_values[place], most_values[place], to_json(fields[place])),
                                'such as 5, 1-5, */15 or 1,15', 'cron');
      end if;
    end loop;
  end loop;
end
$$;
