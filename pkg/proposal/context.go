// SPDX-License-Identifier: Apache-2.0

package proposal

// The most that a Context may have; package policy refuses more.
const (
	MaxContextPaths  = 3000
	MaxContextLabels = 1000
	MaxContextText   = 4096 // bytes of one text
)

// A Context says what a run is about: input.context of every rule, the same at each decision
// point of a run. Its maker vouches for it: nothing in it is read from a plan or from the
// workspace. Branches, labels and paths are still what other people wrote: compare them, and
// allow nothing because of what one contains.
//
// A field that is not known is empty, false or 0. A rule that allows something must ask for what
// it needs to be there (repository == "acme/shop"), not for what must be missing; a rule that
// denies because of a field also has to deny if Known is false.
type Context struct {
	Known         bool           `json:"known"`          // false without knowledge of the pull request or event, as on your own machine: then only image and started are set
	Repository    string         `json:"repository"`     // owner/name of the repository that the code is to be merged to
	Visibility    string         `json:"visibility"`     // of the repository: public, private or internal
	DefaultBranch string         `json:"default_branch"` // of the repository
	BaseRef       string         `json:"base_ref"`       // branch that the code is to be merged to
	HeadRef       string         `json:"head_ref"`       // branch that the code is on; anyone who opens a pull request chooses it
	Event         string         `json:"event"`          // GitHub's name of the event: pull_request, issue_comment, push and others
	PR            int            `json:"pr"`             // number of the pull request, 0 without one
	Draft         bool           `json:"draft"`          // the pull request is a draft
	Fork          bool           `json:"fork"`           // the code comes from another repository, or from one that is gone
	Labels        []string       `json:"labels"`         // of the pull request, sorted
	Author        string         `json:"author"`         // login of the author of the pull request
	Association   string         `json:"association"`    // GitHub's word for what the author is to the repository: OWNER, MEMBER, COLLABORATOR, CONTRIBUTOR, FIRST_TIME_CONTRIBUTOR, NONE and others; private members of an organization can be CONTRIBUTOR
	Requester     string         `json:"requester"`      // login of the account that started the run: of a comment its author
	Changed       ContextChanged `json:"changed"`        // the files that the pull request changes
	Image         ContextImage   `json:"image"`          // the image whose files are the sandbox's root
	Credentials   []string       `json:"credentials"`    // names of variables with a placeholder, which the gateway replaces in requests to one host, sorted
	Started       string         `json:"started"`        // start of the run, RFC 3339 in UTC: 2027-03-01T09:30:00Z
}

// A ContextChanged lists what a pull request changes.
type ContextChanged struct {
	Paths    []string `json:"paths"`    // sorted; of a renamed file both paths
	Complete bool     `json:"complete"` // paths has all of them: without it, deny what depends on a path that is missing
}

// A ContextImage is the image of a root.
type ContextImage struct {
	Name    string   `json:"name"`    // repository in its registry, such as index.docker.io/library/golang; "" for another root
	Digest  string   `json:"digest"`  // that names it: of its manifest or index, sha256: and hexadecimal digits
	Signers []string `json:"signers"` // whose signatures of it were verified, sorted; fumehood verifies none itself
}
