#!/usr/bin/env bash
# A Holdfast worker in bash. It only calls SQL functions through psql; a worker in any other language does the same.
#
#     HOLDFAST_DSN=postgresql://… examples/bash_worker.sh [option…] HANDLERS
#
# HANDLERS is a folder of programs. A program has the name of the kind of step that it serves. It reads the step's input
# as JSON from standard input. Each line that it writes to standard error becomes a note on the step, and its standard
# output is the result. It exits with 0 when the step is done, with 75 to retry by the step's policy, and with any other
# code when the step has failed for good. STEP_ID and ATTEMPT are in its environment.
#
#     --queue NAME     the queue to claim from (default: default)
#     --batch N        how many steps to claim at once; they run one after the other (default: 1)
#     --lease SPAN     how long we may be silent before others take over, as a PostgreSQL interval (default: 60 s)
#     --beat SECONDS   how often to renew while a handler runs, best a third of the lease (default: 20)
#     --poll SECONDS   how long to wait when nothing is due (default: 1)
#     --rounds N       stop after N claims;  --once: stop when nothing is due
#
# On SIGTERM or SIGINT it finishes the running step and releases the others. A second signal releases that step too.
# Environment: HOLDFAST_DSN; WORKER, a name that no other process has; PSQL, the psql to use. Put a password in
# ~/.pgpass or PGPASSWORD, not in the DSN, which is passed to psql as an argument. Needs bash 4.3 or later.
set -uo pipefail

queue=default batch=1 lease='60 s' beat=20 poll=1 rounds=-1 once=0
while [[ ${1-} == --* ]]; do
  case $1 in
    --queue) queue=$2 ;; --batch) batch=$2 ;; --lease) lease=$2 ;; --beat) beat=$2 ;;
    --poll) poll=$2 ;; --rounds) rounds=$2 ;; --once) once=1; shift; continue ;;
    *) echo "bash_worker: no option $1" >&2; exit 2 ;;
  esac
  shift 2
done
handlers=${1:?"bash_worker: name the folder of handlers"}
: "${HOLDFAST_DSN:?"bash_worker: set HOLDFAST_DSN"}"
worker=${WORKER:-$HOSTNAME-$$}
kinds=$(cd "$handlers" && printf '%s\n' *)

scratch=$(mktemp -d)
mkfifo "$scratch/pipe"
exec 8<>"$scratch/pipe"
signals=0 handler=
declare -A held=() # step to lease: the steps that we hold

# Runs the statement on standard input. Values are passed as psql variables and written as :'name', which psql quotes;
# no value is ever pasted into SQL.
sql() {
  "${PSQL:-psql}" --no-psqlrc --quiet --no-align --tuples-only --field-separator=$'\t' --dbname "$HOLDFAST_DSN" \
    -v ON_ERROR_STOP=1 -v worker="$worker" -v queue="$queue" -v lease="$lease" "$@"
}

# One line per step: JSON as PostgreSQL writes it contains neither tabs nor line ends.
claim() {
  sql -v batch="$batch" -v kinds="$kinds" <<'SQL'
select step_id, lease_id, attempt, kind, input
  from holdfast.claim_steps(:'worker', :'queue', string_to_array(:'kinds', E'\n'), :'batch', :'lease');
SQL
}

# A lease that is missing in the answer is lost. No answer proves nothing: continue, and retry with the next beat.
renew() {
  local answer step
  answer=$(sql -v steps="{$(join "${!held[@]}")}" -v leases="{$(join "${held[@]}")}" <<'SQL'
select holdfast.renew_leases(:'worker', :'leases', :'lease', :'steps');
SQL
  ) || return 0
  for step in "${!held[@]}"; do
    grep -qx "${held[$step]}" <<<"$answer" || unset "held[$step]"
  done
}

note() { # STEP LEVEL MESSAGE
  sql -v step="$1" -v step_lease="${held[$1]}" -v level="$2" -v message="${3:0:8000}" >/dev/null <<'SQL'
select holdfast.note(:'step', :'step_lease', :'level', :'message');
SQL
}

settle() { # STEP OUTCOME FILE: the file holds the result or the error
  SAID=$3 sql -v step="$1" -v step_lease="${held[$1]}" -v outcome="$2" >/dev/null <<'SQL'
\set said `head -c 500000 "$SAID" | tr -d '\000' | iconv -c -f UTF-8 -t UTF-8`
select holdfast.settle_steps(jsonb_build_array(
         jsonb_build_object('step_id', :'step'::bigint, 'lease_id', :'step_lease'::bigint, 'outcome', :'outcome')
         || case :'outcome' when 'done' then jsonb_build_object('result', jsonb_build_object('output', :'said'))
                            else jsonb_build_object('error', jsonb_build_object('message', :'said')) end));
SQL
  unset "held[$1]"
}

# Runs a handler, and sends its exit code through the pipe. Each line of its standard error becomes a note; the last
# line is the reason of a failure.
attempt() { # STEP ATTEMPT KIND INPUT
  { STEP_ID=$1 ATTEMPT=$2 "$handlers/$3" <<<"$4" 2>&3 >"$scratch/output"; } 3>&1 | while IFS= read -r line; do
    printf '%s' "$line" >"$scratch/reason"
    note "$1" info "$line"
  done
  echo "${PIPESTATUS[0]}" >&8
}

serve() { # STEP ATTEMPT KIND INPUT
  local step=$1 ended=
  : >"$scratch/reason"
  while read -r -t 0.01 -u 8 _; do :; done # a message of a handler that was stopped too late
  set -m # the handler gets its own process group, so that all of it can be stopped
  attempt "$@" &
  handler=$!
  set +m
  until read -r -t "$beat" -u 8 ended; do
    renew
    if [[ ! -v held[$step] ]]; then
      kill -- "-$handler"
      ended=lost
      break
    fi
    if ! kill -0 "$handler" 2>/dev/null; then # it ended while we renewed, or was killed
      read -r -t 1 -u 8 ended || ended=killed
      break
    fi
  done
  handler=
  case $ended in
    0) settle "$step" 'done' "$scratch/output" ;;
    75) settle "$step" retry "$scratch/reason" ;;
    stopped | lost) ;; # steps that we still hold are released at the end of the batch; nothing is written for lost ones
    *) settle "$step" fail "$scratch/reason" ;;
  esac
}

hand_back() {
  local step
  for step in "${!held[@]}"; do
    settle "$step" release /dev/null
  done
}

join() { local IFS=,; echo "$*"; }
nap() { sleep "$poll" & wait $!; }

stop() {
  signals=$((signals + 1))
  ((signals == 2)) && [[ -n $handler ]] && kill -- "-$handler" && echo stopped >&8
}

trap stop TERM INT
trap 'hand_back; rm -rf "$scratch"' EXIT

while ((signals == 0 && rounds != 0)); do
  rounds=$((rounds - 1))
  claimed=$(claim) || { nap; continue; }
  if [[ -z $claimed ]]; then
    sql <<<"select from holdfast.rescue_steps();" # any worker recovers the steps of silent ones
    ((once)) && break
    nap
    continue
  fi
  while IFS=$'\t' read -r step step_lease _; do held[$step]=$step_lease; done <<<"$claimed"
  while IFS=$'\t' read -r -u 9 step _ number kind input; do
    ((signals == 0)) || break
    [[ -v held[$step] ]] || continue # its lease was lost while it waited its turn
    serve "$step" "$number" "$kind" "$input"
  done 9<<<"$claimed"
  hand_back
done
