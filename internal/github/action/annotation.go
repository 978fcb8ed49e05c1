// SPDX-License-Identifier: Apache-2.0

package action

import (
	"path"
	"strconv"
	"strings"

	"github.com/sethvargo/go-githubactions"

	"github.com/fumehood/fumehood/internal/kit/text"
)

// An Annotation is a message that GitHub shows for a run or a line of a file. Path,
// title and message may be untrusted.
type Annotation struct {
	Level   string // LevelNotice, LevelWarning or LevelError; everything else is an error
	File    string // in the repository; "" for the run
	Line    int    // 0 for none, as in the following fields
	EndLine int
	Col     int
	Title   string
	Message string
}

// Annotate shows a. The runner accepts ten of each level per step. Further ones are
// written only as lines of the log, and Close reports how many they were.
func (c *Console) Annotate(a Annotation) {
	if a.Level != LevelNotice && a.Level != LevelWarning {
		a.Level = LevelError
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.given[a.Level]++; c.given[a.Level] > maxAnnotations {
		c.write(a.Level + ": " + text.Inline(a.formatLocation()+a.Message, maxProgress) + "\n")
		return
	}
	c.writeCommand(a.Level, a.commandProperties(), makePrintable(a.Message, maxMessage))
}

// makePrintable makes a text of several lines printable, in at most max units.
func makePrintable(message string, max int) string {
	if strings.TrimSpace(message) == "" {
		return "(no message)" // the runner does not show an empty message
	}
	block := text.Excerpt([]byte(message), nil, int64(len(message)), max)
	return strings.TrimRight(block.Text, "\n")
}

func (a Annotation) formatLocation() string {
	if a.File == "" {
		return ""
	}
	return a.File + ":" + strconv.Itoa(max(a.Line, 0)) + ": "
}

// commandProperties returns the properties of the workflow command. A file is left out if
// its name cannot be shown unchanged or is not a path in the repository: the runner
// would look for a different file.
func (a Annotation) commandProperties() githubactions.CommandProperties {
	p := githubactions.CommandProperties{}
	if a.Title != "" {
		p["title"] = text.Inline(a.Title, maxTitle)
	}
	if a.File == "" || path.IsAbs(a.File) || !isBelowRoot(path.Clean(a.File)) ||
		text.Inline(a.File, maxInput) != a.File {
		return p
	}
	p["file"] = a.File
	if a.Line < 1 {
		return p
	}
	p["line"] = strconv.Itoa(a.Line)
	if a.EndLine > a.Line {
		p["endLine"] = strconv.Itoa(a.EndLine) // the runner then ignores columns
	} else if a.Col > 0 {
		p["col"] = strconv.Itoa(a.Col)
	}
	return p
}
