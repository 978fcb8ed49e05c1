// SPDX-License-Identifier: Apache-2.0

package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fumehood/fumehood/cmd/fumehood/internal/runspec"
	"github.com/fumehood/fumehood/internal/github"
	"github.com/fumehood/fumehood/internal/github/action"
	"github.com/fumehood/fumehood/internal/kit/text"
	"github.com/fumehood/fumehood/internal/policy"
	policysource "github.com/fumehood/fumehood/internal/policy/source"
	"github.com/fumehood/fumehood/internal/source/checkout"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// policyDir is the directory of the default branch's policy, in the job's own.
// branchPolicyDir is that of the pull request's base branch.
const (
	policyDir       = "policy"
	branchPolicyDir = "branch-policy"
)

// defaultPolicy is the directory of a repository that is used when no input names one.
const defaultPolicy = ".github/fumehood"

// A Base is the repository that a pull request is made to: its commits, and the policy and
// configuration at the tip of its default branch. Everything is requested, fetched and read at
// most once, so that all of a step is decided by one commit. Not for several goroutines.
type Base struct {
	job    *Job
	branch string          // that the pull request is made to, "" for none
	tips   []github.Branch // that policy is read from: the default branch first; set by fetchPolicy
	store  *checkout.Store // opened by the first fetch
	layers []layer         // read by the first policies, then not nil

	configured *baseConfig // read by the first configuration
}

// A layer is one layer of a job's policy: as it was read, and the directory that it was
// written to for the run, which has neither network nor key.
type layer struct {
	policy policy.Layer
	dir    string
	origin policysource.Origin
}

// Base returns the base repository of a pull request to branch, or of none if branch is "".
// It fetches nothing.
func (j *Job) Base(branch string) *Base { return &Base{job: j, branch: branch} }

// fetchPolicy fetches the commits that policy and configuration are read from, and the given
// ones, in one request: they share most of their files. The API is asked for the former each
// time that a step runs: a pull request's base commit can be older than a rule, and its base
// branch can be one that never had it.
func (b *Base) fetchPolicy(ctx context.Context, shas ...string) error {
	if b.tips != nil {
		return b.fetch(ctx, shas...)
	}
	tip, err := b.job.defaultBranch(ctx)
	if err != nil {
		return err
	}
	tips := []github.Branch{tip}
	if b.branch != tip.Name && b.job.in.OwnPolicy(b.branch) {
		own, err := b.job.gh.Branch(ctx, b.branch)
		if err != nil {
			return err
		}
		tips = append(tips, own)
	}
	for _, tip := range tips {
		shas = append(shas, tip.SHA)
	}
	if err := b.fetch(ctx, shas...); err != nil {
		return err
	}
	b.tips = tips
	b.job.console.PrintProgress("policy and configuration: %s", describeTips(tips))
	return nil
}

// describeTips names branches and their commits on one line.
func describeTips(tips []github.Branch) string {
	var words []string
	for _, tip := range tips {
		words = append(words, fmt.Sprintf("%s at %.12s", text.Inline(tip.Name, 100), tip.SHA))
	}
	return strings.Join(words, ", and ")
}

// fetch fetches commits of the repository.
func (b *Base) fetch(ctx context.Context, shas ...string) error {
	if b.store == nil {
		j := b.job
		store, err := checkout.Open(checkout.Source{
			URL: j.runner.ServerURL + "/" + j.runner.Repository, Token: j.in.Token, Dir: filepath.Join(j.dir, "store"),
			Server:  j.runner.ServerURL,
			Proxy:   cmp.Or(j.options.Getenv("https_proxy"), j.options.Getenv("HTTPS_PROXY")),
			NoProxy: cmp.Or(j.options.Getenv("no_proxy"), j.options.Getenv("NO_PROXY")),
		}, checkout.Limits{})
		if err != nil {
			return err
		}
		b.store = store
	}
	return b.store.Fetch(ctx, shas...)
}

// policies are the job's layers above the shipped policy, in the order in which fumehood
// run has them: the organization's, the default branch's, the base branch's.
func (b *Base) policies(ctx context.Context) ([]layer, error) {
	if b.layers != nil {
		return b.layers, nil
	}
	if err := b.fetchPolicy(ctx); err != nil {
		return nil, err
	}
	var own []layer
	for i := range b.tips {
		read, err := b.readOwn(ctx, i)
		if err != nil {
			return nil, err
		}
		own = append(own, read...)
	}
	organization, err := b.readOrganization(ctx)
	if err != nil {
		return nil, err
	}
	b.layers = append(append([]layer{}, organization...), own...)
	return b.layers, nil
}

// readOwn writes the policy of a tip to a directory and reads it: never the pull request's.
// Where no input names a policy, the default branch need not have one. The base branch never
// need have one, and its policy can only restrict, in addition to the default branch's.
func (b *Base) readOwn(ctx context.Context, n int) ([]layer, error) {
	j, tip := b.job, b.tips[n]
	if _, err := b.configuration(ctx); err != nil { // which can name the directory
		return nil, err
	}
	from, dir := j.policyPath(), filepath.Join(j.dir, []string{policyDir, branchPolicyDir}[n])
	tree, err := b.store.WriteUnder(ctx, tip.SHA, from, dir)
	var absent *checkout.NotFound
	if errors.As(err, &absent) && (!j.namesPolicy() || n > 0) {
		return nil, nil
	}
	if err := policyError(from, tip.Name, tree, err); err != nil {
		return nil, err
	}
	l := layer{dir: dir, origin: policysource.Origin{Kind: policysource.KindGit, Spec: "git:" + tip.Name + ":" + from,
		Commit: tip.SHA}}
	if l.policy, err = policy.ReadDirectory(dir); err != nil {
		return nil, err
	}
	if j.in.Network == action.NetworkPolicy && n == 0 {
		l.policy.Role = policy.Opens
	}
	l.origin.Role, l.origin.Digest = l.policy.Role.String(), l.policy.Digest()
	return []layer{l}, nil
}

// policyError explains why the directory from of a branch cannot be used as policy.
func policyError(from, branch string, tree checkout.Tree, err error) error {
	var absent *checkout.NotFound
	switch {
	case errors.As(err, &absent):
		return &proposal.StopError{Code: "policy.missing",
			Message: fmt.Sprintf("branch %q has no directory %q", branch, from),
			Hint:    "check the spelling of the input policy. If the pull request adds the directory, merge it to the default branch first: policy is never read from the pull request"}
	case err != nil && proposal.FailureOf(err).Code == "checkout.tree":
		return &proposal.StopError{Code: "policy.missing",
			Message: fmt.Sprintf("%q is not a directory in branch %q", from, branch),
			Hint:    "name the directory with the .rego files, not a file in it"}
	case err == nil && len(tree.Left) > 0:
		return &proposal.StopError{Code: "policy.incomplete",
			Message: "part of the policy directory cannot be used: " + tree.Describe()[0],
			Hint:    "keep only regular files and directories in it"}
	}
	return err
}

// policyPath is the path of this repository's own policy.
func (j *Job) policyPath() string { return cmp.Or(j.in.Policy, j.configuredPolicy, defaultPolicy) }

// namesPolicy reports whether the repository must have a policy.
func (j *Job) namesPolicy() bool { return j.in.Policy+j.configuredPolicy != "" }

// compileEngine compiles the shipped policy and policies, for decisions about t.
func (b *Base) compileEngine(ctx context.Context, t Task) (*policy.Engine, error) {
	layers, err := b.policies(ctx)
	if err != nil {
		return nil, err
	}
	configured, err := b.configuration(ctx)
	if err != nil {
		return nil, err
	}
	about, err := b.contextOf(ctx, t)
	if err != nil {
		return nil, err
	}
	o := policy.Options{Context: about, Observe: b.job.in.Mode == action.ModeObserve,
		AllowTools: configured.config.AllowTools}
	for _, l := range layers {
		o.Layers = append(o.Layers, l.policy)
	}
	return b.job.options.Compile(ctx, o)
}

// origins are where the engine's layers come from, the shipped one first.
func (b *Base) origins(ctx context.Context) ([]policysource.Origin, error) {
	shipped, err := policysource.ShippedOrigin()
	if err != nil {
		return nil, err
	}
	layers, err := b.policies(ctx)
	origins := []policysource.Origin{shipped}
	for _, l := range layers {
		origins = append(origins, l.origin)
	}
	return origins, err
}

// addPolicies names the layers' directories, by role, and says where each came from.
func (b *Base) addPolicies(ctx context.Context, s *runspec.Spec) error {
	layers, err := b.policies(ctx)
	if err != nil {
		return err
	}
	s.Origins = map[string]policysource.Origin{}
	for _, l := range layers {
		list, ok := map[policy.Role]*[]string{policy.Allows: &s.Organization, policy.Opens: &s.Hosts,
			policy.Restricts: &s.Restricting}[l.policy.Role]
		if !ok {
			return fmt.Errorf("no place for a layer that %s", l.policy.Role)
		}
		*list, s.Origins[l.dir] = append(*list, l.dir), l.origin
	}
	return nil
}

// readOrganization reads the bundle that the workflow names, or no layer if the
// workflow names none. The pull request can change neither its location nor the key that must have
// signed it.
func (b *Base) readOrganization(ctx context.Context) ([]layer, error) {
	j := b.job
	switch {
	case j.in.Organization == "" && j.in.PolicyKey+j.in.MinimumRevision+j.in.OrganizationCache != "":
		return nil, &proposal.StopError{Code: "input.organisation",
			Message: "inputs policy-key, minimum-revision and organization-cache need the input organization",
			Hint:    "with:\n  organization: https://policy.example/policy.tar.gz@sha256:…"}
	case j.in.Organization == "":
		return nil, nil
	}
	options, err := b.bundleOptions()
	if err != nil {
		return nil, err
	}
	l, origin, err := policysource.Read(ctx, j.in.Organization, options)
	if err != nil {
		return nil, err
	}
	l.Role, origin.Role = policy.Allows, policy.Allows.String()
	if !origin.Copied.IsZero() {
		j.console.PrintWarning("GitHub did not return the organization's policy: the copy of " +
			origin.Copied.Format(time.RFC3339) + " is used")
	}
	read := layer{policy: l, dir: filepath.Join(j.dir, "organization"), origin: origin}
	if err := read.write(); err != nil {
		return nil, organizationError(err)
	}
	return []layer{read}, nil
}

func (b *Base) bundleOptions() (policysource.Options, error) {
	j := b.job
	o := policysource.Options{MinimumRevision: j.in.MinimumRevision, GitHub: j.readRepositoryFile}
	if j.in.OrganizationCache != "" {
		o.CopyDir = filepath.Join(j.runner.Temp, j.in.OrganizationCache)
	}
	if j.in.PolicyKey == "" {
		return o, nil
	}
	file := filepath.Join(j.dir, "policy-key.pem")
	if err := os.WriteFile(file, []byte(j.in.PolicyKey+"\n"), 0o600); err != nil {
		return o, organizationError(err)
	}
	var err error
	o.Keys, err = policysource.ReadKeys([]string{file})
	return o, err
}

// readRepositoryFile is policysource.Options.GitHub, with the token for the organization's policy.
func (j *Job) readRepositoryFile(ctx context.Context, repository, ref, path string) ([]byte, string, error) {
	gh, err := github.New(github.Options{BaseURL: j.runner.APIURL, Repository: repository,
		Token: cmp.Or(j.in.OrganizationToken, j.in.Token)})
	if err != nil {
		return nil, "", err
	}
	commit, err := gh.CommitOf(ctx, ref)
	if err != nil {
		return nil, "", err
	}
	data, err := gh.File(ctx, commit, path)
	return data, commit, err
}

func organizationError(err error) error {
	return &proposal.StopError{Code: "policy.write", Message: "cannot write the organization's policy for the run",
		Hint: "free space in RUNNER_TEMP", Err: err}
}

// write writes the files that decide. Their names are checked when a bundle is read, and
// none leaves the directory in any case, because of os.Root.
func (l layer) write() error {
	if err := os.Mkdir(l.dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(l.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, f := range l.policy.Files {
		if !f.Decides() {
			continue
		}
		err := errors.Join(root.MkdirAll(filepath.Dir(f.Name), 0o755), root.WriteFile(f.Name, f.Content, 0o644))
		if err != nil {
			return err
		}
	}
	return nil
}
