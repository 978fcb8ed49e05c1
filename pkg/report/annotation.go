// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/pkg/internal/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// An Annotation is a line of a command's output that speaks of a line of a file of
// the pull request.
type Annotation struct {
	Path    string // in the repository: one of the files that Annotations was given
	Line    int    // from 1
	EndLine int    // Line, or after it
	Col     int    // from 1; 0 when unknown
	Level   string // "failure", "warning" or "notice"
	Title   string // one line: the tool and the proposal's id
	Message string // one line in the visible form of pkg/internal/text
}

// MaxAnnotations is the most annotations that Annotations returns, which is also
// the most that GitHub takes in one request.
const MaxAnnotations = 50

const (
	maxMessage = 4096      // units: the runner cuts longer ones
	maxFound   = 5000      // annotations of which the worst are chosen
	maxScanned = 512 << 10 // bytes of one piece of output that are looked at
)

// Annotations finds in the kept output of r's commands what tools say about lines
// of files, and returns what they say about files: the pull request's paths. The
// worst come first; more counts what was left out.
//
// What a command printed may lie. The most that it can forge is a text about a line
// of a file that the pull request changes, of no higher level than a warning when
// the command succeeded.
func Annotations(r proposal.Report, files []string) (list []Annotation, more int) {
	found := &finds{tree: newTree(files), seen: map[Annotation]bool{}}
	for _, rec := range r.Records {
		if rec.Result == nil || r.Withheld != nil {
			continue
		}
		for _, s := range []proposal.Stream{rec.Result.Stdout, rec.Result.Stderr} {
			for _, piece := range pieces(s) {
				scan(found, rec, path.Join(r.Run.Cwd, rec.Proposal.Cwd), piece)
			}
		}
	}
	slices.SortStableFunc(found.list, func(a, b Annotation) int {
		return slices.Index(levelWords, a.Level) - slices.Index(levelWords, b.Level)
	})
	n := min(len(found.list), MaxAnnotations)
	return found.list[:n], found.lost + len(found.list) - n
}

var levelWords = []string{"failure", "warning", "notice"}

// pieces returns the parts of a stream whose lines follow each other.
func pieces(s proposal.Stream) [][]byte {
	if !s.Truncated {
		return [][]byte{slices.Concat(s.Head, s.Tail)}
	}
	_, tail, _ := bytes.Cut(s.Tail, []byte("\n")) // its first line lacks a beginning
	return [][]byte{s.Head, tail}
}

// finds are annotations without repetition.
type finds struct {
	tree *tree
	list []Annotation
	seen map[Annotation]bool
	lost int
}

// add enters an annotation in the visible form.
func (f *finds) add(a Annotation) {
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

// scan reads one piece of the output of a command that ran in cwd, line by line.
func scan(found *finds, rec proposal.Record, cwd string, piece []byte) {
	s := &scanner{found: found, cwd: cwd, id: rec.Proposal.ID, succeeded: rec.Result.Succeeded(), verdicts: map[string]string{}}
	piece = colours.ReplaceAll(piece[:min(len(piece), maxScanned)], nil)
	for len(piece) > 0 {
		n := bytes.IndexAny(piece, "\r\n")
		if n < 0 {
			n = len(piece)
		}
		s.line(string(piece[:min(n, maxLine)]))
		piece = piece[min(n+1, len(piece)):]
	}
	s.finish()
}
