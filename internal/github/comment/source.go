// SPDX-License-Identifier: Apache-2.0

package comment

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/fumehood/fumehood/internal/kit/pattern"
)

// A Source is what reports: each has a section of its own, which only its newer results replace.
// Its texts have at most maxSource characters of sourceText; see NewSource.
type Source struct {
	Workflow  string `json:"workflow,omitempty"`  // file of the workflow that ran
	Job       string `json:"job"`                 // id of the job that reports
	Name      string `json:"name,omitempty"`      // what tells apart several of a job
	Requester string `json:"requester,omitempty"` // login of the person who requested the run
	// SelfReported says that the pull request can change the workflow that ran: its sections can
	// neither replace nor displace those of other sources.
	SelfReported bool `json:"self_reported,omitempty"`
	Review       bool `json:"review,omitempty"` // a review of findings, not the results of a plan
}

const maxSource = 60 // characters

var (
	sourceText   = pattern.New(`^[A-Za-z0-9._/() \[\]-]*$`)
	notInSources = pattern.New(`[^A-Za-z0-9._/() \[\]-]`)
)

// NewSource returns s with texts that a State can hold. A text that has other characters or is too
// long gets a digest of the original, so that two sources never become one.
func NewSource(s Source) Source {
	for _, text := range []*string{&s.Workflow, &s.Job, &s.Name, &s.Requester} {
		*text = sourceName(*text)
	}
	return s
}

func sourceName(s string) string {
	if len(s) <= maxSource && sourceText.MatchString(s) {
		return s
	}
	kept := notInSources.ReplaceAllString(s, "_")
	return fmt.Sprintf("%s(%.4x)", kept[:min(len(kept), maxSource-10)], sha256.Sum256([]byte(s)))
}

func (s Source) check() error {
	for _, text := range []string{s.Workflow, s.Job, s.Name, s.Requester} {
		if len(text) > maxSource || !sourceText.MatchString(text) {
			return fmt.Errorf("invalid source %q: want at most %d letters, digits and punctuation", text, maxSource)
		}
	}
	if s.Job == "" {
		return fmt.Errorf("invalid source: want a job")
	}
	return nil
}

// Label names s in one line of plain text: "ci.yml / unit".
func (s Source) Label() string {
	var parts []string
	for _, part := range []string{s.Workflow, s.Job, s.Name} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, " / ")
}

// heading names s in Markdown, as the subject of a section's heading.
func (s Source) heading() string {
	name := "`" + s.Label() + "`"
	if s.Requester != "" {
		name = "run requested by `" + s.Requester + "`"
		if s.Name != "" {
			name += " (`" + s.Name + "`)"
		}
	}
	if s.Review {
		return "review, " + name
	}
	return name
}

func (s Source) compareSource(other Source) int {
	return cmp.Or(cmp.Compare(s.pool(), other.pool()), compareBool(s.Review, other.Review),
		cmp.Compare(s.Workflow, other.Workflow),
		cmp.Compare(s.Job, other.Job), cmp.Compare(s.Name, other.Name), cmp.Compare(s.Requester, other.Requester),
		compareBool(s.SelfReported, other.SelfReported))
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// A sourcePool is a kind of sources that share a bounded number of sections. A pull request's own workflow
// can report as many sources as it likes, and persons can request any number of runs: neither
// displaces the workflows of the repository.
type sourcePool int

const (
	poolWorkflow sourcePool = iota
	poolRequested
	poolSelfReported
)

// maxSections are the sections of each pool.
var maxSections = [...]int{poolWorkflow: 10, poolRequested: 6, poolSelfReported: 4}

func (s Source) pool() sourcePool {
	switch {
	case s.SelfReported:
		return poolSelfReported
	case s.Requester != "":
		return poolRequested
	}
	return poolWorkflow
}
