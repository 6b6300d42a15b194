#!/usr/bin/env bash
# Neither a batch system nor MPI: ssh starts one process for each rank, lane and replica, and they
# meet over TCP at the first host.
#   script/cluster/tcp.sh HOSTFILE PROCESSES run job.json --device synthetic
#
# HOSTFILE is as Open MPI's: a line for each host, with as many slots as it has GPUs (or cores,
# without); one where it does not say:
#   node1 slots=8
# Hosts are filled in that order. "localhost" needs no ssh; it must then be the only host. RRFP: the
# program (default: build/release/rrfp here). It and job.json must be there on all hosts, and ssh must
# reach them without a password. MASTER_PORT: free at the first host (default 29500). FORWARD: names of
# variables that all processes are to have, beside RRFP_*, NCCL_*, CUDA_* and LD_LIBRARY_PATH. SSH:
# instead of "ssh -tt", whose end the other side notices.
#
# torchrun does the same (not tried); README.md says at which port processes then meet:
#   torchrun --nnodes ... --nproc-per-node 8 --no-python build/release/rrfp run ...
set -euo pipefail
if [ "$#" -lt 3 ]; then
  sed -n '2,4p' "$0" >&2
  exit 2
fi
hostfile=$1
processes=$2
shift 2
wrong() {
  echo "tcp.sh: $1" >&2
  exit 2
}
[[ $processes =~ ^[1-9][0-9]{0,5}$ ]] ||
  wrong "PROCESSES is \"$processes\"; expected a number, 1 or more"
[[ -r $hostfile && ! -d $hostfile ]] || wrong "$hostfile: cannot read this host file"
# shellcheck source=script/cluster/forwarded.sh
. "$(dirname "${BASH_SOURCE[0]}")/forwarded.sh"
check_command "$1"
command="sh -c '$begin' $(printf '%q ' "${RRFP:-$PWD/build/release/rrfp}" "$@" --transport tcp)"
forwarded=$(forwarded_names)
own=$(for name in $forwarded; do printf '%s=%q ' "$name" "${!name}"; done)

hosts=() # by process
locals=() # its number there
declare -A taken # slots, by host: one may stand in several lines
number=0
while IFS= read -r line || [[ -n $line ]]; do
  number=$((number + 1))
  line=${line%$'\r'}
  read -ra words <<<"${line%%#*}" || true
  if [[ ${#words[@]} -eq 0 ]]; then continue; fi
  host=${words[0]}
  slots=1
  for word in "${words[@]:1}"; do
    case $word in
      slots=*) slots=${word#slots=} ;;
      max_slots=* | max-slots=*) ;; # no host gets more than its slots
      *) wrong "$hostfile, line $number: found \"$word\"; expected slots=N" ;;
    esac
  done
  [[ $slots =~ ^[0-9]{1,6}$ ]] ||
    wrong "$hostfile, line $number: slots is \"$slots\"; expected a number, 0 or more"
  for ((slot = 0; slot < 10#$slots && ${#hosts[@]} < processes; ++slot)); do
    hosts+=("$host")
    locals+=("${taken[$host]:-0}")
    taken[$host]=$((${taken[$host]:-0} + 1))
  done
done <"$hostfile"
[[ ${#hosts[@]} -ge $processes ]] ||
  wrong "$hostfile has ${#hosts[@]} slots; $processes processes were asked for"
[[ -z ${taken[localhost]:-} || ${#taken[@]} -eq 1 ]] ||
  wrong "$hostfile: other hosts cannot reach \"localhost\"; give it the name that they know it by"

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
