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
	every i, word in input.command.argv { server_option(i, word) }
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
	some i, word in input.command.argv
	server_directory(i, word)
}

server_data if {
	input.command.program in server_mysql
	some word in input.command.argv
	startswith(word, "--datadir=")
}

server_mysql := {"mysqld", "mariadbd", "mariadb-install-db", "mysql_install_db"}

in_tmp := `^/tmp(/\w[\w.-]*)+$`

on_loopback := `^(localhost|127\.0\.0\.1|::1)$`

server_directory(i, word) if {
	input.command.argv[i - 1] in {"-D", "--pgdata"}
	regex.match(in_tmp, word)
}

server_directory(_, word) if regex.match(in_tmp, trim_prefix(trim_prefix(word, "-D"), "--pgdata="))

# PostgreSQL
server_option(i, word) if {
	input.command.program in {"initdb", "pg_ctl", "postgres"}
	server_directory(i, word)
}

server_option(_, word) if {
	input.command.program in {"initdb", "pg_ctl", "postgres"}
	word in {"-D", "--pgdata"}
}

server_option(_, word) if {
	input.command.program == "initdb"
	regex.match(initdb_option, word)
}

initdb_option := concat("", [
	`^(-[NkUAE]|-[UAE][\w-]+|--(no-sync|no-instructions|data-checksums|no-locale)|--(username|auth`,
	`|auth-host|auth-local|encoding|locale|lc-[a-z]+)(=[\w.-]+)?)$`,
])

server_option(i, word) if {
	input.command.program == "initdb"
	regex.match(`^(-[UAE]|--(username|auth|auth-host|auth-local|encoding|locale|lc-[a-z]+))$`, input.command.argv[i - 1])
	regex.match(`^\w[\w.-]*$`, word)
}

server_option(_, word) if {
	input.command.program == "pg_ctl"
	regex.match(`^(start|stop|restart|reload|status|-[wWsltmo]|--(wait|no-wait|silent|log|timeout|mode|options))$`, word)
}

server_option(i, word) if {
	input.command.program == "pg_ctl"
	option := input.command.argv[i - 1]
	pg_ctl_value(option, word)
}

server_option(_, word) if {
	input.command.program == "pg_ctl"
	parts := regex.find_all_string_submatch_n(`^(--(?:log|timeout|mode|options))=(.*)$`, word, 1)
	pg_ctl_value(parts[0][1], parts[0][2])
}

pg_ctl_value(option, value) if {
	option in {"-l", "--log"}
	regex.match(in_tmp, value)
}

pg_ctl_value(option, value) if {
	option in {"-t", "--timeout"}
	regex.match(`^\d+$`, value)
}

pg_ctl_value(option, value) if {
	option in {"-m", "--mode"}
	value in {"smart", "fast", "immediate"}
}

# pg_ctl passes these words to a shell.
pg_ctl_value(option, value) if {
	option in {"-o", "--options"}
	words := split(value, " ")
	every i, word in words { postgres_shell_word(word_before(words, i), word) }
}

word_before(words, i) := words[i - 1] if i > 0

else := ""

postgres_shell_word(_, "")

postgres_shell_word(before, "''") if before in {"-h", "-k"}

postgres_shell_word(before, word) if {
	word != ""
	postgres_option(before, word)
}

server_option(i, word) if {
	input.command.program == "postgres"
	postgres_option(word_before(input.command.argv, i), word)
}

postgres_option(_, word) if regex.match(`^(-[FipNBkhc]|-[pNB]\d+)$`, word)

postgres_option(before, word) if {
	before in {"-p", "-N", "-B"}
	regex.match(`^\d+$`, word)
}

postgres_option("-k", word) if regex.match(in_tmp, word)

postgres_option("-k", "/tmp")

postgres_option("-h", word) if regex.match(on_loopback, word)

postgres_option("-h", "")

postgres_option("-c", word) if postgres_setting(word)

postgres_option(_, word) if {
	startswith(word, "--")
	postgres_setting(substring(word, 2, -1))
}

postgres_setting(word) if {
	value := trim_prefix(word, "unix_socket_directories=")
	value != word
	regex.match(`^(/tmp(/\w[\w.-]*)*)?$`, value)
}

postgres_setting(word) if word in {"listen_addresses=", "listen_addresses=localhost", "listen_addresses=127.0.0.1", "listen_addresses=::1"}

# Any setting but those that name files, addresses or a command, with a plain word as its value.
# The libraries that settings name are the root file system's, or are not loaded.
postgres_setting(word) if {
	regex.match(`^[a-z_-]+=[\w.]+$`, word)
	not regex.match(`(file|directory|directories|path|addresses|command)=`, word)
}

# Redis
server_option(_, word) if {
	input.command.program == "redis-server"
	regex.match(redis_server_option, word)
}

redis_server_option := concat("", [
	`^(-v|--version|--(port|bind|save|appendonly|daemonize|loglevel|maxmemory|maxmemory-policy`,
	`|protected-mode|databases|requirepass|io-threads|timeout|tcp-backlog|maxclients|hz`,
	`|cluster-enabled|dir|logfile|pidfile|unixsocket|rename-command))$`,
])

server_option(i, word) if {
	input.command.program == "redis-server"
	redis_value(input.command.argv[i - 1], word)
}

server_option(i, "") if {
	input.command.program == "redis-server"
	input.command.argv[i - 2] == "--rename-command"
}

redis_value(option, value) if {
	regex.match(redis_config_option, option)
	regex.match(`^([\w][\w -]*)?$`, value)
}

redis_config_option := concat("", [
	`^--(port|save|appendonly|daemonize|loglevel|maxmemory|maxmemory-policy|protected-mode|databases`,
	`|requirepass|io-threads|timeout|tcp-backlog|maxclients|hz|cluster-enabled)$`,
])

redis_value("--bind", value) if regex.match(on_loopback, value)

redis_value(option, value) if {
	option in {"--logfile", "--pidfile", "--unixsocket"}
	regex.match(in_tmp, value)
}

redis_value("--dir", value) if regex.match(`^/tmp(/\w[\w.-]*)*$`, value)

redis_value("--rename-command", value) if regex.match(`^\w+$`, value)

# MySQL and MariaDB
server_option(_, word) if {
	input.command.program in server_mysql
	regex.match(mysql_init_option, word)
}

mysql_init_option := concat("", [
	`^--(no-defaults|(datadir|tmpdir|socket|pid-file|log-error)=/tmp(/\w[\w.-]*)+`,
	`|bind-address=(localhost|127\.0\.0\.1|::1))$`,
])

server_option(_, word) if {
	input.command.program in {"mysqld", "mariadbd"}
	regex.match(mysql_server_option, word)
}

mysql_server_option := concat("", [
	`^--(initialize|initialize-insecure|daemonize|console|skip-(networking|grant-tables|log-bin`,
	`|name-resolve|external-locking|ssl)|(port|user|server-id|max-connections|max-allowed-packet`,
	`|character-set-server|collation-server|sql-mode|mysqlx|performance-schema|lower-case-table-names`,
	`|default-time-zone|innodb-(buffer-pool-size|log-file-size|flush-log-at-trx-commit|flush-method`,
	`|use-native-aio|doublewrite|fast-shutdown)|sync-binlog|default-authentication-plugin`,
	`|default-storage-engine|event-scheduler|log-bin-trust-function-creators)=[\w.,:+-]+)$`,
])

server_option(_, word) if {
	input.command.program in {"mariadb-install-db", "mysql_install_db"}
	regex.match(mysql_install_option, word)
}

mysql_install_option := concat("", [
	`^--(skip-test-db|skip-name-resolve|force|user=\w+|auth-root-authentication-method=(normal`,
	`|socket)|auth-root-socket-user=\w+)$`,
])
