// SPDX-License-Identifier: Apache-2.0

// Package config reads a repository's configuration file, .github/fumehood.yml: it
// decodes a document of the format fumehood.config/v1 into a Config, or into a list of
// problems with their positions.
//
//	schema: fumehood.config/v1
//	setup:
//	  - npm ci
//	  - argv: [make, fixtures]
//	    timeout: 5m
//	registries: [npm]
//	services: [postgres]
//	limits:
//	  memory: 4GiB
//	timeout: 15m
//
// The document is one of at most MaxDocument bytes, JSON or YAML, read as strictly as a
// plan: see internal/kit/document. One table (fields.go) defines the fields, and the
// published schema, testdata/schema/fumehood.config.v1.json, is generated from it. Merge
// combines a file with inputs and flags, and names the source of each value.
//
// # What a Config cannot do
//
// A Config holds requests. Nothing in it widens policy, as long as the caller does the
// following. The package does no I/O, so it can check none of it.
//
//   - Read the file at the tip of the default branch, or locally from the working tree.
//     Never read it from a pull request in CI: tools, rootfs and policy choose what the
//     sandbox shows and which rules apply.
//   - Stop if Decode returns a Problem. The zero Config is valid, so a rejected file must
//     not become one.
//   - Decide Setup's commands and Registries like proposals: they are granted by policy or
//     not at all. Registries may only remove from what policy grants.
//   - Treat Limits and Timeout as requests below policy's limits and the operator's.
//   - Give Policy the role of a restricting layer, read at the default branch.
//   - Show Tools and Rootfs read-only, after resolving symbolic links, and refuse
//     directories that someone other than root and the operator can write to.
//   - Start Services inside the sandbox, never on the host.
//
// The zero Config is the strictest useful one: set-up is detected, its registries are those
// that it needs, nothing else of the host is visible, and no service is requested.
package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/fumehood/fumehood/internal/kit/document"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// Schema is the value of a file's "schema" field.
const Schema = "fumehood.config/v1"

// Path is the file's place in a repository.
const Path = ".github/fumehood.yml"

// The limits of a file.
const (
	MaxDocument = 64 << 10 // bytes
	MaxCommands = 64       // of setup
)

// A Config is a configuration file. Fields that the file leaves out are zero.
type Config struct {
	Schema string `json:"schema"`
	Setup  Setup  `json:"setup,omitzero"`
	// Projects are set up whatever commands touch; relative to the workspace.
	Projects   []string   `json:"projects,omitempty"`
	Registries Registries `json:"registries,omitzero"`
	Rootfs     string     `json:"rootfs,omitempty"` // see the field's shape; "" means host
	Tools      []string   `json:"tools,omitempty"`  // directories of the host that come first in PATH; absolute
	// AllowTools are names of programs that read files, for policy.
	AllowTools []string          `json:"allow-tools,omitempty"`
	Hide       []string          `json:"hide,omitempty"`     // patterns of paths that commands do not see: checkout.HiddenPaths
	Services   []string          `json:"services,omitempty"` // postgres, redis, mysql
	Limits     *proposal.Limits  `json:"limits,omitempty"`   // requested for each command; nil means policy's
	Timeout    proposal.Duration `json:"timeout,omitempty"`  // of the whole run; 0 means the caller's
	Policy     string            `json:"policy,omitempty"`   // directory of the repository; "" means none
	Cache      Cache             `json:"cache,omitzero"`
	// CompareBase says whether commands that fail are run on the base of the pull request, too.
	CompareBase CompareBase `json:"compare-base,omitzero"`
	Results     string      `json:"results,omitempty"` // one of ResultModes; "" means off
	Layers      *bool       `json:"layers,omitempty"`  // use layers of earlier runs; nil means true, and false in CI
	Checkout    Checkout    `json:"checkout,omitzero"`
	Comment     Comment     `json:"comment,omitzero"`
	Review      Review      `json:"review,omitzero"`

	// Digest is "sha256:" and the lower-case hex SHA-256 of the file, byte for byte.
	Digest string `json:"-"`

	name  string         // of the file
	lines map[string]int // of each given field and limit
}

// A Mode is how set-up is determined. The zero Mode detects it.
type Mode int

// The modes of set-up.
const (
	Auto   Mode = iota // detect it from lock files and manifests
	None               // no set-up
	Listed             // the listed commands
)

// Setup is what prepares the workspace before other commands run.
type Setup struct {
	Mode     Mode
	Commands []Command // if Mode is Listed; at most MaxCommands, in this order
}

// A Command is one command of set-up. Exactly one of Run and Argv is set.
type Command struct {
	Run     string            `json:"run,omitempty"`     // shell text
	Argv    []string          `json:"argv,omitempty"`    // program and arguments, no shell
	Cwd     string            `json:"cwd,omitempty"`     // relative to the workspace
	Env     map[string]string `json:"env,omitempty"`     //
	Network []string          `json:"network,omitempty"` // requested hosts; none means the registries in force
	Timeout proposal.Duration `json:"timeout,omitempty"` // 0 means policy's
}

// Proposal returns c as a proposal of the phase set-up. Like any proposal, it runs only if
// policy allows it.
func (c Command) Proposal(id string) proposal.Proposal {
	return proposal.Proposal{
		ID: id, Run: c.Run, Argv: c.Argv, Cwd: c.Cwd, Env: c.Env, Network: c.Network, Timeout: c.Timeout,
		Phase: proposal.PhaseSetup, Why: "set-up command of " + Path,
	}
}

// Registries are the registries that set-up may read. The zero value means those that
// the detected set-up needs.
type Registries struct {
	Listed bool     // only Names, which may be empty
	Names  []string // as in "registry:NAME"
}

// Allow reports whether set-up may request the registry called name. It is not a grant:
// policy decides.
func (r Registries) Allow(name string) bool {
	if !r.Listed {
		return true
	}
	return slices.Contains(r.Names, name)
}

// A CompareBase says whether commands that fail are run on the base. The zero value compares.
type CompareBase struct{ Off bool }

// A Cache says whether what only the host's own toolchains determine, such as a compiled
// standard library, is kept on the host from run to run.
type Cache struct{ Off bool }

// ResultModes are all values of Config.Results, the default first: whether results of commands
// that request it are used. A file cannot request that results are kept: fumehood run reads it
// from the workspace, which may be a pull request's.
var ResultModes = []string{"off", "read"}

// Checkout requests parts of a commit that are not in its repository's objects, from the
// same server. It has no effect on a workspace that the caller provides.
type Checkout struct {
	Submodules bool `json:"submodules,omitempty"`
	LFS        bool `json:"lfs,omitempty"`
}

// Comment requests how much the pull request's comment shows. It never removes what a
// person must read before an approval.
type Comment struct {
	Detail string `json:"detail,omitempty"` // one of Details; "" means DetailNormal
	Length int    `json:"length,omitempty"` // maximum length, in UTF-16 units; 0 means GitHub's limit
	// Mention is one of Mentions; "" means MentionNone.
	Mention string `json:"mention,omitempty"`
	// Lines is one of Lines; "" means LinesNone.
	Lines string `json:"lines,omitempty"`
}

// Review is guidance for a model that reviews: see internal/review. It is text for a model, and
// never widens policy, budget or network.
type Review struct {
	Paths      []string `json:"paths,omitempty"`    // patterns of files to review; all if empty
	Ignore     []string `json:"ignore,omitempty"`   // patterns of files to leave out
	Focus      []string `json:"focus,omitempty"`    // what to look at
	Severity   string   `json:"severity,omitempty"` // the lowest that is reported; "" for all
	Language   string   `json:"language,omitempty"` // of findings; "" for English
	Transcript bool     `json:"transcript,omitempty"`
}

// The values of Comment.Detail.
const (
	DetailQuiet  = "quiet"  // what needs attention, without the output of commands
	DetailNormal = "normal" // the output of commands is folded
	DetailFull   = "full"   // the output of commands that need attention is open
)

// Details are all values of Comment.Detail, the default first.
var Details = []string{DetailNormal, DetailQuiet, DetailFull}

// The values of Comment.Mention. GitHub sends no notification about an edited comment, so that the
// end of a run is announced by a new comment or not at all.
const (
	MentionNone      = "none"      // no comment announces the end of a run
	MentionRequester = "requester" // a new comment mentions the person whose comment requested the run
)

// Mentions are all values of Comment.Mention, the default first.
var Mentions = []string{MentionNone, MentionRequester}

// The values of Comment.Lines. Comments on lines notify everyone who follows the pull request.
const (
	LinesNone    = "none"    // nothing but findings is posted on lines
	LinesLinters = "linters" // what linters and formatters report on lines that the pull request changes
)

// Lines are all values of Comment.Lines, the default first.
var Lines = []string{LinesNone, LinesLinters}

// The bounds of Comment.Length, in UTF-16 units. The second is GitHub's limit.
const (
	MinComment = 4000
	MaxComment = 65536
)

// Decode reads the configuration file in data.
//
// A name that ends in .json, .yaml or .yml determines the format. For any other name the
// content does: JSON begins with a brace. The name also appears in the sources of Merge.
//
// The file is accepted only if no Problem is returned. Otherwise the Config holds only the
// file's Digest, and the Problems, at most 20, are in the order of the file. Their columns
// count characters from 1. Messages and paths quote what they repeat of the file, so they
// are safe to print.
func Decode(data []byte, name string) (Config, []proposal.Problem) {
	rejected := Config{Digest: document.Digest(data)}
	ps := document.Problems{About: "configuration file"}
	root := document.Read(data, name, MaxDocument, &ps)
	if root != nil {
		document.Check(root, &configShape, "", &ps)
		checkCommands(root.Get("setup"), &ps)
	}
	if len(ps.List) > 0 {
		return rejected, ps.SortedProblems()
	}
	c := configOf(root)
	c.Schema, c.Digest, c.name = root.TextOf("schema"), rejected.Digest, name
	return c, nil
}

// Describe formats p in one line: ".github/fumehood.yml:7:5: timeout: …".
func Describe(name string, p proposal.Problem) string { return document.DescribeProblem(name, p) }

// checkCommands requires exactly one of run and argv, which a shape cannot express.
func checkCommands(setup *document.Node, ps *document.Problems) {
	if setup == nil || setup.Kind != document.List || len(setup.Items) > MaxCommands {
		return
	}
	for i, c := range setup.Items {
		if c.Kind != document.Object || ps.IsFull() {
			continue
		}
		switch run, argv := c.Get("run"), c.Get("argv"); {
		case run == nil && argv == nil:
			ps.Add(c.At, document.JoinIndex("setup", i),
				"requests nothing: give run (shell text) or argv (a list of words)")
		case run != nil && argv != nil:
			ps.Add(c.At, document.JoinIndex("setup", i), "has run and argv; exactly one of them is allowed")
		}
	}
}

// configOf converts a checked object. It may lack required fields.
func configOf(root *document.Node) Config {
	c := Config{
		Setup: setupOf(root.Get("setup")), Projects: root.TextsOf("projects"),
		Registries: registriesOf(root.Get("registries")),
		Rootfs:     root.TextOf("rootfs"), Tools: root.TextsOf("tools"), Services: root.TextsOf("services"),
		AllowTools: root.TextsOf("allow-tools"), Hide: root.TextsOf("hide"),
		Limits: document.LimitsOf(root.Get("limits")), Timeout: document.DurationOf(root.Get("timeout")),
		Policy: root.TextOf("policy"), Cache: cacheOf(root.Get("cache")),
		CompareBase: CompareBase(cacheOf(root.Get("compare-base"))), Results: root.TextOf("results"),
		Layers:   layersOf(root.Get("layers")),
		Checkout: checkoutOf(root.Get("checkout")), Comment: commentOf(root.Get("comment")),
		Review: reviewOf(root.Get("review")),
		lines:  map[string]int{},
	}
	for _, m := range root.Members {
		c.lines[m.Name] = m.At.Line
		if m.Name != "limits" {
			continue
		}
		for _, limit := range m.Value.Members {
			c.lines[document.JoinName(m.Name, limit.Name)] = limit.At.Line
		}
	}
	return c
}

func setupOf(n *document.Node) Setup {
	switch {
	case n == nil || n.Value == auto:
		return Setup{}
	case n.Kind == document.Text:
		return Setup{Mode: None}
	}
	s := Setup{Mode: Listed}
	for _, item := range n.Items {
		if item.Kind == document.Text {
			s.Commands = append(s.Commands, Command{Run: item.Value})
			continue
		}
		s.Commands = append(s.Commands, Command{
			Run: item.TextOf("run"), Argv: item.TextsOf("argv"), Cwd: item.TextOf("cwd"),
			Env:     document.EnvOf(item.Get("env")),
			Network: item.TextsOf("network"), Timeout: document.DurationOf(item.Get("timeout")),
		})
	}
	return s
}

func registriesOf(n *document.Node) Registries {
	switch {
	case n == nil || n.Value == auto:
		return Registries{}
	case n.Kind == document.Text:
		return Registries{Listed: true}
	}
	r := Registries{Listed: true}
	for _, item := range n.Items {
		r.Names = append(r.Names, item.Value)
	}
	return r
}

func checkoutOf(n *document.Node) Checkout {
	return Checkout{Submodules: n.TextOf("submodules") == "true", LFS: n.TextOf("lfs") == "true"}
}

func commentOf(n *document.Node) Comment {
	return Comment{Detail: n.TextOf("detail"), Length: document.IntOf(n.Get("length")), Mention: n.TextOf("mention"),
		Lines: n.TextOf("lines")}
}

func reviewOf(n *document.Node) Review {
	if n == nil {
		return Review{}
	}
	return Review{Paths: n.TextsOf("paths"), Ignore: n.TextsOf("ignore"), Focus: n.TextsOf("focus"),
		Severity: n.TextOf("severity"), Language: n.TextOf("language"), Transcript: isTrue(n.Get("transcript"))}
}

func isTrue(n *document.Node) bool { return n != nil && n.Value == "true" }

func layersOf(n *document.Node) *bool {
	if n == nil {
		return nil
	}
	used := isTrue(n)
	return &used
}

func cacheOf(n *document.Node) Cache { return Cache{Off: n != nil && n.Value == "false"} }

// MarshalJSON encodes s as in a file: "auto", "none" or a list of commands.
func (s Setup) MarshalJSON() ([]byte, error) {
	switch s.Mode {
	case Auto:
		return json.Marshal(auto)
	case Listed:
		return marshalLine(s.Commands)
	}
	return json.Marshal(none)
}

// MarshalJSON encodes r as in a file: "auto", "none" or a list of names.
func (r Registries) MarshalJSON() ([]byte, error) {
	switch {
	case !r.Listed:
		return json.Marshal(auto)
	case len(r.Names) == 0:
		return json.Marshal(none)
	}
	return json.Marshal(r.Names)
}

// MarshalJSON encodes c as in a file: true or false.
func (c Cache) MarshalJSON() ([]byte, error) { return json.Marshal(!c.Off) }

// MarshalJSON writes true or false.
func (c CompareBase) MarshalJSON() ([]byte, error) { return json.Marshal(!c.Off) }

// IsZero reports whether c is the default.
func (c CompareBase) IsZero() bool { return !c.Off }

// marshalLine encodes v in one line, with <, > and & as they are: people read it.
func marshalLine(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("cannot encode configuration: %w", err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// IsZero reports whether s is the default, for omitzero.
func (s Setup) IsZero() bool { return s.Mode == Auto }

// IsZero reports whether r is the default, for omitzero.
func (r Registries) IsZero() bool { return !r.Listed }

// IsZero reports whether c is the default, for omitzero.
func (c Cache) IsZero() bool { return !c.Off }
