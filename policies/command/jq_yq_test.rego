package fumehood.command

test_jq_yq_a_query if allowed("jq .a x.json") == {"text.read"}

test_jq_yq_an_edit if allowed("yq -i .a=1 config.yml") == {"text.judged"}

test_jq_yq_a_workflow if denied("yq -i .a=1 .github/workflows/ci.yml") == {"operand.place", "yq.place"}

test_jq_yq_the_environment if {
	every text in ["jq -n 'env.PATH'", "jq -n '[env]'", "jq -n '$ENV|keys'", "yq -n 'def f: env; f'", "awk 'BEGIN { for (k in ENVIRON) print k }'"] {
		denied(text) == set()
	}
	denied("jq -n '[env.NPM_TOKEN]'") == {"read.credential"}
}
