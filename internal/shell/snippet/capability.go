// SPDX-License-Identifier: Apache-2.0

package snippet

// What a snippet can do, as far as its text shows; those that only tables of modules name are not here.
const (
	canReadFiles   = "files-read"
	canWriteFiles  = "files-write"
	canNetwork     = "network"
	canStart       = "process"       // starts programs
	canDynamicCode = "dynamic-code"  // runs text that is not in the snippet
	canNativeCode  = "native-code"   // ctypes, native add-ons, WebAssembly
	canProjectCode = "project-code"  // imports something outside the language's own library
	canInspect     = "introspection" // looks at or changes the interpreter itself
)
