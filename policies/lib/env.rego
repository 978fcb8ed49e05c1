package fumehood.lib

env_names := {
	"CI", "TZ", "LANG", "LANGUAGE", "LC_ALL", "NODE_ENV", "FORCE_COLOR", "NO_COLOR", "TERM", "COLUMNS", "LINES", "DEBUG", "VERBOSE",
	"RUST_BACKTRACE", "RUST_LOG", "RUST_TEST_THREADS", "CARGO_TERM_COLOR", "CARGO_INCREMENTAL", "GOMAXPROCS", "GOMEMLIMIT", "GOGC", "GOOS",
	"GOARCH", "GO111MODULE", "GOTRACEBACK", "GODEBUG", "GOEXPERIMENT", "CGO_ENABLED", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED",
	"PYTHONHASHSEED", "PYTHONIOENCODING", "PYTHONUTF8", "DJANGO_SETTINGS_MODULE", "FLASK_ENV", "RAILS_ENV", "RACK_ENV", "APP_ENV", "ENVIRONMENT", "JOBS",
	"SEED", "HYPOTHESIS_PROFILE",
	"SOURCE_DATE_EPOCH", "TEST_ENV", "LOG_LEVEL", "MAVEN_BATCH", "DOTNET_CLI_TELEMETRY_OPTOUT",
}

# any_value are names for which every value is harmless, even one that is known only at
# run time.
any_value := {
	"CI", "TZ", "NODE_ENV", "FORCE_COLOR", "NO_COLOR", "COLUMNS", "LINES", "DEBUG", "VERBOSE", "RUST_BACKTRACE", "RUST_LOG", "RUST_TEST_THREADS",
	"GOMAXPROCS", "GOMEMLIMIT", "GOGC", "GOOS", "GOARCH", "GOARM", "GOAMD64", "GO111MODULE", "CGO_ENABLED", "PYTHONDONTWRITEBYTECODE",
	"PYTHONUNBUFFERED", "PYTHONHASHSEED",
	"SOURCE_DATE_EPOCH", "JOBS", "SEED", "LOG_LEVEL", "LC_ALL", "LANG", "LC_CTYPE", "LC_COLLATE",
}

# path_names may name directories in the workspace or /tmp. code_paths, from which code is
# loaded, may name only directories in the workspace, except for those of made_paths.
path_names := {
	"GOCACHE", "GOTMPDIR", "TMPDIR", "TMP", "TEMP", "XDG_CACHE_HOME", "CARGO_TARGET_DIR", "COVERAGE_FILE", "MYPY_CACHE_DIR", "RUFF_CACHE_DIR",
	"NPM_CONFIG_CACHE", "npm_config_cache", "PIP_CACHE_DIR", "UV_CACHE_DIR", "GOLANGCI_LINT_CACHE", "STATICCHECK_CACHE", "PYTHONPYCACHEPREFIX",
	"CCACHE_DIR", "PRE_COMMIT_HOME", "LLVM_PROFILE_FILE", "GOCOVERDIR", "YARN_CACHE_FOLDER", "HELM_CACHE_HOME", "COMPOSER_CACHE_DIR",
}

code_paths := {
	"PYTHONPATH", "NODE_PATH", "MYPYPATH", "PERL5LIB", "RUBYLIB", "LUA_PATH", "CLASSPATH", "GOWORK", "VIRTUAL_ENV", "BUNDLE_PATH", "PKG_CONFIG_PATH",
	"CMAKE_PREFIX_PATH",
}

env_ok(name, _) if name in env_names

env_ok(name, value) if {
	name in path_names
	not contains(value, ":")
	inner_path(value)
}

env_ok(name, value) if {
	name in code_paths
	every part in split(value, ":") { code_path(part) }
}

# made_paths may also name directories below /tmp, where it is the command's own variable.
made_paths := code_paths - {"GOWORK", "LUA_PATH", "BUNDLE_PATH", "VIRTUAL_ENV"}

# made_path is true for a list's part that is in the workspace, or that the run made below /tmp.
made_path(part) if code_path(part)

made_path(part) if regex.match(`^/tmp(/[\w@+-][\w.@+-]*)+/?$`, part)

# judged_values are the names for which some values are allowed. No shell reads them.
judged_values := ((path_names | code_paths) | object.keys(plain_flags)) | {"GOFLAGS"}

env_ok("GOWORK", "off")

env_ok("HOME", "/tmp")

code_path(path) if {
	not ".." in split(path, "/")
	regex.match(`^(/workspace(/[^:]*)?|[A-Za-z0-9_.][^:/]*(/[^:]*)?|)$`, path)
}

env_ok("PATH", value) if {
	every part in split(value, ":") { part in {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/go/bin"} }
}

# Flags of compilers and interpreters that only warn, optimize or instrument.
env_ok(name, value) if regex.match(plain_flags[name], value)

plain_flags := {
	"RUSTFLAGS": rust_flags, "RUSTDOCFLAGS": rust_flags, "CFLAGS": c_flags, "CXXFLAGS": c_flags, "CPPFLAGS": c_flags,
	"LDFLAGS": linker_flags, "LDLIBS": linker_flags, "LIBS": linker_flags, "CGO_CFLAGS": c_flags, "AWK": `^[gmn]?awk$`,
	"NODE_OPTIONS": concat("", [
		`^\s*((--max[-_]old[-_]space[-_]size=\d+|--max[-_]semi[-_]space[-_]size=\d+`,
		`|--experimental-vm-modules|--no-warnings|--trace-warnings|--trace-deprecation`,
		`|--throw-deprecation|--unhandled-rejections=[a-z-]+|--enable-source-maps|--stack-trace-limit=\d+`,
		`|--experimental-strip-types|--no-deprecation|--trace-uncaught|--pending-deprecation`,
		`|--openssl-legacy-provider|--expose-gc)(\s+|$))*$`,
	]),
	"GORACE": `^((halt_on_error|history_size|strip_path_prefix|atexit_sleep_ms|exitcode)=\w*\s*)*$`,
	"MAKEFLAGS": `^(-j\s?\d*|-k|-s|--no-print-directory|\s)*$`,
	"CARGO_BUILD_JOBS": `^\d+$`, "CARGO_NET_OFFLINE": `^(true|false|1)$`, "CARGO_PROFILE_RELEASE_DEBUG": `^\w+$`, "GOPROXY": `^off$`,
	"GONOSUMDB": `^[\w.*/,-]*$`, "GONOSUMCHECK": `^1$`, "GOSUMDB": `^off$`, "GOTOOLCHAIN": `^local$`,
	"PYTHONFAULTHANDLER": `^1$`, "PYTHONDEVMODE": `^1$`, "PYTHONTRACEMALLOC": `^\d+$`, "PYTHONOPTIMIZE": `^\d*$`, "PYTHONNOUSERSITE": `^1$`,
	"PYTHONSAFEPATH": `^1$`, "PYTHONASYNCIODEBUG": `^1$`, "PYTHONWARNINGS": `^((error|ignore|default|always|once|module)(::([A-Z]\w*)?Warning)?(,|$))*$`,
	"PYTHONMALLOC": `^(debug|malloc|malloc_debug)$`,
	"PYTEST_ADDOPTS": `^(-q|-v+|-x|-s|-ra|-n\s?\w+|--tb=\w+|-p no:\w+|--color=\w+|--maxfail=\d+|--durations=\d+|\s)*$`,
	"PYTEST_DISABLE_PLUGIN_AUTOLOAD": `^1$`, "PIP_NO_INDEX": `^1$`, "PIP_DISABLE_PIP_VERSION_CHECK": `^1$`, "PIP_NO_INPUT": `^1$`,
	"GIT_PAGER": `^cat$`, "PAGER": `^cat$`, "GIT_TERMINAL_PROMPT": `^0$`, "GIT_OPTIONAL_LOCKS": `^0$`, "GIT_CONFIG_NOSYSTEM": `^1$`,
	"GIT_CONFIG_GLOBAL": `^/dev/null$`, "GIT_CONFIG_SYSTEM": `^/dev/null$`, "GIT_AUTHOR_DATE": `^[\w:+. -]*$`, "GIT_COMMITTER_DATE": `^[\w:+. -]*$`,
	"GIT_AUTHOR_NAME": person, "GIT_AUTHOR_EMAIL": person, "GIT_COMMITTER_NAME": person, "GIT_COMMITTER_EMAIL": person,
	"EDITOR": `^(true|:)$`, "VISUAL": `^(true|:)$`, "SHELL": `^/bin/(ba|da)?sh$`,
	"GIT_LITERAL_PATHSPECS": `^1$`, "GIT_TRACE": `^([012]|true|false)$`, "GIT_TRACE_PERFORMANCE": `^[012]$`, "GIT_TRACE_SETUP": `^[012]$`,
	"CC": compiler(`(ccache +)?(gcc|clang|cc)`), "CXX": compiler(`(ccache +)?(g\+\+|clang\+\+|c\+\+)`),
	"ASAN_OPTIONS": sanitizer, "UBSAN_OPTIONS": sanitizer, "TSAN_OPTIONS": sanitizer, "LSAN_OPTIONS": sanitizer, "MSAN_OPTIONS": sanitizer,
	"CHROME_BIN": browser_path, "CHROME_PATH": browser_path, "PUPPETEER_EXECUTABLE_PATH": browser_path, "PUPPETEER_SKIP_DOWNLOAD": `^(1|true)$`,
	"PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD": `^1$`,
	"MALLOC_ARENA_MAX": `^\d+$`, "MALLOC_CHECK_": `^\d$`, "MALLOC_PERTURB_": `^\d+$`,
	"CMAKE_BUILD_TYPE": `^\w+$`, "CTEST_OUTPUT_ON_FAILURE": `^\w+$`, "CMAKE_BUILD_PARALLEL_LEVEL": `^\d+$`, "CTEST_PARALLEL_LEVEL": `^\d+$`,
	"LINT": `^([01]|true|false)$`, "RUSTC_BOOTSTRAP": `^[01]$`, "DOTNET_NOLOGO": `^\w+$`,
	"MAVEN_OPTS": java_flags, "JAVA_OPTS": java_flags, "GRADLE_OPTS": java_flags, "MAVEN_ARGS": `^(-B|-q|-o|--no-transfer-progress|-ntp|\s)*$`,
	"JAVA_TOOL_OPTIONS": java_flags, "RUBYOPT": `^(-W[0-2:a-z_-]*|-w|\s)*$`, "PERL_HASH_SEED": `^\d+$`, "BUNDLE_FROZEN": `^\w+$`,
	"BUNDLE_DEPLOYMENT": `^\w+$`, "BUNDLE_WITHOUT": `^[\w: ]*$`, "BUNDLE_WITH": `^[\w: ]*$`,
	"RAILS_ENV": `^\w+$`, "DOTNET_SKIP_FIRST_TIME_EXPERIENCE": `^\w+$`,
	"NPM_CONFIG_LOGLEVEL": `^\w+$`, "npm_config_loglevel": `^\w+$`, "NPM_CONFIG_OFFLINE": `^true$`, "npm_config_offline": `^true$`,
	"NPM_CONFIG_FUND": `^\w+$`, "NPM_CONFIG_AUDIT": `^\w+$`, "TS_NODE_TRANSPILE_ONLY": `^(true|1)$`, "TS_NODE_FILES": `^(true|1)$`,
	"BABEL_ENV": `^\w+$`, "MIX_ENV": `^\w+$`, "ESLINT_USE_FLAT_CONFIG": `^(true|false)$`, "TF_IN_AUTOMATION": `^\w+$`,
	"TF_INPUT": `^\w+$`, "CHECKPOINT_DISABLE": `^\w*$`, "RUSTC_WRAPPER": `^$`, "PYTEST_CURRENT_TEST": `^[\w./:\[\] ()-]*$`,
	"MPLBACKEND": `^([aA]gg|pdf|svg|ps|template)$`, "YARN_ENABLE_IMMUTABLE_INSTALLS": `^(true|false|0|1)$`,
	"AWS_REGION": region, "AWS_DEFAULT_REGION": region, "NO_PROXY": `^[\w.,:*-]*$`, "no_proxy": `^[\w.,:*-]*$`,
	"HTTP_PROXY": `^$`, "HTTPS_PROXY": `^$`, "http_proxy": `^$`, "https_proxy": `^$`, "DOCKER_HOST": `^$`, "KUBECONFIG": `^/dev/null$`,
	"FLASK_APP": `^\w[\w-]*(/\w[\w-]*)*(\.py)?(:\w+(\(\))?)?$`, "TS_NODE_PROJECT": `^(\./)?\w[\w.-]*(/\w[\w.-]*)*\.json$`,
	"BUNDLE_GEMFILE": `^(\./)?\w[\w.-]*(/\w[\w.-]*)*$`, "JAVA_HOME": `^/usr/lib/jvm/\w[\w.-]*$`, "GOBIN": `^/tmp(/\w[\w-]*)+$`,
	"CGO_LDFLAGS": linker_flags, "XDEBUG_MODE": `^(off|coverage|develop)$`, "UV_PYTHON": `^\d+\.\d+$`,
	"CYPRESS_INSTALL_BINARY": `^0$`, "GREP_COLORS": `^[\w=;:]*$`,
	"NODE_NO_WARNINGS": `^[01]$`, "NODE_DISABLE_COLORS": `^[01]$`, "NODE_PENDING_DEPRECATION": `^[01]$`, "NODE_DEBUG": `^[\w,*-]*$`,
	"PYTHONBREAKPOINT": `^0$`, "COVERAGE_CORE": `^(ctrace|pytrace|sysmon)$`, "PRE_COMMIT_COLOR": `^\w+$`, "GOTESTSUM_FORMAT": `^[\w-]+$`,
	"DOTNET_ENVIRONMENT": `^\w+$`, "BROWSER": `^none$`, "SETUPTOOLS_SCM_PRETEND_VERSION": `^[\w.+-]+$`,
	"MIRIFLAGS": `^(-Zmiri-(disable|ignore|seed|strict|symbolic|many|tree)[a-z-]*(=[\w.]+)?(\s+|$))*$`,
}

person := `^([\w@][\w@. +-]*)?$`

region := `^[a-z]{2}(-[a-z]+)+-\d$`

browser_path := `^/usr/bin/(chromium(-browser|-headless-shell)?|google-chrome(-stable)?)$`

rust_flags := concat("", [
	`^\s*((-D|-W|-A|-F|--cap-lints|--cfg|--deny|--warn)[ =]?[\w:=",()-]+(\s+|$)|-C\s?(target-cpu`,
	`|opt-level|debuginfo|debug-assertions|overflow-checks|instrument-coverage|target-feature`,
	`|codegen-units|panic|lto|force-frame-pointers|strip)(=[\w+,.-]+)?(\s+|$)|-Z\s?sanitizer=\w+(\s+`,
	`|$)|-g(\s+|$)|-O(\s+|$))*$`,
])

c_flags := concat("", [`^\s*(`, c_flag, `(\s+|$))*$`])

# compiler matches the name of a compiler, with flags as CFLAGS may have them. Make gives the value to
# a shell, for which the flags are plain words: c_flag has none of its special characters.
compiler(names) := concat("", [`^(`, names, `)(-\d+)?( +`, c_flag, `)* *$`])

c_flag := concat("", [
	`(-fsanitize(-recover|-address-use-after-scope)?=[\w,-]+|-fno-[a-z-]+|-fprofile-arcs`,
	`|-ftest-coverage|-fPIC|-fPIE|-fstack-[a-z-]+|-funroll-loops|-ffast-math|-fwrapv|-fanalyzer`,
	`|--coverage|-g[0-9a-z-]*|-O[0-3sgz]?|-Ofast|-W(all|extra|error|pedantic|conversion|shadow`,
	`|no-[\w-]+|error=[\w-]+|[a-km-oq-z][\w=-]+)|-pedantic|-std=[\w+]+|-march=[\w.-]+|-mtune=[\w.-]+`,
	`|-D[A-Z_]\w*(=\w+)?|-pg|-pipe|-m64|-m32|-I`, inner_directory, `)`,
])

java_flags := concat("", [
	`^\s*((-Xm[xsn]\w+|-Xss\w+|-ea|-XX:[+-]?(Use\w+GC|MaxMetaspaceSize|TieredCompilation`,
	`|TieredStopAtLevel)(=\w+)?|-D(file\.encoding|user\.timezone|org\.gradle\.daemon`,
	`|org\.gradle\.jvmargs|maven\.test\.skip)=[\w./-]+|--no-daemon)(\s+|$))*$`,
])

linker_flags := concat("", [
	`^\s*((-fsanitize=[a-z,]+|-g|-pthread|-static|-s|-l[\w+-]+`,
	`|-L`, inner_directory, `|-Wl(,(-z,(relro|now|defs|noexecstack)|--as-needed|--gc-sections|--no-undefined|-O\d))+)(\s+|$))*$`,
])

# Headers and libraries are looked for in directories of the workspace.
inner_directory := `(\./|/workspace/)?\w[\w-]*(\.\w+)*(/\w[\w-]*(\.\w+)*)*`

# Others name programs, more options or files to write.
sanitizer := concat("", [
	`^((((handle|print|report|check|detect|strict|fast|intercept)_\w+|halt_on_error|abort_on_error`,
	`|exitcode|symbolize|color|verbosity|allocator_may_return_null|alloc_dealloc_mismatch`,
	`|disable_coredump|malloc_context_size|quarantine_size_mb|max_allocation_size_mb`,
	`|hard_rss_limit_mb|second_deadlock_stack|history_size|poison_heap|leak_check_at_exit`,
	`|max_leaks|new_delete_type_mismatch)=\w*`,
	`|suppressions=\w[\w-]*([./][\w-]+)*|log_path=(std(out|err)|/tmp/\w[\w-]*))(:|$))*$`,
])

env_ok(name, value) if {
	name == "GOFLAGS"
	plain_goflags(value)
}

# inner_path is true for a relative path that stays in its directory, and for a path
# under /tmp or the workspace.
inner_path(path) if {
	not ".." in split(path, "/")
	regex.match(`^(/tmp(/|$)|/workspace(/|$)|/home/user(/|$)|[A-Za-z0-9_.][^:]*$|$)`, path)
}

plain_goflags(value) if {
	every word in split(value, " ") {
		regex.match(plain_go_flag, word)
	}
}

plain_go_flag := concat("", [
	`^(-(mod=(mod|vendor|readonly)|count=\d+|race|v|short|trimpath|buildvcs=(true|false|auto)`,
	`|tags=[\w,]+|p=\d+|timeout=\w+|parallel=\d+|failfast|cover|shuffle=\w+))?$`,
])

steering := [
	{
		"pattern": concat("", [
			`^(LD_|DYLD_|GLIBC_|GCONV_|MALLOC_|LOCPATH$|NLSPATH$|TERMINFO|TERMCAP$|RES_OPTIONS$|RESOLV_`,
			`|HOSTALIASES$|LOCALDOMAIN$|NIS_|TZDIR$|GETCONF_DIR$)`,
		]),
		"why": "controls the program loader or the C library",
	},
	{"pattern": `^(TMPDIR|TMP|TEMP)$`, "why": "names the directory in which programs make files"},
	{"pattern": `^XDG_`, "why": "names a directory in which tools look for settings and code"},
	{
		"pattern": concat("", [
			`^(PATH|IFS|BASH.*|ENV|SHELL.*|PS[0-9]|PROMPT_COMMAND|CDPATH|GLOBIGNORE|HISTFILE`,
			`|POSIXLY_CORRECT)$`,
		]),
		"why": "controls the shell",
	},
	{"pattern": `^HOME$`, "why": "names the directory of settings, which can name programs"},
	{"pattern": `^(GIT_|SSH_|PAGER$|.*EDITOR$|.*PAGER$|VISUAL$|BROWSER$|LESS|GREP$|LSB_OS_RELEASE$)`, "why": "makes a tool run another program"},
	{"pattern": build_program, "why": "names a program of a build tool or test runner"},
	{"pattern": `[^A-Za-z0-9_]`, "why": "can be a variable of make's rules, such as COMPILE.c, and is none of a shell"},
	{"pattern": `^(NODE_|npm_|NPM_|YARN_|PNPM_)`, "why": "controls node or npm"},
	{"pattern": `^(PYTHON|PYTEST|PIP_|VIRTUAL_ENV|COVERAGE_PROCESS|DJANGO_(SETTINGS|CONF))`, "why": "controls Python"},
	{"pattern": `^(PERL|RUBY|GEM_|BUNDLE_|JAVA_|_JAVA|JDK_|MAVEN_|GRADLE_|CLASSPATH|PHP|LUA|DOTNET_|CORECLR_)`, "why": "controls an interpreter"},
	{
		"pattern": concat("", [
			`^(GO|GCCGO|CGO|CFLAGS|CXXFLAGS|CPPFLAGS|LDFLAGS|MAKE`,
			`|MFLAGS$|GNUMAKE|RUST|CARGO|CMAKE_|CTEST_|GCC_|COMPILER_|LIBRARY_|CPATH|C_INCLUDE|CPLUS_|OBJC_`,
			`|DEPENDENCIES_|SUNPRO_|CCACHE|DISTCC|PKG_CONFIG|BAZEL|NINJA|MESON|VALGRIND)`,
		]),
		"why": "controls a build tool",
	},
	{
		"pattern": concat("", [
			`^(TAR_|GZIP$|BZIP|XZ_|ZSTD|ZIPOPT|UNZIP|ZIPINFO|LZ|GREP_|RIPGREP|FZF|ACK|AG_|JQ_|YQ_|SQLITE|AWK`,
			`|GAWK|POSIX|OPENSSL|SSL_|KRB|CURL|WGET|RSYNC|DOCKER|KUBE|HELM|TF_|AWS|AZURE|GOOGLE|GH_|GITHUB_`,
			`|RUNNER_|ACTIONS_)`,
		]),
		"why": controls_tool,
	},
	{
		"pattern": concat("", [
			`^(R_|RSTUDIO|JULIA|TCL|TK_|ERL|ELIXIR|MIX_|HEX_|REBAR|GHC|CABAL|STACK_|OCAML|CAML|OPAM|DUNE_|SBT`,
			`|SCALA|KOTLIN|ANT_|JAVAC|JRE|GROOVY|ZIG_|NIM|SWIFT|DENO_|BUN_|TS_|TSX_|ESLINT|BABEL|JEST|MOCHA`,
			`|VITE|WEBPACK|NX_|TURBO_|NVM_|N_PREFIX|COREPACK|ESBUILD|PLAYWRIGHT|PUPPETEER|ELECTRON|COMPOSER`,
			`|PHP|XDEBUG|SYMFONY|HARNESS|PROVE|SPEC_|RSPEC|RAKE|IRB|TOX_|NOX_|POETRY|PDM_|UV_|HATCH|CONDA`,
			`|MYPY|RUFF|FLAKE8|PYLINT|BLACK|ISORT|COVERAGE|SETUPTOOLS|DISTUTILS|WERKZEUG|FLASK_APP|CELERY`,
			`|JUPYTER|IPYTHON|MPL|NUMBA|SEMGREP|SHELLCHECK|SHFMT|STATICCHECK|GOLANGCI|BUF_|PROTOC|PRE_COMMIT`,
			`|VIRTUALENV)`,
		]),
		"why": "controls a tool that loads code",
	},
	{"pattern": `^(CHROM|DBUS_|VK_|LIBGL|GTK_|FONTCONFIG_)`, "why": "controls a browser or its libraries"},
	{
		"pattern": concat("", [
			`(PATH|_OPTS?|OPTIONS|FLAGS|_ARGS|_CMD|COMMAND|_EXEC|_EXE|_BIN|_CONF|_RC|RCFILE|PRELOAD|_LIB|LIBS`,
			`|_MODULES|PLUGINS?|LOADER|WRAPPER|COMPILER|LAUNCHER|_SHELL|EDITOR|PAGER|HOOKS?|_BINARY|_PROGRAM`,
			`|_PYTHON|_PERL|_RUBY|_NODE|INTERPRETER|REGISTRY|MIRROR|_INDEX|INIT|STARTUP|PROFILE_USER|BASHRC`,
			`|CALLBACK|HANDLER)$`,
		]),
		"why": by_name,
	},
	{"pattern": `(?i)(proxy|token|secret|password|credential)`, "why": carries_credential},
]

# only_credential is true for variables that are denied only because they may have a secret.
only_credential(name) if {
	regex.match(`(?i)^.*(KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL).*$`, name)
	{s.why | some s in steering; regex.match(s.pattern, name)} - {carries_credential, controls_tool} == set()
}

carries_credential := "carries a credential or a proxy"

controls_tool := "controls a tool or carries a credential"

# only_controls is true for variables of tools that have many settings, of which most are switches.
only_controls(name) if {
	whys := {s.why | some s in steering; regex.match(s.pattern, name)}
	count(whys) > 0
	count(whys - {
		"controls an interpreter", "controls a build tool", "controls node or npm", "controls Python", "controls a tool that loads code", controls_tool,
		by_name,
	}) == 0
}

# settings_homes are directories of settings, which may be new ones.
settings_homes := {
	"HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "CARGO_HOME", "GRADLE_USER_HOME", "COMPOSER_HOME", "DOTNET_CLI_HOME",
	"GOPATH", "PYTHONUSERBASE", "MPLCONFIGDIR", "JUPYTER_CONFIG_DIR",
}

# no_secrets are values that tests give to variables with secrets.
no_secrets := {"", "test", "testing", "dummy", "fake", "example", "mock", "secret", "changeme", "placeholder", "none", "x", "xxx"}

# why_env says what is known of a variable, or else what its name suggests.
why_env(name) := concat(" and ", [why | some why in known_of(name)]) if {
	count(known_of(name)) > 0
} else := by_name if {
	some s in steering
	regex.match(s.pattern, name)
} else := "is not allowed by the policy"

known_of(name) := {s.why | some s in steering; regex.match(s.pattern, name); s.why != by_name}

by_name := "controls a tool, by its name"

steering_message(name) := listed_directories[name] if {
	listed_directories[name]
} else := sprintf("%s %s", [name, why_env(name)])

listed_directories := {
	"PATH": "PATH may name only directories below the workspace, before the sandbox's own",
	"LD_LIBRARY_PATH": "LD_LIBRARY_PATH may name only directories below the workspace, and only for programs of the repository",
}

# env_fix is what to write instead. What is between backquotes is a whole command, and is allowed.
env_fix(name) := sprintf("remove the variable, or give it only a plain value, as in `%s`", [plain_example[name]]) if {
	plain_example[name]
} else := library_fix if {
	name == "LD_LIBRARY_PATH"
} else := sprintf("remove %s, or give it a new directory: `%s=$(mktemp -d) npm test`", [name, name]) if {
	name in settings_homes
} else := "remove the variable, or give it a value that is no secret: `API_TOKEN=dummy npm test`" if {
	only_credential(name)
} else := "remove the variable"

library_fix := "set it before a runner or a program of the repository alone, to directories of the workspace: `LD_LIBRARY_PATH=build/lib ./program`"

plain_example := {
	"PATH": "PATH=$PWD/node_modules/.bin:$PATH npm test", "CC": "CC='gcc -O2' make", "CXX": "CXX='g++ -O2' make", "CFLAGS": "CFLAGS='-O1 -g' make",
	"CXXFLAGS": "CXXFLAGS='-O1 -g' make", "CPPFLAGS": "CPPFLAGS=-DDEBUG make", "LDFLAGS": "LDFLAGS=-fsanitize=address make",
	"RUSTFLAGS": "RUSTFLAGS='-D warnings' cargo check", "GOFLAGS": "GOFLAGS=-race go test ./...",
	"NODE_OPTIONS": "NODE_OPTIONS=--max-old-space-size=4096 npm test", "PYTHONPATH": "PYTHONPATH=src pytest", "NODE_PATH": "NODE_PATH=lib npm test",
	"CLASSPATH": "CLASSPATH=lib mvn test", "PERL5LIB": "PERL5LIB=lib prove", "RUBYLIB": "RUBYLIB=lib rspec", "MAKEFLAGS": "MAKEFLAGS=-j4 make",
	"PYTEST_ADDOPTS": "PYTEST_ADDOPTS=-q pytest", "JAVA_OPTS": "JAVA_OPTS=-Xmx1g mvn test", "MAVEN_OPTS": "MAVEN_OPTS=-Xmx1g mvn test",
	"GRADLE_OPTS": "GRADLE_OPTS=-Xmx1g gradle test", "JAVA_TOOL_OPTIONS": "JAVA_TOOL_OPTIONS=-Xmx1g mvn test", "RUBYOPT": "RUBYOPT=-w rspec",
	"GIT_PAGER": "GIT_PAGER=cat git log", "PAGER": "PAGER=cat git log", "TMPDIR": "TMPDIR=/tmp npm test", "GOCACHE": "GOCACHE=/tmp/cache go test ./...",
	"GOWORK": "GOWORK=off go test ./...", "GIT_TRACE": "GIT_TRACE=1 git status",
}

# elsewhere is true for the value of any other variable if it is a path outside the
# workspace and /tmp, an option, or a URL of another host.
elsewhere(value) if {
	not regex.match(`^[A-Za-z][\w+.-]*://`, value)
	regex.match(`(?s)^(-.*|(.*[=:,; ])?((~|/).*|\.\.(/.*)?))$`, regex.replace(value, `/(tmp|workspace|home/user|dev/null)\b`, "x"))
}

elsewhere(value) if {
	regex.match(`^[A-Za-z][\w+.-]*://`, value)
	not regex.match(local_service_url, value)
	not regex.match(relative_database, value)
}

# Clients take another host from a query than from the rest of the URL.
elsewhere(value) if {
	contains(value, "://")
	some part in regex.split(`[?&;]`, value)
	regex.match(`(?i)^\w*(host|server|address|addr|url|proxy|sentinel|socket|service|endpoint|replica)\w*=`, part)
	not regex.match(`=(localhost|127\.0\.0\.1|\[?::1\]?|/?tmp(/[\w.-]*)*|true|false|\d+)(:\d+)?$`, part)
}

# relative_database is a database file in the working directory.
relative_database := `^sqlite(\+\w+)?:///\w[\w.-]*(/\w[\w.-]*)*$`

local_service_url := concat("", [
	`^(sqlite|file|memory|postgres(ql)?|mysql|redis|amqp|mongodb|https?)(\+\w+)?://(/?$|//?tmp/`,
	`|/?:memory:|([^/@]*@)?(localhost|127\.0\.0\.1|\[::1\])(:\d+)?(/|$))`,
])

build_program := concat("", [
	`^(CC|CXX|CPP|LD|AR|AS|NM|AWK|RM|CO|GET|FC|F77`,
	`|MAKEINFO|OBJC(XX)?|ASM|CUDACXX|HIPCXX|ISPC|LEX|LINT|M2C|PC|YACC|TEX|TEXI2DVI`,
	`|C?TANGLE|C?WEAVE|LD(CXX)?SHARED|STRIP|RANLIB|M4`,
	`|AUTO(CONF|HEADER|MAKE|M4TE|POINT)|ACLOCAL|LIBTOOLIZE|BATS_.*)[:+?]*$`,
])

steers(name) if {
	some s in steering
	regex.match(s.pattern, name)
}

# A tool may write to what a variable names, unless the variable's name says that it reads there.
guarded_output(name, place) if {
	place in {"git", "control"}
	not regex.match(`(?i)^.*(CONF|CONFIG|CONFIGURATION|WORKFLOWS?|INPUTS?|SOURCES?|SRC|FIXTURES?|EXPECTED)(_.*)?$`, name)
}

guarded_output(name, place) if {
	name in path_names
	place in {"git", "control"}
}
