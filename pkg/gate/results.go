// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/internal/sandbox/install"
	"github.com/fumehood/fumehood/internal/sandbox/results"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// resultsOf returns the kept results that r uses, or nil if it uses none: where the options show
// commands more than what a key has, a kept result could be of something else.
func (g *Gate) resultsOf(r *run) *keptResults {
	mode, _ := results.ParseMode(g.o.Results.Mode) // New has checked it
	if g.o.pullRequest() {
		mode = min(mode, results.Read)
	}
	if mode == results.Off || g.o.ObserveUnsafe || len(g.o.MountsUnsafe) > 0 || len(r.setup.Services) > 0 {
		return nil
	}
	cache, err := g.o.openResults()
	if err != nil {
		g.addWarnings("results.unavailable: cannot open the kept results: " + err.Error())
		return nil
	}
	return &keptResults{run: r, mode: mode, cache: cache}
}

// pullRequest reports whether a run is of a pull request.
func (o Options) pullRequest() bool { return o.Subject.PR != 0 || o.Subject.Fork != "" }

// A resultStore has the results that are kept.
type resultStore interface {
	Get(key string) (results.Entry, error)
	Put(results.Entry) error
	Close() error
}

// openResults opens the kept results. A pull request can leave files in a cache that its own later
// runs restore, and a result there would pass for one of merged code: they do not use an exchange.
func (o Options) openResults() (resultStore, error) {
	if o.Results.Exchange != "" && !o.pullRequest() {
		return results.OpenExchange(o.Results.Exchange), nil
	}
	dir, err := o.resultsDir()
	if err != nil {
		return nil, err
	}
	return results.Open(dir)
}

func (o Options) resultsDir() (string, error) {
	if o.Results.Dir != "" {
		return o.Results.Dir, nil
	}
	dir, err := install.CacheDir()
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	return filepath.Join(dir, "results"), err
}

// keptResults implements order.Results for one run.
type keptResults struct {
	run   *run
	mode  results.Mode
	cache resultStore

	once      sync.Once
	workspace string // digest, "" if it is not known
	offered   []offered
}

// offered is a result to keep, and the number of its entry in the log.
type offered struct {
	record proposal.Record
	entry  int64
}

// maxOffered is how many results one run keeps.
const maxOffered = 1000

// Find implements order.Results.
func (k *keptResults) Find(ctx context.Context, r proposal.Record, o sandbox.Options) (string, *proposal.Result) {
	digests, known := k.run.layering.layerDigests()
	in := k.resultInputs(ctx, r, o)
	in.Layers = digests
	key := in.Key()
	if key == "" || !known {
		return "", nil
	}
	kept, err := k.findProved(key)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		k.run.gate.addWarnings(fmt.Sprintf("results.invalid: the kept result %.12s is not used: %v", key, err))
	default:
		return key, &kept
	}
	return key, nil
}

// findProved returns the result of key, if it is proved and has nothing that this run redacts.
func (k *keptResults) findProved(key string) (proposal.Result, error) {
	e, err := k.cache.Get(key)
	if err != nil {
		return proposal.Result{}, err
	}
	if s := k.run.gate.o.Signer; s != nil && s.Key() != e.LogKey {
		return proposal.Result{}, errors.New("its log is signed with another key")
	}
	p, err := order.ProofOf(e.Proof, e.LogKey)
	if err != nil {
		return proposal.Result{}, err
	}
	for _, text := range []string{string(e.Stdout), string(e.Stderr), string(p.Body)} {
		if k.run.redactor.Text(text) != text {
			return proposal.Result{}, errors.New("it contains what this run redacts")
		}
	}
	return e.Result(key, p)
}

// resultInputs returns what the result of r may depend on in a sandbox of o.
func (k *keptResults) resultInputs(ctx context.Context, r proposal.Record, o sandbox.Options) results.Inputs {
	g := k.run.gate
	k.once.Do(func() {
		var err error
		if k.workspace, err = results.DigestWorkspace(ctx, g.sandbox.Workspace); err != nil {
			g.addWarnings("results.workspace: no kept result is used: " + err.Error())
		}
	})
	in := results.InputsOf(r)
	in.Policy, in.Root, in.Toolchain, in.Runsc, in.Arch = g.engine.ReuseDigest(), g.root.String(), g.tools,
		g.runsc.Digest, runtime.GOARCH
	in.Program, in.Workspace = programDigest(), k.workspace
	in.Sandbox = results.Digest(sandboxInputs(o))
	for _, step := range k.run.setup.Steps {
		in.Setup = append(in.Setup, step.Proposal)
	}
	return in
}

// sandboxInputs is what every command in a sandbox of o sees besides the root's own files.
func sandboxInputs(o sandbox.Options) []any {
	var trees []string
	for _, t := range o.Trees {
		trees = append(trees, t.Target)
	}
	binds := slices.SortedFunc(slices.Values(o.Binds),
		func(a, b sandbox.Bind) int { return strings.Compare(a.Target, b.Target) })
	return []any{binds, o.Links, o.Files, o.Home, o.Path, o.Env, o.Guard, o.Netns, trees}
}

// programDigest returns the digest of this program, "" if it cannot be read.
var programDigest = sync.OnceValue(func() string {
	f, err := os.Open("/proc/self/exe")
	if err != nil {
		return ""
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))
})

// Keep implements order.Results.
func (k *keptResults) Keep(r proposal.Record, entry int64) {
	if k.mode != results.Write || len(k.offered) >= maxOffered {
		return
	}
	result := *r.Result
	r.Result = &result
	k.offered = append(k.offered, offered{r, entry})
}

// saveOffered keeps the offered results of a run whose log is sealed.
func (k *keptResults) saveOffered(a proposal.Audit) error {
	if len(k.offered) == 0 {
		return nil
	}
	now, err := results.DigestWorkspace(context.Background(), k.run.gate.sandbox.Workspace)
	if err != nil {
		return err
	}
	if now != k.workspace {
		return errors.New("the workspace changed during the run")
	}
	for _, o := range k.offered {
		err = errors.Join(err, k.putResult(a, o))
	}
	return err
}

// putResult keeps one result with the proof that the log has it.
func (k *keptResults) putResult(a proposal.Audit, o offered) error {
	log, err := audit.OpenFile(a.File)
	if err != nil {
		return err
	}
	defer log.Close()
	proof, err := audit.Prove(log, audit.Trust{Key: a.Key, Checkpoint: a.Checkpoint}, o.entry)
	if err != nil {
		return err
	}
	e := results.NewEntry(o.record, k.run.info.ID, a.Key, proof)
	p, err := order.ProofOf(e.Proof, e.LogKey)
	if err != nil {
		return err
	}
	if _, err := e.Result(e.Key, p); err != nil {
		return err
	}
	return k.cache.Put(e)
}

// saveResults keeps the results of a run that ended well. That it cannot is a warning.
func (r *run) saveResults(a proposal.Audit) {
	if r.results == nil {
		return
	}
	if err := r.results.saveOffered(a); err != nil {
		r.gate.addWarnings("results.not-kept: " + err.Error())
	}
}
