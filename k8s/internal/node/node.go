// SPDX-License-Identifier: Apache-2.0

// Package node reads what the operator of a node has configured: which policy pods may have, and
// where their logs are.
//
// The file is TOML:
//
//	policies = "/etc/fumehood/policies"   # bundles, each as HEX.tar.gz, HEX being its SHA-256
//	keys     = ["/etc/fumehood/policy.pem"] # one of these has signed every bundle
//	default  = "sha256:…"                 # for pods that name none; without it, they are refused
//	replaces = false                      # true: a bundle replaces the shipped policy
//	logs     = "/var/lib/fumehood/pods"
//	log_limit = 1073741824                # bytes: a pod whose log is larger ends
//	log_key  = "/etc/fumehood/log.key"    # signs the logs; "": each has a key of its own
//	state    = "/run/fumehood"            # short: sockets are below it
//	runsc    = "/opt/fumehood/fumehood-runsc" # "": the one beside the shim
//	pause    = ["/pause"]                 # the command of the pause image
//
//	[namespaces]                          # which bundles the pods of a namespace may name
//	team-a = ["sha256:…"]
//
//	[sessions]                            # for pods of fumehood serve; without it there are none
//	certificate = "/etc/fumehood/node.crt"
//	key      = "/etc/fumehood/node.key"
//	clients  = "/etc/fumehood/clients.crt" # has signed the certificates of the servers
//	port     = 8443
//	work     = "/var/lib/fumehood/sessions"
//	disk     = 17179869184                # bytes: a session with more there ends
//
// A pod names its bundle in the annotation Annotation. It never chooses more than the file
// allows to its namespace. The file and all that it names must be root's, with the directories above
// them, and writable by no other user. A bundle is revoked by removing it from the file or the directory:
// pods that have it end within Interval.
package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"

	"github.com/fumehood/fumehood/internal/author/doctor"
	"github.com/fumehood/fumehood/internal/kit/process"
	"github.com/fumehood/fumehood/internal/policy"
	"github.com/fumehood/fumehood/internal/policy/source"
	"github.com/fumehood/fumehood/internal/sandbox/install"
	"github.com/fumehood/fumehood/pkg/audit"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// File is where the configuration is, unless the variable Variable of containerd's environment
// says something else.
const (
	File     = doctor.NodeFile
	Variable = doctor.NodeVariable
)

// Annotation names a pod's bundle: sha256:HEX.
const Annotation = "fumehood.dev/policy"

// Interval is how often a pod's bundle is looked for again.
const Interval = 5 * time.Second

// longestState is how long the path of the directory for state may be: a socket's has at most 107
// bytes.
const longestState = 60

// A Config is the configuration of a node.
type Config struct {
	Policies   string              `toml:"policies"`
	Keys       []string            `toml:"keys"`
	Default    string              `toml:"default"`
	Replaces   bool                `toml:"replaces"`
	Namespaces map[string][]string `toml:"namespaces"`
	Logs       string              `toml:"logs"`
	LogLimit   int64               `toml:"log_limit"`
	LogKey     string              `toml:"log_key"`
	State      string              `toml:"state"`
	Runsc      string              `toml:"runsc"`
	Pause      []string            `toml:"pause"`
	Sessions   *Sessions           `toml:"sessions"`

	file string // it was read from
}

var digest = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// Read reads the configuration of this node. The error is a *proposal.StopError.
func Read() (Config, error) {
	path := os.Getenv(Variable)
	if path == "" {
		path = File
	}
	c, err := decode(path)
	for _, name := range append(c.files(), path) {
		if err == nil {
			err = process.CheckPrivate(name, os.Geteuid())
		}
	}
	if err != nil {
		return Config{}, invalidConfig(path, err)
	}
	return c, nil
}

func invalidConfig(path string, err error) error {
	return stop("node.config", "cannot use the node's configuration "+path, "correct the file: docs/KUBERNETES.md", err)
}

// decode reads the file at path, and checks its values.
func decode(path string) (Config, error) {
	c := Config{Logs: "/var/lib/fumehood/pods", LogLimit: 1 << 30, State: "/run/fumehood", Runsc: beside(),
		Pause: []string{"/pause"}, file: path}
	meta, err := toml.DecodeFile(path, &c)
	if err == nil && len(meta.Undecoded()) > 0 {
		err = fmt.Errorf("unknown key %q", meta.Undecoded()[0])
	}
	c.Sessions.defaults()
	if err == nil {
		err = c.check()
	}
	return c, err
}

// files are the files and directories that c names and root writes.
func (c Config) files() []string {
	list := slices.Concat([]string{c.Policies, c.LogKey}, c.Keys, c.Sessions.files())
	return slices.DeleteFunc(list, func(name string) bool { return name == "" })
}

// beside is the fumehood-runsc next to this program, where an installation puts it.
func beside() string {
	program, err := os.Executable()
	if err != nil {
		return ""
	}
	return filepath.Join(filepath.Dir(program), "fumehood-runsc")
}

func (c Config) check() error {
	for name, path := range map[string]string{"policies": c.Policies, "logs": c.Logs, "state": c.State,
		"runsc": c.Runsc} {
		if !filepath.IsAbs(path) {
			return fmt.Errorf("%s: %q is not an absolute path", name, path)
		}
	}
	if len(c.State) > longestState {
		return fmt.Errorf("state: %q is longer than %d bytes", c.State, longestState)
	}
	if len(c.Keys) == 0 {
		return errors.New("keys: there is none, and a bundle must be signed")
	}
	if c.LogLimit < 1 {
		return errors.New("log_limit: it must be positive")
	}
	if len(c.Pause) == 0 {
		return errors.New("pause: there is no command")
	}
	if err := c.Sessions.check(); err != nil {
		return err
	}
	named := []string{}
	for _, list := range c.Namespaces {
		named = append(named, list...)
	}
	if c.Default != "" {
		named = append(named, c.Default)
	}
	for _, d := range named {
		if !digest.MatchString(d) {
			return fmt.Errorf("%q is not the digest of a bundle: sha256:HEX", d)
		}
	}
	return nil
}

// Choose returns the digest of the bundle for a pod of namespace that names named, or "" if it
// names none.
func (c Config) Choose(namespace, named string) (string, error) {
	switch {
	case named == "" && c.Default != "":
		return c.Default, nil
	case named == "":
		return "", stop("pod.policy", "the pod names no policy, and the node has no default",
			"set the annotation "+Annotation, nil)
	case slices.Contains(c.Namespaces[namespace], named):
		return named, nil
	}
	return "", stop("pod.policy", fmt.Sprintf("pods of the namespace %q may not have the policy %q", namespace, named),
		"use one that the operator of the nodes has allowed to the namespace", nil)
}

// Hidden returns an error if source, a path of the host that a pod mounts, is or contains
// something of the node's own, or is in it: its configuration, policies, keys, logs or state. No
// container may read another pod's log, or change what decides.
func (c Config) Hidden(source string) error {
	at, err := filepath.EvalSymlinks(source)
	if err != nil {
		return stop("pod.mount", "cannot find out what the pod mounts", "correct the volume", err)
	}
	owned := append(c.files(), c.file, c.Logs, c.State)
	if c.Sessions != nil {
		owned = append(owned, c.Sessions.Work)
	}
	for _, own := range owned {
		if real, err := filepath.EvalSymlinks(own); err == nil {
			own = real
		}
		if own != "" && (within(at, own) || within(own, at)) {
			return stop("pod.mount", fmt.Sprintf("the pod mounts %q of the node, where the gate's own files are",
				source), "mount another directory", nil)
		}
	}
	return nil
}

// within reports whether path is dir or below it.
func within(path, dir string) bool {
	rest, ok := strings.CutPrefix(path, strings.TrimSuffix(dir, "/"))
	return ok && (rest == "" || rest[0] == '/')
}

// Policy returns the bundle with this digest, which must be signed.
func (c Config) Policy(digest string) (policy.Options, error) {
	bundle, err := c.bundle(digest)
	layer := bundle.Layer
	if layer.Role = policy.Allows; c.Replaces {
		layer.Role = policy.Grants
	}
	return policy.Options{Layers: []policy.Layer{layer}}, err
}

// Engine compiles what Policy returns.
func (c Config) Engine(ctx context.Context, digest string) (*policy.Engine, error) {
	o, err := c.Policy(digest)
	if err != nil {
		return nil, err
	}
	return policy.New(ctx, o)
}

// Signer returns the node's key for logs, or nil.
func (c Config) Signer() (*audit.Signer, error) {
	if c.LogKey == "" {
		return nil, nil
	}
	return audit.ReadSigner(c.LogKey)
}

// FindRunsc returns the verified programs of this node.
func (c Config) FindRunsc(ctx context.Context) (install.Runsc, error) {
	return install.Find(ctx, install.Options{Path: c.Runsc, Remember: c.known()})
}

// known is the directory for what this node has found to be so.
func (c Config) known() string { return filepath.Join(c.State, "known") }

// Proven reports whether Prove was called with the same facts.
func (c Config) Proven(facts ...string) bool {
	_, err := os.Lstat(c.proof(facts))
	return err == nil
}

// Prove remembers facts, at most until State is removed.
func (c Config) Prove(facts ...string) error {
	if err := os.MkdirAll(c.known(), 0o700); err != nil {
		return err
	}
	return os.WriteFile(c.proof(facts), nil, 0o600)
}

func (c Config) proof(facts []string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", facts))
	return filepath.Join(c.known(), hex.EncodeToString(sum[:]))
}

func (c Config) bundlePath(digest string) string {
	return filepath.Join(c.Policies, strings.TrimPrefix(digest, "sha256:")+".tar.gz")
}

func (c Config) bundle(digest string) (source.Bundle, error) {
	path := c.bundlePath(digest)
	data, err := source.ReadFile(path)
	if err != nil {
		return source.Bundle{}, err
	}
	if source.Digest(data) != digest {
		return source.Bundle{}, stop(source.CodeDigest, "the bundle "+path+" has another digest",
			"put the bundle there again", nil)
	}
	keys, err := source.ReadKeys(c.Keys)
	if err != nil {
		return source.Bundle{}, err
	}
	return source.Open(path, data, source.Options{Keys: keys})
}

// Revoked returns why a pod of namespace, which names named and runs with the bundle digest, must
// end, or nil.
func Revoked(namespace, named, digest string) error {
	c, err := Read()
	if err == nil {
		var now string
		if now, err = c.Choose(namespace, named); err == nil && now != digest {
			err = stop("pod.policy", "the default policy is another now", "start the pod again", nil)
		}
	}
	if err == nil {
		_, err = c.bundle(digest)
	}
	if err != nil {
		return stop("pod.revoked", "the pod's policy "+digest+" was revoked",
			"start the pod again with a policy that the node has", err)
	}
	return nil
}

func stop(code, message, hint string, err error) error {
	return &proposal.StopError{Code: code, Message: message, Hint: hint, Err: err}
}
