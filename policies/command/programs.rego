# A runner runs the repository's code, and no program that an option names: the text would
# then show one tool and run another. What single tools call such options stands in
# their files (program_option).
package fumehood.command

import data.fumehood.lib

# METADATA
# title: Options that make a tool run another program
# custom:
#   rule: code.program
#   match: ["npm --script-shell=./x test", "cargo --config 'build.rustc-wrapper=\"./x\"' build", "gcc -wrapper ./x a.c", "gcc -fplugin=./x.so a.c", "gradle -I x.gradle test", "prove --exec sh t", "java -javaagent:/tmp/x.jar A", "mvn exec:exec", "mvn -Dexec.executable=id test", "ctest -S x.cmake", "cmake -P /tmp/x.cmake", "valgrind --trace-children=yes --db-attach=yes x", "npx -c 'id'", "npx -p evil cmd", "npm exec -c id", "ruby --exec x", "tox -x 'testenv.commands=id'", "flake8 --local-plugins=x"]
#   not_match: ["npm test", "pytest -p no:cacheprovider", "pytest -p xdist", "cargo --config net.offline=true build", "gcc -Wall a.c -o a", "npx jest"]
deny contains lib.denial("code.program", sprintf("%s's %s makes it run another program or load other code", [input.command.program, word]), "leave the option out") if {
	input.command.program in lib.runners
	some word in program_option
}

program_option contains word if {
	regex.match(concat("", ["(?m)", program_word]), joined)
	some word in input.command.argv
	regex.match(program_word, word)
	not harmless_exec(word)
}

program_word := `^--?(script-shell|exec|exec-shell|exec-path|rustc-wrapper|wrapper|fplugin|fplugin-arg.*|plugin|load-plugins|init-hook|local-plugins|javaagent|agentlib|agentpath|toolexec|pdbcls|db-attach|db-command|node-options|shell|linker|pre|preprocessor|open|browser|pastebin|debugger|inspect-brk|prof-plugin|run-with|cmd|on-success|on-failure|onSuccess|onFailure|watch-exec|build-plugin|use-ld|fuse-ld|ld-path|specs|editor|diff-tool|difftool|pager|call|location|XX:OnError|XX:OnOutOfMemoryError|XX:Flags|tidy-plugin|test-runner-command|make-program|generate-json-trace)(=|:|$)`

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

program_option contains word if {
	input.command.program in {"protoc", "buf"}
	some word in input.command.argv
	regex.match(`^--plugin`, word)
}

# METADATA
# title: Options that run a program, under whatever name
# custom:
#   rule: code.option
#   match: ["npm test --script-s=./x", "bazel test --run_under=sh //x", "mypy --python-exec ./x src", "pytest -pevil", "python3 -m pytest -p evil", "php -dauto_prepend_file=x a.php", "gotestsum --post-run-command 'sh x'", "ginkgo --after-run-hook sh", "cargo rustc -- -Clinker=./x", "gcc -fplug=./x a.c", "node --inspect=0.0.0.0 a.js", "prove --exe sh t", "cmake -DCMAKE_CXX_COMPILER=./x .", "pylint --init-h x src", "clang++ --gcc-toolchain=x a.cc", "javac -J-javaagent:x A.java"]
#   not_match: ["cargo rustc -- -Copt-level=3", "pytest -p no:cacheprovider", "python3 -m pytest -p xdist -n 2", "cmake -DCMAKE_BUILD_TYPE=Debug .", "java -Xmx1g A", "node --test-reporter=spec --test", "gotestsum -- ./..."]
deny contains lib.denial("code.option", sprintf("%s runs a program or loads code that the text does not show", [word]), "leave the option out") if {
	regex.match(concat("", ["(?m)", running_option]), joined)
	running
	some [_, word] in spoken
	regex.match(running_option, word)
	not harmless_option(word)
}

running_option := `^--?(script-s\w*|init-(s|h)\w*|init_hook|override-i\w*|past\w*|run_under|python-?exec\w*|python-?path|auto_prepend.*|post-run-command|raw-command|after-(run|suite)-hook|before-.*-hook|gcc-toolchain|J-?javaagent.*|J-agent.*|tx|exe|exec\w*|watch-?cmd|inspect\w*|host_jvm_args|launcher|runner|test-?runner|tool-?exec\w*|compiler-?launcher|wrapper|loader|experimental-default-config-file|unsafely\S*|allow-all|allow-run|allow-net|docker\S*|nix\S*|pre-?load|remote\S*|rpc\S*|server|listen|expose|tunnel|debug-?port|plugin-?path|load-path|require-?path|on-?error|on-?exit|trap|hook|callback|notify|shell-mode|npm-path|tcp-listen|install-types|disable-sandbox|scan|ui|api|clang|gcc\.\w+|with-compiler|doclet\w*|fpass-plugin|load|http\.proxy\w*|pre|docletpath|diagnose|share|publish-scan|cpu-profile-path|tls-\S*|redirect-warnings)(=|:|$)`

harmless_option(word) if {
	input.command.program in {"jest", "vitest", "npx"}
	regex.match(`^--(testRunner|runner)=(jest-circus.*|jest-jasmine2|node|threads|forks|vmThreads)$`, word)
}

harmless_option("--require-hashes")

harmless_option("--exec") if input.command.program == "ghc"

deny contains lib.denial("code.option", sprintf("%s names another program to run", [word]), "leave the setting to the repository") if {
	regex.match(concat("", ["(?m)", naming_option]), joined)
	running
	not client
	some word in input.command.argv
	regex.match(naming_option, word)
	not compiler_flag(word)
}

naming_option := `^-D(CMAKE_\w*(COMPILER|LINKER|LAUNCHER|PROGRAM|AR|RANLIB|TOOLCHAIN\w*)|exec|jvm|maven\.repo\.remote|java\.home|java\.rmi\S*|java\.security\S*|sun\S*|argLine|executable|script)(:\w+)?=|^-d(auto_|extension|zend_extension|disable_|open_basedir|allow_url)\S*|^-z$|^-Clinker|^-C$|^linker=|^(-J|-X)(javaagent|agent)\S*|^-XX:(HeapDumpPath|OnError|LogFile|Flags|ErrorFile|\+UnlockDiag)\S*|^-Xlog|^-Xloggc|^-Xbootclasspath|^-D(http|https|socks)\.?[pP]roxy|^-D\w*[uU]rl=|^-DshowPasswords|^-Dmaven\.compiler\.executable|^-O/|^-fplug\w*|^@.`

compiler_flag("-C") if not input.command.program in {"cargo", "rustc"}

# An argument file is a Java or compiler notion; elsewhere @x is a name.
compiler_flag(word) if {
	input.command.program == "rspec"
	startswith(word, "@")
}

compiler_flag(word) if {
	input.command.program in {"npm", "npx", "pnpm", "yarn"}
	startswith(word, "@")
}

compiler_flag("-C") if {
	some i, "-C" in input.command.argv
	not regex.match(`^(linker|link|ar|codegen)`, input.command.argv[i + 1])
}

# METADATA
# title: Argument files hide what is done
# custom:
#   rule: code.arguments
#   match: ["c++filt @/etc/shadow", "nm @x", "gcc @args a.c", "javac @/tmp/args"]
#   not_match: ["c++filt _Z1fv", "nm a.o", "npx @scope/lint ."]
deny contains lib.denial("code.arguments", sprintf("%s is a file of further words that nobody has seen", [word]), "write the words out") if {
	input.command.program in {"c++filt", "nm", "objdump", "readelf", "size", "strings", "ld", "ar", "gcc", "g++", "cc", "c++", "clang", "clang++", "javac", "java", "javadoc", "rustc", "msbuild", "dotnet", "csc"}
	some word in input.command.argv
	startswith(word, "@")
}
