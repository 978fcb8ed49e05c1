package fumehood.command

import data.fumehood.lib

# METADATA
# title: Interpreters run code of the text or of the workspace
# custom:
#   rule: code.place
#   match: ["python3 /etc/x.py", "node /opt/x.js", "python3 .git/x.py", "ruby /usr/share/x.rb", "perl ../../x.pl"]
#   not_match: ["python3 scripts/x.py", "node ./x.js", "python3 -m pytest", "python3 -c 'import os'", "python3 /tmp/x.py", "ruby -e 'puts 1' /etc/os-release"]
deny contains lib.denial("code.place", sprintf("%q is no code of the workspace", [w.value]), "run a file of the workspace, or give the code in the text") if {
	input.command.program in interpreters
	w := input.command.operands[0]
	not inline
	not w.place in lib.loadable
	not w.place in {"dynamic"}
}

interpreters := {"python3", "node", "ruby", "perl", "php", "lua", "luajit", "java", "Rscript", "julia", "deno", "bun", "ts-node", "tsx", "tclsh", "dart", "prove", "bats"}

inline if {
	some word in input.command.argv
	regex.match(`^-[a-zA-Z0-9]*[cemrpf]$|^--eval$|^--print$|^-[lpnai]*e.*`, word)
}

# METADATA
# title: Interpreters do not read their program from standard input unseen
# custom:
#   rule: code.stdin
#   match: ["echo aWQ= | base64 -d | python3", "cat x | node -", "cat x | perl", "printf %s \"$x\" | ruby"]
#   not_match: ["python3 - <<'EOF'\nprint(1)\nEOF", "cat x | python3 -c 'import sys'", "cat x | python3 -m json.tool", "cat a | python3 scripts/x.py"]
deny contains lib.denial("code.stdin", sprintf("%s reads its program from a pipe or a file, unseen", [input.command.program]), "give the code in the text: -c, -e or a here-document") if {
	input.command.program in (interpreters - {"java"})
	input.command.stdin_from in {"pipe", "file"}
	reads_program
}

reads_program if {
	count(input.command.operands) == 0
	not inline
	not "--version" in input.command.argv
}

reads_program if {
	input.command.operands[0].value in {"-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"}
	not inline
}

# METADATA
# title: Tools load configuration, plugins and code from the workspace only
# custom:
#   rule: code.load
#   match: ["pytest -c /tmp/../etc/x.ini", "node -r /opt/x.js y", "eslint --resolve-plugins-relative-to /opt .", "cargo --config /opt/x.toml test", "mypy --config-file=/etc/x .", "pytest --rootdir=/ -p evil", "node --import /opt/x.mjs y", "npm --prefix /opt test"]
#   not_match: ["python3 -c 'x = \"http://a.example/\"'", "pytest -c setup.cfg", "eslint --config .eslintrc.json .", "node --require ./x.js y", "mypy --config-file mypy.ini ."]
deny contains lib.denial("code.load", sprintf("%s loads code or configuration from %q", [word, value]), "use files of the workspace") if {
	input.command.program in lib.runners
	some i, word in input.command.argv
	startswith(word, "-")
	name := split(word, "=")[0]
	name in loading
	not program_text(name)
	value := option_value(i, word)
	regex.match(`^(/|~|\.\./)|/\.\./|://`, value)
	not workspace_or_own(name, value)
}

# program_text is the code itself, which may speak of addresses and paths.
program_text("-c") if input.command.program == "python3"

program_text("-r") if input.command.program == "php"

workspace_or_own(_, value) if regex.match(`^/workspace/[^.].*`, value)

workspace_or_own(name, value) if {
	not name in {"-b", "-I", "-javaagent", "--init-script", "-f"}
	regex.match(`^/tmp/[^.].*`, value)
}

loading := {
	"-c", "--config", "--config-file", "-r", "--require", "--import", "--loader", "--experimental-loader", "--resolve-plugins-relative-to", "--rulesdir", "--rcfile", "--init-file", "-b", "-jar", "--plugin", "--plugin-search-dir", "--manifest-path", "--rootdir", "--confcutdir", "--prefix", "--cwd", "--dir", "-C", "-f", "--file", "--build-file", "--settings", "-s",
	"--init-script", "-I", "--include-build", "-javaagent", "-agentpath", "-cp", "-classpath", "--class-path", "--project", "-p", "--tsconfig", "--eslintrc", "--ignore-path", "--preset", "--setupFiles", "--globalSetup", "--bootstrap", "-d", "--project-dir", "--gemfile", "--project-cache-dir", "--gradle-user-home", "-g", "--env-file", "--toolchain", "--format", "--reporter", "-B", "-S", "--sysroot", "-specs", "-fplugin", "-isystem", "--userconfig", "--globalconfig", "--basedir", "-P", "--path", "--experimental-config-file", "--openssl-config",
}

option_value(_, word) := concat("=", array.slice(split(word, "="), 1, 99)) if contains(word, "=")

option_value(i, word) := input.command.argv[i + 1] if {
	not contains(word, "=")
	i + 1 < count(input.command.argv)
}

# METADATA
# title: Options that make a tool run another program
# custom:
#   rule: code.program
#   match: ["npm --script-shell=./x test", "cargo --config 'build.rustc-wrapper=\"./x\"' build", "gcc -wrapper ./x a.c", "gcc -fplugin=./x.so a.c", "gradle -I x.gradle test", "prove --exec sh t", "java -javaagent:/tmp/x.jar A", "mvn exec:exec", "mvn -Dexec.executable=id test", "ctest -S x.cmake", "cmake -P /tmp/x.cmake", "valgrind --trace-children=yes --db-attach=yes x", "npx -c 'id'", "npx -p evil cmd", "npm exec -c id", "ruby --exec x", "tox -x 'testenv.commands=id'", "flake8 --local-plugins=x"]
#   not_match: ["npm test", "pytest -p no:cacheprovider", "pytest -p xdist", "cargo --config net.offline=true build", "gcc -Wall a.c -o a", "npx jest"]
deny contains lib.denial("code.program", sprintf("%s's %s makes it run another program or load other code", [input.command.program, word]), "leave the option out") if {
	input.command.program in lib.runners
	some word in other
}

other contains word if {
	some word in input.command.argv
	startswith(word, "-")
	regex.match(`^--?(script-shell|exec|exec-shell|exec-path|rustc-wrapper|wrapper|fplugin|fplugin-arg.*|plugin|load-plugins|init-hook|local-plugins|javaagent|agentlib|agentpath|toolexec|pdbcls|db-attach|db-command|node-options|shell|linker|pre|preprocessor|open|browser|pastebin|debugger|inspect-brk|prof-plugin|run-with|cmd|on-success|on-failure|onSuccess|onFailure|watch-exec|build-plugin|use-ld|fuse-ld|ld-path|specs|editor|diff-tool|difftool|pager|call|location|XX:OnError|XX:OnOutOfMemoryError|XX:Flags|tidy-plugin|test-runner-command|make-program|generate-json-trace)(=|:|$)`, word)
	not harmless_exec(word)
}

harmless_exec(word) if {
	input.command.program in {"bazel"}
	regex.match(`^--shell([=:].*)?$`, word)
}

harmless_exec(word) if {
	input.command.program in {"python3", "php", "phpunit", "mypy", "semgrep", "dotnet", "jest", "npx", "prettier", "eslint"}
	regex.match(`^--(plugin|shell|open)(=[^/]*)?$`, word)
}

harmless_exec("-fuse-ld=lld")

harmless_exec("-fuse-ld=gold")

harmless_exec("-fuse-ld=mold")

other contains word if {
	input.command.program in {"pytest", "py.test"}
	some word in input.command.argv
	regex.match(`^-p`, word)
	not regex.match(`^-p$|^-p(no:)?\w+$`, word)
}

other contains "-p" if {
	input.command.program in {"pytest", "py.test"}
	some i, "-p" in input.command.argv
	not regex.match(`^(no:[\w.]+|xdist|pytest_\w+|asyncio|randomly|cov|pytester|_?\w*tests?[\w.]*)$`, input.command.argv[i + 1])
}

other contains "--config" if {
	input.command.program == "cargo"
	some i, "--config" in input.command.argv
	not "--" in array.slice(input.command.argv, 0, i)
	not regex.match(`^(net\.(offline|retry)|term\.[a-z.]+|profile\.[a-z]+\.(opt-level|debug|lto|codegen-units)|build\.(jobs|incremental|target-dir))=\S*$`, input.command.argv[i + 1])
}

other contains word if {
	input.command.program == "cargo"
	some word in input.command.argv
	regex.match(`^--config=`, word)
}

other contains word if {
	input.command.program in {"gradle"}
	some word in input.command.argv
	regex.match(`^(-I.*|--init-script.*|-D(java\.home|org\.gradle\.java\.home|org\.gradle\.jvmargs).*)$`, word)
}

other contains word if {
	input.command.program == "mvn"
	some word in input.command.argv
	regex.match(`^(exec:|antrun:|org\.codehaus\.mojo:exec|-Dexec\.|-Djvm=|-DargLine=.*agent|-s$|--settings|-gs|-D(maven\.ext\.class\.path|java\.home)|deploy|release:|site:deploy|wagon:|scm:)|:deploy$|groovy:execute`, word)
}

other contains word if {
	input.command.program in {"gcc", "g++", "cc", "c++", "clang", "clang++"}
	some word in input.command.argv
	regex.match(`^(-B.*|-Xclang|-load|-wrapper|-iplugindir.*|-specs.*|@.*|-Wl,.*(-plugin|--dynamic-linker|-I).*|-no-canonical-prefixes-x)$`, word)
}

other contains word if {
	input.command.program in {"rustc", "clippy-driver"}
	some word in input.command.argv
	regex.match(`linker|^-Zcodegen-backend|^-Clink`, word)
}

other contains word if {
	input.command.program == "ctest"
	some word in input.command.argv
	regex.match(`^(-S|-SP|--script|-D\w*Start|--build-and-test|--test-command|-H)`, word)
}

other contains word if {
	input.command.program == "cmake"
	some word in input.command.argv
	regex.match(`^-P|^-DCMAKE_\w*(LAUNCHER|MAKE_PROGRAM|TOOLCHAIN_FILE|PROJECT_\w*INCLUDE\w*|RULE_LAUNCH\w*)|^-E$|^--install-script`, word)
}

other contains word if {
	input.command.program in {"npx", "npm", "pnpm", "yarn"}
	some word in input.command.argv
	regex.match(`^(-c|--call.*|-p|-p=.*|--package.*|--git=.*|--viewer.*|--editor.*|--userconfig.*|--globalconfig.*|--node-gyp.*|--python=.*)$`, word)
	not workspace_flag(word)
}

workspace_flag(word) if {
	input.command.program in {"pnpm", "yarn"}
	word in {"-p", "-c"}
}

workspace_flag("-p") if {
	input.command.program == "npx"
	input.command.operands[0].value in {"tsc", "playwright"}
	input.command.argv[0] != "-p"
}

workspace_flag("-c") if {
	input.command.program == "npx"
	count(input.command.operands) > 0
	input.command.argv[0] == input.command.operands[0].value
}

other contains word if {
	input.command.program in {"tox", "nox"}
	some word in input.command.argv
	regex.match(`^(-x|--override|-c|-f|--noxfile)`, word)
	word != "-c"
}

other contains word if {
	input.command.program in {"prove"}
	some word in input.command.argv
	regex.match(`^(-e.*|--exec.*|-P.*|--harness.*|--source.*|--formatter.*)$`, word)
}

other contains word if {
	input.command.program in {"valgrind"}
	some word in input.command.argv
	regex.match(`^--(db-|tool=/|extra-debuginfo)`, word)
}

other contains word if {
	input.command.program in {"protoc", "buf"}
	some word in input.command.argv
	regex.match(`^--plugin`, word)
}

other contains word if {
	input.command.program == "python3"
	some i, word in input.command.argv
	word == "-m"
	input.command.argv[i + 1] in {"http.server", "pty", "code", "smtpd", "webbrowser", "pdb", "SimpleHTTPServer", "idlelib", "turtledemo", "ensurepip", "xmlrpc.server", "asyncio"}
}

# METADATA
# title: Nothing is published, logged into, deployed or installed for everybody
# custom:
#   rule: code.publish
#   retry: never
#   match: ["npm publish", "npm login", "cargo publish", "npm config set x y", "poetry publish", "dotnet nuget push x", "npm install -g x", "yarn npm publish", "pip install --user x", "npm token list", "pip install git+https://x", "composer global require x", "cargo install x", "bundle config set x y", "npm set script-shell x", "npm pkg set scripts.test=id", "cargo login"]
#   not_match: ["npm ci", "npm run build", "pip install -e .", "cargo build", "poetry run pytest", "npm ls"]
deny contains lib.denial("code.publish", sprintf("%s %s publishes, logs in, installs from elsewhere or changes settings", [input.command.program, word]), "build, test and check what the repository holds") if {
	some i, word in array.slice(input.command.argv, 0, 3)
	word in publishing[input.command.program]
	i >= 0
}

publishing := {
	"npm": {"publish", "unpublish", "login", "logout", "adduser", "token", "owner", "access", "deprecate", "dist-tag", "hook", "org", "team", "star", "profile", "set", "edit", "create", "init", "-g", "--global", "global", "dlx", "link", "set-script", "stars", "whoami", "npm", "plugin", "exec", "x", "explore", "config"}, "pnpm": {"publish", "unpublish", "login", "logout", "adduser", "token", "owner", "access", "deprecate", "dist-tag", "hook", "org", "team", "star", "profile", "set", "edit", "create", "init", "-g", "--global", "global", "dlx", "link", "set-script", "stars", "whoami", "npm", "plugin", "config", "env"}, "yarn": {"publish", "unpublish", "login", "logout", "adduser", "token", "owner", "access", "deprecate", "dist-tag", "hook", "org", "team", "star", "profile", "set", "edit", "create", "init", "-g", "--global", "global", "dlx", "link", "set-script", "stars", "whoami", "npm", "plugin", "config"},
	"cargo": {"publish", "login", "logout", "owner", "yank", "install", "uninstall", "search", "init", "new"},
	"poetry": {"publish", "config", "self", "source", "shell"}, "uv": {"publish", "tool", "self", "x"}, "hatch": {"publish", "config", "shell"}, "pdm": {"publish", "config", "plugin"}, "pipenv": {"shell"},
	"dotnet": {"nuget", "publish", "tool", "new", "dev-certs", "user-secrets", "workload"}, "composer": {"global", "config", "exec", "create-project", "require", "self-update"}, "bundle": {"config", "plugin", "console", "open", "gem", "add", "inject"},
	"mix": {"hex.publish", "archive.install", "escript.install"}, "stack": {"upload"}, "cabal": {"upload"}, "swift": {"repl"}, "dart": set(), "rails": {"console", "dbconsole", "server", "c", "s"}, "terraform": {"apply"}, "deno": {"install", "publish", "upgrade", "deploy"}, "bun": {"publish", "x", "upgrade", "create"}, "pip3": {"config"}, "opa": {"run"}, "yarnpkg": set(), "lerna": {"publish", "version", "exec"}, "bazel": set(), "ng": {"deploy", "add", "serve"}, "buf": {"push", "registry"}, "php": {"-S", "-a"}, "ruby": {"--server"}, "helm": {"install"}, "task": {"--init"},
}

deny contains lib.denial("code.publish", "pip installs only what the repository names", "use pip install -e . or pip install -r requirements.txt") if {
	input.command.program in {"pip", "pip3", "uv"}
	some word in input.command.argv
	regex.match(`^(git|hg|svn|bzr)\+|://|^--(user|target|prefix|root|index-url|extra-index-url|trusted-host|global-option|build-option|config-settings|proxy|python)(=|$)|^-(i|t)$`, word)
}

deny contains lib.denial("code.publish", "npm installs only what the repository names", "use npm ci") if {
	input.command.program in {"npm", "pnpm", "yarn", "npx", "bun"}
	some word in input.command.argv
	regex.match(`^(git|https?|file|github|ssh|gist)[+:].|^(-g|--global)$|^--(registry|location|unsafe-perm|ignore-scripts=false)(=|$)`, word)
}
