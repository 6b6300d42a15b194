# shellcheck shell=bash
# Sourced by the job files that start processes on other hosts.

# The names of variables that those need as well, one a line: RRFP_*, NCCL_*, CUDA_*,
# LD_LIBRARY_PATH and what FORWARD names. Says which name of FORWARD is no variable, and fails.
forwarded_names() {
  local name asked=${FORWARD:-}
  printf '%s\n' "${!RRFP_@}" "${!NCCL_@}" "${!CUDA_@}"
  if [ -n "${LD_LIBRARY_PATH+set}" ]; then echo LD_LIBRARY_PATH; fi
  for name in ${asked//,/ }; do
    if ! [[ $name =~ ^[A-Za-z_][A-Za-z_0-9]*$ && -n ${!name+set} ]]; then
      echo "$(basename "$0"): FORWARD names \"$name\", which is no variable that is set" >&2
      return 2
    fi
    echo "$name"
  done
}

# Fails where "$1" is none of the commands that run over several processes.
check_command() {
  case $1 in
    run | train | calibrate | validate) ;;
    *)
      echo "$(basename "$0"): \"$1\" does not run over several processes; run, train, calibrate and" \
        "validate do" >&2
      return 2
      ;;
  esac
}

# For sh -c "$begin" PROGRAM ARGUMENT...: begins the program, or says that it is not on this host.
# shellcheck disable=SC2016,SC2034
begin='case $0 in */*) [ -f "$0" ] && [ -x "$0" ] ;; *) command -v "$0" >/dev/null ;; esac || '\
'{ echo "no program $0 on $(uname -n): RRFP says where it is" >&2; exit 2; }; exec "$0" "$@"'
