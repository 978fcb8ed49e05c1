// SPDX-License-Identifier: Apache-2.0

package action

import (
	"fmt"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

// A Masked is a value to redact from everything that leaves the job.
type Masked struct {
	Name  string // shown in its place
	Value string // secret
}

const (
	minMasked = 6
	maxMasked = 64 << 10
	maxMasks  = 100
)

// variableName matches the usual form of variable names in jobs.
var variableName = pattern.New(`^[A-Z_][A-Z0-9_]*$`)

// readMasked reads the input mask, with one entry per line: the name of a variable of
// the job, or a value. An entry that looks like a name but is not a set variable is
// treated as an unset variable, such as a secret in a run that gets none: there is
// then nothing to mask. Messages never contain any of it.
func (r *inputReader) readMasked(input string) []Masked {
	const hint = "NPM_TOKEN"
	var list []Masked
	number := 0
	for line := range strings.Lines(r.action.GetInput(inputVariableName(input))) {
		entry := strings.TrimSpace(line)
		if entry == "" {
			continue
		}
		number++
		m := Masked{Name: fmt.Sprintf("mask_%d", number), Value: entry}
		if variableName.MatchString(entry) {
			if m.Name, m.Value = entry, strings.TrimSpace(r.getenv(entry)); m.Value == "" {
				continue
			}
		}
		switch {
		case len(m.Value) < minMasked:
			r.refuseInput(input, hint, "the value of entry %d has fewer than %d bytes and would match other text",
				number, minMasked)
		case len(m.Value) > maxMasked || len(list) == maxMasks:
			r.refuseInput(input, hint, "has more than %d values, or one of more than %d bytes", maxMasks, maxMasked)
			return nil
		default:
			list = append(list, m)
		}
	}
	return list
}
