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

// runGit runs git on the repository's Git. ok is false if it fails, or if there is none.
func (r *repository) runGit(args ...string) (out string, ok bool) {
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

// runGitCached is runGit for questions about commits by their ids, whose answers do not change.
func (r *repository) runGitCached(args ...string) (out string, ok bool) {
	key := strings.Join(args, "\x00")
	if out, ok := answers.Load(key); ok {
		return out.(string), true
	}
	if out, ok = r.runGit(args...); ok {
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

// commitOfRef is the commit of a ref such as "heads/main", or "".
func (r *repository) commitOfRef(name string) string {
	if r.Git == "" {
		return r.refs[name]
	}
	if sha, ok := r.tips[name]; ok {
		return sha
	}
	if sha, ok := r.branchFile(name); ok {
		return sha
	}
	sha, _ := r.runGit("rev-parse", "--verify", "--quiet", "--end-of-options", "refs/"+name+"^{commit}")
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

// holdRefs keeps the answers about refs until the returned function is called. An answer to a
// client moves none, and may ask a thousand times for the same one.
func (s *Server) holdRefs() (end func()) {
	for _, r := range s.repos {
		r.tips = map[string]string{}
	}
	return func() {
		for _, r := range s.repos {
			r.tips = nil
		}
	}
}

// resolveCommit returns the commit of a branch, and a commit unchanged.
func (r *repository) resolveCommit(ref string) string {
	ref = strings.TrimPrefix(ref, "refs/")
	return cmp.Or(r.commitOfRef(ref), r.commitOfRef("heads/"+ref), ref)
}

func (r *repository) hasCommit(sha string) bool {
	_, ok := r.runGit("cat-file", "-e", sha+"^{commit}")
	return ok || r.commits[sha]
}

// listFiles are the files at a branch or a commit.
func (r *repository) listFiles(ref string) map[string][]byte {
	if files := r.contents[ref]; files != nil {
		return files
	}
	sha := r.resolveCommit(ref)
	names, ok := r.runGit("ls-tree", "-r", "-z", "--name-only", sha)
	if !ok {
		return r.contents[sha]
	}
	files := map[string][]byte{}
	for name := range strings.SplitSeq(strings.TrimSuffix(names, "\x00"), "\x00") {
		data, _ := r.runGit("cat-file", "blob", sha+":"+name)
		files[name] = []byte(data)
	}
	return files
}

// pullRequestDiff is what a pull request changes, as text.
func (r *repository) pullRequestDiff(pr *PR) string {
	if pr.Files == nil && r.Git != "" {
		text, _ := r.runGit("diff", r.sinceMerge(pr))
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
	return cmp.Or(r.commitOfRef("heads/"+pr.Base.Ref), pr.Base.SHA) + "..." + pr.Head.SHA
}

// changedFiles are the files that a pull request changes since its merge base.
func (r *repository) changedFiles(pr *PR) []File {
	if pr.Files != nil || r.Git == "" {
		return pr.Files
	}
	base, _ := r.runGitCached("merge-base", cmp.Or(r.commitOfRef("heads/"+pr.Base.Ref), pr.Base.SHA), pr.Head.SHA)
	return r.diffFiles(strings.TrimSpace(base), pr.Head.SHA)
}
