#!/usr/bin/env bash
# Runs launch/slurm.sbatch under a real Slurm, on this machine alone: `make slurm`.
#
# A throw-away Slurm of two nodes lives in namespaces of its own (network,
# mounts, processes): it reaches nobody, and nothing of it outlives this script.
# Then tiny digits are trained, and each step below must hold:
#   1. two tasks of one job train one run; its metrics equal those of one process;
#   2. a job array trains the shards of a sweep, each run once;
#   3. TERM in the middle: 75, requeue, resume, and the result of an unstopped run;
#   4. a task that is killed: requeue, resume, the same result;
#   5. a wrong setting is not tried again.
# Needs root, .venv, and Debian's packages slurmctld slurmd slurm-client munge
# iproute2 util-linux; installs nothing. It took 5 minutes on two cores with a
# load of 12.
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-$PWD/.venv/bin/python}
TIMEOUT=${TIMEOUT:-1200} # Seconds.

fail() {
  echo "FAILED: $*" >&2
  [ -z "${IN_NAMESPACES:-}" ] || tail -n 30 "$IN_NAMESPACES"/*.out >&2
  exit 1
}

if [ -z "${IN_NAMESPACES:-}" ]; then # Outside: make the folder and namespaces.
  for program in munged slurmctld slurmd sbatch ip unshare; do
    command -v "$program" >/dev/null || fail "$program is missing: apt-get install" \
      "--no-install-recommends slurmctld slurmd slurm-client munge iproute2 util-linux"
  done
  [ "$(id -u)" = 0 ] || fail "namespaces need root"
  [ -x "$PYTHON" ] || fail "$PYTHON is missing: call make slurm"
  folder=$(mktemp -d)
  chmod 755 "$folder"
  trap 'rm -rf "$folder"' EXIT
  # KILL, because unshare ignores TERM; its child, process 1 of the namespace,
  # dies with it, and so does all else in there.
  timeout --foreground -s KILL "$TIMEOUT" \
    unshare --net --mount --pid --fork --kill-child --mount-proc \
    env IN_NAMESPACES="$folder" PYTHON="$PYTHON" bash "$0" ||
    fail "exit code $?; the last lines above say where"
  exit
fi

folder=$IN_NAMESPACES
slurm=$folder/slurm
mkdir -p "$slurm"/{state,n0,n1} "$folder/runs"

start_slurm() {
  ip link set lo up
  ip addr add 127.0.0.2/8 dev lo # With 127.0.0.1 alone no name is resolved.
  echo "127.0.0.1 localhost $(hostname) n0 n1" >"$folder/hosts"
  mount --bind "$folder/hosts" /etc/hosts
  (umask 077 && head -c 1024 /dev/urandom >"$slurm/key")
  munged --force --socket="$slurm/socket" --key-file="$slurm/key" \
    --pid-file="$slurm/munged.pid" --log-file="$slurm/munged.log" --seed-file="$slurm/seed"
  export SLURM_CONF=$slurm/slurm.conf # slurmd needs an absolute path.
  cat >"$SLURM_CONF" <<CONF
ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
AuthInfo=socket=$slurm/socket
SlurmctldPidFile=$slurm/slurmctld.pid
SlurmctldLogFile=$slurm/slurmctld.log
StateSaveLocation=$slurm/state
SlurmdPidFile=$slurm/slurmd.%n.pid
SlurmdLogFile=$slurm/slurmd.%n.log
SlurmdSpoolDir=$slurm/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=bf_interval=1,sched_interval=2
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=10
MinJobAge=3600
NodeName=n0 NodeHostname=localhost NodeAddr=127.0.0.1 Port=16820 CPUs=2
NodeName=n1 NodeHostname=localhost NodeAddr=127.0.0.1 Port=16821 CPUs=2
PartitionName=main Nodes=ALL Default=YES
CONF
  slurmctld -f "$SLURM_CONF" -c
  slurmd -f "$SLURM_CONF" -N n0
  slurmd -f "$SLURM_CONF" -N n1
  wait_for 30 nodes_are_idle
}
nodes_are_idle() { [ "$(timeout 3 sinfo -h -t idle -o %D 2>/dev/null)" = 2 ]; }

wait_for() { # Seconds, then a command that succeeds in the end.
  local end=$((SECONDS + $1))
  until "${@:2}"; do
    [ $SECONDS -lt $end ] || fail "waited $1 s in vain for: ${*:2}"
    sleep 0.5
  done
}
field() { scontrol show job "$1" | grep -o "\b$2=[^ ]*" | head -1 | cut -d= -f2; }
is() { [ "$(field "$1" "$2")" = "$3" ]; }
submit() { sbatch --parsable --output="$folder/%j.out" "$@"; }
wait_for_end() { # Number of a job, the state that it must end in.
  wait_for 400 has_ended "$1"
  sed "s/^/  | /" "$folder/$1.out" | grep -E "exit code|Requeue|error:" || true
  is "$1" JobState "$2" || fail "job $1 is $(field "$1" JobState)"
}
has_ended() { [[ $(field "$1" JobState) =~ ^(COMPLETED|FAILED|CANCELLED|TIMEOUT|NODE_FAIL) ]]; }
start_again() { # Slurm lets a job wait two minutes after a requeue; we, five seconds.
  wait_for 120 is "$1" JobState PENDING
  sleep 5 # At once, Slurm 22.05 would end it: "Job credential revoked".
  scontrol update jobid="$1" StartTime=now
}

# Fails unless two runs agree: within $3 in every number of every unit, and in
# the selected epoch. Seconds and file names are not compared.
agree() {
  "$PYTHON" - "$folder/runs/$1" "$folder/runs/$2" "$3" <<'PY' || fail "runs $1 and $2 differ"
import json, pathlib, sys
a, b = map(pathlib.Path, sys.argv[1:3])
tolerance, worst, unequal = float(sys.argv[3]), 0.0, []
def compare(x, y, name):
  global worst
  if isinstance(x, dict) and isinstance(y, dict):
    for key in sorted((x.keys() | y.keys()) - {"seconds"}):
      compare(x.get(key), y.get(key), f"{name}.{key}")
  elif isinstance(x, list) and isinstance(y, list) and len(x) == len(y):
    for i, pair in enumerate(zip(x, y)):
      compare(*pair, f"{name}[{i}]")
  elif isinstance(x, float) and isinstance(y, float):
    difference = abs(x - y) / max(1.0, abs(x))
    worst = max(worst, difference)
    if not difference <= tolerance:
      unequal.append(f"{name}: {x} and {y}")
  elif x != y:
    unequal.append(f"{name}: {x} and {y}")
records = [[json.loads(line) for line in open(run / "metrics.jsonl")] for run in (a, b)]
compare(*records, "metrics")
compare(*(json.load(open(run / "result.json"))["measured"] for run in (a, b)), "measured")
print(f"  {a.name} and {b.name}: {len(records[0])} units, greatest difference {worst:.1e}")
sys.exit("\n".join(unequal[:10]) or 0)
PY
}

start_slurm
echo "$(slurmctld -V), nodes: $(sinfo -h -N -o %N | tr '\n' ' ')"
# What the tests train on, and how: conftest.py. Compiled code is shared.
export PYTHON COMEN_JAX_CACHE=$folder/cache JAX_PLATFORMS=cpu
# All but one flag of the tests: with code in one piece, two processes differ
# from one by 1e-5 in the first epoch, and by 1e-3 in the last.
XLA_FLAGS=$("$PYTHON" tests/xla_flags.py)
export XLA_FLAGS=${XLA_FLAGS/--xla_cpu_parallel_codegen_split_count=1/}
COMEN_JAX_TEST_RUN=$folder PYTHONPATH=.:tests "$PYTHON" -c "import conftest, pathlib; conftest.draw_digits_dg(pathlib.Path('$folder/data'))"
settings=(--config configs/digits.py --config.data_dir="$folder/data" --config.store_size=16
  --config.image_size=16 --config.epochs=3 --config.stage_shares="(0.34, 0.33, 0.33)"
  --config.batch_size=48 --config.eval_batch_size=120
  --config.logging.tensorboard=False)
comen=(--config.comen.pretrain_steps=50)  # The sweep of DeepAll would refuse it.
has_lines() { [ -e "$1" ] && [ "$(wc -l <"$1")" -ge "$2" ]; }

echo "1. two tasks of one job, against one process"
"$PYTHON" -m comen_jax.main "${settings[@]}" "${comen[@]}" --workdir "$folder/runs/one" >"$folder/one.out" 2>&1 ||
  fail "one process alone"
job=$(submit --nodes=2 launch/slurm.sbatch main "${settings[@]}" "${comen[@]}" --workdir "$folder/runs/two")
wait_for_end "$job" COMPLETED
agree one two 1e-4

echo "2. a job array of a sweep's shards"
array=$(submit --array=0-1 launch/slurm.sbatch sweep "${settings[@]}" --workdir "$folder/sweep" \
  --methods=deepall --targets=mnist,svhn --seeds=0,1)
wait_for 400 has_ended "${array}_0"
wait_for 400 has_ended "${array}_1"
for element in 0 1; do
  is "${array}_$element" JobState COMPLETED || fail "element $element"
  echo "  results.$element-of-2.jsonl: $(wc -l <"$folder/sweep/results.$element-of-2.jsonl") runs"
done
[ "$(cat "$folder"/sweep/results.*.jsonl | sort -u | wc -l)" = 4 ] || fail "not each run once"

echo "3. TERM in the middle"
job=$(submit --nodes=2 launch/slurm.sbatch main "${settings[@]}" "${comen[@]}" --workdir "$folder/runs/stopped")
wait_for 200 has_lines "$folder/runs/stopped/metrics.jsonl" 1
scancel --signal=TERM "$job"
began=$SECONDS
start_again "$job"
echo "  in the queue again after $((SECONDS - began - 5)) s"
wait_for_end "$job" COMPLETED
is "$job" Restarts 1 || fail "$(field "$job" Restarts) restarts"
grep -q "exit code 75" "$folder/$job.out" || fail "no exit code 75"
agree two stopped 0

echo "4. a task is killed"
job=$(submit --nodes=2 launch/slurm.sbatch main "${settings[@]}" "${comen[@]}" --workdir "$folder/runs/killed")
wait_for 200 has_lines "$folder/runs/killed/metrics.jsonl" 2
kill -KILL "$(grep -lsz "^SLURM_PROCID=1$" /proc/[0-9]*/environ | xargs grep -lsz "^SLURM_JOB_ID=$job$" | head -1 | cut -d/ -f3)"
start_again "$job"
wait_for_end "$job" COMPLETED
is "$job" Restarts 1 || fail "$(field "$job" Restarts) restarts"
agree two killed 0

echo "5. a wrong setting"
job=$(submit --nodes=2 launch/slurm.sbatch main "${settings[@]}" "${comen[@]}" --config.target=nowhere --workdir "$folder/runs/wrong")
wait_for_end "$job" FAILED
is "$job" Restarts 0 || fail "it was tried again"
echo "all hold, after $SECONDS s"
