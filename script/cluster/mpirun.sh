#!/usr/bin/env bash
# Open MPI without a batch system: one process for each rank, lane and replica.
#   script/cluster/mpirun.sh HOSTFILE PROCESSES run job.json --device synthetic
#
# HOSTFILE has a line for each host, with as many slots as it has GPUs (or cores, without):
#   node1 slots=8
# Hosts are filled in that order. RRFP: the program (default: build/release/rrfp here). It and
# job.json must be there on all hosts, and ssh must reach them without a password. FORWARD: names of
# variables that all processes are to have, beside RRFP_*, NCCL_*, CUDA_* and LD_LIBRARY_PATH.
set -euo pipefail
if [ "$#" -lt 3 ]; then
  sed -n '2,3p' "$0" >&2
  exit 2
fi
hostfile=$1
processes=$2
shift 2
rrfp=${RRFP:-$PWD/build/release/rrfp}

# shellcheck source=script/cluster/forwarded.sh
. "$(dirname "${BASH_SOURCE[0]}")/forwarded.sh"
check_command "$1"
forwarded=$(forwarded_names)
options=(--hostfile "$hostfile" -n "$processes" --map-by slot --bind-to none)
for name in $forwarded; do options+=(-x "$name"); done
if [ "$(id -u)" -eq 0 ]; then options+=(--allow-run-as-root); fi
exec mpirun "${options[@]}" sh -c "$begin" "$rrfp" "$@" --transport mpi
