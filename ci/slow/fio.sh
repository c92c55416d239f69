#!/usr/bin/env bash
# fio writes and verifies through the page cache, which it links as an engine. It uses blocks with checksums, random and sequential access,
# fsync, a budget of a quarter of the file, and each backend. Then the file is verified again, from the disk and without pageout.
# ci/slow/fio.sh [DIR]: a folder on a file system with direct I/O, default target/fio. Needs fio, cc, and the headers of the installed fio, which
# come from Debian's source package (GPL: the compiler reads them; never commit them). Not part of .ci/run: two minutes, plus the build of the
# library.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
command -v fio > /dev/null || { echo "LEFT OUT: no fio (apt-get install fio)" >&2; exit 77; }
work=${1:-target/fio}
mkdir -p "$work"
source=$(ci/slow/debian-source.sh fio "$work/source")
[[ -e $source/config-host.h ]] || (cd "$source" && ./configure > configure.log)
library=$root/$(ci/slow/bindings.sh --build)
cc -std=gnu11 -D_GNU_SOURCE -O2 -fPIC -shared -Wall -Wextra -Werror -include "$source/config-host.h" -isystem "$source" -Ibindings/c/include \
    bindings/fio/pageout_engine.c -o "$work/pageout_engine.so" -L"$library" -lpageout -Wl,-rpath,"$library"
cd "$work"

size=64m budget=16m
job() { # NAME, and what else fio is to know: a job, whose output is shown where it fails
    local name=$1
    shift
    fio --name="$name" --filename=data --size=$size --verify=crc32c --verify_fatal=1 --randseed=7 --output="$name.log" "$@" ||
        { cat "$name.log"; echo "$name: rc $?" >&2; return 1; }
}
ran=0
for backend in threads uring; do
    ours=(--ioengine="external:$PWD/pageout_engine.so" --budget=$budget --backend=$backend --iodepth=16 --thread)
    for how in "write 64k 16" "randwrite 4k 500" "randwrite 512-20k 300" "randrw 4k 200" "write 1000 2000"; do
        read -r rw bs fsync <<< "$how"
        name=$backend-$rw-$bs
        with=(--rw="$rw" --bsrange="${bs/-*/}-${bs/*-/}" --fsync="$fsync")
        rm -f data
        job "$name" "${ours[@]}" "${with[@]}"
        grep -h '^pageout: ' "$name.log"
        # The same blocks without us. Direct writes have left none of them in the system's cache: they come from the device.
        job "$name-on-disk" --ioengine=psync --verify_only=1 "${with[@]}"
        ran=$((ran + 1))
    done
done

# A byte that is wrong is found: by us, too.
printf 'x' | dd of=data bs=1 seek=12345678 conv=notrunc status=none
for engine in "--ioengine=psync" "--ioengine=external:$PWD/pageout_engine.so"; do
    if job wrong "$engine" --thread --rw=write --bsrange=1000-1000 --fsync=2000 --verify_only=1 > wrong.txt 2>&1; then
        echo "$engine: a wrong byte was not found" >&2
        exit 1
    fi
done
# A full disk is its errno to fio: the process's limit of a file's size stands for the disk.
rm -f data
if (trap '' XFSZ && ulimit -f 1024 && timeout 120 fio --name=full --filename=data --size=2m --rw=write --bs=4k --end_fsync=1 --thread \
    --ioengine="external:$PWD/pageout_engine.so" --budget=$budget) > full.txt 2>&1 || ! grep -q 'File too large' full.txt; then
    cat full.txt
    echo "a full disk is not reported" >&2
    exit 1
fi
rm -f full.txt
rm -f data ./*.log ./*.state wrong.txt
echo "fio: $ran jobs verified through pageout, and from the disk"
