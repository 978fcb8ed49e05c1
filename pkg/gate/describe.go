// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/fumehood/fumehood/internal/egress/upstream"
	"github.com/fumehood/fumehood/internal/policy"
	policysource "github.com/fumehood/fumehood/internal/policy/source"
	"github.com/fumehood/fumehood/internal/watch/diagnose"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// describeRun returns what the report says about a run of p.
func (g *Gate) describeRun(id string, p proposal.Plan) (proposal.Run, error) {
	origins, err := g.policyOrigins()
	if err != nil {
		return proposal.Run{}, err
	}
	run := g.o.runSubject(p)
	workspace, _ := filepath.Abs(g.o.Workspace)
	run.ID, run.Workspace = id, filepath.Base(workspace)
	run.Policy, run.Policies, run.Rootfs, run.Runsc = g.engine.Digest(), origins, g.root.String(), g.runsc.Version
	run.Enforced = []string{
		"gVisor (systrap) around every command", "policy on every program that a command starts", g.o.networkWords(p), "no credentials, empty environment",
		"unprivileged user without capabilities", "workspace on the host unchanged",
		"limits on time, processor, memory, processes, disk, open files and output",
	}
	if len(g.o.Hide) > 0 {
		run.Enforced = append(run.Enforced, "paths of the workspace that commands do not see: "+strings.Join(g.o.Hide, ", "))
	}
	if g.image != nil {
		run.Enforced = append(run.Enforced,
			"programs of the image alone; its user, entry point and variables except PATH have no effect")
	}
	run.Unenforced = append(append(g.o.unenforcedParts(), g.engine.ObservedRules()...), g.engine.Overrides()...)
	for _, text := range g.root.Warnings(g.tools) {
		run.Unenforced = append(run.Unenforced, "the versions of your tools: "+text)
	}
	for _, u := range g.unmet {
		if !u.Base { // then it excuses no failure
			run.Unenforced = append(run.Unenforced,
				"the versions of your tools: "+diagnose.DescribeUnmet(u)+
					". Only the pull request is known to ask for that version, so failures with it count")
		}
	}
	about := g.engine.Context()
	run.Context = &about
	run.Toolchains, run.Unmet, run.GoModules = g.tools, g.unmet, g.modules
	return run, nil
}

// runSubject returns what is known about a run of p before it begins.
func (o Options) runSubject(p proposal.Plan) proposal.Run {
	s := o.Subject
	return proposal.Run{
		Proposer: p.Proposer, PlanDigest: p.Digest, Mode: modeName(o.ObserveUnsafe), Version: o.versionOrModule(),
		NetworkObserved: o.ObserveNetworkUnsafe,
		Repository:      s.Repository, Fork: s.Fork, PR: s.PR, HeadSHA: s.HeadSHA, BaseSHA: s.BaseSHA, Left: s.Left,
		Approval: s.Approval, Cwd: s.Cwd,
		Enforced: []string{}, Unenforced: []string{},
	}
}

// policyOrigins returns the origin of each layer, the shipped policy first.
func (g *Gate) policyOrigins() ([]proposal.PolicyOrigin, error) {
	var all []proposal.PolicyOrigin
	if !slices.ContainsFunc(g.policies, func(l policy.Layer) bool { return l.Role == policy.Grants }) {
		shipped, err := policysource.ShippedOrigin()
		if err != nil {
			return nil, err
		}
		all = append(all, shipped)
	}
	for i, l := range g.policies {
		origin := g.o.Policies[i].Origin
		origin.Role = l.Role.String()
		if origin.Kind == "" {
			origin.Kind, origin.Spec, origin.Digest = policysource.KindFolder, l.Name, l.Digest()
		}
		all = append(all, origin)
	}
	return all, nil
}

// networkWords describe what applies whatever policy decides about p.
func (o Options) networkWords(p proposal.Plan) string {
	if o.ObserveNetworkUnsafe {
		return "no private address, no address of this host, only TCP and lookups"
	}
	for _, q := range p.Proposals {
		if len(q.Network) > 0 {
			return "no network except for hosts that policy grants, through a gateway that asks policy about every name and connection" + proxyWords()
		}
	}
	return "no network"
}

// proxyWords say which upstream proxies the gateway uses, if any.
func proxyWords() string {
	proxies, _ := upstream.FromEnvironment() // with an invalid one, there is no network
	words := ""
	for _, proxy := range proxies.Proxies() {
		words += "; it connects through the upstream proxy " + proxy.String() + ", which resolves names itself"
	}
	return words
}

func modeName(observe bool) string {
	if observe {
		return "observe"
	}
	return "enforce"
}

// unenforcedParts returns what the Unsafe options weaken.
func (o Options) unenforcedParts() []string {
	list := []string{}
	if o.ObserveUnsafe {
		list = append(list, "the policy on trial is only observed: what it would refuse is listed below")
	}
	if o.ObserveNetworkUnsafe {
		list = append(list, observedWords)
	}
	for _, m := range o.MountsUnsafe {
		if m.Note == "" {
			m.Note = "commands can read the host directory " + m.Source
		}
		list = append(list, m.Note)
	}
	return append(list, o.Subject.Unenforced...)
}

const modulePath = "github.com/fumehood/fumehood"

// versionOrModule returns o.Version, or fumehood's module version in this program.
func (o Options) versionOrModule() string {
	info, ok := debug.ReadBuildInfo()
	if o.Version != "" || !ok {
		return o.Version
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == modulePath && m.Version != "" {
			return m.Version
		}
	}
	return "(devel)"
}
