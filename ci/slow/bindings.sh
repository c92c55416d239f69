#!/usr/bin/env bash
# Tests the C library. It exports exactly the functions of its header. Programs in C11 and C++ check the guarantees of the header, with the
# shared library and with the static one. Needs cc and c++. Not part of .ci/run: the profile that unwinds builds the engine again.
# ci/slow/bindings.sh --build only builds the library, and prints its path. With PAGEOUT_FAILING its devices fail as specified.
set -euo pipefail
cd "$(dirname "$0")/../.."
profile=${PAGEOUT_PROFILE:-wheel}
features=()
[[ -z ${PAGEOUT_FAILING:-} ]] || features=(--features failing)
[[ -n ${PAGEOUT_BUILT:-} ]] || cargo build --quiet --locked --profile "$profile" -p pageout-c "${features[@]}"
target=${CARGO_TARGET_DIR:-target}/${profile/#dev/debug}
if [[ ${1:-} == --build ]]; then
    echo "$target"
    exit
fi
work=$(mktemp -d "$target/bindings.XXXXXX")
trap 'rm -rf "$work"' EXIT
include=bindings/c/include

# The header without its comments, against what the library lets others see.
cc -fpreprocessed -dD -E -P "$include/pageout.h" 2> /dev/null | grep -oE '\bpageout_[a-z_]+ *\(' | tr -d ' (' | sort -u > "$work/declared"
nm -D --defined-only "$target/libpageout.so" | awk '$2 == "T" { print $3 }' | sort -u > "$work/exported"
[[ -s $work/declared ]]
diff -u "$work/declared" "$work/exported" || { echo "the header (-) and libpageout.so (+) differ" >&2; exit 1; }
echo "$(wc -l < "$work/declared") functions are declared and exported"

# Its own tests are of what C does not see.
cargo test --quiet --locked --profile "$profile" -p pageout-c "${features[@]}"

warnings=(-Wall -Wextra -Werror -pedantic -O1 -I"$include")
sed -n '/^```c$/,/^```$/{/^```/!p}' bindings/c/README.md > "$work/readme.c"
cc -std=c11 "${warnings[@]}" "$work/readme.c" -o "$work/readme" -L"$target" -lpageout
for source in bindings/c/tests/*.c; do
    name=$(basename "$source" .c)
    cc -std=c11 -D_XOPEN_SOURCE=700 "${warnings[@]}" "$source" -o "$work/$name-c11" -L"$target" -lpageout -lpthread
    c++ -x c++ -std=c++11 "${warnings[@]}" "$source" -o "$work/$name-c++" -L"$target" -lpageout -lpthread
    # Libraries that a static Rust library needs: rustc --print native-static-libs.
    cc -std=c11 -D_XOPEN_SOURCE=700 "${warnings[@]}" "$source" -o "$work/$name-static" "$target/libpageout.a" -lpthread -ldl -lm -lgcc_s
    for how in c11 c++ static; do
        LD_LIBRARY_PATH=$target "$work/$name-$how" "$work/$name.bytes"
    done
done
