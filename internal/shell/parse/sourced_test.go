// SPDX-License-Identifier: Apache-2.0

package parse

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"mvdan.cc/sh/v3/syntax"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Assignments take the place of source and set -a, or the text is refused as before.
func TestSourced(t *testing.T) {
	files := map[string]string{
		".env":      "# of tests\nA=1\nexport B='two words'\n\nC=\"3\"   # three\nD=\n",
		"web/.env":  "P=/x:y\n",
		"empty":     "# none\n",
		"code":      "A=1\nrm -rf /\n",
		"computed":  "A=$(id)\n",
		"quoted":    "A=\"$HOME\"\n",
		"two":       "A=1 B=2\n",
		"words":     "A=1 id\n",
		"joined":    "A=1;id\n",
		"continued": "A='1\n2'\n",
		"escaped":   "A=\\x\n",
		"tilde":     "A=~\n",
		"crlf":      "A=1\r\n",
		"wide":      "A='é'\n",
		"large":     "A=" + strings.Repeat("x", maxSourcedBytes) + "\n",
		"loader":    "LD_PRELOAD=./x.so\n",
	}
	read := func(name string) (string, bool) { text, ok := files[name]; return text, ok }
	for text, want := range map[string]string{
		"set -a; . ./.env; set +a; npm test":                  "true\n{\n\texport A=1\n\texport B='two words'\n\texport C=3\n\texport D=''\n}\ntrue\nnpm test\n",
		"source .env && node x":                               "{\n\tA=1\n\texport B='two words'\n\tC=3\n\tD=''\n} && node x\n",
		". /workspace/web/.env; node x":                       "{ P=/x:y; }\nnode x\n",
		". empty; node x":                                     "true\nnode x\n",
		"set -o allexport && . ./empty && X=1 node x":         "true && true && X=1 node x\n",
		"set -a; X=1; Y=$(id); set +a; Z=1; node x":           "true\nexport X=1\nexport Y=$(id)\ntrue\nZ=1\nnode x\n",
		"bash -c 'set -a; . ./.env; npm test'":                "bash -c $'true\\n{\\n\\texport A=1\\n\\texport B=\\'two words\\'\\n\\texport C=3\\n\\texport D=\\'\\'\\n}\\nnpm test'\n",
		". ./.env; cd web; node x":                            "{\n\tA=1\n\texport B='two words'\n\tC=3\n\tD=''\n}\ncd web\nnode x\n",
		". loader; node x":                                    "{ LD_PRELOAD=./x.so; }\nnode x\n",
		"f() { . empty; }; f":                                 "f() { true; }\nf\n",
		"export $(cat web/.env | xargs) && node x":            "export P=/x:y && node x\n",
		"export $(grep -v '^#' web/.env); node x":             "export P=/x:y\nnode x\n",
		"export $(cat web/.env | grep -v ^# | xargs); node x": "export P=/x:y\nnode x\n",
		"env $(cat web/.env | xargs) node x":                  "env P=/x:y node x\n",
		"env $(cat loader) node x":                            "env LD_PRELOAD=./x.so node x\n",
		"export $(cat .env); node x":                          "",
		"export $(cat code); node x":                          "",
		"export $(cat missing); node x":                       "",
		"export $(cat words two); node x":                     "",
		"export X $(cat web/.env); node x":                    "",
		"cd web; export $(cat .env); node x":                  "",
		"export $(cat web/.env | xargs -I{} id {}); node x":   "",
		"env $(cat words) node x":                             "",
		"env() { :; }; env $(cat web/.env) node x":            "",
		"cd web && . ./.env && node x":                        "",
		"bash -c 'cd web; . ./.env'":                          "",
		". ../.env":                                           "",
		". ~/.env":                                            "",
		". $x":                                                "",
		". .env extra":                                        "",
		"A=1 . .env":                                          "",
		". missing":                                           "",
		". code":                                              "",
		". computed":                                          "",
		". quoted":                                            "",
		". two":                                               "",
		". words":                                             "",
		". joined":                                            "",
		". continued":                                         "",
		". escaped":                                           "",
		". tilde":                                             "",
		". crlf":                                              "",
		". wide":                                              "",
		". large":                                             "",
		".() { :; }; . .env":                                  "",
		"set() { :; }; set -a; X=1; node x":                   "",
		"if id; then set -a; fi; X=1; node x":                 "",
		"(set -a; X=1); node x":                               "(\n\ttrue\n\texport X=1\n)\nnode x\n",
		"if id; then set -a; . web/.env; set +a; fi; Z=1":     "if id; then\n\ttrue\n\t{ export P=/x:y; }\n\ttrue\nfi\nZ=1\n",
		"(set -a; . web/.env; npm test); Z=1":                 "(\n\ttrue\n\t{ export P=/x:y; }\n\tnpm test\n)\nZ=1\n",
		"set -a; X=1; set +a; . web/.env":                     "true\nexport X=1\ntrue\n{ P=/x:y; }\n",
		"f() { set -a; X=1; set +a; Y=1; }; f":                "f() {\n\ttrue\n\texport X=1\n\ttrue\n\tY=1\n}\nf\n",
		"id || set -a; X=1; node x":                           "",
		"(id && { set -a; }); X=1":                            "",
		"for i in 1; do set -a; break; set +a; done; X=1":     "",
		"f() { set -a; }; f; X=1; node x":                     "",
		"set -a; (set +a; X=1); node x":                       "",
		"while set -a; do X=1; break; done; node x":           "",
		"! set -a; X=1; node x":                               "",
		"set -a; read X; node x":                              "",
		"set -a; for X in 1; do node x; done":                 "",
		"set -a; X=(1); node x":                               "",
		"set -a; declare X=1; node x":                         "",
		"set -a; node ${X:=1}":                                "",
		"set -a; : $((X = 1)); node x":                        "",
		"set -a; $x Y=1":                                      "",
		"set -ae; X=1; node x":                                "",
		"set -a; if id; then set +a; fi; X=1; node x":         "",
		"set -a; f() { X=1; }; set +a; f; node x":             "",
		"set -a; command set +a; X=1; node x":                 "",
		"set -a; set -- a; X=1; node x":                       "",
		"set -a; printf -v X 1; node x":                       "",
		"set -a; . code; set +a; node x":                      "",
		"set -a; X=1; set +a; set -a x; Y=1; node x":          "",
		"set -a; . .env; set +a; . ./.env; . .env.two":        "",
	} {
		p := proposal.Proposal{Run: text}
		p.Sourced = ReadSourced(p, read)
		a := Analyze(p)
		refused := len(a.Unknowns) > 0
		if got := a.Canonical; refused != (want == "") || !refused && got != want {
			t.Errorf("%q: %q, %+v, sourced %q", text, got, a.Unknowns, p.Sourced)
		}
		if len(p.Sourced) > 0 {
			p.Sourced = nil
			if a := Analyze(p); len(a.Unknowns) == 0 {
				t.Errorf("%q: not refused without its file", text)
			}
		}
	}
}

// The files are those of the proposal's directory, and of the text before it changes that, in earlier cells too.
func TestReadSourced(t *testing.T) {
	for _, c := range []struct {
		p    proposal.Proposal
		want []string
	}{
		{proposal.Proposal{Run: ". ./.env; . b/c; source /workspace/x/d", Cwd: "web"}, []string{"web/.env", "web/b/c", "x/d"}},
		{proposal.Proposal{Run: ". a; . b; . c; . d; . e"}, []string{"a", "b", "c", "d"}},
		{proposal.Proposal{Run: "cd x; . a"}, nil},
		{proposal.Proposal{Argv: []string{".", "a"}}, nil},
		{proposal.Proposal{Language: "python", Code: ". a"}, nil},
		{proposal.Proposal{Language: "bash", Code: ". a", Context: "c", Earlier: &proposal.Earlier{Cells: 1, Text: "ls\n"}}, []string{"a"}},
		{proposal.Proposal{Language: "bash", Code: ". a", Context: "c", Earlier: &proposal.Earlier{Cells: 1, Text: "cd x\n"}}, nil},
		{proposal.Proposal{Run: ". a (", Cwd: "web"}, nil},
	} {
		var asked []string
		found := ReadSourced(c.p, func(name string) (string, bool) { asked = append(asked, name); return "A=1\n", true })
		if diff := cmp.Diff(c.want, asked); diff != "" || len(found) != len(c.want) {
			t.Errorf("%+v: %s, %q", c.p, diff, found)
		}
	}
	p := proposal.Proposal{Language: "bash", Code: ". a; node x", Context: "c", Earlier: &proposal.Earlier{Cells: 1, Text: "ls\n"},
		Sourced: map[string]string{"a": "A=1\n"}}
	if a := Analyze(p); len(a.Unknowns) > 0 || a.Own() != "{ A=1; }\nnode x\n" {
		t.Errorf("%q, %+v", a.Own(), a.Unknowns)
	}
}

// What takes the place of source does what bash does with the file, and nothing else.
func FuzzSourced(f *testing.F) {
	for _, text := range []string{"A=1\n", "export A='x y' # c\nB=\"\"\n", "# c\n\nA=a@b:c/d.e%f+g,h=i-j\n", "A='#'\nA=$(id)\n", "A=1;id\n", "A=~\n", "A=\"`id`\"\n", "A='\n'\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		command, ok := assignmentsOf(text, false)
		if !ok {
			return
		}
		file, err := parseText(command)
		if err != nil || len(file.Stmts) != 1 {
			t.Fatalf("%q: %v", command, err)
		}
		syntax.Walk(file, func(node syntax.Node) bool {
			switch n := node.(type) {
			case *syntax.CallExpr:
				if len(n.Args) > 1 || len(n.Args) == 1 && n.Args[0].Lit() != "true" {
					t.Errorf("%q runs a command", command)
				}
			case *syntax.CmdSubst, *syntax.ParamExp, *syntax.ArithmExp, *syntax.ProcSubst, *syntax.ExtGlob:
				t.Errorf("%q is not literal", command)
			}
			return true
		})
		name := filepath.Join(t.TempDir(), "list")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		variables := func(script string) string {
			cmd := exec.Command("bash", "--norc", "-c", script+"\ndeclare -p", "bash", name)
			cmd.Env, cmd.Dir = []string{"PATH=" + os.Getenv("PATH")}, t.TempDir()
			out, err := cmd.CombinedOutput()
			if err != nil {
				return "a variable that cannot be set"
			}
			return ownVariables.ReplaceAllString(string(out), "")
		}
		if diff := cmp.Diff(variables(`. "$1"`), variables(command)); diff != "" {
			t.Errorf("%q, %q: %s", text, command, diff)
		}
	})
}

// ownVariables are those that bash sets by itself.
var ownVariables = regexp.MustCompile(`(?m)^declare -\S+ (?:_|BASH\w*|EPOCH\w+|SRANDOM|RANDOM|SECONDS|LINENO|PPID|PWD|OLDPWD|PIPESTATUS|FUNCNAME|DIRSTACK)(?:=.*)?\n`)

// Assignments take the place of what sets the variables of a file for one command, or policy decides about that tool.
func TestEnvFiles(t *testing.T) {
	files := map[string]string{".env": "A=1\nB='two words'\n", "loader": "LD_PRELOAD=./x.so\n", "code": "A=$(id)\n"}
	read := func(name string) (string, bool) { text, ok := files[name]; return text, ok }
	for text, want := range map[string]string{
		"npx dotenv -e .env -- jest x":         "A=1 B='two words' npx jest x",
		"npx dotenv -e ./.env -- npm test":     "A=1 B='two words' npm test",
		"A=2 dotenv -f .env run -- pytest":     "A=1 B='two words' A=2 pytest",
		"env-cmd -f .env node x":               "A=1 B='two words' node x",
		"node --env-file=loader --test":        "LD_PRELOAD=./x.so node --test",
		"npx --no-install cross-env A=b C=d x": "A=b C=d npx --no-install x",
		"npx dotenv -e code -- jest":           "",
		"npx dotenv -e missing -- jest":        "",
		"dotenv -e ../.env -- jest":            "",
		"dotenv -e .env -- bash x":             "",
		"dotenv -e .env -- ./x":                "",
		"cd web && node --env-file=.env x":     "",
		"node --env-file=$x x":                 "",
		"node --env-file=.env":                 "",
		"cross-env 'A=b c' x":                  "",
	} {
		p := proposal.Proposal{Run: text}
		p.Sourced = ReadSourced(p, read)
		if want == "" {
			want = text
		}
		if got := strings.TrimSpace(Analyze(p).Canonical); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
