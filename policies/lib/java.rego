package fumehood.lib

# javac runs the annotation processors and plugins that it finds on the class path, which is the
# working directory if none is named; -proc:none does not stop plugins. javadoc runs the doclets and
# taglets that it is given. The kernel sees how code is mapped, and classes are not: what decides are
# the words.

# loads_classes is true for a Java tool whose words may make it run classes of the repository.
loads_classes("javac", words) if not asks_javac(words)

loads_classes("javadoc", words) if {
	some word in words
	regex.match(`^(-J|@|--?(doclet|taglet|system\b)).*`, word)
}

asks_javac(words) if {
	count(words) > 0
	every word in words { word in {"-version", "--version", "-help", "--help", "-?", "-X", "--help-extra", "-fullversion", "--full-version"} }
}
