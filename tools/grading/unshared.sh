#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds the same root as bubblewrap does, as far as mount(8) can: run by unshare(1), in new namespaces.
#
#   unshared.sh ROOT FOLDER "PLACE..." COMMAND...
#
# PLACEs are bound read-only, FOLDER as /work. COOKBOOK_DEVICES: of /dev, beside the usual ones.
set -e
root=$1 folder=$2; shift 2
mount -t tmpfs -o size=64m,mode=755 none "$root"
mkdir -p "$root/tmp" "$root/proc" "$root/dev" "$root/work" "$root/old"
for from in $1; do
  if [ -d "$from" ]; then mkdir -p "$root$from"; else mkdir -p "$root$(dirname "$from")"; : > "$root$from"; fi
  mount --rbind "$from" "$root$from"
  mount -o remount,bind,ro "$root$from" 2>/dev/null || true
done
shift
mount --bind "$folder" "$root/work"
mount -o remount,bind,ro "$root/work" 2>/dev/null || true
for device in null zero urandom $COOKBOOK_DEVICES; do
  if [ -d "/dev/$device" ]; then mkdir -p "$root/dev/$device"; else : > "$root/dev/$device"; fi
  mount --rbind "/dev/$device" "$root/dev/$device"
done
mount -t proc proc "$root/proc" 2>/dev/null || mount --rbind /proc "$root/proc"
cd "$root"
pivot_root . old
umount -l /old
rmdir /old
mount -t tmpfs -o size=64m none /tmp
mount -o remount,ro /
cd /tmp
exec "$@"
