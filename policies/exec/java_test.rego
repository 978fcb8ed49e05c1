package fumehood.exec

test_processors_need_the_grant if {
	every words in [["A.java"], [], ["-proc:none", "@args"], ["-proc:none", "-XD-Xplugin:=X", "A.java"], ["-proc:none", "--system", "jdk", "A.java"]] {
		denied(javac(words)) == {"exec.processor"}
		denied(object.union(javac(words), {"grants": ["built"]})) == set()
	}
	every words in [["-proc:none", "A.java"], ["--release=17", "-proc:none", "-cp", "lib/*:.", "-Xlint:all", "-d", "out", "A.java"], ["--version"]] {
		denied(javac(words)) == set()
	}
}

javac(words) := {"path": "/usr/bin/javac", "name": "javac", "names": ["javac"], "tool": "javac", "argv": array.concat(["javac"], words)}
