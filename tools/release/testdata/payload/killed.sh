#!/bin/bash
# Units come and go while a command runs, and systemd reads its configuration again: the
# command's limits must stay. Then fumehood is killed, which must end its sandbox.
limits() { cd /sys/fs/cgroup/fumehood-*/sandbox && grep -H . cpu.max memory.max memory.swap.max pids.max; }
/opt/fumehood/fumehood run --plan /opt/sleep.yaml --workspace /opt/ws --audit /root/killed.jsonl >/dev/null &
# A sandbox has other limits while it waits and starts: the log tells when the command has started.
until grep -qs '"events"' /root/killed.jsonl; do sleep 0.2; done
limits
systemd-run --quiet --wait -p CPUQuota=50% -p MemoryMax=1G true
systemctl daemon-reload
systemd-run --quiet --wait true
echo units came and went
limits
kill -KILL $!
wait $!
# The kernel ends the sandbox with its parent, but not at once.
until [ -z "$(cat /sys/fs/cgroup/fumehood-*/sandbox/cgroup.procs)" ]; do sleep 0.2; done
ls -d /sys/fs/cgroup/fumehood-*
