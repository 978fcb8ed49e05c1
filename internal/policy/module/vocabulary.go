// SPDX-License-Identifier: Apache-2.0

package module

import (
	"reflect"
	"slices"
)

// vocabularies are the closed lists of values, by the tag enum of the fields of inputs. Every such
// field may be empty, too. A test of package policy compares them with inputs.
var vocabularies = map[string][]string{
	"form":     {"run", "argv", "code"},
	"language": {"python", "javascript", "bash", "sh"},
	"phase":    {"setup", "run"},
	"origin":   {"proposer", "setup", "service"},
	"place":    places,
	"program":  slices.Concat([]string{"lookup", "system", "function", "none"}, places),
	"effect":   {"run", "write", "code"},
	"starts":   {"any", "listed", "none"},
	"stdin":    {"pipe", "file", "heredoc", "herestring"},
	"redirect": {"read", "write", "readwrite", "dup", "heredoc", "herestring", "process"},
	"code":     {"python", "javascript", "typescript"},
	"via":      {"code", "-c", "-e", "heredoc", "herestring"},
	"can": {"files-read", "files-write", "network", "process", "dynamic-code", "native-code", "project-code",
		"introspection", "environment", "concurrency", "time"},
	"layer":    {"rootfs", "workspace", "written", "memory", "other"},
	"elf":      {"exec", "dyn"},
	"step":     {"lookup", "connect", "hello", "request", "datagram"},
	"protocol": {"tcp", "udp", "tls", "http", "https"},
	"naming":   {"name", "suffix", "address"},
	"event": {"exec", "load", "refused", "exit", "write", "rename", "remove", "link", "mode", "connect", "listen", "send",
		"privilege", "lookup", "connection", "request", "datagram"},
	"outgoing":   {"stdout", "stderr", "output", "report", "comment"},
	"order":      {"run", "approve", "rerun", "review", "explain", "help"},
	"account":    {"User", "Bot", "Organization", "Mannequin"},
	"permission": {"admin", "maintain", "write", "triage", "read", "none"},
	"state":      {"open", "closed"},
}

var places = []string{"workspace", "git", "control", "tmp", "null", "secret", "home", "outside", "url", "dynamic"}

// Vocabulary are the values that f may have, besides "", or nil if it may have any. The elements of
// a list have them, too.
func Vocabulary(f reflect.StructField) []string { return vocabularies[f.Tag.Get("enum")] }
