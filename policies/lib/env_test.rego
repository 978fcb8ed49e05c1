package fumehood.lib

test_env_ok_by_value if {
	env_ok("PYTHONPATH", "src")
	not env_ok("PYTHONPATH", "/tmp/x")
	env_ok("GOFLAGS", "-mod=mod -race")
	not env_ok("GOFLAGS", "-toolexec=./x")
}

test_env_reason if {
	steers("LD_PRELOAD")
	why_env("LD_PRELOAD") == "controls the program loader or the C library"
	why_env("MY_LOADER") == "controls a tool, by its name"
	not steers("UPDATE_GOLDEN")
}

test_env_elsewhere if {
	elsewhere("/etc/x")
	elsewhere("https://x.example/")
	not elsewhere("/tmp/x")
	not elsewhere("http://localhost:8080/")
}

test_made_path if {
	made_path("src")
	made_path("/tmp/base/src")
	every part in ["/tmp", "/tmp/", "/tmp/.", "/tmp/../etc", "/tmp/a/../../etc", "/tmp/.git", "/tmp//x", "/etc", "/tmpx", "~/x"] {
		not made_path(part)
	}
}
