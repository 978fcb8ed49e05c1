// SPDX-License-Identifier: Apache-2.0

package githubtest

import (
	"crypto/sha1"
	"fmt"
	"slices"
	"strings"
)

// A Repository is a repository that the server knows. All operations apply to
// Options.Repository; the others serve as forks.
type Repository struct {
	Name    string // owner/name
	ID      int64  // 0: the next free one
	Private bool
	Fork    bool
	// Git is a bare repository. With it, branches, commits and contents are what it has
	// at the time of a request, its HEAD names the default branch, and a PR without Files
	// has those that git reports since the merge base. Without it, the default branch is
	// master, and the server has what was added to it.
	Git string
}

// A Ref is one side of a pull request.
type Ref struct {
	SHA, Ref   string
	Repository string // owner/name; for a head, "-" is a deleted fork
}

// A PR is a pull request.
type PR struct {
	Number                int
	Title, Body           string
	Author                string // login
	State                 string // "open" or "closed"
	Draft, Locked, Merged bool
	Head, Base            Ref
	Files                 []File // nil: those of the repository's Git, if it has one
	Labels                []string
}

// A File is one changed file of a pull request.
type File struct {
	Path, Previous string
	Status         string // "added", "removed", "modified", "renamed"
	Patch          string // "" if GitHub leaves it out: binary, too large, or only renamed
}

// repository is a Repository with its contents.
type repository struct {
	Repository
	roles     map[string]string // by lower-case login
	prs       map[int]*PR
	issues    map[int]string // number to title, for issues that are not pull requests
	comments  []*Comment     // ascending by id
	reactions []*Reaction
	reviews   []*Review
	remarks   []*ReviewComment  // of reviews, ascending by id
	tips      map[string]string // see holdRefs
	checks    []*CheckRun
	runs      []*Run
	artifacts []*Artifact
	commits   map[string]bool
	refs      map[string]string            // "heads/main" to SHA
	contents  map[string]map[string][]byte // by ref or SHA, by path
}

// AddRepository adds a repository.
func (s *Server) AddRepository(r Repository) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addRepository(r)
}

func (s *Server) addRepository(r Repository) *repository {
	if r.ID == 0 {
		r.ID = s.nextID()
	}
	added := &repository{
		Repository: r, roles: map[string]string{}, prs: map[int]*PR{}, issues: map[int]string{},
		commits: map[string]bool{}, refs: map[string]string{}, contents: map[string]map[string][]byte{},
	}
	s.repos[strings.ToLower(r.Name)] = added
	return added
}

// AddFormerName makes name (owner/name) a former name of the repository: requests
// for it are redirected to the repository's number.
func (s *Server) AddFormerName(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.former[strings.ToLower(name)] = true
}

// findOrAddRepository finds a repository by name, and adds it as a fork if it is unknown.
func (s *Server) findOrAddRepository(name string) *repository {
	if r := s.repos[strings.ToLower(name)]; r != nil {
		return r
	}
	return s.addRepository(Repository{Name: name, Fork: true})
}

// CommitID makes a commit id from words, the same for the same words.
func CommitID(words string) string { return fmt.Sprintf("%x", sha1.Sum([]byte(words))) }

// AddPR adds a pull request, or replaces the one with its number. By default it is
// an open pull request by octocat from a branch of the same repository.
func (s *Server) AddPR(pr PR) PR {
	s.mu.Lock()
	defer s.mu.Unlock()
	pr.setDefaults(s.home.Name, len(s.home.prs)+1)
	if pr.Head.Repository != "-" {
		s.findOrAddRepository(pr.Head.Repository)
	}
	s.userOf(pr.Author)
	s.home.refs["heads/"+pr.Base.Ref] = pr.Base.SHA
	for _, sha := range []string{pr.Head.SHA, pr.Base.SHA} {
		s.home.commits[sha] = true
	}
	copied := pr.clone()
	s.home.prs[pr.Number] = &copied
	return pr
}

func (pr *PR) setDefaults(home string, number int) {
	set := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	if pr.Number == 0 {
		pr.Number = number
	}
	set(&pr.Title, "Update the README with new information.")
	set(&pr.Author, "octocat")
	set(&pr.State, "open")
	set(&pr.Base.Ref, "master")
	set(&pr.Base.SHA, CommitID("base"))
	set(&pr.Base.Repository, home)
	set(&pr.Head.Ref, "changes")
	set(&pr.Head.SHA, CommitID(fmt.Sprint("head ", pr.Number)))
	set(&pr.Head.Repository, home)
}

func (pr PR) clone() PR {
	pr.Files, pr.Labels = slices.Clone(pr.Files), slices.Clone(pr.Labels)
	return pr
}

// PullRequest returns a pull request's current state; its Number is 0 if it does not exist.
func (s *Server) PullRequest(number int) PR {
	s.mu.Lock()
	defer s.mu.Unlock()
	if pr := s.home.prs[number]; pr != nil {
		return pr.clone()
	}
	return PR{}
}

// ChangePullRequest lets f change a pull request: close it, lock it, delete its fork. It
// panics if there is no such pull request.
func (s *Server) ChangePullRequest(number int, f func(*PR)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pr := s.home.prs[number]
	if pr == nil {
		panic(fmt.Sprintf("githubtest: no pull request %d", number))
	}
	f(pr)
	s.home.commits[pr.Head.SHA], s.home.commits[pr.Base.SHA] = true, true
}

// MoveHead pushes sha to a pull request's head.
func (s *Server) MoveHead(number int, sha string) {
	s.ChangePullRequest(number, func(pr *PR) { pr.Head.SHA = sha })
}

// AddIssue adds an issue that is not a pull request.
func (s *Server) AddIssue(number int, title string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.home.issues[number] = title
}

// AddCommit adds a commit to the repository.
func (s *Server) AddCommit(sha string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.home.commits[sha] = true
}

// SetContent puts a file at a ref or commit.
func (s *Server) SetContent(ref, path string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.home.contents[ref] == nil {
		s.home.contents[ref] = map[string][]byte{}
	}
	s.home.contents[ref][path] = slices.Clone(data)
}
