// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/fumehood/fumehood/internal/kit/terminal"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/lint"
)

// writeReview writes the problems of r, the number of rules of each layer, and the totals. Its
// error is w's.
func writeReview(w io.Writer, r policy.Review) error {
	for _, p := range r.Problems {
		fmt.Fprintf(w, "%s: %s: %s [%s]\n", terminal.EscapeLine(p.Place()), p.Severity, terminal.EscapeLine(p.Message),
			p.Code)
		if p.Hint != "" {
			fmt.Fprintf(w, "  hint: %s\n", terminal.EscapeLine(p.Hint))
		}
	}
	if len(r.Problems) > 0 {
		fmt.Fprintln(w)
	}
	if err := writeCounts(w, r.Rules); err != nil {
		return err
	}
	if len(r.Problems) == 0 {
		_, err := fmt.Fprintln(w, "\nno problems")
		return err
	}
	_, err := fmt.Fprintf(w, "\n%d refused, %s, %s\n", r.CountProblems(lint.Refused),
		countNoun(r.CountProblems(lint.Wrong), "error"), countNoun(r.CountProblems(lint.Doubtful), "warning"))
	return err
}

func countNoun(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// writeCounts is a table of the rules of each layer, point and set that has any.
func writeCounts(out io.Writer, counts []policy.RuleCount) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "LAYER\tPOINT\tSET\tRULES")
	for _, n := range counts {
		if n.Rules > 0 {
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\n", terminal.EscapeLine(n.Layer), n.Point, n.Set, n.Rules)
		}
	}
	return w.Flush()
}
