// SPDX-License-Identifier: Apache-2.0

package rootfs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// A Search says where a host root finds tools.
//
// A directory of Path outside /usr is shown together with the toolchain that it belongs
// to, read-only and at the same path: the Python of pyenv, the Node.js of nvm or volta, a
// GOROOT, a toolchain of rustup, or any directory with bin and lib, include or share. Nothing
// else of a home directory becomes visible. The toolchain and every directory above it
// must belong to root or to Owners, and no other user may be able to write to them. It must
// not be in the workspace, and not hold files that look like credentials.
//
// A directory of a version manager (pyenv, rbenv, nodenv, asdf, mise, volta, rustup) is
// replaced by the versions that it selects for all of a user's projects. A file of the
// workspace or a variable selects none. A directory that holds only compiled programs,
// such as that of Deno or a GOPATH, is shown alone.
type Search struct {
	Path      string // the caller's PATH
	Workspace string // "" for none
	// Owners are users whose files may be shown, in addition to root's, this process's
	// and those of the user that called sudo.
	Owners []int
}

// A Shadow is a tool of the caller's PATH that is not shown, although the sandbox has
// another of the same name.
type Shadow struct {
	Name   string // "python3"
	Native string // its path on the host
	Inside string // the path of the other, in the sandbox
	Reason string // why Native is not shown
	Fix    string
	// Others are further names in the same directory with the same problem.
	Others []string
}

// describeWith describes s in one sentence. version is that of the tool inside; "" if it is
// not known.
func (s Shadow) describeWith(version string) string {
	also := ""
	if n := len(s.Others); n > 0 {
		also = " (also " + strings.Join(s.Others[:min(n, 4)], ", ")
		if n > 4 {
			also += fmt.Sprintf(" and %d more", n-4)
		}
		also += ")"
	}
	if version != "" {
		version = " version " + version
	}
	return fmt.Sprintf("%s%s is %s%s inside, not %s as in your PATH, because %s", s.Name, also, s.Inside, version,
		s.Native, s.Reason)
}

// known are the tools whose versions are in the report.
var known = []string{"go", "node", "python3", "ruby", "php", "java", "cargo", "rustc", "deno", "bun", "dotnet", "gcc"}

// A hiddenDir is a directory of PATH that is not shown, or not completely.
type hiddenDir struct {
	dir    string
	before []string // directories that come before it in the caller's PATH
	names  []string // of its tools to look at
	shown  []string // directories that replace it
	reason refusal  // the zero refusal: what they are links to is not shown
}

// findTools makes the tools of s visible in r, and sets its Path and Shadows.
func (r *Root) findTools(s Search) {
	if s.Workspace != "" {
		if real, err := filepath.EvalSymlinks(s.Workspace); err == nil {
			s.Workspace, _ = filepath.Abs(real)
		}
	}
	var dirs, all []string
	var not []hiddenDir
	for _, dir := range filepath.SplitList(s.Path) {
		if !filepath.IsAbs(dir) || filepath.Clean(dir) == "/" || slices.Contains(all, filepath.Clean(dir)) {
			continue
		}
		dir = filepath.Clean(dir)
		all = append(all, dir)
		if !isDir(dir, ".") {
			continue
		}
		shown, no := r.showDir(s, dir)
		dirs = append(dirs, shown...)
		if no != nil {
			not = append(not, hiddenDir{dir, all[:len(all)-1], listPrograms(dir), shown, *no})
		}
		for _, at := range shown {
			r.followLinks(s, at, 2)
			not = append(not, hiddenDir{at, all[:len(all)-1], known, shown, refusal{}})
		}
	}
	for _, dir := range filepath.SplitList(defaultPath) {
		if r.showsPath(dir) {
			dirs = append(dirs, dir)
		}
	}
	r.Path = strings.Join(removeDuplicates(dirs), ":")
	for _, h := range not {
		if shadow, found := r.findShadow(s, h); found {
			r.Shadows = append(r.Shadows, shadow)
		}
	}
}

// showDir makes a directory of PATH visible. It returns the directories that replace it,
// and why some of its tools are not in them.
func (r Root) showDir(s Search, dir string) (shown []string, no *refusal) {
	m, is := managedVersions(dir)
	for _, bin := range m.bins {
		at, refused := r.includeDir(s, bin)
		if refused != nil {
			no, m.complete = refused, false
			continue
		}
		shown = append(shown, at)
	}
	switch {
	case is && m.complete:
		return shown, nil
	case r.showsPath(dir):
		return append(shown, dir), no
	case is && no == nil:
		return shown, newRefusal(m.fix,
			"its version manager does not run in the sandbox, and selects no version for all projects")
	case is:
		return shown, no
	}
	at, no := r.includeDir(s, dir)
	if no != nil {
		return r.includeLinked(s, dir), no
	}
	return []string{at}, nil
}

// CheckVisible returns an error if the directory dir of s.Path is not visible in r: a
// *proposal.StopError with the reason.
func (r Root) CheckVisible(s Search, dir string) error {
	if r.Kind != "host" || r.showsPath(dir) {
		return nil
	}
	stop := &proposal.StopError{Code: "rootfs.tools",
		Message: fmt.Sprintf("the tools in %q cannot be shown: it is not a directory", dir),
		Hint:    "name the bin directory of a toolchain"}
	if _, no := r.includeDir(s, dir); isDir(dir, ".") && no != nil {
		stop.Message, stop.Hint = fmt.Sprintf("the tools in %q cannot be shown: %s", dir, no.reason), no.fix
	} else if isDir(dir, ".") {
		return nil // under another path, or replaced by what its version manager selects
	}
	return stop
}

// listPrograms returns the names in a directory.
func listPrograms(dir string) (names []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// findShadow returns the tools of h that PATH finds in h.dir natively, and in another file
// inside.
func (r Root) findShadow(by Search, h hiddenDir) (s Shadow, found bool) {
	var names []string
	for _, name := range h.names {
		native := filepath.Join(h.dir, name)
		if !isExecutable(native) || slices.ContainsFunc(h.before,
			func(dir string) bool { return isExecutable(filepath.Join(dir, name)) }) {
			continue
		}
		inside := r.Lookup(name)
		if inside == "" || slices.Contains(h.shown, filepath.Dir(inside)) || sameFile(native, r.hostPath(inside)) {
			continue
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return s, false
	}
	slices.SortStableFunc(names, func(a, b string) int { return toolRank(a) - toolRank(b) })
	s = Shadow{Name: names[0], Native: filepath.Join(h.dir, names[0]), Inside: r.Lookup(names[0]),
		Reason: h.reason.reason, Fix: h.reason.fix, Others: names[1:]}
	if s.Reason == "" {
		real, _ := filepath.EvalSymlinks(s.Native)
		s.Reason, s.Fix = "it is a link to "+real+", which is not shown", ownDir
		if _, no := r.includeDir(by, filepath.Dir(real)); no != nil {
			s.Reason, s.Fix = s.Reason+" ("+no.reason+")", no.fix
		}
	}
	return s, true
}

// toolRank sorts the known tools first.
func toolRank(name string) int {
	if i := slices.Index(known, name); i >= 0 {
		return i
	}
	return len(known)
}

func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

func sameFile(a, b string) bool {
	first, err := os.Stat(a)
	if err != nil {
		return false
	}
	second, err := os.Stat(b)
	return err == nil && os.SameFile(first, second)
}

// Lookup returns the path of the program name in PATH inside, or "". It follows links as
// the sandbox does: what they lead to must be visible.
func (r Root) Lookup(name string) string {
	for _, dir := range filepath.SplitList(r.Path) {
		path := filepath.Join(dir, name)
		if r.files != nil {
			if real, ok := r.inImage(path); ok && r.isProgram(real) {
				return path
			}
			continue
		}
		host := r.hostPath(path)
		real, err := filepath.EvalSymlinks(host)
		if err != nil || !isExecutable(real) {
			continue
		}
		if r.isVisible(real) {
			return path
		}
	}
	return ""
}

// isVisible reports whether the host's file path, which has no links in it, is in a bind.
func (r Root) isVisible(path string) bool {
	for _, source := range r.Binds {
		if isWithinDir(path, source) {
			return true
		}
	}
	return false
}

// hostPath returns the path on the host of a path inside.
func (r Root) hostPath(path string) string {
	for at, target := range r.Links {
		if isWithinDir(path, at) {
			path = filepath.Join("/", target) + strings.TrimPrefix(path, at)
			break
		}
	}
	best, source := "", path
	for at, from := range r.Binds {
		if isWithinDir(path, at) && len(at) > len(best) {
			best, source = at, from+strings.TrimPrefix(path, at)
		}
	}
	return source
}

func removeDuplicates(list []string) (kept []string) {
	for _, s := range list {
		if !slices.Contains(kept, s) {
			kept = append(kept, s)
		}
	}
	return kept
}
