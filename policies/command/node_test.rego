package fumehood.command

test_node_scripts_of_the_repository if allowed("npm test") == {"code.run"}

test_node_a_tool_of_the_repository if allowed("npx eslint .") == {"code.run"}

test_node_a_test_runner_of_the_repository if allowed("npx tape 'test/**/*.js'") == {"code.run"}

test_node_a_shell_through_npx if denied("npx -c id") == {"code.program"}

test_node_another_registry if denied("npm ci --registry=https://x.example") == {"code.program", "code.url"}

test_node_browsers if denied("npx playwright install") == {"code.verb"}
