// SPDX-License-Identifier: Apache-2.0

package review

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/bluekeyes/go-gitdiff/gitdiff"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/internal/watch/failure"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxLints is how many reports of linters are considered.
const maxLints = 1000

// A Lint is what a command reports on lines of the pull request.
type Lint struct {
	Command string // the id of its proposal; untrusted text
	Tool    string // "eslint"; "" for a change that a formatter printed
	Rule    string // "no-undef"; untrusted text
	key     string
}

// PatchDiff returns the Diff of the patches that GitHub shows, by path. What cannot be read has no
// lines.
func PatchDiff(patches map[string]string) *Diff {
	d := &Diff{files: map[string]*gitdiff.File{}, old: map[string]string{}}
	for name, patch := range patches {
		files, _, err := gitdiff.Parse(strings.NewReader("diff --git a/f b/f\n--- a/f\n+++ b/f\n" + patch + "\n"))
		if err == nil && len(files) == 1 {
			d.files[name] = files[0]
		}
	}
	return d
}

// headLine returns a line of head that the diff shows, without its end, and whether the pull
// request adds or changes it.
func (d *Diff) headLine(name string, n int) (line string, changed, ok bool) {
	file := d.files[name]
	if file == nil {
		return "", false, false
	}
	for _, hunk := range file.TextFragments {
		at := int(hunk.NewPosition)
		for _, l := range hunk.Lines {
			if l.Op == gitdiff.OpDelete {
				continue
			}
			if at == n {
				return strings.TrimSuffix(l.Line, "\n"), l.Op == gitdiff.OpAdd, true
			}
			at++
		}
	}
	return "", false, false
}

// LintsOf returns what the commands of reports say about lines that the pull request changes: what
// linters report with a rule, and the changes that formatters print, as suggestions. source
// distinguishes jobs that report beside each other. Reviewed is true if every command ended by
// itself with its whole output, so that what is missing is fixed.
//
// A change is a suggestion only if the lines that it replaces are those of head, as GitHub shows
// them, and at least one of them is changed by the pull request.
func LintsOf(source, head, base string, reports []proposal.Report, diff *Diff) Document {
	d := Document{Schema: Schema, Head: head, Base: base, Reviewed: true,
		Lints: fmt.Sprintf("%x", sha256.Sum256([]byte(source)))[:16]}
	var names []string
	for name := range diff.files {
		names = append(names, name)
	}
	tree, times := failure.NewTree(names, false), map[string]int{}
	for _, r := range reports {
		for _, rec := range r.Records {
			if !isWhole(rec) || r.Withheld != nil {
				d.Reviewed = false
			}
			if rec.Result == nil || !rec.Runnable() || r.Withheld != nil {
				continue
			}
			o := failure.Options{Cwd: path.Join(r.Run.Cwd, rec.Proposal.Cwd), Tree: tree,
				Succeeded: rec.Result.Succeeded()}
			for _, x := range failure.Diagnostics(rec.Result, o) {
				d.addLint(rec, x, diff, times)
			}
			for _, f := range failure.SuggestedFixes(rec.Result, o) {
				d.addFix(rec, f, diff, times)
			}
		}
	}
	return d
}

// isWhole reports whether a command ended by itself, and all of its output is known.
func isWhole(r proposal.Record) bool {
	x := r.Result
	return x != nil && (x.Succeeded() || x.FailedByItself()) && !r.CouldNotRun() &&
		!x.Stdout.Truncated && !x.Stderr.Truncated && x.Stdout.Withheld == "" && x.Stderr.Withheld == ""
}

func (d *Document) addLint(rec proposal.Record, x proposal.Diagnostic, diff *Diff, times map[string]int) {
	if x.Rule == "" || x.Test != "" || x.File == "" || x.Line == 0 {
		return
	}
	if _, changed, _ := diff.headLine(x.File, x.Line); changed {
		d.addResult(rec, Lint{Tool: x.Tool, Rule: x.Rule},
			proposal.ReviewFinding{File: x.File, Line: x.Line, Claim: failure.FormatLine(x)},
			[]any{x.Tool, x.Rule, x.Message}, diff, times)
	}
}

func (d *Document) addFix(rec proposal.Record, f failure.Fix, diff *Diff, times map[string]int) {
	changes := false
	for i, old := range f.Old {
		line, changed, ok := diff.headLine(f.File, f.Start+i)
		if !ok || line != old {
			return
		}
		changes = changes || changed
	}
	if !changes {
		return
	}
	with := ""
	for _, line := range f.New {
		with += line + "\n"
	}
	finding := proposal.ReviewFinding{File: f.File, Start: f.Start, Line: f.Start + len(f.Old) - 1, Suggestion: &with}
	d.addResult(rec, Lint{}, finding, []any{f.Old, f.New}, diff, times)
}

// addResult adds a result, if a comment about f can be placed.
func (d *Document) addResult(
	rec proposal.Record, l Lint, f proposal.ReviewFinding, about []any, diff *Diff, times map[string]int,
) {
	f.ID = "lint"
	position, _ := diff.Position(f)
	if position == nil || !hasValidFields(f) || len(d.Results) >= maxLints {
		return
	}
	data, err := json.Marshal(append([]any{"lint", f.File}, about...))
	if err != nil {
		panic("review: internal error: " + err.Error())
	}
	times[string(data)]++
	l.key = fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(data, " %d", times[string(data)])))[:32]
	l.Command = rec.Proposal.ID
	r := Result{Finding: f, Verdict: Verified, Position: position, Lint: &l}
	if f.Suggestion != nil {
		r.Suggestion = &Suggestion{Offered: true}
		if r.suggestionBlock() == "" {
			return // a comment without the change says nothing
		}
	}
	d.Results = append(d.Results, r)
}

// UnreportedResult is the result of a lint that is not reported any more.
func UnreportedResult(key string) Result {
	return Result{Verdict: NotReproduced, Lint: &Lint{key: key}}
}

// lintRemark is RenderRemark for what a command reports.
func (d Document) lintRemark(r Result) string {
	if r.Verdict != Verified {
		return fmt.Sprintf("**No longer reported**\n\nNo command that ran on `%s` reports it.\n", shortenSHA(d.Head))
	}
	var b strings.Builder
	switch {
	case r.Finding.Suggestion != nil:
		fmt.Fprintf(&b, "**Change of a command**\n\nThe command %s printed this change on `%s`:\n\n%s",
			inlineCode(r.Lint.Command), shortenSHA(d.Head), r.suggestionBlock())
	default:
		fmt.Fprintf(&b, "**%s**: %s\n\n", text.Inline(toolName(r.Lint.Tool), 40), inlineCode(r.Lint.Rule))
		writeExcerpt(&b, "text", r.Finding.Claim, maxShownClaim)
		fmt.Fprintf(&b, "The command %s reports it on `%s`.\n", inlineCode(r.Lint.Command), shortenSHA(d.Head))
	}
	return b.String()
}

// toolName is the name of a tool that package failure knows.
func toolName(tool string) string {
	if tool == "" {
		return "Linter"
	}
	return tool
}
