package fumehood.command

# by_service is the input for a command of a service; origin is the proposal's.
by_service(text, origin) := object.union(fumehood.parse_with(text, {}), {"proposal": {"origin": origin, "phase": "setup"}})

service_texts := {
	"/usr/lib/postgresql/15/bin/postgres --single -D /tmp/fumehood-postgres/data template1",
	concat(" ", [
		"mysqld --no-defaults --datadir=/tmp/fumehood-mysql/data --bind-address=127.0.0.1 --port=3306",
		"--socket=/tmp/fumehood-mysql/socket --pid-file=/tmp/fumehood-mysql/pid --init-file=/tmp/fumehood-mysql/init.sql",
	]),
}

test_services_create_their_users if {
	every text in service_texts {
		count(deny) == 0 with input as by_service(text, "service")
		{"rule": "server.service"} in allow with input as by_service(text, "service")
	}
}

test_no_other_origin_does if {
	every text in service_texts {
		every origin in {"proposer", "setup"} {
			count(allow) == 0 with input as by_service(text, origin)
		}
	}
}

test_a_service_needs_the_exact_words if {
	every text in {
		"postgres --single -D /tmp/x template1", "postgres --single -D /tmp/fumehood-postgres/data -c archive_command=id template1",
		"/workspace/postgres --single -D /tmp/fumehood-postgres/data template1", "mysqld --init-file=/workspace/x.sql --datadir=/tmp/fumehood-mysql/data",
		"redis-server --loadmodule /tmp/x.so", "psql -c x",
	} {
		not {"rule": "server.service"} in allow with input as by_service(text, "service")
		not {"rule": "server.start"} in allow with input as by_service(text, "service")
	}
}
