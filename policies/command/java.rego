# gradle and mvn may build and test. What their settings load or run as a program of its
# own, and what deploys, is refused.
package fumehood.command

program_option contains word if {
	input.command.program in {"gradle"}
	some word in input.command.argv
	regex.match(`^(-I.*|--init-script.*|-D(java\.home|org\.gradle\.java\.home|org\.gradle\.jvmargs).*)$`, word)
}

program_option contains word if {
	input.command.program == "mvn"
	some word in input.command.argv
	regex.match(`^(exec:|antrun:|org\.codehaus\.mojo:exec|-Dexec\.|-Djvm=|-DargLine=.*agent|-s$|--settings|-gs|-D(maven\.ext\.class\.path|java\.home)|deploy|release:|site:deploy|wagon:|scm:)|:deploy$|groovy:execute`, word)
}
