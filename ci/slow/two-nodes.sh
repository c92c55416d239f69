#!/usr/bin/env bash
# Tests the live page cache on a machine of two NUMA nodes, slow memory on the second: a QEMU guest with a Debian kernel. The placement of memory
# is real, its speed is not. Needs qemu-system-x86_64, apt-get, mke2fs and some minutes, because it works without hardware virtualisation (TCG).
# Not part of .ci/run.
#   ci/slow/two-nodes.sh [TEST BINARY]    default: the test `slow` of the live crate, built for this
set -euo pipefail
cd "$(dirname "$0")/../.."
for tool in qemu-system-x86_64 apt-get dpkg-deb mke2fs; do
    command -v "$tool" > /dev/null || { echo "LEFT OUT: there is no $tool (apt-get install qemu-system-x86 e2fsprogs)"; exit 0; }
done
target=$(realpath "${CARGO_TARGET_DIR:-target}")
work=$target/two-nodes
mkdir -p "$work"

binary=${1:-}
if [[ -z $binary ]]; then
    binary=$(cargo test --locked -p pageout --test slow --no-run --message-format=json | sed -n 's/.*"executable":"\([^"]*\/slow-[0-9a-f]*\)".*/\1/p')
fi

# A kernel that knows of nodes, with the modules of its disk, and one program that is a shell and all else.
cd "$work"
if [[ ! -e kernel/boot ]]; then
    package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/.*Depends: \(linux-image-.*\)/\1/p')
    apt-get download "$package" busybox-static
    dpkg-deb -x linux-image-*.deb kernel
    dpkg-deb -x busybox-static_*.deb busybox
fi
busybox=$PWD/busybox/bin/busybox

# The initial file system finds the disk.
rm -rf early root
mkdir -p early/{bin,dev,disk}
cp "$busybox" early/bin/
modules=(virtio/virtio_ring virtio/virtio virtio/virtio_pci_legacy_dev virtio/virtio_pci_modern_dev virtio/virtio_pci block/virtio_blk)
for module in "${modules[@]}"; do
    cp kernel/lib/modules/*/kernel/drivers/"$module.ko" early/
done
cat > early/init << 'END'
#!/bin/busybox sh
for module in virtio_ring virtio virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk; do
    /bin/busybox insmod "/$module.ko" || echo "NO $module"
done
/bin/busybox mount -t devtmpfs dev /dev
/bin/busybox mount -t ext4 /dev/vda /disk
/bin/busybox mount -t devtmpfs dev /disk/dev
/bin/busybox mount -t proc proc /disk/proc
/bin/busybox mount -t sysfs sys /disk/sys
exec /bin/busybox switch_root /disk /init
END
chmod +x early/init
(cd early && find . | "$busybox" cpio -o -H newc 2> /dev/null) > early.cpio

# The disk: the test, the libraries that it is linked with, and the folder in which it makes its files.
mkdir -p root/{bin,dev,proc,sys} "root$target/tmp"
cp "$busybox" root/bin/
cp "$binary" root/test
ldd "$binary" | grep -o '/[^ ]*' | while read -r library; do
    install -D "$library" "root$library"
done
cat > root/init << 'END'
#!/bin/busybox sh
echo "nodes with memory: $(/bin/busybox cat /sys/devices/system/node/has_memory)"
/test --include-ignored --nocapture --test-threads=1 node
echo "THE GUEST'S TESTS END WITH $?"
/bin/busybox poweroff -f
END
chmod +x root/init
rm -f disk.img
mke2fs -q -t ext4 -d root disk.img 256M

timeout "${TIMEOUT:-900}" qemu-system-x86_64 -machine q35 -cpu max -smp 2 -m 1G -nographic -no-reboot \
    -object memory-backend-ram,id=fast,size=512M -object memory-backend-ram,id=slow,size=512M \
    -numa node,nodeid=0,memdev=fast,cpus=0-1 -numa node,nodeid=1,memdev=slow \
    -kernel kernel/boot/vmlinuz-* -initrd early.cpio -append "console=ttyS0 panic=-1 quiet" \
    -drive file=disk.img,format=raw,if=virtio < /dev/null | tr -d '\r' | tee guest.log
grep -q "nodes with memory: 0-1$" guest.log || { echo "the guest has no two nodes"; exit 1; }
grep -q "^THE GUEST'S TESTS END WITH 0$" guest.log
