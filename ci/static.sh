#!/usr/bin/env bash
# Builds the program as one static file, for machines and containers that have nothing else, and tries it in an empty root directory.
# The result is target/static/pageout; its size is printed. PAGEOUT=FILE tries this file and builds nothing; PROFILE=dev builds faster.
# Needs rustup's target x86_64-unknown-linux-musl, and musl-gcc or PyPI (ziglang, cargo-zigbuild); root for the empty root directory.
set -euo pipefail
cd "$(dirname "$0")/.."
left_out() { echo "left out: $1"; exit 77; }
target=x86_64-unknown-linux-musl
made=${CARGO_TARGET_DIR:-$PWD/target}
out=$PWD/target/static
mkdir -p "$out"
if [[ -n ${PAGEOUT:-} ]]; then
    [[ $PAGEOUT -ef $out/pageout ]] || cp "$PAGEOUT" "$out/pageout"
else
    rustup target list --installed | grep -qx "$target" || rustup target add "$target" || left_out "rustup has no target $target"
    profile=${PROFILE:-release}
    build=(build)
    if command -v musl-gcc > /dev/null; then
        export CC_x86_64_unknown_linux_musl=musl-gcc
    else
        # Zig's C compiler brings musl along, for the C code of zstd.
        if [[ ! -x target/zig/bin/cargo-zigbuild ]]; then
            python3 -m venv target/zig
            target/zig/bin/pip install --quiet ziglang cargo-zigbuild || left_out "neither musl-gcc nor PyPI is there"
        fi
        export PATH=$PWD/target/zig/bin:$PATH
        build=(zigbuild)
    fi
    cargo "${build[@]}" --locked --profile "$profile" --target "$target" -p pageout-lab --bin pageout
    strip -o "$out/pageout" "$made/$target/${profile/dev/debug}/pageout"
fi
if readelf --program-headers --dynamic "$out/pageout" | grep -E 'INTERP|NEEDED'; then
    echo "the program needs a loader or a library" >&2
    exit 1
fi
echo "target/static/pageout: $(stat -c %s "$out/pageout") bytes"

[[ $(id -u) == 0 ]] || left_out "an empty root directory needs root"
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
cp "$out/pageout" "$root/"
cp scenarios/zipf-under-limit.toml "$root/"
inside() { chroot "$root" /pageout "$@"; }
# The exit code says which ways of recording are open.
expect() {
    local expected=$1 code=0
    shift
    "$@" > "$root/told" 2>&1 || code=$?
    [[ $code == "$expected" ]] || { echo "found exit code $code, expected $expected: $*" >&2; cat "$root/told" >&2; exit 1; }
}
expect 0 inside --version
expect 0 inside run zipf-under-limit.toml
# Without /proc there is nothing to record.
expect 2 inside record --check
grep -q '^  nothing$' "$root/told"
echo "empty root directory: --version, run and record --check behave as expected"
