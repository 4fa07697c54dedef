-- Which steps went with the runs: by their ids the journal is found that it keeps of them.
alter table holdfast.prunings add column steps int8multirange not null default '{}';
