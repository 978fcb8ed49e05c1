// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/pkg/proposal"
)

func TestAsked(t *testing.T) {
	for _, tt := range []struct{ file, text, want string }{ // want: tool, and the oldest version
		{"package.json", `{"engines": {"node": ">=22"}}`, "node 22"},
		{"package.json", `{"engines": {"node": "^18.17.0 || >=20.5"}}`, "node 18.17"},
		{"package.json", `{"engines": {"node": ">= 16.0.0 <21"}}`, "node 16"},
		{"package.json", `{"engines": {"node": "18 - 20"}}`, "node 18"},
		{"package.json", `{"engines": {"node": ">18"}}`, "node 19"},
		{"package.json", `{"engines": {"node": ">18.2.1"}}`, "node 18.2.2"},
		{"package.json", `{"engines": {"node": "v20.x"}}`, "node 20"},
		{"package.json", `{"engines": {"node": "~20.10"}}`, "node 20.10"},
		{"package.json", `{"engines": {"node": "=20.1.2"}}`, "node 20.1.2"},
		{"package.json", `{"engines": {"node": ">=20.0.0-rc.1"}}`, "node 20"},
		{"package.json", `{"engines": {"node": "<21"}}`, ""},
		{"package.json", `{"engines": {"node": "*"}}`, ""},
		{"package.json", `{"engines": {"node": ""}}`, ""},
		{"package.json", `{"engines": {"node": ">=14 || *"}}`, ""},
		{"package.json", `{"engines": {"node": "lts/*"}}`, ""},
		{"package.json", `{"engines": {"node": ">=22 or so"}}`, ""},
		{"package.json", `{"engines": {"node": 22}}`, ""},
		{"package.json", `{"engines": ["node >= 0.10"]}`, ""},
		{"package.json", `{"engines": {"node": ">=22"`, ""},
		{"package.json", `{"engines": {"node": ">=` + strings.Repeat("9", 400) + `"}}`, ""},
		{"package.json", `{"engines": {"node": "` + strings.Repeat(">=22 ", 40) + `"}}`, ""},
		{"package.json", `{"volta": {"node": "20.11.1"}}`, "node 20"},
		{".nvmrc", "v20.11.0\n", "node 20"},
		{".nvmrc", "lts/iron\n", ""},
		{".node-version", "22\n", "node 22"},
		{"pyproject.toml", "[project]\nrequires-python = \">=3.9,<4\"\n", "python 3.9"},
		{"pyproject.toml", "[project]\nrequires-python = '~=3.8.1'\n", "python 3.8.1"},
		{"pyproject.toml", "[project]\nrequires-python = \">3.8, !=3.9.*\"\n", "python 3.8"},
		{"pyproject.toml", "[project]\nrequires-python = \"==3.11.*\"\n", "python 3.11"},
		{"pyproject.toml", "[project]\nrequires-python = \">=3.9; x\"\n", ""},
		{"pyproject.toml", "[tool.poetry.dependencies]\nrequests = \"*\"\npython = \"^3.10\"\n", "python 3.10"},
		{".python-version", "3.12.4\n3.11\n", "python 3.12"},
		{".python-version", "pypy3.9-7.3\n", ""},
		{"go.mod", "module x\n\ngo 1.23.4 // why\n\ntoolchain go1.24.1\n", "go 1.23.4"},
		{"go.mod", "module x\n\ngo 1.21rc2\n", "go 1.21"},
		{"Cargo.toml", "[package]\nrust-version = \"1.74\"\n", "rust 1.74"},
		{"rust-toolchain.toml", "[toolchain]\nchannel = \"1.80.1\"\n", "rust 1.80"},
		{"rust-toolchain.toml", "[toolchain]\nchannel = \"nightly-2024-05-01\"\n", ""},
		{"rust-toolchain", "1.79.0\n", "rust 1.79"},
		{"rust-toolchain", "stable\n", ""},
		{"Gemfile", "source 'x'\nruby '~> 3.2'\n", "ruby 3.2"},
		{"Gemfile", "ruby file: '.ruby-version'\n", ""},
		{".ruby-version", "ruby-3.3.1\n", "ruby 3.3"},
		{".java-version", "temurin-17.0.9+9\n", "java 17"},
		{".java-version", "1.8\n", "java 8"},
		{".tool-versions", "# x\nnodejs 20.1.0\ngolang 1.22.1\nzig 0.11\n", "node 20, go 1.22"},
		{"mise.toml", "[env]\nnode = \"99\"\n[tools]\nnode = \"22\"\npython = [\"3.12\", \"3.9\"]\n[x]\nruby = \"3\"\n", "node 22, python 3.12"},
	} {
		var got []string
		for _, r := range readRequirements(tt.file, tt.text) {
			got = append(got, r.Tool+" "+r.MinVersion())
		}
		if s := strings.Join(got, ", "); s != tt.want {
			t.Errorf("%s %.60q: got %q, want %q", tt.file, tt.text, s, tt.want)
		}
	}
}

func treeOf(list ...string) func(string) (string, bool) {
	m := fstest.MapFS{}
	for i := 0; i < len(list); i += 2 {
		m[list[i]] = &fstest.MapFile{Data: []byte(list[i+1])}
	}
	return FileReader(m)
}

// A pull request cannot excuse its failures by what it asks for itself: the base must ask, too.
func TestUnmet(t *testing.T) {
	node := func(wants string) []Requirement {
		return ReadRequirements(treeOf("package.json", `{"engines": {"node": "`+wants+`"}}`), ".")
	}
	tools := []proposal.Toolchain{{Name: "node", Version: "20.20.2"}, {Name: "java"}}
	unmet := func(wants string, base bool) []proposal.Unmet {
		return []proposal.Unmet{{Tool: "node", Version: "20.20.2", File: "package.json", Wants: wants, Least: strings.TrimPrefix(wants, ">="), Base: base}}
	}
	for name, tt := range map[string]struct {
		head, base []Requirement
		want       []proposal.Unmet
	}{
		"met":                        {node(">=20.20.2"), nil, nil},
		"the base asks, too":         {node(">=22"), node(">=22"), unmet(">=22", true)},
		"the base asks for less":     {node(">=99"), node(">=21"), unmet(">=99", true)},
		"only the pull request asks": {node(">=99"), node(">=18"), unmet(">=99", false)},
		"the base asks nothing":      {node(">=99"), nil, unmet(">=99", false)},
		"only the base asks":         {nil, node(">=99"), nil},
		"the version is not known":   {ReadRequirements(treeOf(".java-version", "21"), "."), ReadRequirements(treeOf(".java-version", "21"), "."), nil},
		"not installed":              {ReadRequirements(treeOf("go.mod", "go 1.22\n"), "."), nil, []proposal.Unmet{{Tool: "go", File: "go.mod", Wants: "1.22", Least: "1.22"}}},
		"not installed, and base":    {ReadRequirements(treeOf("go.mod", "go 1.22\n"), "."), ReadRequirements(treeOf("go.mod", "go 1.11\n"), "."), []proposal.Unmet{{Tool: "go", File: "go.mod", Wants: "1.22", Least: "1.22", Base: true}}},
		"in a directory, the highest": {ReadRequirements(treeOf("a/.nvmrc", "24", "package.json", `{"engines":{"node":">=22"}}`), ".", "a"), nil,
			[]proposal.Unmet{{Tool: "node", Version: "20.20.2", File: "a/.nvmrc", Wants: "24", Least: "24"}}},
	} {
		if diff := cmp.Diff(tt.want, FindUnmet(tt.head, tt.base, tools)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func FuzzAsked(f *testing.F) {
	f.Add(0, `{"engines": {"node": "^18 || >=20 <21 - 3"}}`)
	f.Add(3, `requires-python = ">=3.9,<4"`)
	f.Fuzz(func(t *testing.T, file int, text string) {
		for _, r := range readRequirements(ToolFiles[uint(file)%uint(len(ToolFiles))], text) {
			if len(r.Wants) > maxWants || strings.ContainsFunc(r.Wants, func(c rune) bool { return c < ' ' || c > '~' }) {
				t.Errorf("%q", r.Wants)
			}
		}
	})
}
