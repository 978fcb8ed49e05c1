// SPDX-License-Identifier: Apache-2.0

//go:build linux

package gate

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/fumehood/fumehood/pkg/hood"
	"github.com/fumehood/fumehood/pkg/image"
	"github.com/fumehood/fumehood/pkg/image/layers"
	"github.com/fumehood/fumehood/pkg/internal/keep"
	"github.com/fumehood/fumehood/pkg/proposal"
	"github.com/fumehood/fumehood/pkg/sandbox"
	"github.com/fumehood/fumehood/pkg/sandbox/install"
	"github.com/fumehood/fumehood/pkg/setup"
)

// OpenLayers opens the directory with layers; if it is empty, this host's, next to what else is
// kept from run to run. Its error is a *proposal.StopError.
func OpenLayers(dir string) (*layers.Store, error) {
	if dir == "" {
		cache, err := install.CacheDir()
		if err != nil {
			return nil, &proposal.StopError{Code: layers.CodeStore, Message: "cannot find the directory for layers", Hint: "name it with --layers-dir", Err: err}
		}
		dir = filepath.Join(cache, "layers")
	}
	return layers.Open(dir, 0)
}

// OpenRunLayers makes a directory with layers for one run, next to what is kept from run to run.
// Close removes it. Its error is a *proposal.StopError.
func OpenRunLayers() (*layers.Store, error) {
	cache, err := install.CacheDir()
	if err != nil {
		return nil, &proposal.StopError{Code: layers.CodeStore, Message: "cannot find the directory for layers", Hint: "set FUMEHOOD_CACHE", Err: err}
	}
	return layers.OpenTemporary(cache)
}

// A LayerRequest says which layers a run uses, as flags and the configuration give it.
type LayerRequest struct {
	Mode       string // "off", "read" or "write"; "" is read if Configured, else off
	Configured bool   // the configuration file has layers: it may be a pull request's, and makes none
	Dir        string // of OpenLayers
	Exchange   string // Options.LayersExchange; with it Dir is not used
}

// UseLayers sets o's layers as r says. In a job that may not keep what it makes, write is read.
// With an Exchange, which others can write to, it returns a store of this run only, so that no
// later run uses what it holds; the caller must Close it. Its error is a *proposal.StopError.
func (o *Options) UseLayers(r LayerRequest, getenv func(string) string) (ofRun *layers.Store, err error) {
	switch {
	case r.Mode == "off" || r.Mode == "" && !r.Configured:
		return nil, nil
	case r.Mode != "" && r.Mode != "read" && r.Mode != "write":
		return nil, &proposal.StopError{Code: "layers.mode", Message: fmt.Sprintf("invalid value %q of --layers", r.Mode), Hint: "use off, read or write"}
	}
	o.LayersWrite, o.LayersExchange = r.Mode == "write" && keep.Allowed(getenv, os.ReadFile), r.Exchange
	if r.Exchange == "" {
		o.Layers, err = OpenLayers(r.Dir)
		return nil, err
	}
	ofRun, err = OpenRunLayers()
	o.Layers = ofRun
	return ofRun, err
}

// layering finds and keeps the layer of one run. Whatever goes wrong is a notice: set-up then
// runs, or is not kept.
type layering struct {
	run    *run
	key    string // "" if there is none
	inputs setup.Inputs
	used   *layers.Layer
}

// A layerKey is everything that decides what set-up leaves.
type layerKey struct {
	Format   string
	Version  string // of fumehood
	Runsc    string
	Arch     string
	Root     string // kind and digest
	Policy   string
	UID, GID uint32 // the workspace's owner, and so the files'
	Inputs   string
	Day      string // if no lock file chooses the versions
	Env      map[string]string
	Path     string
	Trees    []string // that set-up may write to
	Commands []layerCommand
}

// A layerCommand is a command of set-up as it was decided.
type layerCommand struct {
	Text, Cwd string
	Env       map[string]string
	Network   []string
	Exec      []string
}

// Find implements hood.Layers.
func (l *layering) Find(_ context.Context, records []proposal.Record) *proposal.Layer {
	g := l.run.gate
	key, err := l.keyOf(records)
	if err != nil {
		g.o.notice("set-up is not kept in a layer: " + err.Error())
		return nil
	}
	l.key = key
	if l.used, err = g.o.layer(key); err != nil {
		g.o.notice("warning: " + g.redactor.Error(err).Error())
	}
	if l.used == nil {
		return nil
	}
	l.run.sandbox.Layer = l.used.File
	return layerOf(l.used.Info)
}

// layer returns the layer for key, or nil if there is none.
func (o Options) layer(key string) (*layers.Layer, error) {
	if o.LayersExchange != "" {
		if err := o.Layers.Import(o.LayersExchange, key); err != nil {
			return nil, err
		}
	}
	return o.Layers.Get(key)
}

func layerOf(i layers.Info) *proposal.Layer {
	return &proposal.Layer{Key: i.Key, Digest: i.Digest, Run: i.Run, Made: i.Made}
}

// keyOf returns the key of records, or why there is none: something decides what they leave
// that is not known.
func (l *layering) keyOf(records []proposal.Record) (string, error) {
	o, s := l.run.gate.o, l.run.sandbox
	switch {
	case len(o.Setup.Services) > 0:
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
		Format: layers.Version, Version: o.version(), Runsc: l.run.gate.runsc.Version, Arch: runtime.GOARCH, Root: l.run.info.Rootfs, Policy: l.run.info.Policy,
		UID: owner.Uid, GID: owner.Gid, Env: s.Env, Path: s.Path,
	}
	for _, t := range s.Trees {
		k.Trees = append(k.Trees, t.Target)
	}
	for _, r := range records {
		if !r.Runnable() || r.Decision.Grant == nil {
			return "", fmt.Errorf("%q does not run", r.Proposal.ID)
		}
		g := r.Decision.Grant
		k.Commands = append(k.Commands, layerCommand{r.Analysis.Canonical, r.Proposal.Cwd, g.Env, g.Network, g.Exec})
	}
	var err error
	if l.inputs, err = readInputs(s.Workspace, o.Setup.Steps); err != nil {
		return "", err
	}
	if k.Inputs = l.inputs.Digest; !l.inputs.Pinned {
		k.Day = time.Now().UTC().Format(time.DateOnly)
	}
	data, err := json.Marshal(k)
	return fmt.Sprintf("sha256:%x", sha256.Sum256(data)), err
}

func readInputs(workspace string, steps []setup.Step) (setup.Inputs, error) {
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return setup.Inputs{}, err
	}
	defer root.Close()
	var commands [][]string
	for _, step := range steps {
		commands = append(commands, wordsOf(step.Proposal))
	}
	return setup.ReadInputs(root.FS(), commands)
}

// plainWords is shell text in which no character has a meaning.
var plainWords = regexp.MustCompile(`^[A-Za-z0-9 ./_@:-]+$`)

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

// Keep implements hood.Layers.
func (l *layering) Keep(ctx context.Context, runner hood.Runner, _ []proposal.Record) *proposal.Layer {
	g := l.run.gate
	from, ok := runner.(interface {
		Export(context.Context, sandbox.LayerBounds, func(sandbox.LayerFile, io.Reader) error) error
	})
	if !ok || l.key == "" || !g.o.LayersWrite || l.used != nil {
		return nil
	}
	now, err := readInputs(l.run.sandbox.Workspace, g.o.Setup.Steps)
	if err == nil && now.Digest != l.inputs.Digest {
		err = errors.New("the workspace changed meanwhile")
	}
	if err != nil {
		g.o.notice("warning: set-up is not kept in a layer: " + err.Error())
		return nil
	}
	info, err := l.make(func(add func(sandbox.LayerFile, io.Reader) error) error {
		return from.Export(ctx, sandbox.LayerBounds{MaxFiles: layers.MaxFiles, MaxBytes: layers.MaxBytes}, add)
	})
	if err != nil {
		g.o.notice("warning: set-up is not kept in a layer: " + l.run.redactor.Text(err.Error()))
		return nil
	}
	if dir := g.o.LayersExchange; dir != "" {
		if err := g.o.Layers.Export(l.key, dir); err != nil {
			g.o.notice("warning: " + l.run.redactor.Text(err.Error()))
		}
	}
	return layerOf(info)
}

// make writes the layer.
func (l *layering) make(export func(func(sandbox.LayerFile, io.Reader) error) error) (layers.Info, error) {
	m, err := l.run.gate.o.Layers.Make(l.key, l.run.info.ID)
	if err != nil {
		return layers.Info{}, err
	}
	if err := export(func(f sandbox.LayerFile, content io.Reader) error { return l.add(m, f, content) }); err != nil {
		return layers.Info{}, errors.Join(err, m.Abort())
	}
	return m.Keep()
}

// add adds one file that set-up has written, unless other workspaces with the same key could
// have another one there.
func (l *layering) add(m *layers.Maker, f sandbox.LayerFile, content io.Reader) error {
	if name, inside := strings.CutPrefix(f.Path, sandbox.LayerWorkspace+"/"); inside && !f.Mode.IsDir() && !l.inputs.Allows(name) {
		return fmt.Errorf("set-up changed %q, which other commits may change, too", name)
	}
	return m.Add(image.Entry{Path: f.Path, Mode: f.Mode, UID: f.UID, GID: f.GID, ModTime: f.ModTime, Link: f.Link, Hard: f.Hard, Size: f.Size}, content)
}

// close ends the use of the layer.
func (l *layering) close() {
	if l != nil && l.used != nil {
		_ = l.used.Close()
	}
}
