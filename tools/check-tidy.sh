#!/bin/sh
# clang-tidy over the C files that CMake compiles, as many at a time as there are cores.
#
#     tools/check-tidy.sh build/asan-clang
set -eu

# The build's own list, less tests (cmocka's macros are not ours to judge).
python3 - "$1" <<'END' | xargs -P "$(nproc)" -n 4 clang-tidy -p "$1" --quiet --warnings-as-errors='*' 2>/dev/null
import json, sys
files = {entry["file"] for entry in json.load(open(sys.argv[1] + "/compile_commands.json"))}
print("\n".join(sorted(name for name in files if "/src/" in name)))
END
echo "clang-tidy: no complaint"
