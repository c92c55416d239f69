#!/usr/bin/env bash
# Makes a release in target/dist, each part tried as its user would, and prints what each file weighs. Needs nothing but package registries.
# Usage: ci/release.sh [STEP...]       without one: all of them, in this order
#   versions   one version everywhere; no dependency on a path without a version
#   crates     `cargo publish --dry-run` of the public crates; then `cargo install` of these packages, from an empty folder
#   api        public interfaces compared with those of the last tag v*, by cargo-semver-checks
#   profile    runs of the program for profile-guided optimisation, of the form that ends with a panic and of the form that unwinds
#   programs   static programs for x86-64 and aarch64 (musl), tried in an empty root folder; the second by qemu-user
#   wheels     manylinux wheels for both, with Parquet; tried in a fresh environment
#   deb        Debian packages with manual page and completions; unpacked and tried
#   c          the C library for both, for glibc 2.17 and later; a program is linked with it
#   image      the Dockerfile beside the program, its steps done by chroot
#   bom        bill of materials (CycloneDX), and the licences of dependencies
#   sums       SHA-256 of all, and sizes
# A step whose tools are not available says so; the script then ends with 77, after the others.
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
# Whether this machine runs programs of `$1` natively.
is_native() { [[ $1 == "$(uname -m)" ]]; }

# zig links for each machine, and brings its C libraries along.
need_zig() {
    [[ -x $tools/bin/cargo-zigbuild && -x $tools/bin/maturin ]] || {
        python3 -m venv "$tools"
        "$tools/bin/pip" install --quiet ziglang cargo-zigbuild 'maturin>=1.16,<2' || left_out "PyPI has no ziglang, cargo-zigbuild or maturin"
    }
    export PATH=$tools/bin:$PATH
}

need_target() {
    rustup target list --installed | grep -qx "$1" || rustup target add "$1" || left_out "rustup has no target $1"
}

# Runs a program of another machine.
emulated() {
    local machine=$1
    shift
    if is_native "$machine"; then
        "$@"
    else
        command -v "qemu-$machine" > /dev/null || left_out "there is no qemu-$machine (Debian: qemu-user)"
        "qemu-$machine" -L "${sysroot:-/}" "$@"
    fi
}

# Flags for the compiler with the profile of a form, if the step `profile` has made it.
flags() {
    local profile=$made/release/$1.profdata
    # The profile has functions of other builds, too.
    [[ ! -f $profile ]] || echo "-Cprofile-use=$profile -Cllvm-args=-pgo-warn-missing-function=false"
}

versions() {
    local other
    other=$(grep -rnE '^[a-z-]+ = \{ path = ' Cargo.toml | grep -v 'version = "'"$version"'"' || true)
    [[ -z $other ]] || fails "dependencies without the version $version:"$'\n'"$other"
    grep -qx "version = \"$version\"" crates/python/pyproject.toml || fails "crates/python/pyproject.toml has another version than $version"
    grep -qx "#define PAGEOUT_VERSION \"$version\"" bindings/c/include/pageout.h || fails "bindings/c/include/pageout.h has another version than $version"
    grep -qE "^## \[$version\]" CHANGELOG.md || fails "CHANGELOG.md has no section [$version]"
    echo "version $version everywhere"
}

crates() {
    rm -rf "$made"/package
    cargo publish --workspace --dry-run --locked ${ALLOW_DIRTY:+--allow-dirty}
    # As a registry would serve them: each package unpacked, and used instead of the registry's.
    mkdir "$work/crates" "$work/empty"
    local package name patches=()
    for package in "$made"/package/*-"$version"; do
        cp -r "$package" "$work/crates/"
        name=$(basename "$package" "-$version")
        patches+=(--config "patch.crates-io.$name.path='$work/crates/$name-$version'")
    done
    cd "$work/empty"
    cargo install --locked --path "$work/crates/pageout-lab-$version" --root "$work/installed" "${patches[@]}"
    "$work/installed/bin/pageout" --version | grep -qx "pageout $version" || fails "the installed program says another version"
    # Its data is in it: no file of the checkout is read.
    "$work/installed/bin/pageout" tour > "$work/tour" || fails "pageout tour, installed: $(tail -3 "$work/tour")"
    "$work/installed/bin/pageout" new-policy mine > /dev/null
    grep -qx "pageout-lab = \"$version\"" mine/Cargo.toml || fails "new-policy of an installed program names a checkout"
}

api() {
    local last
    last=$(git describe --tags --abbrev=0 --match 'v*' 2> /dev/null) || { echo "no tag v*: nothing to compare with, as this is the first release"; return; }
    [[ -x $tools/cargo/bin/cargo-semver-checks ]] || cargo install --quiet --locked --root "$tools/cargo" cargo-semver-checks || left_out "crates.io has no cargo-semver-checks"
    "$tools/cargo/bin/cargo-semver-checks" semver-checks --baseline-rev "$last" --workspace
}

profile() {
    rustup component list --installed | grep -q ^llvm-tools || rustup component add llvm-tools || left_out "rustup has no llvm-tools"
    mkdir -p "$made/release"
    local form
    for form in abort unwind; do
        CARGO_PROFILE_MEASURED_PANIC=$form ci/figures/measured.sh pageout profile > "$work/profile"
        cp "$(tail -1 "$work/profile")" "$made/release/$form.profdata"
    done
}

programs() {
    need_zig
    # The page of the command `play` has the simulator inside.
    need_target wasm32-unknown-unknown
    ci/play.sh module
    export PAGEOUT_PLAY_MODULE=$made/play/module.b64
    local machine target
    for machine in x86_64 aarch64; do
        target=$machine-unknown-linux-musl
        need_target "$target"
        RUSTFLAGS=$(flags abort) cargo zigbuild --quiet --locked --profile measured --features parquet,play --target "$target" -p pageout-lab --bin pageout
        cp "$made/$target/measured/pageout" "$work/pageout-$machine"
        ! readelf --program-headers --dynamic "$work/pageout-$machine" | grep -E 'INTERP|NEEDED' || fails "$machine: the program needs a loader or a library"
        local folder=pageout-$version-$machine-linux
        rm -rf "$work/$folder"
        mkdir "$work/$folder"
        cp "$work/pageout-$machine" "$work/$folder/pageout"
        cp LICENSE-* README.md CHANGELOG.md "$work/$folder/"
        # The image of this program alone.
        cp docs/examples/record.Dockerfile "$work/$folder/Dockerfile"
        tar -C "$work" --owner=0 --group=0 -czf "$dist/$folder.tar.gz" "$folder"
        emulated "$machine" "$work/pageout-$machine" --version | grep -qx "pageout $version" || fails "$machine: another version"
        emulated "$machine" "$work/pageout-$machine" run scenarios/zipf-under-limit.toml --quiet > "$work/run-$machine"
        emulated "$machine" "$work/pageout-$machine" play --no-open --out "$work/play-$machine.html"
    done
    # The simulation does not depend on the machine.
    cmp "$work/run-x86_64" "$work/run-aarch64" || fails "the two programs print different results"
    cmp "$work/play-x86_64.html" "$work/play-aarch64.html" || fails "the two programs write different pages"
}

wheels() {
    need_zig
    local machine
    for machine in x86_64 aarch64; do
        need_target "$machine-unknown-linux-gnu"
        rm -f "$dist"/pageout-"$version"-*"$machine".whl
        (cd crates/python && RUSTFLAGS=$(flags unwind) maturin build --quiet --locked --release --profile wheel --zig --compatibility manylinux2014 \
            --target "$machine-unknown-linux-gnu" --features pyo3/extension-module,parquet --out "$dist")
    done
    # Two lines of Python, from nothing, with no compiler to be found.
    python3 -m venv "$work/fresh"
    local wheel since=$SECONDS
    wheel=$(echo "$dist"/pageout-"$version"-*"$(uname -m)".whl)
    PATH=$work/fresh/bin "$work/fresh/bin/pip" install --quiet --only-binary :all: "$wheel[plot]"
    echo "$root/ground-truth/sequences/shift.u32.zst" > "$work/trace"
    (cd "$work" && PATH=$work/fresh/bin PYTHONPATH=$root/crates/python/tests fresh/bin/python -m unittest -q test_pageout)
    echo "wheel: installed and tested in $((SECONDS - since)) s"
}

deb() {
    command -v dpkg-deb > /dev/null || left_out "there is no dpkg-deb"
    local machine architecture tree native
    native=$work/native
    tar -xzf "$dist/pageout-$version-$(uname -m)-linux.tar.gz" -C "$work" || fails "the step programs comes first"
    native=$work/pageout-$version-$(uname -m)-linux/pageout
    for machine in x86_64 aarch64; do
        architecture=amd64
        [[ $machine == x86_64 ]] || architecture=arm64
        tree=$work/deb-$architecture
        tar -xzf "$dist/pageout-$version-$machine-linux.tar.gz" -C "$work"
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
    architecture=$(dpkg --print-architecture)
    dpkg-deb --extract "$dist/pageout_${version}_$architecture.deb" "$work/installed-deb"
    "$work/installed-deb/usr/bin/pageout" --version | grep -qx "pageout $version" || fails "the package has another version"
    bash -n "$work/installed-deb/usr/share/bash-completion/completions/pageout"
    gzip -dc "$work/installed-deb/usr/share/man/man1/pageout.1.gz" | grep -q '^\.TH' || fails "the manual page is none"
    if [[ $EUID -eq 0 ]]; then
        # As a user: into a root folder of its own.
        mkdir -p "$work/dpkg/var/lib/dpkg"/{info,updates,triggers}
        touch "$work/dpkg/var/lib/dpkg/status"
        dpkg --root="$work/dpkg" --force-not-root --force-depends --install "$dist/pageout_${version}_$architecture.deb" > /dev/null
        [[ -x $work/dpkg/usr/bin/pageout ]] || fails "dpkg did not install the program"
    fi
}

c() {
    need_zig
    local machine tree
    for machine in x86_64 aarch64; do
        need_target "$machine-unknown-linux-gnu"
        tree=$work/libpageout-$version-$machine-linux
        printf '#!/bin/sh\nexec %s -m ziglang cc -target %s-linux-gnu.2.17 "$@"\n' "$tools/bin/python" "$machine" > "$work/cc-$machine"
        chmod +x "$work/cc-$machine"
        RUSTFLAGS=$(flags unwind) TARGET=$machine-unknown-linux-gnu.2.17 CC=$work/cc-$machine CARGO="cargo zigbuild" DESTDIR=$tree PREFIX=/usr/local bindings/c/install.sh
        cp LICENSE-* bindings/c/README.md "$tree/"
        tar -C "$work" --owner=0 --group=0 -czf "$dist/libpageout-$version-$machine-linux.tar.gz" "$(basename "$tree")"
        # A program of a user's: shared and static.
        cat > "$work/use.c" <<'C'
#include <pageout.h>
#include <stdio.h>
#include <string.h>
int main(void) {
    puts(pageout_version());
    return strcmp(pageout_version(), PAGEOUT_VERSION) != 0;
}
C
        "$work/cc-$machine" -I"$tree/usr/local/include" -o "$work/use-$machine" "$work/use.c" "$tree/usr/local/lib/libpageout.a" -lpthread -ldl -lm
        if is_native "$machine"; then
            "$work/use-$machine" > /dev/null || fails "$machine: a program with the static library"
            "$work/cc-$machine" -I"$tree/usr/local/include" -o "$work/use-shared" "$work/use.c" -L"$tree/usr/local/lib" -lpageout
            LD_LIBRARY_PATH=$tree/usr/local/lib "$work/use-shared" > /dev/null || fails "$machine: a program with the shared library"
        fi
    done
}

image() {
    [[ $EUID -eq 0 ]] || left_out "chroot needs root"
    local folder
    folder=pageout-$version-$(uname -m)-linux
    tar -xzf "$dist/$folder.tar.gz" -C "$work" || fails "the step programs comes first"
    # FROM scratch, COPY, ENTRYPOINT: nothing else.
    mkdir "$work/image"
    local source place
    while read -r word source place; do
        case $word in
            FROM) [[ $source == scratch ]] || fails "Dockerfile: the image is from $source" ;;
            COPY) cp "$work/$folder/$source" "$work/image$place" ;;
            ENTRYPOINT) [[ $source == '["/pageout"]' ]] || fails "Dockerfile: the entry point is $source" ;;
            '#' | '#'* | '') ;;
            *) fails "Dockerfile: chroot does not do $word" ;;
        esac
    done < "$work/$folder/Dockerfile"
    chroot "$work/image" /pageout --version | grep -qx "pageout $version" || fails "the image has another version"
}

bom() {
    [[ -x $tools/cargo/bin/cargo-cyclonedx ]] || cargo install --quiet --locked --root "$tools/cargo" cargo-cyclonedx || left_out "crates.io has no cargo-cyclonedx"
    "$tools/cargo/bin/cargo-cyclonedx" cyclonedx --quiet --format json --features parquet --override-filename pageout.cdx --manifest-path crates/lab/Cargo.toml
    mv crates/lab/pageout.cdx.json "$dist/pageout-$version.cdx.json"
    find crates bindings -name pageout.cdx.json -delete
    python3 ci/figures/licences.py > "$dist/pageout-$version-licences.txt"
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
