#!/bin/sh
# `meshweft` of an archive for x86-64: starts the build for the best level that this processor has. Arguments, exit code, signals and the
# number of the process are those of the program.
#
# MESHWEFT_LEVEL=v2 takes that level: to compare, or to see whether a fault is one of a level.
set -u

# What /proc/cpuinfo calls the instructions that each level adds to the one before (psABI of x86-64).
levels='
cx16 lahf_lm pni popcnt sse4_1 sse4_2 ssse3 =v2
abm avx avx2 bmi1 bmi2 f16c fma movbe =v3
avx512bw avx512cd avx512dq avx512f avx512vl =v4'

fail() {
    printf 'error: %s\n' "$*" >&2
    exit 2
}

# Not by its name alone: it may have been called by a link.
launcher=$(readlink -f "$0") || fail "cannot find the folder of $0"
builds=${launcher%/bin/*}/lib/meshweft

flags=
while IFS=: read -r name value; do
    case $name in flags*) flags=" $value " && break ;; esac
done 2>/dev/null </proc/cpuinfo

# The levels that it has, the best first, up to the first instruction that it lacks.
has=
lacks=
for word in $levels; do
    case $word in
    =*) has="${word#=} $has" ;;
    *)
        case $flags in
        *" $word "*) ;;
        *) lacks=$word && break ;;
        esac
        ;;
    esac
done
# Where nothing tells: nearly every x86-64 processor since 2009 has it, and no result depends on the level.
[ -n "$flags" ] || has=v2

for level in $has; do
    [ "${MESHWEFT_LEVEL:-$level}" = "$level" ] && [ -x "$builds/$level/meshweft" ] && exec "$builds/$level/meshweft" "$@"
done

[ -d "$builds" ] || fail "$builds is not there: bin and lib of the archive belong beside each other"
[ -z "${MESHWEFT_LEVEL:-}" ] || fail "no build of level $MESHWEFT_LEVEL in $builds${lacks:+, or this processor lacks $lacks for it}"
fail "this processor lacks ${lacks:-nothing, but there is no build in $builds}: build meshweft from source"
