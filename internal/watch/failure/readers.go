// SPDX-License-Identifier: Apache-2.0

package failure

import "slices"

// readers are all readers, in the order in which reports of one rank are returned. Each is
// used for output that contains one of its marks.
var readers = slices.Concat(runners, nested)

// runners are the readers of test runners.
var runners = []reader{
	{name: "jest", marks: []string{"  ● "}, read: readJest},
	{name: "vitest", marks: []string{"⎯⎯"}, read: readVitest},
	{name: "mocha", marks: []string{" failing"}, read: readMocha},
	{name: "node", marks: []string{"✖ failing tests:", "Failed tests:"}, read: readNodeSpec},
	{name: "ava", marks: []string{"✘ [fail]", "Uncaught exception in"}, read: readAVA},
	{name: "jasmine", marks: []string{"  Message:"}, read: readJasmine},
	{name: "bun", marks: []string{"(fail) "}, read: readBun},
	{name: "lab", marks: []string{"Failed tests:"}, read: readLab},
	{name: "busted", marks: []string{" -> "}, read: readBusted},
	{name: "headed", marks: []string{"─", "  FAIL  ", " => "}, read: readHeaded},
	{name: "tap", marks: []string{"not ok", "Bail", "urther testing stopped"}, read: readTAP},
	{name: "bats", marks: []string{" ✗ "}, read: readBatsPretty},
	{name: "perl", marks: []string{"#   Failed ", "# Failed test"}, read: readPerl},
	{name: "pytest", marks: []string{"short test summary info", "___ ", "=== ", "E   ", ".py:"}, read: readPytest},
	{name: "unittest", marks: []string{"FAIL: ", "ERROR: "}, read: readUnittest},
	{name: "doctest", marks: []string{"***Test Failed***"}, read: readDoctest},
	{name: "maven", marks: []string{"<<< FAILURE!", "<<< ERROR!", "Failures:", "Errors:"}, read: readMaven},
	{name: "gradle", marks: []string{" FAILED"}, read: readGradle},
	{name: "junit console", marks: []string{"MethodSource ["}, read: readConsole},
	{name: "junit", marks: []string{"<testcase"}, read: readJUnit},
	{name: "rspec", marks: []string{"Failures:", "An error occurred "}, read: readRSpec},
	{name: "minitest", marks: []string{"Failure:", "Error:"}, read: readMinitest},
	{name: "test-unit", marks: []string{"Failure: ", "Error: "}, read: readTestUnit},
	{name: "phpunit", marks: []string{"There was ", "There were ", " ✘ "}, read: readPHPUnit},
	{name: "cargo", marks: []string{" stdout ----", "failures:"}, read: readCargo},
	{name: "nextest", marks: []string{"FAIL [", "TIMEOUT [", "SIGABRT ["}, read: readNextest},
	{name: "go", marks: []string{"--- FAIL", "=== ", "FAIL\t", "# ", "\tTest", `"Action":`, "panic: "}, read: readGo},
	{name: "ginkgo", marks: []string{"• ["}, read: readGinkgo},
	{name: "ctest", marks: []string{"The following tests FAILED:"}, read: readCTest},
}

// nested are the readers that also read what a command of another runner prints.
var nested = []reader{
	{name: "googletest", marks: []string{"[  FAILED  ]"}, read: readGoogleTest},
	{name: "boost test", marks: []string{"error: in "}, read: readBoost},
	{name: "catch2", marks: []string{": FAILED:"}, read: readCatch2},
	{name: "lua", marks: []string{".lua:"}, read: readLua},
	{name: "diagnostics", marks: []string{":", "(", "[warn]", " line "}, read: readDiagnostics},
	{name: "native", marks: []string{"Assertion ", "Sanitizer", "runtime error", "undefined ", "multiple definition", "ld: ", "CMake Error", " *** "}, read: readNative},
	{name: "ruby", marks: []string{":in ", "syntax error"}, read: readRuby},
	{name: "php", marks: []string{"error: "}, read: readPHP},
	{name: "java", marks: []string{"\tat "}, read: readJava},
	{name: "python", marks: []string{"File \""}, read: readTracebacks},
	{name: "rust", marks: []string{" panicked at "}, read: readRustPanics},
	{name: "v8", marks: []string{"Error", "Exception", "Rejection"}, read: readV8},
	{name: "shell", marks: []string{": "}, read: readShell},
	{name: "diff", marks: []string{"@@", "Diff in ", " differ", "< ", "> "}, read: readDiff},
	{name: "places", marks: []string{":"}, read: readPlaces},
}
