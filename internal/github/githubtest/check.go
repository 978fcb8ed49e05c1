// SPDX-License-Identifier: Apache-2.0

package githubtest

import (
	"slices"
	"time"
)

// A CheckRun is a check run with every annotation ever sent for it.
type CheckRun struct {
	ID                   int64
	Name, SHA            string
	Status, Conclusion   string
	Title, Summary, Text string
	DetailsURL           string
	ExternalID           string
	Annotations          []Annotation
	Started, Completed   time.Time
	Actions              []CheckAction
	Author               string // owner of the token that created it
	Updates              int
}

// A CheckAction is a button on a check run.
type CheckAction struct {
	Label       string `json:"label"`
	Description string `json:"description"`
	Identifier  string `json:"identifier"`
}

// An Annotation is a message about lines of a file.
type Annotation struct {
	Path        string `json:"path"`
	StartLine   int    `json:"start_line"`
	EndLine     int    `json:"end_line"`
	StartColumn int    `json:"start_column"`
	EndColumn   int    `json:"end_column"`
	Level       string `json:"annotation_level"`
	Title       string `json:"title"`
	Message     string `json:"message"`
	RawDetails  string `json:"raw_details"`
}

// CheckRuns returns the check runs of a commit, oldest first.
func (s *Server) CheckRuns(sha string) []CheckRun {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []CheckRun
	for _, c := range s.home.checks {
		if c.SHA == sha {
			copied := *c
			copied.Annotations = slices.Clone(c.Annotations)
			list = append(list, copied)
		}
	}
	return list
}

// checkFields are the fields that a client sends to create or update a check run.
type checkFields struct {
	Name        *string       `json:"name"`
	SHA         *string       `json:"head_sha"`
	Status      *string       `json:"status"`
	Conclusion  *string       `json:"conclusion"`
	DetailsURL  *string       `json:"details_url"`
	ExternalID  *string       `json:"external_id"`
	StartedAt   *time.Time    `json:"started_at"`
	CompletedAt *time.Time    `json:"completed_at"`
	Actions     []CheckAction `json:"actions"`
	Output      *struct {
		Title       *string      `json:"title"`
		Summary     *string      `json:"summary"`
		Text        *string      `json:"text"`
		Annotations []Annotation `json:"annotations"`
	} `json:"output"`
}

// applyFields does the work shared by create and update.
func (c *CheckRun) applyFields(f checkFields, now time.Time) {
	set := func(field *string, value *string) {
		if value != nil {
			*field = *value
		}
	}
	set(&c.Name, f.Name)
	set(&c.Status, f.Status)
	set(&c.DetailsURL, f.DetailsURL)
	set(&c.ExternalID, f.ExternalID)
	if f.StartedAt != nil {
		c.Started = f.StartedAt.UTC()
	}
	if f.Conclusion != nil { // a conclusion completes the run, whatever the status
		c.Conclusion, c.Status, c.Completed = *f.Conclusion, "completed", now
	}
	if f.CompletedAt != nil {
		c.Completed = f.CompletedAt.UTC()
	}
	if f.Actions != nil {
		c.Actions = f.Actions
	}
	if f.Output != nil {
		set(&c.Title, f.Output.Title)
		set(&c.Summary, f.Output.Summary)
		set(&c.Text, f.Output.Text)
		c.Annotations = append(c.Annotations, f.Output.Annotations...)
	}
}

func (f checkFields) findInvalid() string {
	switch {
	case f.Status != nil && *f.Status == "completed" && f.Conclusion == nil:
		return "Invalid request.\n\n\"conclusion\" wasn't supplied."
	case f.Output != nil && f.Output.Title == nil:
		return "Invalid request.\n\n\"title\" wasn't supplied."
	}
	if f.Output == nil {
		return ""
	}
	for _, a := range f.Output.Annotations {
		switch {
		case a.StartColumn != 0 && a.StartLine != a.EndLine:
			return "Invalid request.\n\nstart_column and end_column are only allowed when start_line and end_line are the same."
		case a.StartLine < 1 || a.EndLine < a.StartLine:
			return "Invalid request.\n\nend_line must not be before start_line."
		case len(a.Message) > 64<<10 || len(a.RawDetails) > 64<<10 || len(a.Title) > 255:
			return "Invalid request.\n\nAn annotation is too long."
		}
	}
	return ""
}
