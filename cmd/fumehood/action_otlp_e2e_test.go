// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main

import (
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
)

// A fork's run has no secret and so does not export, with a warning. The reporting job
// exports the run and says that it ran in another job. No log shows the header's value.
func TestE2EActionTellsCollector(t *testing.T) {
	t.Parallel()
	c := newSink(t)
	inputs := []string{"INPUT_OTLP=" + c.URL, "INPUT_OTLP_HEADERS=Authorization=OTLP_AUTHORIZATION"}
	secret := "OTLP_AUTHORIZATION=Bearer hunter22hunter22"
	w := jobtest.NewWorld(t, true, nil, nil)
	w.Process = true
	w.SetPermissions("contents:read", "pull_requests:read")
	ran := w.RunStep("pull_request", w.EventPayload("pull_request.opened.fork", nil), inputs...)
	if ran.Outputs["conclusion"] != "failure" || c.text() != "" {
		t.Errorf("outputs %q, the collector got %q", ran.Outputs, c.text())
	}
	jobtest.CheckContains(t, "log", ran.Log, "otlp.failed", "is empty or not set")
	w.UploadArtifact(ran, nil)
	w.SetPermissions("contents:read", "pull_requests:write", "actions:read")
	told := w.RunReport(nil, append(inputs, secret)...)
	if told.Outputs["conclusion"] != "failure" || strings.Contains(told.Log, "otlp.failed") {
		t.Errorf("outputs %q\n%s", told.Outputs, told.Log)
	}
	jobtest.CheckContains(t, "collector", c.text(), `name: "fumehood run"`, `key: "fumehood.source"`, `string_value: "artifact"`, w.Head, "fumehood/command", "curl")
	for _, auth := range c.auth {
		if auth != "Bearer hunter22hunter22" {
			t.Errorf("Authorization %q", auth)
		}
	}
	if strings.Contains(strings.ReplaceAll(told.Log, "::add-mask::Bearer hunter22hunter22", ""), "hunter22") {
		t.Errorf("the log shows the header's value\n%s", told.Log)
	}
}

// The decisions about comments are exported too, including refusals.
func TestE2EActionTellsOfTriggers(t *testing.T) {
	t.Parallel()
	c := newSink(t)
	w := jobtest.NewWorld(t, false, nil, nil)
	w.Process = true
	w.AskBot("Codertocat", "/fumehood run cat README.md", "INPUT_OTLP="+c.URL)
	jobtest.CheckContains(t, "collector", c.text(), "allow trigger run by Codertocat", `name: "fumehood run"`, "/comments/")
	w.GH.SetRole("hubot", "triage")
	w.AskBot("hubot", "/fumehood run cat README.md", "INPUT_OTLP="+c.URL)
	jobtest.CheckContains(t, "collector", c.text(), "deny trigger run by hubot")
}
