# Database servers that a command starts for itself, or that fumehood starts as services:
# on loopback, with plain settings, and with their data in /tmp. Data in the workspace can
# have a configuration of the pull request, which can name libraries and programs.
package fumehood.command

# METADATA
# title: Database servers may run on localhost, with their data in /tmp
# custom:
#   rule: server.start
#   match: [
#     "redis-server --port 0 --unixsocket /tmp/r/sock --daemonize yes", "redis-server --port 7001 --bind 127.0.0.1 --save '' --logfile /tmp/r.log",
#     "/usr/lib/postgresql/15/bin/initdb -D /tmp/x", "initdb --pgdata=/tmp/pg --username=postgres --auth=trust --no-sync", "pg_ctl -D /tmp/x start",
#     "/usr/lib/postgresql/16/bin/pg_ctl -D /tmp/x -l /tmp/x.log -w -o '-p 5433 -k /tmp -c fsync=off' start", "pg_ctl stop -D /tmp/x -m fast",
#     "postgres -D /tmp/x -p 5433 -k /tmp/s -c fsync=off", "mysqld --no-defaults --initialize-insecure --datadir=/tmp/my",
#     "mysqld --datadir=/tmp/my --socket=/tmp/my.sock --skip-networking",
#     "mariadbd --no-defaults --datadir=/tmp/my --bind-address=127.0.0.1 --port=3307 --innodb-buffer-pool-size=64M",
#     "mariadb-install-db --no-defaults --datadir=/tmp/my --auth-root-authentication-method=normal"
#   ]
#   not_match: [
#     "redis-server --loadmodule ./x.so", "redis-server /etc/redis.conf", "redis-server ./redis.conf", "redis-server -",
#     "redis-server --bind 0.0.0.0", "redis-server --dir .git/hooks --dbfilename pre-commit", "redis-server --logfile /etc/x",
#     "redis-server --replicaof x.example 6379", "redis-server --port \"$X\"", "redis-server --rename-command MODULE load", "initdb -D ./data",
#     "initdb -D /tmp/../etc/x", "initdb -D /tmp/x --pwfile=/etc/shadow", "initdb -D \"$D\"", "initdb -D /tmp/x -L ./share", "initdb",
#     "pg_ctl -D ./testdata/pg start", "pg_ctl -D /tmp/x -p ./postgres start", "pg_ctl -D /tmp/x -o '-c archive_command=id' start",
#     "pg_ctl -D /tmp/x -o '-p 1; id' start", "pg_ctl -D /tmp/x -o '-c config_file=/workspace/x' start", "pg_ctl -D /tmp/x -o '$(id)' start",
#     "pg_ctl start", "postgres -D /tmp/x -c shared_preload_libraries=/workspace/x", "postgres -D /tmp/x --archive_command=id",
#     "postgres -D /tmp/x --config-file=./x.conf", "postgres --single -D /tmp/x postgres", "postgres -D /tmp/x -c listen_addresses=*",
#     "postgres -D /tmp/x -h 0.0.0.0", "postgres --boot", "mysqld --defaults-file=./my.cnf --datadir=/tmp/x",
#     "mysqld --datadir=/tmp/x --plugin-load=x=x.so", "mysqld --datadir=/tmp/x --plugin-dir=/workspace", "mysqld --datadir=/tmp/x --init-file=x.sql",
#     "mysqld --datadir=./data", "mysqld --datadir=/tmp/x --bind-address=0.0.0.0", "mysqld --datadir=/tmp/x --innodb-data-home-dir=/workspace",
#     "mysqld --datadir=/tmp/x --general-log-file=/workspace/x", "mysqld", "mysqld_safe --datadir=/tmp/x",
#     "mariadb-install-db --datadir=/tmp/x --basedir=/workspace", "./redis-server --loadmodule x"
#   ]
allow contains {"rule": "server.start"} if {
	input.command.place in found
	input.command.static
	server_data
	every w in input.command.loopback { loopback_word(w) }
}

# METADATA
# title: Services may create their users before they listen
# description: Only for commands that start a service that the maintainer configured. The SQL is in their text.
# custom:
#   rule: server.service
#   not_match: [
#     "postgres --single -D /tmp/fumehood-postgres/data template1",
#     "mysqld --no-defaults --datadir=/tmp/fumehood-mysql/data --bind-address=127.0.0.1 --port=3306 --init-file=/tmp/fumehood-mysql/init.sql"
#   ]
allow contains {"rule": "server.service"} if {
	input.proposal.origin == "service"
	input.command.place in found
	input.command.static
	service_words[input.command.program]
}

service_words["postgres"] if input.command.argv == ["--single", "-D", "/tmp/fumehood-postgres/data", "template1"]

service_words["mysqld"] if input.command.argv == [
	"--no-defaults", "--datadir=/tmp/fumehood-mysql/data", "--bind-address=127.0.0.1", "--port=3306", "--socket=/tmp/fumehood-mysql/socket",
	"--pid-file=/tmp/fumehood-mysql/pid", "--init-file=/tmp/fumehood-mysql/init.sql",
]

# server_data is true if the command names its data's directory, for programs that have a
# default or take it from a variable.
server_data if input.command.program in {"redis-server"}

server_data if {
	input.command.program in {"initdb", "pg_ctl", "postgres"}
	some w in input.command.loopback
	data_directory(w)
}

server_data if {
	input.command.program in server_mysql
	some w in input.command.loopback
	w.option == "--datadir"
}

data_directory(w) if w.option == "--pgdata"

data_directory(w) if {
	w.kind == "operand"
	regex.match(in_tmp, w.value)
}

server_mysql := {"mysqld", "mariadbd", "mariadb-install-db", "mysql_install_db"}

in_tmp := `^/tmp(/\w[\w.-]*)+$`

loopback_operand(value) if {
	input.command.program in {"initdb", "pg_ctl", "postgres"}
	regex.match(in_tmp, value)
}

loopback_operand(value) if {
	input.command.program == "pg_ctl"
	value in {"start", "stop", "restart", "reload", "status"}
}

loopback_fits("tmp", value) if regex.match(in_tmp, value)

loopback_fits("tmpdir", value) if regex.match(`^/tmp(/\w[\w.-]*)*$`, value)

loopback_fits("socket", value) if regex.match(`^(/tmp(/\w[\w.-]*)*)?$`, value)

loopback_fits("loopback", value) if regex.match(`^(localhost|127\.0\.0\.1|::1)$`, value)

loopback_fits("listen", value) if regex.match(`^(localhost|127\.0\.0\.1|::1)?$`, value)

loopback_fits("name", value) if regex.match(`^\w+$`, value)

loopback_fits("word", value) if regex.match(`^\w[\w.-]*$`, value)

loopback_fits("words", value) if regex.match(`^(\w[\w -]*)?$`, value)

loopback_fits("list", value) if regex.match(`^[\w.,:+-]+$`, value)

loopback_fits("empty", "")

# A setting of postgres is -c name=value or --name=value.
loopback_word(w) if {
	w.kind == "setting"
	not w.attached
	postgres_setting(w.value)
}

loopback_word(w) if {
	w.kind == "setting"
	w.attached
	postgres_setting(sprintf("%s=%s", [trim_prefix(w.option, "--"), w.value]))
}

postgres_setting(word) if {
	startswith(word, "unix_socket_directories=")
	loopback_fits("socket", trim_prefix(word, "unix_socket_directories="))
}

postgres_setting(word) if {
	startswith(word, "listen_addresses=")
	loopback_fits("listen", trim_prefix(word, "listen_addresses="))
}

# Any setting but those that name files, addresses or a command, with a plain word as its value.
# The libraries that settings name are the root file system's, or are not loaded.
postgres_setting(word) if {
	regex.match(`^[a-z_-]+=[\w.]+$`, word)
	not regex.match(`(file|directory|directories|path|addresses|command)=`, word)
}
