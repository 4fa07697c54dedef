-- Whether a ref matches a branch pattern: `*` stands for any characters but a slash, `**` for any. A pattern that does
-- not begin with refs/ is for branches.
create or replace function ops.matches_branch(pattern text, ref text)
returns boolean
language sql immutable
begin atomic
  select coalesce(
    case when matches_branch.ref like 'refs/%' then matches_branch.ref else 'refs/heads/' || matches_branch.ref end
    ~ ('^' || replace(replace(replace(replace(
         regexp_replace(case when matches_branch.pattern like 'refs/%' then matches_branch.pattern
                             else 'refs/heads/' || matches_branch.pattern end, '([\\.^$+(){}|\[\]])', '\\\1', 'g'),
         '?', '[^/]'), '**', E'\x01'), '*', '[^/]*'), E'\x01', '.*') || '$'), false);
end;
