// SPDX-License-Identifier: Apache-2.0

package action

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/sethvargo/go-githubactions"

	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The runner's limits.
const (
	maxAnnotations = 10   // of one level in one step
	maxMessage     = 4096 // units in an annotation's message
	maxTitle       = 250
	maxProgress    = 2000
)

// The levels of annotations.
const (
	LevelNotice  = "notice"
	LevelWarning = "warning"
	LevelError   = "error"
)

// A Console is the job's log. It is safe for concurrent use; each method writes
// whole lines at once. Every text is made visible first (internal/kit/text), so
// that no text, whatever its source, is a workflow command.
type Console struct {
	mu     sync.Mutex
	w      io.Writer
	random func() string
	given  map[string]int // annotations by level
	open   bool           // a group is open
	err    error
}

// NewConsole writes to w, which must be the step's standard output and must have no
// other writers. random returns a new unguessable word of letters and digits each
// time, as crypto/rand.Text does.
func NewConsole(w io.Writer, random func() string) *Console {
	return &Console{w: w, random: random, given: map[string]int{}}
}

// write writes a block of whole lines. c.mu is held.
func (c *Console) write(block string) {
	if c.err != nil {
		return
	}
	if _, err := io.WriteString(c.w, block); err != nil {
		c.err = fmt.Errorf("cannot write to the job's log: %w", err)
	}
}

// writeCommand writes one command, escaped as the runner expects.
func (c *Console) writeCommand(name string, properties githubactions.CommandProperties, message string) {
	c.write((&githubactions.Command{Name: name, Properties: properties, Message: message}).String() + "\n")
}

// PrintProgress writes one line of fumehood's own output.
func (c *Console) PrintProgress(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.write(text.Inline(fmt.Sprintf(format, args...), maxProgress) + "\n")
}

// BeginGroup begins a part of the log that can be folded, and ends the previous one: the
// runner does not nest groups.
func (c *Console) BeginGroup(title string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endGroup()
	c.writeCommand("group", nil, text.Inline(title, maxTitle))
	c.open = true
}

// EndGroup ends the group, if one is open.
func (c *Console) EndGroup() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endGroup()
}

func (c *Console) endGroup() {
	if c.open {
		c.writeCommand("endgroup", nil, "")
		c.open = false
	}
}

// PrintNotice annotates the run.
func (c *Console) PrintNotice(message string) {
	c.Annotate(Annotation{Level: LevelNotice, Message: message})
}

// PrintWarning annotates the run.
func (c *Console) PrintWarning(message string) {
	c.Annotate(Annotation{Level: LevelWarning, Message: message})
}

// Error annotates the run. It does not make the step fail.
func (c *Console) Error(message string) { c.Annotate(Annotation{Level: LevelError, Message: message}) }

// Stop shows why fumehood stopped: an annotation with the message, and below it in
// the log how to fix it.
func (c *Console) Stop(err error) {
	failure := proposal.FailureOf(err)
	if failure == nil {
		return
	}
	c.EndGroup()
	c.Annotate(Annotation{Level: LevelError, Title: "fumehood: " + failure.Code, Message: failure.Message})
	c.PrintParagraph(failure.Hint)
}

// PrintParagraph writes fumehood's own lines, keeping their indentation.
func (c *Console) PrintParagraph(lines string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	for line := range strings.Lines(lines) {
		b.WriteString("  " + text.Inline(strings.TrimRight(line, "\r\n"), maxProgress) + "\n")
	}
	c.write(b.String())
}

// PrintProblems shows all errors in the inputs.
func (c *Console) PrintProblems(problems []Problem) {
	for _, p := range problems {
		c.Annotate(Annotation{Level: LevelError, Title: "fumehood: input " + p.Input,
			Message: p.Input + " " + p.Message})
		c.PrintParagraph(p.Hint)
	}
}

// MaskSecret makes the runner replace secret by *** in everything that it shows. A secret
// of several lines is masked line by line, since the runner masks within lines.
func (c *Console) MaskSecret(secret string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	masked := false
	for _, line := range strings.FieldsFunc(secret, func(r rune) bool { return r == '\n' || r == '\r' }) {
		if line = strings.TrimSpace(line); line != "" {
			c.writeCommand("add-mask", nil, line)
			masked = true
		}
	}
	if !masked {
		return errors.New("cannot mask an empty secret")
	}
	return c.err
}

// Close ends an open group and reports how many annotations were left out.
func (c *Console) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endGroup()
	if left := c.describeDropped(); left != "" {
		c.write("Not shown as annotations, because the runner accepts ten per level: " + left + ".\n")
	}
	return c.err
}

func (c *Console) describeDropped() string {
	var list []string
	for _, level := range []string{LevelError, LevelWarning, LevelNotice} {
		if n := c.given[level] - maxAnnotations; n > 0 {
			list = append(list, fmt.Sprintf("%d of level %s", n, level))
		}
	}
	return strings.Join(list, ", ")
}
