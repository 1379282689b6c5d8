#!/bin/sh
# Whether what the simulator is made of compiles for 64-bit Arm: no link, no run. Needs gcc-aarch64-linux-gnu and
# libc6-dev-arm64-cross of Debian. Run from the root of the repository.
set -eu
compiler=${ARM_CC:-aarch64-linux-gnu-gcc}
command -v "$compiler" >/dev/null || {
    echo "there is no $compiler: install gcc-aarch64-linux-gnu and libc6-dev-arm64-cross" >&2
    exit 1
}
headers=$(mktemp -d)
trap 'rm -rf "$headers"' EXIT
cp /usr/include/xxhash.h /usr/include/xxh3.h "$headers"
count=0
for file in src/base/*.c src/ptx/*.c src/sim/*.c; do
    case $file in */exec_v[34].c) continue ;; esac # x86-64 only
    "$compiler" -std=c11 -D_GNU_SOURCE -DXXH_INLINE_ALL -O1 -Wall -Wextra -Wconversion -Werror -Isrc -Iinclude \
        -isystem "$headers" -c "$file" -o "$headers/object.o"
    count=$((count + 1))
done
echo "$count files compile for Arm"
