package fumehood.command

test_java_a_build if allowed("gradle test") == {"code.run"}

test_java_another_script if denied("gradle -I x.gradle test") == {"code.program"}

test_java_a_deployment if denied("mvn deploy") == {"code.program", "code.target", "code.verb"}
