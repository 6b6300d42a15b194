# Goal: every C++ file of the project is laid out as .clang-format says.
# To mend: clang-format -i on the files named.
set -euo pipefail
cd "$RRFP_SOURCE_DIR"

if ! command -v clang-format >/dev/null; then
  echo "skipped: there is no clang-format here"
  exit 77
fi
# Versions differ in small things; the project is held to that of Debian 12.
if ! clang-format --version | grep -q 'version 14\.'; then
  echo "skipped: version 14 is needed, this is $(clang-format --version)"
  exit 77
fi

list_files() {
  if git rev-parse --is-inside-work-tree >/dev/null 2>&1; then
    git ls-files -z --cached --others --exclude-standard -- '*.cc' '*.h' '*.cu'
  else
    find . -path ./build -prune -o \( -name '*.cc' -o -name '*.h' -o -name '*.cu' \) -print0
  fi
}
existing=()
while IFS= read -r -d '' file; do
  [ -f "$file" ] && existing+=("$file")
done < <(list_files)
[ "${#existing[@]}" -gt 0 ] || { echo "no C++ file found" >&2; exit 1; }

clang-format --dry-run -Werror --ferror-limit=3 "${existing[@]}"
echo "${#existing[@]} files"
