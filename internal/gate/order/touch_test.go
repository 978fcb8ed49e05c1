// SPDX-License-Identifier: Apache-2.0

package order

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/source/setup"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/policies"
)

// repository makes a file system of files, one a word. Each manifest requires something.
func repository(files string) fstest.MapFS {
	root := fstest.MapFS{}
	for name := range strings.FieldsSeq(files) {
		name, text, _ := strings.Cut(name, "=")
		switch {
		case strings.HasSuffix(name, "go.mod"):
			text = "module x\nrequire a.b/c v1.0.0\n"
		case strings.HasSuffix(name, "go.work"):
			text = "use " + strings.ReplaceAll(text, ",", "\nuse ") + "\n"
		case strings.HasSuffix(name, "package.json") && text == "":
			text = `{"dependencies":{"a":"1"}}`
		case strings.HasSuffix(name, "pyproject.toml"):
			text = "[project]\nname = 'x'\n"
		}
		root[name] = &fstest.MapFile{Data: []byte(text)}
		if strings.HasPrefix(name, "link") {
			root[name].Mode = fs.ModeSymlink
		}
	}
	return root
}

// Only what a plan touches is set up: the project above each command's directory, what is below it if
// the command may use that, and documentation and examples if a command runs there.
func TestPartOfPlans(t *testing.T) {
	const (
		polyglot = "go.mod go.sum web/package.json web/package-lock.json services/api/go.mod services/api/go.sum services/py/requirements.txt docs/package.json docs/yarn.lock " +
			"examples/a/package.json examples/a/package-lock.json tools/package.json"
		monorepo = `package.json={"workspaces":["packages/*"]} package-lock.json packages/a/package.json packages/b/package.json e2e/package.json e2e/package-lock.json native/Cargo.toml native/Cargo.lock`
		others   = "App.sln src/App/packages.lock.json shop/composer.json shop/composer.lock mix.exs mix.lock app/pubspec.yaml app/pubspec.lock edge/deno.json edge/deno.lock data/environment.yml " +
			"site/package.json site/bun.lock android/build.gradle android/settings.gradle ios/Package.swift"
		works  = "go.work=./a,./b a/go.mod a/go.sum b/go.mod b/go.sum c/go.mod c/go.sum"
		pinned = `package.json={"packageManager":"pnpm@9.1.0"} pnpm-lock.yaml go.mod go.sum`
	)
	detector := setup.Detector{LookPath: func(name string) (string, error) { return "/usr/bin/" + name, nil }}
	for _, c := range []struct{ files, run, cwd, want string }{
		{polyglot, "go test ./...", "", "go"},
		{polyglot, "go vet ./internal/x", "", "go"},
		{polyglot, "npm test", "web", "npm-web"},
		{polyglot, "cd web && npm test", "", "npm-web"},
		{polyglot, "npm --prefix web test", "", "npm-web"},
		{polyglot, "npm --prefix=web/src run x && go test ./a", "", "go npm-web"},
		{polyglot, "npx eslint .", "web/src", "npm-web"},
		{polyglot, "npx tsc -b web", "", "npm-web"},
		{polyglot, "go generate ./...", "services/api", "go-services-api"},
		{polyglot, "go generate ./...", "", "go npm-web go-services-api venv-services-py pip-services-py"},
		{polyglot, "make -C web test", "", "npm-web"},
		{polyglot, "make --directory services/api", "", "go-services-api"},
		{polyglot, "make test", "services", "go go-services-api venv-services-py pip-services-py"},
		{polyglot, "make test", "", "go npm-web go-services-api venv-services-py pip-services-py"},
		{polyglot, "./run.sh", "", "go npm-web go-services-api venv-services-py pip-services-py"},
		{polyglot, `cd "$d" && make`, "", "go npm-web go-services-api venv-services-py pip-services-py"},
		{polyglot, "make -C \"$d\"", "web", "go npm-web go-services-api venv-services-py pip-services-py"},
		{polyglot, "go -C services/api test ./...", "", "go-services-api"},
		{polyglot, "pytest services/py/tests/test_a.py::TestB", "", "venv-services-py pip-services-py"},
		{polyglot, "python3 -m pytest -q", "services/py", "venv-services-py pip-services-py"},
		{polyglot, "yarn --cwd docs build", "", "yarn-docs"},
		{polyglot, "npm test", "examples/a", "npm-examples-a"},
		{polyglot, "npm test", "tools", "npm-tools"},
		{polyglot, "cat web/node_modules/a/index.js", "web", "npm-web"},
		{polyglot, "git log && cat docs/package.json", "", ""},
		{polyglot, "cp web/a /tmp/a", "", ""},
		{polyglot, "npm test", "", "npm-web"},
		{polyglot, "timeout 60 go test ./x", "services/api/internal", "go-services-api"},
		{polyglot, "(cd web && npm test); (cd services/api && go test ./...)", "", "go npm-web go-services-api"},
		{polyglot, "cat build/a.txt && ls target", "", ""},
		{polyglot + " link=web", "cd link && npm test", "", "go npm-web go-services-api venv-services-py pip-services-py"},
		{polyglot + " link=web", "npm test", "web", "npm-web"},
		{"pom.xml web/package.json web/package-lock.json", "cat target/surefire-reports/a.txt", "", "maven"},
		{polyglot, "npm test -- --prefix docs", "web", "npm-web"},
		{polyglot, "npm --prefix web --prefix docs test", "", "go npm-web go-services-api venv-services-py pip-services-py"},
		{polyglot, "./go test ./x", "", "go npm-web go-services-api venv-services-py pip-services-py"},
		{polyglot, "services/api/npm test", "services", "go go-services-api venv-services-py pip-services-py"},
		{polyglot, "cd web && python3 ../services/py/run.py", "", "npm-web venv-services-py pip-services-py"},
		{polyglot, "env -C web pytest", "services/py", "venv-services-py pip-services-py"},
		{polyglot, "GOFLAGS=-mod=mod; X=1", "web", ""},
		{monorepo, "npm test", "packages/a", "npm"},
		{monorepo, "npm test -w packages/a", "", "npm npm-e2e"},
		{monorepo, "npx vitest run packages/a", "", "npm"},
		{monorepo, "cargo test", "native/src", "cargo-native"},
		{monorepo, "cargo test --manifest-path native/Cargo.toml", "", "cargo-native"},
		{monorepo, "make", "native", "cargo-native"},
		{others, "dotnet test src/App", "", "nuget"},
		{others, "dotnet build --project src/App", "", "nuget"},
		{others, "composer -d shop test", "", "composer-shop"},
		{others, "vendor/bin/phpunit tests", "shop", "composer-shop"},
		{others, "shop/vendor/bin/phpunit -c shop/phpunit.xml", "", "composer-shop"},
		{others, "cat shop/vendor/autoload.php", "", "composer-shop"},
		{others, "mix test", "", "hex hex-2 hex-3"},
		{others, "ls deps/jason/lib", "", "hex hex-2 hex-3"},
		{others, "flutter test", "app/test", "pub-app"},
		{others, "dart analyze app", "", "pub-app"},
		{others, "deno test", "edge", "deno-edge"},
		{others, "bun test", "site", "bun-site"},
		{others, "./gradlew -p android test", "", "gradle-android"},
		{others, "pixi run test", "data", "conda-data"},
		{others, "micromamba run -p .conda pytest", "data", "conda-data"},
		{others, "swift test --package-path ios", "", ""},
		{others, "cat vendor.txt deps.txt", "", ""},
		{works, "go test ./...", "a/x", "go"},
		{works, "go test ./a/... ./b/...", "", "go"},
		{works, "go test ./...", "c", "go-c"},
		{pinned, "pnpm test", "", "get-pnpm pnpm"},
		{pinned, "go test ./...", "", "go"},
	} {
		p := proposal.Proposal{ID: "a", Run: c.run, Cwd: c.cwd}
		var got []string
		for _, step := range detector.Detect(repository(c.files)).ChoosePart(FindSetupNeed(p, AnalyzeProposal(p)).Touches).Steps {
			if !step.Optional {
				got = append(got, strings.TrimPrefix(step.ID, "setup-"))
			}
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s in %q: got %q, want %q", c.run, c.cwd, text, c.want)
		}
	}
}

// Set-up compiles the packages that the go commands of a plan name, and all where one may need more. It vets them, as
// go test does, if a command may test; of many, those that are programs, which import the others.
func TestCompiledPackages(t *testing.T) {
	detector := setup.Detector{LookPath: func(name string) (string, error) { return "/usr/bin/" + name, nil }}
	for _, c := range []struct {
		files string
		runs  []string
		want  string
	}{
		{"go.mod go.sum", []string{"go test ./x"}, "./x"},
		{"go.mod go.sum", []string{"go test -race -run 'TestA|TestB' ./x/... ./y && go vet ./x/..."}, "./x/... ./y"},
		{"go.mod go.sum", []string{"go test -count=1 -timeout 30s"}, "."},
		{"go.mod go.sum", []string{"cd internal/z && go test . ./a/..."}, "./internal/z ./internal/z/a/..."},
		{"go.mod go.sum", []string{"go build ./cmd/a", "cat go.mod", "go test ./x"}, "./cmd/a ./x"},
		{"go.mod go.sum", []string{"go test ./...", "go test ./x"}, "./... ./x"},
		{"go.mod go.sum", []string{"go test ./x", "make"}, "./..."},
		{"go.mod go.sum", []string{"go test example.com/x"}, "./..."},
		{"go.mod go.sum", []string{"go test ../x"}, "./..."},
		{"go.mod go.sum", []string{`go test "$p"`}, "./..."},
		{"go.mod go.sum", []string{"go run ./x"}, "./..."},
		{"go.mod go.sum", []string{"golangci-lint run ./x"}, "./..."},
		{"go.work=./a,./b a/go.mod a/go.sum b/go.mod b/go.sum", []string{"go -C a test ./x"}, "./a/x"},
		{"go.work=./a,./b a/go.mod a/go.sum b/go.mod b/go.sum", []string{"make test"}, "./a/... ./b/..."},
		{"go.work=./a,./b a/go.mod a/x.go b/go.mod b/cmd/c/x.go", []string{"make test"}, "./a/... ./b/... | ./a ./b/cmd/..."},
		{"go.mod main.go cmd/a/main.go x/x.go", []string{"go test ./..."}, "./... | ./cmd/... ."},
		{"go.mod main.go cmd/a/main.go x/x.go", []string{"go test ./x/..."}, "./x/... | ./cmd/... ."},
		{"go.mod main.go x/x.go", []string{"go test ./x ."}, ". ./x | . ./x"},
		{"go.mod main.go x/x.go", []string{"go vet ./x && go build ./x"}, "./x"},
		{"go.mod main.go x/x.go", []string{"go build ./...", "go test ./x"}, "./... ./x | ./x"},
		{"go.mod main.go x/x.go", []string{"go run ."}, "./... | ."},
		{"go.mod main.go x/x.go", []string{"golangci-lint run"}, "./... | ."},
	} {
		var touches []setup.Touch
		for _, run := range c.runs {
			p := proposal.Proposal{ID: "a", Run: run}
			touches = append(touches, FindSetupNeed(p, AnalyzeProposal(p)).Touches...)
		}
		got := ""
		for _, step := range detector.Detect(repository(c.files)).ChoosePart(touches).Steps {
			switch {
			case step.Optional && step.Argv[1] == "test":
				got += " | " + strings.Join(step.Argv[5:], " ")
			case step.Optional:
				got += strings.Join(step.Argv[8:], " ")
			}
		}
		if got != c.want {
			t.Errorf("%q: got %q, want %q", c.runs, got, c.want)
		}
	}
}

// A hostile plan cannot make the choice slow: many commands with deep paths, in a repository of as
// many projects as are found.
func TestPartOfHostilePlan(t *testing.T) {
	lanetest.SkipShort(t)
	var files strings.Builder
	for i := range 100 {
		fmt.Fprintf(&files, "d%d/go.mod d%d/go.sum ", i, i)
	}
	found := setup.Detector{LookPath: func(name string) (string, error) { return "/usr/bin/" + name, nil }}.Detect(repository(files.String()))
	start := time.Now()
	var touches []setup.Touch
	for i := range 16 {
		text := "pytest"
		for j := range 20 {
			text += fmt.Sprintf(" %s/%d/%d", strings.Repeat("a/", 200), i, j)
		}
		p := proposal.Proposal{ID: "a", Run: text + strings.Repeat("; make -C d1; go test ./x; cd x", 20)}
		touches = append(touches, FindSetupNeed(p, AnalyzeProposal(p)).Touches...)
	}
	if part := found.ChoosePart(touches); len(touches) < 500 || len(part.Steps) != setup.MaxSteps {
		t.Errorf("%d touches, %d steps", len(touches), len(part.Steps))
	}
	if spent := time.Since(start); spent > 20*time.Second {
		t.Errorf("took %s", spent)
	}
}

// A tool that set-up installs does not run if that set-up failed, and neither does what selects its environment:
// the machine's tool of that name would run. Others run; a success of the machine's tool in them says so.
func TestFailedSetup(t *testing.T) {
	step := func(id, cwd string, argv ...string) proposal.Proposal {
		return proposal.Proposal{ID: id, Cwd: cwd, Argv: argv, Origin: proposal.OriginSetup, Phase: proposal.PhaseSetup}
	}
	before := []proposal.Proposal{
		step("venv", "", "python3", "-m", "venv", ".venv"), step("pip", "", ".venv/bin/python", "-m", "pip", "install", "-r", "requirements.txt"),
		step("api", "api", ".venv/bin/python", "-m", "pip", "install", "-e", "."), step("npm", "web", "npm", "ci"),
	}
	for run, want := range map[string]string{
		"pytest": "pip", "python3 -m pytest -q": "pip", ". .venv/bin/activate && python3 x.py": "pip", "source .venv/bin/activate; pytest": "pip",
		"PATH=$PWD/.venv/bin:$PATH ./run.sh": "pip", "cd tests && pytest": "pip", "timeout 60 ruff check .": "pip",
		"cd api && pytest": "", "pytest api": "pip", "cd web && eslint .": "", "cat a": "", "python3 x.py": "", "make test": "", "npm test": "", "go test ./...": "",
	} {
		w := &world{decide: map[string]proposal.Effect{"t": proposal.Allow}, results: map[string]proposal.Result{"pip": {Status: proposal.Exited, ExitCode: 1}}}
		for _, p := range before {
			w.decide[p.ID] = proposal.Allow
		}
		h := w.stages()
		report, err := h.Run(t.Context(), proposal.Plan{Proposals: append(before, proposal.Proposal{ID: "t", Run: run})}, proposal.Run{})
		if err != nil {
			t.Fatal(err)
		}
		detail := report.Records[len(before)].Result.Detail
		if want != "" && detail != `it needs "pip", which did not succeed` || want == "" && detail != "" {
			t.Errorf("%s: %q", run, detail)
		}
		if c := report.Records[len(before)].Cause; want != "" && (c == nil || c.After != "pip") {
			t.Errorf("%s: cause %+v", run, c)
		}
	}
	failed := proposal.Record{Proposal: before[1], Analysis: AnalyzeProposal(before[1]), Result: &proposal.Result{Status: proposal.Exited, ExitCode: 1}}
	r := proposal.Record{Result: &proposal.Result{Status: proposal.Exited, Observations: &proposal.Observations{Programs: []proposal.Program{
		{Path: "/usr/bin/python3.11", Name: "pytest", Script: "/usr/bin/pytest", Layer: proposal.LayerRootfs, Runs: 1}}}}}
	if noteMachineTools([]proposal.Record{failed}, &r); r.Result.Detail != `"pip" did not succeed: the pytest that ran is not the one that it installs` {
		t.Errorf("make test: %q", r.Result.Detail)
	}
}

// Each language that set-up installs packages of has tools, so that a command of another one does not run it.
func TestEveryLanguageHasTools(t *testing.T) {
	for _, r := range policies.Registries() {
		for _, in := range r.Install {
			if _, known := scopes[in.Tool]; !known {
				t.Errorf("%s: %s is not in touch.go", in.Language, in.Tool)
			}
		}
	}
}
