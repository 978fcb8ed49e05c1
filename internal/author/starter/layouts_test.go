// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fumehood/fumehood/internal/kit/golden"
	"github.com/fumehood/fumehood/internal/source/config"
	"github.com/fumehood/fumehood/internal/source/setup"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// config and init show the same set-up, and one line for each project that is found and left out, with
// the line of the configuration that includes it.
func TestLayouts(t *testing.T) {
	const (
		mod  = "module x\nrequire a.b/c v1.0.0\n"
		pack = `{"dependencies":{"a":"1"},"scripts":{"test":"x"}}`
	)
	everything := setup.Detector{LookPath: func(name string) (string, error) { return "/usr/bin/" + name, nil }}
	var out strings.Builder
	for _, layout := range []struct {
		name  string
		files []string // pairs of a name and a text
	}{
		{"nested", []string{"apps/web/package.json", pack, "apps/web/package-lock.json", "", "services/api/go/go.mod", mod, "services/api/go/go.sum", "", "requirements/dev.txt", "a\n"}},
		{"npm workspaces", []string{"package.json", `{"workspaces":["packages/*"]}`, "package-lock.json", "", "packages/a/package.json", pack, "packages/b/package.json", pack, "e2e/package.json", pack, "e2e/package-lock.json", ""}},
		{"pnpm workspace with a site", []string{"package.json", pack, "pnpm-lock.yaml", "lockfileVersion: '9.0'\n", "pnpm-workspace.yaml", "packages:\n  - packages/**\n", "packages/a/b/package.json", pack, "website/package.json", pack, "website/yarn.lock", ""}},
		{"go.work", []string{"go.work", "use (\n\t./a\n\t./b\n)\n", "a/go.mod", mod, "a/go.sum", "", "b/go.mod", mod, "b/go.sum", "", "tools/go.mod", mod, "tools/go.sum", ""}},
		{"documentation and examples", []string{"go.mod", mod, "go.sum", "", "docs/package.json", pack, "docs/package-lock.json", "", "examples/one/requirements.txt", "a\n", "examples/two/go.mod", mod, "examples/two/go.sum", ""}},
		{"two languages", []string{"pyproject.toml", "[project]\nname='x'\n", "uv.lock", "", "frontend/package.json", pack, "frontend/yarn.lock", "# yarn lockfile v1\n"}},
		{"uv and Cargo workspaces", []string{"pyproject.toml", "[project]\nname='x'\n[tool.uv.workspace]\nmembers = ['x', \"libs/*\"]\n", "uv.lock", "", "libs/a/pyproject.toml", "[project]\nname='a'\n", "Cargo.toml", "[workspace]\nmembers = [\"crates/*\"]\n", "Cargo.lock", "", "crates/a/Cargo.toml", "[package]\n", "fuzz/Cargo.toml", "[package]\n", "fuzz/Cargo.lock", ""}},
		{"no lock file", []string{"package.json", pack, "package-lock.json", "", "tools/gen/pyproject.toml", "[project]\nname='gen'\n", "scripts/package.json", pack}},
		{"lerna and services", []string{"package.json", pack, "package-lock.json", "", "lerna.json", "{}", "packages/a/package.json", pack, "packages/a/package-lock.json", "", "services/my api/Gemfile", "", "services/my api/Gemfile.lock", "", "services/it's/requirements.txt", "a\n"}},
		{".NET solution with a bun site", []string{"App.sln", "", "src/App/App.csproj", "", "src/App/packages.lock.json", "", "site/package.json", pack, "site/bun.lock", ""}},
		{"Composer and Gradle", []string{"composer.json", "{}", "composer.lock", "{}", "android/build.gradle", "", "android/gradlew", "", "android/gradle/wrapper/gradle-wrapper.properties", "distributionUrl=https\\://services.gradle.org/distributions/gradle-9.0-bin.zip\n"}},
		{"Elixir umbrella and Deno", []string{"mix.exs", "", "mix.lock", "", "apps/a/mix.exs", "", "tools/deno.json", "{}", "tools/deno.lock", "{}"}},
		{"Dart packages and a Flutter app", []string{"packages/core/pubspec.yaml", "name: core\n", "packages/core/pubspec.lock", "", "app/pubspec.yaml", "dependencies:\n  flutter:\n    sdk: flutter\n", "app/pubspec.lock", "", "app/example/pubspec.yaml", "name: e\n"}},
		{"pixi, conda and Swift", []string{"pixi.toml", "", "pixi.lock", "", "pyproject.toml", "[project]\nname='x'\n", "analysis/environment.yml", "", "ios/Package.resolved", `{"pins":[{"kind":"remoteSourceControl"}]}`}},
		{"Maven modules and what has no registry", []string{"pom.xml", "", "core/pom.xml", "", "vcpkg.json", "", "ios/Podfile.lock", "", "infra/go.mod", mod, "infra/go.sum", ""}},
	} {
		root := fstest.MapFS{}
		for i := 0; i < len(layout.files); i += 2 {
			root[layout.files[i]] = &fstest.MapFile{Data: []byte(layout.files[i+1])}
		}
		var shown strings.Builder
		view := InForce(config.Effective{}, everything.Detect(root))
		if err := view.Print(&shown); err != nil {
			t.Fatal(err)
		}
		r := DetectRepository(root)
		fmt.Fprintf(&out, "== %s\n%s\ninit:\n", layout.name, strings.TrimSpace(shown.String()))
		for _, line := range setupCommands(r.Setup) {
			fmt.Fprintf(&out, "  %s\n", line)
		}
		for _, test := range r.Tests {
			fmt.Fprintf(&out, "  test %s: %s\n", test.ID, FormatCommand(proposal.Proposal{Run: test.Run, Cwd: test.Cwd}))
		}
		for _, n := range r.Setup.Notes {
			fmt.Fprintf(&out, "  note: %s\n", n)
		}
		out.WriteString("\n")
		if len(view.Setup.Commands) != len(r.Setup.Steps) || len(view.Setup.Notes) != len(r.Setup.Notes) {
			t.Errorf("%s: config and init differ", layout.name)
		}
	}
	golden.Compare(t, "testdata/layouts.txt", []byte(out.String()))
}
