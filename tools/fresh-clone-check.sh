#!/bin/sh
# Types the README's commands (its ```sh blocks, in order) into a fresh clone of the last commit, with HOME and all caches
# empty, then sets up once more, which must find nothing to do.
#
#     tools/fresh-clone-check.sh            in a temporary folder, removed afterwards
#     KEEP=1 tools/fresh-clone-check.sh     keeps the folder and says where it is
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
if [ -z "${KEEP:-}" ]; then trap 'rm -rf "$work"' EXIT; fi
mkdir "$work/home"
git clone --quiet "$root" "$work/intarsia"
cd "$work/intarsia"

export HOME="$work/home"
unset XDG_CACHE_HOME XDG_CONFIG_HOME PIP_CACHE_DIR TRITON_HOME TRITON_CACHE_DIR VIRTUAL_ENV PYTHONPATH
for name in $(env | sed -n 's/^\(INTARSIA_[A-Z_]*\)=.*/\1/p'); do
    [ "$name" = INTARSIA_CUDA ] || unset "$name"
done

awk '/^```sh$/ { on = 1; next } /^```/ { on = 0 } on' README.md >"$work/commands"
while read -r command; do
    echo "\$ $command"
    sh -c "$command" </dev/null
done <"$work/commands"

again=$(make --no-print-directory setup)
[ -z "$again" ] || { echo "a second set-up was not needed, but: $again" >&2; exit 1; }
[ -z "$(git status --porcelain)" ] || { echo "files that git does not ignore:" >&2; git status --short >&2; exit 1; }
[ -z "${KEEP:-}" ] || echo "kept: $work"
echo "fresh clone: every command of the README works"
