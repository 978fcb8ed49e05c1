package fumehood.lib

env_names := {
	"CI", "TZ", "LANG", "LANGUAGE", "LC_ALL", "NODE_ENV", "FORCE_COLOR", "NO_COLOR", "TERM", "COLUMNS", "LINES", "DEBUG", "VERBOSE",
	"RUST_BACKTRACE", "RUST_LOG", "RUST_TEST_THREADS", "CARGO_TERM_COLOR", "CARGO_INCREMENTAL", "GOMAXPROCS", "GOMEMLIMIT", "GOGC", "GOOS",
	"GOARCH", "GO111MODULE", "GOTRACEBACK", "GODEBUG", "GOEXPERIMENT", "CGO_ENABLED", "GOWORK", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED",
	"PYTHONHASHSEED", "PYTHONIOENCODING", "PYTHONUTF8", "DJANGO_SETTINGS_MODULE", "FLASK_ENV", "RAILS_ENV", "RACK_ENV", "APP_ENV", "ENVIRONMENT", "JOBS", "SEED", "HYPOTHESIS_PROFILE",
	"PYTHONWARNINGS", "SOURCE_DATE_EPOCH", "TEST_ENV", "LOG_LEVEL", "MAVEN_BATCH", "DOTNET_CLI_TELEMETRY_OPTOUT",
}

path_names := {"PYTHONPATH", "NODE_PATH", "GOCACHE", "GOTMPDIR", "TMPDIR", "XDG_CACHE_HOME", "CARGO_TARGET_DIR", "COVERAGE_FILE"}

env_ok(name, _) if name in env_names

env_ok(name, value) if {
	name in path_names
	every part in split(value, ":") { inner_path(part) }
}

env_ok(name, value) if {
	name == "GOFLAGS"
	plain_goflags(value)
}


# inner_path holds for a relative path that stays in its folder, or one under /tmp
# or the workspace.
inner_path(path) if {
	not ".." in split(path, "/")
	regex.match(`^(/tmp(/|$)|/workspace(/|$)|[A-Za-z0-9_.][^:]*$|$)`, path)
}

plain_goflags(value) if {
	every word in split(value, " ") {
		regex.match(`^(-(mod=(mod|vendor|readonly)|count=\d+|race|v|short|trimpath|buildvcs=(true|false|auto)|tags=[\w,]+|p=\d+|timeout=\w+|parallel=\d+|failfast|cover|shuffle=\w+))?$`, word)
	}
}

steering := [
	{"pattern": `^(LD_|DYLD_|GLIBC_|GCONV_|MALLOC_)`, "why": "steers the program loader"},
	{"pattern": `^(PATH|IFS|BASH.*|ENV|SHELL.*|PS[0-9]|PROMPT_COMMAND|CDPATH|GLOBIGNORE|HOME|HISTFILE|POSIXLY_CORRECT)$`, "why": "steers the shell"},
	{"pattern": `^(GIT_|SSH_|PAGER$|.*EDITOR$|.*PAGER$|VISUAL$|BROWSER$|LESS)`, "why": "makes a tool run another program"},
	{"pattern": `^(NODE_|npm_|NPM_|YARN_|PNPM_)`, "why": "steers node or npm"},
	{"pattern": `^(PYTHON|PYTEST|PIP_|VIRTUAL_ENV|COVERAGE_PROCESS|DJANGO)`, "why": "steers Python"},
	{"pattern": `^(PERL|RUBY|GEM_|BUNDLE_|JAVA_|_JAVA|JDK_|MAVEN_|GRADLE_|CLASSPATH|PHP|LUA|DOTNET_|CORECLR_)`, "why": "steers an interpreter"},
	{"pattern": `^(GO|CGO|CC$|CXX$|CPP$|LD$|AR$|CFLAGS|LDFLAGS|MAKE|RUST|CARGO|CMAKE_)`, "why": "steers a build tool"},
	{"pattern": `(?i)(proxy|token|secret|password|credential)`, "why": "carries a credential or a way out"},
]

why_env(name) := concat("; ", [s.why | some s in steering; regex.match(s.pattern, name)]) if {
	some s in steering
	regex.match(s.pattern, name)
} else := "is not one that the policy lets in"

steers(name) if {
	some s in steering
	regex.match(s.pattern, name)
}
