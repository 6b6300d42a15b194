#!/usr/bin/env bash
# A job for Slurm: one task for each rank, lane and replica, and one GPU for each task.
#   sbatch --ntasks 8 script/cluster/slurm.sh run job.json --device synthetic
#   sbatch --ntasks 8 --export=ALL,TRANSPORT=tcp script/cluster/slurm.sh validate job.json
#
# TRANSPORT: mpi (default; wants a Slurm with PMIx, see srun --mpi=list), or tcp (wants nothing).
# RRFP: the program (default: build/release/rrfp of the folder that sbatch is called in). It and
# job.json must be there on all nodes. Edit what follows for your cluster; options of sbatch win.
#SBATCH --job-name=rrfp
#SBATCH --output=rrfp-%j.txt
#SBATCH --time=00:30:00
#SBATCH --ntasks=8
# A task looks all the time for what has come; whatever serves it (NCCL, MPI) takes a core beside it.
#SBATCH --cpus-per-task=2
# On GPU nodes take one # from these two, and say how many GPUs a node has. Tasks see all of them, and
# each takes that of its number on the node; so nothing is bound below.
##SBATCH --gpus-per-node=8
##SBATCH --ntasks-per-node=8
set -euo pipefail
if [ "$#" -lt 2 ] || [ -z "${SLURM_SUBMIT_DIR:-}" ]; then
  echo "usage: sbatch --ntasks N script/cluster/slurm.sh run job.json --device synthetic" >&2
  exit 2
fi
wrong() {
  echo "slurm.sh: $1" >&2
  exit 2
}
rrfp=${RRFP:-$SLURM_SUBMIT_DIR/build/release/rrfp}
command -v "$rrfp" >/dev/null || wrong "no program $rrfp on $(uname -n): RRFP says where it is"
case $1 in
  run | train | calibrate | validate) ;;
  *) wrong "\"$1\" does not run over several processes; run, train, calibrate and validate do" ;;
esac

# Of one node more than one job may run; each gets a port of its own.
export MASTER_ADDR MASTER_PORT
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))

step=(srun --kill-on-bad-exit=1)
# srun does not take it from the job by itself.
if [ -n "${SLURM_CPUS_PER_TASK:-}" ]; then step+=(--cpus-per-task="$SLURM_CPUS_PER_TASK"); fi
if [ -n "${SLURM_GPUS_ON_NODE:-}" ]; then step+=(--gpu-bind=none); fi
case ${TRANSPORT:-mpi} in
  mpi) exec "${step[@]}" --mpi=pmix "$rrfp" "$@" --transport mpi ;;
  tcp) exec "${step[@]}" --mpi=none "$rrfp" "$@" --transport tcp ;;
  *) wrong "TRANSPORT is \"$TRANSPORT\"; allowed: mpi, tcp" ;;
esac
