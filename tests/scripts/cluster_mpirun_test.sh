#!/usr/bin/env bash
# Goal: the job file for Open MPI starts as many processes as asked for on the hosts of a file, and
# hands on what it is given.
set -euo pipefail
program=$RRFP_PROGRAM
source_dir=$RRFP_SOURCE_DIR
skip() {
  echo "skipped: $1"
  exit 77
}
command -v mpirun >/dev/null || skip "there is no mpirun here (script/bootstrap installs it)"
[ -e "$(dirname "$program")/librrfp_mpi.so" ] || skip "built without MPI"
grep -q 'RRFP_SANITIZE:STRING=.' "$(dirname "$program")/CMakeCache.txt" &&
  skip "Open MPI is not built with this sanitizer"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() {
  echo "cluster_mpirun_test: $1"
  cat "$folder/out"
  exit 1
}
# run STATUS PROCESSES ARGUMENT...
run() {
  local expected=$1 processes=$2 status=0
  shift 2
  RRFP=$program timeout 60 "$source_dir/script/cluster/mpirun.sh" "$folder/hosts" "$processes" "$@" \
    >"$folder/out" 2>&1 || status=$?
  [ "$status" -eq "$expected" ] || fail "rrfp $*: status $status, expected $expected"
}
expect() { grep -qF -- "$1" "$folder/out" || fail "no \"$1\" in what it printed"; }

case_file=$source_dir/tests/cases/anticipating-zb.json # 3 ranks
echo "localhost slots=4" >"$folder/hosts"
run 0 3 run "$case_file" --iterations 3
expect "on 3 processes"
run 2 2 run "$case_file"
expect "this run takes 3 processes"
program=$folder/absent run 2 3 run "$case_file"
expect "no program $folder/absent on $(uname -n): RRFP says where it is"
run 2 3 sweep "$case_file"
expect 'mpirun.sh: "sweep" does not run over several processes; run, train'

double=$(dirname "$program")/librrfp_cuda_double.so
[ -e "$double" ] || exit 0
# One GPU for each process.
export RRFP_CUDA_MODULE=$double RRFP_DOUBLE_DEVICES=3
run 0 3 run "$case_file" --iterations 2 --device synthetic
expect "on 3 processes"
expect "NCCL"
