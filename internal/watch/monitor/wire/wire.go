// SPDX-License-Identifier: Apache-2.0

// Package wire defines the messages between fumehood's sink in gVisor's kernel and the
// supervisor, and their encoding. Both ends are built from one commit and share it.
//
// # Format
//
// One message is one record of a SOCK_SEQPACKET socket, of at most MaxMessage bytes:
//
//	header   that of package frame, with Version, a Kind and a seq
//	body     the fields of the kind's struct in order
//
// Integers are little-endian and have the width of their Go type. A string is its
// length in two bytes and its bytes, a list its length in two bytes and its items, a
// digest 32 bytes, a bool one byte that is 0 or 1. Nothing may follow. Each message
// has exactly one encoding, so decoding and encoding again gives the same bytes.
//
// The sink's seq begins with 1 and increases by one with each message of any kind: a
// gap means that messages were lost. An Order's seq counts the supervisor's Orders; a
// Verdict has the seq of the Exec that it answers.
//
// # What it does not protect against
//
// The supervisor treats every byte as written by an attacker, because a sandbox's
// kernel can be broken into. Decoding allocates no more than the message is long, and
// never trusts a length. The socket ensures that the sender is the sandbox.
package wire

import (
	"path"

	"github.com/fumehood/fumehood/internal/kit/elf"
	"github.com/fumehood/fumehood/internal/kit/frame"
)

// Version is the protocol's version. A message with another version is refused.
const Version = 6

// Bounds. The sink truncates longer values before it sends them.
const (
	MaxMessage = 256 << 10
	MaxPath    = 4096
	MaxLine    = 128 // of a script's first line
	MaxFault   = 1024
	MaxWord    = 1024 // of argv, unless a text's process starts it
	MaxWords   = 256
	MaxArgv    = 20 << 10 // bytes of all words together
	TextWord   = 32 << 10 // of argv, for a text's process: what it starts is decided by its argv
	TextWords  = 16 << 10
	TextArgv   = 144 << 10 // bytes of all words together: more than xargs passes by default
	MaxVars    = 256
	MaxVar     = 4096     // of a variable, with its name and value
	MaxEnv     = 24 << 10 // bytes of all variables together
	MaxNames   = 32       // of environment variables
	MaxName    = 64
	MaxScripts = 6              // of a chain of scripts, as many as Linux follows
	MaxFiles   = MaxScripts + 1 // and the loader of the last one
	// MaxGenerations is how many generations live at once, at most, besides the current one.
	MaxGenerations = 64
	// MaxReads is how many paths of a workspace can be reported as read, at most.
	MaxReads = 20_000
)

// A Kind is a kind of message.
type Kind uint8

// The kinds. The supervisor sends Verdicts and Orders, the sink all others.
const (
	KindHello   Kind = 1 // no body: the sink is active
	KindExec    Kind = 2
	KindEvent   Kind = 3
	KindMark    Kind = 4
	KindVerdict Kind = 5
	KindOrder   Kind = 6
	KindReads   Kind = 7
	kinds       Kind = 8
)

// A FileLayer says where a file is; see proposal's Layer constants.
type FileLayer uint8

// The layers. The zero Layer is the least trusted.
const (
	LayerOther FileLayer = iota
	LayerRootfs
	LayerWorkspace
	LayerWritten
	LayerMemory
	layers
)

// A File is the file of a program or of a script, or one that is loaded as code. For an
// interpreter, Named and Arg are the path and the argument in the first line of the script
// before it; for a loader, Named is the path in the program's headers.
type File struct {
	// Loaded reports that the file's code is mapped into a process that runs another
	// program: a library, a plugin, or the loader of the file before it.
	Loaded bool
	Named  string
	Arg    string
	Path   string
	Layer  FileLayer
	Size   uint64
	Digest [32]byte // SHA-256 of the content
	ELF    elf.Facts
}

// None is the generation of processes that are left of earlier commands, such as stopped
// interpreters, while there is no current one. The sink refuses their forks and execs.
const None uint32 = 0

// Lineages that the kernel assigns itself. The supervisor assigns all other numbers,
// with a Verdict: the process and its forks have that lineage until they exec.
const (
	LineageProgram uint32 = 0 // of a program that was decided, and of everything that it starts
	LineageFirst   uint32 = 1 // of a process that no other process of the sandbox started
	// LineageTool and all above it are of tools whose children are decided one by one. For
	// LineageTool itself, which is the command's first program, no Verdict assigned it.
	LineageTool uint32 = 1 << 31
)

// IsText reports whether a process of this lineage belongs to a decided text: what it starts is
// decided by its words and its environment.
func IsText(lineage uint32) bool { return lineage != LineageProgram && lineage < LineageTool }

// IsGit reports whether the program at this path is git or one of its own programs. It is a name: only
// for a file of the read-only root does it say what the file is.
func IsGit(program string) bool {
	return path.Base(program) == "git" || path.Base(path.Dir(program)) == "git-core"
}

// An ExecKey is everything that a reusable Verdict may depend on. Two Execs with equal keys
// that are Reusable have the same answer. It is encoded in one place, as a part of the
// message, and both ends compare that encoding: see AppendKey.
type ExecKey struct {
	Generation uint32 // that the process belongs to
	Unverified bool
	// Asked is the path that was passed to execve, absolute and without "." and "..", with
	// symbolic links as they were given; "" for a loaded file.
	Asked string
	// Files are the named file first, then the interpreter of each script, of which the last
	// one runs, and then its loader if that is not on the read-only root. If the first one is
	// Loaded, there is no other: the program From maps it as code.
	Files []File
}

// An Exec is an execve that is about to succeed, or a file that is about to be mapped as
// code: the sink asks about it, or reports it.
type Exec struct {
	ExecKey
	// Of is 0 when the sink waits for a Verdict with this message's seq; else the seq
	// of the Exec whose Verdict was used again.
	Of         uint64
	Allowed    bool   // by that Verdict
	Fault      string // why the sink refused it without asking; then Of is 0 and no Verdict is awaited
	Time       int64  // ns since 1970
	Pid        int32
	Parent     int32
	From       string // program that calls execve
	ParentPath string
	Cwd        string
	Lineage    uint32 // of the process that calls execve
	Named      string // as passed to execve
	ArgvDigest [32]byte
	ArgvCut    bool
	Argv       []string
	Env        []string // names of variables that control a loader or an interpreter
	// Vars is the whole environment, NAME=value each, if Lineage is a text's. VarsCut says that
	// it is incomplete.
	Vars    []string
	VarsCut bool
}

// IsLoad reports whether e is about a file that is mapped as code, and starts nothing.
func (e *Exec) IsLoad() bool { return len(e.Files) > 0 && e.Files[0].Loaded }

// IsReusable reports whether the Verdict about e may be used for another Exec with the same
// ExecKey, and whether one may be used for e.
func (e *Exec) IsReusable() bool {
	return e.Fault == "" && len(e.Env) == 0 && (e.Lineage == LineageProgram || e.IsLoad())
}

// The kinds of Events; see proposal's Event constants.
const (
	EventExit uint8 = iota + 1
	EventWrite
	EventRename
	EventRemove
	EventLink
	EventMode
	EventConnect
	EventListen
	EventSend
	EventPrivilege
	events
)

// An Event is any other observed action of a process.
type Event struct {
	Generation uint32
	Event      uint8
	Time       int64
	Pid        int32
	Parent     int32
	Program    string
	Path       string
	Target     string
	Address    string
	Call       string
	Status     int32
	Errno      uint16
	Unverified bool
	Lineage    uint32 // of the process
}

// A Mark answers an Order: everything that happened before the Order was read has
// been sent before it. Its counts are of the Order's generation.
type Mark struct {
	Token      uint64
	Generation uint32
	Alive      uint32 // processes of the generation, if the Order is to signal, to end, to hold or to save
	Stopping   uint32 // those of Alive that ActHold only stops
	Writes     uint64 // files opened for writing inside the workspace, and again elsewhere: not sent one by one
	Processes  uint64 // that ended
	Bytes      uint64 // written by write and similar calls
	Dropped    uint64 // since the sandbox began
}

// A Read is a path of the workspace's own tree, below what was written, of which processes have
// learned something: at least what is there, or that nothing is, and with Content the content of
// a file, the list of a directory or the target of a link.
type Read struct {
	Path    string // relative; "." is the workspace
	Content bool
	// Optional means that this was learned only after the Order's Until.
	Optional bool
}

// Reads is a part of what was read. All parts are sent before the Mark that answers an Order with
// ActReads, and no path twice, except with and without Optional.
type Reads struct {
	Over bool // there was more than can be said; then List is empty
	List []Read
}

// AddRead adds r to the last of parts, or to a new one if that would be longer than a message.
func AddRead(parts []Reads, r Read) []Reads {
	last := &parts[len(parts)-1]
	if len(last.List) >= maxPart {
		parts = append(parts, Reads{})
		last = &parts[len(parts)-1]
	}
	last.List = append(last.List, r)
	return parts
}

// maxPart is how many Reads with paths of MaxPath bytes fit one message.
const maxPart = MaxMessage/(MaxPath+4) - 1

// A Verdict answers an Exec.
type Verdict struct {
	Allow bool
	// Keep allows the sink to use the Verdict for every Reusable Exec with the same ExecKey.
	Keep bool
	// Lineage is the process's new lineage, if the Exec is allowed.
	Lineage uint32
}

// An Act is what an Order asks for.
type Act uint8

// The Acts. Each also asks for a Mark.
const (
	// ActBegin makes Generation the current one, which has not been used before: what belongs
	// to no generation that lives in the background belongs to it from then on. It voids
	// every Verdict that was kept and every lineage that was given to such a process.
	ActBegin Act = iota + 1
	// ActCount asks for the counts of Generation.
	ActCount
	// ActDetach lets Generation, the current one, live in the background: its first process,
	// Pid, and all that descends from it. The current generation is None then.
	ActDetach
	// ActSignal sends Signal to every process of Generation, which lives in the background, or to Pid only.
	ActSignal
	// ActEnd ends Generation, which lives in the background: its processes are killed, and
	// cannot fork or exec any more. It is repeated until none is alive. The generation is
	// forgotten when the next one begins.
	ActEnd
	// ActReads asks for the Reads, with Optional for those that were first made after the
	// generation Until, and ends their recording. It also asks for the counts of Generation.
	ActReads
	// ActHold ends Generation, which lives in the background, as ActEnd does, but only stops its process Pid and,
	// unless Alone, all that descends from it. It is repeated until all are stopped or dead. What is stopped
	// belongs to the generations that begin later, as what no other process started does.
	ActHold
	// ActSave makes what is at rest ready to be saved: see RestoredFD. Alive is how many processes run, of
	// whatever generation. If there is one, nothing is changed. It also asks for the counts of Generation, which is
	// None before the first ActBegin.
	ActSave
	acts
)

// MaxDonated is the largest number of a descriptor with which the supervisor starts a process.
const MaxDonated = 255

// RestoredFD is the number under which a restored sandbox gets the host descriptor that was donated as the
// descriptor number of the process pid when the supervisor started that.
func RestoredFD(pid int32, number int) int { return int(pid)<<8 | number }

// An Order says what the sink must do with a generation: the processes of one command.
type Order struct {
	Token      uint64
	Act        Act
	Generation uint32
	// First is the lineage of processes that no other process of the sandbox started:
	// LineageFirst, LineageTool or LineageProgram. For ActBegin, as are Memory and Disk.
	First uint32
	// Memory is the memory that programs see, in bytes. Disk is how much the command may
	// write in addition to what was written before it.
	Memory uint64
	Disk   uint64
	// Control allows the processes to change the workspace's control places, for ActBegin.
	// Without it, only git may.
	Control bool
	Pid     int32  // for ActDetach, ActSignal and ActHold
	Signal  int32  // for ActSignal
	Until   uint32 // for ActReads
	Alone   bool   // for ActHold
}

var format = frame.Format[Kind]{Version: Version, Kinds: kinds, Max: MaxMessage}

// Open splits a message. It checks the header, not the body.
func Open(message []byte) (frame.Header[Kind], []byte, error) { return format.Open(message) }
