#!/usr/bin/env bash
# Makes a release in target/dist, each part tried as its user would, and prints what each file weighs. Needs nothing but package registries.
# Usage: ci/release.sh [STEP...]       without one: all of them, in this order
#   versions   one version everywhere; no dependency on a path without a version
#   crates     `cargo publish --dry-run` of the public crates; then `cargo install` of these packages, from an empty folder
#   api        public interfaces compared with those of the last tag v*, by cargo-semver-checks
#   profile    runs of the program for profile-guided optimisation, of the form that ends with a panic and of the form that unwinds
#   programs   static programs for x86-64 and aarch64 (musl), tried in an empty root folder; the second by qemu-user
#   wheels     manylinux wheels for both, with Parquet; tried in a fresh environment, up to the figure of a trace
#   deb        Debian packages with manual page and completions; installed into a folder and tried
#   c          the C library for both, for glibc 2.17 and later; programs are linked with it through pkg-config
#   image      the Dockerfile next to the program; its steps are done by chroot
#   bom        bill of materials (CycloneDX), and the licences of dependencies
#   sums       SHA-256 of all, and sizes
# A step whose tools are not available reports it; the script then ends with 77, after the others. Each trial prints its seconds.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/.."
root=$PWD
version=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml)
made=${CARGO_TARGET_DIR:-$root/target}
export CARGO_TARGET_DIR=$made CARGO_INCREMENTAL=0
dist=$root/target/dist
tools=$root/target/tools
mkdir -p "$dist"
work=$(mktemp -d)
trap '[[ $BASHPID != $$ ]] || rm -rf "$work"' EXIT

fails() { echo "release.sh: $*" >&2; exit 1; }
# Ends a step, not the script: each runs in a shell of its own.
left_out() { echo "left out: $1"; exit 77; }
is_native() { [[ $1 == "$(uname -m)" ]]; }

# zig links for each machine; its C libraries are bundled. Functions have the names that the profile has.
need_zig() {
    [[ -x $tools/bin/cargo-zigbuild && -x $tools/bin/maturin ]] || {
        python3 -m venv "$tools"
        "$tools/bin/pip" install --quiet ziglang cargo-zigbuild 'maturin>=1.16,<2' || left_out "PyPI has no ziglang, cargo-zigbuild or maturin"
    }
    export PATH=$tools/bin:$PATH RUSTC_WRAPPER=$root/ci/figures/names.sh
}

need_target() {
    rustup target list --installed | grep -qx "$1" || rustup target add "$1" || left_out "rustup has no target $1"
}

# Ends the step if programs of this machine do not run here.
need_machine() {
    is_native "$1" || command -v "qemu-$1" > /dev/null || left_out "the files for $1 are made, but not tried: there is no qemu-$1 (Debian: qemu-user)"
}

# Runs a program of another machine, with the libraries of Debian's cross compiler if it needs any.
emulated() {
    local machine=$1
    shift
    if is_native "$machine"; then
        "$@"
    else
        "qemu-$machine" -L "/usr/$machine-linux-gnu" "$@"
    fi
}

# Flags for the compiler: no folder of this machine is named in a release, and the profile of a form is used, if the step `profile` has made it.
flags() {
    local profile=$made/release/$1.profdata
    echo -n "--remap-path-prefix=$root=/pageout --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
    # The profile has functions of other builds, too.
    [[ ! -f $profile ]] || echo -n " -Cprofile-use=$profile -Cllvm-args=-pgo-warn-missing-function=false"
}

# Prints how the files of a step are built.
tells_build() {
    if [[ -f $made/release/$1.profdata ]]; then
        echo "build: fat LTO, guided by a profile"
    else
        echo "build: fat LTO, NOT guided by a profile: the step \`profile\` makes one"
    fi
}

# Fails if the profile of a form has less than half of the engine's functions by the names of this build: the compiler reports none of that.
check_profile() {
    local profile=$made/release/$1.profdata folder=$2 built
    [[ -f $profile ]] || return 0
    need_llvm
    built=$(ls -t "$folder"/libpageout_engine-*.rlib | head -1)
    "$llvm/llvm-nm" --defined-only --format=just-symbols "$built" 2> /dev/null | { grep '^_[A-Za-z0-9_.$]*pageout_engine' || true; } | sort -u > "$work/names"
    "$llvm/llvm-profdata" show --all-functions "$profile" | sed -n 's/^  \(.*;\)\?\(_[^ ;]*\):$/\2/p' | sort -u | comm -12 "$work/names" - > "$work/profiled"
    echo "profile: $(wc -l < "$work/profiled") of $(wc -l < "$work/names") functions of the engine"
    [[ $(wc -l < "$work/profiled") -gt $(($(wc -l < "$work/names") / 2)) ]] || fails "the profile is not of this build: run the step profile again"
}

# The page of the command `play` has the simulator inside.
need_play() {
    need_target wasm32-unknown-unknown
    ci/play.sh module
    export PAGEOUT_PLAY_MODULE=$made/play/module.b64
}

# Fails if a file names a folder of this machine.
check_paths() {
    local folder
    for folder in "$root" "${CARGO_HOME:-$HOME/.cargo}"; do
        ! grep -aFq "$folder" "$1" || fails "$1 names the folder $folder: $(grep -aoE "$folder[a-zA-Z0-9_./-]*" "$1" | head -1)"
    done
}

versions() {
    local other
    other=$(grep -rnE '^[a-z-]+ = \{ path = ' Cargo.toml | grep -v 'version = "'"$version"'"' || true)
    [[ -z $other ]] || fails "dependencies without the version $version:"$'\n'"$other"
    grep -qx "version = \"$version\"" crates/python/pyproject.toml || fails "crates/python/pyproject.toml has another version than $version"
    grep -qx "#define PAGEOUT_VERSION \"$version\"" bindings/c/include/pageout.h || fails "bindings/c/include/pageout.h has another version than $version"
    grep -qE "^## \[$version\]" CHANGELOG.md || fails "CHANGELOG.md has no section [$version]"
    other=$(grep -rnE "(pageout|libpageout)[-_][0-9]+\.[0-9]+\.[0-9]|pageout [0-9]+\.[0-9]+ REQUIRED" docs/start docs/howto docs/tutorials bindings/*/README.md README.md \
        | grep -vE "pageout[-_]$version|pageout ${version%.*} REQUIRED" || true)
    [[ -z $other ]] || fails "documents with another version than $version:"$'\n'"$other"
    echo "version $version everywhere"
}

crates() {
    rm -rf "$made"/package
    cargo publish --workspace --dry-run --locked ${ALLOW_DIRTY:+--allow-dirty}
    # As a user, with a folder of packages for a registry: these ones, and those that they need.
    cargo vendor --quiet --locked --versioned-dirs "$made/vendor" > /dev/null
    local package name
    find "$made/package" -name "*-$version.crate" > "$work/packages"
    grep -q "/pageout-lab-$version.crate\$" "$work/packages" || fails "cargo publish left no package of pageout-lab in $made/package"
    # shellcheck disable=SC2013
    for package in $(cat "$work/packages"); do
        name=$(basename "$package" .crate)
        tar -xzf "$package" -C "$made/vendor"
        printf '{"files":{},"package":"%s"}' "$(sha256sum < "$package" | cut -d' ' -f1)" > "$made/vendor/$name/.cargo-checksum.json"
    done
    mkdir "$work/empty"
    cd "$work/empty"
    # The workspace's own builds have other settings.
    export CARGO_TARGET_DIR=$made/installed
    cargo install --locked --root "$work/installed" --config 'source.crates-io.replace-with="packages"' --config "source.packages.directory='$made/vendor'" pageout-lab
    [[ $("$work/installed/bin/pageout" --version) == "pageout $version"* ]] || fails "the installed program says another version"
    # Its data is in it: no file of the checkout is read.
    "$work/installed/bin/pageout" tour > "$work/tour" || fails "pageout tour, installed: $(tail -3 "$work/tour")"
    "$work/installed/bin/pageout" new-policy mine > /dev/null
    grep -qx "pageout-lab = \"$version\"" mine/Cargo.toml || fails "new-policy of an installed program names a checkout"
}

api() {
    local last package packages=()
    last=$(git describe --tags --abbrev=0 --match 'v*' 2> /dev/null) || { echo "no tag v*: there is nothing to compare with, as this is the first release"; return; }
    [[ -x $tools/cargo/bin/cargo-semver-checks ]] || cargo install --quiet --locked --root "$tools/cargo" cargo-semver-checks || left_out "crates.io has no cargo-semver-checks"
    for package in $(cargo metadata --no-deps --format-version 1 | python3 -c '
import json, sys
for package in json.load(sys.stdin)["packages"]:
    if package["publish"] is None and any("lib" in target["kind"] for target in package["targets"]):
        print(package["name"])'); do
        if git grep -q "^name = \"$package\"$" "$last" -- 'crates/*/Cargo.toml'; then
            packages+=(--package "$package")
        else
            echo "$package: new since $last"
        fi
    done
    echo "compared with $last: $((${#packages[@]} / 2)) packages"
    # The features of tests (`shuttle`, `failing`) need crates that users do not have.
    "$tools/cargo/bin/cargo-semver-checks" semver-checks --default-features --baseline-rev "$last" "${packages[@]}"
}

# Tools for objects of any machine.
need_llvm() {
    rustup component list --installed | grep -q ^llvm-tools || rustup component add llvm-tools || left_out "rustup has no llvm-tools"
    llvm=$(rustc --print target-libdir)/../bin
}

profile() {
    need_llvm
    mkdir -p "$made/release"
    local form
    for form in abort unwind; do
        CARGO_PROFILE_MEASURED_PANIC=$form ci/figures/measured.sh pageout profile > "$work/profile"
        cp "$(tail -1 "$work/profile")" "$made/release/$form.profdata"
    done
}

programs() {
    need_zig
    need_llvm
    need_play
    tells_build abort
    local machine target folder program
    for machine in x86_64 aarch64; do
        target=$machine-unknown-linux-musl
        need_target "$target"
        CARGO_PROFILE_MEASURED_STRIP=symbols RUSTFLAGS=$(flags abort) \
            cargo zigbuild --quiet --locked --profile measured --features parquet,play --target "$target" -p pageout-lab --bin pageout
        check_profile abort "$made/$target/measured/deps"
        folder=pageout-$version-$machine-linux
        mkdir "$work/$folder"
        program=$work/$folder/pageout
        cp "$made/$target/measured/pageout" "$program"
        # The linker of zig keeps what the compiler asks it to strip.
        "$llvm/llvm-strip" --strip-all "$program"
        ! readelf --program-headers --dynamic "$program" | grep -E 'INTERP|NEEDED' || fails "$machine: the program needs a loader or a library"
        check_paths "$program"
        cp LICENSE-* README.md CHANGELOG.md "$work/$folder/"
        # The image of this program alone.
        grep -v '^#' docs/examples/record.Dockerfile > "$work/$folder/Dockerfile"
        tar -C "$work" --owner=0 --group=0 -czf "$dist/$folder.tar.gz" "$folder"
    done
    for machine in x86_64 aarch64; do
        need_machine "$machine"
        try_program "$machine"
    done
    # The simulation does not depend on the machine.
    cmp "$work/run-x86_64" "$work/run-aarch64" || fails "the two programs print different results"
    cmp "$work/play-x86_64.html" "$work/play-aarch64.html" || fails "the two programs write different pages"
    echo "both programs print the same result and write the same page"
}

# As a user: unpacks the program of a machine into an empty folder, which is its root folder if it runs here natively.
try_program() {
    local machine=$1 since=$SECONDS place=$work/place-$1 run
    mkdir "$place"
    tar -xzf "$dist/pageout-$version-$machine-linux.tar.gz" -C "$place" --strip-components=1 "pageout-$version-$machine-linux/pageout"
    cp scenarios/zipf-under-limit.toml "$place/"
    run=(emulated "$machine" ./pageout)
    if is_native "$machine" && [[ $EUID -eq 0 ]]; then
        run=(chroot "$place" /pageout)
    fi
    (
        cd "$place"
        [[ $("${run[@]}" --version) == "pageout $version "* ]] || fails "$machine: another version"
        "${run[@]}" run zipf-under-limit.toml --quiet > "$work/run-$machine"
        "${run[@]}" play --no-open --out play.html > /dev/null
        "${run[@]}" new-policy mine > /dev/null
        grep -qx "pageout-lab = \"$version\"" mine/Cargo.toml || fails "$machine: new-policy of a released program names a checkout"
        mv play.html "$work/play-$machine.html"
    )
    echo "$machine: unpacked and run in $((SECONDS - since)) s"
}

wheels() {
    need_zig
    need_play
    tells_build unwind
    local machine
    for machine in x86_64 aarch64; do
        need_target "$machine-unknown-linux-gnu"
        rm -f "$dist"/pageout-"$version"-*"$machine".whl
        # Without debug information there are no folders to strip: the linker of zig keeps what the compiler asks it to strip.
        (cd crates/python && CARGO_PROFILE_WHEEL_DEBUG=false RUSTFLAGS=$(flags unwind) maturin build --quiet --locked --profile wheel --zig --compatibility manylinux2014 \
            --target "$machine-unknown-linux-gnu" --features pyo3/extension-module,parquet,play --out "$dist")
        check_profile unwind "$made/$machine-unknown-linux-gnu/wheel/deps"
        mkdir "$work/wheel-$machine"
        (cd "$work/wheel-$machine" && python3 -m zipfile -e "$dist"/pageout-"$version"-*"$machine".whl .)
        check_paths "$work/wheel-$machine/pageout/_native.abi3.so"
    done
    try_wheel
}

# As a user: two lines of Python draw a trace, in a new environment without a compiler. Then all tests.
try_wheel() {
    local wheel since=$SECONDS
    wheel=$(echo "$dist"/pageout-"$version"-*"$(uname -m)".whl)
    cp docs/examples/disks.csv.zst "$work/io.csv.zst"
    python3 -m venv "$work/fresh"
    PATH=$work/fresh/bin "$work/fresh/bin/pip" install --quiet --only-binary :all: "$wheel[plot]"
    echo "wheel: installed, with its dependencies downloaded, in $((SECONDS - since)) s"
    since=$SECONDS
    (cd "$work" && PATH=$work/fresh/bin "$work/fresh/bin/python" -c '
import pageout as po
po.replay("io.csv.zst", policy=["lru", "s3-fifo", "opt"], memory="1%..100%/50log").plot().save("curve.png")')
    [[ $(head -c 4 "$work/curve.png" | tail -c 3) == PNG ]] || fails "the figure is not a PNG"
    cp "$work/curve.png" "$made/release-curve.png"
    echo "wheel: two lines to a figure in $((SECONDS - since)) s"
    since=$SECONDS
    (cd "$work" && PATH=$work/fresh/bin fresh/bin/pageout play --no-open --out play.html > /dev/null)
    (cd "$work" && PATH=$work/fresh/bin PYTHONPATH=$root/crates/python/tests fresh/bin/python -m unittest -q test_pageout)
    echo "wheel: tested in $((SECONDS - since)) s"
}

deb() {
    command -v dpkg-deb > /dev/null || left_out "there is no dpkg-deb"
    local machine architecture tree native
    for machine in x86_64 aarch64; do
        tar -xzf "$dist/pageout-$version-$machine-linux.tar.gz" -C "$work" || fails "the step programs comes first"
    done
    native=$work/pageout-$version-$(uname -m)-linux/pageout
    for machine in x86_64 aarch64; do
        architecture=amd64
        [[ $machine == x86_64 ]] || architecture=arm64
        tree=$work/deb-$architecture
        install -D -m 755 "$work/pageout-$version-$machine-linux/pageout" "$tree/usr/bin/pageout"
        install -d "$tree"/usr/share/{man/man1,bash-completion/completions,zsh/vendor-completions,fish/vendor_completions.d,doc/pageout} "$tree/DEBIAN"
        "$native" man | gzip -9n > "$tree/usr/share/man/man1/pageout.1.gz"
        "$native" completions bash > "$tree/usr/share/bash-completion/completions/pageout"
        "$native" completions zsh > "$tree/usr/share/zsh/vendor-completions/_pageout"
        "$native" completions fish > "$tree/usr/share/fish/vendor_completions.d/pageout.fish"
        gzip -9nc CHANGELOG.md > "$tree/usr/share/doc/pageout/changelog.gz"
        cat LICENSE-MIT LICENSE-APACHE > "$tree/usr/share/doc/pageout/copyright"
        cat > "$tree/DEBIAN/control" <<CONTROL
Package: pageout
Version: $version
Architecture: $architecture
Maintainer: the pageout developers <pageout@localhost>
Installed-Size: $(du -sk "$tree/usr" | cut -f1)
Section: utils
Priority: optional
Description: Linux page reclaim and memory tiering, out of the kernel
 Simulates reclaim, swap and memory tiers of Linux by version, records the
 page cache of running programs, and predicts other limits and settings.
CONTROL
        dpkg-deb --root-owner-group --build "$tree" "$dist/pageout_${version}_$architecture.deb" > /dev/null
    done
    try_deb
}

# As a user: installs the package into a root folder of its own, which has nothing else.
try_deb() {
    local place=$work/dpkg since=$SECONDS package
    package=$dist/pageout_${version}_$(dpkg --print-architecture).deb
    mkdir -p "$place/var/lib/dpkg"/{info,updates,triggers}
    touch "$place/var/lib/dpkg/status"
    if [[ $EUID -eq 0 ]]; then
        dpkg --root="$place" --install "$package" > /dev/null
        dpkg --root="$place" --verify pageout
        [[ $(chroot "$place" /usr/bin/pageout --version) == "pageout $version "* ]] || fails "the package has another version"
    else
        dpkg-deb --extract "$package" "$place"
    fi
    echo "deb: installed in $((SECONDS - since)) s"
    bash -c 'source "$1" && complete -p pageout' - "$place/usr/share/bash-completion/completions/pageout" > /dev/null || fails "bash does not complete pageout"
    # The page and the help name the same commands.
    gzip -dc "$place/usr/share/man/man1/pageout.1.gz" > "$work/pageout.1"
    grep -q '^\.TH' "$work/pageout.1" || fails "the manual page has no title"
    grep -q 'vmscan' "$work/pageout.1" || fails "the manual page does not list the commands"
}

c() {
    need_zig
    need_llvm
    tells_build unwind
    local machine tree flags
    for machine in x86_64 aarch64; do
        need_target "$machine-unknown-linux-gnu"
        tree=$work/libpageout-$version-$machine-linux
        printf '#!/bin/sh\nexec %s -m ziglang cc -target %s-linux-gnu.2.17 "$@"\n' "$tools/bin/python" "$machine" > "$work/cc-$machine"
        chmod +x "$work/cc-$machine"
        flags=$(flags unwind)
        CARGO_PROFILE_WHEEL_DEBUG=false RUSTFLAGS=$flags TARGET=$machine-unknown-linux-gnu.2.17 CC=$work/cc-$machine CARGO="cargo zigbuild" LDFLAGS=-Wl,--strip-all \
            DESTDIR=$work/made-$machine PREFIX=/usr/local bindings/c/install.sh
        mv "$work/made-$machine/usr/local" "$tree"
        "$llvm/llvm-strip" --strip-debug "$tree/lib/libpageout.a"
        check_paths "$tree/lib/libpageout.so.$version"
        check_paths "$tree/lib/libpageout.a"
        install -D -m 644 -t "$tree/share/doc/libpageout" LICENSE-* bindings/c/README.md
        tar -C "$work" --owner=0 --group=0 -czf "$dist/libpageout-$version-$machine-linux.tar.gz" "$(basename "$tree")"
    done
    for machine in x86_64 aarch64; do
        need_machine "$machine"
        try_c "$machine"
    done
}

# As a user: unpacks the library into /usr/local of some root folder, and builds the README's program with it, with the shared and the static library.
try_c() {
    local machine=$1 since=$SECONDS place=$work/root-$1 compiler=cc library needed found
    mkdir -p "$place/usr/local"
    tar -xzf "$dist/libpageout-$version-$machine-linux.tar.gz" -C "$place/usr/local" --strip-components=1
    needed=$(readelf -d "$place/usr/local/lib/libpageout.so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | tr '\n' ' ')
    echo "$machine: libpageout.so needs $needed"
    found=$(readelf -V "$place/usr/local/lib/libpageout.so" | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -1)
    [[ $(printf '%s\n' "$found" GLIBC_2.17 | sort -V | tail -1) == GLIBC_2.17 ]] || fails "$machine: libpageout.so needs $found"
    is_native "$machine" || compiler=$machine-linux-gnu-gcc
    command -v "$compiler" > /dev/null && command -v pkg-config > /dev/null || left_out "the library for $machine is made, but not tried: there is no $compiler or pkg-config (Debian: gcc-${machine/_/-}-linux-gnu pkg-config)"
    sed -n '/^```c$/,/^```$/{/^```/!p}' bindings/c/README.md > "$work/example.c"
    head -c 16384 /dev/urandom > "$work/segment.bin"
    export PKG_CONFIG_LIBDIR=$place/usr/local/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$place
    [[ $(pkg-config --modversion pageout) == "$version" ]] || fails "$machine: pkg-config finds another version"
    # shellcheck disable=SC2046
    "$compiler" "$work/example.c" $(pkg-config --cflags --libs pageout) -o "$work/shared-$machine"
    "$compiler" "$work/example.c" $(pkg-config --cflags pageout) "$place/usr/local/lib/libpageout.a" \
        $(pkg-config --static --libs-only-l pageout | sed 's/-lpageout//') -o "$work/static-$machine"
    readelf -d "$work/shared-$machine" | grep -qF "[libpageout.so.${version%.*}]" || fails "$machine: the program does not name the library"
    for library in shared static; do
        (
            cd "$work"
            if is_native "$machine"; then
                LD_LIBRARY_PATH=$place/usr/local/lib "./$library-$machine"
            else
                emulated "$machine" -E "LD_LIBRARY_PATH=$place/usr/local/lib" "./$library-$machine"
            fi
        ) || fails "$machine: a program with the $library library"
    done
    echo "$machine: unpacked, programs built and run in $((SECONDS - since)) s"
}

image() {
    [[ $EUID -eq 0 ]] || left_out "chroot needs root"
    local folder word source place since=$SECONDS
    folder=pageout-$version-$(uname -m)-linux
    tar -xzf "$dist/$folder.tar.gz" -C "$work" || fails "the step programs comes first"
    # FROM scratch, COPY, ENTRYPOINT: nothing else.
    mkdir "$work/image"
    while read -r word source place; do
        case $word in
            FROM) [[ $source == scratch ]] || fails "Dockerfile: the image is from $source" ;;
            COPY) cp "$work/$folder/$source" "$work/image$place" ;;
            ENTRYPOINT) [[ $source == '["/pageout"]' ]] || fails "Dockerfile: the entry point is $source" ;;
            *) fails "Dockerfile: chroot does not do $word" ;;
        esac
    done < "$work/$folder/Dockerfile"
    [[ $(find "$work/image" -type f -printf '%P\n') == pageout ]] || fails "the image has other files than the program"
    [[ $(chroot "$work/image" /pageout --version) == "pageout $version "* ]] || fails "the image has another version"
    # A folder of the user's, as `docker run --volume` shows it.
    mkdir "$work/image/data"
    cp scenarios/zipf-under-limit.toml "$work/image/data/"
    chroot "$work/image" /pageout run /data/zipf-under-limit.toml --quiet --out /data/result.json --json
    [[ -s $work/image/data/result.json ]] || fails "the image does not write a result"
    echo "image: made and run in $((SECONDS - since)) s"
}

bom() {
    local made_bom=$dist/pageout-$version.cdx.json
    python3 ci/figures/bom.py > "$made_bom"
    python3 ci/figures/licences.py > "$dist/pageout-$version-licences.txt"
    # The schema of CycloneDX comes with its library.
    python3 -m venv "$work/schema"
    "$work/schema/bin/pip" install --quiet 'cyclonedx-python-lib[json-validation]' || left_out "the bill of materials is made, but not checked: PyPI has no cyclonedx-python-lib"
    "$work/schema/bin/python" - "$made_bom" <<'PY'
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read())
sys.exit(str(error) if error else None)
PY
    echo "bill of materials: valid CycloneDX 1.6"
}

sums() {
    (cd "$dist" && rm -f SHA256SUMS && sha256sum -- * > "$work/sums" && mv "$work/sums" SHA256SUMS && sha256sum --quiet --check SHA256SUMS)
    echo
    echo "| file | bytes |"
    echo "|---|---|"
    (cd "$dist" && stat -c '| `%n` | %s |' -- *)
}

all=(versions crates api profile programs wheels deb c image bom sums)
chosen=("$@")
[[ $# -gt 0 ]] || chosen=("${all[@]}")
missing=0
for one in "${chosen[@]}"; do
    [[ " ${all[*]} " == *" $one "* ]] || fails "unknown step: found $one, expected one of ${all[*]}"
done
for one in "${chosen[@]}"; do
    echo "== $one"
    since=$SECONDS ended=0
    # In the background, as nothing else stops a step at its first error: `set -e` does not hold before `||`.
    ("$one") &
    wait $! || ended=$?
    case $ended in
        0) echo "== $one: $((SECONDS - since)) s" ;;
        77) missing=77 ;;
        *) echo "== $one: FAILED ($ended)" >&2; exit 1 ;;
    esac
done
exit "$missing"
