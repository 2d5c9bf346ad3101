#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds the same root as bubblewrap does, as far as mount(8) can: run by unshare(1), in new namespaces.
#
#   unshared.sh ROOT FOLDER "PLACE
#   ..." COMMAND...
#
# PLACEs are bound read-only, FOLDER as /box. COOKBOOK_DEVICES: of /dev, beside the usual ones.
# COOKBOOK_WRITABLE: 1 if /box may be written.
set -e
root=$1 folder=$2 places=$3; shift 3
# In namespaces of an ordinary user, what a mount has of these stays locked: so it is named again.
read_only() {
  mount -o remount,bind,ro "$1" 2>/dev/null || mount -o remount,bind,ro,nosuid,nodev "$1" 2>/dev/null ||
    mount -o remount,bind,ro,nosuid,nodev,noexec "$1"
}
mount --make-rprivate /
mount -t tmpfs -o size=64m,mode=755 none "$root"
mkdir -p "$root/tmp" "$root/proc" "$root/dev" "$root/box" "$root/old"
mount -t tmpfs -o size=256m none "$root/tmp"  # before the places: the book may be below /tmp
# One PLACE per line: a path may have a space.
IFS='
'
for from in $places; do
  if [ -d "$from" ]; then mkdir -p "$root$from"; else mkdir -p "$root$(dirname "$from")"; : > "$root$from"; fi
  mount --rbind "$from" "$root$from"
  read_only "$root$from"
done
unset IFS
mount --bind "$folder" "$root/box"
[ "$COOKBOOK_WRITABLE" = 1 ] || read_only "$root/box"
for device in null zero urandom $COOKBOOK_DEVICES; do
  if [ -d "/dev/$device" ]; then mkdir -p "$root/dev/$device"; else : > "$root/dev/$device"; fi
  mount --rbind "/dev/$device" "$root/dev/$device"
done
mount -t proc proc "$root/proc" 2>/dev/null || true  # forbidden in some containers
cd "$root"
pivot_root . old
umount -l /old
rmdir /old
mount -o remount,bind,ro /
cd /tmp
exec "$@"
