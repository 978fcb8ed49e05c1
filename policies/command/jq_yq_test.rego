package fumehood.command

test_jq_yq_a_query if allowed("jq .a x.json") == {"text.read"}

test_jq_yq_an_edit if allowed("yq -i .a=1 config.yml") == {"text.judged"}

test_jq_yq_a_workflow if denied("yq -i .a=1 .github/workflows/ci.yml") == {"operand.place", "yq.place"}

test_jq_yq_the_environment if denied("jq -n 'env.PATH'") == {"read.credential"}
