// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/redaction"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// forged is the rule of a marker that a command printed itself. It is not a secret.
const forged = "forged-marker"

// ofSecrets reports whether a Finding is about secrets. The counts have more detail
// about those.
func ofSecrets(f proposal.Finding) bool { return f.Rule == "output.secret" && f.Event.Kind == "output" }

// secretsIn returns how many secrets list counts and their kinds, "2 secrets
// redacted in WHERE (`github-pat`, `jwt`)", or "".
func secretsIn(list []proposal.Redaction, where string) string {
	n, names := 0, []string{}
	for _, r := range list {
		if r.Rule != forged {
			n += r.Count
			names = append(names, kindOfSecret(r.Rule))
		}
	}
	switch {
	case n == 0:
		return ""
	case n == 1:
		return fmt.Sprintf("1 secret redacted in %s (%s)", where, names[0])
	}
	const max = 8
	if more := len(names) - max; more > 0 {
		names = append(names[:max], fmt.Sprintf("%d more kinds", more))
	}
	return fmt.Sprintf("%d secrets redacted in %s (%s)", n, where, strings.Join(names, ", "))
}

// findLeaked returns the secrets found in everything that a command printed and left behind.
func findLeaked(r *proposal.Result) (found []proposal.Redaction) {
	if r == nil {
		return nil
	}
	return redaction.FindsIn(*r)
}

// redactedWarnings says which parts of a record were redacted.
func redactedWarnings(r proposal.Record) []string {
	var list []string
	id := quoteCode(r.Proposal.ID)
	for _, s := range []string{secretsIn(findLeaked(r.Result), "the output of "+id),
		secretsIn(r.Redacted, "the proposal "+id)} {
		if s != "" {
			list = append(list, s)
		}
	}
	if r.Result == nil {
		return list
	}
	for _, f := range findLeaked(r.Result) {
		if f.Rule == forged {
			list = append(list, fmt.Sprintf("%s printed %d forged redaction markers: they begin with a round bracket",
				id, f.Count))
		}
	}
	for _, s := range searchedOf(r.Result) {
		if s.stream.Withheld != "" {
			list = append(list, fmt.Sprintf("%s of %s was withheld: %s", s.name, id, quoteCode(s.stream.Withheld)))
		}
	}
	return list
}

// kindOfSecret describes a rule: a detector's name, or the owner of the value.
func kindOfSecret(rule string) string {
	if name, ok := strings.CutPrefix(rule, redaction.MaskPrefix); ok {
		return "value of " + quoteCode(name)
	}
	return rule
}

type namedStream struct {
	name   string
	stream *proposal.Stream
}

func streamsOf(r *proposal.Result) []namedStream {
	return []namedStream{{"stdout", &r.Stdout}, {"stderr", &r.Stderr}}
}

// searchedOf returns everything that was searched for secrets and is not a declared file.
func searchedOf(r *proposal.Result) []namedStream {
	return append(streamsOf(r), namedStream{"test results", &r.TestResults})
}

// redactedFacts describes the redactions of each stream.
func redactedFacts(r proposal.Result) []string {
	var list []string
	for _, s := range searchedOf(&r) {
		if s.stream.Withheld != "" {
			list = append(list, fmt.Sprintf("%s was withheld: %s", s.name, quoteCode(s.stream.Withheld)))
		} else if words := secretsIn(s.stream.Redacted, s.name); words != "" {
			list = append(list, words)
		}
	}
	return list
}

// withheldWarning returns the warning that the output of commands must not be shown.
func withheldWarning(r proposal.Report) []string {
	if r.Withheld == nil {
		return nil
	}
	return []string{fmt.Sprintf("The output of commands is not shown: %s — %s", quoteCode(r.Withheld.Message),
		quoteCode(r.Withheld.Rule))}
}

// shownResult is the result whose streams are shown.
func shownResult(r proposal.Report, rec proposal.Record) *proposal.Result {
	if r.Withheld != nil {
		return nil
	}
	return rec.Result
}
