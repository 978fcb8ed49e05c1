// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"testing"

	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// readCorpus reads one of the corpora that packages share.
func readCorpus(t *testing.T, name string) []string {
	t.Helper()
	return sample.ReadCorpus(t, "../../testdata/corpus/"+name)
}

func TestCorpusHostileIsNeverAllowed(t *testing.T) {
	lanetest.SkipShort(t)
	e := shipped(t)
	texts := readCorpus(t, "hostile.txt")
	if len(texts) < 400 {
		t.Errorf("the corpus has shrunk to %d texts", len(texts))
	}
	for _, text := range texts {
		if d := decide(t, e, text); d.Effect == proposal.Allow {
			t.Errorf("allowed by %v: %s", d.Rules, text)
		}
	}
}

func TestCorpusBenignIsSeldomRefused(t *testing.T) {
	lanetest.SkipShort(t)
	e := shipped(t)
	texts := readCorpus(t, "benign.txt")
	if len(texts) < 300 {
		t.Errorf("the corpus has shrunk to %d texts", len(texts))
	}
	refused := 0
	for _, text := range texts {
		if d := decide(t, e, text); d.Effect != proposal.Allow {
			refused++
			t.Logf("refused by %s (%s): %s", d.Reasons[0].Rule, d.Reasons[0].Message, text)
		}
	}
	if refused*50 > len(texts) {
		t.Errorf("%d of %d benign texts refused, more than one in fifty", refused, len(texts))
	}
}

// The texts whose hidden starts only the kernel refuses are allowed; TestE2ERefusedCorpus runs them.
func TestCorpusRefusedIsAllowed(t *testing.T) {
	lanetest.SkipShort(t)
	e := shipped(t)
	for _, text := range readCorpus(t, "refused.txt") {
		if d := decide(t, e, text); d.Effect != proposal.Allow {
			t.Errorf("refused by %s: %s", grounds(d), text)
		}
	}
}
