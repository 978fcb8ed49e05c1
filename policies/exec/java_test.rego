package fumehood.exec

test_processors_need_the_grant if {
	every words in [["A.java"], [], ["-proc:none", "A.java"], ["-proc:none", "@args"], ["-version", "A.java"]] {
		denied(javac(words)) == {"exec.processor"}
		denied(object.union(javac(words), {"grants": ["built"]})) == set()
	}
	denied(javac(["--version"])) == set()
}

javac(words) := {"path": "/usr/bin/javac", "name": "javac", "names": ["javac"], "tool": "javac", "argv": array.concat(["javac"], words)}
