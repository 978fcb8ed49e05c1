// SPDX-License-Identifier: Apache-2.0

package difference

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/fumehood/fumehood/internal/author/replay"
	"github.com/fumehood/fumehood/internal/kit/terminal"
	"github.com/fumehood/fumehood/internal/kit/text"
)

// JSON returns d as one line. It is safe to print on a terminal or in a runner's log.
func (d Difference) JSON() ([]byte, error) {
	data, err := json.Marshal(d)
	return append(text.EscapeJSON(data), '\n'), err
}

// Write writes d for people: the rules that changed, what is decided otherwise, and what is known about the rest. Its
// error is w's.
func (d Difference) Write(w io.Writer) error {
	b := &strings.Builder{}
	if len(d.Rules) == 0 {
		b.WriteString("no rule changed\n")
	} else {
		b.WriteString("changed rules:\n")
	}
	for _, r := range d.Rules {
		sign, not := "+", ""
		if r.In == inOld {
			sign = "-"
		}
		switch {
		case r.Point == pointFacts:
			fmt.Fprintf(b, "  %s %s: %s %s\n", sign, r.Point, r.Set, terminal.EscapePart(r.ID, 200))
			continue
		case !r.Reached:
			not = ", held for no input"
		case !r.isCompared():
			not = ", its answers are not compared"
		}
		fmt.Fprintf(b, "  %s %s %s, %s %s:%d%s\n", sign, r.Set, terminal.EscapePart(r.ID, 100), r.Point,
			terminal.EscapePart(r.File, 200), r.Line, not)
	}
	replay.Outcome{Changes: d.Changes, Moot: d.past.Moot, Omitted: d.past.Omitted}.WriteChanges(b)
	n := d.Inputs
	switch {
	case d.Proof != "":
		fmt.Fprintf(b, "\nnothing is newly allowed: %s\n", terminal.EscapeLine(d.Proof))
	case !d.isSeenLooser():
		fmt.Fprintf(b, "\nnewly allowed: not seen in %d inputs. This is not a proof\n", n.total())
	}
	if len(d.Rules) > 0 {
		fmt.Fprintf(b, "\ndecided by both: %d examples, %d inputs made from the changed rules, %d examples of the default policy, %d past proposals\n",
			n.Examples, n.Generated, n.Shipped, n.Past)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
