# gradle and mvn may build and test. Settings that load code or run a program, and tasks
# that deploy, are denied.
package fumehood.command

program_option contains word if {
	input.command.program in {"gradle"}
	some word in input.command.argv
	regex.match(`^(-D(java\.home|org\.gradle\.java\.home|org\.gradle\.jvmargs).*)$`, word)
}

program_option contains word if {
	input.command.program == "mvn"
	some word in input.command.argv
	regex.match(maven_running_goal, word)
}

maven_running_goal := concat("", [
	`^(exec:|antrun:|org\.codehaus\.mojo:exec|-Dexec\.|-Djvm=|-DargLine=.*agent`,
	`|-D(maven\.ext\.class\.path|java\.home)|deploy|release:|site:deploy|wagon:|scm:)|:deploy$`,
	`|groovy:execute`,
])

# Only settings that set a size, print or choose a collector are allowed: those that run
# or write something are too many to list.
program_option contains o.name if {
	input.command.program == "java"
	some o in input.command.options
	startswith(o.name, "-XX")
	not regex.match(harmless_vm_option, o.name)
}

harmless_vm_option := concat("", [
	`^-XX:([+-](Use\w+|TieredCompilation|Exit\w+|Crash\w+|HeapDumpOnOutOfMemoryError|Print\w+|Show\w+`,
	`|Unlock\w+|Enable\w+|Disable\w+|Always\w+|Compact\w+|Restrict\w+|Omit\w+|ZGenerational`,
	`|IgnoreUnrecognizedVMOptions)|\w*(Size|RAM|Percentage|Ratio|Threads|Count|Millis|Level|Threshold`,
	`|Limit|Percent|Interval|MaxRAM))$`,
])

program_option contains sprintf("-X%s", [o.value]) if {
	input.command.program == "java"
	some o in input.command.options
	o.name == "-X"
	not regex.match(harmless_x_option, o.value)
}

harmless_x_option := concat("", [
	`^(m[xsn]\w+|ss\w+|int|comp|mixed|batch|share:\w+|verify:\w+|check:jni|internalversion|noclassgc`,
	`|diag|future|settings(:\w+)?)?$`,
])
