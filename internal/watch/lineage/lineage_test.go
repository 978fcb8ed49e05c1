// SPDX-License-Identifier: Apache-2.0

package lineage

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/policy/facts"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// words makes Words: "$x" is dynamic, "$x…" may be several, "*" is a glob, "p=$x" is
// dynamic with a literal prefix.
func words(list ...string) []proposal.Word {
	var out []proposal.Word
	for _, w := range list {
		prefix, _, dynamic := strings.Cut(w, "$")
		switch {
		case w == "*":
			out = append(out, proposal.Word{Glob: true})
		case dynamic:
			out = append(out, proposal.Word{Value: prefix, Split: strings.HasSuffix(w, "…")})
		default:
			out = append(out, proposal.Word{Value: w, Static: true})
		}
	}
	return out
}

func command(list ...string) proposal.Command {
	c := proposal.Command{Args: words(list...), Program: list[0]}
	c.Launches = slices.Contains([]string{"sh", "timeout", "xargs"}, list[0])
	return c
}

// gated returns a Gate that is running a text with these commands. Its policy denies
// every argv with the word "no", and asks about those with the word "ask".
func gated(t *testing.T, commands ...proposal.Command) *ProgramDecider {
	t.Helper()
	g := &ProgramDecider{
		Path: []string{"/usr/bin", "/usr/local/bin"}, Confine: facts.Confine,
		Exec: func(_ context.Context, x proposal.Exec) (proposal.ExecDecision, error) {
			if slices.Contains(x.Argv, "refused-by-exec") {
				return proposal.ExecDecision{Effect: proposal.Deny, Rules: []string{"exec.x"}}, nil
			}
			return proposal.ExecDecision{Effect: proposal.Allow, Rules: []string{"exec.ok"}, Cacheable: true}, nil
		},
		Analyze: func(p proposal.Proposal) proposal.Analysis {
			if slices.Contains(p.Argv, "unreadable") {
				return proposal.Analysis{Unknowns: []proposal.Unknown{{Code: "parse.x", Message: "cannot be read", Hint: "write it"}}}
			}
			return proposal.Analysis{Commands: []proposal.Command{command(p.Argv...), {Program: "inner", Args: words("inner"), Via: []string{p.Argv[0]}}}}
		},
		Start: func(_ context.Context, _ proposal.Proposal, a proposal.Analysis) (proposal.Decision, error) {
			d := proposal.Decision{Effect: proposal.Allow, Rules: []string{"command.ok"}}
			for _, w := range a.Commands[0].Argv() {
				switch {
				case w == "broken":
					return d, errors.New("policy is broken")
				case w == "-evil" || strings.HasSuffix(w, "curl"):
					d.Effect, d.Reasons = proposal.Deny, []proposal.Reason{{Rule: "r.evil", Effect: proposal.Deny, Message: "evil"}}
				case w == "ask" && d.Effect == proposal.Allow:
					d.Effect, d.Reasons = proposal.Ask, []proposal.Reason{{Rule: "r.ask", Effect: proposal.Ask, Message: "asked"}}
				}
			}
			for _, as := range a.Commands[0].Assigns {
				if as.Name == "LD_PRELOAD" || as.Name == "XDG_DATA_HOME" && as.Value.Static {
					d.Effect, d.Reasons = proposal.Deny, []proposal.Reason{{Rule: "r.env", Effect: proposal.Deny, Message: "steers"}}
				}
			}
			return d, nil
		},
		DecideProgram: func(context.Context, proposal.Proposal, proposal.Analysis) (proposal.Decision, bool, error) {
			return proposal.Decision{}, false, nil
		},
	}
	for i := range commands {
		commands[i].Index = i
	}
	g.Begin(proposal.Record{Proposal: proposal.Proposal{ID: "p", Run: "text"}, Analysis: proposal.Analysis{Commands: commands}})
	return g
}

// started is an exec by the text's shell of a program found in its PATH.
func started(argv ...string) proposal.Exec {
	named := argv[0]
	if !strings.Contains(named, "/") {
		named = "/usr/bin/" + named
	}
	return proposal.Exec{Command: "p", Path: named, Named: named, Argv: argv, Whole: argv, Layer: proposal.LayerRootfs,
		Lineage: First, Text: true, Same: []string{}, ArgvDigest: strings.Join(argv, "\x00")}
}

// script is an exec of a script: the kernel has put the script's name before its
// words.
func script(named, path string, words ...string) proposal.Exec {
	x := started(append([]string{named}, words...)...)
	x.Renamed, x.Named, x.Path = true, named, path
	return x
}

func with(x proposal.Exec, change func(*proposal.Exec)) proposal.Exec {
	change(&x)
	return x
}

func variable(name, value string) func(*proposal.Exec) {
	return func(x *proposal.Exec) {
		x.Changed = append(x.Changed, proposal.Assign{Name: name, Value: proposal.Word{Value: value, Static: true}, Exported: true})
	}
}

func TestJudge(t *testing.T) {
	shown := command("go", "test")
	shown.Assigns = []proposal.Assign{{Name: "X", Value: proposal.Word{Value: "1", Static: true}, Exported: true}, {Name: "Y", Value: proposal.Word{}, Exported: true},
		{Name: "HOME", Value: proposal.Word{Head: "$(mktemp -d)"}, Exported: true}}
	function := command("ls", "-evil")
	function.Function = true
	g := gated(t, shown, command("grep", "x", "$f"), command("go", "vet", "$x…"), command("tar", "*"), command("dd", "if=$f"),
		command("sh", "-c", "a"), command("/usr/bin/env"), command("./x.sh"), command("ask"), command("npm", "test"), command("/usr/bin/which", "ls"), function)
	for _, tt := range []struct {
		name    string
		exec    proposal.Exec
		start   string
		rule    string // the rule that refuses
		text    bool   // the new program's process belongs to a text
		tool    bool   // it may start only what its list has
		message string
	}{
		{name: "every word", exec: started("go", "test"), start: "predicted"},
		{name: "a word more", exec: started("go", "test", "x"), start: "decided"},
		{name: "an option more", exec: started("go", "test", "-evil"), start: "refused", rule: "r.evil", message: "not in the text"},
		{name: "a free word", exec: started("grep", "x", "f"), start: "decided", tool: true},
		{name: "a free word that is an option", exec: started("grep", "x", "-evil"), start: "refused", rule: "r.evil", message: "with the words"},
		{name: "another static word", exec: started("grep", "-evil", "f"), start: "refused", rule: "r.evil", message: "not in the text"},
		{name: "several words", exec: started("go", "vet", "a", "b", "-evil"), start: "refused", rule: "r.evil", message: "with the words"},
		{name: "no word", exec: started("go", "vet"), start: "decided", tool: true},
		{name: "a name that a pattern gave", exec: started("tar", "a", "-evil"), start: "refused", rule: "r.evil", message: "with the words"},
		{name: "a literal prefix", exec: started("dd", "of=x"), start: "decided", tool: true},
		{name: "never in the text", exec: started("curl", "h"), start: "refused", rule: "r.evil", message: "not in the text"},
		{name: "a function's name", exec: started("ls", "-evil"), start: "refused", rule: "r.evil", message: "not in the text"},
		{name: "an inner shell of the text", exec: started("sh", "-c", "a"), start: "predicted", text: true},
		{name: "another inner shell", exec: started("sh", "-c", "b"), start: "decided", text: true},
		{name: "what cannot be read", exec: started("sh", "unreadable"), start: "refused", rule: RuleUnreadable, message: "cannot be read"},
		{name: "by fumehood.exec", exec: started("refused-by-exec"), rule: "exec.x"},
		{name: "a question", exec: started("go", "ask"), start: "refused", rule: "r.ask"},
		{name: "an assigned variable", exec: with(started("go", "test"), variable("X", "1")), start: "predicted"},
		{name: "with another value", exec: with(started("go", "test"), variable("X", "2")), start: "decided"},
		{name: "with a value that only run time knows", exec: with(started("go", "test"), variable("Y", "2")), start: "decided"},
		{name: "a variable that the text does not show", exec: with(started("go", "test"), variable("LD_PRELOAD", "./x.so")), start: "refused", rule: "r.env"},
		{name: "a new home", exec: with(started("go", "test"), variable("HOME", "/tmp/tmp.aB3dE6gH9j")), start: "predicted"},
		{name: "a new home that the text does not make", exec: with(started("go", "test"), variable("XDG_DATA_HOME", "/tmp/tmp.aB3dE6gH9j")), start: "refused", rule: "r.env"},
		{name: "too many variables", exec: with(started("go", "test"), func(x *proposal.Exec) { x.EnvCut = true }), start: "refused", rule: RuleTooLarge},
		{name: "too many words", exec: with(started("go", "vet", "a"), func(x *proposal.Exec) { x.Partial = true }), start: "refused", rule: RuleTooLong},
		{name: "another name for itself", exec: with(started("go", "test"), func(x *proposal.Exec) { x.Named, x.Path = "/usr/bin/curl", "/usr/bin/curl" }), start: "refused", rule: "r.evil"},
		{name: "found elsewhere", exec: with(started("go", "test"), func(x *proposal.Exec) { x.Named = "/tmp/go" }), start: "decided"},
		{name: "an absolute path", exec: started("/usr/bin/env"), start: "predicted", tool: true},
		{name: "a link to a tool", exec: with(started("./x.sh"), func(x *proposal.Exec) { x.Path = "/usr/bin/curl" }), start: "refused", rule: "r.evil"},
		{name: "a copy of a tool", exec: with(started("./x.sh"), func(x *proposal.Exec) {
			x.Layer, x.Path, x.Same = proposal.LayerWritten, "/workspace/x.sh", []string{"/usr/bin/curl"}
		}), start: "refused", rule: "r.evil"},
		{name: "the repository's own file", exec: with(started("./x.sh"), func(x *proposal.Exec) { x.Layer, x.Path = proposal.LayerWorkspace, "/workspace/x.sh" }), start: "predicted"},
		{name: "a program's child", exec: with(started("curl"), func(x *proposal.Exec) { x.Lineage = Program })},
		{name: "another command's", exec: with(started("go", "test"), func(x *proposal.Exec) { x.Command = "q" }), start: "refused", rule: RuleNoText},
		{name: "a lineage that was never given", exec: with(started("go", "test"), func(x *proposal.Exec) { x.Lineage = 77 }), start: "refused", rule: RuleNoText},
		{name: "a script of the root file system", exec: script("/usr/bin/npm", "/usr/lib/npm-cli.js", "test"), start: "predicted"},
		{name: "with another word", exec: script("/usr/bin/npm", "/usr/lib/npm-cli.js", "-evil"), start: "refused", rule: "r.evil"},
		{name: "by its path", exec: script("/usr/bin/which", "/usr/bin/which.debianutils", "ls"), start: "decided", tool: true},
		{name: "found elsewhere than in PATH", exec: script("/tmp/npm", "/tmp/npm", "test"), start: "decided"},
		{name: "a name in other bytes", exec: started("tar", "caf\xe9"), start: "decided", tool: true},
		{name: "other bytes in an option", exec: started("tar", "-evil\xe9"), start: "decided", tool: true},
		{name: "other bytes beside an option", exec: started("tar", "caf\xe9", "-evil"), start: "refused", rule: "r.evil", message: "with the words"},
		{name: "other bytes for an inner shell", exec: started("sh", "-c", "caf\xe9"), start: "refused", rule: RuleUnreadable, message: "not UTF-8"},
		{name: "text that looks escaped for one", exec: started("sh", "-c", "caf\u28e9"), start: "refused", rule: RuleUnreadable, message: "not UTF-8"},
		{name: "no words at all", exec: with(started("go", "test"), func(x *proposal.Exec) { x.Whole = nil }), start: "decided"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, err := g.DecideExec(t.Context(), tt.exec)
			if err != nil {
				t.Fatal(err)
			}
			rule, message := "", ""
			if d.Effect != proposal.Allow {
				rule = d.Rules[0]
			}
			if d.Reason != nil {
				message = d.Reason.Message
			}
			if d.Start != tt.start || rule != tt.rule || !strings.Contains(message, tt.message) || (d.Lineage != 0 && d.Lineage < Tool) != tt.text || (d.Lineage >= Tool) != tt.tool {
				t.Errorf("%+v, reason %+v", d, d.Reason)
			}
			if tt.exec.Lineage != 0 && d.Cacheable && d.Effect == proposal.Allow {
				t.Error("the kernel may keep an answer that depends on argv")
			}
		})
	}
}

// An inner text that was decided at its start has its own predictions.
func TestInnerText(t *testing.T) {
	g := gated(t, command("go", "test"))
	d, err := g.DecideExec(t.Context(), started("timeout", "5"))
	if err != nil || d.Start != StartDecided || d.Lineage <= First {
		t.Fatalf("%+v, %v", d, err)
	}
	in := with(started("inner"), func(x *proposal.Exec) { x.Lineage = d.Lineage })
	asked := 0
	start := g.Start
	g.Start = func(ctx context.Context, p proposal.Proposal, a proposal.Analysis) (proposal.Decision, error) {
		asked++
		return start(ctx, p, a)
	}
	if d, err := g.DecideExec(t.Context(), in); err != nil || d.Start != StartDecided || asked != 0 {
		t.Errorf("what the inner text names was decided with it: %+v, %v, asked %d times", d, err, asked)
	}
	if d, err := g.DecideExec(t.Context(), started("inner")); err != nil || d.Start != StartDecided || asked != 1 {
		t.Errorf("what the outer one does not name: %+v, %v, asked %d times", d, err, asked)
	}
	g.Begin(proposal.Record{Proposal: proposal.Proposal{ID: "p"}})
	if d, err := g.DecideExec(t.Context(), in); err != nil || d.Effect == proposal.Allow {
		t.Errorf("the lineage of an earlier command: %+v, %v", d, err)
	}
}

func TestInnerTextsAreBounded(t *testing.T) {
	lanetest.SkipShort(t)
	g := gated(t, command("go", "test"))
	const long = 1 << 20
	for i := range maxTextBytes/long + 10 {
		d, err := g.DecideExec(t.Context(), started("timeout", strings.Repeat("x", long+i)))
		if err != nil {
			t.Fatal(err)
		}
		if over := i >= maxTextBytes/(long+10000); over && d.Effect == proposal.Allow || i < maxTextBytes/2/long && d.Effect != proposal.Allow {
			t.Fatalf("inner text %d: %+v", i, d)
		}
	}
}

// A command's stdin is the one in the text, unless no command of the text matches.
func TestStdin(t *testing.T) {
	here, shell := command("python3", "-", "$x"), command("bash", "-s", "$x")
	here.StdinFrom, shell.StdinFrom = "heredoc", "heredoc"
	g := gated(t, here, shell)
	var from string
	start := g.Start
	g.Start = func(ctx context.Context, p proposal.Proposal, a proposal.Analysis) (proposal.Decision, error) {
		from = a.Commands[0].StdinFrom
		return start(ctx, p, a)
	}
	for _, tt := range []struct {
		exec proposal.Exec
		want string
	}{{started("python3", "-", "a"), "heredoc"}, {started("python3", "a"), "pipe"}, {started("bash", "-s", "a"), "pipe"}} {
		if _, err := g.DecideExec(t.Context(), tt.exec); err != nil || from != tt.want {
			t.Errorf("%q reads from %q, want %q: %v", tt.exec.Whole, from, tt.want, err)
		}
	}
}

// A person's approval covers the rules that asked, and no others.
func TestApproval(t *testing.T) {
	g := gated(t)
	record := proposal.Record{Proposal: proposal.Proposal{ID: "p", Run: "x"}, Approval: &proposal.Approval{}}
	g.Begin(record)
	if d, _ := g.DecideExec(t.Context(), started("go", "ask")); d.Effect == proposal.Allow {
		t.Error("an approval of nothing lets a question pass")
	}
	record.Decision.Reasons = []proposal.Reason{{Rule: "r.ask", Effect: proposal.Ask}, {Rule: "r.evil", Effect: proposal.Deny}}
	g.Begin(record)
	if d, _ := g.DecideExec(t.Context(), started("go", "ask")); d.Effect != proposal.Allow {
		t.Errorf("an approved question is refused: %+v", d)
	}
	if d, _ := g.DecideExec(t.Context(), started("go", "-evil")); d.Effect == proposal.Allow {
		t.Error("an approval lets a denial pass")
	}
}

// The first process of a command is started by the sandbox itself.
func TestFirst(t *testing.T) {
	for _, tt := range []struct {
		name string
		p    proposal.Proposal
		c    proposal.Command
		text bool
	}{
		{"a shell's text", proposal.Proposal{ID: "p", Run: "x"}, command("go"), true},
		{"a program", proposal.Proposal{ID: "p", Argv: []string{"go"}}, command("go"), false},
		{"a launcher", proposal.Proposal{ID: "p", Argv: []string{"timeout"}}, command("timeout"), true},
		{"code", proposal.Proposal{ID: "p", Code: "x", Language: "python"}, command("python3"), false},
	} {
		g := gated(t)
		g.Begin(proposal.Record{Proposal: tt.p, Analysis: proposal.Analysis{Commands: []proposal.Command{tt.c}}})
		d, err := g.DecideExec(t.Context(), with(started("anything"), func(x *proposal.Exec) { x.First = true }))
		if err != nil || d.Start != StartPredicted || (d.Lineage == First) != tt.text {
			t.Errorf("%s: %+v, %v", tt.name, d, err)
		}
	}
}

func TestBrokenPolicy(t *testing.T) {
	g := gated(t)
	if d, err := g.DecideExec(t.Context(), started("go", "broken")); err == nil || d.Effect == proposal.Allow {
		t.Errorf("%+v, %v", d, err)
	}
	if d, err := (&ProgramDecider{Exec: g.Exec}).DecideExec(t.Context(), started("go")); err != nil || d.Effect == proposal.Allow {
		t.Errorf("before any command: %+v, %v", d, err)
	}
}

// fumehood.exec is asked once about a file, unless its answer is not reusable.
func TestFilesAreAskedOnce(t *testing.T) {
	g := gated(t, command("go", "test"))
	asked := 0
	answer := proposal.ExecDecision{Effect: proposal.Allow, Rules: []string{}, Cacheable: true}
	g.Exec = func(context.Context, proposal.Exec) (proposal.ExecDecision, error) { asked++; return answer, nil }
	steered := with(started("go", "test"), func(x *proposal.Exec) { x.Env = []string{"LD_PRELOAD"} })
	other := with(started("go", "test"), func(x *proposal.Exec) { x.Digest = "sha256:01" })
	for i, tt := range []struct {
		exec proposal.Exec
		want int
	}{{started("go", "test"), 1}, {started("go", "test"), 1}, {other, 2}, {steered, 3}, {steered, 4}} {
		if d, err := g.DecideExec(t.Context(), tt.exec); err != nil || d.Effect != proposal.Allow || d.Cacheable || asked != tt.want {
			t.Errorf("%d: asked %d times, want %d: %+v, %v", i, asked, tt.want, d, err)
		}
	}
	g.Begin(proposal.Record{Proposal: proposal.Proposal{ID: "p"}})
	if _, err := g.DecideExec(t.Context(), started("go", "test")); err != nil || asked != 5 {
		t.Errorf("asked %d times in all, want again for the next command: %v", asked, err)
	}
	answer.Cacheable = false
	for range 2 {
		_, _ = g.DecideExec(t.Context(), with(started("go"), func(x *proposal.Exec) { x.Path = "/usr/bin/other" }))
	}
	if asked != 7 {
		t.Errorf("an answer that may not be used again was")
	}
}

// Policy never gets the same text for two different arguments.
func TestOtherBytesAreDistinct(t *testing.T) {
	var got []string
	g := gated(t, command("tar", "*"))
	g.Analyze = func(p proposal.Proposal) proposal.Analysis {
		got = append(got, p.Argv[1])
		return proposal.Analysis{Commands: []proposal.Command{command(p.Argv...)}}
	}
	for _, word := range []string{"caf\xe9", "caf\u28e9", "caf\uFFFD", "café"} {
		if _, err := g.DecideExec(t.Context(), started("tar", word)); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{"caf\u28e9", "caf\u28e2\u28a3\u28a9", "caf\uFFFD", "café"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// child is an exec by a process of this lineage, which is a tool's.
func child(lineage uint32, file string, argv ...string) proposal.Exec {
	x := started(argv...)
	x.Lineage, x.Path, x.Named, x.Whole, x.Text = lineage, file, "", nil, false
	return x
}

// What a tool starts is decided with the tool and all programs between it and the start.
func TestChildren(t *testing.T) {
	g := gated(t, command("tar", "tf", "x.tgz"), command("make"), command("go", "tool", "test2json", "./x.test"), command("acme"))
	var asked proposal.Exec
	inner := g.Exec
	g.Exec = func(ctx context.Context, x proposal.Exec) (proposal.ExecDecision, error) {
		asked = x
		return inner(ctx, x)
	}
	judge := func(x proposal.Exec) proposal.ExecDecision {
		t.Helper()
		d, err := g.DecideExec(t.Context(), x)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	written := func(x proposal.Exec) proposal.Exec {
		x.Layer, x.Grants = proposal.LayerWritten, []string{"built"}
		return x
	}
	chain := func(under string, want ...string) {
		t.Helper()
		if asked.Under != under || !slices.Equal(asked.Chain, want) {
			t.Errorf("asked about a child of %q, %q, want %q, %q", asked.Under, asked.Chain, under, want)
		}
	}

	tar := judge(started("tar", "tf", "x.tgz"))
	shell := judge(child(tar.Lineage, "/usr/bin/dash", "sh", "-c", "gzip"))
	chain("tar", "tar")
	if shell.Cacheable || shell.Under != "tar" || shell.Lineage <= tar.Lineage {
		t.Errorf("%+v", shell)
	}
	judge(child(shell.Lineage, "/usr/bin/gzip", "gzip"))
	chain("tar", "tar", "dash")
	if again := judge(child(tar.Lineage, "/usr/bin/dash", "sh", "-c", "x")); again.Lineage != shell.Lineage {
		t.Errorf("the same programs have the lineages %d and %d", shell.Lineage, again.Lineage)
	}
	if own := judge(written(child(shell.Lineage, "/workspace/x", "./x"))); own.Lineage != Program {
		t.Errorf("the repository's program: %+v", own)
	}
	if copied := judge(with(written(child(tar.Lineage, "/workspace/x", "./x")), func(x *proposal.Exec) { x.Same = []string{"/usr/bin/sed"} })); copied.Lineage <= Tool {
		t.Errorf("a copy of sed: %+v", copied)
	}
	chain("tar", "tar")

	if free := judge(started("make")); free.Lineage != Program {
		t.Errorf("make: %+v", free)
	}
	tool := judge(started("go", "tool", "test2json", "./x.test"))
	built := judge(written(child(tool.Lineage, "/tmp/go-build1/test2json", "test2json", "./x.test")))
	judge(written(child(built.Lineage, "/workspace/x.test", "./x.test")))
	chain("test2json", "go", "test2json")

	if unknown := judge(started("acme")); unknown.Lineage <= Tool {
		t.Errorf("a tool that is in no table: %+v", unknown)
	}
	if runner := judge(with(started("acme"), func(x *proposal.Exec) { x.Grants = []string{"built"} })); runner.Lineage != Program {
		t.Errorf("one whose command was granted built: %+v", runner)
	}
	if d := judge(child(Tool+999, "/usr/bin/id", "id")); d.Effect != proposal.Deny || d.Rules[0] != RuleNoText {
		t.Errorf("a lineage that was never given: %+v", d)
	}
	deep := tar
	for range maxChain {
		deep = judge(child(deep.Lineage, "/usr/bin/dash", "sh"))
	}
	if deep.Effect != proposal.Deny || deep.Rules[0] != RuleTooDeep {
		t.Errorf("a chain without end: %+v", deep)
	}
}

// A program of the root under another name, or that is mapped without an execve, is decided by what an
// organization denies, whatever starts it. A mapping is a start for fumehood.exec.
func TestOtherNames(t *testing.T) {
	g := gated(t, command("make"), command("tar"))
	var programs []string
	none := g.DecideProgram
	g.DecideProgram = func(ctx context.Context, p proposal.Proposal, a proposal.Analysis) (proposal.Decision, bool, error) {
		programs = append(programs, p.Argv[0])
		d, err := g.Start(ctx, p, a)
		return d, true, err
	}
	inner, loaded := g.Exec, false
	g.Exec = func(ctx context.Context, x proposal.Exec) (proposal.ExecDecision, error) {
		loaded = loaded || x.Loaded
		return inner(ctx, x)
	}
	tar, err := g.DecideExec(t.Context(), started("tar"))
	if err != nil {
		t.Fatal(err)
	}
	program, library := &proposal.ELF{Type: "dyn", Interpreter: "/lib64/ld.so"}, &proposal.ELF{Type: "dyn", Soname: "libcurl", Loader: true}
	mapped := func(of *proposal.ELF) func(*proposal.Exec) {
		return func(x *proposal.Exec) { x.Loaded, x.ELF, x.Argv, x.Whole = true, of, []string{}, nil }
	}
	busybox := func(x *proposal.Exec) {
		x.Path, x.Asked, x.Argv = "/usr/bin/busybox", "/workspace/t", []string{"t", "curl"}
	}
	link := func(asked string) func(*proposal.Exec) { return func(x *proposal.Exec) { x.Asked = asked } }
	copied := func(x *proposal.Exec) {
		x.Path, x.Layer, x.Same = "/tmp/x", proposal.LayerWritten, []string{"/usr/bin/curl"}
	}
	for _, test := range []struct {
		name    string
		lineage uint32
		change  func(*proposal.Exec)
		denied  bool
		load    bool // fumehood.exec is asked about a library
	}{
		{"its own name", Program, link("/usr/bin/curl"), false, false},
		{"a link of the root", Program, link("/bin/curl"), false, false},
		{"a link of the workspace", Program, link("/workspace/t"), true, false},
		{"a link in /tmp of a tool's child", tar.Lineage, link("/tmp/t"), true, false},
		{"a tool of a link to a program that is many", Program, busybox, true, false},
		{"a copy", Program, copied, true, false},
		{"a mapping", Program, mapped(program), true, false},
		{"a mapping of a tool's process", tar.Lineage, mapped(program), true, false},
		{"a mapping of the text's process", First, mapped(program), true, false},
		{"a mapping of a copy", Program, func(x *proposal.Exec) { mapped(program)(x); copied(x) }, true, false},
		{"a mapping of a library", Program, mapped(library), false, true},
		{"a mapping of an own program", Program, func(x *proposal.Exec) { mapped(program)(x); x.Path, x.Layer = "/tmp/curl", proposal.LayerWritten }, false, true},
	} {
		programs, loaded = nil, false
		d, err := g.DecideExec(t.Context(), with(child(test.lineage, "/usr/bin/curl", "t"), test.change))
		if denied := d.Effect == proposal.Deny; err != nil || denied != test.denied || loaded != test.load || denied && (d.Rules[0] != "r.evil" || d.Cacheable) || len(programs) > 0 != test.denied {
			t.Errorf("%s: %+v, %v; decided %q, as a load %v", test.name, d, err, programs, loaded)
		}
	}
	g.DecideProgram = none
	if d, err := g.DecideExec(t.Context(), with(child(Program, "/usr/bin/curl", "t"), link("/workspace/t"))); err != nil || d.Effect != proposal.Allow || !d.Cacheable {
		t.Errorf("without an organization's rules: %+v, %v", d, err)
	}
}

// A link to a tool that the sandbox's PATH has is decided under the tool's own name, as the interpreter of a
// virtual environment.
func TestNamesOfLinks(t *testing.T) {
	g := gated(t)
	for file, want := range map[string]string{"/usr/local/bin/python3": "python3", "/usr/lib/python3": "/usr/lib/python3"} {
		x := with(started(".venv/bin/python", "-m", "unittest"), func(x *proposal.Exec) { x.Path = file })
		if got := g.decidedNames(x); !slices.Equal(got, []string{".venv/bin/python", want}) {
			t.Errorf("%s: %q", file, got)
		}
	}
}

// The first program of an argv has the lineage that Begin said before it started.
func TestFirstTool(t *testing.T) {
	for _, tt := range []struct {
		argv []string
		free bool
	}{{[]string{"make", "test"}, true}, {[]string{"tar", "tf", "x"}, false}, {[]string{"/usr/bin/gcc-12", "x.c"}, false}, {[]string{"acme"}, false}} {
		g := gated(t)
		r := proposal.Record{Proposal: proposal.Proposal{ID: "p", Argv: tt.argv}, Analysis: proposal.Analysis{Commands: []proposal.Command{command(tt.argv...)}}}
		if free := g.Begin(r); free != tt.free {
			t.Errorf("%q: free %v", tt.argv, free)
		}
		d, err := g.DecideExec(t.Context(), child(Tool, "/usr/bin/id", "id"))
		if known := err == nil && d.Effect == proposal.Allow; known == tt.free {
			t.Errorf("%q: the lineage of its first program is known: %v", tt.argv, known)
		}
	}
}

// Of PATH, policy sees what the sandbox's own one lacks, and what every command can write to.
func TestChangedPath(t *testing.T) {
	g := gated(t, command("npm", "test"))
	g.Path = []string{"/opt/hostedtoolcache/node/bin", "/usr/bin", "/workspace/.venv/bin", "/tmp/tools", "bin"}
	var seen []string
	start := g.Start
	g.Start = func(ctx context.Context, p proposal.Proposal, a proposal.Analysis) (proposal.Decision, error) {
		seen = nil
		for _, as := range a.Commands[0].Assigns {
			seen = append(seen, as.Name+"="+as.Value.Value)
		}
		return start(ctx, p, a)
	}
	for value, want := range map[string]string{
		"/workspace/node_modules/.bin:/opt/hostedtoolcache/node/bin:/usr/bin": "PATH=/workspace/node_modules/.bin",
		"/usr/bin:/opt/hostedtoolcache/node/bin":                              "",
		"/opt/hostedtoolcache/node/bin/../x:/usr/bin":                         "PATH=/opt/hostedtoolcache/node/bin/../x",
		"/opt/hostedtoolcache/node/bin:/usr/bin:/workspace/bin:":              "",
		"/usr/bin:/workspace/bin:/opt/hostedtoolcache/node/bin":               "PATH=/workspace/bin",
		"/tmp/tools:/usr/bin":                                                 "PATH=/tmp/tools",
		"bin:/usr/bin":                                                        "PATH=bin",
		"/usr/bin:":                                                           "PATH=",
		"":                                                                    "PATH=",
		"/workspace/.venv/bin:/usr/bin":                                       "PATH=/workspace/.venv/bin",
	} {
		x := started("npm", "test")
		variable("PATH", value)(&x)
		if _, err := g.DecideExec(t.Context(), x); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(seen, " "); got != want {
			t.Errorf("PATH=%s: policy sees %q, want %q", value, got, want)
		}
	}
}

// A start that may be a command with words that only run time knows is decided again, with the worst
// input: the input of a command with the same words, which was decided with the text, is another.
func TestStartOfTwin(t *testing.T) {
	fixed := command("sqlite3", "a.db")
	fixed.StdinFrom = "heredoc"
	for name, c := range map[string]struct {
		twin  proposal.Command
		start string
		stdin string
	}{
		"none":            {command("ls"), StartPredicted, ""},
		"other words":     {proposal.Command{Program: "sqlite3", Args: []proposal.Word{{Value: "sqlite3", Static: true}, {}, {}}}, StartPredicted, ""},
		"a word":          {proposal.Command{Program: "sqlite3", Args: []proposal.Word{{Value: "sqlite3", Static: true}, {}}, StdinFrom: "pipe"}, StartDecided, "pipe"},
		"without input":   {proposal.Command{Program: "sqlite3", Args: []proposal.Word{{Value: "sqlite3", Static: true}, {}}}, StartDecided, "pipe"},
		"any program":     {proposal.Command{Args: []proposal.Word{{Split: true}}}, StartDecided, "pipe"},
		"a part of it":    {proposal.Command{Program: "sqlite3", Args: []proposal.Word{{Value: "sqlite3", Static: true}, {Split: true}}}, StartDecided, "pipe"},
		"another program": {proposal.Command{Program: "cat", Args: []proposal.Word{{Value: "cat", Static: true}, {Split: true}}}, StartPredicted, ""},
	} {
		g := gated(t, c.twin, fixed)
		stdin := ""
		start := g.Start
		g.Start = func(ctx context.Context, p proposal.Proposal, a proposal.Analysis) (proposal.Decision, error) {
			stdin = a.Commands[0].StdinFrom
			return start(ctx, p, a)
		}
		d, err := g.DecideExec(t.Context(), started("sqlite3", "a.db"))
		if err != nil || d.Start != c.start || stdin != c.stdin {
			t.Errorf("%s: %s, standard input %q, want %s, %q; %v", name, d.Start, stdin, c.start, c.stdin, err)
		}
	}
}

// A text's words were judged in a directory. Elsewhere they can name a control file.
func TestStartElsewhere(t *testing.T) {
	g := gated(t, command("tee", "settings.json"), command("sort", "-o=tasks.json", "x"), command("cd", ".idea"), command("touch", "a.xml"))
	for _, tt := range []struct{ cwd, words, start string }{
		{"/workspace", "tee settings.json", StartPredicted},
		{"/workspace/sub", "tee settings.json", StartPredicted},
		{"/workspace/.vscode", "tee settings.json", StartDecided},
		{"/workspace/a/.git/hooks", "tee settings.json", StartDecided},
		{"/workspace/.vscode", "sort -o=tasks.json x", StartDecided},
		{"/workspace/.idea", "touch a.xml", StartPredicted}, // where cd leads
	} {
		x := started(strings.Fields(tt.words)...)
		x.Cwd = tt.cwd
		if d, err := g.DecideExec(context.Background(), x); err != nil || d.Start != tt.start {
			t.Errorf("%s in %s: %+v, %v; want %s", tt.words, tt.cwd, d, err, tt.start)
		}
	}
}
