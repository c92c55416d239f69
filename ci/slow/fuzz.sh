#!/usr/bin/env bash
# Fuzzes every target of fuzz/ for SECONDS each, one per CPU at the same time. Fails on the first crash, and prints the command that repeats
# it.
#
#   ci/slow/fuzz.sh [SECONDS [TARGET...]]      30 seconds, all targets
#
# Stable Rust is enough: flags enable LLVM's coverage pass by name, and a crate contains libFuzzer. `--target` keeps the flags away from build
# scripts and procedural macros, which could not be linked with them.
set -euo pipefail
cd "$(dirname "$0")/../../fuzz"

seconds=30
if [[ $# -gt 0 ]]; then
    seconds=$1
    shift
fi
host=$(rustc -vV | sed -n 's/^host: //p')
flags=(
    -Cpasses=sancov-module
    -Cllvm-args=-sanitizer-coverage-level=4
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
    -Cllvm-args=-sanitizer-coverage-pc-table
    -Cllvm-args=-sanitizer-coverage-trace-compares
    --cfg=fuzzing
)
echo "+ cargo build --release --target $host    (in fuzz/, with coverage: RUSTFLAGS=\"${flags[*]}\")"
RUSTFLAGS="${flags[*]}" cargo build --release --target "$host"
export bin="${CARGO_TARGET_DIR:-target}/$host/release"
export seconds
targets=("$@")
if [[ ${#targets[@]} -eq 0 ]]; then
    mapfile -t targets < <("$bin/targets")
fi

# One target: former failures and seeds first, then whatever comes of them. New seeds are kept in work/ for the next time.
fuzz_one() {
    local target=$1 seeds=() length=4096 log=work/$1.log
    mkdir -p "work/corpus/$target" "artifacts/$target"
    for seed in "corpus/$target" "regressions/$target"; do
        if [[ -d $seed ]]; then seeds+=("$seed"); fi
    done
    if [[ $target == engine ]]; then length=1660; fi
    if [[ $target == scenario ]]; then seeds+=(../scenarios -dict=scenario.dict); fi
    local command=("$bin/fuzz" "work/corpus/$target" "${seeds[@]}" -max_total_time="$seconds" -max_len="$length"
        -len_control=20 -timeout=60 -rss_limit_mb=4096 -print_final_stats=1 -artifact_prefix="artifacts/$target/")
    export PAGEOUT_FUZZ_TARGET=$target
    echo "+ PAGEOUT_FUZZ_TARGET=$target ${command[*]}"
    if ! "${command[@]}" > "$log" 2>&1; then
        local artifact
        artifact=$(sed -n 's/.*Test unit written to //p' "$log" | tail -1)
        {
            echo "$target FAILED:"
            grep -aE -A4 'panicked at|ERROR: libFuzzer' "$log" | head -20 || tail -20 "$log"
            echo "see it again:   cd fuzz && PAGEOUT_FUZZ_TARGET=$target PAGEOUT_FUZZ_SHOW=1 $bin/fuzz $artifact"
            echo "make it small:  cd fuzz && PAGEOUT_FUZZ_TARGET=$target $bin/fuzz -minimize_crash=1 -max_total_time=60 -exact_artifact_path=small $artifact"
            echo "once mended:    keep it as fuzz/regressions/$target/NAME, and run 'cargo test --lib' in fuzz/"
        } >&2
        return 255 # which makes xargs stop
    fi
    local runs coverage
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    coverage=$(grep -aoE 'cov: [0-9]+ ft: [0-9]+' "$log" | tail -1)
    echo "$target: $runs runs, $coverage"
}
export -f fuzz_one

printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I{} bash -euo pipefail -c 'fuzz_one {}'
