// SPDX-License-Identifier: Apache-2.0

package proposal

// An Exec is one execve in a sandbox, as gVisor's kernel saw it before the program began, or
// one file that a program is about to map as code: the input of policy's decision point
// fumehood.exec. Paths, words and names are untrusted
// bytes; those that are not UTF-8 are replaced with U+FFFD and bound by ArgvDigest.
type Exec struct {
	Command string `json:"command"` // ID of the proposal that it belongs to
	Path    string `json:"path"`    // of the file that would run, resolved by the kernel
	// Asked is the path that was passed to execve, absolute and without "." and "..", with
	// its links: /workspace/node_modules/.bin/x, where Path is what x leads to. For an
	// interpreter or a loader it is the path in the file that names it.
	Asked string `json:"asked,omitempty"`
	// Loaded reports that there is no execve: From maps the file as code, as it does a library,
	// a plugin or an extension. It has no argv. If the file is a program of the root file system,
	// or a copy of one, From is about to start it itself.
	Loaded     bool     `json:"loaded,omitempty"`
	Argv       []string `json:"argv"` // the first words, each cut
	ArgvCut    bool     `json:"argv_cut"`
	ArgvDigest string   `json:"argv_digest"` // "sha256:" and hex, over each word followed by a zero byte
	Env        []string `json:"env"`         // names only, only those that affect a loader or an interpreter
	Cwd        string   `json:"cwd"`
	Pid        int      `json:"pid"`    // thread group in the sandbox
	Parent     int      `json:"parent"` // of Pid; 0 for a command's first process
	ParentPath string   `json:"parent_path"`
	From       string   `json:"from,omitempty"` // program that calls execve, or loads the file; "" if the supervisor starts it
	Digest     string   `json:"digest"`         // of the file's content, "sha256:" and hex
	ELF        *ELF     `json:"elf,omitempty"`  // nil for a script
	Layer      string   `json:"layer"`          // where the file is: a Layer constant
	Script     string   `json:"script"`         // the script, if Path is its interpreter
	First      bool     `json:"first"`          // the command's first process, started by the supervisor itself
	// Same are the paths of programs of the root file system with the same content as
	// the file, if it is elsewhere: a copy of curl is curl. For a file of the root file
	// system with many hard links, they are the links, or the first of them.
	Same []string `json:"same"`
	// Grants are what the command was granted in addition to its limits: "built" lets
	// it run programs from places that it can write to.
	Grants []string `json:"grants"`
	// Text reports that the process that starts it belongs to the decided text itself: its
	// shell, a fork of that, or an inner shell or launcher that the analysis followed.
	Text bool `json:"text,omitempty"`
	// Named is the path passed to execve, for a text's process.
	Named string `json:"named,omitempty"`
	// Variables are the names of those that differ from the environment with which the
	// command was started, for a text's process.
	Variables []string `json:"variables,omitempty"`
	// Chain are the tools between the text and the process that starts it, if policy's table
	// lists what they may start: the text's command first, the tool that starts it last. It
	// is empty for what the text itself starts, and for tools that start any program.
	Chain []string `json:"chain,omitempty"`
	// Under is the tool of Chain whose list applies, "" if Chain is empty. It may have a
	// subcommand: "go tool".
	Under string `json:"under,omitempty"`

	// The following fields are needed to decide about a text's process; they are not recorded.

	// Lineage is the kernel's number for what was decided about the process: one of
	// package lineage's, or one from an ExecDecision.
	Lineage uint32 `json:"-"`
	// Whole is the argv, and Partial reports that some of it is missing.
	Whole []string `json:"-"`
	// Renamed reports that the file is a script: the kernel replaces the first word
	// with its path, and no program ever sees the original word.
	Renamed bool `json:"-"`
	Partial bool `json:"-"`
	// Changed are the variables that differ from those with which the command was
	// started, by name. A removed PATH has an empty value, and so have, for git, removed
	// variables with its configuration; others that are missing are not in it. EnvCut reports
	// that some of the environment is unknown.
	Changed []Assign `json:"-"`
	EnvCut  bool     `json:"-"`
}

// An ELF describes what kind of program a file is, according to its headers. The kernel
// follows them, so a file cannot lie about Type and Interpreter. Anyone who creates a
// file can give it any Soname, and can hide that it is a Loader.
type ELF struct {
	Type string `json:"type"` // "exec", or "dyn" for a file that can be loaded anywhere
	// Interpreter is the path of the dynamic loader that the kernel starts with it.
	Interpreter string `json:"interpreter,omitempty"`
	Soname      string `json:"soname,omitempty"` // name as a library
	Static      bool   `json:"static,omitempty"` // needs no loader, and is not one
	// Loader reports that the file is a library that can be started directly, as a
	// dynamic loader can.
	Loader bool `json:"loader,omitempty"`
}

// IsProgram reports whether the file is made to be started. A library that can be started, too, as a
// C library, has a soname. A script is not one: e is nil.
func (e *ELF) IsProgram() bool {
	return e != nil && (e.Type == "exec" || e.Type == "dyn" && e.Soname == "" && !e.Loader)
}

// Where a program's file is. Every layer except for LayerRootfs and LayerWorkspace is
// writable from inside.
const (
	LayerRootfs    = "rootfs"    // the read-only root file system
	LayerWorkspace = "workspace" // the pull request's own file, unchanged
	LayerWritten   = "written"   // changed or created in the sandbox
	LayerMemory    = "memory"    // a memfd, or a file without a name
	LayerOther     = "other"     // none of the above, or not known
)

// An ExecDecision is policy's decision about one Exec. Only Allow lets it run.
type ExecDecision struct {
	Effect Effect   `json:"effect"`
	Rules  []string `json:"rules"`
	Reason *Reason  `json:"reason,omitempty"` // the first reason against it
	// Cacheable reports that the decision depends only on the Exec's Command, Path, Asked, Loaded,
	// Digest, ELF, Layer, Same and Grants. It is never set if Env is not empty: such an Exec is
	// always decided, and never answered from a cache.
	Cacheable bool `json:"cacheable"`
	// Observed reports that it would have been refused.
	Observed bool `json:"observed,omitempty"`
	// Start is how a program that a text's process starts was judged: "predicted", if the text
	// contains it with all its words; "decided" by fumehood.command, from its real argv; or "refused".
	Start string `json:"start,omitempty"`
	// Lineage is the process's Lineage once it runs the program. It is not recorded.
	Lineage uint32 `json:"-"`
	// Chain and Under are the Exec's, as far as the decision knows them. They are recorded with it.
	Chain []string `json:"-"`
	Under string   `json:"-"`
}
