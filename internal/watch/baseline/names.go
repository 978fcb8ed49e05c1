// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/watch/failure"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// maxNamedBytes is what package failure reads of both streams. With more, and from
// failure.MaxListed reports on, a failure could be hidden behind others: nothing is named, and lines
// are compared.
const maxNamedBytes = 500 << 10

// maxName is the length from which on a name may be cut, in bytes.
const maxName = 990

// nameSeparator is between the parts of a name. No part has it: package failure removes control characters.
const nameSeparator = "\x00"

// shownName returns a name of failingTests as people read it.
func shownName(name string) string {
	return strings.TrimSpace(strings.ReplaceAll(strings.TrimPrefix(name, ":"+nameSeparator), nameSeparator, " "))
}

// failingTests returns what a command's complete output names as failing, sorted: tests, and what
// compilers and linters report, without places, which move. A name that is there more than once
// has a number behind it: runners name tests of two files in the same way. It is nil if nothing is
// named.
//
// isVague reports that a name says too little: of a Go test that says nothing, as those do that run a suite
// of another framework, the name is that of each failure in it, and a long name may be cut.
func failingTests(r proposal.Result) (names []string, isVague bool) {
	if len(r.Stdout.Head)+len(r.Stdout.Tail)+len(r.Stderr.Head)+len(r.Stderr.Tail) > maxNamedBytes {
		return nil, false
	}
	list := failure.Diagnostics(&r, failure.Options{Every: true})
	if len(list) >= failure.MaxListed {
		return nil, false
	}
	times := map[string]int{}
	// Once a runner names its tests, a warning may be from a test that passes. A linter can fail because of
	// warnings, too.
	onlyErrors := slices.ContainsFunc(list, func(d proposal.Diagnostic) bool { return d.Test != "" })
	if !slices.ContainsFunc(list, func(d proposal.Diagnostic) bool { return d.Level == failure.Error }) {
		return nil, false
	}
	for _, d := range list {
		isVague = isVague || d.Tool == "go test" && d.Test != "" && d.Message == failure.Unsaid && d.File == ""
		if onlyErrors && d.Level != failure.Error {
			continue
		}
		name := d.Suite + nameSeparator + d.Test
		if d.Test == "" {
			name = d.File + ":" + nameSeparator + removeVolatile(d.Message)
		}
		isVague = isVague || len(d.Suite) > maxName || len(d.Test) > maxName || d.Test == "" && len(d.Message) > maxName
		if times[name]++; times[name] > 1 {
			name += fmt.Sprintf("%s(%d)", nameSeparator, times[name])
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names, isVague
}
