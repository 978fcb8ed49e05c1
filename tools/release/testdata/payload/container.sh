#!/bin/bash
# Starts doctor in a runc container on this host's files: container.sh KIND. See containers
# in guest_checks_e2e_test.go. It needs a mount namespace of its own, or the end of the
# container's mounts is also the end of the host's.
set -e
bundle=$(mktemp -d)
cd "$bundle"
mkdir root
mount --rbind / root
cp "/opt/containers/$1.json" config.json
code=0
runc run "guest-$1" </dev/null || code=$?
umount -l root
cd /
rm -r --one-file-system "$bundle"
exit $code
