select this_is_not_sql;
