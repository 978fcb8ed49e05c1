// SPDX-License-Identifier: Apache-2.0

package githubtest

import (
	"fmt"
	"strings"
)

// PushCommit makes sha, which must be in the repository's Git, the last commit of a branch, whether
// or not it follows the commit before. As on GitHub, it becomes the head of every open pull
// request from the branch, whose base commit becomes the last one of its base branch. A push to
// a base branch alone changes no pull request.
func (s *Server) PushCommit(repository, branch, sha string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.findOrAddRepository(repository)
	r.mustGit("update-ref", "refs/heads/"+branch, sha)
	for _, pr := range s.openPullsFrom(repository, branch) {
		pr.Head.SHA = sha
		s.fetchHead(pr)
		if tip := s.home.commitOfRef("heads/" + pr.Base.Ref); tip != "" {
			pr.Base.SHA = tip
		}
	}
}

// OpenPR opens a pull request from a branch of a repository with Git to one of the server's own.
func (s *Server) OpenPR(pr PR) PR {
	s.mu.Lock()
	defer s.mu.Unlock()
	pr.Head.SHA, pr.Base.SHA = s.findOrAddRepository(pr.Head.Repository).commitOfRef("heads/"+pr.Head.Ref),
		s.home.commitOfRef("heads/"+pr.Base.Ref)
	if pr.Head.SHA == "" || pr.Base.SHA == "" {
		panic(fmt.Sprintf("githubtest: no branch %s or %s", pr.Head.Ref, pr.Base.Ref))
	}
	pr.setDefaults(s.home.Name, len(s.home.prs)+1)
	s.userOf(pr.Author)
	added := pr.clone()
	s.home.prs[pr.Number] = &added
	s.fetchHead(&added)
	return pr
}

// DeleteBranch deletes a branch, which closes the open pull requests from it and to it. Their
// commits stay.
func (s *Server) DeleteBranch(repository, branch string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.findOrAddRepository(repository).mustGit("update-ref", "-d", "refs/heads/"+branch)
	closing := s.openPullsFrom(repository, branch)
	for _, pr := range s.home.prs {
		if strings.EqualFold(repository, s.home.Name) && pr.Base.Ref == branch {
			closing = append(closing, pr)
		}
	}
	for _, pr := range closing {
		pr.State = "closed"
	}
}

// DeleteFork deletes a repository other than the server's own. Pull requests from it stay as
// they are, without a head repository.
func (s *Server) DeleteFork(repository string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, pr := range s.home.prs {
		if strings.EqualFold(pr.Head.Repository, repository) {
			pr.Head.Repository = "-"
		}
	}
	delete(s.repos, strings.ToLower(repository))
}

// openPullsFrom are the open pull requests from a branch.
func (s *Server) openPullsFrom(repository, branch string) (list []*PR) {
	for _, pr := range s.home.prs {
		if pr.State == "open" && pr.Head.Ref == branch && strings.EqualFold(pr.Head.Repository, repository) {
			list = append(list, pr)
		}
	}
	return list
}

// fetchHead fetches a pull request's head, so that it stays whatever happens to its branch.
func (s *Server) fetchHead(pr *PR) {
	s.home.mustGit("fetch", "-q", "--no-tags", s.findOrAddRepository(pr.Head.Repository).Git,
		fmt.Sprintf("+refs/heads/%s:refs/pull/%d/head", pr.Head.Ref, pr.Number))
}

func (r *repository) mustGit(args ...string) {
	if _, ok := r.runGit(args...); !ok {
		panic(fmt.Sprintf("githubtest: %s: git %q failed", r.Name, args))
	}
}
