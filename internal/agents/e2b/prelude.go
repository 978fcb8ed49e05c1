// SPDX-License-Identifier: Apache-2.0

package e2b

import (
	"context"
	_ "embed"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// plots makes plt.show show a chart's data as E2B's interpreter does.
//
//go:embed plots.py
var plots string

// images makes PIL show images as results, when they are shown or saved.
//
//go:embed images.py
var images string

// preludes are cells that run in a context of Python before the first one that mentions a library: E2B's interpreter
// begins with these names. They are decided and logged as all code. That they fail is no error: the library is not
// there.
var preludes = []struct {
	name     string
	mentions func(string) bool
	code     string
}{
	{"pandas", pattern.New(`\bpd\.`).MatchString, importAs("pandas", "pd")},
	{"numpy", pattern.New(`\bnp\.`).MatchString, importAs("numpy", "np")},
	{"matplotlib", pattern.New(`\bplt\b|\bmatplotlib\b`).MatchString, importAs("matplotlib.pyplot", "plt") + plots},
	{"PIL", pattern.New(`\bPIL\b`).MatchString, images},
}

func importAs(module, name string) string {
	return "if \"" + name + "\" not in globals():\n    import " + module + " as " + name + "\n"
}

// prepareContext runs what must run before code in a context: a change of the directory, and preludes. It reports
// whether the code can run.
func (l *eventWriter) prepareContext(ctx context.Context, b *sandbox, p proposal.Proposal, at codeContext) bool {
	if code := b.changeDirectory(at); code != "" {
		r, err := b.runHidden(ctx, p, code)
		if err != nil || !r.Runnable() || !r.Result.Succeeded() {
			l.sendError("SandboxFailed", "cannot change the directory to "+at.Cwd+", where the context is", "")
			return false
		}
	}
	if at.Language != "python" {
		return true
	}
	for _, prelude := range preludes {
		if prelude.mentions(p.Code) && b.firstUse(at, prelude.name) {
			_, _ = b.runHidden(ctx, p, prelude.code)
		}
	}
	return true
}

// runHidden runs code of the server in p's context. Its output is in the log only.
func (b *sandbox) runHidden(ctx context.Context, p proposal.Proposal, code string) (proposal.Record, error) {
	p.Code, p.Why = code, "E2B's interpreter begins with this"
	return b.proposeAfterSetUp(ctx, b.session.Do, p)
}

// exportForCell returns p without variables of its own, if it is code of bash: a shell keeps one environment, so code
// before p exports them, and restore is code that takes them back.
func (b *sandbox) exportForCell(ctx context.Context, p proposal.Proposal) (_ proposal.Proposal, restore func()) {
	if p.Language != "bash" || len(p.Env) == 0 {
		return p, func() {}
	}
	var before, after strings.Builder
	for _, name := range slices.Sorted(maps.Keys(p.Env)) {
		if !isShellName(name) {
			return p, func() {}
		}
		before.WriteString("export " + name + "=" + quoteWord(p.Env[name]) + "\n")
		if value, has := b.about.EnvVars[name]; has {
			after.WriteString("export " + name + "=" + quoteWord(value) + "\n")
		} else {
			after.WriteString("unset " + name + "\n")
		}
	}
	bare := p
	bare.Env = nil
	if r, err := b.runHidden(ctx, bare, before.String()); err != nil || !r.Runnable() {
		return p, func() {} // which is refused
	}
	return bare, func() { _, _ = b.runHidden(context.WithoutCancel(ctx), bare, after.String()) }
}

var isShellName = pattern.New(`^[A-Za-z_]\w*$`).MatchString

// firstUse reports whether a prelude has not run in a context yet, and notes that it does.
func (b *sandbox) firstUse(at codeContext, prelude string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	first := !at.imported[prelude]
	at.imported[prelude] = true
	return first
}

// forgetState forgets what ran in a context whose interpreter has ended.
func (b *sandbox) forgetState(at codeContext) {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(at.imported)
}

// changeDirectory returns code that changes to the directory of a context, "" if that is not needed.
func (b *sandbox) changeDirectory(at codeContext) string {
	if at.Cwd == home || !b.firstUse(at, "its directory") {
		return ""
	}
	quoted, _ := json.Marshal(at.Cwd) // JSON's strings are Python's and JavaScript's
	switch at.Language {
	case "python":
		return "import os\nos.chdir(" + string(quoted) + ")\ndel os"
	case "javascript":
		return "process.chdir(" + string(quoted) + ")"
	}
	return "cd -- " + quoteWord(at.Cwd)
}

// countCells counts cells that run.
func (b *sandbox) countCells(n int) {
	b.mu.Lock()
	b.contexts.running += n
	b.mu.Unlock()
	b.noteChange()
}

// dedentCode removes the indent of the first line from all lines, as notebooks do.
func dedentCode(code string) string {
	trimmed := strings.TrimLeft(code, " \t\r\n")
	first := code[:len(code)-len(trimmed)]
	indent := first[strings.LastIndexByte(first, '\n')+1:]
	if indent == "" || trimmed == "" {
		return code
	}
	lines := strings.Split(code, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, indent)
	}
	return strings.Join(lines, "\n")
}

// unquoteText removes the quotes of a string's representation, as E2B's interpreter does.
func unquoteText(form string) string {
	if n := len(form); n > 1 && (form[0] == '\'' || form[0] == '"') && form[n-1] == form[0] {
		return form[1 : n-1]
	}
	return form
}
