package fumehood.lib

test_databases_on_this_machine if {
	every name, values in {
		"DATABASE_URL": ["postgres://me:pw@127.0.0.1:5432/mine", "mysql://root@localhost/test", "postgresql+psycopg://localhost/x?sslmode=disable"],
		"REDIS_URL": ["redis://127.0.0.1:6379", "redis://localhost:6379/1"],
		"PGHOST": ["localhost"],
		"PGPORT": ["5433"],
		"PGDATABASE": ["mine"],
	} {
		every value in values { env_ok(name, value) }
	}
}

test_databases_elsewhere if {
	every name, values in {
		"DATABASE_URL": [
			"postgres://me@db.example.com/x", "postgres://me@127.0.0.1.example.com/x", "postgres://127.0.0.1@example.com/x",
			"postgres://127.0.0.1/x?host=example.com", "sqlite:////etc/passwd", "postgres:///x?host=/var/run", "http://localhost/",
		],
		"REDIS_URL": ["unix:///var/run/docker.sock", "redis://example.com"],
		"PGHOST": ["/var/run/postgresql", "example.com"],
		"PGUSER": ["a b"],
		"PGPASSFILE": ["/workspace/x"],
		"PGOPTIONS": ["-c x=y"],
		"PGSERVICEFILE": ["/workspace/x"],
	} {
		every value in values { not env_ok(name, value) }
	}
}
