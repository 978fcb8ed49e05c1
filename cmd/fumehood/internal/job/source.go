// SPDX-License-Identifier: Apache-2.0

package job

import (
	"crypto/sha256"
	"fmt"
	"path"
	"strings"

	"github.com/fumehood/fumehood/internal/github/comment"
	"github.com/fumehood/fumehood/internal/kit/text"
)

// defaultArtifact is the artifact of a job that does not choose a name.
const defaultArtifact = "fumehood"

// source says who reports: what has the same source replaces each other in the comment, and has the
// same check run. For a run that another workflow reports, that is the workflow that ran, which the
// pull request can change.
func (j *Job) source(q Request) comment.Source {
	s := comment.Source{Workflow: path.Base(j.workflowFile()), Job: j.runner.Job, Name: j.in.Name}
	if j.workflowFile() == "" {
		s.Workflow = j.runner.Workflow
	}
	if j.in.Artifact != "" && j.in.Artifact != defaultArtifact {
		s.Name = strings.TrimSpace(s.Name + " (" + j.in.Artifact + ")") // no name has parentheses
	}
	switch {
	case j.event.Run != nil:
		file, _, _ := strings.Cut(j.ran.Path, "@") // GitHub appends the ref for some
		s.Workflow, s.SelfReported = path.Base(file), true
	case j.event.Comment != nil:
		s.Requester = j.event.Comment.AuthorLogin
		if approved := q.approved(); len(approved) > 0 {
			s.Name = "approved " + shortDigest(approved)
		}
	}
	return comment.NewSource(s)
}

// approved are the digests of the plans that a person approved.
func (r Request) approved() (digests []string) {
	for _, p := range r.Plans {
		if p.Approval != nil {
			digests = append(digests, p.Approval.PlanDigest)
		}
	}
	return digests
}

// shortDigest names plans by the first digits of the digest of the only one, or of all digests.
func shortDigest(digests []string) string {
	digest := strings.TrimPrefix(digests[0], "sha256:")
	if len(digests) > 1 {
		digest = fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(digests, " "))))
	}
	return digest[:min(len(digest), 8)]
}

// checkName names the check run of a source. GitHub shows the newest of each name on a commit, so two
// sources never have the same. That of the workflow fumehood.yml and its job fumehood is short.
func checkName(s comment.Source) string {
	workflow := strings.TrimSuffix(s.Workflow, ".yml")
	parts := []string{productName}
	if workflow != productName || s.Job != productName {
		parts = append(parts, workflow, s.Job)
	}
	for _, part := range []string{s.Name, prefixed("requested by ", s.Requester)} {
		if part != "" {
			parts = append(parts, text.Inline(part, maxCheckName))
		}
	}
	if s.SelfReported {
		parts = append(parts, "self-reported")
	}
	return strings.Join(parts, " / ")
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}
