// SPDX-License-Identifier: Apache-2.0

package diagnose

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// failing returns the record of a command that ended with code, with what the kernel saw
// of it: the programs that it started from the root file system, and events.
func failing(run string, code int, stdout, stderr, programs string, events ...proposal.Event) proposal.Record {
	o := &proposal.Observations{Complete: true, Programs: []proposal.Program{{Parent: -1, Path: "/usr/bin/bash", Name: "bash", Layer: proposal.LayerRootfs, Runs: 1}}, Notable: events}
	for _, name := range strings.Fields(programs) {
		p := proposal.Program{Path: "/usr/bin/" + name, Name: name, Layer: proposal.LayerRootfs, Runs: 1}
		if own, found := strings.CutPrefix(name, "own:"); found {
			p.Path, p.Name, p.Layer = "/workspace/"+own, own, proposal.LayerWorkspace
		}
		o.Programs = append(o.Programs, p)
	}
	r := proposal.Record{
		Proposal: proposal.Proposal{ID: "x", Run: run},
		Decision: proposal.Decision{Effect: proposal.Allow, Grant: &proposal.Grant{}},
		Result: &proposal.Result{Status: proposal.Exited, ExitCode: code, Observations: o,
			Stdout: proposal.Stream{Bytes: int64(len(stdout)), Head: []byte(stdout)}, Stderr: proposal.Stream{Bytes: int64(len(stderr)), Head: []byte(stderr)}},
	}
	for part := range strings.FieldsFuncSeq(run, func(r rune) bool { return r == ';' || r == '|' || r == '&' }) {
		if words := strings.Fields(part); len(words) > 0 {
			r.Analysis.Commands = append(r.Analysis.Commands, proposal.Command{Program: words[0]})
		}
	}
	return r
}

func connect(address, errno string) proposal.Event {
	return proposal.Event{Kind: proposal.EventConnect, Address: address, Errno: errno}
}

// asked is what the kernel sees of a name that a program looks up without a network.
func asked() proposal.Event {
	return proposal.Event{Kind: proposal.EventSend, Address: "udp 127.0.0.1:53", Errno: "ECONNREFUSED"}
}

// recorded reads a file of testdata: the real output of a real tool, run in an empty
// directory without a network.
func recorded(t *testing.T, name string) (run string, code int, stdout, stderr string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(data), "\n-- stdout --\n")
	stdout, stderr, found := strings.Cut("\n"+rest, "\n-- stderr --\n")
	line := strings.LastIndex(head, "\nexit ")
	if _, err := fmt.Sscanf(head[line+1:], "exit %d", &code); err != nil || !found {
		t.Fatalf("%s: %v", name, err)
	}
	return strings.TrimPrefix(head[:line], "$ "), code, strings.TrimPrefix(stdout, "\n"), stderr
}

// describe is the short form of a Cause in the tables.
func describe(c *proposal.Cause) string {
	if c == nil {
		return ""
	}
	return strings.Join(append([]string{c.Kind, c.Reason, c.Subject}, c.Config...), " | ")
}

const (
	// With the registry that adviseManifest reads.
	npm   = "dependencies | dependencies are not installed | %s | setup: auto | registries: [npm]"
	gomo  = "dependencies | dependencies are not installed | %s | setup: auto | registries: [go]"
	pypi  = "dependencies | dependencies are not installed | %s | setup: auto | registries: [pypi]"
	rust  = "dependencies | dependencies are not installed | %s | setup: auto | registries: [crates]"
	mvn   = "dependencies | dependencies are not installed | %s | setup: auto | registries: [maven]"
	gems  = "dependencies | dependencies are not installed | %s | setup: auto | registries: [rubygems]"
	nuget = "dependencies | dependencies are not installed | %s | setup: auto | registries: [nuget]"
	tool  = "tool | a tool is not installed | %[1]s"
	old   = "tool | the installed toolchain is too old | %s"
	wire  = "network | the sandbox has no network | %s"
	serv  = "service | a service is not running | %[1]s | services: [%[1]s]"
)

func is(format, subject string) string { return fmt.Sprintf(format, subject) }

func TestRecorded(t *testing.T) {
	const postgres, redis, mysql = "tcp 127.0.0.1:5432", "tcp 127.0.0.1:6379", "tcp 127.0.0.1:3306"
	tests := map[string]struct {
		programs string
		events   []proposal.Event
		want     string
	}{
		"go_test":            {"go", nil, is(gomo, "github.com/spf13/pflag")},
		"go_test_other_ok":   {"go own:b.test", nil, is(gomo, "github.com/spf13/pflag")},
		"go_test_mixed":      {"go own:b.test", nil, ""},
		"go_build":           {"go", nil, is(gomo, "github.com/spf13/pflag")},
		"go_vet":             {"go", nil, is(gomo, "github.com/spf13/pflag")},
		"go_tool":            {"go", nil, is(gomo, "golang.org/x/tools/cmd/stringer")},
		"go_missing_require": {"go", nil, ""},
		"go_own_missing":     {"go", nil, ""},
		"go_nogosum":         {"go", nil, ""},
		"go_compile":         {"go", nil, ""},
		"go_toolchain":       {"go", nil, is(old, "go 1.99")},
		"go_toolchain_auto":  {"go", nil, is(old, "go 1.99.0")},
		"go_dns":             {"go", []proposal.Event{asked()}, is(wire, "proxy.golang.org") + " | setup: auto | registries: [go]"},
		"go_get":             {"go git", []proposal.Event{asked()}, is(wire, "github.com")},
		"go_conn":            {"go own:d.test", []proposal.Event{connect(redis, "ECONNREFUSED")}, is(serv, "redis")},
		"cgo":                {"go", nil, ""},

		"npm_test":           {"npm node dash", nil, is(npm, "mocha")},
		"npm_build":          {"npm node dash", nil, is(npm, "tsc")},
		"npm_run_e":          {"npm node dash", nil, is(npm, "express")},
		"npm_ci_lock":        {"npm node", []proposal.Event{asked()}, is(wire, "registry.npmjs.org") + " | setup: auto | registries: [npm]"},
		"npm_engine":         {"npm node", nil, is(npm, "express")},
		"npm_typo":           {"npm node dash", nil, ""},
		"npm_fail":           {"npm node", nil, ""},
		"npx_offline":        {"npx node", []proposal.Event{asked()}, is(wire, "registry.npmjs.org") + " | setup: auto | registries: [npm]"},
		"yarn":               {"", nil, is(tool, "yarn")},
		"node_require":       {"node", nil, is(npm, "express")},
		"node_scoped":        {"node", nil, is(npm, "@scope/pkg")},
		"node_esm":           {"node", nil, is(npm, "express")},
		"node_own":           {"node", nil, ""},
		"node_esm_own":       {"node", nil, ""},
		"node_test":          {"node", nil, is(npm, "express")},
		"node_test_assert":   {"node", nil, ""},
		"node_test_mixed":    {"node", nil, ""},
		"node_dns":           {"node", []proposal.Event{asked()}, is(wire, "api.example.com")},
		"node_mysql":         {"node", []proposal.Event{connect(mysql, "EINPROGRESS")}, is(serv, "mysql")},
		"node_refused_other": {"node", []proposal.Event{connect("tcp 127.0.0.1:18080", "ECONNREFUSED")}, ""},
		"mocha_like":         {"npm node", []proposal.Event{connect(redis, "EINPROGRESS")}, is(serv, "redis")},

		"py_requests":           {"python3.11", nil, is(pypi, "pandas")},
		"py_import":             {"python3", nil, ""},
		"py_own":                {"python3", nil, ""},
		"py_sub":                {"python3", nil, is(pypi, "six")},
		"py_importerror":        {"python3", nil, ""},
		"py_unittest":           {"python3", nil, is(pypi, "numpy")},
		"py_unittest2":          {"python3", nil, is(pypi, "numpy")},
		"py_m_missing":          {"python3", nil, is(pypi, "nox")},
		"python_m_pytest":       {"python3", nil, is(pypi, "pytest")},
		"py_resolver":           {"python3", []proposal.Event{asked()}, is(wire, "")},
		"py_refused":            {"python3", []proposal.Event{connect(redis, "ECONNREFUSED")}, is(serv, "redis")},
		"pytest_requests":       {"pytest python3", nil, is(pypi, "pandas")},
		"pytest_requests_mixed": {"pytest python3", nil, ""},
		"pytest_collect":        {"pytest python3", nil, ""},
		"pytest_mixed":          {"pytest python3", nil, ""},
		"pytest_conftest":       {"pytest python3", nil, ""},
		"pytest_assert":         {"pytest python3", nil, ""},
		"pytest_net":            {"pytest python3", []proposal.Event{asked()}, is(wire, "")},
		"pip_pep668":            {"pip python3", nil, "dependencies | pip needs a virtual environment |  | setup: auto | registries: [pypi]"},

		"cargo_test":        {"cargo", nil, is(rust, "serde")},
		"cargo_locked":      {"cargo", nil, is(rust, "serde")},
		"cargo_online":      {"cargo", []proposal.Event{asked()}, is(wire, "index.crates.io") + " | setup: auto | registries: [crates]"},
		"cargo_rustversion": {"cargo", nil, is(old, "rustc 1.199")},
		"cargo_subcommand":  {"cargo", nil, is(tool, "cargo-nextest")},
		"cargo_fail":        {"cargo own:demo-b37ab8512a90f0b3", nil, ""},
		"mvn_offline":       {"mvn java", nil, is(mvn, "org.apache.maven.plugins:maven-resources-plugin:jar:2.6")},
		"mvn_online":        {"mvn java", []proposal.Event{asked()}, is(wire, "repo.maven.apache.org") + " | setup: auto | registries: [maven]"},

		"bash_127":       {"", nil, is(tool, "shellcheck2")},
		"sh_127":         {"dash", nil, is(tool, "golangci-lint")},
		"script_127":     {"dash", nil, is(tool, "jq2")},
		"bash_path":      {"", nil, ""},
		"bash_pipe":      {"cat", nil, is(tool, "foo3")},
		"env_127":        {"env", nil, is(tool, "ruby")},
		"make_tool":      {"make", nil, is(tool, "protoc")},
		"make_tool_only": {"make", nil, ""},
		"curl_dns":       {"curl", []proposal.Event{asked()}, is(wire, "api.example.com")},
		"git_dns":        {"git", []proposal.Event{asked()}, is(wire, "github.com")},
		"wget_dns":       {"wget", []proposal.Event{asked()}, is(wire, "api.example.com")},
		"psql_refused":   {"psql", []proposal.Event{connect(postgres, "EINPROGRESS")}, is(serv, "postgres")},
		"psql_sock":      {"psql", []proposal.Event{connect("unix /var/run/postgresql/.s.PGSQL.5432", "ENOENT")}, is(serv, "postgres")},
	}
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) != len(tests) {
		t.Errorf("%d files of output, %d tests: %v", len(files), len(tests), err)
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			run, code, stdout, stderr := recorded(t, name)
			r := failing(run, code, stdout, stderr, tt.programs, tt.events...)
			cause := causeOf(r, nil)
			if got := describe(cause); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if cause != nil {
				checkEvidence(t, r, cause)
			}
			checkSubject(t, tt.want, run+"\n"+stdout+stderr, tt.events)
			r.Result.ExitCode = 0
			if cause := causeOf(r, nil); cause != nil || code == 0 {
				t.Errorf("exit %d; with exit 0: %s", code, describe(cause))
			}
		})
	}
}

// checkSubject is a second opinion on the table: the subject of a cause is in what the tool
// printed, and a service is one that the tool names or whose port it names or called.
func checkSubject(t *testing.T, want, printed string, events []proposal.Event) {
	t.Helper()
	parts := strings.Split(want, " | ")
	if len(parts) < 3 {
		return
	}
	for _, event := range events {
		printed += "\n" + event.Address
	}
	subject := parts[2]
	if port := map[string]string{"redis": "6379", "postgres": "5432", "mysql": "3306"}[subject]; parts[0] == causeService && !strings.Contains(printed, port) {
		t.Errorf("the port of %s is not in\n%s", subject, printed)
	}
	for _, word := range strings.Fields(subject) {
		if parts[0] != causeService && !strings.Contains(printed, word) {
			t.Errorf("%q is not in\n%s", word, printed)
		}
	}
}

// checkEvidence takes away from r, one at a time, what a Cause needs.
func checkEvidence(t *testing.T, r proposal.Record, cause *proposal.Cause) {
	t.Helper()
	if cause.Evidence == "" || len(cause.Evidence) > MaxEvidence || len(cause.Config) == 0 && cause.Advice == "" {
		t.Errorf("evidence %q, config %q, advice %q", cause.Evidence, cause.Config, cause.Advice)
	}
	for what, change := range map[string]func(*proposal.Result, *proposal.Observations){
		"no record":         func(res *proposal.Result, _ *proposal.Observations) { res.Observations = nil },
		"an incomplete one": func(_ *proposal.Result, o *proposal.Observations) { o.Complete = false },
		"a refused program": func(_ *proposal.Result, o *proposal.Observations) { o.Counts.Refused = 1 },
		"success":           func(res *proposal.Result, _ *proposal.Observations) { res.ExitCode = 0 },
		"a limit":           func(res *proposal.Result, _ *proposal.Observations) { res.Status = proposal.OutOfMemory },
		"a signal":          func(res *proposal.Result, _ *proposal.Observations) { res.Status = proposal.Signaled },
		"no output": func(res *proposal.Result, _ *proposal.Observations) {
			res.Stdout, res.Stderr = proposal.Stream{}, proposal.Stream{}
		},
		"a failed assertion": func(res *proposal.Result, _ *proposal.Observations) { add(&res.Stdout, "\nAssertionError: 1 != 2\n") },
		"a failed test": func(res *proposal.Result, _ *proposal.Observations) {
			add(&res.Stdout, "\n        x_test.go:7: got 1, want 2\n")
		},
		"more failures":       func(res *proposal.Result, _ *proposal.Observations) { add(&res.Stdout, "\n57 failed, 3 passed\n") },
		"no program, no call": func(_ *proposal.Result, o *proposal.Observations) { o.Programs, o.Notable = nil, nil },
	} {
		if what == "no program, no call" && r.Result.ExitCode == 127 {
			continue // that it was not started is the evidence
		}
		changed, res, o := r, *r.Result, *r.Result.Observations
		res.Observations, changed.Result = &o, &res
		change(&res, &o)
		if c := causeOf(changed, nil); c != nil {
			t.Errorf("%s: got %s", what, describe(c))
		}
	}
	if cause.Kind == causeNetwork || cause.Kind == causeService {
		changed, res, o := r, *r.Result, *r.Result.Observations
		res.Observations, changed.Result, o.Notable = &o, &res, nil
		if c := causeOf(changed, nil); c != nil {
			t.Errorf("no connection was tried: got %s", describe(c))
		}
	}
}

func add(s *proposal.Stream, text string) {
	s.Head = append(slices.Clone(s.Head), text...)
	s.Bytes = int64(len(s.Head))
}

// TestWritten has messages of tools that are not on every machine, and look-alikes.
func TestWritten(t *testing.T) {
	redis, dns := connect("tcp 127.0.0.1:6379", "ECONNREFUSED"), asked()
	tests := []struct {
		name, run      string
		code           int
		output         string
		programs, want string
		events         []proposal.Event
	}{
		{"pnpm", "pnpm test", 1, "sh: 1: vitest: not found\n ELIFECYCLE  Test failed. See above for more details.\n WARN   Local package.json exists, but node_modules missing, did you mean to install?\n", "pnpm node dash", is(npm, "vitest"), nil},
		{"yarn 1", "yarn test", 127, "$ jest\n/bin/sh: 1: jest: not found\nerror Command failed with exit code 127.\n", "yarn node dash", is(npm, "jest"), nil},
		{"yarn 4", "yarn test", 1, "Usage Error: The project in /workspace/package.json doesn't seem to have been installed - running an install there might help\n", "yarn node", is(npm, ""), nil},
		{"yarn 4 script", "yarn test", 127, "command not found: jest\n", "yarn node", is(npm, "jest"), nil},
		{"jest", "npx jest", 1, "FAIL src/a.test.js\n  ● Test suite failed to run\n\n    Cannot find module 'lodash' from 'src/a.js'\n\nTests:       0 total\n", "npx node", is(npm, "lodash"), nil},
		{"jest and another", "npx jest", 1, "    Cannot find module 'lodash' from 'src/a.js'\n    Cannot find module './b' from 'src/a.js'\n", "npx node", "", nil},
		{"jest, failed", "npx jest", 1, "    Cannot find module 'lodash' from 'src/a.js'\nTests:       2 failed, 3 total\n", "npx node", "", nil},
		{"npm 6", "npm ci", 1, "npm ERR! code ENOTFOUND\nnpm ERR! network request to https://registry.npmjs.org/x failed, reason: getaddrinfo ENOTFOUND registry.npmjs.org\n", "npm node", is(wire, "registry.npmjs.org") + " | setup: auto | registries: [npm]", []proposal.Event{dns}},
		{"bundler", "bundle exec rspec", 7, "Could not find rake-13.0.6 in locally installed gems (Bundler::GemNotFound)\nRun `bundle install` to install missing gems.\n", "bundle ruby3.1", is(gems, "rake-13.0.6"), nil},
		{"bundler 1", "bundle exec rake", 7, "Could not find gem 'rspec (~> 3.0)' in any of the sources\nRun `bundle install` to install missing gems.\n", "bundle ruby", is(gems, "rspec"), nil},
		{"bundler, command", "bundle exec rspec", 127, "bundler: command not found: rspec\nInstall missing gem executables with `bundle install`\n", "bundle ruby", is(gems, "rspec"), nil},
		{"gradle", "gradle --offline test", 1, "* What went wrong:\nCould not resolve all files for configuration ':testCompileClasspath'.\n> No cached version of junit:junit:4.13.2 available for offline mode.\n", "gradle java", is(mvn, "junit:junit:4.13.2"), nil},
		{"gradle wrapper", "./gradlew test", 1, "Exception in thread \"main\" java.net.UnknownHostException: services.gradle.org\n", "java own:gradlew", is(wire, "services.gradle.org") + " | setup: auto | registries: [gradle]", []proposal.Event{dns}},
		{"dotnet", "dotnet test", 1, "/workspace/app.csproj : error NU1301: Unable to load the service index for source https://api.nuget.org/v3/index.json.\n/workspace/app.csproj : error NU1301:   Name or service not known (api.nuget.org:443)\n", "dotnet", is(wire, "api.nuget.org") + " | setup: auto | registries: [nuget]", []proposal.Event{dns}},
		{"dotnet, not restored", "dotnet test --no-restore", 1, "/usr/share/dotnet/sdk/9.0.100/Sdks/Microsoft.NET.Sdk/targets/Microsoft.PackageDependencyResolution.targets(266,5): error NETSDK1004: Assets file '/workspace/obj/project.assets.json' not found. Run a NuGet package restore to generate this file. [/workspace/app.csproj]\n", "dotnet", is(nuget, ""), nil},
		{"mix", "mix test", 1, "Unchecked dependencies for environment test:\n* jason (Hex package)\n  the dependency is not available, run \"mix deps.get\"\n** (Mix) Can't continue due to errors on dependencies\n", "mix erl", "dependencies | dependencies are not installed |  | setup: auto | registries: [hex]", nil},
		{"hex", "mix deps.get", 1, "Failed to fetch record for jason from registry (using cache instead)\n{:failed_connect, [{:to_address, {~c\"repo.hex.pm\", 443}}, {:inet, [:inet], :nxdomain}]}\n", "mix erl", is(wire, "repo.hex.pm") + " | setup: auto | registries: [hex]", []proposal.Event{dns}},
		{"dart", "dart test", 1, "Error: Couldn't resolve the package 'test' in 'package:test/test.dart'.\n", "dart", "dependencies | dependencies are not installed | test | setup: auto | registries: [pub]", nil},
		{"pub", "dart pub get", 69, "Got socket error trying to find package http at https://pub.dev.\nFailed host lookup: 'pub.dev' (OS Error: Temporary failure in name resolution, errno = -3)\n", "dart", is(wire, "pub.dev") + " | setup: auto | registries: [pub]", []proposal.Event{dns}},
		{"deno", "deno test", 1, "error: JSR package manifest for '@std/path' failed to load. Import 'https://jsr.io/@std/path/meta.json' failed: error sending request for url (https://jsr.io/@std/path/meta.json): client error (Connect): dns error: failed to lookup address information: Temporary failure in name resolution\n", "deno", is(wire, "jsr.io") + " | setup: auto | registries: [jsr]", []proposal.Event{dns}},
		{"conda", "conda env create", 1, "NameResolutionError(\"HTTPSConnection(host='conda.anaconda.org', port=443): Failed to resolve 'conda.anaconda.org' ([Errno -3] Temporary failure in name resolution)\")\n", "conda python3", is(wire, "conda.anaconda.org") + " | setup: auto | registries: [conda]", []proposal.Event{dns}},
		{"a release", "./download.sh", 6, "curl: (6) Could not resolve host: release-assets.githubusercontent.com\n", "curl own:download.sh", is(wire, "release-assets.githubusercontent.com"), []proposal.Event{dns}},
		{"swift", "swift build", 1, "error: Failed to clone repository https://github.com/apple/swift-log.git:\nfatal: unable to access 'https://github.com/apple/swift-log.git/': Could not resolve host: github.com\n", "swift git", is(wire, "github.com"), []proposal.Event{dns}},
		{"composer", "php vendor/bin/phpunit", 255, "PHP Fatal error:  Uncaught Error: Failed opening required '/workspace/vendor/autoload.php' (include_path='.:/usr/share/php')\n", "php8.2", "dependencies | dependencies are not installed | vendor/autoload.php | setup: auto | registries: [packagist]", nil},
		{"phpunit", "phpunit", 1, "You need to set up the project dependencies using Composer:\n\n    composer install\n", "php", "dependencies | dependencies are not installed |  | setup: auto | registries: [packagist]", nil},
		{"pytest alone", "pytest -q", 127, "bash: line 1: pytest: command not found\n", "", is(pypi, "pytest"), nil},
		{"rustup", "cargo test", 1, "error: toolchain '1.42.0-x86_64-unknown-linux-gnu' is not installed\n", "cargo", is(old, "rust 1.42.0-x86_64-unknown-linux-gnu"), nil},
		{"java", "mvn -q test", 1, "[ERROR] Fatal error compiling: error: release version 21 not supported -> [Help 1]\n", "mvn java", is(old, "java 21"), nil},
		{"redis-cli", "redis-cli ping", 1, "Could not connect to Redis at 127.0.0.1:6379: Connection refused\n", "redis-cli", is(serv, "redis"), []proposal.Event{redis}},
		{"redis-py", "python3 x.py", 1, "redis.exceptions.ConnectionError: Error 111 connecting to localhost:6379. Connection refused.\n", "python3", is(serv, "redis"), []proposal.Event{redis}},
		{"mongo", "node x.js", 1, "MongoServerSelectionError: connect ECONNREFUSED 127.0.0.1:27017\n", "node", "service | a service is not running | mongodb", []proposal.Event{connect("tcp 127.0.0.1:27017", "EINPROGRESS")}},
		{"mysql socket", "mysql -e 'select 1'", 1, "ERROR 2002 (HY000): Can't connect to local MySQL server through socket '/var/run/mysqld/mysqld.sock' (2)\n", "mysql", is(serv, "mysql"), []proposal.Event{connect("unix /var/run/mysqld/mysqld.sock", "ENOENT")}},
		{"a host of a compose file", "node x.js", 1, "Error: getaddrinfo ENOTFOUND postgres\n", "node", is(serv, "postgres"), []proposal.Event{dns}},
		{"psycopg", "pytest", 1, "E   psycopg2.OperationalError: connection to server at \"localhost\" (127.0.0.1), port 5432 failed: Connection refused\n1 failed in 0.2s\n", "pytest python3", is(serv, "postgres"), []proposal.Event{connect("tcp 127.0.0.1:5432", "ECONNREFUSED")}},
		{"raw address", "python3 x.py", 1, "OSError: [Errno 101] Network is unreachable\n", "python3", is(wire, ""), []proposal.Event{connect("tcp 192.0.2.1:80", "ENETUNREACH")}},

		{"a recursive make", "make all", 2, "/bin/sh: 1: protoc: not found\nmake[1]: *** [Makefile:2: gen] Error 127\nmake: *** [Makefile:4: all] Error 2\n", "make dash", is(tool, "protoc"), nil},
		{"spec reporter", "npm test", 1, "✖ connects (5.1ms)\n  Error: connect ECONNREFUSED 127.0.0.1:6379\nℹ fail 1\n✖ failing tests:\n✖ connects (5.1ms)\n  Error: connect ECONNREFUSED 127.0.0.1:6379\n", "npm node", is(serv, "redis"), []proposal.Event{redis}},

		{"a warning before a failure", "npm test", 1, "sh: 1: git-lfs: not found\nweb: 3 differ\n", "npm node dash", "", nil},
		{"make, another target", "make -k", 2, "make: protoc: No such file or directory\nmake: *** [Makefile:2: gen] Error 127\nmake: *** [Makefile:4: test] Error 1\n", "make", "", nil},
		{"a shell suite", "sh test.sh", 1, "FAIL: parses dates\nFAIL: parses times\ncurl: (6) Could not resolve host: api.example.com\n", "dash curl", "", []proposal.Event{dns}},
		{"testify", "go test ./...", 1, "--- FAIL: TestX (0.00s)\n    x_test.go:12: \n        \tError Trace:\tx_test.go:12\ndial tcp: lookup api.example.com: no such host\n", "go", "", []proposal.Event{dns}},
		{"jest expects", "npx jest", 1, "    expect(received).toBe(expected)\n    getaddrinfo ENOTFOUND api.example.com\n", "npx node", "", []proposal.Event{dns}},
		{"rspec", "bundle exec rspec", 1, "     Failure/Error: expect(x).to eq 1\nConnection refused - connect(2) for 127.0.0.1:6379\n", "bundle ruby", "", []proposal.Event{redis}},
		{"junit", "mvn test", 1, "org.opentest4j.AssertionFailedError: expected 1\nUnknown host repo.maven.apache.org\n", "mvn java", "", []proposal.Event{dns}},
		{"a word that is a folder, too", "python3 x.py", 1, "ModuleNotFoundError: No module named 'build'\n", "python3", "", nil},
		{"an assertion about a path", "node t.js", 1, "AssertionError [ERR_ASSERTION]: Cannot find module './missing'\n", "node", "", nil},
		{"an assertion about a package", "node t.js", 1, "expected \"Cannot find module 'express'\" to equal \"\"\nRequire stack:\n", "node", "", nil},
		{"printed by a program of the pull request", "./run.sh", 127, "sh: 1: mocha: not found\n", "own:run.sh own:mocha", "", nil},
		{"printed, and the tool ran", "npm test", 1, "sh: 1: mocha: not found\n", "npm node mocha", "", nil},
		{"printed, no runner", "./t", 1, "sh: 1: mocha: not found\n", "own:t", "", nil},
		{"an npm of the pull request", "./npm test", 1, "sh: 1: mocha: not found\n", "own:npm", "", nil},
		{"a go of the pull request", "./go test", 1, "a.go:3:8: module lookup disabled by GOPROXY=off\n", "own:go", "", nil},
		{"an alias of a bundler", "node x.js", 1, "Error: Cannot find module '@/store'\nRequire stack:\n", "node", "", nil},
		{"a folder of the project", "node x.js", 1, "Error: Cannot find module 'src/store'\nRequire stack:\n", "node", "", nil},
		{"types alone", "npx tsc", 2, "src/a.ts(1,21): error TS2307: Cannot find module 'express' or its corresponding type declarations.\n", "npx node", "", nil},
		{"a server of its own", "node t.js", 1, "Error: connect ECONNREFUSED 127.0.0.1:6379\n", "node", "", []proposal.Event{{Kind: proposal.EventListen, Address: "tcp 127.0.0.1:6379"}, redis}},
		{"a port of its own", "node t.js", 1, "Error: connect ECONNREFUSED 127.0.0.1:3000\n", "node", "", []proposal.Event{connect("tcp 127.0.0.1:3000", "ECONNREFUSED")}},
		{"only says so", "./t", 1, "curl: (6) Could not resolve host: api.example.com\n", "own:t", "", nil},
		{"localhost", "curl http://localhost:8080", 7, "curl: (6) Could not resolve host: localhost\n", "curl", "", []proposal.Event{dns}},
		{"a missing script", "bash scripts/missing.sh", 127, "bash: scripts/missing.sh: No such file or directory\n", "bash", "", nil},
		{"an offline word", "cargo test", 101, "error: no matching package named `serde` found\nlocation searched: crates.io index\n", "cargo", "", nil},
		{"compile error beside it", "make", 2, "make: protoc: No such file or directory\nmain.c:3:1: error: expected ';'\nmake: *** [Makefile:2: gen] Error 127\n", "make gcc", "", nil},
		{"nothing printed", "false", 1, "", "", "", nil},
		{"an own module of Python", "python3 -m mytool", 1, "/usr/bin/python3: No module named mytool\n", "python3", "", nil},
		{"one known, one own module", "pytest", 2, "E   ModuleNotFoundError: No module named 'pandas'\nE   ModuleNotFoundError: No module named 'ours'\n2 errors in 0.1s\n", "pytest python3", "", nil},
		{"a race", "go test -race ./...", 1, "a.go:3:8: module lookup disabled by GOPROXY=off\nWARNING: DATA RACE\n", "go", "", nil},
		{"a version in a test", "go test", 1, "--- FAIL: TestX\n    go: go.mod requires go >= 1.99 (running go 1.26)\n", "go", "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := failing(tt.run, tt.code, "", tt.output, tt.programs, tt.events...)
			cause := causeOf(r, nil)
			if got := describe(cause); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if cause != nil {
				checkEvidence(t, r, cause)
			}
		})
	}
}

func TestRecords(t *testing.T) {
	missing := failing("npm test", 127, "", "sh: 1: mocha: not found\n", "npm node")
	missing.Proposal.ID = "test"
	install := failing("npm ci", 0, "", "", "npm node")
	install.Proposal.ID, install.Proposal.Phase = "setup", proposal.PhaseSetup
	install.Decision.Grant = &proposal.Grant{Network: []string{"registry:npm"}}
	needs := proposal.Record{Proposal: proposal.Proposal{ID: "next", Needs: []string{"test"}}, Decision: missing.Decision,
		Result: &proposal.Result{Status: proposal.NotRun, ExitCode: -1, Detail: `it needs "test", which did not succeed`}}
	third := needs
	third.Proposal = proposal.Proposal{ID: "third", Needs: []string{"next"}}
	red := failing("false", 1, "", "", "")
	red.Proposal.ID = "red"
	both := needs
	both.Proposal = proposal.Proposal{ID: "both", Needs: []string{"test", "red"}}
	waits := proposal.Record{Proposal: proposal.Proposal{ID: "waits"}, Decision: proposal.Decision{Effect: proposal.Ask}}
	approval := needs
	approval.Proposal = proposal.Proposal{ID: "then", Needs: []string{"waits"}}
	mixed := needs
	mixed.Proposal = proposal.Proposal{ID: "mixed", Needs: []string{"waits", "red"}}
	reproduced := failing("false", 1, "", "", "")
	reproduced.Proposal.ID, reproduced.Proposal.Expect = "repro", "fails"
	beside := needs
	beside.Proposal = proposal.Proposal{ID: "beside", Needs: []string{"repro", "waits"}}
	spent := needs
	spent.Result = &proposal.Result{Status: proposal.NotRun, Detail: "the run's budget of 20m0s was spent"}
	forged := failing("true", 0, "", "", "")
	forged.Cause = &proposal.Cause{Kind: causeTool}

	kinds := func(records ...proposal.Record) (list []string) {
		for _, r := range DiagnoseRecords(records, nil) {
			list = append(list, describe(r.Cause))
			if r.Cause != nil {
				list[len(list)-1] = r.Cause.Kind + r.Cause.After
			}
		}
		return list
	}
	for _, tt := range []struct {
		name      string
		got, want []string
	}{
		{"what needs it", kinds(missing, needs, third), []string{"dependencies", "dependenciestest", "dependenciesnext"}},
		{"what needs something that failed, too", kinds(missing, red, both), []string{"dependencies", "", ""}},
		{"what waits for approval", kinds(waits, approval), []string{"", "approvalwaits"}},
		{"what waits, and what failed", kinds(waits, red, mixed), []string{"", "", ""}},
		{"what waits, and what failed as expected", kinds(reproduced, waits, beside), []string{"", "", "approvalwaits"}},
		{"another reason not to run", kinds(missing, spent), []string{"dependencies", ""}},
		{"dependencies are installed", kinds(install, missing, needs), []string{"", "", ""}},
		{"given in the report", kinds(forged), []string{""}},
	} {
		if diff := cmp.Diff(tt.want, tt.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	if missing.Cause != nil {
		t.Error("the caller's records were changed")
	}
}

// A set-up command has a Cause however it fails, and what it should have installed is
// missing for that reason.
func TestSetup(t *testing.T) {
	step := func(id string, code int, stderr, registry string) proposal.Record {
		r := failing(id, code, "", stderr, "npm node")
		r.Proposal.ID, r.Proposal.Phase, r.Proposal.Origin = id, proposal.PhaseSetup, proposal.OriginSetup
		r.Proposal.Network = []string{"registry:" + registry}
		r.Decision.Grant = &proposal.Grant{Network: r.Proposal.Network}
		return r
	}
	lock := step("install", 1, "npm warn x\nnpm error code EUSAGE\nnpm error\nnpm error Missing: a@1.0.0 from lock file\nnpm error A complete log of this run can be found in: /x\n", "npm")
	cut := step("install", -1, "fetching\nlinking\n", "npm")
	cut.Result.Status, cut.Result.Limit = proposal.TimedOut, "wall"
	old := step("install", 1, "go: go.mod requires go >= 1.99 (running go 1.26; GOTOOLCHAIN=local)\n", "go")
	old.Result.Observations.Programs[1].Name, old.Result.Observations.Programs[1].Path = "go", "/usr/bin/go"
	proposed := lock
	proposed.Proposal.Origin = ""
	manager := step("manager", 0, "", "npm")
	test := failing("npm test", 127, "", "sh: 1: mocha: not found\n", "npm node")
	red := failing("npm test", 1, "1 failing\nAssertionError: 1 == 2\n", "", "npm node")
	broken := lock
	broken.Base = &proposal.Comparison{Verdict: proposal.BasePasses}
	refused := step("install", 1, "npm error 403\n", "npm")
	refused.Result.Observations.Counts.NetRefused, refused.Base = 1, broken.Base
	lost := step("install", 1, "ERROR: Could not find a version that satisfies the requirement six\n", "npm")
	lost.Result.Observations.Network, lost.Base = []proposal.Reach{{Kind: proposal.EventLookup, Name: "pypi.org", Code: "unresolved"}}, broken.Base
	flaky := step("install", 1, "npm error network\n", "npm")
	flaky.Result.Observations.Network, flaky.Base = []proposal.Reach{{Kind: proposal.EventConnection, Name: "cdn.example", Code: "timeout"}}, broken.Base
	get, deps, pnpm := lost, step("pnpm install", 0, "", "npm"), failing("pnpm test", 127, "", "bash: line 1: pnpm: command not found\n", "bash")
	get.Base, deps.Analysis.Commands = nil, []proposal.Command{{Program: "pnpm"}}
	deps.Proposal.Needs, deps.Result = []string{"install"}, &proposal.Result{Status: proposal.NotRun, Detail: `it needs "install", which did not succeed`}
	const fix, host = "dependencies | set-up could not install the dependencies | ", "network | a host cannot be reached | pypi.org"
	for name, tt := range map[string]struct {
		records []proposal.Record
		want    []string
		says    string
	}{
		"its lock file is stale":                {[]proposal.Record{lock, test}, []string{fix + " | ", fix + "mocha | "}, "npm error Missing: a@1.0.0 from lock file"},
		"another step succeeded":                {[]proposal.Record{manager, lock, test}, []string{"", fix + " | ", fix + "mocha | "}, ""},
		"it reached a limit":                    {[]proposal.Record{cut, test}, []string{fix + " | ", fix + "mocha | "}, "linking"},
		"the toolchain is too old":              {[]proposal.Record{old}, []string{"tool | the installed toolchain is too old | go 1.99"}, ""},
		"a test that failed for another reason": {[]proposal.Record{lock, red}, []string{fix + " | ", ""}, ""},
		"it succeeds on the base":               {[]proposal.Record{broken, test, red}, []string{"", "", ""}, ""},
		"a host was refused":                    {[]proposal.Record{refused, test}, []string{fix + " | ", fix + "mocha | "}, ""},
		"a registry does not answer":            {[]proposal.Record{lost, test}, []string{host, host}, "ERROR: Could not find a version that satisfies the requirement six"},
		"set-up could not fetch the tool":       {[]proposal.Record{get, deps, pnpm}, []string{host, host, host}, ""},
		"another host does not answer":          {[]proposal.Record{flaky, test}, []string{fix + " | ", fix + "mocha | "}, ""},
		"a proposal that calls itself set-up":   {[]proposal.Record{proposed}, []string{""}, ""},
	} {
		got := DiagnoseRecords(tt.records, nil)
		for i, r := range got {
			want := tt.want[i]
			if d := describe(r.Cause); want == "" && r.Cause != nil || !strings.HasPrefix(d, strings.TrimSuffix(want, " | ")) {
				t.Errorf("%s: %d: %q, want %q", name, i, d, want)
			}
			if r.Cause != nil && strings.HasPrefix(want, fix) && (r.Cause.Advice != setupAdvice || r.Cause.Config != nil) {
				t.Errorf("%s: %d: %+v", name, i, r.Cause)
			}
		}
		if tt.says != "" && got[0].Cause.Evidence != tt.says {
			t.Errorf("%s: it says %q, want %q", name, got[0].Cause.Evidence, tt.says)
		}
	}
}

// A release asset of GitHub that set-up was refused is offered by the name of its registry; what is not
// about a release is not, and neither is what set-up may read.
func TestReleasesAdvice(t *testing.T) {
	install := failing("npm ci", 1, "", "npm error prebuild-install warn install request to https://github.com/a/b/releases/download/v1/x.tgz failed\n", "npm node")
	install.Proposal.Phase, install.Proposal.Origin, install.Proposal.Network = proposal.PhaseSetup, proposal.OriginSetup, []string{"registry:npm"}
	install.Result.Observations.Network = []proposal.Reach{{Kind: proposal.EventLookup, Name: "github.com", Refused: true, Code: "policy"}}
	git := failing("git fetch", 128, "", "fatal: unable to access 'https://github.com/a/b/': Could not resolve host: github.com\n", "git", asked())
	release := failing("make", 6, "", "curl: (6) Could not resolve host: objects.githubusercontent.com\n", "make curl", asked())
	allowed := install
	allowed.Proposal.Network = []string{"registry:npm", "registry:github-releases"}
	for name, tt := range map[string]struct {
		record proposal.Record
		want   bool
	}{"set-up": {install, true}, "git": {git, false}, "a release": {release, true}, "set-up that may read them": {allowed, false}} {
		got := DiagnoseRecords([]proposal.Record{tt.record}, nil)[0].Cause
		if got == nil || strings.Contains(got.Advice, "[npm, github-releases]") != tt.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// The advice about packages says what to write, not what is the default. Package setup's tests follow it.
func TestManifestAdvice(t *testing.T) {
	for name, r := range map[string]proposal.Record{
		"`requirements.txt` names":  failing("pytest -q", 127, "", "bash: line 1: pytest: command not found\n", ""),
		"registries` without `npm`": failing("npm test", 127, "", "sh: 1: mocha: not found\n", "npm node"),
		"python3 -m venv":           failing("pip install x", 1, "", "error: externally-managed-environment\n", "pip python3"),
		"`composer.json` names":     failing("phpunit", 1, "", "You need to set up the project dependencies using Composer:\n\n    composer install\n", "php"),
	} {
		for _, c := range []*proposal.Cause{CauseOf(r, nil), DiagnoseRecords([]proposal.Record{r}, nil)[0].Cause} {
			if c == nil || c.Config != nil || !strings.Contains(c.Advice, name) {
				t.Errorf("%s: %+v", name, c)
			}
		}
	}
}

// TestPartial checks that only a missing program is found in output with a gap.
func TestPartial(t *testing.T) {
	for want, r := range map[string]proposal.Record{
		"tool": failing("shfmt .", 127, "", "bash: line 1: shfmt: command not found\n", ""),
		"":     failing("go vet ./...", 1, "", "a.go:3:8: module lookup disabled by GOPROXY=off\n", "go"),
	} {
		r.Result.Stdout = proposal.Stream{Bytes: 1 << 30, Head: []byte("a\n"), Tail: []byte("b\n"), Truncated: true}
		got := ""
		if c := CauseOf(r, nil); c != nil {
			got = c.Kind
		}
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// The gateway's record is evidence, too.
func TestGateway(t *testing.T) {
	r := failing("pip download six", 1, "", "ERROR: Could not resolve host: pypi.org\n", "pip")
	r.Decision.Grant.Network = []string{"registry:npm"}
	if c := CauseOf(r, nil); c != nil {
		t.Errorf("nothing was tried: %s", describe(c))
	}
	r.Result.Observations.Network = []proposal.Reach{{Kind: proposal.EventLookup, Name: "pypi.org", Refused: true}}
	if c := CauseOf(r, nil); c == nil || c.Reason != noHost || c.Subject != "pypi.org" {
		t.Errorf("got %s", describe(c))
	}
	for code, advice := range map[string]string{"unresolved": "its name was not found", "timeout": "it did not answer", "": ""} {
		r.Result.Observations.Network[0] = proposal.Reach{Kind: proposal.EventLookup, Name: "pypi.org", Code: code, Refused: code == ""}
		if c := CauseOf(r, nil); c == nil || !strings.Contains(c.Advice, advice) || strings.Contains(c.Advice, "requirements.txt") != (code == "") {
			t.Errorf("%q: %+v", code, c)
		}
	}
	r.Result.Observations.Network[0].Name = "other.example"
	if c := CauseOf(r, nil); c != nil {
		t.Errorf("another host was refused: %s", describe(c))
	}
}

// TestLongOutput checks that hostile output of any size is read in bounded time.
func TestLongOutput(t *testing.T) {
	for _, line := range []string{"Error: Cannot find module 'express'\n", strings.Repeat("a.go:1:1: module lookup (", 80) + "\n", strings.Repeat("Error: ", 300), "x\n", "bash: line 1: a: command not found\n"} {
		text := strings.Repeat(line, 2<<20/len(line))
		r := failing("npm test", 1, text, text, "npm node go python3")
		start := time.Now()
		if c := CauseOf(r, nil); c != nil {
			t.Errorf("%.40q: %s", line, describe(c))
		}
		if d := time.Since(start); d > 20*time.Second {
			t.Errorf("%.40q took %s", line, d)
		} else {
			t.Logf("%.40q: %s", line, d)
		}
	}
}

func FuzzOf(f *testing.F) {
	f.Add("npm test", "sh: 1: mocha: not found\n", "npm node", 127)
	f.Fuzz(func(t *testing.T, run, output, programs string, code int) {
		c := CauseOf(failing(run, code, output, output, programs, asked(), connect("tcp 127.0.0.1:6379", "ECONNREFUSED")), nil)
		if c == nil {
			return
		}
		if code == 0 || len(c.Subject) > MaxEvidence || len(c.Evidence) > MaxEvidence || c.Reason == "" {
			t.Errorf("%d: %+v", code, c)
		}
	})
}

// A service that did not start is a cause with the fix, and the commands that miss it name
// it instead of the configuration.
func TestServiceDidNotStart(t *testing.T) {
	start := func(code int, output string) proposal.Record {
		r := failing("redis-server --port 6379", code, output, "", "")
		r.Proposal.ID, r.Proposal.Origin = "service-redis-new", proposal.OriginService
		return r
	}
	client := failing("./client", 1, "", "Error: connect ECONNREFUSED 127.0.0.1:6379\n", "node", connect("tcp 127.0.0.1:6379", "ECONNREFUSED"))
	proposed := start(127, "")
	proposed.Proposal.Origin = ""
	killed := start(1, "")
	killed.Result.Status = proposal.TimedOut
	tests := map[string]struct {
		service  proposal.Record
		want     string // of the service: reason, evidence, advice
		wantNext string // advice of the command after it
	}{
		"not installed": {start(127, "redis-server: command not found\n"), "a service did not start | redis-server: command not found | The server is not installed on the host. Install it before fumehood runs: `sudo apt-get install redis-server`.", "The command `service-redis` did not start it."},
		"failed":        {start(1, "starting\n  bind: Address already in use \n\n"), "a service did not start | bind: Address already in use | The output of `service-redis` is the end of the server's log.", "The command `service-redis` did not start it."},
		"started":       {start(0, ""), "", "The command `service-redis` started it, and it has ended since, or it listens elsewhere."},
		"proposed":      {proposed, "", "The proposal can start the server itself, on `127.0.0.1`, with its data in `/tmp`."},
		"killed":        {killed, "", "The command `service-redis` did not start it."},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			records := DiagnoseRecords([]proposal.Record{test.service, client}, nil)
			got := ""
			if c := records[0].Cause; c != nil {
				got = strings.Join([]string{c.Reason, c.Evidence, c.Advice}, " | ")
			}
			if got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			c := records[1].Cause
			if c == nil || c.Advice != test.wantNext || (len(c.Config) > 0) != (name == "proposed") {
				t.Errorf("the command after it: %+v", c)
			}
		})
	}
}

// A toolchain that is too old is the cause of whatever fails with it, but only if the base of the
// pull request asks for a newer one, too.
func TestToolchain(t *testing.T) {
	node := proposal.Unmet{Tool: "node", Version: "20.20.2", File: "package.json", Wants: ">=22", Least: "22", Base: true}
	change := func(f func(*proposal.Unmet)) proposal.Unmet {
		u := node
		f(&u)
		return u
	}
	absent := change(func(u *proposal.Unmet) { u.Version, u.Base = "", false })
	const old, gone = "toolchain | Node 20.20.2 is too old: package.json wants >=22 | ", "tool | Node is not installed: package.json wants >=22 | npm"
	onBase := func(verdict string) proposal.Record {
		r := failing("npm test", 1, "", "", "npm node")
		r.Base = &proposal.Comparison{Verdict: verdict}
		return r
	}
	notFound := "bash: line 1: npm: command not found\n"
	for name, tt := range map[string]struct {
		unmet  proposal.Unmet
		record proposal.Record
		want   string
	}{
		"too old":                        {node, failing("npm test", 1, "", "AssertionError: 1 == 2\n", "npm node"), old},
		"output with a gap":              {node, failing("node x.js", 1, "", strings.Repeat("Error: x\n", 10000), "node"), old},
		"another tool failed":            {node, failing("go test", 1, "", "FAIL\n", "go"), ""},
		"a node of the pull request":     {node, failing("./node x", 1, "", "", "own:node"), ""},
		"it succeeds on the base":        {node, onBase(proposal.BasePasses), ""},
		"nothing is known of the base":   {node, onBase(proposal.BaseUnknown), old},
		"it succeeded":                   {node, failing("npm test", 0, "", "", "npm node"), ""},
		"only the pull request asks":     {change(func(u *proposal.Unmet) { u.Base = false }), failing("npm test", 1, "", "1 failing\n", "npm node"), ""},
		"an unknown tool":                {change(func(u *proposal.Unmet) { u.Tool = "bash" }), failing("npm test", 1, "", "", "npm node"), ""},
		"a forged file":                  {change(func(u *proposal.Unmet) { u.File = "a`b" }), failing("npm test", 1, "", "", "npm node"), ""},
		"a forged version":               {change(func(u *proposal.Unmet) { u.Version = "1\n2" }), failing("npm test", 1, "", "", "npm node"), ""},
		"a forged number":                {change(func(u *proposal.Unmet) { u.Least = "22}" }), failing("npm test", 1, "", "", "npm node"), ""},
		"a forged range":                 {change(func(u *proposal.Unmet) { u.Wants = "<b>x</b>" }), failing("npm test", 1, "", "", "npm node"), ""},
		"not installed":                  {absent, failing("npm test", 127, "", notFound, ""), gone},
		"not installed, and not missing": {absent, failing("npm test", 1, "", notFound, ""), ""},
	} {
		if got := describe(CauseOf(tt.record, []proposal.Unmet{tt.unmet})); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
	const step = "add this step before fumehood: `- {uses: actions/setup-node@v6, with: {node-version: \"22\"}}`."
	if c := CauseOf(failing("npm test", 1, "", "", "npm node"), []proposal.Unmet{node}); c == nil || !strings.HasSuffix(c.Advice, step) {
		t.Errorf("advice %+v", c)
	}
	// All commands have one reason, set-up too.
	install := failing("npm ci", 1, "", "npm error EBADENGINE\n", "npm node")
	install.Proposal.Phase, install.Proposal.Origin = proposal.PhaseSetup, proposal.OriginSetup
	for _, r := range DiagnoseRecords([]proposal.Record{install, failing("npm test", 127, "", "sh: 1: mocha: not found\n", "npm node")}, []proposal.Unmet{node}) {
		if got := describe(r.Cause); got != old {
			t.Errorf("got %q, want %q", got, old)
		}
	}
}

// A version that only the pull request asks for excuses nothing, whatever the base shows; what to do about
// it is a hint.
func TestVersionOfChange(t *testing.T) {
	u := proposal.Unmet{Tool: "go", Version: "1.26.8", File: "go.mod", Wants: "1.99", Least: "1.99"}
	r := failing("go test ./...", 1, "", "go: go.mod requires go >= 1.99 (running go 1.26.8; GOTOOLCHAIN=local)\n", "go")
	const hint = "Go 1.26.8 is too old: go.mod wants 1.99. Put such a version first in `PATH`."
	for _, verdict := range []string{proposal.BasePasses, proposal.BaseDifferent, proposal.BaseUnknown} {
		r.Base = &proposal.Comparison{Verdict: verdict}
		if c, words := CauseOf(r, []proposal.Unmet{u}), OldToolchain(r, []proposal.Unmet{u}); c != nil || !strings.HasPrefix(words, hint) || !strings.Contains(words, "actions/setup-go") {
			t.Errorf("%s: %+v, %q", verdict, c, words)
		}
	}
	onBase, forged := u, u
	onBase.Base, forged.File = true, "a`b"
	for _, unmet := range [][]proposal.Unmet{{onBase}, {forged}, nil} {
		if c, words := CauseOf(r, unmet), OldToolchain(r, unmet); c == nil || words != "" {
			t.Errorf("%+v: %+v, %q", unmet, c, words)
		}
	}
}

// A known difference of gVisor is a hint beside a failure, never a cause.
func TestDifference(t *testing.T) {
	for name, tt := range map[string]struct {
		record proposal.Record
		want   string
	}{
		"a terminal":            {failing("pytest", 1, "E   AssertionError: ECHOCTL is on\n", "", "pytest"), "control characters"},
		"inotify":               {failing("go test", 1, "", "want IN_ATTRIB, got nothing\n", "go"), "inotify"},
		"a file of /proc":       {failing("go test", 1, "", "open /proc/self/smaps_rollup: no such file\n", "go"), "/proc/PID"},
		"io_uring":              {failing("./t", 1, "", "io_uring_setup: Function not implemented\n", "own:t"), "io_uring"},
		"at the end of much":    {failing("./t", 1, strings.Repeat("x\n", 1<<20)+"landlock_create_ruleset\n", "", "own:t"), "system call"},
		"it succeeded":          {failing("./t", 0, "ECHOCTL\n", "", "own:t"), ""},
		"another word":          {failing("./t", 1, "MY_ECHOCTLX /proc/net/tcp\n", "", "own:t"), ""},
		"not the sandbox's end": {proposal.Record{}, ""},
	} {
		got := GVisorDifference(tt.record)
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
		if c := CauseOf(tt.record, nil); c != nil {
			t.Errorf("%s: cause %+v", name, c)
		}
	}
	// Every row is found by each word that it has.
	for i, words := range []string{"ECHOCTL", "IN_ATTRIB", "/proc/net/snmp /proc/net/netstat", "/proc/7/wchan /proc/self/pagemap", "/proc/vmstat /proc/pressure/cpu",
		"transparent_hugepage /sys/kernel/mm/x", "io_uring IO_URING liburing LIBURING", "userfaultfd fanotify landlock memfd_secret futex_waitv perf_event_open keyctl",
		"O_TMPFILE", "PUNCH_HOLE FALLOC_FL_PUNCH_HOLE SEEK_HOLE SEEK_DATA", "AF_VSOCK"} {
		for _, word := range strings.Fields(words) {
			if got := GVisorDifference(failing("./t", 1, "no "+word+" here\n", "", "own:t")); got != differences[i].words {
				t.Errorf("%s: got %q, want %q", word, got, differences[i].words)
			}
		}
	}
}
