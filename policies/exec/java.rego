package fumehood.exec

import data.fumehood.lib

# METADATA
# title: Commands that do not run the repository's code must not run its annotation processors
# description: >-
#   javac runs those that it finds on its class path, and javadoc the taglets that it is given, without mapping them as
#   code. A command whose text shows such a javac was granted built.
# custom:
#   rule: exec.processor
#   severity: high
#   category: evasion
#   match: [
#     {path: /usr/lib/jvm/java-17-openjdk-amd64/bin/javac, argv: [javac, A.java]},
#     {path: /usr/lib/jvm/java-17-openjdk-amd64/bin/javac, argv: [javac, "-proc:none", "-Xplugin:X", A.java]},
#     {path: /usr/bin/javac, argv: [javac, "-proc:none"], argv_cut: true},
#     {path: /usr/bin/javac, argv: [javac, "-proc:none", A.java], env: [JDK_JAVAC_OPTIONS]},
#     {path: /usr/bin/javadoc, argv: [javadoc, -taglet, T, --taglet-path=lib, A.java]}
#   ]
#   not_match: [
#     {path: /usr/bin/javac, argv: [javac, A.java], grants: [built]},
#     {path: /usr/bin/javac, argv: [javac, -version]}, {path: /usr/bin/javadoc, argv: [javadoc, -d, out, A.java]}
#   ]
deny contains lib.denial(
	"exec.processor",
	sprintf("%s may run annotation processors or taglets of the repository, and this command may not run its code", [input.name]),
	"name javac in the text: a text with it may run the repository's code",
) if {
	input.name in {"javac", "javadoc"}
	not "built" in input.grants
	loads_classes
}

loads_classes if lib.loads_classes(input.name, array.slice(input.argv, 1, count(input.argv)))

loads_classes if input.argv_cut

loads_classes if "JDK_JAVAC_OPTIONS" in input.env
