// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	pathpkg "path"
	"slices"
	"strings"
	"time"

	gh "github.com/google/go-github/v62/github"
)

// A WorkflowRun is one run of a workflow. Names and branches are untrusted text.
type WorkflowRun struct {
	ID               int64
	Number           int
	Attempt          int
	Event            string
	HeadSHA          string
	HeadBranch       string
	HeadRepository   string // owner/name; "" if it was deleted
	HeadRepositoryID int64
	Status           string // "queued", "in_progress", "completed" …
	Conclusion       string // "" until completed
	Path             string // of the workflow file
	Name             string
	Created          time.Time
	Started          time.Time // of the newest attempt
	Actor            Author    // the user who caused the first attempt
}

// run adds the fields that go-github leaves out.
type run struct {
	gh.WorkflowRun
	Path string `json:"path"`
}

// WorkflowRun reads one run.
func (c *Client) WorkflowRun(ctx context.Context, id int64) (WorkflowRun, error) {
	return requestWithRetry(ctx, c, readRun, func(ctx context.Context) (WorkflowRun, error) {
		var answer run
		if _, err := c.getDocument(ctx, c.repositoryPath(fmt.Sprintf("actions/runs/%d", id)), nil,
			&answer); err != nil {
			return WorkflowRun{}, err
		}
		if answer.GetID() != id {
			return WorkflowRun{}, malformedError("requested run %d, got %d", id, answer.GetID())
		}
		return runOf(&answer)
	})
}

// CountWorkflowRuns counts the runs that events have started since then, by the actor
// that caused them. It counts runs of the workflow whose file is path, or of all
// workflows if path is "". Skipped runs are not counted.
func (c *Client) CountWorkflowRuns(
	ctx context.Context, events []string, path string, since time.Time,
) (map[Author]int, error) {
	count := map[Author]int{}
	if dir, file := pathpkg.Split(path); dir == ".github/workflows/" && file != "" {
		err := c.countRuns(ctx, "actions/workflows/"+url.PathEscape(file)+"/runs", nil, since, func(r WorkflowRun) {
			if slices.Contains(events, r.Event) {
				count[r.Actor]++
			}
		})
		if err == nil {
			return count, nil
		}
		if KindOf(err) != NotFound {
			return nil, err
		}
	}
	for _, event := range events { // of all workflows, which are too many without this filter
		err := c.countRuns(ctx, "actions/runs", url.Values{"event": {event}}, since, func(r WorkflowRun) {
			file, _, _ := strings.Cut(r.Path, "@") // GitHub appends the ref for some
			if path == "" || file == path {
				count[r.Actor]++
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return count, nil
}

// countRuns passes each run that was not skipped to add, once.
func (c *Client) countRuns(
	ctx context.Context, list string, query url.Values, since time.Time, add func(WorkflowRun),
) error {
	seen := map[int64]bool{}
	created := ">=" + formatTime(since)
	for range maxSearches {
		runs, err := c.searchRuns(ctx, list, query, created)
		if err != nil {
			return err
		}
		for _, r := range runs {
			if !seen[r.ID] && r.Conclusion != "skipped" {
				add(r)
			}
			seen[r.ID] = true
		}
		if len(runs) < maxFound {
			return nil
		}
		created = formatTime(since) + ".." + formatTime(runs[len(runs)-1].Created)
	}
	return malformedError("more than %d runs", maxSearches*maxFound).toStopError(countRuns)
}

// A search returns only the newest 1,000 matches. An attacker can cause thousands
// of skipped runs, which must not hide those that count, so the search continues
// from the oldest one returned.
const (
	maxFound    = 1000
	maxSearches = 10
)

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// searchRuns lists the newest runs of a list within the range created.
func (c *Client) searchRuns(ctx context.Context, list string, query url.Values, created string) ([]WorkflowRun, error) {
	var runs []WorkflowRun
	search := url.Values{"created": {created}}
	maps.Copy(search, query)
	err := readPages(ctx, c, countRuns, c.repositoryPath(list), search, func(page struct {
		Runs []*run `json:"workflow_runs"`
	}) error {
		for _, item := range page.Runs {
			r, err := runOf(item)
			if err != nil {
				return err
			}
			runs = append(runs, r)
		}
		return nil
	})
	return runs, err
}

func runOf(r *run) (WorkflowRun, error) {
	if r == nil || r.GetID() <= 0 || !fullSHA(r.GetHeadSHA()) {
		return WorkflowRun{}, malformedError("a workflow run without an id or a full commit id")
	}
	return WorkflowRun{
		ID: r.GetID(), Number: r.GetRunNumber(), Attempt: r.GetRunAttempt(), Event: r.GetEvent(),
		HeadSHA: r.GetHeadSHA(), HeadBranch: r.GetHeadBranch(),
		HeadRepository: r.GetHeadRepository().GetFullName(), HeadRepositoryID: r.GetHeadRepository().GetID(),
		Status: r.GetStatus(), Conclusion: r.GetConclusion(), Path: r.Path, Name: r.GetName(),
		Created: r.GetCreatedAt().Time, Started: r.GetRunStartedAt().Time, Actor: authorOf(r.GetActor()),
	}, nil
}
