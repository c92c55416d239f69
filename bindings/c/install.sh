#!/usr/bin/env bash
# Builds the C library, and installs header, shared and static library, pkg-config file and CMake package. Needs cargo and cc. Variables:
#   PREFIX      where it is used from; default /usr/local
#   LIBDIR      default $PREFIX/lib
#   INCLUDEDIR  default $PREFIX/include
#   DESTDIR     put before these when files are written: for packages
#   PROFILE     cargo's profile; default `wheel`, in which a panic is an error and does not end the program
#   LDFLAGS     more options for the linker, for example -Wl,--strip-all
#   TARGET      for another machine, by rustc's name, with CC for its compiler and CARGO for a cargo that links for it (cargo-zigbuild)
set -euo pipefail
cd "$(dirname "$0")/../.."
prefix=${PREFIX:-/usr/local} profile=${PROFILE:-wheel}
libdir=${LIBDIR:-$prefix/lib} includedir=${INCLUDEDIR:-$prefix/include}
for dir in "$prefix" "$libdir" "$includedir"; do
    [[ $dir == /* ]] || { echo "install.sh: $dir is not an absolute path" >&2; exit 2; }
done
header=bindings/c/include/pageout.h
version=$(sed -n 's/^#define PAGEOUT_VERSION "\(.*\)"$/\1/p' "$header")
IFS=. read -r major minor _ <<< "$version"
# Before version 1 each minor version may change the interface.
abi=$major
[[ $major != 0 ]] || abi=$major.$minor
soname=libpageout.so.$abi

cc=${CC:-cc} target=${TARGET:-}
[[ -n ${PAGEOUT_BUILT:-} ]] || ${CARGO:-cargo build} --quiet --locked --profile "$profile" ${target:+--target "$target"} -p pageout-c
# A name of zig's may end with a version of glibc: folders have none.
built=${CARGO_TARGET_DIR:-target}/${target:+${target%%.*}/}${profile/#dev/debug}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Libraries that a static Rust library needs: rustc --print native-static-libs.
native=(-lpthread -ldl -lm -lgcc_s)

# The library of cargo has no soname, and its symbols no version: it is linked again from the same objects.
functions=$($cc -E -P "$header" | grep -oE '\bpageout_[a-z_]+ *\(' | tr -d ' (' | sort -u)
{
    echo "PAGEOUT_$abi {"
    echo "global:"
    printf '    %s;\n' $functions
    echo "local: *;"
    echo "};"
} > "$work/exports.map"
$cc -shared ${LDFLAGS:-} -o "$work/libpageout.so" -Wl,-soname,"$soname" -Wl,--version-script="$work/exports.map" -Wl,--gc-sections -Wl,-z,defs -Wl,-z,relro -Wl,-z,now \
    -Wl,--whole-archive "$built/libpageout.a" -Wl,--no-whole-archive "${native[@]}" -lc

cat > "$work/pageout.pc" <<PC
prefix=$prefix
libdir=$libdir
includedir=$includedir

Name: pageout
Description: A page cache that you link: one budget, the reclaim policies of Linux, direct I/O
Version: $version
Cflags: -I\${includedir}
Libs: -L\${libdir} -lpageout
Libs.private: ${native[*]}
PC

cmake=$libdir/cmake/pageout
to_lib=$(realpath -ms --relative-to="$cmake" "$libdir")
to_include=$(realpath -ms --relative-to="$cmake" "$includedir")
cat > "$work/pageoutConfig.cmake" <<CMAKE
# pageout::pageout is the shared library, pageout::static the static one.
get_filename_component(_pageout_lib "\${CMAKE_CURRENT_LIST_DIR}/$to_lib" ABSOLUTE)
get_filename_component(_pageout_include "\${CMAKE_CURRENT_LIST_DIR}/$to_include" ABSOLUTE)
if(NOT TARGET pageout::pageout)
    add_library(pageout::pageout SHARED IMPORTED)
    set_target_properties(pageout::pageout PROPERTIES
        IMPORTED_LOCATION "\${_pageout_lib}/libpageout.so.$version"
        IMPORTED_SONAME "$soname"
        INTERFACE_INCLUDE_DIRECTORIES "\${_pageout_include}")
    add_library(pageout::static STATIC IMPORTED)
    set_target_properties(pageout::static PROPERTIES
        IMPORTED_LOCATION "\${_pageout_lib}/libpageout.a"
        INTERFACE_INCLUDE_DIRECTORIES "\${_pageout_include}"
        INTERFACE_LINK_LIBRARIES "pthread;dl;m;gcc_s")
endif()
CMAKE
cat > "$work/pageoutConfigVersion.cmake" <<CMAKE
set(PACKAGE_VERSION "$version")
set(PACKAGE_VERSION_COMPATIBLE FALSE)
# Before version 1 each minor version may change the interface.
if(PACKAGE_FIND_VERSION STREQUAL "")
    set(PACKAGE_VERSION_COMPATIBLE TRUE)
elseif(PACKAGE_FIND_VERSION VERSION_LESS_EQUAL PACKAGE_VERSION AND PACKAGE_FIND_VERSION_MAJOR EQUAL $major)
    if(NOT $major EQUAL 0 OR PACKAGE_FIND_VERSION_MINOR EQUAL $minor)
        set(PACKAGE_VERSION_COMPATIBLE TRUE)
    endif()
endif()
if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
endif()
CMAKE

root=${DESTDIR:-}
install -d "$root$includedir" "$root$libdir/pkgconfig" "$root$cmake"
install -m 644 "$header" "$root$includedir/pageout.h"
install -m 755 "$work/libpageout.so" "$root$libdir/libpageout.so.$version"
ln -sf "libpageout.so.$version" "$root$libdir/$soname"
ln -sf "$soname" "$root$libdir/libpageout.so"
install -m 644 "$built/libpageout.a" "$root$libdir/libpageout.a"
install -m 644 "$work/pageout.pc" "$root$libdir/pkgconfig/pageout.pc"
install -m 644 "$work/pageoutConfig.cmake" "$work/pageoutConfigVersion.cmake" "$root$cmake/"
echo "pageout $version is installed in $root$prefix"
if [[ -z $root && $EUID -eq 0 ]] && command -v ldconfig > /dev/null; then
    ldconfig
fi
