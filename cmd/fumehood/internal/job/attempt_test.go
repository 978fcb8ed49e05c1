// SPDX-License-Identifier: Apache-2.0

package job

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fumehood/fumehood/internal/github"
	"github.com/fumehood/fumehood/internal/github/action"
	"github.com/fumehood/fumehood/internal/github/comment"
	"github.com/fumehood/fumehood/internal/github/githubtest"
)

func TestAttemptOf(t *testing.T) {
	for attempt := 1; attempt < 300; attempt++ {
		if name, got, ok := attemptOf(attempted("fumehood-unit", attempt)); !ok || name != "fumehood-unit" || got != attempt {
			t.Errorf("attempt %d: %q, %d, %t", attempt, name, got, ok)
		}
	}
	for _, name := range []string{"a@", "a@1", "a@0", "a@-2", "a@02", "a@+2", "a@2@3", "@2", "a@2 ", "a@99999999999999999999"} {
		if got, attempt, ok := attemptOf(name); ok {
			t.Errorf("%q is %q in attempt %d", name, got, attempt)
		}
	}
	if got := attempted("", 2); got != "" {
		t.Errorf("no artifact is %q", got)
	}
}

// TestArtifactsOfAttempts: of each job the artifact of its newest attempt is read, and none
// that another attempt uploaded under its name.
func TestArtifactsOfAttempts(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	again := begin.Add(time.Hour) // the start of the newest attempt
	before, after := again.Add(-time.Minute), again.Add(time.Minute)
	type uploaded struct {
		name string
		at   time.Time
	}
	for name, tt := range map[string]struct {
		stamp, latest int
		uploads       []uploaded
		want          string
	}{
		"one attempt":                        {1, 1, []uploaded{{"fumehood", before}, {"other", before}}, "fumehood"},
		"a squatter in the first attempt":    {1, 1, []uploaded{{"fumehood", before}, {"fumehood@2", before}, {"fumehood@9", before}}, "fumehood"},
		"run again":                          {2, 2, []uploaded{{"fumehood", before}, {"fumehood@2", after}}, "fumehood@2"},
		"only one job is run again":          {2, 2, []uploaded{{"fumehood-a", before}, {"fumehood-b", before}, {"fumehood-b@2", after}}, "fumehood-a fumehood-b@2"},
		"squatted before the attempt":        {2, 2, []uploaded{{"fumehood", before}, {"fumehood@2", before}}, "fumehood"},
		"a later attempt is not awaited":     {2, 2, []uploaded{{"fumehood@2", after}, {"fumehood@3", after}}, "fumehood@2"},
		"an earlier attempt is overwritten":  {2, 2, []uploaded{{"fumehood", after}, {"fumehood@2", after}}, "fumehood@2"},
		"overwritten, and nothing else":      {2, 2, []uploaded{{"fumehood", after}}, ""},
		"a third attempt runs by now":        {2, 3, []uploaded{{"fumehood", before}, {"fumehood@2", before}, {"fumehood@3", after}}, "fumehood@2"},
		"the third overwrites the second":    {2, 3, []uploaded{{"fumehood", before}, {"fumehood@2", after}}, "fumehood"},
		"names that no attempt has":          {2, 2, []uploaded{{"fumehood@02", after}, {"fumehood@1", before}, {"fumehood@2@2", after}, {"fumehood@x", after}}, ""},
		"the newest of one name and attempt": {1, 1, []uploaded{{"fumehood", before}, {"fumehood", before}}, "fumehood"},
		"another plan's name as an attempt":  {2, 2, []uploaded{{"fumehood-2", before}, {"fumehood@2", after}}, "fumehood-2 fumehood@2"},
	} {
		t.Run(name, func(t *testing.T) {
			server := githubtest.New(t, githubtest.Options{Repository: "mona/app", ID: 1, Now: func() time.Time { return after }})
			run := server.AddRun(githubtest.Run{Attempt: tt.latest, Created: begin, Started: again})
			newest := map[string]int64{}
			for _, u := range tt.uploads {
				newest[u.name] = server.AddArtifact(githubtest.Artifact{Run: run.ID, Name: u.name, Created: u.at})
			}
			server.AddWorkflowToken("token", "actions:read")
			client, err := github.New(github.Options{BaseURL: server.URL, Repository: "mona/app", Token: "token"})
			if err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			j := &Job{gh: client, in: action.Inputs{Artifact: "fumehood"}, console: action.NewConsole(&log, func() string { return "x" })}
			list, err := j.artifactsOf(t.Context(), comment.Stamp{RunID: run.ID, Attempt: tt.stamp})
			var got []string
			for _, a := range list {
				if got = append(got, a.Name); a.ID != newest[a.Name] {
					t.Errorf("%s is %d, not %d", a.Name, a.ID, newest[a.Name])
				}
			}
			if err != nil || fmt.Sprint(got) != "["+tt.want+"]" {
				t.Errorf("%v, %v, want %s", got, err, tt.want)
			}
			if strings.Contains(name, "squatted") != strings.Contains(log.String(), "is ignored") && !strings.Contains(name, "overwr") {
				t.Errorf("log: %q", log.String())
			}
		})
	}
}
