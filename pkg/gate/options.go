// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"cmp"
	"context"
	"net/netip"
	"time"

	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/audit/journal"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Options configure a Gate. The zero value is the complete, closed gate with the shipped
// policy; see the package comment.
type Options struct {
	// Policies are evaluated together with the shipped policy, or, if one of them grants,
	// instead of it. The report names each.
	Policies []Policy
	// Ceiling lowers the limits that policy grants. It never raises one.
	Ceiling proposal.Limits
	// DecideOnly makes a Gate whose Check works without root and whose Run returns an error.
	DecideOnly bool

	// Workspace is the directory with the code under review; "." if empty. It is mounted
	// under an overlay and never written to.
	Workspace string
	// Hide are patterns of paths of Workspace that commands never see, in its files or in any commit of its
	// repository: see docs/CONFIGURATION.md. Commands then see a copy of the workspace, which New makes. They must
	// not come from a pull request.
	Hide []string
	// UserHome shows the workspace at /home/user, which is HOME. /workspace is a link to it, and
	// /data, /code and /uploads are links to directories below /tmp.
	UserHome bool
	// ImageFrom is the number of files from which commands read Workspace from an image of
	// it, made before the first command. 1 is always, math.MaxInt never. 0 means a few
	// thousand for runs of at least three commands, and never for others and for sessions,
	// which show what the host changes.
	ImageFrom int
	// Rootfs is "host", the default, "dir:PATH", or an image: "image:REPOSITORY@sha256:…",
	// "oci:DIR" or "oci-archive:FILE".
	Rootfs string
	// Tools is a colon-separated list of directories of the host that come first in PATH
	// inside, each with the toolchain that it belongs to. A tool that is not shown, and inside
	// is another of the same name, is in the report.
	Tools string
	// ToolsRequired are directories of Tools that must be shown.
	ToolsRequired []string
	// AllowTools are names of programs that are allowed as tools that read, as far as policy allows
	// that: see docs/POLICY.md. They must not come from a pull request.
	AllowTools []string
	// ToolOwners are users whose toolchains may be shown, in addition to root's and this
	// process's, for example the user that this process runs for.
	ToolOwners []int
	// Runsc is the path of a fumehood-runsc; the installed one, or one built from
	// source, if empty.
	Runsc string

	// Setup is run before a plan's commands, in the same sandbox: see FindSetup. In a Session
	// it is run by SetUp. It must not come from a pull request.
	Setup Setup
	// Base is the base of the pull request, on which Run runs commands that fail, too, to see
	// whether they failed before; nil compares nothing. Sessions do not use it.
	Base *BaseTree
	// Limits are requested for a plan's commands that request none.
	Limits *proposal.Limits

	// Artifacts is a directory that must not exist yet, for outputs, complete streams
	// and the log. If empty, each run gets a new one below the user's state directory.
	Artifacts string
	// AuditFile is the log's path; audit.jsonl among the artifacts if empty.
	AuditFile string
	// Signer signs the log; if nil, each run uses a new key, which the report names.
	Signer *audit.Signer

	// Resolvers are the name servers for hosts that policy grants; the host's if empty.
	Resolvers []netip.AddrPort
	// Registries returns the named package registries; if nil, the configuration of the
	// host's own tools is used, with its credentials. It is called only with registries that
	// policy grants. One that it does not return cannot be reached.
	Registries func(ctx context.Context, names []string) ([]Registry, error)
	// Credentials are added by the gateway to requests to their hosts. Commands see a
	// placeholder, and the values are redacted like Masks.
	Credentials []Credential
	// Masks are values to redact from everything that leaves the run, in any encoding,
	// in addition to text that looks like a secret.
	Masks []Mask
	// Gateway is the command that starts the gateway's process: a program whose main calls
	// Helper, with the argument "gateway". If empty, it is this program.
	Gateway []string

	// Subject is the pull request that the plan is about, for the report.
	Subject Subject
	// Version is the version in the report; fumehood's module version if empty.
	Version string
	// Progress is called as each command begins and ends; nil for no calls.
	Progress func(Step)
	// Notice is called with one line about slow work, such as building fumehood-runsc;
	// nil for no calls.
	Notice func(string)

	// Plan, if set, is the plan that Run will get first. New then starts its sandbox while the
	// policy compiles, and Run ends it if no command is allowed. Nothing of the plan runs in it
	// before its decision is on disk.
	Plan *proposal.Plan

	// Pool keeps sandboxes ready for sessions; nil for none. Gates of one process that show the
	// same workspace can share one. See Prepare.
	Pool *Pool

	// Cgroup is the parent of the sandboxes' cgroups, relative to the root of the hierarchy.
	// "" is the root cgroup.
	Cgroup string

	// Health counts sandboxes and commands; nil for no calls.
	Health Health

	// Cache keeps on this host, from run to run, what its toolchains alone determine: Go's
	// compiled standard library, which commands of a Go module find in their build cache.
	Cache bool

	// Results are the results of commands that request it: they are kept, and the command is not
	// run again where nothing that it depends on has changed. In a run of a pull request "write"
	// is "read", and Exchange is not used.
	Results Store
	// Layers are what Setup leaves: it is not run again where a layer has its effects, see
	// docs/CACHE.md. "auto" also keeps what the part of Setup leaves that a plan needs; a directory that
	// cannot be used is a Notice. "write" runs and keeps all of Setup. Later runs of other code use such a layer
	// if their Setup would read the same. Without Mode a layer is private to this Gate: one is made where a
	// proposal requests a new sandbox or Repeated is set, and removed at the end. "off" makes none.
	Layers Store
	// Repeated says that Run will be called again with the same Setup and Workspace, which then
	// begin with the private layer of the first. Close removes it.
	Repeated bool

	// ObserveUnsafe only records what the Policies that restrict or grant would refuse; the shipped policy
	// and the others still refuse. Without one that restricts or grants, New fails.
	ObserveUnsafe bool
	// ObserveNetworkUnsafe enforces nothing about the network of a run: commands reach public
	// addresses on any port, unintercepted, and every lookup and connection is recorded with
	// proposal.VerdictObserved. Private addresses and those of this host stay refused, and so does
	// what a layer that restricts or an organization's denies. A run of a fork's pull request, or of one of
	// unknown origin, Credentials and sessions are refused. Nothing is used or kept that outlives
	// the run: no Results, and no Layers but private ones.
	ObserveNetworkUnsafe bool
	// MountsUnsafe are directories of the host that commands can read. Writes to them
	// are discarded.
	MountsUnsafe []Mount
}

// Health counts what a Gate does. Its methods are called from any goroutine and must be fast.
type Health interface {
	// Started is called when a sandbox has started, or it or its session could not because
	// of err, with the time that took, and Ended when one that started is gone.
	Started(took time.Duration, err error)
	Ended()
	// Ready is called when the first sandbox of a session has started, with the time from
	// SessionOptions.Requested, except for the time between Open and the first command.
	Ready(took time.Duration)
	// CountDecision is called when policy has decided a command or code, with the time that took.
	CountDecision(took time.Duration)
	// Log returns what a run's entries are written to instead of log. Each Append must
	// return what log's Append does.
	Log(log journal.Log) journal.Log
}

// A Store says what is kept from run to run, and where. The zero Store keeps and uses nothing that outlives
// the Gate.
type Store struct {
	Mode string // "off", "read", or "write" to also keep what this run makes; of Layers also "auto"
	// Dir is a directory of this user with mode 0700; one in fumehood's cache if empty.
	Dir string
	// Exchange is a directory that other users may write to, such as one that was restored from a
	// cache. It takes the place of Dir, and what is found there is verified before it is used.
	Exchange string
}

// A Step is one thing that begins or has been done.
type Step struct {
	Proposal string           // id
	Number   int              // from 1
	Of       int              // 0 in a session, whose proposals are not known before
	Result   *proposal.Result // nil if it begins, or is Refused
	Decision proposal.Decision
	Refused  bool // it does not begin: policy denied it, or it needs approval
	Setup    bool // it is of set-up
}

// A Pool keeps sandboxes that have started, so that a session gets one in milliseconds. In a waiting
// sandbox nothing of a pull request has run, and one that was used never returns to the Pool. It is
// safe for concurrent use.
type Pool struct{ inner *sandbox.Pool }

// NewPool returns a Pool that keeps size sandboxes, at most 16. Its caller must call Close, after the
// Gates were closed.
func NewPool(size int) *Pool { return &Pool{sandbox.NewPool(size)} }

// Waiting returns how many sandboxes are started and belong to no Gate.
func (p *Pool) Waiting() int {
	if p == nil {
		return 0
	}
	return p.inner.Waiting()
}

// Close ends the sandboxes that wait. The error has those that could not be removed.
func (p *Pool) Close() error {
	if p == nil {
		return nil
	}
	return p.inner.Close()
}

// sandboxes returns the sandboxes that p keeps, nil for a nil Pool.
func (p *Pool) sandboxes() *sandbox.Pool {
	if p == nil {
		return nil
	}
	return p.inner
}

// A Mask is a value to redact.
type Mask struct {
	Name  string // of the variable, for example; shown in place of the value
	Value string
}

// A Credential is a secret that the gateway puts into a header or the query of requests, in
// place of its placeholder. It is never visible to a command.
type Credential struct {
	Name   string // of the variable that holds the placeholder
	Host   string // HOST or HOST:PORT
	Path   string // path prefix; "/" if empty
	Header string // "Authorization" if empty; not one that says where a request or its body ends
	Query  string // the parameter of the query, in place of a header
	Value  string // what replaces the placeholder
}

// A Mount makes a host directory visible in the sandbox.
type Mount struct {
	Source string // on the host
	Target string // in the sandbox; Source if empty
	// Note is the report's sentence about it; a general one if empty.
	Note string
}

// A Subject describes the pull request. All of its fields may be empty.
type Subject struct {
	Repository, Fork string // owner/name; Fork only if it is a different repository
	PR               int
	HeadSHA, BaseSHA string
	// Cwd is the directory of the workspace to which the plan's own directories are relative.
	Cwd string
	// Left names the parts of the commit that are not in the workspace.
	Left []string
	// Unenforced is added to the report's list.
	Unenforced []string
	// Approval is a person's answer to what policy asks; it applies to one plan only.
	Approval *proposal.Approval
	// Context is input.context of policy's rules. New sets its Started if it is empty, and its
	// Image if Rootfs is one; Signers stay if they are those of this image's digest. New refuses
	// more than a Context may have.
	Context proposal.Context
}

// sendNotice calls o.Notice.
func (o Options) sendNotice(text string) {
	if o.Notice != nil {
		o.Notice(text)
	}
}

// progress returns o.Progress for package order.
func (o Options) progress() func(order.Step) {
	if o.Progress == nil {
		return nil
	}
	return func(s order.Step) { o.Progress(Step(s)) }
}

// workspaceOf returns o's Workspace.
func workspaceOf(o Options) string { return cmp.Or(o.Workspace, ".") }

// workspaceInside is where commands see the workspace.
func (o Options) workspaceInside() string {
	return sandbox.Options{UserHome: o.UserHome}.WorkspaceInside()
}
