# SPDX-License-Identifier: Apache-2.0
# Uses sqlite3 by several processes, and prints "ok NAME" or "not ok NAME" for what it did.
step() {
	local name=$1
	shift
	if "$@" >"$log" 2>&1; then echo "ok $name"; else echo "not ok $name"; tail -n 5 "$log" >&2; fi
}
log=$(mktemp)
dir=${1:-$(mktemp -d)}
is() { [ "$(sqlite3 -cmd '.timeout 60000' "$dir/db" "$2")" = "$1" ]; }
four() { for _ in 1 2 3 4; do (for _ in $(seq 10); do sqlite3 -cmd '.timeout 60000' "$dir/db" 'insert into t values (1)' || exit; done) & done; wait; }
for mode in delete wal truncate; do
	rm -f "$dir/db"*
	step "$mode: journal" is "$mode" "pragma journal_mode=$mode"
	step "$mode: table" is '' 'create table t (a)'
	step "$mode: four writers" four
	step "$mode: their rows" is 40 'select count(*) from t'
	step "$mode: 100,000 rows" is '' 'insert into t select value from generate_series(1, 100000)'
	step "$mode: integrity" is ok 'pragma integrity_check'
	step "$mode: mapped" is $'268435456\n100040' 'pragma mmap_size=268435456; select count(*) from t'
	step "$mode: rollback" is 100040 'begin; delete from t; rollback; select count(*) from t'
	step "$mode: vacuum" is '' vacuum
	step "$mode: backup" sqlite3 "$dir/db" ".backup $dir/copy"
	step "$mode: full text" is 1 "create virtual table f using fts5(x); insert into f values ('a b'); select count(*) from f where f match 'b'"
done
