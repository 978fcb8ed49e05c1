// SPDX-License-Identifier: Apache-2.0

package points

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/pkg/proposal"
)

func TestReadContext(t *testing.T) {
	many, _ := json.Marshal(make([]int, proposal.MaxContextPaths))
	paths := strings.ReplaceAll(string(many), "0", `"x"`)
	for text, wrong := range map[string]string{
		`{}`: "",
		`{"repository":"acme/shop","labels":["b","a","b"],"started":"2027-03-01T10:30:00+01:00"}`: "",
		`{"known":false}`:                     "",
		`{"changed":{"paths":` + paths + `}}`: "", // the same path
		`{"lables":[]}`:                       `unknown field "lables", before byte`,
		`{"labels":["a"],"Labels":[]}`:        `the field "Labels" is repeated, before byte`,
		`{"changed":{"path":[]}}`:             `unknown field "path"`,
		`{"pr":-1}`:                           "invalid pull request number",
		`{"started":"yesterday"}`:             "write it as 2027-03-01T09:30:00Z",
		`{"head_ref":"` + strings.Repeat("x", proposal.MaxContextText+1) + `"}`: "a text of 4097 bytes",
		``: "not JSON",
	} {
		_, err := ReadContext([]byte(text))
		if (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%.60s: %v, want %q", text, err, wrong)
		}
	}
	c, err := ReadContext([]byte(`{"repository":"acme/shop","labels":["b","a","b"],"started":"2027-03-01T10:30:00+01:00"}`))
	want := proposal.Context{Known: true, Repository: "acme/shop", Labels: []string{"a", "b"}, Started: "2027-03-01T09:30:00Z",
		Changed: proposal.ContextChanged{Paths: []string{}}, Image: proposal.ContextImage{Signers: []string{}}, Credentials: []string{}}
	if diff := cmp.Diff(want, c); diff != "" || err != nil {
		t.Error(diff, err)
	}
}
