// SPDX-License-Identifier: Apache-2.0

package report

import (
	"path"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/internal/watch/failure"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// An Annotation is a line of a command's output about a line of a file of the pull
// request.
type Annotation struct {
	Path    string // in the repository: one of the files passed to Annotations
	Line    int    // from 1
	EndLine int    // at least Line
	Col     int    // from 1; 0 when unknown
	Level   string // "failure", "warning" or "notice"
	Title   string // one line: the tool and the proposal's id
	Message string // one line in the visible form of internal/kit/text
}

// MaxAnnotations is the maximum number of annotations that Annotations returns. It
// is also GitHub's maximum for one request.
const MaxAnnotations = 50

const (
	maxMessage = 4096 // units: the runner cuts longer ones
	maxFound   = 5000 // annotations found, of which the worst are chosen
)

// Annotations finds what tools report about lines of files in the kept output of
// r's commands. It returns the reports about files, which are the pull request's
// paths. The worst come first; more is the number left out. A command that could not run,
// that fails on the base in the same way, or that fails as expected says nothing about the pull request.
//
// A command's output may lie. At worst, it can forge a text about a line of a file that
// the pull request changes, with no higher level than a warning if the command succeeded.
func Annotations(r proposal.Report, files []string) (list []Annotation, more int) {
	found, tree := &annotationSet{seen: map[Annotation]bool{}}, failure.NewTree(files, false)
	reported := func(rec proposal.Record, every bool) []proposal.Diagnostic {
		return failure.Diagnostics(rec.Result,
			failure.Options{Cwd: path.Join(r.Run.Cwd, rec.Proposal.Cwd), Tree: tree, GoModules: r.Run.GoModules,
				Succeeded: rec.Result.Succeeded(), Every: every})
	}
	for _, rec := range r.Records {
		if rec.Result == nil || r.Withheld != nil || isBlameless(rec) {
			continue
		}
		on := onBase(r, rec)
		isNew := on != nil && on.Result != nil && rec.Base.Verdict == proposal.BaseNew
		var list []proposal.Diagnostic
		if isNew { // what is new can be in any list of a runner
			mine, theirs := comparableResults(rec, *on)
			list = withoutKnown(reported(mine, true), reported(theirs, true))
		} else {
			list = reported(rec, false)
		}
		for _, d := range list {
			if tree.Has(d.File) {
				found.addAnnotation(Annotation{Path: d.File, Line: max(1, d.Line), Col: d.Column, Level: d.Level,
					Title: d.Tool + " · " + rec.Proposal.ID, Message: failure.FormatLine(d)})
			}
		}
	}
	slices.SortStableFunc(found.list, func(a, b Annotation) int {
		return slices.Index(levelWords, a.Level) - slices.Index(levelWords, b.Level)
	})
	n := min(len(found.list), MaxAnnotations)
	return found.list[:n], found.lost + len(found.list) - n
}

// isBlameless reports whether a command that failed says nothing about the pull request.
func isBlameless(r proposal.Record) bool {
	return kindOf(r) == unable || kindOf(r) == before || r.AsExpected()
}

var levelWords = []string{"failure", "warning", "notice"}

// annotationSet collects annotations without duplicates.
type annotationSet struct {
	list []Annotation
	seen map[Annotation]bool
	lost int
}

// addAnnotation adds an annotation, in the visible form.
func (f *annotationSet) addAnnotation(a Annotation) {
	a.EndLine = a.Line
	a.Title, a.Message = text.Inline(a.Title, 100), text.Inline(strings.TrimSpace(a.Message), maxMessage)
	key := Annotation{Path: a.Path, Line: a.Line, Message: a.Message}
	switch {
	case a.Message == "" || f.seen[key]:
		return
	case len(f.list) == maxFound:
		f.lost++
		return
	}
	f.seen[key] = true
	f.list = append(f.list, a)
}
