// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/pkg/proposal"
)

// Links are the links below /tmp that a text makes to what is in the workspace, with their targets. A file below such
// a link is one of the workspace, by another name.
type Links map[string]string

// FindLinks returns the links that commands make, which are those of a text that starts in cwd. e knows its expansions.
func (e expander) FindLinks(gs Grammars, cwd string, workspace Workspace, commands []proposal.Command) Links {
	links := Links{}
	if !slices.ContainsFunc(commands, mayLink) {
		return links
	}
	for range 2 { // a loop may make a link of one that is made after it
		dirs := TrackCwds(cwd, workspace, commands)
		for _, c := range commands {
			in := dirs.EnterCommand(c)
			if mayLink(c) {
				c = e.ResolveCommand(c, in)
				links.addMade(gs.Read(ProgramOf(c, workspace), c.Args[1:]), in, workspace)
			}
			dirs.RecordCommand(c)
		}
	}
	return links
}

func mayLink(c proposal.Command) bool {
	return slices.Contains([]string{"ln", "cp", "mv"}, path.Base(c.Program))
}

// addMade adds the links that the command of r makes in any of cwds.
func (links Links) addMade(r reading, cwds []string, workspace Workspace) {
	sources, made := r.copied()
	symbolic := r.Tool == "ln" || r.hasOption("--symbolic")
	for _, source := range sources {
		for _, cwd := range cwds {
			for _, dir := range r.SourceCwds(0, []string{cwd}) {
				target, isLink := links[joinPath(dir, source.Value)]
				place := ResolvePlace(source.Value, source.Static, []string{dir}, workspace)
				if !isLink && symbolic && (place == "workspace" || place == "dynamic") {
					target, isLink = workspace.Path, true
					if source.Static && dir != "" {
						target = joinPath(dir, source.Value)
					}
				}
				if isLink {
					links.add(source, made, target, cwd, workspace)
				}
			}
		}
	}
}

// add adds the link made in cwd, of source, to target.
func (links Links) add(source, made proposal.Word, target, cwd string, workspace Workspace) {
	place := ResolvePlace(made.Value, made.Static, []string{cwd}, workspace)
	if place != "tmp" && place != "dynamic" {
		return
	}
	if !made.Static || cwd == "" {
		links["/tmp"] = workspace.Path // it may be anywhere there
		return
	}
	name := joinPath(cwd, made.Value)
	if isDirectory := name == "/tmp" || made.Value == "." || strings.HasSuffix(made.Value, "/"); !isDirectory {
		links[name] = target
	}
	if source.Static {
		links[path.Join(name, path.Base(source.Value))] = target
	}
}

func joinPath(cwd, name string) string {
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join(cwd, name)
}

// SourceCwds returns the directories to which operand i of r is relative, for a command in cwds. What a symbolic link
// leads to is relative to the link's directory.
func (r *reading) SourceCwds(i int, cwds []string) []string {
	sources, made := r.copied()
	if r.Tool != "ln" || !r.hasOption("--symbolic") || r.hasOption("--relative") ||
		r.hasOption("--recursive") || i >= len(sources) || !made.Static {
		return cwds
	}
	var dirs []string
	for _, cwd := range cwds {
		if cwd == "" {
			return cwds
		}
		link := joinPath(cwd, made.Value)
		if dirs = append(dirs, link); made.Value != "." && !strings.HasSuffix(made.Value, "/") {
			dirs = append(dirs, path.Dir(link))
		}
	}
	return dirs
}

func (r *reading) hasOption(name string) bool {
	return slices.ContainsFunc(r.Options, func(o option) bool { return o.Name == name })
}

// FollowCommand returns c with the paths of its words and redirections that begin with a link replaced.
func (links Links) FollowCommand(c proposal.Command) proposal.Command {
	if len(links) == 0 {
		return c
	}
	c.Args, c.Redirects = slices.Clone(c.Args), slices.Clone(c.Redirects)
	makes := path.Base(c.Program) == "ln"
	for i, w := range c.Args {
		c.Args[i] = links.followWord(w, makes)
	}
	for i, r := range c.Redirects {
		c.Redirects[i].Target = links.followWord(r.Target, false)
	}
	return c
}

// followWord replaces links in w; one that is the whole word, too, unless the command makes it.
func (links Links) followWord(w proposal.Word, makes bool) proposal.Word {
	if path.IsAbs(w.Value) && w.Static {
		end := ""
		if strings.HasSuffix(w.Value, "/") {
			end = "/"
		}
		w.Value = path.Clean(w.Value) + end
	}
	names := slices.Sorted(maps.Keys(links))
	for _, link := range slices.Backward(names) { // the longest first
		if w.Value == link && !makes {
			w.Value = links[link]
		}
		w.Value = strings.ReplaceAll(w.Value, link+"/", links[link]+"/")
	}
	return w
}

// FollowCwds returns cwds, and the workspace too if a relative path may begin with a link.
func (links Links) FollowCwds(cwds []string, workspace Workspace) []string {
	for link := range links {
		mayHold := func(cwd string) bool {
			_, below := relativePath(link, cwd)
			return below || cwd == ""
		}
		if slices.ContainsFunc(cwds, mayHold) {
			return mergeCwds(append(slices.Clone(cwds), workspace.Path))
		}
	}
	return cwds
}
