// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/fumehood/fumehood/pkg/policy"
	"github.com/fumehood/fumehood/pkg/policy/lint"
)

func policyCheckDoor() *door {
	return &door{
		name:     "policy check",
		synopsis: "compile policies, say all that is wrong with them, and count their rules",
		usage: `[flags]

Each layer is checked in the role that its flag gives it. What a run would refuse to load
is "refused"; what it would load, and what hardly does what it seems to, an "error". Both
make the exit code 1. A "warning" does so with --strict.

examples:
  fumehood policy check --policy ./policy
  fumehood policy check --organisation ./org --policy ./policy --strict
  fumehood policy check --policy ./policy --json
`,
		run: checkPolicy,
	}
}

func checkPolicy(c *call) int {
	var policies chosen
	var asJSON, strict bool
	f := c.flags()
	policies.define(f)
	f.BoolVar(&asJSON, "json", false, "print one JSON document: rules and problems")
	f.BoolVar(&strict, "strict", false, "let warnings fail, too")
	if code, ok := c.parse(f); !ok {
		return code
	}
	if f.NArg() > 0 {
		return c.misuse("policy check takes no argument: name folders with --policy")
	}
	layers, err := policies.read(c.ctx)
	if err != nil {
		return c.stopped(err)
	}
	review, err := policy.Check(c.ctx, layers)
	if err != nil {
		return c.stopped(err)
	}
	if err := printReview(c.stdout, review, asJSON); err != nil {
		return c.stopped(err)
	}
	return reviewCode(review, strict)
}

func reviewCode(r policy.Review, strict bool) int {
	if r.Count(lint.Refused)+r.Count(lint.Wrong) > 0 || strict && len(r.Problems) > 0 {
		return exitRefused
	}
	return exitOK
}

func printReview(w io.Writer, r policy.Review, asJSON bool) error {
	if asJSON {
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	}
	for _, p := range r.Problems {
		fmt.Fprintf(w, "%s: %s: %s [%s]\n", printable(p.Place()), p.Severity, printable(p.Message), p.Code)
		if p.Hint != "" {
			fmt.Fprintf(w, "  hint: %s\n", printable(p.Hint))
		}
	}
	if len(r.Problems) > 0 {
		fmt.Fprintln(w)
	}
	if err := printCounts(w, r.Rules); err != nil {
		return err
	}
	if len(r.Problems) == 0 {
		_, err := fmt.Fprintln(w, "\nno problems")
		return err
	}
	_, err := fmt.Fprintf(w, "\n%d refused, %d errors, %d warnings\n", r.Count(lint.Refused), r.Count(lint.Wrong), r.Count(lint.Doubtful))
	return err
}

// printCounts is a table of the rules of each layer, point and set that has any.
func printCounts(out io.Writer, counts []policy.RuleCount) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "LAYER\tPOINT\tSET\tRULES")
	for _, n := range counts {
		if n.Rules > 0 {
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\n", printable(n.Layer), n.Point, n.Set, n.Rules)
		}
	}
	return w.Flush()
}
