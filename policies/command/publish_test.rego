package fumehood.command

test_publish_a_build if allowed("npm run build") == {"code.run"}

test_publish_a_registry if denied("cargo publish") == {"cargo.subcommand", "code.publish", "code.target"}

test_publish_a_target if denied("make deploy") == {"code.target"}

test_publish_a_task_of_the_wrapper if denied("./gradlew publish") == {"code.target"}
