// SPDX-License-Identifier: Apache-2.0

//go:build linux

package gate

import (
	"context"
	"net/netip"

	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/egress/registry"
	"github.com/fumehood/fumehood/pkg/hood"
	"github.com/fumehood/fumehood/pkg/outlet"
	"github.com/fumehood/fumehood/pkg/policy"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Options configure a Gate. The zero value is the closed, complete gate with the shipped
// policy; see the package comment.
type Options struct {
	// Policies are layers that are asked beside the shipped policy, or, when one of them
	// Grants, instead of it. The report names each.
	Policies []Policy
	// Ceiling lowers the limits that policy grants. It never raises one.
	Ceiling proposal.Limits
	// DecideOnly makes a Gate whose Check works without root and whose Run is refused.
	DecideOnly bool

	// Workspace is the directory with the code under review; "." when empty. It is shown
	// under an overlay and never written to.
	Workspace string
	// Rootfs is "host", which "" means too, or "dir:PATH".
	Rootfs string
	// Tools are directories of the root file system, separated by colons, that come first
	// in PATH inside. Those that it does not show are left out.
	Tools string
	// Runsc is the path of a fumehood-runsc; the installed one, or one built from source,
	// when empty.
	Runsc string

	// Artifacts is a directory that does not exist yet, for outputs, whole streams and the
	// log; a new one for each run below the user's state directory when empty.
	Artifacts string
	// AuditFile is the log's path; audit.jsonl among the artifacts when empty.
	AuditFile string
	// Signer signs the log; when nil, a new key for each run, which the report names.
	Signer *audit.Signer

	// Resolvers are the name servers for hosts that policy grants; the host's when empty.
	Resolvers []netip.AddrPort
	// Registries returns where the named package registries are; when nil, what the host's
	// own tools are configured to use. Only those that policy grants are requested.
	Registries func(ctx context.Context, names []string) ([]registry.Registry, error)
	// Credentials are added by the gateway to requests to their hosts. Commands see a
	// placeholder, and the values are redacted like Masks.
	Credentials []Credential
	// Masks are values to redact from everything that leaves the run, in any encoding,
	// beside what looks like a secret.
	Masks []outlet.Mask
	// Gateway is the command that calls egress.Main; when empty, this program, whose main
	// must then call Helper.
	Gateway []string

	// Subject is the pull request that the plan is about, for the report.
	Subject Subject
	// Version is the version that the report names; fumehood's module version when empty.
	Version string
	// Progress is called as each command begins and ends; nil for no calls.
	Progress func(hood.Step)
	// Notice is called with one line about work that takes long, such as building
	// fumehood-runsc; nil for no calls.
	Notice func(string)

	// ObserveUnsafe records what Policies would refuse, and refuses only what the shipped
	// policy does.
	ObserveUnsafe bool
	// MountsUnsafe are directories of the host that commands can read. What commands write
	// there is thrown away.
	MountsUnsafe []Mount
}

// A Policy is one layer of policy.
type Policy struct {
	Layer policy.Layer
	// Origin says in the report where the layer came from. It may be left empty.
	Origin proposal.PolicyOrigin
}

// A Credential is a secret that the gateway adds to requests, as the header
// Authorization. No command ever has it.
type Credential struct {
	Name  string // of the variable that holds the placeholder inside
	Host  string // HOST or HOST:PORT
	Path  string // the prefix of paths; "/" when empty
	Value string // the whole header value, for example "Bearer …"
}

// A Mount shows a host directory inside.
type Mount struct {
	Source string // on the host
	Target string // inside; Source when empty
	// Note is the report's sentence about it; a general one when empty.
	Note string
}

// A Subject is what the caller knows of the pull request. All of it may be empty.
type Subject struct {
	Repository, Fork string // owner/name; Fork only where it is another one
	PR               int
	HeadSHA, BaseSHA string
	// Cwd is the directory of the workspace that the plan's own directories are relative to.
	Cwd string
	// Left names what of the commit is not in the workspace.
	Left []string
	// Unenforced is added to the report's list.
	Unenforced []string
	// Approval is a person's answer to what policy asks; it holds for one plan only.
	Approval *proposal.Approval
}

// notice calls o.Notice.
func (o Options) notice(text string) {
	if o.Notice != nil {
		o.Notice(text)
	}
}
