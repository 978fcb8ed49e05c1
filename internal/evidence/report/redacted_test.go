// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/pkg/proposal"
)

func redacted(t *testing.T, foreign bool, change func(*proposal.Report)) (string, proposal.Report) {
	t.Helper()
	data, err := json.Marshal(cases()["all_ok"])
	if err != nil {
		t.Fatal(err)
	}
	var r proposal.Report
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	change(&r)
	return Page{Parts: []Part{{Report: r, Foreign: foreign}}}.Markdown(), r
}

// The comment says how many secrets were replaced where, and of what kind. In an
// untrusted report the kinds are quoted.
func TestRedactedIsTold(t *testing.T) {
	change := func(r *proposal.Report) {
		rec := &r.Records[0]
		rec.Proposal.ID = "unit"
		rec.Redacted = []proposal.Redaction{{Rule: "mask:NPM_TOKEN", Count: 1}}
		rec.Result.Stdout.Redacted = []proposal.Redaction{{Rule: "aws-access-token", Count: 1}, {Rule: forged, Count: 2}}
		rec.Result.Stderr = proposal.Stream{Bytes: 9, Truncated: true, Withheld: "org.no: not this", Redacted: []proposal.Redaction{{Rule: "github-pat", Count: 1}}}
	}
	for foreign, want := range map[bool][]string{
		false: {"2 secrets redacted in the output of <code>unit</code> (aws-access-token, github-pat)", "1 secret redacted in the proposal <code>unit</code> (value of <code>NPM_TOKEN</code>)",
			"stderr of <code>unit</code> was withheld: <code>org.no: not this</code>", "printed 2 forged redaction markers"},
		true: {"<code>aws-access-token</code>", "<code>github-pat</code>"},
	} {
		text, r := redacted(t, foreign, change)
		for _, s := range want {
			if !strings.Contains(text, s) {
				t.Errorf("foreign %v: the comment does not say %q:\n%s", foreign, s, text[:min(len(text), 1500)])
			}
		}
		data, err := JSON(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Read(data, 1<<20); err != nil {
			t.Errorf("our own report is refused: %v", err)
		}
	}
}

// Output that policy withholds from the comment appears in none of its forms.
func TestWithheld(t *testing.T) {
	for _, empty := range []bool{false, true} {
		text, r := redacted(t, false, func(r *proposal.Report) {
			r.Withheld = &proposal.Reason{Rule: "org.quiet", Effect: proposal.Deny, Message: "no output here", Command: -1}
			for i := range r.Records {
				s := &r.Records[i].Result.Stdout
				if s.Head = []byte("canary.go:1:1: canary"); empty {
					s.Head, s.Tail = nil, nil
				}
				s.Bytes, s.Truncated = 1<<20, true
			}
		})
		if !strings.Contains(text, "The output of commands is not shown") || !strings.Contains(text, "org.quiet") || strings.Contains(text, "canary") {
			t.Errorf("the comment has %.800s", text)
		}
		if list, _ := Annotations(r, []string{"canary.go"}); len(list) > 0 {
			t.Errorf("annotations %v", list)
		}
		if data, err := JSON(r); err != nil {
			t.Error(err)
		} else if _, err := Read(data, 8<<20); err != nil {
			t.Errorf("our own report is refused: %v", err)
		}
	}
}

// A report that has invalid counts, or that contains output that it declares
// withheld, is refused.
func TestRedactedMalformed(t *testing.T) {
	for name, change := range map[string]func(*proposal.Stream){
		"no rule":        func(s *proposal.Stream) { s.Redacted = []proposal.Redaction{{Count: 1}} },
		"a sentence":     func(s *proposal.Stream) { s.Redacted = []proposal.Redaction{{Rule: "all is well", Count: 1}} },
		"nothing":        func(s *proposal.Stream) { s.Redacted = []proposal.Redaction{{Rule: "jwt"}} },
		"here after all": func(s *proposal.Stream) { s.Withheld = "why" },
		"no digest":      func(s *proposal.Stream) { s.SHA256 = "" },
	} {
		_, r := redacted(t, false, func(r *proposal.Report) { change(&r.Records[0].Result.Stdout) })
		data, err := JSON(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Read(data, 1<<20); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
