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
func (e expander) FindLinks(gs Grammars, cwd, workspace string, commands []proposal.Command) Links {
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
func (links Links) addMade(r reading, cwds []string, workspace string) {
	sources, made := r.Operands, proposal.Word{Value: ".", Static: true}
	for _, o := range r.Options {
		if o.Name == "--target-directory" {
			made = o.Value
		}
	}
	if len(sources) > 1 && made.Value == "." {
		sources, made = sources[:len(sources)-1], sources[len(sources)-1]
	}
	for _, source := range sources {
		for _, cwd := range cwds {
			if links.leads(r, source, cwd, workspace) {
				links.add(source, made, cwd, workspace)
			}
		}
	}
}

// leads reports whether what the command of r makes of source leads to the workspace: a link to it, or a copy of a link.
func (links Links) leads(r reading, source proposal.Word, cwd, workspace string) bool {
	if _, isLink := links[path.Join(cwd, source.Value)]; isLink || links[source.Value] != "" {
		return true
	}
	symbolic := r.Tool == "ln" || slices.ContainsFunc(r.Options, func(o option) bool { return o.Name == "--symbolic" })
	return symbolic && slices.Contains([]string{"workspace", "dynamic"}, ResolvePlace(source.Value, source.Static, []string{cwd}, workspace))
}

func (links Links) add(source, made proposal.Word, cwd, workspace string) {
	place := ResolvePlace(made.Value, made.Static, []string{cwd}, workspace)
	if place != "tmp" && place != "dynamic" {
		return
	}
	target := workspace
	if source.Static && cwd != "" {
		target = joinPath(cwd, source.Value)
		if to := links[target]; to != "" {
			target = to
		}
	}
	if !made.Static || cwd == "" {
		links["/tmp"] = workspace // it may be anywhere there
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
func (links Links) FollowCwds(cwds []string, workspace string) []string {
	for link := range links {
		if slices.ContainsFunc(cwds, func(cwd string) bool { _, below := relativePath(link, cwd); return below || cwd == "" }) {
			return mergeCwds(append(slices.Clone(cwds), workspace))
		}
	}
	return cwds
}
