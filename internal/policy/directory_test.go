// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// After cd in a list of &&, the next commands run in that directory alone. Where the cd may not have run, or
// may have failed, they may run in the one before, too.
func TestDirectoryOfList(t *testing.T) {
	e := shipped(t)
	for text, want := range map[string]proposal.Effect{
		"cd tests && bash ../tests/ok.sh":                             proposal.Allow,
		"cd tests && python3 ../tests/x.py":                           proposal.Allow,
		"cd tests && ls && timeout 5 bash ../tests/ok.sh":             proposal.Allow,
		"ls && cd a && cd b && bash ../../ok.sh":                      proposal.Allow,
		"cd tests && [[ -f ../ok.sh ]] && bash ../ok.sh":              proposal.Allow,
		"cd tests; bash ../tests/ok.sh":                               proposal.Allow,
		"cd tests || bash ../tests/ok.sh":                             proposal.Deny,
		"cd tests && ls || bash ../tests/ok.sh":                       proposal.Deny,
		"false && cd tests; bash ../tests/ok.sh":                      proposal.Deny,
		"! cd tests && bash ../tests/ok.sh":                           proposal.Deny,
		"true || cd tests && bash ../tests/ok.sh":                     proposal.Deny,
		"cd tests | cat && bash ../tests/ok.sh":                       proposal.Deny,
		"cd tests && ls; ls && bash ../tests/ok.sh":                   proposal.Deny,
		"(cd tests && ls) && bash ../tests/ok.sh":                     proposal.Deny,
		"cd tests && (cd ..) && bash ../../ok.sh":                     proposal.Deny,
		"cd a && cd b && cd .. && bash ../../ok.sh":                   proposal.Deny,
		"cd a/b && cd \"$X\" && bash ../ok.sh":                        proposal.Deny,
		"cd tests && popd && bash ../tests/ok.sh":                     proposal.Deny,
		"f() { cd ..; }; cd tests && f && bash ../tests/ok.sh":        proposal.Deny,
		"bash -c 'cd tests && ls' && bash ../tests/ok.sh":             proposal.Deny,
		"cd a/b && bash -c 'cd .. && ls' && bash ../../../ok.sh":      proposal.Deny,
		"cd a && cd .. && bash ../ok.sh":                              proposal.Deny,
		"cd a && pushd +1 && bash ../x.sh":                            proposal.Deny,
		"cd a; pushd +1; bash ../x.sh":                                proposal.Deny,
		"cd tests && . ./x.sh && bash ../tests/ok.sh":                 proposal.Deny,
		"cd tests && command cd .. && bash ../ok.sh":                  proposal.Deny,
		"cd tests && { cd ..; } && bash ../tests/x.sh":                proposal.Deny,
		"cd tests && bash ../.git/hooks/x":                            proposal.Deny,
		"if cd tests && ls; then ls; else bash ../tests/ok.sh; fi":    proposal.Deny,
		"cd tests && ls & bash ../tests/ok.sh":                        proposal.Deny,
		"for i in 1 2 3; do cd .. && bash ./x.sh; done; bash ../x.sh": proposal.Deny,
		"cd tests && eval 'cd ..' && bash ../tests/ok.sh":             proposal.Deny,
	} {
		if got := decide(t, e, text); got.Effect != want {
			t.Errorf("%s: %s %+v, want %s", text, got.Effect, got.Reasons, want)
		}
	}
}
