// SPDX-License-Identifier: Apache-2.0

package plan

import "testing"

func TestProposesNothing(t *testing.T) {
	for text, want := range map[string]bool{
		`{"schema":"fumehood.plan/v1","proposals":[]}`:                        true,
		"schema: fumehood.plan/v1\nproposer: x\nproposals: []\n":              true,
		`{"schema":"fumehood.plan/v1","proposals":[{"id":"a","run":"true"}]}`: false,
		`{"schema":"fumehood.plan/v1","proposals":[{}]}`:                      false,
		`{"schema":"fumehood.plan/v1","proposals":null}`:                      false,
		`{"schema":"fumehood.plan/v1","proposals":{}}`:                        false,
		`{"schema":"fumehood.plan/v1"}`:                                       false,
		`{"schema":"fumehood.plan/v2","proposals":[]}`:                        false,
		`{"schema":"fumehood.plan/v1","proposals":[],"x":1}`:                  false,
		`{"proposals":[]}`: false,
		``:                 false,
		`[]`:               false,
	} {
		if got := ProposesNothing([]byte(text), "plan"); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
}
