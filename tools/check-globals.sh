#!/bin/sh
# The library has no mutable global: several simulated devices live in one process. Every data symbol of the archive
# must lie in a section that is read-only once the program is loaded.
#
#     tools/check-globals.sh build/release/lib/libintarsia.a
set -eu

nm --format=sysv --defined-only "$1" | awk -F'|' '
    { gsub(/ /, "", $1); gsub(/ /, "", $NF) }
    $NF ~ /^(\.data|\.bss|\.tdata|\.tbss|\*COM\*)/ && $NF !~ /^\.data\.rel\.ro/ { print "mutable global: " $1 " in " $NF; bad = 1 }
    NF > 5 { symbols++ }
    END {
        if (symbols == 0) { print "no symbol found: is this the library?"; exit 1 }
        if (bad) exit 1
        print "no mutable global among " symbols " symbols"
    }'
