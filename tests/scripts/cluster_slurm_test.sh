#!/usr/bin/env bash
# Goal: the job file for Slurm runs as a batch job, over MPI and over TCP, on emulated devices and on
# the double of GPUs, one for each task; and a job that fails is seen to fail. In a Slurm of its own.
set -euo pipefail
program=$RRFP_PROGRAM
source_dir=$RRFP_SOURCE_DIR
if [ "${1:-}" != inside ]; then
  exec "$source_dir/tests/slurm/one_node_slurm.sh" bash "$0" inside
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
fail() {
  echo "cluster_slurm_test: $1"
  cat "$folder/out"
  exit 1
}
# run STATUS TRANSPORT ARGUMENT...: in an allocation, for that takes less time than a batch job.
run() {
  local expected=$1 transport=$2 status=0
  shift 2
  RRFP=$program TRANSPORT=$transport timeout 60 salloc --quiet --ntasks 3 \
    "$source_dir/script/cluster/slurm.sh" "$@" >"$folder/out" 2>&1 || status=$?
  [ "$status" -eq "$expected" ] || fail "$transport: rrfp $*: status $status, expected $expected"
}
# run_batch STATUS ARGUMENT...: over TCP.
run_batch() {
  local expected=$1 job
  shift
  job=$(RRFP=$program TRANSPORT=tcp sbatch --parsable --ntasks 3 --output "$folder/out" \
    "$source_dir/script/cluster/slurm.sh" "$@")
  for _ in {1..300}; do
    [ -n "$(squeue --noheader --states all --job "$job" | grep -E ' (PD|R|CG|CF) ')" ] || break
    sleep 0.1
  done
  scontrol show job "$job" | grep -q "ExitCode=$expected:0" || {
    scontrol show job "$job"
    fail "sbatch ... rrfp $*: expected status $expected"
  }
}
expect() { grep -qF -- "$1" "$folder/out" || fail "no \"$1\" in what it printed"; }
expect_once() { [ "$(grep -cF -- "$1" "$folder/out")" -eq 1 ] || fail "not once: \"$1\""; }

transports=tcp
if [ -e "$(dirname "$program")/librrfp_mpi.so" ] && srun --mpi=list 2>&1 | grep -q pmix &&
  ! grep -q 'RRFP_SANITIZE:STRING=.' "$(dirname "$program")/CMakeCache.txt"; then
  transports="mpi tcp"
fi
double=$(dirname "$program")/librrfp_cuda_double.so
case_file=$source_dir/tests/cases/anticipating-zb.json # 3 ranks
for transport in $transports; do
  run 0 "$transport" run "$case_file" --iterations 3 --json
  expect_once "\"transport\": \"$transport\""
  run 2 "$transport" run "$folder/absent.json"
  if [ "$transport" = mpi ]; then
    expect_once "absent.json: cannot read"
  else
    expect "absent.json: cannot read" # of each process
  fi
  if [ -e "$double" ]; then
    export RRFP_CUDA_MODULE=$double RRFP_DOUBLE_DEVICES=3
    run 0 "$transport" run "$case_file" --iterations 2 --device synthetic
    expect "on 3 processes"
    expect "NCCL"
    unset RRFP_CUDA_MODULE RRFP_DOUBLE_DEVICES
  fi
done
run_batch 2 run "$folder/absent.json"
run_batch 0 train "$case_file" --text "$source_dir/README.md" --steps 2 --check
expect_once "bit for bit"
run 2 pigeons run "$case_file"
expect 'TRANSPORT is "pigeons"; allowed: mpi, tcp'
program=$folder/absent run 2 tcp run "$case_file"
expect "slurm.sh: no program $folder/absent on $(uname -n): RRFP says where it is"
run 2 tcp sweep "$case_file"
expect '"sweep" does not run over several processes; run, train'
