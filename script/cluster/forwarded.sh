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
