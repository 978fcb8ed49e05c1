package fumehood.command

test_judged_a_chart if allowed("helm lint charts/app") == {"text.judged"}

test_judged_an_installation if denied("helm install x y") == {"code.publish", "judged.verb"}

test_judged_a_program_behind_the_chart if denied("helm template x --post-renderer ./x") == {"text.program"}

test_judged_a_look_at_a_server if allowed_with("openssl s_client -connect api.example.com:443", hosts) == {"text.judged"}

test_judged_an_engine if denied_with("openssl s_client -engine ./x -connect api.example.com:443", hosts) == {"text.program"}
