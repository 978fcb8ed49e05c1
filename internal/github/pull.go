// SPDX-License-Identifier: Apache-2.0

package github

import (
	"context"
	"fmt"
	"net/url"

	gh "github.com/google/go-github/v62/github"
)

// An Author is the author of a comment, pull request or run. Login is untrusted
// text; ID is the identity.
type Author struct {
	Login string
	ID    int64
	Type  string // GitHub's: "User", "Bot", "Organization", "Mannequin"
}

// A Ref is one side of a pull request.
type Ref struct {
	SHA          string // full, lower-case hex
	Ref          string // branch name; untrusted text
	Repository   string // owner/name; "" if the fork was deleted
	RepositoryID int64  // 0 if the fork was deleted
}

// A PullRequest is the state of a pull request at the time of the request.
type PullRequest struct {
	Number int
	State  string // "open" or "closed"
	Merged bool   // never set by PullRequestsByHead: GitHub's list does not have it
	Draft  bool
	Locked bool
	Title  string // untrusted text
	Labels []string
	// Association is GitHub's word for what Author is to the repository: "OWNER", "MEMBER" …
	Association string
	Author      Author // zero if the account was deleted
	Head        Ref
	Base        Ref
	HTMLURL     string
}

// A File is one path that a pull request changes. Paths are untrusted text.
type File struct {
	Path     string
	Previous string // for a renamed file
	Patch    string // the hunks of its difference; "" if GitHub does not show it. Untrusted text
	Status   string // GitHub's: "added", "removed", "modified", "renamed", "copied", "changed", "unchanged"
}

// maxFiles is the number of files that GitHub lists for a pull request.
const maxFiles = 3000

// PullRequest reads one pull request.
func (c *Client) PullRequest(ctx context.Context, number int) (PullRequest, error) {
	return requestWithRetry(ctx, c, readPull, func(ctx context.Context) (PullRequest, error) {
		pull, _, err := c.gh.PullRequests.Get(ctx, c.owner, c.name, number)
		if err != nil {
			return PullRequest{}, err
		}
		if pull.GetNumber() != number {
			return PullRequest{}, malformedError("requested pull request %d, got %d", number, pull.GetNumber())
		}
		return pullOf(pull)
	})
}

// PullRequestsByHead lists the pull requests, open and closed, whose head is
// owner's branch, newest first. Several repositories of one owner can have that
// branch: compare Head.RepositoryID.
func (c *Client) PullRequestsByHead(ctx context.Context, owner, branch string) ([]PullRequest, error) {
	if owner == "" || branch == "" {
		e := &Error{Kind: Invalid, Message: "a head requires an owner and a branch", unsent: true}
		return nil, e.toStopError(findPulls)
	}
	query := url.Values{"state": {"all"}, "head": {owner + ":" + branch}}
	var pulls []PullRequest
	err := readPages(ctx, c, findPulls, c.repositoryPath("pulls"), query, func(page []*gh.PullRequest) error {
		for _, item := range page {
			pull, err := pullOf(item)
			if err != nil {
				return err
			}
			if pull.Head.Ref == branch { // GitHub ignores a filter that it cannot parse
				pulls = append(pulls, pull)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return dropRepeated(pulls, func(p PullRequest) int { return p.Number }), nil
}

// Files lists the files that the pull request changes, for its current head:
// compare the head before and after. GitHub lists at most 3,000; complete is false
// if there may be more.
func (c *Client) Files(ctx context.Context, number int) (files []File, complete bool, err error) {
	path := c.repositoryPath(fmt.Sprintf("pulls/%d/files", number))
	err = readPages(ctx, c, listFiles, path, nil, func(page []*gh.CommitFile) error {
		for _, f := range page {
			if f.GetFilename() == "" {
				return malformedError("a file without a name")
			}
			files = append(files, File{Path: f.GetFilename(), Previous: f.GetPreviousFilename(), Status: f.GetStatus(),
				Patch: f.GetPatch()})
		}
		return nil
	})
	return files, err == nil && len(files) < maxFiles, err
}

func pullOf(p *gh.PullRequest) (PullRequest, error) {
	pull := PullRequest{
		Number: p.GetNumber(), State: p.GetState(), Merged: p.GetMerged(), Draft: p.GetDraft(), Locked: p.GetLocked(),
		Title: p.GetTitle(), Author: authorOf(p.GetUser()), HTMLURL: p.GetHTMLURL(),
		Head: refOf(p.GetHead()), Base: refOf(p.GetBase()), Association: p.GetAuthorAssociation(),
	}
	switch {
	case pull.Number <= 0:
		return PullRequest{}, malformedError("a pull request without a number")
	case pull.State != "open" && pull.State != "closed":
		return PullRequest{}, malformedError("a pull request that is %q", pull.State)
	case !fullSHA(pull.Head.SHA) || !fullSHA(pull.Base.SHA):
		return PullRequest{}, malformedError("a pull request without full commit ids")
	case pull.Base.Repository == "" || pull.Base.RepositoryID == 0:
		return PullRequest{}, malformedError("a pull request without a repository")
	}
	for _, l := range p.Labels {
		pull.Labels = append(pull.Labels, l.GetName())
	}
	return pull, nil
}

func refOf(b *gh.PullRequestBranch) Ref {
	ref := Ref{SHA: b.GetSHA(), Ref: b.GetRef()}
	if repo := b.GetRepo(); repo != nil {
		ref.Repository, ref.RepositoryID = repo.GetFullName(), repo.GetID()
	}
	return ref
}

func authorOf(u *gh.User) Author {
	return Author{Login: u.GetLogin(), ID: u.GetID(), Type: u.GetType()}
}

// fullSHA reports whether s is a full object id, SHA-1 or SHA-256.
func fullSHA(s string) bool {
	if len(s) != 40 && len(s) != 64 {
		return false
	}
	for _, r := range s {
		if (r < '0' || r > '9') && (r < 'a' || r > 'f') {
			return false
		}
	}
	return true
}
