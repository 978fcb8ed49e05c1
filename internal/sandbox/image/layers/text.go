// SPDX-License-Identifier: Apache-2.0

package layers

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/fumehood/fumehood/internal/kit/terminal"
)

// WriteText writes a line for each entry, for people: the key, its size, when it was last used,
// and the run that made it, or why it cannot be used. It is safe for a terminal.
func WriteText(w io.Writer, list []Entry) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, e := range list {
		note := "made by run " + e.Run
		if e.Problem != "" {
			note = "not usable: " + e.Problem
		}
		fmt.Fprintf(t, "%.19s\t%.1f MB\tused %s\t%s\n", terminal.EscapeLine(e.Key), float64(e.Size)/1e6,
			e.Used.Format(time.DateOnly), terminal.EscapeLine(note))
	}
	return t.Flush()
}
