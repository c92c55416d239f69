#!/usr/bin/env bash
# Builds both books with mdBook into target/book, checks links and anchors of the built pages, and looks at some pages in a headless Chromium: narrow and
# wide, light and dark. Not part of .ci/run.
#
#   ci/book.sh                 all of it
#   ci/book.sh --no-browser    without the Chromium
#
# Installs mdBook from crates.io into target/ if it is missing, which takes some minutes. Exits with 77 if a tool is not available.
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.5.4
mdbook=$(command -v mdbook || true)
if [[ -z $mdbook || $("$mdbook" --version) != "mdbook v$version" ]]; then
    mdbook=$PWD/target/mdbook-$version/bin/mdbook
fi
if [[ ! -x $mdbook ]]; then
    echo "+ cargo install mdbook --version $version"
    cargo install mdbook --version "$version" --locked --no-default-features --features search --root "target/mdbook-$version" \
        --target-dir target/mdbook-build || {
        echo "mdBook $version is not installed, and cargo install failed" >&2
        exit 77
    }
    rm -rf target/mdbook-build
fi
command -v python3 > /dev/null || { echo "Python 3 is not installed" >&2; exit 77; }

rm -rf target/book target/book-files
# Both books have this preprocessor, and their pages exist. The second one is built into the first one's folder `spec`.
export MDBOOK_BUILD__CREATE_MISSING=false MDBOOK_OUTPUT__HTML__PRINT__ENABLE=false
export MDBOOK_PREPROCESSOR__REPOSITORY__COMMAND="python3 $PWD/ci/book/repository.py"
export MDBOOK_OUTPUT__HTML__PREFERRED_DARK_THEME=ayu
echo "+ mdbook build docs"
"$mdbook" build docs --dest-dir "$PWD/target/book"
echo "+ mdbook build docs/spec"
"$mdbook" build docs/spec --dest-dir "$PWD/target/book/spec"
# mdBook empties its folder before it writes, so the preprocessor puts copies of linked files elsewhere.
mv target/book-files target/book/repository
python3 ci/book/links.py target/book
python3 ci/figures/diagrams.py --check

[[ ${1-} != --no-browser ]] || exit 0
CHROMIUM=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [[ -z $CHROMIUM ]] || ! command -v npm > /dev/null; then
    echo "Chromium or npm is not installed: no page was opened in a browser" >&2
    exit 77
fi
# The browser's driver is that of the pages of --report.
(cd ci/gate/pages && npm ci --silent)
CHROMIUM=$CHROMIUM BOOK=$PWD/target/book node --test ci/book/book.test.mjs
