#!/usr/bin/env bash
# Runs a command in a Slurm of its own: one node, this machine, for as long as the command lasts.
#   tests/slurm/one_node_slurm.sh COMMAND [ARGUMENT...]      the command may call srun
# Exit status: the command's; 77 where there is no Slurm or it cannot start, with a line that says why.
#
# Everything lies in one temporary folder and listens on free ports of this host; the daemons are
# stopped and the folder is removed at the end, whatever the end is. No configuration of this machine
# is read or changed. ONE_NODE_SLURM_CPUS: what the node claims to have (default 64; tasks share
# what there really is). ONE_NODE_SLURM_LINES: more lines for slurm.conf.
set -euo pipefail

skip() {
  echo "one_node_slurm: skipped: $1" >&2
  exit 77
}

[ "$#" -gt 0 ] || { echo "usage: one_node_slurm.sh COMMAND [ARGUMENT...]" >&2; exit 2; }
# Debian puts the daemons where only root's PATH looks.
PATH=$PATH:/usr/sbin:/sbin
for program in munged slurmctld slurmd srun sinfo; do
  command -v "$program" >/dev/null || skip "there is no $program (script/bootstrap installs it)"
done
# slurmd starts tasks as their users.
[ "$(id -u)" -eq 0 ] || skip "slurmd needs root"

# Short, for the path of a socket is limited to 107 bytes.
folder=$(mktemp -d /tmp/rrfp-slurm.XXXXXX)
host=$(hostname -s)
daemons=()

stop() {
  status=$?
  trap - EXIT INT TERM
  # In reverse: slurmd ends its tasks while the others still answer.
  for ((i = ${#daemons[@]} - 1; i >= 0; --i)); do
    kill "${daemons[i]}" 2>/dev/null || continue
    for _ in $(seq 50); do
      kill -0 "${daemons[i]}" 2>/dev/null || break
      sleep 0.1
    done
    kill -KILL "${daemons[i]}" 2>/dev/null || true
  done
  rm -rf "$folder"
  exit "$status"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])'
}

# Runs a daemon in the foreground of its own process, with its words in a file.
daemon() {
  local name=$1
  shift
  "$@" >"$folder/$name.out" 2>&1 </dev/null &
  daemons+=($!)
}

give_up() {
  tail -n 5 "$folder"/*.out "$folder"/*.log >&2 2>/dev/null || true
  skip "$1"
}

head -c 1024 /dev/urandom >"$folder/munge.key"
chmod 700 "$folder"
chmod 400 "$folder/munge.key"
mkdir "$folder/state" "$folder/spool"
cat >"$folder/slurm.conf" <<CONF
ClusterName=rrfp
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=pmix
KillOnBadExit=1
KillWait=2
ReturnToService=2
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
SlurmdParameters=config_overrides
NodeName=$host NodeAddr=127.0.0.1 CPUs=${ONE_NODE_SLURM_CPUS:-64} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
${ONE_NODE_SLURM_LINES:-}
CONF
export SLURM_CONF=$folder/slurm.conf
# Of a job that this one may itself be part of.
unset "${!SLURM_JOB@}" "${!SLURM_STEP@}" SLURM_PROCID SLURM_NTASKS SLURM_LOCALID

daemon munged munged --foreground --force --key-file="$folder/munge.key" \
  --socket="$folder/munge.socket" --pid-file="$folder/munged.pid" \
  --log-file="$folder/munged.log" --seed-file="$folder/munge.seed"
for _ in $(seq 50); do
  [ -S "$folder/munge.socket" ] && break
  sleep 0.1
done
[ -S "$folder/munge.socket" ] || give_up "munged did not start"
daemon slurmctld slurmctld -D -i -f "$SLURM_CONF"
daemon slurmd slurmd -D -f "$SLURM_CONF" -N "$host"
for _ in $(seq 100); do
  # "idle" alone: with a star the node has not answered yet.
  [ "$(sinfo -h -o %T 2>/dev/null)" = idle ] && break
  sleep 0.1
done
[ "$(sinfo -h -o %T 2>/dev/null)" = idle ] || give_up "the node did not come up within 10 s"

"$@"
