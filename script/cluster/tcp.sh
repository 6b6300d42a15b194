#!/usr/bin/env bash
# Neither a batch system nor MPI: ssh starts one process for each rank, lane and replica, and they
# meet over TCP at the first host.
#   script/cluster/tcp.sh HOSTFILE PROCESSES run job.json --device synthetic
#
# HOSTFILE has a line for each host, with as many slots as it has GPUs (or cores, without):
#   node1 slots=8
# Hosts are filled in that order. "localhost" needs no ssh; it must then be the only host. RRFP: the
# program (default: build/release/rrfp here). It and job.json must be there on all hosts, and ssh must
# reach them without a password. MASTER_PORT: free at the first host (default 29500). SSH: instead of
# "ssh -tt", whose end the other side notices.
#
# torchrun could do the same, but its agent listens at MASTER_PORT itself, so name another (not tried):
#   torchrun --nnodes ... --nproc-per-node 8 --no-python env MASTER_PORT=29600 build/release/rrfp run ...
set -euo pipefail
if [ "$#" -lt 3 ]; then
  sed -n '2,4p' "$0" >&2
  exit 2
fi
hostfile=$1
processes=$2
shift 2
command=$(printf '%q ' "${RRFP:-$PWD/build/release/rrfp}" "$@" --transport tcp)
# Variables that processes on other hosts need as well.
own=$(for name in "${!RRFP_@}"; do printf '%s=%q ' "$name" "${!name}"; done)

hosts=() # by process
locals=() # its number there
while read -r host slots; do
  if [[ -z $host || $host == \#* ]]; then continue; fi
  slots=${slots#slots=}
  for ((slot = 0; slot < ${slots:-1} && ${#hosts[@]} < processes; ++slot)); do
    hosts+=("$host")
    locals+=("$slot")
  done
done <"$hostfile"
if [ "${#hosts[@]}" -lt "$processes" ]; then
  echo "tcp.sh: $hostfile has ${#hosts[@]} slots; $processes processes were asked for" >&2
  exit 2
fi

started=()
# Asks whoever is there still to end; who does not within five seconds is made to.
end_all() {
  for signal in TERM KILL; do
    kill -s "$signal" "${started[@]}" 2>/dev/null || true
    for _ in {1..50}; do
      [ -n "$(jobs -rp)" ] || return 0
      sleep 0.1
    done
  done
}
trap end_all EXIT
trap 'exit 130' INT TERM
for ((process = 0; process < processes; ++process)); do
  line="cd $(printf %q "$PWD") && exec env $own RANK=$process LOCAL_RANK=${locals[process]} \
WORLD_SIZE=$processes MASTER_ADDR=${hosts[0]} MASTER_PORT=${MASTER_PORT:-29500} $command"
  if [ "${hosts[process]}" = localhost ]; then
    bash -c "$line" </dev/null &
  else
    ${SSH:-ssh -tt} "${hosts[process]}" "$line" </dev/null &
  fi
  started+=($!)
done

# When one fails the others notice, and say what they waited for; who is there still is then ended.
for _ in "${started[@]}"; do
  status=0
  wait -n || status=$?
  if [ "$status" -ne 0 ]; then
    sleep 1
    exit "$status"
  fi
done
