#!/usr/bin/env bash
# Runs one command on every worker of a TPU slice, and again after a stop:
#   launch/tpu_pod.sh SLICE ZONE python -m comen_jax.main --config configs/pacs.py --workdir W
# Each worker needs the project in ~/$FOLDER, and W at one path of a file system
# that all of them share (Filestore, or a bucket by gcsfuse). jax finds the other
# workers by itself. Ctrl-C or TERM here: every worker saves and ends with 75.
# Exit code: 0: done; 75: call it again, it resumes; else that of a worker.
set -u
[[ $# -ge 3 ]] || { echo "usage: launch/tpu_pod.sh SLICE ZONE command ..." >&2; exit 2; }
slice=$1 zone=$2; shift 2
FOLDER=${FOLDER:-comen_jax} MAX_RESTARTS=${MAX_RESTARTS:-20} PAUSE=${PAUSE:-30} # Seconds.

vm() { gcloud compute tpus tpu-vm "$1" "$slice" --zone="$zone" "${@:2}"; }
# An older process would hold the chips. It is known by the number in its file.
# shellcheck disable=SC2016 # The workers expand it.
end='f=~/.comen.pid; p=$(cat $f 2>/dev/null) && grep -qsa comen_jax /proc/$p/cmdline && kill $p'
# shellcheck disable=SC2016
end+=' && { timeout 60 tail -s 1 -f /dev/null --pid=$p || kill -KILL $p; }'
start="$end; echo \$\$ > \$f; cd $FOLDER && PYTHONUNBUFFERED=1 exec $(printf '%q ' "$@")"
stopped=0
trap 'stopped=1; vm ssh --worker=all --command="$end; true"' INT TERM

for ((restart = 0; !stopped && restart <= MAX_RESTARTS; restart++)); do
  vm ssh --worker=all --command="$start" & # So that the trap need not wait for it.
  wait $!; code=$?
  ((stopped)) && { wait $!; break; }
  case $code in 0 | 2) exit "$code" ;; esac # Done, or a setting is wrong.
  echo "start $((restart + 1)) ended with exit code $code" >&2
  until sleep "$PAUSE"; state=$(vm describe --format='value(state)'); [[ $state == READY ]]; do
    case $state in
      "" | PREEMPTED | TERMINATED | STOPPED | DELETING)
        echo "$slice is ${state:-unknown}: create or start it, then call this again" >&2; exit 75 ;;
    esac
  done
done
exit $((stopped ? 75 : code))
