// SPDX-License-Identifier: Apache-2.0

package proposal

// An Exec is one execve in a sandbox, as gVisor's kernel saw it before the program
// began: the input of policy's decision point fumehood.exec. Paths, words and names
// are a stranger's bytes; those that are not UTF-8 are shown with U+FFFD and bound
// by ArgvDigest.
type Exec struct {
	Command    string   `json:"command"` // id of the proposal that it belongs to
	Path       string   `json:"path"`    // of the file that would run, links resolved by the kernel
	Argv       []string `json:"argv"`    // the first words, each cut
	ArgvCut    bool     `json:"argv_cut"`
	ArgvDigest string   `json:"argv_digest"` // "sha256:" and hex, over each word and a zero byte
	Env        []string `json:"env"`         // names only, and only those that steer a loader or an interpreter
	Cwd        string   `json:"cwd"`
	Pid        int      `json:"pid"`    // thread group in the sandbox
	Parent     int      `json:"parent"` // of Pid; 0 for a command's first process
	ParentPath string   `json:"parent_path"`
	From       string   `json:"from,omitempty"` // program that calls execve; "" when the supervisor starts it
	Digest     string   `json:"digest"`         // of the file's content, "sha256:" and hex
	ELF        *ELF     `json:"elf,omitempty"`  // nil for a script
	Layer      string   `json:"layer"`          // where the file lies: a Layer constant
	Script     string   `json:"script"`         // when Path is the interpreter of a script: the script
	First      bool     `json:"first"`          // the command's first process, which the supervisor starts itself
	// Same are the paths of programs of the root file system with the content of the
	// file, when it lies elsewhere: a copy of curl is curl. For a file of the root file
	// system that many hard links lead to they are those, or the first of them.
	Same []string `json:"same"`
	// Grants are what the command was granted beside its limits: "built" lets it run
	// programs from places that it can write to.
	Grants []string `json:"grants"`
	// Text says that the process which starts it is one of the decided text's own: its
	// shell, a fork of that, or an inner shell or launcher that the analysis followed.
	Text bool `json:"text,omitempty"`
	// Named is the path that execve was given, of a text's process.
	Named string `json:"named,omitempty"`
	// Variables are the names of those that differ from the environment that the command
	// was started with, of a text's process.
	Variables []string `json:"variables,omitempty"`

	// What follows is what a decision about a text's process needs; it is not recorded.

	// Lineage is the kernel's number of what was decided for the process: a Lineage
	// constant, or one that an ExecDecision gave.
	Lineage uint32 `json:"-"`
	// Whole is the argv, and Partial says that something of it is missing.
	Whole []string `json:"-"`
	// Renamed says that the file is a script: the kernel puts its path in the place of
	// the first word, and no program ever sees what stood there.
	Renamed bool `json:"-"`
	Partial bool `json:"-"`
	// Changed are the variables that differ from those that the command was started
	// with, by name. One that is gone has the empty value. EnvCut says that something of
	// the environment is missing.
	Changed []Assign `json:"-"`
	EnvCut  bool     `json:"-"`
}

// Lineages that are not given by an ExecDecision.
const (
	LineageProgram uint32 = 0 // of a program that was decided, and all that it starts
	LineageFirst   uint32 = 1 // of a process that the sandbox itself starts for a command
)

// An ELF says what kind of program a file is, as its own headers say. They bind the
// kernel, so a file cannot lie about Type and Interpreter; who makes a file can give it
// any Soname, and can hide that it is a Loader.
type ELF struct {
	Type string `json:"type"` // "exec", or "dyn" for what can be loaded anywhere
	// Interpreter is the path of the dynamic loader that the kernel starts with it.
	Interpreter string `json:"interpreter,omitempty"`
	Soname      string `json:"soname,omitempty"` // name as a library
	Static      bool   `json:"static,omitempty"` // needs no loader, and is none
	// Loader says that the file is a library that starts by itself, as a dynamic loader
	// does.
	Loader bool `json:"loader,omitempty"`
}

// Where a program's file lies. Everything but LayerRootfs and LayerWorkspace is
// writable from inside.
const (
	LayerRootfs    = "rootfs"    // the read-only root file system
	LayerWorkspace = "workspace" // the pull request's own file, unchanged
	LayerWritten   = "written"   // changed or made in the sandbox
	LayerMemory    = "memory"    // a memfd, or a file without a name
	LayerOther     = "other"     // nothing of the above, or not known
)

// An ExecDecision is policy's answer about one Exec. Only Allow lets it run.
type ExecDecision struct {
	Effect Effect   `json:"effect"`
	Rules  []string `json:"rules"`
	Reason *Reason  `json:"reason,omitempty"` // the first that speaks against it
	// Cacheable says that the answer depends on nothing but Path, Digest, Layer,
	// Command, Grants and Env. It is never set when Env is not empty: an Exec whose Env
	// is not empty is always asked about, and never answered from a cache.
	Cacheable bool `json:"cacheable"`
	// Observed says that it would have been refused.
	Observed bool `json:"observed,omitempty"`
	// Start says how a program that a text's process starts was judged: a Start constant.
	Start string `json:"start,omitempty"`
	// Lineage is the process's once it is the program. It is not recorded.
	Lineage uint32 `json:"-"`
}

// How a program that a text's process starts was judged.
const (
	StartPredicted = "predicted" // the text names it, with all its words
	StartDecided   = "decided"   // by fumehood.command, about its real argv
	StartRefused   = "refused"   // by fumehood.command, or because nothing could be decided
)
