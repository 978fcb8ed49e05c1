// SPDX-License-Identifier: Apache-2.0

package trial_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/author/trial"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/policy"
)

// A mistake is a policy that does not do what its author meant, in its smallest form.
type mistake struct {
	name  string
	point string // the package, or "" for command; "-" if rego begins with its own
	rego  string
	code  string // of the problem that policy check reports
	data  string // a data.json
}

const (
	denyIf  = "# METADATA\n# title: T\n# custom: {rule: o.d, match: [x], text_only: true}\ndeny contains {\"rule\": \"o.d\", \"message\": \"m\", \"suggestion\": \"s\"} if "
	askIf   = "# METADATA\n# title: A\n# custom: {rule: o.q, match: [x], text_only: true}\nask contains {\"rule\": \"o.q\", \"message\": \"m\", \"suggestion\": \"s\"} if "
	allowIf = "# METADATA\n# title: T\n# custom: {rule: o.a, match: [x]}\nallow contains {\"rule\": \"o.a\"} if "
	hostOf  = "# METADATA\n# title: T\n# custom: {rule: o.h}\nnetwork contains {\"rule\": \"o.h\", \"host\": "
	limitOf = "limits contains {\"rule\": \"o.l\", "
	usual   = `input.command.program == "x"`
)

// mistakes are those that policy check reports.
var mistakes = []mistake{
	// What no run loads.
	{"syntax before v1", "", "deny[x] { x := 1 }", "policy.compile", ""},
	{"no if", "", strings.TrimSuffix(denyIf, "if ") + "{ true }", "policy.compile", ""},
	{"no contains", "", `deny {"rule": "o.d"} if true`, "policy.compile", ""},
	{"no package", "-", denyIf + "true", "policy.compile", ""},
	{"a file without anything", "-", "", "policy.compile", ""},
	{"misspelt package", "comand", denyIf + "true", "policy.unknown-key", ""},
	{"another package", "-", "package acme\n\n" + denyIf + "true", "policy.unknown-key", ""},
	{"misspelt set", "", strings.Replace(denyIf, "deny contains", "denny contains", 1) + "true", "policy.unknown-key", ""},
	{"a set of another point", "", hostOf + `"a.example"} if true`, "policy.unknown-key", ""},
	{"a set that is a value", "", `deny := "no" if true`, "policy.compile", ""},
	{"a default of a set", "", "default deny := false", "policy.compile", ""},
	{"a layer without a rule", "lib", "x := 1", "policy.missing", ""},
	{"misspelt field", "", denyIf + `input.command.progam == "x"`, "policy.compile", ""},
	{"misspelt field of an element", "", denyIf + `{ some o in input.command.options; o.nam == "-x" }`, "policy.compile", ""},
	{"a field of another point", "exec", denyIf + usual, "policy.compile", ""},
	{"a list as a text", "", denyIf + `input.command.argv == "x"`, "policy.compile", ""},
	{"a number as a text", "egress", denyIf + `input.port == "443"`, "policy.compile", ""},
	{"misspelt function", "", denyIf + `startwith(input.command.program, "x")`, "policy.compile", ""},
	{"a request to a server", "", denyIf + `http.send({"url": "https://a.example", "method": "get"}).status_code == 200`, "policy.builtin", ""},
	{"the time", "", denyIf + `time.now_ns() > 5`, "policy.builtin", ""},
	{"another input", "", denyIf + `x with input.command.program as "x"` + "\n\nx if " + usual, "policy.compile", ""},
	{"a rule of the shipped policy", "", denyIf + "data.fumehood.lib.denial", "policy.compile", ""},
	{"data of no file", "", denyIf + `input.command.program in data.acme.denied`, "policy.compile", ""},
	{"an import of no file", "", "import data.acme\n\n" + denyIf + `input.command.program in acme.denied`, "policy.compile", ""},
	{"a variable without value", "", denyIf + `input.command.program == p`, "policy.compile", ""},
	{"a variable without use", "", denyIf + `{ p := input.command.program; true }`, "policy.compile", ""},
	{"recursion", "", denyIf + "a\n\na if b\n\nb if a", "policy.compile", ""},
	{"a number of a thousand digits", "", denyIf + "input.command.index == 1e1000", "policy.compile", ""},
	{"METADATA that is not YAML", "", "# METADATA\n# title: a: b\ndeny contains {} if true", "policy.compile", ""},
	{"schemas in METADATA", "", "# METADATA\n# schemas:\n#   - input: {type: object}\n" + strings.TrimPrefix(denyIf, "# METADATA\n") + "true", "policy.compile", ""},
	{"data that is not an object", "", denyIf + "true", "policy.data", "[1]"},
	{"data of packages", "", denyIf + "true", "policy.data", `{"fumehood": {"command": {}}}`},
	{"a retry that is not one", "", strings.Replace(denyIf, "match:", "retry: maybe, match:", 1) + "true", "policy.unknown-key", ""},
	{"a date that is not one", "", strings.Replace(allowIf, "match:", "expires: soon, match:", 1) + "true", "policy.unknown-key", ""},
	{"expire", "", strings.Replace(allowIf, "match:", "expire: 2026-12-31, match:", 1) + "true", "policy.unknown-key", ""},
	{"an override of a layer that must not", "", `override contains {"rule": "judged.verb", "effect": "allow"} if ` + usual, "policy.override", ""},
	{"a denial that expires", "", strings.Replace(denyIf, "match:", "expires: 2090-12-31, match:", 1) + "true", "policy.unknown-key", ""},
	// What would stop a run, and not its load.
	{"a pattern that is not one", "exec", denyIf + "regex.match(`^(kube[a-z+$`, input.name)", "policy.compile", ""},
	{"such a pattern in a constant", "output", "p := `[`\n\n" + denyIf + "regex.match(p, input.name)", "policy.compile", ""},
	{"such a pattern of a helper", "egress", denyIf + "f(input.path)\n\nf(x) if regex.match(`(`, x)", "policy.compile", ""},
	{"a glob that is not one", "", denyIf + `glob.match("[", [], input.command.program)`, "policy.compile", ""},
	{"a network that is not one", "egress", denyIf + `net.cidr_contains("10.0.0.0/33", input.address)`, "policy.compile", ""},
	{"two values of one name", "", denyIf + "most == 1\n\nmost := 1\n\nmost := 2", "policy.compile", ""},
	{"two values that may meet", "", denyIf + "most == 1\n\nmost := 1 if input.command.static\n\nmost := 2 if input.command.loose", "lint.conflict", ""},
	{"512 bytes of memory", "proposal", limitOf + `"memory_bytes": 512} if true`, "lint.floor", ""},
	{"ten milliseconds", "", limitOf + `"wall_ms": 10} if ` + usual, "lint.floor", ""},
	{"one process", "proposal", limitOf + `"pids": 1} if true`, "lint.floor", ""},
	// What a run loads and an author does not mean.
	{"a pattern without anchors that allows", "", allowIf + "regex.match(`go`, input.command.program)", "lint.regex", ""},
	{"a pattern without anchors that denies", "", denyIf + "regex.match(`rm`, input.command.program)", "lint.longer", ""},
	{"a beginning that allows", "", allowIf + `startswith(input.command.operands[0].value, "/x")`, "lint.boundary", ""},
	{"an end that allows", "egress", allowIf + `endswith(input.name, "example.com")`, "lint.boundary", ""},
	{"a part that allows", "egress", allowIf + `contains(input.name, "example")`, "lint.boundary", ""},
	{"not of a word that may be missing", "", allowIf + `not input.command.argv[0] == "x"`, "lint.missing", ""},
	{"unequal to a word that may be missing", "", denyIf + `input.command.argv[0] != "x"`, "lint.missing", ""},
	{"any word that is not test", "", denyIf + `{ some w in input.command.argv; w != "test" }`, "lint.any", ""},
	{"every word of none", "", denyIf + `every w in input.command.argv { w != "test" }`, "lint.any", ""},
	{"a denial of everything", "", denyIf + "true", "lint.all", ""},
	{"never", "", denyIf + "false", "lint.never", ""},
	{"two programs at once", "", denyIf + `{ ` + usual + `; input.command.program == "y" }`, "lint.never", ""},
	{"in a text", "", denyIf + `"x" in input.command.sub`, "lint.never", ""},
	{"argv[0] as the program", "", denyIf + `input.command.argv[0] == "docker"`, "lint.argv", ""},
	{"argv[0] of a start", "exec", denyIf + `input.argv[0] == "docker"`, "lint.argv", ""},
	{"a program in capitals", "", denyIf + `input.command.program == "Docker"`, "lint.never", ""},
	{"a tool in capitals", "exec", denyIf + `input.tool == "NPM"`, "lint.never", ""},
	{"a program with its directory", "", denyIf + `input.command.program == "/usr/bin/docker"`, "lint.never", ""},
	{"a program with its version", "exec", denyIf + `input.name == "python3.11"`, "lint.never", ""},
	{"an allow of a layer that must not", "", allowIf + usual, "lint.ignored", ""},
	{"no id", "", strings.ReplaceAll(strings.ReplaceAll(denyIf, "rule: o.d, ", ""), `"rule": "o.d", `, "") + "true", "lint.id", ""},
	{"an id without a group", "", strings.ReplaceAll(denyIf, "o.d", "d") + "true", "lint.id", ""},
	{"two titles of one id", "", denyIf + usual + "\n\n" + strings.Replace(denyIf, "title: T", "title: U", 1) + usual, "lint.id", ""},
	{"one id of two denials", "", denyIf + usual + "\n\n" + strings.Replace(denyIf, `"m"`, `"other"`, 1) + `input.command.program == "y"`, "lint.id", ""},
	{"one id of a denial and a question", "", denyIf + usual + "\n\n" + strings.ReplaceAll(strings.Replace(askIf, "title: A", "title: T", 1), "o.q", "o.d") + usual, "lint.id", ""},
	{"an id of the shipped policy", "", strings.ReplaceAll(denyIf, "o.d", "network.client") + usual, "lint.id", ""},
	{"another id in METADATA", "", strings.Replace(denyIf, "rule: o.d", "rule: o.e", 1) + usual, "lint.id", ""},
	{"no title", "", strings.Replace(denyIf, "# title: T\n", "", 1) + usual, "lint.title", ""},
	{"METADATA above package", "-", "# METADATA\n# title: T\n# custom: {rule: o.d}\npackage fumehood.command\n\n" + denyIf[strings.Index(denyIf, "deny"):] + usual, "lint.metadata", ""},
	{"mtach", "", strings.Replace(denyIf, "match:", "mtach:", 1) + usual, "lint.metadata", ""},
	{"severty", "", strings.Replace(denyIf, "match:", "severty: high, match:", 1) + usual, "lint.metadata", ""},
	{"a severity that is not one", "", strings.Replace(denyIf, "match:", "severity: bad, match:", 1) + usual, "lint.metadata", ""},
	{"no examples", "", strings.Replace(denyIf, ", match: [x]", "", 1) + usual, "lint.examples", ""},
	{"no suggestion", "", strings.Replace(denyIf, `, "suggestion": "s"`, "", 1) + usual, "lint.suggestion", ""},
	{"a text as an answer", "", "# METADATA\n# title: T\n# custom: {rule: o.d}\ndeny contains \"no\" if " + usual, "lint.shape", ""},
	{"another key of an answer", "", strings.Replace(denyIf, `"message"`, `"reason"`, 1) + usual, "lint.shape", ""},
	{"memory with a unit", "proposal", limitOf + `"memory_bytes": "2G"} if true`, "lint.shape", ""},
	{"memory without bytes", "proposal", limitOf + `"memory": 2} if true`, "lint.shape", ""},
	{"a host with a scheme", "proposal", hostOf + `"https://a.example"} if true`, "lint.shape", ""},
	{"a denial in texts alone", "", strings.Replace(denyIf, ", text_only: true", "", 1) + usual, "lint.start", ""},
	{"a rule without use", "", denyIf + usual + "\n\nhelper if " + usual, "lint.unused", ""},
	{"print", "", denyIf + `print("x")`, "lint.print", ""},
	{"too few values of a format", "", strings.Replace(denyIf, `"m"`, `sprintf("%s %s", [input.command.program])`, 1) + usual, "lint.format", ""},
	{"every requested host", "proposal", hostOf + `h} if some h in input.proposal.network`, "lint.whole", ""},
	{"every requested host by number", "proposal", hostOf + `input.proposal.network[_]} if true`, "lint.whole", ""},
	{"misspelt data", "", denyIf + `input.command.program in data.acme.alowed`, "lint.data", `{"acme": {"allowed": ["x"]}}`},
	{"data without use", "", denyIf + usual, "lint.data", `{"acme": {"allowed": ["x"]}}`},
	{"a question about a start", "exec", strings.Replace(askIf, ", match: [x]", "", 1) + `input.name == "x"`, "lint.ask", ""},
	{"a question about a trigger", "trigger", askIf + "input.pr.draft", "lint.ask", ""},
	// Values that the input never has.
	{"place repo", "", denyIf + `{ some o in input.command.operands; o.place == "repo" }`, "lint.never", ""},
	{"phase set-up", "proposal", denyIf + `input.proposal.phase == "set-up"`, "lint.never", ""},
	{"permission maintainer", "trigger", denyIf + `input.actor.permission != "maintainer"`, "lint.never", ""},
	{"/fumehood run", "trigger", denyIf + `input.command == "/fumehood run"`, "lint.never", ""},
	{"language python3", "snippet", denyIf + `input.snippet.language == "python3"`, "lint.never", ""},
	{"layer image", "exec", denyIf + `input.layer in {"image", "rootfs"}`, "lint.never", ""},
	{"kind dns", "egress", denyIf + `input.kind == "dns"`, "lint.never", ""},
	{"kind file", "output", denyIf + `input.kind == "file"`, "lint.never", ""},
	{"a name with a port", "egress", denyIf + `input.name == "api.internal:443"`, "lint.never", ""},
	{"a name in capitals", "egress", denyIf + `input.name == "API.internal"`, "lint.never", ""},
	{"a name with a scheme", "egress", denyIf + `input.sni == "https://api.internal"`, "lint.never", ""},
	{"method post", "egress", denyIf + `input.method == "post"`, "lint.never", ""},
	{"capability networking", "snippet", denyIf + `"networking" in input.snippet.capabilities`, "lint.never", ""},
	{"capability networking by name", "snippet", denyIf + `{ some c in input.snippet.capabilities; c == "networking" }`, "lint.never", ""},
	{"event open", "event", strings.Replace(strings.Replace(denyIf, "deny", "note", 1), `, "suggestion": "s"`, "", 1) + `input.kind == "open"`, "lint.never", ""},
	{"a relative path", "exec", denyIf + `input.path == "bin/x"`, "lint.never", ""},
}

// Every mistake in a policy is reported by policy check, or by policy test.
func TestMistakes(t *testing.T) {
	lanetest.SkipShort(t)
	var layers []policy.Layer
	for i, m := range mistakes {
		text := m.rego
		if m.point != "-" {
			text = "package fumehood." + cmp.Or(m.point, "command") + "\n\n" + m.rego + "\n"
		}
		l := policy.Layer{Name: fmt.Sprint(i), Files: []policy.File{{Name: "a.rego", Content: []byte(text)}}}
		if m.data != "" {
			l.Files = append(l.Files, policy.File{Name: "data.json", Content: []byte(m.data)})
		}
		layers = append(layers, l)
	}
	r, err := policy.Check(t.Context(), layers)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range mistakes {
		var codes []string
		for _, p := range r.Problems {
			if p.Layer == fmt.Sprint(i) {
				codes = append(codes, string(p.Severity)+" "+p.Code+": "+p.Message)
			}
		}
		if !slices.ContainsFunc(codes, func(c string) bool { return strings.Contains(c, " "+m.code+": ") }) {
			t.Errorf("%s: no %s in %q", m.name, m.code, codes)
		}
	}
}

// Those that no reading finds, and policy test does: it says that the rule has no effect, or too much.
func TestMistakesWithoutEffect(t *testing.T) {
	lanetest.SkipShort(t)
	for _, m := range []mistake{
		{"a question about what the default denies", "command", askIf + `input.command.program == "docker"`, "not seen to decide", ""},
		{"a denial of nearly everything", "command", denyIf + `input.command.program != "nosuch"`, "denies nearly everything", ""},
		{"an allow of what the default denies", "command", allowIf + `input.command.program == "docker"`, "not seen to have an effect", ""},
		{"a condition that no command meets", "command", denyIf + `{ input.command.program == "go"; input.command.via[0] == "go" }`, "not seen to hold", ""},
	} {
		l := layer("a.rego", "package fumehood."+m.point+"\n\n"+m.rego+"\n")
		l.Role = policy.Allows
		r := try(t, trial.Options{Tried: []policy.Layer{l}})
		if len(r.Shadows) != 1 || !strings.Contains(r.Shadows[0].Seen, m.code) {
			t.Errorf("%s: %+v", m.name, r.Shadows)
		}
	}
}
