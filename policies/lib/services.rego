package fumehood.lib

# Variables with the addresses of databases: on this machine only.
env_ok(name, value) if regex.match(service_values[name], value)

service_values := {
	"DATABASE_URL": local_url, "TEST_DATABASE_URL": local_url, "REDIS_URL": local_url,
	"PGHOST": `^(localhost|127\.0\.0\.1|::1)$`, "MYSQL_HOST": `^(localhost|127\.0\.0\.1|::1)$`,
	"PGPORT": `^\d{1,5}$`, "MYSQL_TCP_PORT": `^\d{1,5}$`,
	"PGUSER": `^\w{1,63}$`, "PGDATABASE": `^\w{1,63}$`,
}

local_url := concat("", [
	`^(postgres(ql)?|mysql2?|mariadb|redis)(\+\w+)?://([\w.%-]*(:[\w.%-]*)?@)?(localhost|127\.0\.0\.1`,
	`|\[::1\])(:\d{1,5})?(/[\w-]*)?(\?(sslmode=disable|charset=\w+|encoding=\w+))?$`,
])
