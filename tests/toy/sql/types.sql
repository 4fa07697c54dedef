-- How many lists and wishes are in each state, by list; kept by toy.count_rows.
create table if not exists toy.counts (
  subject text not null,
  list_id text not null,         -- '': a wish without a list
  state text not null,
  rows bigint not null,
  primary key (subject, list_id, state)
);
