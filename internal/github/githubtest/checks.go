// SPDX-License-Identifier: Apache-2.0

package githubtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
)

func (s *Server) createCheck(c *call) reply {
	var f checkFields
	if err := json.Unmarshal(c.body, &f); err != nil {
		return errorReply(http.StatusBadRequest, "Problems parsing JSON")
	}
	if !c.token.isApp() {
		return errorReply(http.StatusForbidden, "You must authenticate via a GitHub App.")
	}
	if m := f.findInvalid(); m != "" {
		return errorReply(http.StatusUnprocessableEntity, m)
	}
	if !c.repo.hasCommit(*f.SHA) {
		return errorReply(http.StatusUnprocessableEntity, "No commit found for SHA: "+*f.SHA)
	}
	check := &CheckRun{ID: s.nextID(), SHA: *f.SHA, Status: "queued", Started: s.now(), Author: c.token.Login}
	check.applyFields(f, s.now())
	c.repo.checks = append(c.repo.checks, check)
	return reply{status: http.StatusCreated, body: s.checkShape(c.repo, check)}
}

func (s *Server) updateCheck(c *call) reply {
	var f checkFields
	if err := json.Unmarshal(c.body, &f); err != nil {
		return errorReply(http.StatusBadRequest, "Problems parsing JSON")
	}
	check := c.findCheckRun()
	if check == nil {
		return notFound
	}
	if check.Author != c.token.Login {
		return errorReply(http.StatusForbidden,
			fmt.Sprintf("Invalid app_id `%d` - check run can only be modified by the GitHub App that created it.",
				s.appID(check.Author)))
	}
	if m := f.findInvalid(); m != "" {
		return errorReply(http.StatusUnprocessableEntity, m)
	}
	check.applyFields(f, s.now())
	check.Updates++
	return reply{body: s.checkShape(c.repo, check)}
}

func (c *call) findCheckRun() *CheckRun {
	id := c.pathNumber("check_run_id")
	for _, check := range c.repo.checks {
		if check.ID == id {
			return check
		}
	}
	return nil
}

func (s *Server) getCheck(c *call) reply {
	if check := c.findCheckRun(); check != nil {
		return reply{body: s.checkShape(c.repo, check)}
	}
	return notFound
}

func (s *Server) listChecks(c *call) reply {
	query, sha := c.r.URL.Query(), c.repo.resolveCommit(c.params["ref"])
	var list []any
	seen := map[string]bool{}
	for _, check := range slices.Backward(c.repo.checks) {
		if check.SHA != sha || query.Get("filter") != "all" && seen[check.Name] {
			continue
		}
		if n := query.Get("check_name"); n != "" && n != check.Name {
			continue
		}
		if st := query.Get("status"); st != "" && st != check.Status {
			continue
		}
		seen[check.Name] = true
		list = append(list, s.checkShape(c.repo, check))
	}
	return reply{list: list, key: "check_runs", listed: true}
}

func (s *Server) listAnnotations(c *call) reply {
	check := c.findCheckRun()
	if check == nil {
		return notFound
	}
	var list []any
	for _, a := range check.Annotations {
		list = append(list, obj{
			"path": a.Path, "start_line": a.StartLine, "end_line": a.EndLine, "annotation_level": a.Level,
			"title": orNil(a.Title), "message": a.Message, "raw_details": orNil(a.RawDetails),
			"start_column": orNil(a.StartColumn), "end_column": orNil(a.EndColumn),
		})
	}
	return reply{list: list, listed: true}
}

func (s *Server) checkShape(r *repository, c *CheckRun) obj {
	return obj{
		"id": c.ID, "name": c.Name, "head_sha": c.SHA, "status": c.Status, "conclusion": orNil(c.Conclusion),
		"started_at": orNil(formatTime(c.Started)), "completed_at": orNil(formatTime(c.Completed)),
		"external_id": c.ExternalID, "details_url": orNil(c.DetailsURL),
		"url":      s.apiURL(r, "/check-runs/%d", c.ID),
		"html_url": s.pageURL(r, "/runs/%d", c.ID), "check_suite": obj{"id": c.ID + 1},
		"output": obj{"title": orNil(c.Title), "summary": orNil(c.Summary), "text": orNil(c.Text),
			"annotations_count": len(c.Annotations), "annotations_url": s.apiURL(r, "/check-runs/%d/annotations", c.ID)},
		"app": s.appShape(c.Author),
	}
}

// appShape is the app that owns a bot's login; null for people.
func (s *Server) appShape(login string) any {
	t := Token{Login: login}
	if !t.isApp() {
		return nil
	}
	slug := login[:len(login)-len("[bot]")]
	return obj{"id": s.appID(login), "slug": slug, "name": slug, "owner": s.userShape("github"), "permissions": obj{},
		"external_url": fmt.Sprintf("%s/apps/%s", s.options.ServerURL, slug), "html_url": fmt.Sprintf("%s/apps/%s", s.options.ServerURL, slug)}
}

// appID returns the app's id, which differs from its bot's.
func (s *Server) appID(login string) int64 {
	if login == ActionsBot {
		return 15368
	}
	return s.userOf(login).ID % 1_000_000
}
