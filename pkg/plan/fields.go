// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/fumehood/fumehood/pkg/proposal"
)

const (
	maxShellText = 16 << 10
	maxCode      = 64 << 10
	maxStdin     = 256 << 10
	maxArgv      = 128 << 10 // bytes of all words together
	maxWords     = 512
	maxProse     = 4 << 10
	maxPath      = 4 << 10
	maxTimeout   = 24 * time.Hour
	maxBytes     = 1 << 40
	maxListed    = 64 // hosts, outputs, needs and variables
)

// planShape is the whole document.
var planShape = shape{kind: object, want: "a plan: an object with the fields schema and proposals", fields: []field{
	{"schema", true, &shape{kind: text, max: 64, choice: []string{proposal.PlanSchema}, want: strconv.Quote(proposal.PlanSchema),
		doc: "The version of this format."}},
	{"proposer", false, &shape{kind: text, max: 128, doc: "Who made the plan, for the report. It has no effect on decisions."}},
	{"proposals", true, &shape{kind: list, max: MaxProposals, items: &proposalShape,
		doc: "What to run, in this order."}},
}}

var proposalShape = shape{kind: object, want: "a proposal: an object with an id and one of run, argv and code", fields: []field{
	{"id", true, idShape("A name for this proposal, unique in the plan.")},
	{"run", false, &shape{kind: text, max: maxShellText, lines: true, doc: "Shell text."}},
	{"argv", false, &shape{kind: list, max: maxWords, first: &shape{kind: text, max: maxPath, lines: true}, valid: argvFits,
		items: &shape{kind: text, max: maxArgv, lines: true, empty: true},
		doc:   "A program and its arguments, started without a shell. At most 131072 bytes together."}},
	{"code", false, &shape{kind: text, max: maxCode, lines: true, doc: "A snippet in the given language."}},
	{"language", false, &shape{kind: text, max: 64, choice: []string{"python", "javascript", "bash", "sh"},
		want: `one of "python", "javascript", "bash" and "sh"`, doc: "The language of code."}},
	{"why", false, &shape{kind: text, max: maxProse, lines: true, doc: "Why it should run, for people."}},
	{"cwd", false, &shape{kind: text, max: maxPath, never: outside, want: inside,
		doc: "The working directory, relative to the workspace."}},
	{"env", false, &shape{kind: object, max: maxListed, names: &envName, want: "an object of environment variables",
		values: &shape{kind: text, max: 32 << 10, lines: true, empty: true}, doc: "Requested environment variables."}},
	{"stdin", false, &shape{kind: text, max: maxStdin, lines: true, doc: "The command's standard input."}},
	{"timeout", false, durationShape("The requested time limit.")},
	{"limits", false, &limitsShape},
	{"network", false, listOf(&host, "Requested hosts: a name, \"*.\" and a name for all names below it, either with \":\" and a port; an address, or an address and port; or \"registry:\" and one of "+strings.Join(registries, ", ")+".")},
	{"phase", false, &shape{kind: text, max: 64, choice: []string{proposal.PhaseSetup, proposal.PhaseRun}, want: `"setup" or "run"`,
		doc: "The phase; run if omitted. All proposals of setup come before the first of run."}},
	{"outputs", false, listOf(&output, "Files to export: paths or globs, relative to the workspace.")},
	{"needs", false, listOf(idShape(""), "Ids of earlier proposals that must succeed first.")},
	{"expect", false, &shape{kind: text, max: maxProse, lines: true, doc: "The expected outcome, shown next to the actual one."}},
	{fieldSandbox, false, &shape{kind: boolean, doc: "Request a new sandbox."}},
	{fieldFresh, false, &shape{kind: boolean, doc: "Deprecated: use new-sandbox."}},
}}

// The field that requests a new sandbox, and its old name.
const (
	fieldSandbox = "new-sandbox"
	fieldFresh   = "fresh"
)

var limitsShape = shape{kind: object, want: "an object of limits", doc: "Requested limits. Policy may grant less.", fields: []field{
	{"wall", false, durationShape("Time from the start until the last process has ended.")},
	{"cpus", false, &shape{kind: number, low: 0.01, high: 1024, want: "a number of processors from 0.01 to 1024", doc: "Processors."}},
	{"memory", false, sizeShape("Memory of the whole sandbox.")},
	{"pids", false, countShape(4194304, "Processes and threads.")},
	{"disk", false, sizeShape("Everything written to the workspace, HOME and /tmp.")},
	{"files", false, countShape(1048576, "Open files of one process.")},
	{"output", false, sizeShape("Standard output and standard error together.")},
}}

// synonyms are names that proposers of other tools use. A synonym is suggested
// only if it is a known field of the object.
var synonyms = map[string]string{
	"version": "schema", "author": "proposer", "agent": "proposer",
	"commands": "proposals", "steps": "proposals", "jobs": "proposals",
	"name": "id", "key": "id", "cmd": "run", "command": "run", "script": "run", "shell": "run", "bash": "run",
	"args": "argv", "snippet": "code", "source": "code", "lang": "language", "interpreter": "language",
	"reason": "why", "rationale": "why", "description": "why", "dir": "cwd", "workdir": "cwd",
	"working_directory": "cwd", "working-directory": "cwd", "environment": "env", "input": "stdin",
	"timeout_seconds": "timeout", "timeout-minutes": "timeout", "resources": "limits", "hosts": "network",
	"domains": "network", "egress": "network", "registries": "network", "stage": "phase", "step": "phase", "artifacts": "outputs", "files": "outputs", "depends_on": "needs", "depends-on": "needs",
	"after": "needs", "expected": "expect", "expects": "expect", "isolated": fieldSandbox, "new_sandbox": fieldSandbox,
	"cpu": "cpus", "mem": "memory", "ram": "memory", "processes": "pids", "nofile": "files", "time": "wall",
}

const inside = `a path relative to the workspace, without ".."`

var (
	outside  = regexp.MustCompile(`^/|^\.\./|/\.\./|/\.\.$|^\.\.$`)
	duration = regexp.MustCompile(`^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$`)
	size     = regexp.MustCompile(`^[1-9][0-9]{0,14} ?(B|KB|MB|GB|TB|KiB|MiB|GiB|TiB)$`)

	envName = shape{kind: text, max: 128, pattern: regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`),
		want: "a variable's name: letters, digits and _"}
	host = shape{kind: text, max: 260, pattern: regexp.MustCompile(`^[A-Za-z0-9.*:\[\]_-]+$`), valid: validHost,
		want: `a host such as "example.com", "*.example.com", "example.com:8080" or "192.0.2.1:443", without scheme and path, or "registry:npm"`}
	output = shape{kind: text, max: maxPath, never: outside, want: inside}
)

func idShape(doc string) *shape {
	return &shape{kind: text, max: 64, doc: doc, pattern: regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`),
		want: "at most 64 letters, digits, dots, _ and -, the first a letter or digit"}
}

func listOf(items *shape, doc string) *shape {
	return &shape{kind: list, max: maxListed, items: items, once: true, doc: doc}
}

func durationShape(doc string) *shape {
	return &shape{kind: text, max: 64, pattern: duration, want: `a duration such as "90s" or "2m"`, doc: doc, valid: validDuration}
}

func countShape(high float64, doc string) *shape {
	return &shape{kind: number, low: 1, high: high, integer: true, want: fmt.Sprintf("a whole number from 1 to %.0f", high), doc: doc}
}

func sizeShape(doc string) *shape {
	want := `a number of bytes, or a size such as "512MiB" or "2GiB", at most 1TiB`
	return &shape{kind: number, low: 1, high: maxBytes, integer: true, want: want, doc: doc,
		orText: &shape{kind: text, max: 32, pattern: size, want: want, valid: validSize}}
}

func argvFits(n *node) string {
	total := 0
	for _, item := range n.items {
		total += len(item.value)
	}
	if total > maxArgv {
		return fmt.Sprintf("its words are %d bytes long together; at most %d are allowed", total, maxArgv)
	}
	return ""
}

func validDuration(n *node) string {
	d, err := time.ParseDuration(n.value)
	if err != nil || d <= 0 || d > maxTimeout {
		return fmt.Sprintf("invalid value %s: want more than 0 and at most 24h", quote(n.value))
	}
	return ""
}

func validSize(n *node) string {
	if b := bytesOf(n); b < 1 || b > maxBytes {
		return fmt.Sprintf("invalid value %s: at most 1TiB is allowed", quote(n.value))
	}
	return ""
}

var units = map[string]float64{
	"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
}

// bytesOf reads a size, written as a number or with a unit. Every size up to
// maxBytes is exact in a float64; larger ones only need to stay larger.
func bytesOf(n *node) float64 {
	digits := strings.TrimRight(n.value, " BKMGTi")
	v, _ := strconv.ParseFloat(digits, 64)
	if unit := strings.TrimLeft(n.value[len(digits):], " "); unit != "" {
		v *= units[unit]
	}
	return v
}

func numberOf(n *node) (float64, error) { return strconv.ParseFloat(n.value, 64) }
