// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Bounds of one event, in the log and in the report. A path is complete, because no kernel
// accepts a longer one; argv is bound by its digest.
const (
	maxPath  = 4096
	maxArgv  = 2048 // bytes of all words together
	maxWords = 64
	maxName  = 256
	maxRules = 8
)

// trimEvent returns e as it is recorded: texts of limited length, all of them UTF-8, and
// nothing shared with the caller's e. Fields that only the decision needed are removed.
func trimEvent(e proposal.Event) proposal.Event {
	e.Kind, e.Command = clipText(e.Kind, maxName), clipText(e.Command, maxName)
	e.Time = e.Time.UTC().Truncate(time.Microsecond)
	e.Program, e.Path, e.Target = clipText(e.Program, maxPath), clipText(e.Path, maxPath), clipText(e.Target, maxPath)
	e.Address, e.Call, e.Errno = clipText(e.Address, maxName), clipText(e.Call, maxName), clipText(e.Errno, maxName)
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
	x.Command, x.From, x.Grants = "", "", nil // already in the event and the decision's entry
	x.Renamed, x.Lineage, x.Whole, x.Partial, x.Changed, x.EnvCut = false, 0, nil, false, nil, false
	x.Named, x.Asked = clipText(x.Named, maxPath), clipText(x.Asked, maxPath)
	x.Layer = clipText(x.Layer, maxName)
	x.Path, x.ParentPath, x.Script, x.Cwd = clipText(x.Path, maxPath), clipText(x.ParentPath, maxPath),
		clipText(x.Script, maxPath), clipText(x.Cwd, maxPath)
	x.ArgvDigest, x.Digest = clipText(x.ArgvDigest, maxName), clipText(x.Digest, maxName)
	if x.Asked == x.Path {
		x.Asked = "" // means the same
	}
	if x.ELF != nil {
		e := *x.ELF
		e.Interpreter, e.Soname = clipText(e.Interpreter, maxName), clipText(e.Soname, maxName)
		x.ELF = &e
	}
	var short bool
	x.Argv, short = cutList(x.Argv, maxArgv)
	x.ArgvCut = x.ArgvCut || short
	x.Env, _ = cutList(x.Env, maxName)
	if x.Variables != nil {
		x.Variables, _ = cutList(x.Variables, maxName)
	}
	x.Same, _ = cutList(x.Same, maxPath)
	return x
}

func trimmedDecision(d proposal.ExecDecision) proposal.ExecDecision {
	d.Rules, _ = cutList(d.Rules[:min(len(d.Rules), maxRules)], maxPath)
	if d.Reason != nil {
		r := *d.Reason
		r.Rule, r.Message, r.Suggestion, r.Text = clipText(r.Rule, maxName), clipText(r.Message, maxPath),
			clipText(r.Suggestion, maxPath), clipText(r.Text, maxPath)
		d.Reason = &r
	}
	return d
}

// clipText returns at most max bytes of s as UTF-8, ending in "…" if s was longer.
func clipText(s string, max int) string {
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
// whether words were omitted.
func cutList(list []string, max int) ([]string, bool) {
	kept := make([]string, 0, min(len(list), maxWords))
	for _, s := range list {
		if len(kept) == maxWords || max < len("…") {
			return kept, true
		}
		short := clipText(s, max)
		if kept = append(kept, short); len(s) > max {
			return kept, true
		}
		max -= len(s)
	}
	return kept, false
}

// eventSize estimates how many bytes e takes.
func eventSize(e proposal.Event) int {
	n := 200 + len(e.Program) + len(e.Path) + len(e.Target) + len(e.Address)
	if e.Exec != nil {
		n += 300 + len(e.Exec.Path) + len(e.Exec.Asked) + len(e.Exec.ParentPath) + len(e.Exec.Script) + len(e.Exec.Cwd)
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
