// SPDX-License-Identifier: Apache-2.0

package trial_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fumehood/fumehood/internal/author/trial"
	"github.com/fumehood/fumehood/internal/kit/lanetest"
	"github.com/fumehood/fumehood/internal/kit/sample"
	"github.com/fumehood/fumehood/internal/policy"
)

// shadowsOf returns what was seen of each rule that had no effect, without the numbers.
func shadowsOf(r trial.Report) map[string]string {
	all := map[string]string{}
	for _, s := range r.Shadows {
		words := strings.Fields(s.Seen)
		for i, w := range words {
			if strings.Trim(w, "0123456789,") == "" {
				words[i] = "N"
			}
		}
		all[s.Rule] = strings.Join(words, " ")
	}
	return all
}

// TestShadows: rules without any test are tried with inputs made of their own literals and
// with commands of the shipped policy. One that no input reaches, an allow that is always
// denied and a denial that others make are reported; of two that deny the same, one is.
func TestShadows(t *testing.T) {
	lanetest.SkipShort(t)
	deny := func(point, id, body string) string {
		return fmt.Sprintf("package fumehood.%s\n\n# METADATA\n# title: %s\n# custom: {rule: %s}\ndeny contains {\"rule\": \"%s\", \"message\": \"m\", \"suggestion\": \"s\"} if {\n%s\n}\n", point, id, id, id, body)
	}
	program := func(name string) string { return fmt.Sprintf("\tinput.command.program == %q\n", name) }
	l := layer(
		"allow.rego", "package fumehood.command\n\n# METADATA\n# title: A\n# custom: {rule: a.docker}\nallow contains {\"rule\": \"a.docker\"} if input.command.program == \"docker\"\n",
		"both.rego", deny("command", "a.one", program("acmetool"))+strings.TrimPrefix(deny("command", "a.two", program("acmetool")), "package fumehood.command\n"),
		"rsync.rego", deny("command", "a.rsync", program("rsync")),
		"exec.rego", deny("exec", "a.exec", `	input.path == "/opt/acme"`),
		"flag.rego", deny("command", "a.flag", "\tsome word in input.command.argv\n\tword in wiping")+"\nwiping := {\"--wipe\", \"-W\"}\n",
		"never.rego", deny("command", "a.never", program("ls")+"\tcount(input.command.argv) == 77\n"),
		"never_exec.rego", deny("exec", "a.never-exec", "\tinput.path == \"/opt/x\"\n\tcount(input.argv) == 77"),
		"sub.rego", deny("command", "a.sub", program("go")+"\tinput.command.sub == \"vet\"\n\t\"-x\" in input.command.argv"),
	)
	l.Role = policy.Allows
	want := map[string]string{
		"a.docker": "not seen to have an effect in N inputs: it held in N all of them denied",
		"a.one":    "not seen to decide in N inputs: it held in N and each time a.two denied, too",
		"a.rsync":  "not seen to decide in N inputs: it held in N and each time network.client denied, too",
		"a.never":  "not seen to hold in N inputs", "a.never-exec": "not seen to hold in N inputs",
	}
	r := try(t, trial.Options{Tried: []policy.Layer{l}})
	if diff := cmp.Diff(want, shadowsOf(r)); diff != "" {
		t.Error(diff)
	}
	if r.Failed != 0 || r.CountRan() != 0 || r.Coverage() != 0 {
		t.Errorf("inputs that are only tried count as tests: %+v", r)
	}
}

// TestShadowsOfShipped: the tests, the corpora and generated inputs leave few rules of the
// shipped policy without an effect.
func TestShadowsOfShipped(t *testing.T) {
	lanetest.SkipShort(t)
	l, err := policy.ShippedLayer()
	if err != nil {
		t.Fatal(err)
	}
	var corpus []string
	for _, name := range []string{"hostile", "benign"} {
		corpus = append(corpus, sample.ReadCorpus(t, "../../../testdata/corpus/"+name+".txt")...)
	}
	r := try(t, trial.Options{Tried: []policy.Layer{l}, Corpus: corpus})
	for _, s := range r.Shadows {
		t.Logf("%s %s %s:%d: %s", s.Set, s.Rule, s.File, s.Line, s.Seen)
	}
	if len(r.Shadows) > 40 {
		t.Errorf("%d of %d rules were not seen to have an effect", len(r.Shadows), len(r.Rules))
	}
}
