// SPDX-License-Identifier: Apache-2.0

package github

// An operation is one kind of request to GitHub.
type operation struct {
	name string // completes "cannot …"
	// permissions is what a workflow must grant its token for the operation, as one
	// line of YAML.
	permissions string
	effect      effect
}

// An effect is how an operation changes GitHub.
type effect int

const (
	reads effect = iota
	sets         // idempotent
	adds         // not idempotent
)

var (
	readRepository = operation{"read the repository", "{contents: read}", reads}
	readBranch     = operation{"read the last commit of a branch", "{contents: read}", reads}
	readCommit     = operation{"read the commit of a ref", "{contents: read}", reads}
	readFile       = operation{"read a file of a repository", "{contents: read}", reads}
	readPull       = operation{"read the pull request", "{pull-requests: read}", reads}
	readDiff       = operation{"read the pull request's diff", "{pull-requests: read}", reads}
	findPulls      = operation{"find pull requests by their head", "{pull-requests: read}", reads}
	listFiles      = operation{"list the pull request's files", "{pull-requests: read}", reads}
	listComments   = operation{"list the pull request's comments", "{pull-requests: read}", reads}
	readComment    = operation{"read a comment", "{pull-requests: read}", reads}
	createComment  = operation{"create a comment", "{pull-requests: write}", adds}
	updateComment  = operation{"update a comment", "{pull-requests: write}", sets}
	deleteComment  = operation{"delete a comment", "{pull-requests: write}", sets}
	react          = operation{"react to a comment", "{pull-requests: write}",
		sets} // GitHub keeps one per kind and person
	createReview = operation{"create a review", "{pull-requests: write}", adds}

	listReviewComments  = operation{"list the comments of the pull request's reviews", "{pull-requests: read}", reads}
	updateReviewComment = operation{"update a comment of a review", "{pull-requests: write}", sets}
	deleteReviewComment = operation{"delete a comment of a review", "{pull-requests: write}", sets}
	listThreads         = operation{"list the threads of the pull request's reviews", "{pull-requests: read}", reads}
	resolveThread       = operation{"resolve a thread of a review", "{contents: write, pull-requests: write}", sets}

	readPermission = operation{"read a user's permission", "", reads}
	readRun        = operation{"read a workflow run", "{actions: read}", reads}
	countRuns      = operation{"count workflow runs", "{actions: read}", reads}
	listArtifacts  = operation{"list a run's artifacts", "{actions: read}", reads}
	download       = operation{"download an artifact", "{actions: read}", reads}
	createCheck    = operation{"create a check run", "{checks: write}", adds}
	readCheck      = operation{"read a check run", "{checks: read}", reads}
	updateCheck    = operation{"update a check run", "{checks: write}", sets}
	addAnnotations = operation{"add annotations to a check run", "{checks: write}", adds} // updates append them
	whoAmI         = operation{"read the token's account", "", reads}
)

// grantHint returns a hint on how to give the token the right.
func (o operation) grantHint() string {
	if o.permissions == "" {
		return "use the workflow's own token, which needs no permission for this"
	}
	hint := "add `permissions: " + o.permissions + "` to the job"
	if o.effect != reads {
		hint += "; in a pull_request run from a fork the token is always read-only, " +
			"so report from a workflow_run workflow"
	}
	return hint
}
