#!/usr/bin/env bash
# Opens the pages of `--report` in a headless Chromium: every chart is drawn and the console stays empty, in the light and in the
# dark. By hand, where a Chromium is; not part of .ci/run.
#
#   ci/pages.sh PAGE.html...
set -euo pipefail

browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
if [[ -z $browser ]]; then
    echo "there is no Chromium here" >&2
    exit 1
fi
profile=$(mktemp -d)
trap 'rm -rf "$profile"' EXIT
failed=0
for page in "$@"; do
    for theme in 1 0; do # light, dark
        "$browser" --headless=new --no-sandbox --disable-gpu --user-data-dir="$profile" --window-size=1100,1400 \
            --blink-settings=preferredColorScheme=$theme --virtual-time-budget=5000 --enable-logging=stderr --dump-dom \
            "file://$(realpath "$page")" > "$profile/dom" 2> "$profile/log"
        wanted=$({ grep -o 'data-chart=' "$page" || true; } | wc -l)
        drawn=$(grep -o 'data-drawn="[0-9]*"' "$profile/dom" | grep -o '[0-9]*' || echo none)
        if [[ $drawn != "$wanted" ]] || grep -q CONSOLE "$profile/log"; then
            echo "$page: $drawn of $wanted charts drawn" >&2
            grep CONSOLE "$profile/log" >&2 || true
            failed=$((failed + 1))
        fi
    done
done
echo "$# pages looked at, $failed failed"
[[ $failed -eq 0 ]]
