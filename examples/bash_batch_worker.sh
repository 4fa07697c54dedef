#!/usr/bin/env bash
# A Holdfast worker in bash for batch handlers: one call of a program serves many steps.
#
#     HOLDFAST_DSN=postgresql://… examples/bash_batch_worker.sh [option…] KIND PROGRAM
#
# PROGRAM reads a JSON array of inputs from standard input and writes a JSON array of outcomes to standard output, one
# per input and in the same order: {"outcome": "done", "result": …}, {"outcome": "retry", "error": {"message": …}},
# {"outcome": "fail", …} or {"outcome": "snooze", "retry_after": "5 min"}. If it exits with another code than 0, or
# writes no such array, each step of the call is retried by its policy.
#
#     --size N         how many steps a call may have (default: 250);  --by FIELD: they share this field of the input
#     --queue NAME     the queue to claim from (default: default)
#     --lease SPAN     how long we may be silent, as a PostgreSQL interval (default: 60 s)
#     --beat SECONDS   how often to renew while the program runs, best a third of the lease (default: 20)
#     --once           stop when nothing is due
#
# Environment: HOLDFAST_DSN; WORKER, a name that no other process has; PSQL, the psql to use. bash_worker.sh is the
# worker for single steps, with notes and signals. Needs bash 4.3 or later.
set -uo pipefail

queue=default size=250 by='' lease='60 s' beat=20 once=0
while [[ ${1-} == --* ]]; do
  case $1 in
    --queue) queue=$2 ;; --size) size=$2 ;; --by) by=$2 ;; --lease) lease=$2 ;; --beat) beat=$2 ;;
    --once) once=1; shift; continue ;;
    *) echo "bash_batch_worker: no option $1" >&2; exit 2 ;;
  esac
  shift 2
done
kind=${1:?"bash_batch_worker: name the kind of steps"}
program=${2:?"bash_batch_worker: name the program"}
: "${HOLDFAST_DSN:?"bash_batch_worker: set HOLDFAST_DSN"}"
worker=${WORKER:-$HOSTNAME-$$}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Runs the statement on standard input. Values are passed as psql variables; no value is ever pasted into SQL.
sql() {
  "${PSQL:-psql}" --no-psqlrc --quiet --no-align --tuples-only --field-separator=$'\t' --dbname "$HOLDFAST_DSN" \
    -v ON_ERROR_STOP=1 -v worker="$worker" -v queue="$queue" -v lease="$lease" -v kind="$kind" "$@"
}

# One line per call: the steps with their leases, and their inputs in the same order. The claim has formed the calls.
claim() {
  sql -v size="$size" <<'SQL'
select jsonb_agg(jsonb_build_object('step_id', c.step_id, 'lease_id', c.lease_id) order by c.step_id),
       jsonb_agg(c.input order by c.step_id)
  from holdfast.claim_steps(:'worker', :'queue', array[:'kind'], :'size', :'lease', calls => 1) c
 group by c.call, case when c.call is null then c.step_id end;
SQL
}

renew() { # STEPS: a file, as are the others below; their leases stay ours while the program runs
  STEPS=$1 sql >/dev/null <<'SQL'
\set steps `cat "$STEPS"`
select holdfast.renew_leases(:'worker', array_agg(s.lease_id), :'lease', array_agg(s.step_id))
  from jsonb_to_recordset(:'steps') s (step_id bigint, lease_id bigint);
SQL
}

# Every step keeps its own lease and outcome: a step that we have lost is left out of the answer, and the others count.
settle() { # STEPS OUTCOMES: fails if these are no array of as many outcomes
  STEPS=$1 OUTCOMES=$2 sql >/dev/null <<'SQL'
\set steps `cat "$STEPS"`
\set outcomes `head -c 50000000 "$OUTCOMES"`
select 1 / (jsonb_array_length(:'steps') = jsonb_array_length(:'outcomes'))::int;
select count(*) from (select jsonb_agg(s.step || o.outcome) as settled
                        from jsonb_array_elements(:'steps') with ordinality s (step, place)
                        join jsonb_array_elements(:'outcomes') with ordinality o (outcome, place) using (place)) b,
     holdfast.settle_steps(b.settled);
SQL
}

retry_all() { # STEPS CODE
  STEPS=$1 sql -v code="$2" >/dev/null <<'SQL'
\set steps `cat "$STEPS"`
select count(*) from (select jsonb_agg(s.step || jsonb_build_object('outcome', 'retry', 'error', jsonb_build_object(
                        'type', 'NoOutcomes', 'message', 'the program exited with ' || :'code'))) as settled
                        from jsonb_array_elements(:'steps') s (step)) b,
     holdfast.settle_steps(b.settled);
SQL
}

serve() {
  "$program" <"$scratch/items" >"$scratch/outcomes" &
  local handler=$!
  while kill -0 "$handler" 2>/dev/null; do
    for ((tenth = 0; tenth < beat * 10; tenth++)); do
      kill -0 "$handler" 2>/dev/null || break
      sleep 0.1
    done
    kill -0 "$handler" 2>/dev/null && renew "$scratch/steps"
  done
  wait "$handler"
  local code=$?
  ((code == 0)) && settle "$scratch/steps" "$scratch/outcomes" 2>/dev/null || retry_all "$scratch/steps" "$code"
}

sql -v size="$size" -v by="$by" >/dev/null <<'SQL'
select holdfast.define_kind(:'kind', queue => :'queue', batch => :'size', batch_by => nullif(:'by', ''));
SQL
while :; do
  claimed=$(claim) || { sleep 1; continue; }
  if [[ -z $claimed ]]; then
    sql <<<"select from holdfast.rescue_steps();" # any worker recovers the steps of silent ones
    ((once)) && break
    sleep 1
    continue
  fi
  while IFS=$'\t' read -r steps items <&4; do
    printf '%s' "$steps" >"$scratch/steps"
    printf '%s' "$items" >"$scratch/items"
    serve
  done 4<<<"$claimed"
done
