#!/usr/bin/env bash
# Goal: the job file for hosts without a launcher starts every process with its number, here or by
# ssh (which a stand-in plays), hands on what it is given, and ends all when one fails.
set -euo pipefail
program=$RRFP_PROGRAM
source_dir=$RRFP_SOURCE_DIR
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
case_file=$folder/case.json # 3 ranks
cp "$source_dir/tests/cases/anticipating-zb.json" "$case_file"

fail() {
  echo "cluster_tcp_test: $1"
  cat "$folder/out"
  exit 1
}
# run STATUS PROCESSES ARGUMENT...
run() {
  local expected=$1 processes=$2 status=0
  shift 2
  MASTER_PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])')
  export MASTER_PORT
  RRFP=$program timeout 60 "$source_dir/script/cluster/tcp.sh" "$folder/hosts" "$processes" "$@" \
    >"$folder/out" 2>&1 || status=$?
  [ "$status" -eq "$expected" ] || fail "rrfp $*: status $status, expected $expected"
}
expect() { grep -qF -- "$1" "$folder/out" || fail "no \"$1\" in what it printed"; }
expect_once() { [ "$(grep -cF -- "$1" "$folder/out")" -eq 1 ] || fail "not once: \"$1\""; }

# A host that is this machine by another name. A folder with a space must survive the way there.
mkdir "$folder/a b"
cp "$case_file" "$folder/a b/case.json"
cat >"$folder/ssh" <<SSH
#!/bin/sh
echo "\$1" >>"$folder/hosts-reached"
shift
exec sh -c "\$*"
SSH
chmod +x "$folder/ssh"
export SSH=$folder/ssh
printf '# two hosts\n127.0.0.1 slots=2\n\n127.0.0.2 slots=2\n' >"$folder/hosts"
run 0 3 run "$folder/a b/case.json" --iterations 3 --decisions "$folder/log.jsonl"
expect "on 3 processes"
[ "$(sort "$folder/hosts-reached" | uniq -c | tr -s ' ')" = " 2 127.0.0.1
 1 127.0.0.2" ] || fail "not the hosts of the file: $(cat "$folder/hosts-reached")"
"$program" replay-log "$folder/log.jsonl" >"$folder/out" || fail "the decisions differ"
expect "identical"

echo 'localhost slots=3' >"$folder/hosts"
run 0 3 train "$case_file" --text "$source_dir/README.md" --steps 2 --check
expect_once "bit for bit"

# Host files as people have them: without a last newline, with the line ends of other systems, with
# comments and what Open MPI takes; a host in several lines; variables on their way.
cat >"$folder/tell" <<'TELL'
#!/bin/sh
echo "$LOCAL_RANK|$RRFP_TOLD|$NCCL_TOLD|$CUDA_TOLD|$LD_LIBRARY_PATH|$OTHER_TOLD|"
TELL
chmod +x "$folder/tell"
printf '# hosts\r\n  localhost slots=1 max_slots=4 # here\r\n\r\nlocalhost' >"$folder/hosts"
program=$folder/tell run 0 2 run
expect_once "0|"
expect_once "1|"
printf 'localhost slots=2\nlocalhost' >"$folder/hosts"
program=$folder/tell RRFP_TOLD="a b" NCCL_TOLD=c CUDA_TOLD=d LD_LIBRARY_PATH=/none OTHER_TOLD=e \
  FORWARD=OTHER_TOLD run 0 3 run
for process in 0 1 2; do expect_once "$process|a b|c|d|/none|e|"; done
FORWARD=OTHER_TOLD run 2 3 run "$case_file"
expect_once 'FORWARD names "OTHER_TOLD"'

for wrong in 0 abc -1 '' 2x; do
  run 2 "$wrong" run "$case_file"
  expect_once "PROCESSES is \"$wrong\"; expected a number, 1 or more"
done
printf 'localhost slots=x\n' >"$folder/hosts"
run 2 1 run "$case_file"
expect_once 'hosts, line 1: slots is "x"; expected a number'
printf '\nlocalhost cores=2\n' >"$folder/hosts"
run 2 1 run "$case_file"
expect_once 'hosts, line 2: found "cores=2"; expected slots=N'
printf 'localhost\nnode2\n' >"$folder/hosts"
run 2 2 run "$case_file"
expect_once 'other hosts cannot reach "localhost"'
rm "$folder/hosts"
run 2 1 run "$case_file"
expect_once "hosts: cannot read this host file"
echo 'localhost slots=3' >"$folder/hosts"

program=$folder/absent run 2 3 run "$case_file"
expect "no program $folder/absent on $(uname -n): RRFP says where it is"
program=$folder run 2 3 run "$case_file"
expect "no program $folder on"
run 2 3 sweep "$case_file"
expect_once 'tcp.sh: "sweep" does not run over several processes; run, train'
# What runs over several processes has the option.
for command in $("$program" --help | sed -n 's/^  \([a-z-]*\)  .*/\1/p'); do
  if "$program" "$command" --help | grep -q -- '^  --transport'; then
    run 2 4 "$command" "$case_file" # too few slots
    expect_once "4 processes were asked for"
  else
    run 2 3 "$command" "$case_file"
    expect_once "\"$command\" does not run over several processes"
  fi
done

run 2 4 run "$case_file"
expect "hosts has 3 slots; 4 processes were asked for"
run 2 2 run "$case_file"
expect "this run takes 3 processes" # by each of them
run 2 3 run "$folder/absent.json"
expect "absent.json: cannot read"

# The killed process first, then what the others say.
run 137 3 run "$case_file" --inject kill:1:1F1
expect "channel rank 1 -> rank 0"
expect "channel rank 1 -> rank 2"
# One that is stuck is ended as well, and so is every other one.
run 1 3 run "$case_file" --inject silent:1:1F1 --patience-ms 400
expect "rank 1 has not answered"
if pgrep -f "$case_file" >"$folder/out"; then fail "left processes"; fi
