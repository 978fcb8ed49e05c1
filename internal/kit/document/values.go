// SPDX-License-Identifier: Apache-2.0

package document

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/fumehood/fumehood/internal/kit/pattern"
	"github.com/fumehood/fumehood/pkg/proposal"
)

// The limits of values that several formats have.
const (
	MaxShellText = 16 << 10 // bytes
	MaxCode      = 64 << 10 // bytes
	MaxWords     = 512      // of a command
	MaxPath      = 4 << 10  // bytes
	MaxBytes     = 1 << 40  // of any size: 1TiB
	MaxListed    = 64       // hosts, outputs, needs and variables
	MaxTimeout   = 24 * time.Hour

	maxArgv = 128 << 10 // bytes of all words together
)

const inside = `a path relative to the workspace, without ".."`

var (
	outside  = pattern.New(`^/|^\.\./|/\.\./|/\.\.$|^\.\.$`)
	duration = pattern.New(`^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$`)
	size     = pattern.New(`^[1-9][0-9]{0,14} ?(B|KB|MB|GB|TB|KiB|MiB|GiB|TiB)$`)

	envName = Shape{Kind: Text, Max: 128, Pattern: pattern.New(`^[A-Za-z_][A-Za-z0-9_]*$`),
		Want: "a variable's name: letters, digits and _"}
	host = Shape{Kind: Text, Max: 260, Pattern: pattern.New(`^[A-Za-z0-9.*:\[\]_-]+$`), Valid: validHost,
		Want: `a host such as "example.com", "*.example.com", "example.com:8080" or "192.0.2.1:443", without scheme and path, or "registry:npm"`}
)

// ShellText returns the shape of a shell text.
func ShellText(doc string) *Shape {
	return &Shape{Kind: Text, Max: MaxShellText, Lines: true, Verbatim: true, Valid: validShellText,
		Instead: map[Kind]string{List: "a list of words goes in argv"}, Doc: doc}
}

// ArgvShape returns the shape of a program and its arguments.
func ArgvShape(doc string) *Shape {
	return &Shape{Kind: List, Max: MaxWords, First: &Shape{Kind: Text, Max: MaxPath, Lines: true, Verbatim: true},
		Valid: argvFits,
		Items: &Shape{Kind: Text, Max: maxArgv, Lines: true, Empty: true, Verbatim: true, Scalar: true},
		Want:  `a list of words such as ["go", "test"]`, Instead: map[Kind]string{Text: "shell text goes in run"},
		Doc: doc}
}

// WorkspacePathShape returns the shape of a path relative to the workspace that does not leave it.
func WorkspacePathShape(doc string) *Shape {
	return &Shape{Kind: Text, Max: MaxPath, Never: outside, Want: inside, Doc: doc}
}

// EnvShape returns the shape of environment variables, which EnvOf converts.
func EnvShape(doc string) *Shape {
	return &Shape{Kind: Object, Max: MaxListed, Names: &envName, Want: "an object of environment variables",
		Values: &Shape{Kind: Text, Max: 32 << 10, Lines: true, Empty: true, Verbatim: true, Scalar: true}, Doc: doc}
}

// NetworkShape returns the shape of a list of hosts and registries.
func NetworkShape(doc string) *Shape { return ListOf(&host, doc) }

// LimitsShape returns the shape of a proposal's limits, which LimitsOf converts.
func LimitsShape() *Shape {
	return &Shape{Kind: Object, Want: "an object of limits", Doc: "Requested limits. Policy may grant less.",
		Fields: []Field{
			Optional("wall", DurationShape("Time from the start until the last process has ended.")),
			Optional("cpus", &Shape{Kind: Number, Low: 0.01, High: 1024,
				Want: "a number of processors from 0.01 to 1024",
				Doc:  "Processors."}),
			Optional("memory", Size("Memory of the whole sandbox.")),
			Optional("pids", countShape(4194304, "Processes and threads.")),
			Optional("disk", Size("Everything written to the workspace, HOME and /tmp.")),
			Optional("files", countShape(1048576, "Open files of one process.")),
			Optional("output", Size("Standard output and standard error together.")),
		}}
}

// ID returns the shape of a proposal's id.
func ID(doc string) *Shape {
	return &Shape{Kind: Text, Max: 64, Doc: doc, Scalar: true,
		Pattern: pattern.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`),
		Want:    "at most 64 letters, digits, dots, _ and -, the first a letter or digit"}
}

// ListOf returns the shape of a list of at most MaxListed different items.
func ListOf(items *Shape, doc string) *Shape {
	return &Shape{Kind: List, Max: MaxListed, Items: items, Once: true, Doc: doc}
}

// maxSeconds is the highest duration written as a number. What is more may have been meant as
// milliseconds.
const maxSeconds = 3600

// DurationShape returns the shape of a duration of at most MaxTimeout, which DurationOf converts.
// A number counts seconds.
func DurationShape(doc string) *Shape {
	return &Shape{Kind: Text, Max: 64, Pattern: duration, Want: `a duration such as "90s" or "2m"`, Doc: doc,
		Valid: validDuration,
		Or: &Shape{Kind: Number, Low: 0.001, High: maxSeconds,
			Want: `a duration such as "90s" or "2m", or at most 3600 seconds as a number`}}
}

// OneOrMore returns s, a list, also for one of its items, which TextsOf returns.
func OneOrMore(s *Shape) *Shape {
	s.Or = s.Items
	return s
}

func countShape(high float64, doc string) *Shape {
	return &Shape{Kind: Number, Low: 1, High: high, Integer: true,
		Want: fmt.Sprintf("a whole number from 1 to %.0f", high), Doc: doc}
}

// Size returns the shape of a number of bytes, which SizeOf converts.
func Size(doc string) *Shape {
	want := `a number of bytes, or a size such as "512MiB" or "2GiB", at most 1TiB`
	return &Shape{Kind: Number, Low: 1, High: MaxBytes, Integer: true, Want: want, Doc: doc,
		Or: &Shape{Kind: Text, Max: 32, Pattern: size, Want: want, Valid: validSize}}
}

func argvFits(n *Node) string {
	total := 0
	for _, item := range n.Items {
		total += len(item.Value)
	}
	if total > maxArgv {
		return fmt.Sprintf("its words are %d bytes long together; at most %d are allowed", total, maxArgv)
	}
	return ""
}

// validShellText refuses what surrounds a command where people show it to each other.
func validShellText(n *Node) string {
	switch text := strings.TrimSpace(n.Value); {
	case strings.HasPrefix(text, "```"):
		return "begins with a line of backticks: give only the command"
	case strings.HasPrefix(text, "$ "):
		return `begins with the prompt "$ ": give only the command`
	}
	return ""
}

func validDuration(n *Node) string {
	d, err := time.ParseDuration(n.Value)
	if err != nil || d <= 0 || d > MaxTimeout {
		return fmt.Sprintf("invalid value %s: want more than 0 and at most 24h", Quote(n.Value))
	}
	return ""
}

func validSize(n *Node) string {
	if b := bytesOf(n); b < 1 || b > MaxBytes {
		return fmt.Sprintf("invalid value %s: at most 1TiB is allowed", Quote(n.Value))
	}
	return ""
}

var units = map[string]float64{
	"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
}

// bytesOf reads a size, written as a number or with a unit. Every size up to
// MaxBytes is exact in a float64; larger ones only need to stay larger.
func bytesOf(n *Node) float64 {
	digits := strings.TrimRight(n.Value, " BKMGTi")
	v, _ := strconv.ParseFloat(digits, 64)
	if unit := strings.TrimLeft(n.Value[len(digits):], " "); unit != "" {
		v *= units[unit]
	}
	return v
}

func numberOf(n *Node) (float64, error) { return strconv.ParseFloat(n.Value, 64) }

// EnvOf converts a checked object of variables; nil means none.
func EnvOf(n *Node) map[string]string {
	if n == nil {
		return nil
	}
	env := make(map[string]string, len(n.Members))
	for _, m := range n.Members {
		env[m.Name] = m.Value.Value
	}
	return env
}

// LimitsOf converts checked limits; nil means none.
func LimitsOf(n *Node) *proposal.Limits {
	if n == nil {
		return nil
	}
	return &proposal.Limits{
		Wall:   DurationOf(n.Get("wall")),
		CPUs:   amountOf(n.Get("cpus")),
		Memory: SizeOf(n.Get("memory")),
		Pids:   int(amountOf(n.Get("pids"))),
		Disk:   SizeOf(n.Get("disk")),
		Files:  int(amountOf(n.Get("files"))),
		Output: SizeOf(n.Get("output")),
	}
}

// DurationOf converts a checked duration; nil means 0.
func DurationOf(n *Node) proposal.Duration {
	if n == nil {
		return 0
	}
	if n.Kind == Number {
		return proposal.Duration(amountOf(n) * float64(time.Second))
	}
	d, err := time.ParseDuration(n.Value)
	if err != nil {
		panic("document: internal error: a checked duration cannot be read: " + err.Error())
	}
	return proposal.Duration(d)
}

// IntOf returns the value of a checked whole number, or 0 without one.
func IntOf(n *Node) int { return int(amountOf(n)) }

// SizeOf converts a checked size; nil means 0.
func SizeOf(n *Node) proposal.Bytes { return proposal.Bytes(amountOf(n)) }

func amountOf(n *Node) float64 {
	switch {
	case n == nil:
		return 0
	case n.Kind == Text:
		return bytesOf(n)
	}
	v, err := numberOf(n)
	if err != nil {
		panic("document: internal error: a checked number cannot be read: " + err.Error())
	}
	return v
}

// IsNumber reports whether s is a number in JSON's grammar.
func IsNumber(s string) bool { return jsonNumber.MatchString(s) }
