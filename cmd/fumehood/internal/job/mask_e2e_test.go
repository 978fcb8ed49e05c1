// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package job_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/jobtest"
)

const maskedCanary = "hunter2-canary/value"

// findCanary returns the forms of the canary that text contains.
func findCanary(text string) (forms []string) {
	v := maskedCanary
	for name, form := range map[string]string{"plain": v, "base64": base64.StdEncoding.EncodeToString([]byte(v))[:20], "hex": hex.EncodeToString([]byte(v)), "escaped": strings.ReplaceAll(v, "/", "%2F")} {
		if strings.Contains(text, form) {
			forms = append(forms, name)
		}
	}
	return forms
}

// maskPlan contains the value itself, and a program that prints it in the form of a
// compiler message.
const maskPlan = `schema: fumehood.plan/v1
proposals:
  - id: tell
    language: bash
    code: |
      v=hunter2-canary/value
      echo "greet.sh:1:1: error: $v"
      printf %s "$v" | base64
      printf %s "$v" | od -An -tx1 | tr -d ' \n'
      echo " ${v/\//%2F}"
      printf %s "$v" > left.txt
      exit 1
    outputs: [left.txt]
`

// THREATS 12, 29: a value of the input mask, in any form, is in no uploaded file,
// and not in comment, check run, annotations, summary or the job's log, whichever
// job reports. The plan itself contains it.
func TestE2EActionMask(t *testing.T) {
	t.Parallel()
	for _, fork := range []bool{false, true} {
		w := newWorld(t, fork, nil, nil)
		name := "pull_request.opened"
		if fork {
			name += ".fork"
		} else {
			w.SetPermissions("contents:read", "pull_requests:write", "checks:write", "actions:read")
		}
		env := []string{"INPUT_PLAN=" + maskPlan, "INPUT_MASK=CANARY", "CANARY=" + maskedCanary}
		if !fork {
			env = append(env, "INPUT_CHECK_RUN=true")
		}
		s := w.RunStep("pull_request", w.EventPayload(name, nil), env...)
		if s.Outputs["failed"] != "1" {
			t.Fatalf("fork %v: outputs %q\n%s", fork, s.Outputs, s.Log)
		}
		told := []string{"summary", s.Summary}
		for _, path := range []string{s.Outputs["artifact-path"], s.Outputs["files-path"]} {
			err := filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				data, err := os.ReadFile(path)
				told = append(told, filepath.Base(path), string(data))
				return err
			})
			if err != nil {
				t.Error(err)
			}
		}
		var log []string
		for line := range strings.Lines(s.Log) {
			if !strings.HasPrefix(line, "::add-mask::") {
				log = append(log, line)
			}
		}
		told = append(told, "log", strings.Join(log, ""))
		if fork {
			w.UploadArtifact(s, nil)
			r := w.RunReport(nil, "INPUT_MASK=CANARY", "CANARY="+maskedCanary)
			told = append(told, "reporter's summary", r.Summary)
			jobtest.CheckContains(t, "comment", w.BotComment().Body, "which were redacted")
		} else {
			checks, err := json.Marshal(w.GH.CheckRuns(w.Head))
			if err != nil || !strings.Contains(string(checks), "greet.sh") {
				t.Errorf("checks %s, %v", checks, err)
			}
			told = append(told, "checks", string(checks))
		}
		body := w.BotComment().Body
		jobtest.CheckContains(t, "comment", body, "secrets redacted in", "[redacted CANARY]")
		told = append(told, "comment", body)
		for i := 0; i < len(told); i += 2 {
			if forms := findCanary(told[i+1]); len(forms) > 0 {
				t.Errorf("fork %v: %s holds the value, %v", fork, told[i], forms)
			}
		}
		if len(told) < 14 {
			t.Errorf("only %d things were looked at", len(told)/2)
		}
	}
}
