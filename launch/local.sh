#!/usr/bin/env bash
# Runs N processes on this machine that train one run together:
#   launch/local.sh 2 python -m comen_jax.main --config configs/digits.py --workdir W
# A line of output begins with the number of its process. TERM and Ctrl-C are
# passed on to all processes. When one fails, the others are ended as well: by
# TERM, and by KILL after GRACE (10) seconds.
# Exit code: 75 if they were preempted (call it again, it resumes), else that of
# the first process that failed (128 + n: by signal n), else 0.
set -u
[[ ${1:-} =~ ^[1-9][0-9]*$ && $# -ge 2 ]] || { echo "usage: launch/local.sh N command ..." >&2; exit 2; }
export COMEN_NUM_PROCESSES=$1 PYTHONUNBUFFERED=1; shift
port=$((20000 + RANDOM % 10000)) # If something answers there, the next one.
while (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do ((port++)); done
export COMEN_COORDINATOR=127.0.0.1:$port
prefix() { trap '' TERM INT; while IFS= read -r line || [[ $line ]]; do echo "$1: $line"; done; }
run() { # Signals are for the command; this shell hands its exit code on.
  trap : TERM INT; export COMEN_PROCESS_ID=$1; shift
  "$@" 2>&1 </dev/null | prefix "$COMEN_PROCESS_ID"; exit "${PIPESTATUS[0]}"
}
stop() { # Sends a signal to all processes, and KILL after some seconds.
  deadline=$((SECONDS + $2))
  for pid in "${pids[@]}"; do kill -s "$1" -- "-$pid" 2>/dev/null; done
}
pids=() code=0 preempted="" deadline=""
trap 'stop INT 10' INT; trap 'preempted=yes; stop TERM 60' TERM # Time to save.
set -m # Each process has a group of its own, so Ctrl-C comes only to us.
for ((i = 0; i < COMEN_NUM_PROCESSES; i++)); do run "$i" "$@" & pids+=($!); done; set +m
while ((${#pids[@]})); do
  sleep 0.1
  [[ $deadline ]] && ((SECONDS > deadline)) && stop KILL 10
  for i in "${!pids[@]}"; do
    kill -0 "${pids[i]}" 2>/dev/null && continue
    wait "${pids[i]}"; ended=$?; unset "pids[i]"; ((ended)) || continue
    echo "process $i ended with exit code $ended" >&2
    [[ $preempted ]] && ((ended == 143)) && ended=75 # TERM came very early.
    ((ended == 75)) && preempted=yes; ((code == 0 || code == 75)) && code=$ended
    [[ $deadline ]] || stop TERM "${GRACE:-10}"
  done
done
exit "$code"
