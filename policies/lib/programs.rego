package fumehood.lib

# readers only read, compute and print, whatever their options are, apart from the
# options that command/text.rego and command/files.rego name.
readers := {
	"cat", "head", "tail", "wc", "cut", "paste", "comm", "join", "column", "fold", "fmt", "nl", "od", "xxd", "hexdump", "hd", "strings", "tr", "rev", "tac",
	"expand", "unexpand", "cmp", "diff", "diff3", "sdiff", "colordiff", "basename", "dirname", "pwd", "realpath", "readlink", "seq", "sleep", "true",
	"false", "test", "[", "[[",
	"echo", "printf", "expr", "stat", "du", "df", "ls", "dir", "uname", "id", "whoami", "nproc", "which", "whereis", "type", "hash", "cksum", "sum",
	"md5sum", "sha1sum", "sha224sum",
	"sha256sum", "sha384sum", "sha512sum", "b2sum", "base64", "base32", "basenc", "factor", "numfmt", "tsort", "arch", "getconf", "free", "uptime",
	"tty", "groups", "logname", "locale", "ps", "lscpu", "jq", "grep", "egrep", "fgrep", "zgrep", "zcat", "bzcat", "xzcat", "tput", "clear", "getent", "bc", "dc",
	"iconv", "nm", "objdump", "readelf", "size", "c++filt", "ldd", "pgrep", "cal", "dos2unix", "errno", "cloc", "tokei", "scc", "xmllint", "file",
	"tree", "date", "uniq", "sort", "shuf", "pr", "ptx", "look", "mktemp", "sync", "printenv", "cmark", "pidof", "lsb_release", "hostname", "yes",
	"envsubst", "kubeconform", "tidy", "dot",
}

# builtins of the shell. Those that evaluate text are refused before policy is asked.
builtins := {
	"cd", "pushd", "popd", "set", "shopt", "export", "declare", "typeset", "local", "readonly", "unset", "read", "shift", "return", "exit", "break",
	"continue", ":",
	"wait", "trap", "getopts", "times", "umask", "ulimit", "kill", "jobs", "fg", "bg", "mapfile", "readarray", "let", "((", "command", "builtin", "exec",
	"time", "coproc", "dirs", "disown", "caller", "help",
}

# wrappers run another command, which is checked separately.
wrappers := {
	"env", "timeout", "nice", "ionice", "nohup", "setsid", "xargs", "time", "command", "exec", "taskset", "chrt", "prlimit", "bash", "sh", "dash",
	"unbuffer", "gtimeout", "find", "tee", "strace", "ltrace", "perf", "hyperfine",
}

# runners build, test and check the repository. They run its code, and the sandbox
# contains it.
runners := {
	"pytest", "py.test", "tox", "nox", "coverage", "unittest", "jest", "vitest", "mocha", "ava", "tap", "tape", "jasmine", "qunit", "nyc", "c8", "tsc",
	"ts-node", "tsx", "deno", "bun", "eslint", "prettier", "biome", "stylelint", "webpack", "vite", "rollup", "esbuild",
	"rustc", "rustfmt", "rustdoc", "clippy-driver", "mvn", "gradle", "ant", "java", "javac", "jar", "kotlinc", "scala", "sbt", "javap", "javadoc",
	"gcc", "g++", "cc", "c++", "clang", "clang++", "ld", "ar", "ranlib", "cmake", "ctest", "meson", "ninja", "bazel", "clang-format", "clang-tidy",
	"cppcheck", "gcov", "lcov", "valgrind", "autoconf", "automake", "autoreconf", "pkg-config",
	"rspec", "rake", "ruby", "rubocop", "bundle", "php", "phpunit", "phpstan", "psalm", "composer", "phpcs", "perl", "prove", "lua", "luac", "luacheck",
	"busted", "swift", "swiftc", "swiftlint", "dart", "flutter", "elixir", "mix", "erl", "rebar3", "ghc", "cabal", "stack", "runghc", "julia", "Rscript",
	"R", "zig", "nim", "crystal", "ocaml", "dune", "dotnet", "msbuild", "csc",
	"golangci-lint", "staticcheck", "govulncheck", "revive", "errcheck", "ineffassign", "goimports", "gofumpt", "gofmt", "gotestsum", "benchstat",
	"gocyclo", "gosec", "stringer", "mockgen", "ginkgo", "ruff", "mypy", "flake8", "pylint", "black", "isort", "bandit", "pyright", "pydocstyle",
	"pycodestyle", "pyflakes", "vulture", "radon", "yapf", "autopep8", "pyupgrade", "safety", "djlint", "hypothesis",
	"shellcheck", "shfmt", "hadolint", "yamllint", "actionlint", "markdownlint", "markdownlint-cli2", "mdl", "codespell", "typos", "vale", "buf",
	"protoc", "tflint", "checkov", "sqlfluff", "jsonlint", "ajv", "taplo", "htmlhint", "cspell", "knip", "depcheck", "madge", "tsd", "xo", "standard",
	"oxlint", "solhint", "editorconfig-checker", "ec", "opa", "conftest", "regal", "promtool", "semgrep", "ng", "nx", "turbo", "lerna", "next",
	"svelte-check", "vue-tsc", "ember", "gulp", "grunt", "tap-spec", "node-gyp", "rails", "cucumber", "just", "task", "bats", "pip3", "pip", "poetry",
	"pipenv", "uv", "pdm", "hatch", "python3", "node", "npx", "npm", "pnpm", "yarn", "cargo", "go", "make", "gmake", "nextest", "wasm-pack", "trybuild",
	"gitleaks", "trivy", "syft", "lychee", "osv-scanner", "kustomize", "zizmor", "pdftotext", "ffprobe", "pandoc", "alembic", "ansible-lint",
	"cargo-clippy", "cargo-nextest", "check-jsonschema", "luajit", "tclsh", "basedpyright", "pre-commit", "lefthook", "sphinx-build", "mkdocs", "flask",
	"uvicorn", "hypercorn", "gunicorn", "ab", "wrk", "hey", "oha", "bombardier", "bunx", "uvx", "pipx", "rye", "mise", "pixi",
}

# plain runners start only their own parts, and no program of the repository.
plain := {
	"gofmt", "gofumpt", "goimports", "shfmt", "shellcheck", "hadolint", "yamllint", "actionlint", "codespell", "typos", "ruff", "black", "isort", "yapf",
	"autopep8", "pyflakes", "pycodestyle", "pydocstyle",
	"gcc", "g++", "cc", "c++", "clang", "clang++", "ld", "ar", "ranlib", "clang-format", "clang-tidy", "cppcheck", "gcov", "lcov", "javac", "jar",
	"gitleaks", "trivy", "syft", "lychee", "osv-scanner", "kustomize", "zizmor", "pdftotext", "ffprobe", "pandoc",
	"javap", "javadoc", "luac", "pkg-config", "benchstat", "jsonlint", "mdl", "editorconfig-checker", "ec", "taplo", "rustfmt",
}

# changers create, move and remove files; command/files.rego decides where.
changers := {
	"mkdir", "mkfifo", "touch", "cp", "mv", "rm", "rmdir", "ln", "chmod", "install", "truncate", "patch", "split", "csplit", "gzip", "gunzip", "bzip2", "bunzip2",
	"xz", "unxz", "zstd", "zip", "unzip", "tee",
}

# judged tools have allow rules of their own.
judged := {
	"fd", "fdfind", "bat", "batcat", "sqlite3", "openssl", "terraform", "helm", "jupyter", "git", "find", "sed", "gsed", "awk", "gawk", "mawk", "nawk",
	"original-awk", "tar", "rg", "yq",
}

programs := ((((readers | builtins) | wrappers) | runners) | changers) | judged
