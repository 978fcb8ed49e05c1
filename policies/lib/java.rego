package fumehood.lib

# javac runs the annotation processors that it finds on the class path, which is the working
# directory if none is named, and javadoc runs the doclets and taglets that it is given. The
# kernel sees how code is mapped, and classes are not: what decides are the words.

# loads_classes is true for a Java tool whose words may make it run classes of the repository.
loads_classes("javac", words) if {
	not asks_javac(words)
	not only_compiles(words)
}

loads_classes("javadoc", words) if {
	some word in words
	regex.match(`^(-J|@|--?(doclet|taglet|system\b)).*`, word)
}

asks_javac(words) if {
	count(words) > 0
	every word in words { word in {"-version", "--version", "-help", "--help", "-?", "-X", "--help-extra", "-fullversion", "--full-version"} }
}

# -proc:none stays in force whatever follows, but an option that is not listed may load a plugin.
only_compiles(words) if {
	"-proc:none" in words
	every word in words { regex.match(compiling_word, word) }
}

compiling_word := concat("", [
	`^(|[^-@].*|-proc:none|-(d|s|h|cp|classpath|p|m|g|g:[a-z,]+|sourcepath|nowarn|verbose|deprecation)`,
	`|-(parameters|Werror|encoding|source|target|version|A.*)`,
	`|-(implicit|Xlint|Xdoclint|Xmaxerrs|Xmaxwarns|Xdiags|Xpkginfo)(:.*)?`,
	`|--(class-path|module-path|source-path|module-source-path|module|source|target|release|add-modules`,
	`|add-exports|add-reads|limit-modules|enable-preview)(=.*)?)$`,
])
