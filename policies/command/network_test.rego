package fumehood.command

test_network_a_client_where_hosts_were_granted if allowed_with("curl -fsSL https://api.example.com/x", hosts) == {"network.use"}

test_network_a_configuration if denied_with("curl -K x https://api.example.com", hosts) == {"network.option"}

test_network_words_of_run_time if denied_with("curl \"$X\"", hosts) == {"network.option"}
