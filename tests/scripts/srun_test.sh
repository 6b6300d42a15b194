#!/usr/bin/env bash
# Goal: rrfp runs under srun as it does under mpirun, one process per rank: it finds out by itself
# that Slurm started it, trains to the weights of a serial run, says once what is wrong, and names
# what everybody waited for when a process dies. In a Slurm of its own, which leaves nothing behind.
set -euo pipefail
program=$RRFP_PROGRAM
source_dir=$RRFP_SOURCE_DIR

if [ "${1:-}" != inside ]; then
  [ -e "$(dirname "$program")/librrfp_mpi.so" ] || { echo "skipped: built without MPI"; exit 77; }
  grep -q 'RRFP_SANITIZE:STRING=.' "$(dirname "$program")/CMakeCache.txt" &&
    { echo "skipped: Open MPI is not built with this sanitizer"; exit 77; }
  before=$(ls -d /tmp/rrfp-slurm.* 2>/dev/null || true)
  "$source_dir/tests/slurm/one_node_slurm.sh" bash "$0" inside || exit $?
  [ "$before" = "$(ls -d /tmp/rrfp-slurm.* 2>/dev/null || true)" ] || { echo "left files"; exit 1; }
  exit 0
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() {
  echo "srun_test: $1"
  cat "$folder/out"
  exit 1
}
# run STATUS PROCESSES ARGUMENT...
run() {
  local expected=$1 processes=$2 status=0
  shift 2
  timeout 60 srun -n "$processes" "$program" "$@" >"$folder/out" 2>&1 || status=$?
  [ "$status" -eq "$expected" ] || fail "rrfp $*: status $status, expected $expected"
}
expect() { grep -qF -- "$1" "$folder/out" || fail "no \"$1\" in what it printed"; }
expect_once() { [ "$(grep -cF -- "$1" "$folder/out")" -eq 1 ] || fail "not once: \"$1\""; }

srun --mpi=list 2>&1 | grep -q pmix || { echo "skipped: this Slurm has no PMIx"; exit 77; }

case_file=$source_dir/tests/cases/anticipating-zb.json # 3 ranks
run 0 3 run "$case_file" --iterations 3 --trace "$folder/trace.jsonl" --decisions "$folder/log.jsonl"
expect "on 3 processes"
"$program" replay-log "$folder/log.jsonl" >"$folder/out" || fail "the decisions differ"
expect "identical"
"$program" info "$folder/trace.jsonl" >"$folder/out" || fail "the trace cannot be read"

run 0 3 train "$case_file" --text "$source_dir/README.md" --steps 2 --check
expect_once "bit for bit"

run 2 2 run "$case_file"
expect_once "this run takes 3 processes"
run 2 3 run "$folder/absent.json"
expect_once "absent.json: cannot read"

# Whose status srun takes is a race between the killed process and the survivors.
timeout 60 srun -n 3 "$program" run "$case_file" --inject kill:1:1F1 >"$folder/out" 2>&1 &&
  fail "a job with a killed process has status 0"
expect "channel rank 1 -> rank 0"
expect "channel rank 1 -> rank 2"
