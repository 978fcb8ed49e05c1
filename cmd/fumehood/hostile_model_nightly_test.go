// SPDX-License-Identifier: Apache-2.0

//go:build nightly

package main

import (
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
	"github.com/fumehood/fumehood/internal/review"
	"github.com/fumehood/fumehood/internal/review/model/modeltest"
)

// What was found before the model failed is verified, and marked as incomplete.
func TestNightlyPartialReview(t *testing.T) {
	d := newDesk(t)
	repo, path := commitArchive(t, plantedOne)
	s := modeltest.New(t, func(n int, _ modeltest.ReceivedRequest) modeltest.ScriptedAnswer {
		if n > 1 {
			return modeltest.ScriptedAnswer{Stop: "length", Text: "{"}
		}
		return modeltest.ScriptedAnswer{Text: jobtest.ModelAnswer(t, false, []string{"ls"}, knownFindings(t, path, true)...)}
	})
	doc := d.reviewed(t, s.ProviderEnv("gemini"), "--workspace", repo, "--base", "base", "--head", "head", "--config", "none", "--provider", "gemini", "--model", "gemini-2.5-pro")
	if doc.Reviewed || !doc.Partial || doc.CountVerdict(review.Verified) != 1 || !strings.HasPrefix(doc.Headline(), "Incomplete review, 1 verified finding so far") {
		t.Errorf("%+v", doc)
	}
}
