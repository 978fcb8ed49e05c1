// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// What an event may hold, in the log and in the report. A path is whole, as no
// kernel takes a longer one; argv is bound by its digest.
const (
	mostPath  = 4096
	mostArgv  = 2048 // bytes of all words together
	mostWords = 64
	mostName  = 256
	mostRules = 8
)

// trimmed returns e as it is recorded: no text longer than we keep, all of it UTF-8,
// and nothing shared with whoever gave it. What only the decision needed is gone.
func trimmed(e proposal.Event) proposal.Event {
	e.Kind, e.Command = cut(e.Kind, mostName), cut(e.Command, mostName)
	e.Time = e.Time.UTC().Truncate(time.Microsecond)
	e.Program, e.Path, e.Target = cut(e.Program, mostPath), cut(e.Path, mostPath), cut(e.Target, mostPath)
	e.Address, e.Call, e.Errno = cut(e.Address, mostName), cut(e.Call, mostName), cut(e.Errno, mostName)
	e.Times = 0
	if e.Exec != nil {
		x := trimmedExec(*e.Exec)
		e.Exec = &x
	}
	if e.Decision != nil {
		d := trimmedDecision(*e.Decision)
		e.Decision = &d
	}
	if !isFlow(e.Kind) {
		e.Flow = nil
	} else if e.Flow != nil {
		f := trimmedFlow(*e.Flow)
		e.Flow = &f
	}
	return e
}

func trimmedExec(x proposal.Exec) proposal.Exec {
	x.Command, x.From, x.Grants = "", "", nil // the event and the decision's entry say them
	x.Renamed, x.Lineage, x.Whole, x.Partial, x.Changed, x.EnvCut = false, 0, nil, false, nil, false
	x.Named = cut(x.Named, mostPath)
	x.Layer = cut(x.Layer, mostName)
	x.Path, x.ParentPath, x.Script, x.Cwd = cut(x.Path, mostPath), cut(x.ParentPath, mostPath), cut(x.Script, mostPath), cut(x.Cwd, mostPath)
	x.ArgvDigest, x.Digest = cut(x.ArgvDigest, mostName), cut(x.Digest, mostName)
	if x.ELF != nil {
		e := *x.ELF
		e.Interpreter, e.Soname = cut(e.Interpreter, mostName), cut(e.Soname, mostName)
		x.ELF = &e
	}
	var short bool
	x.Argv, short = cutList(x.Argv, mostArgv)
	x.ArgvCut = x.ArgvCut || short
	x.Env, _ = cutList(x.Env, mostName)
	if x.Variables != nil {
		x.Variables, _ = cutList(x.Variables, mostName)
	}
	x.Same, _ = cutList(x.Same, mostPath)
	return x
}

func trimmedDecision(d proposal.ExecDecision) proposal.ExecDecision {
	d.Rules, _ = cutList(d.Rules[:min(len(d.Rules), mostRules)], mostPath)
	if d.Reason != nil {
		r := *d.Reason
		r.Rule, r.Message, r.Suggestion, r.Text = cut(r.Rule, mostName), cut(r.Message, mostPath), cut(r.Suggestion, mostPath), cut(r.Text, mostPath)
		d.Reason = &r
	}
	return d
}

// cut returns at most max bytes of s as UTF-8, the last "…" when it was longer.
func cut(s string, max int) string {
	if len(s) > max {
		end := max - len("…")
		for end > 0 && !utf8.RuneStart(s[end]) {
			end--
		}
		s = s[:end] + "…"
	}
	return strings.ToValidUTF8(s, "\ufffd")
}

// cutList returns the first words of list, at most max bytes of them together, and
// whether that is less than all.
func cutList(list []string, max int) ([]string, bool) {
	kept := make([]string, 0, min(len(list), mostWords))
	for _, s := range list {
		if len(kept) == mostWords || max < len("…") {
			return kept, true
		}
		short := cut(s, max)
		if kept = append(kept, short); len(s) > max {
			return kept, true
		}
		max -= len(s)
	}
	return kept, false
}

// weight is about how many bytes e takes.
func weight(e proposal.Event) int {
	n := 200 + len(e.Program) + len(e.Path) + len(e.Target) + len(e.Address)
	if e.Exec != nil {
		n += 300 + len(e.Exec.Path) + len(e.Exec.ParentPath) + len(e.Exec.Script) + len(e.Exec.Cwd)
		for _, s := range slices.Concat(e.Exec.Argv, e.Exec.Same) {
			n += 3 + len(s)
		}
	}
	if e.Decision != nil && e.Decision.Reason != nil {
		n += 300 + len(e.Decision.Reason.Message) + len(e.Decision.Reason.Suggestion)
	}
	if e.Flow != nil {
		n += weightOfFlow(*e.Flow)
	}
	return n
}
