"""What a self-test could leave behind: in the catalog, among processes, among files."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg

from holdfast.kernel import self_test_schema

CATALOG = {
    "schemas": "select nspname, nspowner::regrole, nspacl from pg_namespace where nspname !~ '^pg_(toast_)?temp_'",
    "roles": "select rolname, shobj_description(oid, 'pg_authid') from pg_roles",
    "members": "select roleid::regrole, member::regrole from pg_auth_members",
    "defaults": "select defaclrole::regrole, defaclobjtype, defaclacl from pg_default_acl",
    "database": """select a.grantee::regrole, a.privilege_type
                     from pg_database d, aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) a
                    where d.datname = current_database()""",
    "functions": """select p.oid::regprocedure, p.proacl, md5(pg_get_functiondef(p.oid)) from pg_proc p
                     where p.prokind = 'f' and p.pronamespace::regnamespace::text !~ '^(pg_|information_schema)'""",
    "relations": """select c.oid::regclass, c.relowner::regrole, c.relacl, c.relrowsecurity from pg_class c
                     where c.relnamespace::regnamespace::text !~ '^(pg_|information_schema)'""",
    "policies": "select schemaname, tablename, policyname, roles, qual from pg_policies",
    "settings": "select setdatabase, setrole, setconfig from pg_db_role_setting",
}


def catalog(dsn: str) -> dict[str, list[str]]:
    """Write down all that a schema, its roles and its rights are made of."""
    with psycopg.connect(dsn, autocommit=True) as db:
        return {name: sorted(str(row) for row in db.execute(statement)) for name, statement in CATALOG.items()}


def rows(dsn: str, *schemas: str) -> dict[str, list[Any]]:
    """Read all rows of the tables of these schemas."""
    tables = "select format('%%I.%%I', schemaname, tablename) from pg_tables where schemaname = any (%s)"
    with psycopg.connect(dsn, autocommit=True) as db:
        names = [name for (name,) in db.execute(tables, [list(schemas)])]
        return {name: sorted(map(str, db.execute(f"select * from {name}").fetchall())) for name in names}


def alive(dsn: str, folder: Path) -> list[str]:
    """List what of self-tests is alive or lies about: schemas, connections, processes, and folders in this one."""
    pattern = "holdfast_selftest_"
    with psycopg.connect(dsn, autocommit=True) as db:
        found = db.execute(
            "select 'schema ' || nspname from pg_namespace where starts_with(nspname, %(pattern)s) union all "
            "select 'connection ' || pid from pg_stat_activity where starts_with(application_name, %(pattern)s)"
            "   and datname = current_database()",
            {"pattern": pattern},
        ).fetchall()
    ours = [f"process {process.pid}" for process in processes(dsn)]
    return [line for (line,) in found] + ours + [f"folder {path.name}" for path in folder.glob(f"{pattern}*")]


def processes(dsn: str) -> list[psutil.Process]:
    """Find the workers of self-tests in a database."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if self_test_schema.VARIABLE in process.environ() and process.environ().get("HOLDFAST_DSN") == dsn:
                found.append(process)
    return found
