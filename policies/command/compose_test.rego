package fumehood.command

test_compose_checks_files if allowed("docker compose -f x/compose.yaml config -q") == {"compose.config"}

test_compose_needs_no_service if denied("docker compose up") == {"privilege.none"}

test_compose_writes_no_file if denied("docker compose config -o x") == {"privilege.none"}

test_compose_reads_the_workspace if denied("docker compose --file=/etc/x config") == {"code.outside"}

test_compose_grants if {
	granted("docker-compose config") == {"grant.compose"}
	granted("docker-compose ps") == set()
}
