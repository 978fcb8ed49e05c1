// SPDX-License-Identifier: Apache-2.0

package githubtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// AddEvent adds the objects in a webhook payload to the server: its pull request
// with head, base, author and fork, the comment with its id, the workflow run. So a
// test that passes an event to a program need not describe them twice. The payload
// must be of the server's own repository.
func (s *Server) AddEvent(payload []byte) error {
	var e event
	if err := json.Unmarshal(payload, &e); err != nil {
		return fmt.Errorf("cannot read payload: %w", err)
	}
	if e.Repository.Name != s.options.Repository {
		return fmt.Errorf("invalid payload: of repository %q, want %q", e.Repository.Name, s.options.Repository)
	}
	if e.Pull != nil {
		s.addEventPull(e.Pull)
	}
	if e.Comment != nil && e.Issue != nil {
		s.addEventComment(e)
	}
	if r := e.Run; r != nil {
		run := Run{ID: r.ID, Number: r.Number, Attempt: r.Attempt, Event: r.Event, HeadSHA: r.HeadSHA,
			HeadBranch: r.HeadBranch,
			Status:     r.Status, Conclusion: r.Conclusion, Path: r.Path, Name: r.Name}
		if r.HeadRepository != nil {
			s.addFork(r.HeadRepository)
			run.HeadRepository = r.HeadRepository.Name
		}
		for _, pr := range r.Pulls {
			run.PullRequests = append(run.PullRequests, pr.Number)
		}
		s.AddRun(run)
	}
	return nil
}

type event struct {
	Repository eventRepository `json:"repository"`
	Pull       *eventPull      `json:"pull_request"`
	Issue      *struct {
		Number int       `json:"number"`
		User   User      `json:"user"`
		Title  string    `json:"title"`
		State  string    `json:"state"`
		Locked bool      `json:"locked"`
		Pull   *struct{} `json:"pull_request"`
	} `json:"issue"`
	Comment *struct {
		ID   int64  `json:"id"`
		Body string `json:"body"`
		User User   `json:"user"`
	} `json:"comment"`
	Run *struct {
		ID             int64            `json:"id"`
		Number         int              `json:"run_number"`
		Attempt        int              `json:"run_attempt"`
		Event          string           `json:"event"`
		HeadSHA        string           `json:"head_sha"`
		HeadBranch     string           `json:"head_branch"`
		Status         string           `json:"status"`
		Conclusion     string           `json:"conclusion"`
		Path           string           `json:"path"`
		Name           string           `json:"name"`
		HeadRepository *eventRepository `json:"head_repository"`
		Pulls          []struct {
			Number int `json:"number"`
		} `json:"pull_requests"`
	} `json:"workflow_run"`
}

type eventRepository struct {
	ID   int64  `json:"id"`
	Name string `json:"full_name"`
}

type eventPull struct {
	Number int      `json:"number"`
	Title  string   `json:"title"`
	Body   string   `json:"body"`
	State  string   `json:"state"`
	Draft  bool     `json:"draft"`
	Locked bool     `json:"locked"`
	Merged bool     `json:"merged"`
	User   User     `json:"user"`
	Head   eventRef `json:"head"`
	Base   eventRef `json:"base"`
}

type eventRef struct {
	SHA        string           `json:"sha"`
	Ref        string           `json:"ref"`
	Repository *eventRepository `json:"repo"`
}

func (s *Server) addEventPull(p *eventPull) {
	s.AddUser(p.User)
	side := func(r eventRef) Ref {
		if r.Repository == nil {
			return Ref{r.SHA, r.Ref, "-"}
		}
		s.addFork(r.Repository)
		return Ref{r.SHA, r.Ref, r.Repository.Name}
	}
	s.AddPR(PR{Number: p.Number, Title: p.Title, Body: p.Body, Author: p.User.Login, State: p.State, Draft: p.Draft,
		Locked: p.Locked, Merged: p.Merged, Head: side(p.Head), Base: side(p.Base)})
}

// addEventComment adds the comment under its own id. It adds a pull request only if
// it is missing: the payload does not contain its commits.
func (s *Server) addEventComment(e event) {
	s.AddUser(e.Comment.User)
	s.AddUser(e.Issue.User)
	switch {
	case e.Issue.Pull == nil:
		s.AddIssue(e.Issue.Number, e.Issue.Title)
	case s.PullRequest(e.Issue.Number).Number == 0:
		s.AddPR(PR{Number: e.Issue.Number, Title: e.Issue.Title, Author: e.Issue.User.Login,
			State: e.Issue.State, Locked: e.Issue.Locked})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addComment(e.Issue.Number, e.Comment.User.Login, e.Comment.Body).ID = e.Comment.ID
	slices.SortFunc(s.home.comments, func(a, b *Comment) int { return cmp.Compare(a.ID, b.ID) })
}

// addFork adds a repository under its id, unless it is known.
func (s *Server) addFork(r *eventRepository) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.repos[strings.ToLower(r.Name)] == nil {
		s.addRepository(Repository{Name: r.Name, ID: r.ID, Fork: true})
	}
}
