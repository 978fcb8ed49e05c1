// SPDX-License-Identifier: Apache-2.0

package githubtest

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// git runs git on the repository's Git. ok is false if it fails, or if there is none.
func (r *repository) git(args ...string) (out string, ok bool) {
	if r.Git == "" {
		return "", false
	}
	c := exec.Command("git", append([]string{"--git-dir=" + r.Git}, args...)...)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1"}
	data, err := c.Output()
	return string(data), err == nil
}

// answers are what git answered to questions about commits by their ids, in any repository.
var answers sync.Map

// fixed is git for questions about commits by their ids, whose answers do not change.
func (r *repository) fixed(args ...string) (out string, ok bool) {
	key := strings.Join(args, "\x00")
	if out, ok := answers.Load(key); ok {
		return out.(string), true
	}
	if out, ok = r.git(args...); ok {
		answers.Store(key, out)
	}
	return out, ok
}

// defaultBranch is the name of the default branch.
func (r *repository) defaultBranch() string {
	data, _ := os.ReadFile(filepath.Join(r.Git, "HEAD"))
	name, _ := strings.CutPrefix(string(data), "ref: refs/heads/")
	return cmp.Or(strings.TrimSpace(name), "master")
}

// ref is the commit of a ref such as "heads/main", or "".
func (r *repository) ref(name string) string {
	if r.Git == "" {
		return r.refs[name]
	}
	if sha, ok := r.tips[name]; ok {
		return sha
	}
	if sha, ok := r.branchFile(name); ok {
		return sha
	}
	sha, _ := r.git("rev-parse", "--verify", "--quiet", "--end-of-options", "refs/"+name+"^{commit}")
	sha = strings.TrimSpace(sha)
	if r.tips != nil {
		r.tips[name] = sha
	}
	return sha
}

var shaLine = regexp.MustCompile(`^[0-9a-f]{40}\n$`)

// branchFile reads a branch as git keeps it until it packs refs.
func (r *repository) branchFile(name string) (sha string, ok bool) {
	if !strings.HasPrefix(name, "heads/") || !filepath.IsLocal(name) {
		return "", false
	}
	data, err := os.ReadFile(filepath.Join(r.Git, "refs", name))
	return strings.TrimSpace(string(data)), err == nil && shaLine.Match(data)
}

// steady keeps the answers about refs until the returned function is called. An answer to a
// client moves none, and may ask a thousand times for the same one.
func (s *Server) steady() (end func()) {
	for _, r := range s.repos {
		r.tips = map[string]string{}
	}
	return func() {
		for _, r := range s.repos {
			r.tips = nil
		}
	}
}

// resolve returns the commit of a branch, and a commit unchanged.
func (r *repository) resolve(ref string) string {
	ref = strings.TrimPrefix(ref, "refs/")
	return cmp.Or(r.ref(ref), r.ref("heads/"+ref), ref)
}

func (r *repository) hasCommit(sha string) bool {
	_, ok := r.git("cat-file", "-e", sha+"^{commit}")
	return ok || r.commits[sha]
}

// files are the files at a branch or a commit.
func (r *repository) files(ref string) map[string][]byte {
	if files := r.contents[ref]; files != nil {
		return files
	}
	sha := r.resolve(ref)
	names, ok := r.git("ls-tree", "-r", "-z", "--name-only", sha)
	if !ok {
		return r.contents[sha]
	}
	files := map[string][]byte{}
	for name := range strings.SplitSeq(strings.TrimSuffix(names, "\x00"), "\x00") {
		data, _ := r.git("cat-file", "blob", sha+":"+name)
		files[name] = []byte(data)
	}
	return files
}

// diff is what a pull request changes, as text.
func (r *repository) diff(pr *PR) string {
	if pr.Files == nil && r.Git != "" {
		text, _ := r.git("diff", r.sinceMerge(pr))
		return text
	}
	var b strings.Builder
	for _, f := range pr.Files {
		b.WriteString("diff --git a/" + cmp.Or(f.Previous, f.Path) + " b/" + f.Path + "\n" + f.Patch)
	}
	return b.String()
}

// sinceMerge is the range of commits from a pull request's merge base with its base branch,
// wherever that is now, to its head.
func (r *repository) sinceMerge(pr *PR) string {
	return cmp.Or(r.ref("heads/"+pr.Base.Ref), pr.Base.SHA) + "..." + pr.Head.SHA
}

// changed are the files that a pull request changes since its merge base.
func (r *repository) changed(pr *PR) []File {
	if pr.Files != nil || r.Git == "" {
		return pr.Files
	}
	base, _ := r.fixed("merge-base", cmp.Or(r.ref("heads/"+pr.Base.Ref), pr.Base.SHA), pr.Head.SHA)
	return r.diffFiles(strings.TrimSpace(base), pr.Head.SHA)
}
