// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fumehood/fumehood/internal/gate/order"
	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/internal/sandbox"
	"github.com/fumehood/fumehood/internal/sandbox/image"
	"github.com/fumehood/fumehood/internal/sandbox/image/layers"
	"github.com/fumehood/fumehood/internal/sandbox/install"
	"github.com/fumehood/fumehood/internal/source/setup"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// sweepLayers removes the private layers of killed processes.
func sweepLayers() {
	if cache, err := install.CacheDir(); err == nil {
		layers.RemoveAbandoned(cache)
	}
}

// gateLayers are the layers of a Gate's own runs.
type gateLayers struct {
	store   *layers.Store // nil until needed
	refused string        // a key of which there is no private layer
}

// openStore returns the store, next to what is kept from run to run. Its error is a
// *proposal.StopError.
func (l *gateLayers) openStore() (*layers.Store, error) {
	if l.store != nil {
		return l.store, nil
	}
	cache, err := install.CacheDir()
	if err != nil {
		return nil, &proposal.StopError{Code: layers.CodeStore, Message: "cannot find the directory for layers",
			Hint: "set FUMEHOOD_CACHE", Err: err}
	}
	l.store, err = layers.OpenTemporary(cache)
	return l.store, err
}

// removeStore removes the store.
func (l *gateLayers) removeStore() error {
	err := l.store.Close()
	*l = gateLayers{}
	return err
}

// keepsLayers reports whether layers are used that are kept from run to run.
func (o Options) keepsLayers() bool { return o.Layers.Mode == "read" || o.makesLayers() }

// makesLayers reports whether layers are made that later runs use.
func (o Options) makesLayers() bool { return o.Layers.Mode == "auto" || o.Layers.Mode == "write" }

// openLayers opens the layers that are kept on this host. In the mode auto, a directory that cannot be used is
// a notice, and there are only private ones.
func (g *Gate) openLayers() (err error) {
	if !g.o.keepsLayers() || g.o.Layers.Exchange != "" {
		return nil
	}
	g.kept, err = layers.OpenDefault(g.o.Layers.Dir)
	if err != nil && g.o.Layers.Mode == "auto" {
		g.o.sendNotice("set-up is not kept: " + g.redactor.Error(err).Error())
		g.o.Layers, err = Store{}, nil
	}
	return err
}

// needsNewSandbox reports whether a proposal of plan requests a new sandbox.
func needsNewSandbox(plan proposal.Plan) bool {
	return slices.ContainsFunc(plan.Proposals, func(p proposal.Proposal) bool { return p.Fresh && p.Origin == "" })
}

// needsPrivateLayer reports whether what set-up leaves is likely to be needed in another sandbox of this
// run, or of a later one of the Gate.
func (r *run) needsPrivateLayer() bool { return r.gate.o.needsPrivate(r.setup, r.renews) }

func (o Options) needsPrivate(s setup.Setup, renews bool) bool {
	return o.Layers.Mode != "off" && len(s.Steps) > 0 && (renews || o.Repeated)
}

// setupLayering finds and keeps the layer of one run. Whatever goes wrong is a notice: set-up then
// runs, or is not kept.
type setupLayering struct {
	run       *run
	workspace string // of the sandbox
	key       string // of set-up; "" if there is none
	began     time.Time
	optional  string // id of the command of set-up from which on all are optional; "" if the last is not
	inputs    []setup.Input
	covers    []setup.Input // the inputs without those of optional commands
	used      *layers.SetupLayer
}

// A layerKey is everything that decides what set-up leaves, except for the workspace: of that, a
// layer has what its set-up read.
type layerKey struct {
	Format   string
	Version  string // of fumehood
	Runsc    string
	Arch     string
	Root     string // kind and digest
	Policy   string
	UID, GID uint32 // the workspace's owner, and so the files'
	Day      string // if no lock file chooses the versions
	Env      map[string]string
	Path     string
	Trees    []string // that set-up may write to
	Hide     []string `json:",omitempty"`
	Commands []layerCommand
}

// A layerCommand is a command of set-up as it was decided.
type layerCommand struct {
	Text, Cwd string
	Env       map[string]string
	Network   []string
	Exec      []string
	Limits    proposal.Limits // a part of set-up that meets one may fail unnoticed
}

// Find implements order.Layers.
func (l *setupLayering) Find(
	_ context.Context, records []proposal.Record, o sandbox.Options,
) (found order.FoundSetupLayer) {
	g, began := l.run.gate, time.Now()
	key, err := l.keyOf(records, o)
	if err != nil {
		if g.o.Layers.Mode != "auto" {
			g.o.sendNotice("set-up is not kept in a layer: " + notKept(layers.CodeUnknown, err).Error())
		}
		return found
	}
	l.key, l.workspace = key, o.Workspace
	if l.used, err = l.findLayer(o.Workspace, g.findLayer); err != nil {
		g.o.sendNotice("warning: " + g.redactor.Error(err).Error())
	}
	switch {
	case l.used != nil:
		found.Layer, found.File = layerOf(l.used.Info), l.used.File
		g.o.sendNotice("set-up from a layer, " + formatSeconds(began))
	case (g.o.makesLayers() || l.run.needsPrivateLayer()) && g.layers.refused != key:
		found.Record, l.began = true, setup.WaitForClockTick()
		l.optional = optionalFrom(l.run.setup.Steps, records)
	}
	return found
}

// formatSeconds returns the time since began, as "0.3 s".
func formatSeconds(began time.Time) string { return fmt.Sprintf("%.1f s", time.Since(began).Seconds()) }

// optionalFrom returns the id of the first command of set-up that is optional like all after it, ""
// if the last is not: see setup.Step.
func optionalFrom(steps []setup.Step, records []proposal.Record) (id string) {
	if len(steps) != len(records) {
		return ""
	}
	for i, step := range slices.Backward(steps) {
		if !step.Optional {
			break
		}
		id = records[i].Proposal.ID
	}
	return id
}

// findLayer returns the layer that look finds for workspace.
func (l *setupLayering) findLayer(
	workspace string, look func(key string, match layers.Matcher) (*layers.SetupLayer, error),
) (*layers.SetupLayer, error) {
	tree, err := setup.OpenTree(workspace)
	if err != nil {
		return nil, err
	}
	defer tree.Close()
	return look(l.key, func(inputs []layers.Input) (bool, error) {
		list := make([]setup.Input, len(inputs))
		for i, in := range inputs {
			list[i] = setup.Input(in)
		}
		return tree.HasInputs(list)
	})
}

// findLayer returns a layer with the key that match accepts, or nil if there is none.
func (g *Gate) findLayer(key string, match layers.Matcher) (*layers.SetupLayer, error) {
	if dir := g.o.Layers.Exchange; dir != "" {
		own, err := g.layers.openStore()
		if err == nil {
			err = own.Import(dir, key, match)
		}
		if err != nil {
			return nil, err
		}
	}
	if found, err := g.layers.store.Find(key, match); found != nil || err != nil {
		return found, err
	}
	return g.kept.Find(key, match)
}

// hasWholeLayer reports whether a layer has the effects of all of Setup in this workspace: one that a run
// with another plan has made. It is used although plan touches only part.
func (g *Gate) hasWholeLayer(ctx context.Context, plan proposal.Plan, part setup.Setup) bool {
	planned, whole := g.o.wholePlanner().Plan(plan)
	if reflect.DeepEqual(part.Steps, whole.Steps) {
		return false
	}
	planned.Proposals = slices.DeleteFunc(planned.Proposals, func(p proposal.Proposal) bool { return p.Origin == "" })
	records, err := g.checkPlanned(ctx, planned)
	if err != nil {
		return false // Run reports it
	}
	l := setupLayering{run: &run{gate: g, setup: whole,
		info: proposal.Run{Rootfs: g.root.String()}}}
	o := g.planSandbox(len(records), whole)
	if l.key, err = l.keyOf(records, o); err != nil {
		return false
	}
	found, err := l.findLayer(o.Workspace, g.findLayer)
	if err != nil {
		g.o.sendNotice("warning: " + g.redactor.Error(err).Error())
	}
	return found != nil && found.Close() == nil
}

func layerOf(i layers.Info) *proposal.Layer {
	return &proposal.Layer{Key: i.Key, Digest: i.Digest, Run: i.Run, Made: i.Made, Private: i.Private}
}

// keyOf returns the key of records in a sandbox of s, or why there is none: something decides what they leave
// that is not known.
func (l *setupLayering) keyOf(records []proposal.Record, s sandbox.Options) (string, error) {
	o := l.run.gate.o
	switch {
	case len(l.run.setup.Services) > 0:
		return "", errors.New("services may hold a part of what it leaves")
	case len(o.MountsUnsafe) > 0:
		return "", errors.New("it can read directories of the host")
	case len(o.Credentials) > 0:
		return "", errors.New("it may read what only its credentials show")
	}
	var owner syscall.Stat_t
	if err := syscall.Stat(s.Workspace, &owner); err != nil {
		return "", err
	}
	k := layerKey{
		Format: layers.Version, Version: o.versionOrModule(), Runsc: l.run.gate.runsc.Version, Arch: runtime.GOARCH,
		Root: l.run.info.Rootfs, Policy: l.run.gate.engine.ReuseDigest(),
		UID: owner.Uid, GID: owner.Gid, Env: s.Env, Path: s.Path, Hide: o.Hide,
	}
	for _, t := range s.Trees {
		k.Trees = append(k.Trees, t.Target)
	}
	for _, r := range records {
		if !r.Runnable() || r.Decision.Grant == nil {
			return "", fmt.Errorf("%q does not run", r.Proposal.ID)
		}
		g := r.Decision.Grant
		limits := g.Limits
		limits.Wall, limits.Output = 0, 0 // a command that meets one is killed, and nothing is kept
		k.Commands = append(k.Commands,
			layerCommand{r.Analysis.Canonical, r.Proposal.Cwd, g.Env, g.Network, g.Exec, limits})
	}
	if slices.ContainsFunc(l.run.setup.Steps,
		func(step setup.Step) bool { return !setup.IsPinned(wordsOf(step.Proposal)) }) {
		k.Day = time.Now().UTC().Format(time.DateOnly)
	}
	return k.digestKey()
}

func (k layerKey) digestKey() (string, error) {
	data, err := json.Marshal(k)
	return fmt.Sprintf("sha256:%x", sha256.Sum256(data)), err
}

// plainWords is shell text in which no character has a meaning.
var plainWords = pattern.New(`^[A-Za-z0-9 ./_@:-]+$`)

// wordsOf returns the words of a command, nil if they are not known without a shell.
func wordsOf(p proposal.Proposal) []string {
	if len(p.Argv) > 0 {
		return p.Argv
	}
	if plainWords.MatchString(p.Run) {
		return strings.Fields(p.Run)
	}
	return nil
}

// Keep implements order.Layers.
func (l *setupLayering) Keep(ctx context.Context, runner order.Runner, _ []proposal.Record) *proposal.Layer {
	g, began := l.run.gate, time.Now()
	if l.began.IsZero() || l.used != nil {
		return nil
	}
	store, info, err := l.makeLayer(ctx, runner)
	if err != nil {
		g.layers.refused = l.key
		g.o.sendNotice("warning: set-up is not kept in a layer: " +
			l.run.redactor.Text(notKept(layers.CodeFiles, err).Error()))
		return nil
	}
	if !info.Private {
		g.o.sendNotice(fmt.Sprintf("set-up kept in a layer of %.1f MB, %s", float64(info.Size)/1e6,
			formatSeconds(began)))
	}
	if err := errors.Join(l.exportLayer(store, info), l.useMadeLayer(store, info, runner)); err != nil {
		g.o.sendNotice("warning: " + l.run.redactor.Text(err.Error()))
	}
	return layerOf(info)
}

// openStore returns where the layer is made.
func (l *setupLayering) openStore() (*layers.Store, error) {
	g := l.run.gate
	if g.o.makesLayers() && g.kept != nil {
		return g.kept, nil
	}
	return g.layers.openStore()
}

// notKept returns why set-up is not kept, with a code; code if err has none.
func notKept(code string, err error) error {
	var coded *proposal.StopError
	switch {
	case errors.As(err, &coded):
		return err
	case errors.Is(err, setup.ErrChanged):
		code = layers.CodeChanged
	}
	return &proposal.StopError{Code: code, Message: err.Error()}
}

// readInputs sets what set-up learned of the workspace, which is the same as before set-up.
func (l *setupLayering) readInputs(ctx context.Context, from order.SetupFiles) error {
	reads, err := from.Reads(ctx, l.optional)
	all := errors.Is(err, sandbox.ErrReads)
	if err != nil && !all {
		return err
	}
	tree, err := setup.OpenTree(l.workspace)
	if err != nil {
		return err
	}
	defer tree.Close()
	tree.RefuseChangesSince(l.began)
	if all {
		notice := proposal.StopError{Code: layers.CodeReads,
			Message: fmt.Sprintf("set-up read more than %d files of the workspace: its layer is only used where all files are the same", sandbox.MaxReads)}
		l.run.gate.o.sendNotice(notice.Error())
		l.inputs, err = tree.AllInputs()
		l.covers = l.inputs
		return err
	}
	list := make([]setup.Read, len(reads))
	for i, read := range reads {
		list[i] = setup.Read(read)
	}
	if l.inputs, err = tree.InputsOf(list); err != nil {
		return err
	}
	l.covers, err = tree.InputsOf(slices.DeleteFunc(list, func(r setup.Read) bool { return r.Optional }))
	return err
}

// makeLayer makes the layer, in the returned store.
func (l *setupLayering) makeLayer(
	ctx context.Context, from order.SetupFiles,
) (_ *layers.Store, _ layers.Info, err error) {
	if err = l.readInputs(ctx, from); err != nil {
		return nil, layers.Info{}, err
	}
	inputs := make([]layers.Input, len(l.inputs))
	for i, in := range l.inputs {
		inputs[i] = layers.Input(in)
	}
	store, err := l.openStore()
	if err != nil {
		return nil, layers.Info{}, err
	}
	m, err := store.Make(layers.Info{Setup: l.key, Run: l.run.info.ID, Private: !l.run.gate.o.makesLayers()}, inputs)
	if err != nil {
		return nil, layers.Info{}, err
	}
	bounds := sandbox.LayerBounds{MaxFiles: layers.MaxFiles, MaxBytes: layers.MaxBytes}
	add := func(f sandbox.LayerFile, content io.Reader) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return l.addFile(m, f, content)
	}
	if err := from.Export(ctx, bounds, add); err != nil {
		return nil, layers.Info{}, errors.Join(err, m.Abort())
	}
	info, err := m.Keep()
	return store, info, err
}

// exportLayer copies the layer to Options.Layers.Exchange.
func (l *setupLayering) exportLayer(store *layers.Store, made layers.Info) error {
	if o := l.run.gate.o; o.Layers.Exchange != "" && o.makesLayers() {
		return store.Export(made, o.Layers.Exchange)
	}
	return nil
}

// useMadeLayer makes the run's next sandboxes begin with the layer that was made, unless another run's
// was kept for the same key.
func (l *setupLayering) useMadeLayer(store *layers.Store, made layers.Info, runner order.SetupFiles) error {
	if !l.run.renews || l.run.gate.o.Layers.Mode == "off" {
		return nil
	}
	found, err := store.Get(made.Setup, made.Key)
	if found == nil || found.Digest != made.Digest {
		return errors.Join(err, found.Close())
	}
	l.used = found
	runner.UseLayer(found.File)
	return nil
}

// addFile adds one file that set-up has written, unless other workspaces with the same inputs could
// have another one there.
func (l *setupLayering) addFile(m *layers.Maker, f sandbox.LayerFile, content io.Reader) error {
	name, inside := strings.CutPrefix(f.Path, sandbox.LayerWorkspace+"/")
	if inside && !setup.CoversFile(l.covers, name) {
		return fmt.Errorf("set-up changed %q, which other commits may change, too", name)
	}
	return m.Add(image.Entry{Path: f.Path, Mode: f.Mode, UID: f.UID, GID: f.GID, ModTime: f.ModTime, Link: f.Link,
		Hard: f.Hard, Size: f.Size}, content)
}

// layerDigests returns the digests of the layers that a new sandbox begins with. A private one is not
// known to a later run: the same set-up writes other times.
func (l *setupLayering) layerDigests() (list []string, known bool) {
	if l == nil || l.used == nil {
		return []string{}, true
	}
	return []string{l.used.Digest}, !l.used.Private
}

// closeLayer ends the use of the layer.
func (l *setupLayering) closeLayer() {
	if l != nil {
		_ = l.used.Close()
	}
}
