#!/usr/bin/env bash
# Downloads the source of an installed Debian package, as `apt-get source` does: ci/slow/debian-source.sh PACKAGE DIR. Prints its folder. It
# uses package lists of its own, from the same mirrors, so it does not change the system. Never commit any of it. Exit code 77: not available.
set -euo pipefail
package=$1
mkdir -p "$2"
dir=$(cd "$2" && pwd)
left_out() { echo "LEFT OUT: $1" >&2; exit 77; }
command -v apt-get > /dev/null && command -v dpkg-source > /dev/null || left_out "no apt-get and dpkg-source (apt-get install dpkg-dev)"
version=$(dpkg-query -W -f='${source:Version}' "$package" 2> /dev/null) || left_out "$package is not installed (apt-get install $package)"
source=$(dpkg-query -W -f='${source:Package}' "$package")
if ! compgen -G "$dir/$source-*/" > /dev/null; then
    lists=$(mktemp -d)
    trap 'rm -rf "$lists"' EXIT
    mkdir -p "$lists/state/partial"
    cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2> /dev/null | sed -n 's/^deb /deb-src /p' > "$lists/parts.list" || true
    for part in /etc/apt/sources.list.d/*.sources; do
        if [[ -e $part ]]; then sed -E 's/^Types:.*/Types: deb-src/' "$part" > "$lists/$(basename "$part")"; fi
    done
    private=(-o "Dir::Etc::sourcelist=$lists/parts.list" -o "Dir::Etc::sourceparts=$lists" -o "Dir::State::lists=$lists/state" -o APT::Sandbox::User=root)
    rm -f "$lists/sources"
    apt-get "${private[@]}" -qq update > /dev/null 2>&1 || left_out "no list of sources to be had"
    (cd "$dir" && apt-get "${private[@]}" -qq source "$source=$version" > /dev/null 2>&1) || left_out "no source of $source $version to be had"
fi
echo "$dir/$(cd "$dir" && ls -d "$source"-*/ | head -n 1)"
