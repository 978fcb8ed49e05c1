// SPDX-License-Identifier: Apache-2.0

package report

import (
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

// Annotations finds in the kept output of r's commands what tools say about lines
// of files, and returns what they say about files, a pull request's paths. The
// worst come first; more counts what was left out.
func Annotations(r proposal.Report, files []string) (list []Annotation, more int) {
	return nil, 0
}
