// SPDX-License-Identifier: Apache-2.0

package job

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/github/action"
	"github.com/fumehood/fumehood/internal/review"
	"github.com/fumehood/fumehood/internal/review/model"
)

// The inputs name the providers that exist, except for programs, and the runner masks each one's key.
func TestProviders(t *testing.T) {
	if !slices.Equal(append(slices.Clone(action.Providers), "command"), model.Providers) || action.MaxModelRounds != review.MaxRounds {
		t.Errorf("providers %q and %q, %d and %d rounds", action.Providers, model.Providers, action.MaxModelRounds, review.MaxRounds)
	}
	for _, provider := range action.Providers {
		const key = "sk-0123456789abcdef"
		getenv := func(name string) string {
			if name == strings.ToUpper(provider)+"_API_KEY" {
				return key
			}
			return ""
		}
		if !slices.Contains(action.ListSecrets(getenv), key) {
			t.Errorf("the key of %s is not masked", provider)
		}
		if _, values, err := model.New(model.Options{Provider: provider, Getenv: getenv}); err != nil || !slices.Equal(values, []string{key}) {
			t.Errorf("%s: %q, %v", provider, values, err)
		}
	}
}

// The log of what was asked is uploaded if there is one and the input artifact has a name for it.
func TestFindOutputs(t *testing.T) {
	for _, asked := range []bool{false, true} {
		for _, artifact := range []string{"", "fumehood"} {
			j := &Job{dir: t.TempDir(), in: action.Inputs{Artifact: artifact}}
			if asked {
				if err := os.MkdirAll(filepath.Join(j.artifactDir(), modelLogs), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			got := j.findOutputs(Outcome{Found: &review.FoundFindings{Findings: []byte("[]")}})
			uploaded := slices.ContainsFunc(got, func(output [2]string) bool { return output[0] == "artifact-name" })
			if got[0] != [2]string{"findings", "[]"} || uploaded != (asked && artifact != "") {
				t.Errorf("asked %v, artifact %q: %q", asked, artifact, got)
			}
		}
	}
}
