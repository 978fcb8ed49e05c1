# SPDX-License-Identifier: Apache-2.0
# Starts a Redis, uses it, and prints "ok NAME" or "not ok NAME" for what it did.
step() {
	local name=$1
	shift
	if "$@" >>"$dir/log" 2>&1; then echo "ok $name"; else echo "not ok $name"; tail -n 5 "$dir/log" >&2; fi
}
dir=$(mktemp -d)
ask() { redis-cli -s "$dir/socket" "$@"; }
is() { local want=$1; shift; [ "$(ask "$@")" = "$want" ]; }
start() {
	redis-server --port 63799 --bind 127.0.0.1 --unixsocket "$dir/socket" --dir "$dir" --appendonly yes --daemonize yes --logfile "$dir/server" --save ''
	for _ in $(seq 200); do ask ping && return; sleep 0.1; done
	return 1
}
step start start
step set is OK set a b
step get is b get a
step 'a list' is 3 rpush l 1 2 3
step 'a script' is 6 eval 'return redis.call("incrby", "n", 6)' 0
step 'over TCP' redis-cli -h 127.0.0.1 -p 63799 ping
step 'expiry' bash -c "redis-cli -s $dir/socket set e 1 px 50 && sleep 0.3 && [ -z \"\$(redis-cli -s $dir/socket get e)\" ]"
step 'a snapshot by a child' is OK save
step 'a background snapshot' bash -c "redis-cli -s $dir/socket bgsave && for _ in \$(seq 100); do redis-cli -s $dir/socket info persistence | grep -q rdb_bgsave_in_progress:0 && exit; sleep 0.1; done; exit 1"
step 'a rewrite of the log' bash -c "redis-cli -s $dir/socket bgrewriteaof && for _ in \$(seq 100); do redis-cli -s $dir/socket info persistence | grep -q aof_rewrite_in_progress:0 && exit; sleep 0.1; done; exit 1"
step publish is 0 publish channel message
step 'a benchmark' redis-benchmark -s "$dir/socket" -n 5000 -c 20 -q -t set,get
step stop bash -c "redis-cli -s $dir/socket shutdown nosave || true"
step 'a start with the log' start
step 'the value after it' is b get a
step 'the last stop' bash -c "redis-cli -s $dir/socket shutdown nosave || true"
