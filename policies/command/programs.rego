# A runner runs the repository's code. It must not run a program that an option names: the
# text would show one tool and run another. policies/options.txt marks such options; rules
# about their values are in each tool's own file (program_option).
package fumehood.command

import data.fumehood.lib

# METADATA
# title: Options that make a tool run another program are denied
# custom:
#   rule: code.program
#   severity: medium
#   category: code
#   match: [
#     "npm --script-shell=./x test", "npm test --script-s=./x", "cargo --config 'build.rustc-wrapper=\"./x\"' build", "gcc -wrapper ./x a.c",
#     "gcc -fplugin=./x.so a.c", "gradle -I x.gradle test", "prove --exec sh t", "prove --exe sh t", "java -javaagent:/tmp/x.jar A", "mvn exec:exec",
#     "mvn -Dexec.executable=id test", "ctest -S x.cmake", "cmake -P /tmp/x.cmake", "valgrind --db-attach=yes x", "npx -c 'id'", "npx -p evil cmd",
#     "npm exec -c id", "tox -x 'testenv.commands=id'", "flake8 --local-plugins=x", "bazel test --run_under=sh //x", "mypy --python-exec ./x src",
#     "python3 -m mypy --python-executable ./x src", "poetry run pytest --pdbcls=x:y", "npx vitest --api.host=0.0.0.0",
#     "gotestsum --post-run-command 'sh x'", "node --inspect=0.0.0.0 a.js", "pylint --init-h x src", "clang++ --gcc-toolchain=x a.cc",
#     "javac -J-javaagent:x A.java", "ar --plugin ./x.so t a.a", "node_modules/.bin/vitest --api", "go test -exec ./x ./...",
#     "go build -toolexec=./x ./...", "go vet -vettool=./x ./...", "go build --overlay x.json", "go build -modfile=/tmp/x.mod",
#     "go test ./... -exec ./x"
#   ]
#   not_match: [
#     "npm test", "go test -run TestExec ./...", "go build -o bin/x ./cmd/x", "pytest -p no:cacheprovider", "pytest -p xdist",
#     "cargo --config net.offline=true build", "gcc -Wall a.c -o a", "npx jest",
#     "java -Xmx1g A", "node --test-reporter=spec --test", "gotestsum -- ./..."
#   ]
deny contains lib.denial(
	"code.program",
	sprintf("%s's %s runs another program, loads other code or reaches the network", [input.command.tool, word]),
	"remove the option",
) if {
	running
	some word in program_option
	not word in refused_modules # which code.module denies
}

program_option contains e.name if {
	some e in input.command.effects
	e.kind == "run"
}

# METADATA
# title: Option values that run a program or load code are denied
# custom:
#   rule: code.option
#   severity: medium
#   category: code
#   match: [
#     "pytest -pevil", "python3 -m pytest -p evil", "pytest -o addopts=-pevil", "php -dauto_prepend_file=x a.php", "cargo rustc -- -Clinker=./x",
#     "cmake -DCMAKE_CXX_COMPILER=./x .", "vendor/bin/tool --preload=x", "stack test --exec sh", "./run.sh --listen=1", "./run.sh --host 0.0.0.0",
#     "./run.sh --host=127.0.0.1.x.example", "gunicorn -b0.0.0.0:8000 app:app"
#   ]
#   not_match: [
#     "cargo rustc -- -Copt-level=3", "pytest -p no:cacheprovider", "python3 -m pytest -p xdist -n 2", "cmake -DCMAKE_BUILD_TYPE=Debug .",
#     "java -Xmx1g A", "pytest -o addopts= -o log_cli=true", "./run.sh --verbose", "stack test", "./run.sh --host 127.0.0.1",
#     "flask run --host=localhost:5000"
#   ]
deny contains lib.denial("code.option", sprintf("%s runs a program or loads code that the text does not show", [word]), "remove the option") if {
	input.command.open
	running
	regex.match(concat("", ["(?m)", running_option]), joined)
	some i, word in input.command.argv
	regex.match(running_option, word)
	not listens_locally(i, word)
}

deny contains lib.denial(
	"code.option",
	sprintf("%s listens on %q, and not on this machine alone", [input.command.tool, address]),
	"name the loopback address: `gunicorn -b 127.0.0.1:8000 app:app`",
) if {
	input.command.tool in {"gunicorn", "hypercorn"}
	some address in bound_addresses
	not regex.match(concat("", ["^", loopback, "$"]), address)
}

bound_addresses contains input.command.argv[i + 1] if some i, "-b" in input.command.argv

bound_addresses contains trim_prefix(word, "-b") if {
	some word in input.command.argv
	startswith(word, "-b")
	word != "-b"
}

loopback := `(localhost|127\.0\.0\.1|\[?::1\]?)(:\d+)?`

# listens_locally is true for the option of a server that names only this machine.
listens_locally(_, word) if regex.match(concat("", [`^--?(host|hostname|bind|listen|server)=`, loopback, "$"]), word)

listens_locally(i, word) if {
	regex.match(`^--?(host|hostname|bind|listen|server)$`, word)
	regex.match(concat("", ["^", loopback, "$"]), input.command.argv[i + 1])
}

# running_option is true for options of tools whose options are not all in options.txt.
running_option := concat("", [
	`^--?(script-?s\w*|exec(-shell|-path)?|rustc-wrapper|fplugin\S*|plugin|load-plugins|local-plugins`,
	`|init-(s|h)\w*|init_hook|override-i\w*|past\w*|run_under|python-?exec\w*|python-?path`,
	`|auto_prepend.*|post-run-command|raw-command|after-(run|suite)-hook|before-.*-hook|gcc-toolchain`,
	`|J-?javaagent.*|J-agent.*|javaagent|agentlib|agentpath|toolexec|pdbcls|db-attach|db-command`,
	`|node-options|shell|linker|preprocessor|open|browser|debugger|run-with|cmd|editor|diff-?tool`,
	`|pager|call|location|tx|exe|exec\w*|watch-?\w*|inspect\S*|host_jvm_args|launcher|runner`,
	`|test-?runner|tool-?exec\w*|compiler-?launcher|wrapper|loader|unsafely\S*|allow-all|allow-run`,
	`|allow-net|docker\S*|nix\S*|pre-?load|remote\S*|rpc\S*|server|listen|host|hostname|bind|expose`,
	`|tunnel|debug-?port|plugin-?path|load-path|require-?path|on-?(error|exit|success|failure)|trap`,
	`|hook|callback|notify|shell-mode|npm-path|tcp-listen|install-types|disable-sandbox|scan|ui|api`,
	`|clang|gcc\.\w+|with-compiler|doclet\w*|load|http\.proxy\w*|pre|share|publish-scan|tls-\S*`,
	`|redirect-warnings|init-script)(=|:|$)`,
])

deny contains lib.denial("code.option", sprintf("%s names another program to run", [word]), "use the repository's setting") if {
	naming
	regex.match(concat("", ["(?m)", naming_option]), joined)
	some word in input.command.argv
	regex.match(naming_option, word)
	not compiler_flag(word)
}

# naming is true for tools whose settings name programs.
naming if input.command.program in {
	"cmake", "ctest", "mvn", "gradle", "java", "javac", "javadoc", "jar", "kotlinc", "scala", "sbt", "ant", "rustc", "cargo", "php", "phpunit",
	"composer", "gcc", "g++", "cc", "c++", "clang", "clang++", "dotnet", "msbuild", "csc", "protoc", "python3", "poetry", "uv", "npx", "bazel",
}

naming if input.command.place in {"workspace", "tmp"}

naming_option := concat("", [
	`^-D(CMAKE_\w*(COMPILER|LINKER|LAUNCHER|PROGRAM|AR|RANLIB|TOOLCHAIN\w*)|exec|jvm`,
	`|maven\.repo\.remote|java\.home|java\.rmi\S*|java\.security\S*|sun\S*|argLine|executable`,
	`|script)(:\w+)?=|^-d(auto_|extension|zend_extension|disable_|open_basedir|allow_url)\S*|^-z$`,
	`|^-Clinker|^-C$|^linker=|^(-J|-X)(javaagent|agent)\S*|^-XX:(HeapDumpPath|OnError`,
	`|OnOutOfMemoryError|LogFile|Flags|ErrorFile|\+UnlockDiag)\S*|^-Xlog|^-Xloggc|^-Xbootclasspath`,
	`|^-D(http|https|socks)\.?[pP]roxy|^-D\w*[uU]rl=|^-DshowPasswords|^-Dmaven\.compiler\.executable`,
	`|^-O/|^-fplug\w*|^@.`,
])

compiler_flag("-C") if not input.command.program in {"cargo", "rustc"}

# Only Java tools and compilers have argument files; elsewhere @x is a name.
compiler_flag(word) if {
	input.command.program in {"npx", "python3", "poetry", "uv", "php", "composer"}
	startswith(word, "@")
}

compiler_flag("-C") if {
	some i, "-C" in input.command.argv
	not regex.match(`^(linker|link|ar|codegen)`, input.command.argv[i + 1])
}

# METADATA
# title: Argument files are denied
# custom:
#   rule: code.arguments
#   severity: medium
#   category: code
#   match: ["c++filt @/etc/shadow", "nm @x", "gcc @args a.c", "javac @/tmp/args", "gcc -Wp,@args a.c"]
#   not_match: ["c++filt _Z1fv", "nm a.o", "npx @scope/lint ."]
deny contains lib.denial(
	"code.arguments",
	sprintf("%s is a file with arguments that the text does not show", [word]),
	"write the arguments in the command",
) if {
	input.command.program in {
		"c++filt", "nm", "objdump", "readelf", "size", "strings", "ld", "ar", "gcc", "g++", "cc", "c++", "clang", "clang++", "javac", "java", "javadoc",
		"rustc", "msbuild", "dotnet", "csc",
	}
	some word in input.command.argv
	regex.match(`^(-W[alp],(.*,)?)?@`, word)
}
