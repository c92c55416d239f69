#!/usr/bin/env bash
# Installs the C library into a folder, and builds the program of bindings/c/README.md against it as users do: through pkg-config and through CMake. Each
# is tried with the shared library and with the static one. Each program runs on a file. Needs cc, pkg-config, CMake and readelf. PROFILE and PAGEOUT_BUILT as for
# ci/slow/bindings.sh.
set -euo pipefail
cd "$(dirname "$0")/../.."
for tool in cc pkg-config cmake readelf; do
    command -v "$tool" > /dev/null || { echo "c-install.sh: $tool is missing" >&2; exit 77; }
done
export PROFILE=${PAGEOUT_PROFILE:-wheel}
work=$(mktemp -d "${CARGO_TARGET_DIR:-target}/c-install.XXXXXX")
work=$(realpath "$work")
trap 'rm -rf "$work"' EXIT
fails() { echo "c-install.sh: $*" >&2; exit 1; }

# A package is made in another folder than it is used from.
DESTDIR=$work/package PREFIX=/opt/pageout LIBDIR=/opt/pageout/lib64 bindings/c/install.sh
[[ -f $work/package/opt/pageout/include/pageout.h && -L $work/package/opt/pageout/lib64/libpageout.so ]] || fails "DESTDIR is not used"
grep -qx 'libdir=/opt/pageout/lib64' "$work/package/opt/pageout/lib64/pkgconfig/pageout.pc" || fails "pageout.pc names DESTDIR"
if PREFIX=relative bindings/c/install.sh 2> /dev/null; then fails "a relative prefix is accepted"; fi

prefix=$work/prefix
PAGEOUT_BUILT=1 PREFIX=$prefix bindings/c/install.sh
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
soname=$(readelf -d "$prefix/lib/libpageout.so" | sed -n 's/.*soname: \[\(.*\)\]/\1/p')
[[ $soname == libpageout.so.${version%.*} || $soname == libpageout.so.${version%%.*} ]] || fails "the soname is $soname"
[[ -e $prefix/lib/$soname ]] || fails "$soname is missing"
cc -fpreprocessed -dD -E -P "$prefix/include/pageout.h" 2> /dev/null | grep -oE '\bpageout_[a-z_]+ *\(' | tr -d ' (' | sort -u > "$work/declared"
nm -D --defined-only "$prefix/lib/libpageout.so" | awk '$2 == "T" { sub(/@.*/, "", $3); print $3 }' | sort -u > "$work/exported"
diff -u "$work/declared" "$work/exported" || fails "the header (-) and the installed library (+) differ"

# The program of the README reads 512 bytes of segment.bin at byte 8192.
cd "$work"
sed -n '/^```c$/,/^```$/{/^```/!p}' "$OLDPWD/bindings/c/README.md" > example.c
head -c 16384 /dev/urandom > segment.bin
runs() {
    local program=$1 library=$2
    [[ $library != shared ]] || LD_TRACE_LOADED_OBJECTS=1 LD_LIBRARY_PATH=$prefix/lib "$program" | grep -qF "$prefix/lib/$soname" || fails "$program does not load $soname"
    LD_LIBRARY_PATH=$prefix/lib "$program" || fails "$program fails"
    if (cd / && LD_LIBRARY_PATH=$prefix/lib "$program" 2> "$work/error"); then fails "$program does not miss its file"; fi
    grep -q segment.bin "$work/error" || fails "$program does not name its file"
    echo "$(basename "$program"): runs"
}
export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
[[ $(pkg-config --modversion pageout) == "$version" ]] || fails "pkg-config finds another version"
cc -std=c11 -Wall -Wextra -Werror example.c $(pkg-config --cflags --libs pageout) -o "$work/by-pkg-config"
runs "$work/by-pkg-config" shared
cc -std=c11 -Wall -Wextra -Werror example.c $(pkg-config --cflags pageout) "$(pkg-config --variable=libdir pageout)/libpageout.a" \
    $(pkg-config --static --libs-only-l pageout | sed 's/-lpageout//') -o "$work/by-pkg-config-static"
runs "$work/by-pkg-config-static" static

mkdir cmake
cat > cmake/CMakeLists.txt <<CMAKE
cmake_minimum_required(VERSION 3.13)
project(example C)
find_package(pageout ${version%.*} REQUIRED)
add_executable(by-cmake ../example.c)
target_link_libraries(by-cmake PRIVATE pageout::pageout)
add_executable(by-cmake-static ../example.c)
target_link_libraries(by-cmake-static PRIVATE pageout::static)
CMAKE
cmake -S cmake -B built -DCMAKE_PREFIX_PATH="$prefix" > cmake.log || { cat cmake.log; fails "CMake does not find the package"; }
cmake --build built > build.log || { cat build.log; fails "the program does not build"; }
runs "$work/built/by-cmake" shared
runs "$work/built/by-cmake-static" static
sed 's/find_package(pageout [^ ]*/find_package(pageout 9.9/' -i cmake/CMakeLists.txt
if cmake -S cmake -B other -DCMAKE_PREFIX_PATH="$prefix" > other.log 2>&1; then fails "CMake accepts another version"; fi
# A moved folder is found, too.
mv "$prefix" "$work/moved"
sed "s/find_package(pageout 9.9/find_package(pageout ${version%.*}/" -i cmake/CMakeLists.txt
cmake -S cmake -B moved-build -DCMAKE_PREFIX_PATH="$work/moved" > moved.log || { cat moved.log; fails "CMake does not find a moved package"; }
cmake --build moved-build > build.log || { cat build.log; fails "the program does not build in a moved folder"; }
"$work/moved-build/by-cmake" || fails "a program of a moved package fails"
echo "installed, found and run"
