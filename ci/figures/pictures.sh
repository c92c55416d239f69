#!/usr/bin/env bash
# Makes the screenshots of README and docs: the tops of pages that `--report` writes, as a Chromium shows them. By hand, where a Chromium
# and Python's Pillow are; not part of .ci/run.
#
#   ci/figures/pictures.sh                 all of them, with target/release/pageout
#   PAGEOUT=... ci/figures/pictures.sh run     one of them, with another build
set -euo pipefail
cd "$(dirname "$0")/../.."

pageout=${PAGEOUT:-target/release/pageout}
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [[ -z $browser ]] || ! python3 -c 'import PIL' 2> /dev/null; then
    echo "there is no Chromium or no Pillow here" >&2
    exit 1
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# NAME HEIGHT ARGUMENTS...: the first HEIGHT pixels of the report that `pageout ARGUMENTS` writes.
picture() {
    local name=$1 height=$2
    shift 2
    "$pageout" "$@" --quiet --report "$scratch/$name.html" > "$scratch/$name.txt"
    # Without a window's frame there is no telling how much of its height is the page's.
    "$browser" --headless=new --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$scratch/profile" \
        --window-size=1060,$((height + 400)) --blink-settings=preferredColorScheme=1 --virtual-time-budget=5000 \
        --screenshot="$scratch/$name.png" "file://$scratch/$name.html" > "$scratch/log" 2>&1
    # 64 colours distinguish all lines, and need a third of the bytes.
    python3 - "$scratch/$name.png" "docs/pictures/$name.png" "$height" <<'END'
import sys
from PIL import Image

page = Image.open(sys.argv[1]).convert("RGB")
page.crop((0, 0, 1060, int(sys.argv[3]))).quantize(64, dither=Image.Dither.NONE).save(sys.argv[2], optimize=True)
END
    echo "docs/pictures/$name.png: $(stat -c %s "docs/pictures/$name.png") bytes"
}

wanted=("$@")
is_wanted() {
    [[ ${#wanted[@]} -eq 0 || " ${wanted[*]} " == *" $1 "* ]]
}

if is_wanted run; then
    picture run 1450 run scenarios/whole-machine.toml
fi
if is_wanted vmscan-report; then
    picture vmscan-report 940 vmscan-report ground-truth/ftrace/ft-glmix.mglru.t.txt.zst
fi
if is_wanted ablate; then
    picture ablate 760 ablate scenarios/heap-index-data.toml --set kernel.profile=mglru@6.12 --repeat 3
fi
if is_wanted tour; then
    picture tour 1680 tour
fi
