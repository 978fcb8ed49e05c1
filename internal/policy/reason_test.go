// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/module"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// TestRetryOfMetadata holds that a rule says its class, and that a word which means
// nothing stops the policy.
func TestRetryOfMetadata(t *testing.T) {
	deny := func(meta string) string {
		return "package fumehood.command\n\n# METADATA\n# title: x\n# custom: " + meta + "\ndeny contains {\"rule\": \"org.ls.all\", \"message\": \"m\", \"suggestion\": \"s\"} if input.command.program == \"ls\"\n"
	}
	for meta, want := range map[string]proposal.Retry{
		"{rule: org.ls.all, retry: never}": proposal.RetryNever, "{rule: org.ls., retry: approval}": proposal.RetryApproval,
		"{rule: org., retry: transient}": proposal.RetryTransient, "{rule: org.ls, retry: never}": proposal.RetryVary, "{rule: org.ls.all}": proposal.RetryVary,
	} {
		d := decide(t, with(t, folder(t, "a.rego", deny(meta))), "ls")
		if r := d.Reasons[0]; r.Retry != want || r.Layer != "policy" {
			t.Errorf("%s: %s of layer %s, want %s", meta, r.Retry, r.Layer, want)
		}
	}
	for _, meta := range []string{"{rule: org.ls.all, retry: nevr}", "{retry: never}", "{rule: org.ls.all, retry: [never]}", "{rule: 1, retry: never}"} {
		_, err := policy.New(t.Context(), policy.Options{Layers: layersOf(t, policy.Restricts, folder(t, "a.rego", deny(meta)))})
		if codeOf(err) != "policy.unknown-key" {
			t.Errorf("%s: %v", meta, err)
		}
	}
}

// TestLabels: the severity and category of METADATA are in the reasons of the rule and in
// nothing else, whether a command, a program or a connection is refused. Of two rules with one
// id the worse severity counts. One that is not valid is not shown, and changes no decision.
func TestLabels(t *testing.T) {
	deny := func(pkg, meta string) string {
		return "package fumehood." + pkg + "\n\n# METADATA\n# title: x\n# custom: " + meta + "\ndeny contains {\"rule\": \"org.x.all\", \"message\": \"m\", \"suggestion\": \"s\"}\n"
	}
	for meta, want := range map[string]string{
		"{rule: org.x.all, severity: critical, category: data-loss}": "critical data-loss", "{rule: org., severity: low}": "low ", "{rule: org.x., category: style}": " style",
		"{rule: org.x.all, severity: low}\n\n# METADATA\n# custom: {rule: org.x.all, severity: high, category: a}\nunused := 1\n\n# METADATA\n# title: x": "high a",
		"{rule: org.x.all, severity: bad, category: Two Words}": " ", "{severity: high}": " ", "{rule: org.x, severity: high}": " ", "{rule: org.x.all}": " ",
	} {
		command := decide(t, with(t, folder(t, "a.rego", deny("command", meta))), "ls").Reasons[0]
		exec, err := with(t, folder(t, "a.rego", deny("exec", meta))).Exec(t.Context(), plainExec())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []proposal.Reason{command, *exec.Reason} {
			if got := r.Severity + " " + r.Category; got != want || r.Rule != "org.x.all" || r.Effect != proposal.Deny {
				t.Errorf("%s: %+v, want %q", meta, r, want)
			}
		}
	}
	if r := decide(t, shipped(t), "no-such-program").Reasons[0]; r.Severity != "" || r.Category != "" {
		t.Errorf("%+v", r)
	}
	if r := decide(t, shipped(t), "cat /root/.ssh/id").Reasons[0]; r.Severity != "high" || r.Category != "credentials" {
		t.Errorf("%+v", r)
	}
}

// TestAskIsForApproval holds the retry of an ask, and that layers with the same role have
// different labels.
func TestAskIsForApproval(t *testing.T) {
	ask := folder(t, "a.rego", "package fumehood.command\n\nask contains {\"rule\": \"org.ls\", \"message\": \"m\", \"suggestion\": \"s\"} if input.command.program == \"ls\"\n")
	e, err := policy.New(t.Context(), policy.Options{Layers: layersOf(t, policy.Restricts, folder(t, "b.rego", strict), ask)})
	if err != nil {
		t.Fatal(err)
	}
	r := decide(t, e, "ls").Reasons
	if len(r) != 1 || r[0].Retry != proposal.RetryApproval || r[0].Layer != "policy#2" {
		t.Errorf("%+v", r)
	}
}

// TestInputSchemas holds that each decision point has one, and says which was meant.
func TestInputSchemas(t *testing.T) {
	for _, point := range module.Points() {
		data, err := policy.InputSchema(strings.TrimPrefix(point, "fumehood."))
		if err != nil || !json.Valid(data) || !strings.Contains(string(data), `"required"`) {
			t.Errorf("%s: %v %s", point, err, data)
		}
	}
	if _, err := policy.InputSchema("comand"); err == nil || !strings.Contains(proposal.FailureOf(err).Hint, "fumehood.command") {
		t.Errorf("comand: %v", err)
	}
}
