// SPDX-License-Identifier: Apache-2.0

package githubtest

import (
	"cmp"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

func (c *call) findRun() *Run {
	id := c.pathNumber("run_id")
	for _, run := range c.repo.runs {
		if run.ID == id {
			return run
		}
	}
	return nil
}

func (s *Server) getRun(c *call) reply {
	if run := c.findRun(); run != nil {
		return reply{body: s.runShape(c.repo, run)}
	}
	return notFound
}

func (s *Server) listRuns(c *call) reply {
	query := c.r.URL.Query()
	matches := func(name, value string) bool {
		return query.Get(name) == "" || strings.EqualFold(query.Get(name), value)
	}
	file := c.params["workflow_id"] // "" for the runs of all workflows
	of := func(run *Run) bool {
		name, _, _ := strings.Cut(path.Base(run.Path), "@")
		return file == "" || name == file
	}
	if file != "" && !slices.ContainsFunc(c.repo.runs, of) { // GitHub does not know the workflow
		return notFound
	}
	var list []any
	for _, run := range slices.Backward(c.repo.runs) {
		status := query.Get("status")
		if of(run) && matches("event", run.Event) && matches("head_sha", run.HeadSHA) &&
			matches("branch", run.HeadBranch) &&
			matches("actor", run.Actor) && (status == "" || status == run.Status || status == run.Conclusion) &&
			matchesDateRange(query.Get("created"), run.Created) {
			list = append(list, s.runShape(c.repo, run))
		}
	}
	return reply{list: list, key: "workflow_runs", listed: true}
}

// matchesDateRange reads GitHub's date syntax: ">=T", ">T", "<=T", "<T", "A..B", "T". An
// expression that it cannot parse matches nothing.
func matchesDateRange(expression string, t time.Time) bool {
	if expression == "" {
		return true
	}
	if from, to, ranged := strings.Cut(expression, ".."); ranged {
		return matchesDateRange(">="+from, t) && matchesDateRange("<="+to, t) ||
			from == "*" && matchesDateRange("<="+to, t) || to == "*" && matchesDateRange(">="+from, t)
	}
	text := strings.TrimLeft(expression, "<>=")
	operator := strings.TrimSuffix(expression, text)
	start, err := time.Parse(time.RFC3339, text)
	end := start
	if err != nil {
		if start, err = time.Parse(time.DateOnly, text); err != nil {
			return false
		}
		end = start.AddDate(0, 0, 1).Add(-time.Second)
	}
	switch operator {
	case ">=":
		return !t.Before(start)
	case ">":
		return t.After(end)
	case "<=":
		return !t.After(end)
	case "<":
		return t.Before(start)
	}
	return !t.Before(start) && !t.After(end)
}

func (s *Server) listArtifacts(c *call) reply {
	return s.artifactReply(c, s.sortedArtifacts())
}

func (s *Server) listRunArtifacts(c *call) reply {
	if c.findRun() == nil {
		return notFound
	}
	return s.artifactReply(c, s.artifactsOf(c.pathNumber("run_id")))
}

func (s *Server) artifactReply(c *call, artifacts []*Artifact) reply {
	name := c.r.URL.Query().Get("name")
	var list []any
	for _, a := range artifacts {
		if name == "" || name == a.Name {
			list = append(list, s.artifactShape(c.repo, a))
		}
	}
	return reply{list: list, key: "artifacts", listed: true}
}

func (s *Server) findArtifact(c *call) *Artifact {
	id := c.pathNumber("artifact_id")
	for _, a := range s.sortedArtifacts() {
		if a.ID == id {
			return a
		}
	}
	return nil
}

func (s *Server) getArtifact(c *call) reply {
	if a := s.findArtifact(c); a != nil {
		return reply{body: s.artifactShape(c.repo, a)}
	}
	return notFound
}

// A blob is the target of a redirect, valid for one minute.
type blob struct {
	data    []byte
	name    string
	expires time.Time
}

const blobPath = "/_blob/"

func (s *Server) downloadArtifact(c *call) reply {
	a := s.findArtifact(c)
	switch {
	case a == nil || c.params["archive_format"] != "zip":
		return notFound
	case a.Expired:
		return errorReply(http.StatusGone, "Artifact has expired")
	}
	key := fmt.Sprintf("%d-%d.zip", a.ID, s.nextID())
	s.blobs[key] = blob{a.Data, a.Name, s.options.Now().Add(time.Minute)}
	base := cmp.Or(s.blobURL, strings.TrimSuffix(s.URL, s.options.Prefix))
	return reply{status: http.StatusFound,
		header: http.Header{"Location": {base + blobPath + key + "?sig=" + CommitID(key)}}}
}

// serveBlob is the storage for artifacts. It accepts only its own signature: a
// token in a request has been sent to the wrong host.
func (s *Server) serveBlob(w http.ResponseWriter, r *http.Request) {
	answered := s.recordRequest(r, "blob", r.URL.Path, nil)
	s.mu.Lock()
	b, ok := s.blobs[strings.TrimPrefix(r.URL.Path, blobPath)]
	expired := ok && s.options.Now().After(b.expires)
	s.mu.Unlock()
	status := http.StatusOK
	switch {
	case r.Header.Get("Authorization") != "":
		s.addViolation("request", "blob", "a token was sent to the blob store")
		status = http.StatusBadRequest
	case !ok || r.URL.Query().Get("sig") != CommitID(strings.TrimPrefix(r.URL.Path, blobPath)):
		status = http.StatusNotFound
	case expired:
		status = http.StatusForbidden
	}
	answered(status)
	if status != http.StatusOK {
		http.Error(w, "<Error><Code>AuthenticationFailed</Code></Error>", status)
		return
	}
	a := &answer{status: status, header: http.Header{
		"Content-Type":        {"application/zip"},
		"Content-Disposition": {"attachment; filename=" + strconv.Quote(b.name+".zip")},
	}, body: b.data}
	fault := s.faultFor("blob", r)
	if fault != nil {
		switch instead := fault.replaceAnswer(s); {
		case instead != nil:
			a = instead
		case fault.Kind == ResetBefore, fault.Kind == ResetAfter:
			resetConnection(w)
			return
		}
	}
	a.writeDelayed(r.Context(), w, fault)
}
