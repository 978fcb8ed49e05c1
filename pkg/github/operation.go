// SPDX-License-Identifier: Apache-2.0

package github

// An operation is one thing asked of GitHub.
type operation struct {
	name string // after "cannot"
	// permissions is what a workflow must grant its token for it: one line of YAML.
	permissions string
	effect      effect
}

// An effect is what an operation does to GitHub.
type effect int

const (
	reads effect = iota
	sets         // doing it twice does no more than doing it once
	adds         // doing it twice does it twice
)

var (
	readPull       = operation{"read the pull request", "{pull-requests: read}", reads}
	findPulls      = operation{"find pull requests by their head", "{pull-requests: read}", reads}
	listFiles      = operation{"list the pull request's files", "{pull-requests: read}", reads}
	listComments   = operation{"list the pull request's comments", "{pull-requests: read}", reads}
	readComment    = operation{"read a comment", "{pull-requests: read}", reads}
	createComment  = operation{"create a comment", "{pull-requests: write}", adds}
	updateComment  = operation{"update a comment", "{pull-requests: write}", sets}
	deleteComment  = operation{"delete a comment", "{pull-requests: write}", sets}
	react          = operation{"react to a comment", "{pull-requests: write}", sets} // GitHub keeps one of a kind and person
	readPermission = operation{"read somebody's permission", "", reads}
	readRun        = operation{"read a workflow run", "{actions: read}", reads}
	countRuns      = operation{"count workflow runs", "{actions: read}", reads}
	listArtifacts  = operation{"list a run's artifacts", "{actions: read}", reads}
	download       = operation{"download an artifact", "{actions: read}", reads}
	createCheck    = operation{"create a check run", "{checks: write}", adds}
	updateCheck    = operation{"update a check run", "{checks: write}", sets}
	addAnnotations = operation{"add annotations to a check run", "{checks: write}", adds} // updates append them
	whoAmI         = operation{"ask who the token writes as", "", reads}
)

// grant says how a token gets the right.
func (o operation) grant() string {
	if o.permissions == "" {
		return "a workflow's own token may do this without any permission; this token may not"
	}
	hint := "the job needs `permissions: " + o.permissions + "` beside what it has"
	if o.effect != reads {
		hint += "; in a fork's pull_request run the token only reads, whatever that says, " +
			"so report from a workflow_run workflow"
	}
	return hint
}
