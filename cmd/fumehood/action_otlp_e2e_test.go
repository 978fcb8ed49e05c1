// SPDX-License-Identifier: Apache-2.0

//go:build linux && e2e

package main

import (
	"strings"
	"testing"
)

// A fork's run has no secret and so does not export, with a warning. The reporting job
// exports the run and says that it ran in another job. No log shows the header's value.
func TestE2EActionTellsCollector(t *testing.T) {
	t.Parallel()
	c := newSink(t)
	inputs := []string{"INPUT_OTLP=" + c.URL, "INPUT_OTLP_HEADERS=Authorization=OTLP_AUTHORIZATION"}
	secret := "OTLP_AUTHORIZATION=Bearer hunter22hunter22"
	w := newWorld(t, true, nil, nil)
	w.permit("contents:read", "pull_requests:read")
	ran := w.act("pull_request", w.event("pull_request.opened.fork", nil), inputs...)
	if ran.outputs["conclusion"] != "failure" || c.text() != "" {
		t.Errorf("outputs %q, the collector got %q", ran.outputs, c.text())
	}
	want(t, "log", ran.log, "otlp.failed", "is empty or not set")
	w.upload(ran, nil)
	w.permit("contents:read", "pull_requests:write", "actions:read")
	told := w.report(nil, append(inputs, secret)...)
	if told.outputs["conclusion"] != "failure" || strings.Contains(told.log, "otlp.failed") {
		t.Errorf("outputs %q\n%s", told.outputs, told.log)
	}
	want(t, "collector", c.text(), `name: "fumehood run"`, `key: "fumehood.source"`, `string_value: "artifact"`, w.head, "fumehood/command", "curl")
	for _, auth := range c.auth {
		if auth != "Bearer hunter22hunter22" {
			t.Errorf("Authorization %q", auth)
		}
	}
	if strings.Contains(strings.ReplaceAll(told.log, "::add-mask::Bearer hunter22hunter22", ""), "hunter22") {
		t.Errorf("the log shows the header's value\n%s", told.log)
	}
}

// The decisions about comments are exported too, including refusals.
func TestE2EActionTellsOfTriggers(t *testing.T) {
	t.Parallel()
	c := newSink(t)
	w := newWorld(t, false, nil, nil)
	w.ask("Codertocat", "/fumehood run cat README.md", "INPUT_OTLP="+c.URL)
	want(t, "collector", c.text(), "allow trigger run by Codertocat", `name: "fumehood run"`, "/comments/")
	w.gh.Permit("hubot", "triage")
	w.ask("hubot", "/fumehood run cat README.md", "INPUT_OTLP="+c.URL)
	want(t, "collector", c.text(), "deny trigger run by hubot")
}
