# SPDX-License-Identifier: Apache-2.0
# Makes a PostgreSQL, uses it, and prints "ok NAME" or "not ok NAME" for what it did.
step() {
	local name=$1
	shift
	if "$@" >>"$dir/log" 2>&1; then echo "ok $name"; else echo "not ok $name"; tail -qn 5 "$dir/log" "$dir/server" >&2; fi
}
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
dir=$(mktemp -d)
sql() { "$bin/psql" -h "$dir" -d postgres -U postgres -v ON_ERROR_STOP=1 -qAtc "$1"; }
is() { [ "$(sql "$2")" = "$1" ]; }
start() { "$bin/pg_ctl" -w -D "$dir/data" -l "$dir/server" -o "-c listen_addresses=127.0.0.1 -c port=54329 -k $dir -c max_connections=20" start; }
export PGPORT=54329
step initdb "$bin/initdb" -U postgres -A trust -D "$dir/data"
step start start
step 'a table of 200,000 rows' sql "create table t as select i, md5(i::text) as s, i%100 as g from generate_series(1, 200000) i"
step 'an index' sql 'create index on t (s)'
step 'a query of the index' is 1 "select count(*) from t where s = md5('777')"
step 'an aggregate' is 100 'select count(distinct g) from t'
step 'a sort on disk' is 1 "set work_mem='64kB'; select count(*) from (select s from t order by s, i desc offset 199999) x"
step 'workers in parallel' is 200000 "set max_parallel_workers_per_gather=2; set parallel_setup_cost=0; set min_parallel_table_scan_size=0; select count(*) from t"
step 'a transaction rolled back' sql 'begin; delete from t; rollback'
step 'rows after it' is 200000 'select count(*) from t'
step 'a constraint' bash -c "! $bin/psql -h $dir -d postgres -U postgres -v ON_ERROR_STOP=1 -c 'create table u (a int primary key); insert into u values (1), (1)'"
step vacuum sql 'vacuum full analyze t'
step 'notifications' sql "listen a; notify a, 'b'"
step 'copy out' sql "copy (select i from t limit 10) to '$dir/copied'"
step 'copied rows' test "$(wc -l <"$dir/copied")" = 10
step 'over TCP' env PGHOST=127.0.0.1 "$bin/psql" -d postgres -U postgres -c 'select 1'
step 'a dump' "$bin/pg_dump" -h "$dir" -U postgres -t t -f "$dir/dump.sql" postgres
step 'a second database' "$bin/createdb" -h "$dir" -U postgres other
step 'the dump read' "$bin/psql" -q -h "$dir" -U postgres -d other -f "$dir/dump.sql"
step pgbench "$bin/pgbench" -h "$dir" -U postgres -i -s 1 -q postgres
step 'pgbench with four clients' "$bin/pgbench" -h "$dir" -U postgres -c 4 -j 2 -t 100 postgres
step 'a crash' "$bin/pg_ctl" -w -D "$dir/data" -m immediate stop
step 'a start after it' start
step 'rows after the crash' is 200000 'select count(*) from t'
step stop "$bin/pg_ctl" -w -D "$dir/data" -m fast stop
