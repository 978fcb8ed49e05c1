// SPDX-License-Identifier: Apache-2.0

package action

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// MaxSummary is the maximum size of a step's summary in bytes. The runner shows
// nothing of a larger one, and the step stays green.
const MaxSummary = 1 << 20

const summaryCut = "\n\n_Truncated: the step summary is full. See the report in the artifact._\n"

// A Summary is the step's summary.
type Summary struct {
	Path string
}

// Write appends markdown. If it is too long, it is cut at the end of a line, with a
// note; if there is no room for the note, Write returns an error and writes nothing.
func (s Summary) Write(markdown string) error {
	f, size, err := openOwn(s.Path)
	if err != nil {
		return fmt.Errorf("cannot write the step summary: %w", err)
	}
	defer f.Close()
	markdown = strings.ToValidUTF8(markdown, "\uFFFD")
	if size > 0 {
		markdown = "\n\n" + markdown
	}
	markdown, ok := truncateMarkdown(markdown, MaxSummary-size)
	if !ok {
		return fmt.Errorf("cannot write the step summary: it already has %d bytes", size)
	}
	if _, err := io.WriteString(f, markdown); err != nil {
		return fmt.Errorf("cannot write the step summary: %w", err)
	}
	return f.Close()
}

// truncateMarkdown cuts markdown to room bytes.
func truncateMarkdown(markdown string, room int64) (string, bool) {
	if !strings.HasSuffix(markdown, "\n") {
		markdown += "\n"
	}
	if int64(len(markdown)) <= room {
		return markdown, true
	}
	keep := room - int64(len(summaryCut))
	if keep < 0 {
		return "", false
	}
	end := strings.LastIndexByte(markdown[:keep], '\n')
	if end < 0 { // a single line that is longer than the room
		for end = int(keep); end > 0 && !utf8.RuneStart(markdown[end]); end-- {
		}
	}
	return markdown[:end] + summaryCut, true
}
