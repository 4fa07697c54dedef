"""The caller's own connection, of psycopg, asyncpg, SQLAlchemy or Django, as `options(conn=…)` takes it."""
